//! Passes descriptors over a Unix socket (SCM_RIGHTS, unix(7)), and identifies its peer (SO_PEERCRED).
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of descriptors in a message.
pub const DESCRIPTORS_MAX: usize = 8;

/// Sends one message with descriptors. On a stream at least one byte must go with them.
///
/// # Errors
/// Errors of sendmsg(2); a short write is `WriteZero`.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "a message carries at most {DESCRIPTORS_MAX} descriptors");
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "the space was reserved for the asserted number of descriptors");
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives one message of at most `buffer.len()` bytes and its descriptors, which are closed on exec.
/// No bytes means that the other end is closed.
///
/// # Errors
/// Errors of recvmsg(2); `InvalidData` when the message or its descriptors were truncated.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if message.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message was cut short"));
    }
    Ok((message.bytes, descriptors))
}

/// The peer of a connected Unix socket, as the kernel recorded it at connect(2) or listen(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its process id; absent when it has none in the caller's pid namespace.
    pub pid: Option<i32>,
    /// Its user in the caller's user namespace (65534 when it is not mapped).
    pub uid: u32,
}

/// The process at the other end.
///
/// # Errors
/// When `socket` is not a connected Unix socket.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    // Not through rustix: its type cannot represent the pid 0 of a peer outside the pid namespace.
    let mut raw = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: `raw` and `length` are writable and alive for the call, and `length` is the size of `raw`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { pid: (raw.pid != 0).then_some(raw.pid), uid: raw.uid })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn passed_descriptor_works() {
        let (left, right) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        send(left.as_fd(), b"pipe", &[writer.as_fd()]).unwrap();
        drop(writer);
        let mut buffer = [0; 16];
        let (length, mut descriptors) = receive(right.as_fd(), &mut buffer).unwrap();
        assert_eq!((&buffer[..length], descriptors.len()), (&b"pipe"[..], 1));
        let mut passed = std::fs::File::from(descriptors.remove(0));
        passed.write_all(b"hello").unwrap();
        drop(passed);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn peer_of_a_socket_pair_is_this_process() {
        let (left, _right) = UnixStream::pair().unwrap();
        let peer = peer(left.as_fd()).unwrap();
        assert_eq!(peer.pid, i32::try_from(std::process::id()).ok());
        assert_eq!(peer.uid, rustix::process::getuid().as_raw());
    }
}
