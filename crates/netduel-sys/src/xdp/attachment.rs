//! The XDP program that is attached to an interface without a BPF link (rtnetlink(7), `IFLA_XDP`): detects and detaches it. A program
//! with a link is detached with its link and is not changed here.
use std::io;

use crate::netlink::{NetlinkSocket, RTM_GETLINK, RTM_SETLINK, Request, attribute, messages, u32_at};

/// Bytes of `struct ifinfomsg`.
const BODY_LEN: usize = 16;
/// `IFLA_XDP` and its attributes.
const XDP: u16 = libc::IFLA_XDP;
const XDP_DESCRIPTOR: u16 = 1;
const XDP_FLAGS: u16 = 3;
const XDP_PROGRAM: u16 = 4;
/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const MODES: [u32; 2] = [2, 4];

/// The kernel's id of the program on an interface; `None` without one.
///
/// # Errors
/// `ENODEV` without such an interface in this network namespace.
pub fn program(interface: u32) -> io::Result<Option<u32>> {
    let answer = NetlinkSocket::route()?.get(Request::new(RTM_GETLINK, 0, &body(interface)))?;
    let message = messages(&answer).next();
    let attributes = message.and_then(|message| message.payload.get(BODY_LEN..)).unwrap_or_default();
    let xdp = attribute(attributes, XDP).unwrap_or_default();
    let number = attribute(xdp, XDP_PROGRAM).and_then(|value| u32_at(value, 0));
    Ok(number.filter(|number| *number != 0))
}

/// Detaches the program of an interface in any mode. No effect without a program.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN, `EBUSY` when it has a link, `ENODEV` without such an interface.
pub fn detach(interface: u32) -> io::Result<()> {
    if program(interface)?.is_none() {
        return Ok(());
    }
    let mut socket = NetlinkSocket::route()?;
    let mut result = Ok(());
    for mode in MODES {
        let request = Request::new(RTM_SETLINK, 0, &body(interface))
            .nested(XDP, |xdp| xdp.bytes(XDP_DESCRIPTOR, &(-1_i32).to_ne_bytes()).u32(XDP_FLAGS, mode));
        // A driver without one of the modes returns an error; the check afterwards decides.
        result = result.and(socket.request(request).map_err(io::Error::from));
    }
    if program(interface)?.is_none() { Ok(()) } else { result.and(Err(io::ErrorKind::ResourceBusy.into())) }
}

/// `struct ifinfomsg`: the index alone.
fn body(interface: u32) -> [u8; BODY_LEN] {
    let mut bytes = [0; BODY_LEN];
    bytes[4..8].copy_from_slice(&interface.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_xdp_program_and_a_missing_interface_is_an_error() {
        assert_eq!(program(1).unwrap(), None);
        assert_eq!(program(i32::MAX as u32).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        detach(1).unwrap();
    }
}
