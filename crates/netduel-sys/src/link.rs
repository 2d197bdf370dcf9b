//! Link settings by ioctl (netdevice(7)): MTU, up and down, name, promiscuous mode. Must hold no policy.
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Maximum length of an interface name, without the final zero (`IFNAMSIZ` - 1).
pub const NAME_LEN_MAX: usize = 15;
/// `IFF_UP`.
const UP: libc::c_short = 1;
/// `IFF_PROMISC`.
const PROMISCUOUS: libc::c_short = 0x100;

/// These ioctls accept any socket; it selects the network namespace, that of the thread that created it.
///
/// # Errors
/// When no descriptor is available.
pub(crate) fn request_socket() -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?)
}

/// A request about the interface of the given name, its union zeroed.
pub(crate) fn request(interface: &str) -> io::Result<libc::ifreq> {
    let bytes = interface.as_bytes();
    if bytes.is_empty() || bytes.len() > NAME_LEN_MAX || bytes.contains(&0) {
        let why = format!("`{interface}` is not an interface name: 1 to {NAME_LEN_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // SAFETY: `ifreq` is integers, arrays of them and a raw pointer; all-zero bytes are a value of each.
    let mut request = unsafe { std::mem::zeroed::<libc::ifreq>() };
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    Ok(request)
}

/// The interface's MTU in bytes.
///
/// # Errors
/// `ENODEV` when there is no such interface in this network namespace.
pub fn mtu(interface: &str) -> io::Result<u32> {
    let socket = request_socket()?;
    let mut request = request(interface)?;
    let argument = (&raw mut request).cast::<c_void>();
    // SAFETY: SIOCGIFMTU reads and writes one `ifreq`, which `argument` points to and which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, argument) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled `ifru_mtu`, and every bit pattern is an integer.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    u32::try_from(mtu)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the kernel named a negative MTU"))
}

/// Sets the interface's MTU in bytes.
///
/// # Errors
/// `EINVAL` when the driver rejects it, `EPERM` without `CAP_NET_ADMIN`, `ENODEV` without such an interface.
pub fn set_mtu(interface: &str, mtu: u32) -> io::Result<()> {
    let socket = request_socket()?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_mtu = i32::try_from(mtu).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let argument = (&raw mut request).cast::<c_void>();
    // SAFETY: SIOCSIFMTU reads one `ifreq`, which `argument` points to and which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU as _, argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the interface is set up (`IFF_UP`).
///
/// # Errors
/// `ENODEV` when there is no such interface in this network namespace.
pub fn is_up(interface: &str) -> io::Result<bool> {
    Ok(flags(&request_socket()?, interface)? & UP != 0)
}

/// Sets the interface up or down; its other flags are unchanged.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN`, `ENODEV` without such an interface, and errors of the driver when it is opened.
pub fn set_up(interface: &str, up: bool) -> io::Result<()> {
    set_flag(interface, UP, up)
}

/// Gives the interface another name.
///
/// # Errors
/// `EEXIST` when another one has that name, `EBUSY` on a kernel that renames no interface that is up, `EPERM` without `CAP_NET_ADMIN`,
/// `ENODEV` without such an interface.
pub fn rename(interface: &str, name: &str) -> io::Result<()> {
    let socket = request_socket()?;
    let new = request(name)?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_newname = new.ifr_name;
    let argument = (&raw mut request).cast::<c_void>();
    // SAFETY: SIOCSIFNAME reads one `ifreq`, which `argument` points to and which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFNAME as _, argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether promiscuous mode is set by the flag (`IFF_PROMISC`); requests of packet sockets do not count.
///
/// # Errors
/// `ENODEV` when there is no such interface in this network namespace.
pub fn is_promiscuous(interface: &str) -> io::Result<bool> {
    Ok(flags(&request_socket()?, interface)? & PROMISCUOUS != 0)
}

/// Sets or clears that flag; other flags are unchanged.
///
/// # Errors
/// As [`set_up`].
pub fn set_promiscuous(interface: &str, promiscuous: bool) -> io::Result<()> {
    set_flag(interface, PROMISCUOUS, promiscuous)
}

fn set_flag(interface: &str, flag: libc::c_short, set: bool) -> io::Result<()> {
    let socket = request_socket()?;
    let now = flags(&socket, interface)?;
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_flags = if set { now | flag } else { now & !flag };
    let argument = (&raw mut request).cast::<c_void>();
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which `argument` points to and which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, argument) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn flags(socket: &OwnedFd, interface: &str) -> io::Result<libc::c_short> {
    let mut request = request(interface)?;
    let argument = (&raw mut request).cast::<c_void>();
    // SAFETY: SIOCGIFFLAGS reads and writes one `ifreq`, which `argument` points to and which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, argument) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel filled `ifru_flags`, and every bit pattern is an integer.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_mtu_and_a_missing_interface_has_none() {
        assert!(mtu("lo").unwrap() >= 1280);
        assert_eq!(mtu("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn missing_interface_has_no_state() {
        assert_eq!(is_up("no-such-link").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        assert_eq!(set_up("no-such-link", false).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        // Without the capability the kernel does not look for it.
        let refused = rename("no-such-link", "other").unwrap_err().raw_os_error();
        assert!(matches!(refused, Some(libc::ENODEV | libc::EPERM)), "{refused:?}");
    }

    #[test]
    fn too_long_name_is_rejected() {
        for bad in ["", "sixteen-bytes-xx", "a\0b"] {
            assert_eq!(mtu(bad).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bad:?}");
        }
    }

    #[test]
    fn mtu_beyond_a_signed_integer_is_rejected_and_not_wrapped() {
        assert_eq!(set_mtu("lo", u32::MAX).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }
}
