//! A pipe as the kernel's list of pages (vmsplice(2), splice(2)): from memory to a socket without a copy.
//!
//! The kernel passes 16 pages of a pipe to the socket at a time (`splice_to_socket` in fs/splice.c), and TCP divides them into GSO
//! packets of whole segments. 16 pages are 65,536 bytes, the largest such packet is slightly smaller, and the remaining few hundred
//! bytes leave as a separate packet that costs as much as a full one. Therefore pages are loaded in runs of the length of the packet
//! (`run`), each from the start of a page.
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use rustix::pipe::{self, IoSliceRaw, PipeFlags, SpliceFlags};

use crate::pages::{PAGE, Pages};

/// Size of a pipe that every user may request (fs.pipe-max-size), bytes.
const CAPACITY_MAX: usize = 1 << 20;
/// Pages that the kernel moves at a time.
const BATCH: usize = 16;
/// Maximum number of runs per call: each is at least a page.
const RUNS_MAX: usize = CAPACITY_MAX / PAGE;

/// A pipe, the pages that are loaded into it, and their layout.
#[derive(Debug)]
pub struct PagePipe {
    source: Pages,
    read: OwnedFd,
    write: OwnedFd,
    /// Payload of a run, and distance of the starts of two runs in memory, bytes.
    run: usize,
    stride: usize,
    /// Maximum payload of a load, bytes.
    most: usize,
    /// Loaded and unsent bytes.
    held: usize,
}

impl PagePipe {
    /// A pipe for `block` bytes at a time, or as much as the system grants, in runs of `run` bytes (1 to 16 pages).
    ///
    /// # Errors
    /// Without memory or descriptors.
    pub fn new(block: usize, run: usize) -> io::Result<Self> {
        let (read, write) = pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let run = run.clamp(PAGE, BATCH * PAGE);
        let stride = run.next_multiple_of(PAGE);
        let wanted = block.div_ceil(run).saturating_mul(stride).min(CAPACITY_MAX);
        // A user with many pipes gets less (fs.pipe-user-pages-soft), which only needs more calls.
        let granted =
            (0..5).find_map(|halvings| pipe::fcntl_setpipe_size(&write, (wanted >> halvings).max(1)).ok());
        let capacity = match granted {
            Some(capacity) => capacity,
            None => pipe::fcntl_getpipe_size(&write)?,
        };
        // The kernel counts pages of its own size; a run takes one slot for each page that it touches.
        let most = if capacity >= stride { capacity / stride * run } else { capacity.min(run) };
        let source = Pages::with_pattern((most / run * stride).max(stride))?;
        Ok(Self { source, read, write, run, stride, most, held: 0 })
    }

    /// Maximum number of bytes per call.
    pub fn capacity(&self) -> usize {
        self.most
    }

    /// Sends up to `length` bytes, and returns how many were taken. The next call sends the rest of the loaded bytes, on any
    /// socket: all payload is equal.
    ///
    /// # Errors
    /// Errors of vmsplice(2), or splice(2) of the socket; `EAGAIN` when the send buffer is full.
    #[inline]
    pub fn send(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        if self.held == 0 {
            self.held = self.load(length.min(self.most))?;
        }
        let length = length.min(self.held);
        let taken = pipe::splice(&self.read, None, stream, None, length, SpliceFlags::MOVE)?;
        self.held -= taken;
        Ok(taken)
    }

    fn load(&self, length: usize) -> io::Result<usize> {
        let mut runs = std::array::from_fn::<_, RUNS_MAX, _>(|_| IoSliceRaw::from_slice(&[]));
        let mut count = 0;
        let bytes = self.source.bytes();
        for (run, part) in runs.iter_mut().zip(bytes.chunks(self.stride)) {
            let left = length - count * self.run;
            *run = IoSliceRaw::from_slice(&part[..left.min(self.run)]);
            count += 1;
            if left <= self.run {
                break;
            }
        }
        // SAFETY: the write end of the pipe is given, so the kernel reads the pages only; they are never written again, and
        // it holds references to those that it still needs when the mapping goes.
        Ok(unsafe { pipe::vmsplice(&self.write, &runs[..count], SpliceFlags::NONBLOCK)? })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    /// Sends `length` bytes in calls of `call` while a thread reads them, and returns the received bytes.
    fn through(block: usize, run: usize, call: usize, length: usize) -> Vec<u8> {
        let (client, mut server) = pair();
        let mut pipe = PagePipe::new(block, run).unwrap();
        assert!(pipe.capacity() >= 1 && pipe.capacity() <= CAPACITY_MAX);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut bytes = Vec::new();
                server.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let mut sent = 0;
            while sent < length {
                sent += pipe.send(&client, call.min(length - sent)).unwrap();
            }
            drop(client);
            reader.join().unwrap()
        })
    }

    #[test]
    fn received_bytes_are_the_pattern_in_runs() {
        for (block, run) in [(1, PAGE), (300_000, 65_160), (1 << 20, 65_160), (1 << 30, 1 << 30)] {
            let bytes = through(block, run, 1 << 20, 3_000_001);
            assert_eq!(bytes.len(), 3_000_001);
            let run = run.min(BATCH * PAGE);
            let mut pattern = vec![0; CAPACITY_MAX];
            crate::pattern::fill(&mut pattern);
            // Each load begins with the first run; the second is the pattern from the next page on.
            assert_eq!(bytes[..run], pattern[..run]);
            let (second, page) = (run.min(bytes.len()), run.next_multiple_of(PAGE));
            assert!(
                bytes[second..].starts_with(&pattern[..64])
                    || bytes[second..].starts_with(&pattern[page..page + 64])
            );
        }
    }

    #[test]
    fn short_calls_are_kept_to_the_byte() {
        assert_eq!(through(1 << 20, 65_160, 1, 10).len(), 10);
        assert_eq!(through(1 << 20, 65_160, 70_000, 140_001).len(), 140_001);
    }

    #[test]
    fn rest_of_a_call_is_sent_on_the_next_socket() {
        let (client, server) = pair();
        let mut pipe = PagePipe::new(1 << 20, 65_160).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut sent = 0;
        while let Ok(count) = pipe.send(&client, 1 << 20) {
            sent += count;
        }
        assert!(sent > 0);
        let held = pipe.held;
        let (other, _reader) = pair();
        assert_eq!(pipe.send(&other, 1).unwrap(), 1);
        assert_eq!(pipe.held, held.saturating_sub(1));
        drop(server);
    }
}
