//! Bulk data over one TCP connection through io_uring(7): a [`Sender`] with several zero-copy sends in flight, which
//! counts copies (`IORING_OP_SEND_ZC`), and a [`Receiver`] with one request (multishot `IORING_OP_RECV`) and a ring of buffers. A
//! request in flight is cancelled, and its result read, before memory is freed.
mod receiver;
mod sender;

use std::io;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};

pub use self::receiver::Receiver;
pub use self::sender::Sender;
pub use crate::zerocopy::Counts;

/// Size of the completion queue: results, and later notifications.
const COMPLETIONS: u32 = 512;
/// Timeout of the results of cancelled requests, nanoseconds, and interval of the checks.
const CANCEL_NS: u64 = 1_000_000_000;
const CANCEL_STEP: Duration = Duration::from_millis(20);

/// Whether this process may use io_uring, and this kernel has the required operations, tested on a separate ring.
///
/// # Errors
/// Errors of `io_uring_setup(2)`: `ENOSYS` without io_uring, `EPERM` where kernel.io_uring_disabled or a seccomp filter forbids it;
/// `Unsupported` before Linux 6.0.
pub fn probe() -> io::Result<()> {
    let ring = new_ring(2)?;
    let mut known = Probe::new();
    ring.submitter().register_probe(&mut known)?;
    // Added in the same version as multishot receiving, which has no opcode.
    if known.is_supported(opcode::SendZc::CODE) {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel has no SEND_ZC and no multishot RECV"))
    }
}

fn new_ring(entries: u32) -> io::Result<IoUring> {
    IoUring::builder().setup_cqsize(COMPLETIONS).setup_coop_taskrun().build(entries)
}

/// Adds a request to the queue; the next wait submits it.
fn put(ring: &mut IoUring, request: &squeue::Entry) -> io::Result<()> {
    let mut queue = ring.submission();
    // SAFETY: memory that the request names is freed only after its last completion, or never (`Drop` of both users).
    let result = unsafe { queue.push(request) };
    result.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))
}

/// Submits requests and waits for a completion, for `timeout` at most.
fn wait(ring: &IoUring, timeout: Duration) -> io::Result<()> {
    let limit = Timespec::from(timeout);
    match ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit)) {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
            _ => Err(error),
        },
    }
}

/// Cancels all requests of the ring; their results must still be read.
fn cancel(ring: &IoUring) -> io::Result<()> {
    let limit = Timespec::from(CANCEL_STEP);
    match ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any()) {
        Ok(()) => Ok(()),
        Err(error) => match error.raw_os_error() {
            // It has completed, or is about to.
            Some(libc::ENOENT | libc::EALREADY | libc::ETIME | libc::EINTR) => Ok(()),
            _ => Err(error),
        },
    }
}

/// The result of a request: a number of bytes or an error.
fn bytes_of(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()))
}

#[cfg(test)]
mod tests {
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(20);

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn receive_all(stream: &TcpStream) -> usize {
        let mut receiver = Receiver::new().unwrap();
        let mut total = 0;
        loop {
            match receiver.receive(stream, TIMEOUT) {
                Ok(0) => return total,
                Ok(count) => total += count,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn all_sent_bytes_are_received_with_and_without_zero_copy() {
        probe().unwrap();
        for (address, is_zero_copy) in [("127.0.0.1:0", true), ("[::1]:0", true), ("127.0.0.1:0", false)] {
            let (client, server) = pair(address);
            let reader = std::thread::spawn(move || receive_all(&server));
            let mut sender = Sender::with(100_000, is_zero_copy).unwrap();
            let mut sent = 0;
            while sent < 30_000_001 {
                match sender.send(&client, (100_000, 30_000_001 - sent), TIMEOUT) {
                    Ok(taken) => sent += taken,
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            assert_eq!(sent, 30_000_001);
            assert_eq!(sender.finish().unwrap(), 0);
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(reader.join().unwrap(), 30_000_001);
            while !sender.settle(TIMEOUT).unwrap() {}
            let counts = sender.counts();
            assert_eq!(counts.is_some(), is_zero_copy);
            if let Some(counts) = counts {
                // Loopback always copies.
                assert_eq!((counts.completions, counts.copied), (counts.sends, counts.sends));
                assert!(counts.sends >= 300, "{counts:?}");
            }
        }
    }

    #[test]
    fn unread_sends_are_cancelled_and_accepted_bytes_are_counted() {
        for is_zero_copy in [true, false] {
            let (client, server) = pair("127.0.0.1:0");
            let mut sender = Sender::with(1 << 20, is_zero_copy).unwrap();
            let mut sent = 0;
            // Until the buffers of both ends are full.
            while let Ok(taken) = sender.send(&client, (1 << 20, usize::MAX), TIMEOUT) {
                sent += taken;
            }
            assert!(sender.in_flight > 0);
            sent += sender.finish().unwrap();
            assert_eq!((sender.in_flight, sender.claimed), (0, 0));
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(receive_all(&server), sent);
        }
    }

    #[test]
    fn idle_receiver_is_cancelled_and_broken_connection_is_an_error() {
        let (client, server) = pair("127.0.0.1:0");
        let mut receiver = Receiver::new().unwrap();
        let error = receiver.receive(&server, TIMEOUT).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert!(receiver.is_armed);
        assert_eq!(receiver.finish().unwrap(), 0);
        assert!(!receiver.is_armed);
        server.shutdown(Shutdown::Both).unwrap();
        let mut sender = Sender::new(4096).unwrap();
        let error = loop {
            match sender.send(&server, (4096, 4096), TIMEOUT) {
                Ok(_) => panic!("it was taken"),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
        drop(client);
    }

    /// Forbids io_uring for this thread, as the seccomp(2) profile of a container does.
    fn forbid() {
        let statement = |code: u32, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let mut filter = [
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, libc::SYS_io_uring_setup as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            statement(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        let pointer: *const libc::sock_fprog = &raw const program;
        // SAFETY: a flag of this thread; no memory is passed.
        let result = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        assert_eq!(result, 0);
        // SAFETY: the program and its statements live during the call, which copies them.
        let result = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, pointer) };
        assert_eq!(result, 0);
    }

    #[test]
    fn probe_fails_where_io_uring_is_forbidden() {
        let refused = std::thread::spawn(|| {
            forbid();
            probe().unwrap_err()
        });
        assert_eq!(refused.join().unwrap().raw_os_error(), Some(libc::EPERM));
    }
}
