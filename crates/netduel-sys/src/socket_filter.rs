//! Filters of sockets in classic BPF (`SO_ATTACH_FILTER`, Documentation/networking/filter.rst): the kernel drops a message that the
//! filter rejects before it occupies the receive buffer or wakes a reader. Needs no capability.
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::{sock_filter, sock_fprog};

/// The result of a filter that accepts the whole message.
const ACCEPT: u32 = u32::MAX;
/// The result of a filter that drops the message.
const DROP: u32 = 0;

fn statement(code: u32, operand: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k: operand }
}

/// A program that accepts the messages whose 16-bit number at `offset` is `value`. With `after_ip_header` a message begins with an IPv4
/// header, and the offset is that behind it.
pub(crate) fn number_at(offset: u32, value: u16, after_ip_header: bool) -> Vec<sock_filter> {
    let load = if after_ip_header {
        vec![
            // X = length of the IP header: the low half of its first byte, in words of 4 bytes (RFC 791).
            statement(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0),
            statement(libc::BPF_LD | libc::BPF_H | libc::BPF_IND, offset),
        ]
    } else {
        vec![statement(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, offset)]
    };
    let mut differs = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value.into());
    differs.jf = 1;
    let decide = [
        differs,
        statement(libc::BPF_RET | libc::BPF_K, ACCEPT),
        statement(libc::BPF_RET | libc::BPF_K, DROP),
    ];
    [load, decide.to_vec()].concat()
}

/// Attaches a program to a socket. The kernel checks it and keeps a copy.
///
/// # Errors
/// `EINVAL` for a program that the kernel rejects, `ENOMEM` above net.core.optmem_max.
pub(crate) fn attach(socket: impl AsFd, program: &[sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    let pointer: *const sock_fprog = &raw const program;
    let size = size_of::<sock_fprog>() as libc::socklen_t;
    // SAFETY: `pointer` is to a live local of `size` bytes, which names `length` readable instructions of a slice that outlives the call;
    // the kernel only reads both during the call. The descriptor is borrowed and so open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            pointer.cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    /// The first byte of an IPv4 header of 24 bytes.
    const VERSION_AND_LENGTH: u8 = 0x46;

    /// Which of the messages a socket with the program receives.
    fn received(program: &[sock_filter], messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        attach(&receiver, program).unwrap();
        receiver.set_nonblocking(true).unwrap();
        for message in messages {
            // A Unix socket reports a message that the filter of its peer drops as sent.
            assert_eq!(sender.send(message).unwrap(), message.len());
        }
        let mut buffer = [0; 64];
        std::iter::from_fn(|| receiver.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec()))
            .collect()
    }

    #[test]
    fn only_messages_with_the_number_are_received() {
        let [own, other] = [vec![0, 0, 0, 0, 0x12, 0x34, 9], vec![0, 0, 0, 0, 0x34, 0x12, 9]];
        let short = vec![0, 0, 0, 0, 0x12];
        let program = number_at(4, 0x1234, false);
        assert_eq!(received(&program, &[other, own.clone(), short]), [own]);
    }

    #[test]
    fn number_is_read_behind_the_options_of_the_ip_header() {
        let message = |number: [u8; 2]| {
            let mut message = vec![0; 24];
            message[0] = VERSION_AND_LENGTH;
            message.extend([0, 0, 0, 0, number[0], number[1]]);
            message
        };
        let (own, other) = (message([0x12, 0x34]), message([0x12, 0x35]));
        assert_eq!(received(&number_at(4, 0x1234, true), &[own.clone(), other]), [own]);
    }
}
