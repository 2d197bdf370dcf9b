//! Sends from this process's memory without a copy (`MSG_ZEROCOPY`), and the kernel's later notifications on the
//! socket's error queue: that it no longer uses the memory, and whether it copied the data
//! (Documentation/networking/msg_zerocopy.rst).
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::pages::Pages;
use crate::socket_option;
use crate::timestamping::{CONTROL_BYTES, Control, Messages, number, receive_message};

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` (include/uapi/linux/errqueue.h).
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;
/// Maximum number of sends in flight. Each needs a notification in kernel memory (`net.core.optmem_max`), and the send buffer limits
/// them as well.
const IN_FLIGHT_MAX: u32 = 256;
/// Number of sends between checks for completions: the kernel merges adjacent ones into one message, so fewer calls read more.
const LOOK_EVERY: u32 = 16;

/// The sends that the kernel accepted, and its notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Accepted calls.
    pub sends: u64,
    /// Of these, notified ones.
    pub completions: u64,
    /// Of these, copied ones.
    pub copied: u64,
    /// Calls that it deferred until earlier ones complete.
    pub deferred: u64,
}

/// Sends pages to one socket.
#[derive(Debug)]
pub struct Sender {
    pages: Pages,
    counts: Counts,
    unlooked: u32,
}

/// Tests on a separate socket whether this kernel supports it.
///
/// # Errors
/// Errors of setsockopt(2): `ENOPROTOOPT` before Linux 4.14.
pub fn probe() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    enable(socket)
}

fn enable(socket: impl AsFd) -> io::Result<()> {
    socket_option::set_int(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

impl Sender {
    /// With up to `block` bytes per call over `stream`, which no other sender may use.
    ///
    /// # Errors
    /// As [`probe`], or `ENOMEM`.
    pub fn new(stream: &TcpStream, block: usize) -> io::Result<Self> {
        enable(stream)?;
        Ok(Self { pages: Pages::with_pattern(block)?, counts: Counts::default(), unlooked: 0 })
    }

    /// Sends up to `length` bytes, at most a block, and returns the number of accepted bytes. While the kernel accepts no more because
    /// of sends in flight, it waits for these, for `timeout` at most.
    ///
    /// # Errors
    /// Errors of send(2); `EAGAIN` after the timeout; `ENOBUFS` when none is accepted although none is in flight.
    #[inline]
    pub fn send(&mut self, stream: &TcpStream, length: usize, timeout: Duration) -> io::Result<usize> {
        let most = u64::from(IN_FLIGHT_MAX);
        if self.unlooked >= LOOK_EVERY || self.in_flight() >= most {
            self.look(stream)?;
            if self.in_flight() >= most {
                self.wait(stream, timeout)?;
                return Err(io::Error::from(io::ErrorKind::WouldBlock));
            }
        }
        let bytes = self.pages.bytes();
        let length = length.min(bytes.len());
        let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
        let socket = stream.as_raw_fd();
        // SAFETY: the pages are `length` bytes of memory that is never written; the kernel holds references to those that it
        // still reads after the call, whether or not they are mapped then.
        let result = unsafe { libc::send(socket, bytes.as_ptr().cast(), length, flags) };
        if let Ok(taken) = usize::try_from(result) {
            self.counts.sends += 1;
            self.unlooked += 1;
            return Ok(taken);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENOBUFS) {
            return Err(error);
        }
        self.deferred(stream, timeout, error)
    }

    /// The kernel cannot accept another send: waits for those in flight.
    #[cold]
    fn deferred(&mut self, stream: &TcpStream, timeout: Duration, error: io::Error) -> io::Result<usize> {
        let before = self.in_flight();
        if before == 0 {
            return Err(error);
        }
        self.counts.deferred += 1;
        self.look(stream)?;
        if self.in_flight() == before {
            self.wait(stream, timeout)?;
        }
        Err(io::Error::from(io::ErrorKind::WouldBlock))
    }

    /// Waits until all sends are notified, for `timeout` at most; false when some are not.
    ///
    /// # Errors
    /// Errors of poll(2) and recvmsg(2).
    pub fn settle(&mut self, stream: &TcpStream, timeout: Duration) -> io::Result<bool> {
        self.look(stream)?;
        if self.in_flight() > 0 {
            self.wait(stream, timeout)?;
        }
        Ok(self.in_flight() == 0)
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn in_flight(&self) -> u64 {
        self.counts.sends.saturating_sub(self.counts.completions)
    }

    /// Waits until the error queue has a message, and reads all messages.
    fn wait(&mut self, stream: &TcpStream, timeout: Duration) -> io::Result<()> {
        // An error is reported even when no event was requested.
        let mut entry = [PollFd::new(stream, PollFlags::empty())];
        let timeout = crate::socket::to_timespec(timeout);
        match poll(&mut entry, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.look(stream)
    }

    /// Reads all messages of the error queue.
    fn look(&mut self, stream: &TcpStream) -> io::Result<()> {
        self.unlooked = 0;
        loop {
            let mut control = Control([0; CONTROL_BYTES]);
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            match receive_message(stream, &mut [], &mut control, flags) {
                Ok((_, length)) => {
                    let messages = Messages { bytes: &control.0[..length.min(CONTROL_BYTES)] };
                    if let Some((sends, copied)) = completed(messages) {
                        self.counts.completions += sends;
                        self.counts.copied += if copied { sends } else { 0 };
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Number of sends of a message of the error queue, and whether they were copied (`struct sock_extended_err`,
/// include/uapi/linux/errqueue.h): the first and the last of a range, which may wrap at 32 bits.
fn completed(messages: Messages<'_>) -> Option<(u64, bool)> {
    messages.find(|level, kind, data| {
        let ours = (level == libc::SOL_IP && kind == libc::IP_RECVERR)
            || (level == libc::SOL_IPV6 && kind == libc::IPV6_RECVERR);
        let is_completion = data.get(4) == Some(&ORIGIN) && number(data, 0) == Some(0);
        if !ours || !is_completion {
            return None;
        }
        let (first, last) = (number(data, 8)?, number(data, 12)?);
        let copied = data.get(6)? & COPIED != 0;
        Some((u64::from(last.wrapping_sub(first)) + 1, copied))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    /// A message of the error queue about sends `first` to `last`.
    fn message(origin: u8, code: u8, first: u32, last: u32) -> Vec<u8> {
        let mut bytes = (size_of::<libc::cmsghdr>() + 16).to_ne_bytes().to_vec();
        bytes.extend(libc::SOL_IP.to_ne_bytes());
        bytes.extend(libc::IP_RECVERR.to_ne_bytes());
        bytes.extend([0, 0, 0, 0, origin, 0, code, 0]);
        bytes.extend(first.to_ne_bytes());
        bytes.extend(last.to_ne_bytes());
        bytes
    }

    #[test]
    fn range_of_a_notification_may_wrap() {
        for (origin, code, first, last, expected) in [
            (ORIGIN, 0, 7, 7, Some((1, false))),
            (ORIGIN, COPIED, 0, 15, Some((16, true))),
            (ORIGIN, COPIED, u32::MAX, 1, Some((3, true))),
            (libc::SO_EE_ORIGIN_TIMESTAMPING, 0, 7, 7, None),
        ] {
            let bytes = message(origin, code, first, last);
            assert_eq!(completed(Messages { bytes: &bytes }), expected);
            assert_eq!(completed(Messages { bytes: &bytes[..bytes.len() - 1] }), None);
        }
    }

    #[test]
    fn loopback_copies_and_every_send_is_notified() {
        probe().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut server = listener.accept().unwrap().0;
            let reader = std::thread::spawn(move || {
                let mut bytes = Vec::new();
                server.read_to_end(&mut bytes).unwrap();
                bytes
            });
            let mut sender = Sender::new(&client, 100_000).unwrap();
            let (mut sent, mut calls) = (0, 0);
            while sent < 10_000_001 {
                match sender.send(&client, 10_000_001 - sent, Duration::from_secs(10)) {
                    Ok(taken) => (sent, calls) = (sent + taken, calls + 1),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            client.shutdown(std::net::Shutdown::Write).unwrap();
            let bytes = reader.join().unwrap();
            let mut pattern = vec![0; 100_000];
            crate::pattern::fill(&mut pattern);
            assert_eq!(bytes.len(), 10_000_001);
            assert!(bytes.starts_with(&pattern[..1000]));
            while !sender.settle(&client, Duration::from_secs(10)).unwrap() {}
            let counts = sender.counts();
            assert_eq!((counts.sends, counts.completions, counts.copied), (calls, calls, calls));
        }
    }
}
