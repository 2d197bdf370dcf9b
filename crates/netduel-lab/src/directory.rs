//! The registry of running labs: the kernel's table of abstract Unix sockets. A name exists exactly as long as its keeper, so no
//! stale file is possible.
use std::os::fd::{AsFd, OwnedFd};

use netduel_model::ids::LabName;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::error::{Errno, LabError};

/// Maximum number of pending connections.
const BACKLOG: i32 = 64;
/// `__SO_ACCEPTCON`: the flag of a listening socket in `/proc/net/unix`.
const LISTENING: &str = "00010000";

fn prefix() -> String {
    format!("netduel-lab-{}-", rustix::process::geteuid().as_raw())
}

fn address(name: &LabName) -> std::io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new_abstract_name(format!("{}{name}", prefix()).as_bytes())?)
}

fn socket() -> std::io::Result<OwnedFd> {
    let kind = SocketType::SEQPACKET;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?)
}

/// Binds a name and listens on it in the calling thread's network namespace.
pub(crate) fn claim(name: &LabName) -> Result<OwnedFd, LabError> {
    let failed = |error: std::io::Error| match Errno::from(error) {
        Errno::ADDRINUSE => LabError::NameTaken { name: name.clone() },
        errno => LabError::Local { operation: format!("reserve the name of lab {name}"), errno },
    };
    let socket = socket().map_err(failed)?;
    let address = address(name).map_err(failed)?;
    rustix::net::bind(&socket, &address).map_err(|error| failed(error.into()))?;
    rustix::net::listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
    Ok(socket)
}

/// Connects to the keeper of a lab of this user. Returns the connection and the keeper's process id.
pub(crate) fn connect(name: &LabName) -> Result<(OwnedFd, i32), LabError> {
    let operation = || format!("connect to lab {name}");
    let socket = socket().map_err(LabError::local(operation()))?;
    let address = address(name).map_err(LabError::local(operation()))?;
    rustix::net::connect(&socket, &address).map_err(|error| {
        if error == rustix::io::Errno::CONNREFUSED {
            LabError::NoSuchLab { name: name.clone() }
        } else {
            LabError::Local { operation: operation(), errno: Errno(error.raw_os_error()) }
        }
    })?;
    let peer = netduel_sys::descriptor_pass::peer(socket.as_fd()).map_err(LabError::local(operation()))?;
    // Any user may bind any abstract name, so the owner of the socket is checked.
    if peer.uid != rustix::process::geteuid().as_raw() {
        return Err(LabError::Foreign { name: name.clone(), uid: peer.uid });
    }
    let pid = peer.pid.ok_or_else(|| LabError::Local { operation: operation(), errno: Errno::PERM })?;
    Ok((socket, pid))
}

/// The running labs of this user, sorted by name.
///
/// # Errors
/// [`LabError::Local`] when `/proc/net/unix` cannot be read.
pub fn list() -> Result<Vec<LabName>, LabError> {
    let table = std::fs::read_to_string("/proc/net/unix").map_err(LabError::local("read /proc/net/unix"))?;
    Ok(names(&table, &prefix()))
}

fn names(table: &str, prefix: &str) -> Vec<LabName> {
    let mut found: Vec<LabName> = table
        .lines()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let name = columns.get(7)?.strip_prefix('@')?.strip_prefix(prefix)?;
            (columns.get(3) == Some(&LISTENING)).then(|| LabName::new(name).ok())?
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_of_the_user_are_listed() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0005 01 1183 @netduel-lab-1000-two\n\
            0000: 00000003 00000000 00000000 0005 03 1184 @netduel-lab-1000-two\n\
            0000: 00000002 00000000 00010000 0005 01 1185 @netduel-lab-1000-one\n\
            0000: 00000002 00000000 00010000 0005 01 1186 @netduel-lab-10001-x\n\
            0000: 00000002 00000000 00010000 0001 01 1187 /run/netduel-lab-1000-file\n\
            0000: 00000002 00000000 00000000 0005 01 1188 @netduel-lab-1000-bound-only\n";
        let found: Vec<String> = names(table, "netduel-lab-1000-").iter().map(ToString::to_string).collect();
        assert_eq!(found, ["one", "two"]);
    }
}
