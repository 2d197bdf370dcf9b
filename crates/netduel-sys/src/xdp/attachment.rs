//! The XDP program that hangs on an interface without a link of its own (rtnetlink(7), `IFLA_XDP`): whether there is one, and taking
//! it off. A program that came by a link goes with that and is not touched here.
use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Bytes of `struct nlmsghdr` and of `struct ifinfomsg`.
const HEADER_LEN: usize = 16;
const HEAD_LEN: usize = 16;
/// `NLMSG_ERROR`, which also carries the number 0 for "done".
const MESSAGE_ERROR: u16 = 2;
const REQUEST_LINK: u16 = 18;
const SET_LINK: u16 = 19;
/// `NLM_F_REQUEST` and with `NLM_F_ACK`.
const FLAGS_ONE: u16 = 1;
const FLAGS_ACKNOWLEDGED: u16 = 5;
/// `IFLA_XDP` and what is in it, with the flag of a nest.
const XDP: u16 = 43;
const NESTED: u16 = 0x8000;
const XDP_DESCRIPTOR: u16 = 1;
const XDP_FLAGS: u16 = 3;
const XDP_PROGRAM: u16 = 4;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const MODES: [u32; 2] = [2, 4];
/// The kernel fills datagrams of up to 32 KiB.
const ANSWER_LEN: usize = 64 << 10;

/// The kernel's number of the program on an interface; `None` without one.
///
/// # Errors
/// `ENODEV` without such an interface in this network namespace.
pub fn program(interface: u32) -> io::Result<Option<u32>> {
    let answer = ask(&message(REQUEST_LINK, FLAGS_ONE, interface, &[]))?;
    let attributes = answer.get(HEADER_LEN + HEAD_LEN..).unwrap_or_default();
    let xdp = attribute(attributes, XDP).unwrap_or_default();
    let number = attribute(xdp, XDP_PROGRAM).and_then(|value| value.first_chunk());
    Ok(number.map(|number| u32::from_ne_bytes(*number)).filter(|number| *number != 0))
}

/// Takes the program off an interface, in whichever way it hangs there. Without one nothing happens.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN, `EBUSY` when it came by a link, `ENODEV` without such an interface.
pub fn detach(interface: u32) -> io::Result<()> {
    if program(interface)?.is_none() {
        return Ok(());
    }
    let mut result = Ok(());
    for mode in MODES {
        let none = encoded(XDP_DESCRIPTOR, &(-1_i32).to_ne_bytes());
        let inner = [none, encoded(XDP_FLAGS, &mode.to_ne_bytes())].concat();
        let body = encoded(XDP | NESTED, &inner);
        // A driver without the one way refuses to hear of it; what counts is what is left.
        result = result.and(ask(&message(SET_LINK, FLAGS_ACKNOWLEDGED, interface, &body)).map(drop));
    }
    if program(interface)?.is_none() { Ok(()) } else { result.and(Err(io::ErrorKind::ResourceBusy.into())) }
}

fn message(kind: u16, flags: u16, interface: u32, body: &[u8]) -> Vec<u8> {
    let length = (HEADER_LEN + HEAD_LEN + body.len()) as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend_from_slice(&length.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    // Sequence and port: one question and one answer on a socket of their own.
    bytes.extend_from_slice(&[0; 8]);
    // struct ifinfomsg: family and type, index, flags and their mask.
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&interface.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(body);
    bytes
}

fn encoded(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn ask(message: &[u8]) -> io::Result<Vec<u8>> {
    // Protocol 0 is `NETLINK_ROUTE`.
    let socket: OwnedFd = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, message, SendFlags::empty())?;
    let mut answer = vec![0; ANSWER_LEN];
    let (length, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(length);
    if number16(&answer, 4) == Some(MESSAGE_ERROR) {
        let number = answer.get(HEADER_LEN..).and_then(|rest| rest.first_chunk());
        match number.map_or(0, |number| i32::from_ne_bytes(*number)) {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(-error)),
        }
    }
    Ok(answer)
}

/// The value of the first attribute of a kind.
fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    let mut rest = bytes;
    loop {
        let length = usize::from(number16(rest, 0)?);
        let value = rest.get(4..length)?;
        if number16(rest, 2)? & 0x3fff == kind {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_ne_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_no_program_and_a_missing_interface_is_an_error() {
        assert_eq!(program(1).unwrap(), None);
        assert_eq!(program(i32::MAX as u32).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        detach(1).unwrap();
    }

    #[test]
    fn attributes_are_found_behind_others_and_a_cut_one_is_none() {
        let bytes = [encoded(7, b"abc"), encoded(XDP | NESTED, b"inner!")].concat();
        assert_eq!(attribute(&bytes, XDP), Some(&b"inner!"[..]));
        assert_eq!(attribute(&bytes, 9), None);
        assert_eq!(attribute(&bytes[..10], XDP), None);
    }
}
