//! Sending by AF_XDP: one socket for each thread, each on a queue of its own.
use std::io;
use std::net::UdpSocket;

use netduel_sys::clock;
use netduel_sys::xdp::{Settings, XdpSocket};

use super::RawPath;
use super::frame::Template;

/// Frames under way of a thread. The kernel takes 32 in a call when it copies.
const FRAMES: u32 = 2048;
/// How long the last frames may take to leave, nanoseconds.
const FLUSH_NS: u64 = 1_000_000_000;

/// A socket with the frames of its flows.
#[derive(Debug)]
pub(crate) struct RawSender {
    socket: XdpSocket,
    path: RawPath,
    templates: Vec<(usize, Template)>,
}

impl RawSender {
    /// On a queue of the path's interface.
    pub(crate) fn open(path: &RawPath, queue: u32) -> io::Result<Self> {
        let settings = Settings { interface: path.index, queue, send_frames: FRAMES, ..Settings::default() };
        Ok(Self { socket: XdpSocket::open(&settings)?, path: path.clone(), templates: Vec::new() })
    }

    /// Makes the frames that this flow's socket would send.
    pub(crate) fn add(&mut self, stream: usize, flow: &UdpSocket, payload: usize) -> io::Result<()> {
        let template = Template::new(&self.path, flow.local_addr()?, flow.peer_addr()?, payload);
        self.templates.push((stream, template));
        Ok(())
    }

    /// Sends payloads of a flow, each in a frame, and returns how many found room: as many are under way.
    pub(crate) fn send<'a>(
        &mut self,
        stream: usize,
        payloads: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> io::Result<usize> {
        let found = self.templates.iter().find(|(index, _)| *index == stream);
        let Some((_, template)) = found else { return Err(io::ErrorKind::NotFound.into()) };
        self.socket.reclaim();
        let (count, mut payloads) = (payloads.len(), payloads);
        let taken = self
            .socket
            .send(count, |frame| payloads.next().map_or(0, |payload| template.write(payload, frame)));
        self.kick()?;
        if taken == 0 {
            Err(io::Error::from_raw_os_error(rustix::io::Errno::NOBUFS.raw_os_error()))
        } else {
            Ok(taken)
        }
    }

    fn kick(&self) -> io::Result<()> {
        match self.socket.kick() {
            // The interface's queue is full, or another core is at it: what is under way stays so.
            Err(error) if is_full(&error) => Ok(()),
            other => other,
        }
    }

    /// Waits until the last frame has left; how many have not, in the end.
    pub(crate) fn flush(&mut self) -> usize {
        let deadline = clock::monotonic_ns() + FLUSH_NS;
        loop {
            self.socket.reclaim();
            let left = FRAMES as usize - self.socket.free_frames();
            if left == 0 || clock::monotonic_ns() > deadline || self.kick().is_err() {
                return left;
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let full = [Errno::AGAIN, Errno::BUSY, Errno::NOBUFS, Errno::INTR];
    error.raw_os_error().is_some_and(|code| full.iter().any(|errno| errno.raw_os_error() == code))
}
