//! The registry of running labs: the kernel's table of abstract Unix sockets. A name exists exactly as long as its keeper, so no
//! stale file is possible.
//!
//! Any user may bind any abstract name. A socket therefore has a random part in its name, which no other user can reserve in advance, and
//! a lab is one of this user only if the kernel says so of its socket (SO_PEERCRED, unix(7)). Sockets of others are ignored.
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use netduel_model::ids::LabName;
use netduel_sys::random;
use rustix::io::{Errno as Io, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::error::{Errno, LabError};

/// Maximum number of pending connections.
const BACKLOG: i32 = 64;
/// `__SO_ACCEPTCON`: the flag of a listening socket in `/proc/net/unix`.
const LISTENING: &str = "00010000";
/// Maximum number of sockets with a full queue that are waited for, and the time for each.
const BUSY_MAX: usize = 8;
const BUSY_PATIENCE: Duration = Duration::from_secs(1);

fn prefix() -> String {
    format!("netduel-lab-{}-", rustix::process::geteuid().as_raw())
}

/// The name of a socket: prefix, random part, name of the lab.
fn socket_name(prefix: &str, random: u64, lab: &LabName) -> String {
    format!("{prefix}{random:016x}-{lab}")
}

/// The lab of a socket.
fn lab_of(socket_name: &str, prefix: &str) -> Option<LabName> {
    let (random, lab) = socket_name.strip_prefix(prefix)?.split_once('-')?;
    (random.len() == 16).then(|| LabName::new(lab).ok())?
}

fn socket() -> rustix::io::Result<OwnedFd> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Reserves the name of a lab for this user and listens on a socket for it in the calling thread's network namespace. Of two processes
/// that do this at the same moment both may fail; two labs with one name never exist.
pub(crate) fn claim(name: &LabName) -> Result<OwnedFd, LabError> {
    let failed = |error: std::io::Error| LabError::Local {
        operation: format!("reserve the name of lab {name}"),
        errno: Errno::from(error),
    };
    let random = u128::from_ne_bytes(random::bytes16().map_err(failed)?);
    let own = socket_name(&prefix(), random as u64, name);
    let socket = socket().map_err(|error| failed(error.into()))?;
    let address = SocketAddrUnix::new_abstract_name(own.as_bytes()).map_err(|error| failed(error.into()))?;
    rustix::net::bind(&socket, &address).map_err(|error| failed(error.into()))?;
    rustix::net::listen(&socket, BACKLOG).map_err(|error| failed(error.into()))?;
    // After its own socket listens: of two processes at least the second one finds the other.
    let others = listening()?.into_iter().filter(|(lab, socket)| lab == name && *socket != own);
    if of_this_user(others.collect()).map_err(failed)?.is_empty() {
        Ok(socket)
    } else {
        Err(LabError::NameTaken { name: name.clone() })
    }
}

/// Connects to the keeper of a lab of this user. Returns the connection and the keeper's process id.
pub(crate) fn connect(name: &LabName) -> Result<(OwnedFd, i32), LabError> {
    let sockets = listening()?.into_iter().filter(|(lab, _)| lab == name);
    let operation = || format!("connect to lab {name}");
    let keepers = of_this_user(sockets.collect()).map_err(LabError::local(operation()))?;
    let keeper = keepers.into_iter().next().ok_or_else(|| LabError::NoSuchLab { name: name.clone() })?;
    let Keeper { connection, pid, .. } = keeper;
    let pid = pid.ok_or_else(|| LabError::Local { operation: operation(), errno: Errno::PERM })?;
    Ok((connection, pid))
}

/// The running labs of this user, sorted by name.
///
/// # Errors
/// [`LabError::Local`] when `/proc/net/unix` cannot be read, or no descriptor is available.
pub fn list() -> Result<Vec<LabName>, LabError> {
    let keepers = of_this_user(listening()?).map_err(LabError::local("find the running labs"))?;
    let mut names: Vec<LabName> = keepers.into_iter().map(|keeper| keeper.name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// A connection to the keeper of a lab of this user.
struct Keeper {
    name: LabName,
    connection: OwnedFd,
    pid: Option<i32>,
}

/// What a socket is.
enum Found {
    Keeper(OwnedFd, Option<i32>),
    /// It belongs to another user, or its owner has ended.
    Other,
    /// Its queue of connections is full.
    Busy,
}

/// The keepers of this user among sockets. Those with a full queue are tried last, and a few of them only: a queue that stays
/// full may be another user's, and a keeper empties its queue at once.
fn of_this_user(sockets: Vec<(LabName, String)>) -> std::io::Result<Vec<Keeper>> {
    let (mut keepers, mut busy) = (Vec::new(), Vec::new());
    for (name, socket) in sockets {
        match find(&socket, None)? {
            Found::Keeper(connection, pid) => keepers.push(Keeper { name, connection, pid }),
            Found::Busy => busy.push((name, socket)),
            Found::Other => {}
        }
    }
    for (name, socket) in busy.into_iter().take(BUSY_MAX) {
        if let Found::Keeper(connection, pid) = find(&socket, Some(BUSY_PATIENCE))? {
            keepers.push(Keeper { name, connection, pid });
        }
    }
    Ok(keepers)
}

/// Connects to a socket, waits at most `patience` for room in its queue, and asks the kernel for its owner.
fn find(socket_name: &str, patience: Option<Duration>) -> rustix::io::Result<Found> {
    let address = SocketAddrUnix::new_abstract_name(socket_name.as_bytes())?;
    let socket = socket()?;
    // unix(7): connect(2) waits for room in the queue, as long as a send would wait.
    ioctl_fionbio(&socket, patience.is_none())?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, patience)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) => {}
        Err(Io::AGAIN) => return Ok(Found::Busy),
        // It is gone by now, or it is of a kind that no keeper has.
        Err(_) => return Ok(Found::Other),
    }
    ioctl_fionbio(&socket, false)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, None)?;
    let Ok(peer) = netduel_sys::descriptor_pass::peer(socket.as_fd()) else { return Ok(Found::Other) };
    let is_own = peer.uid == rustix::process::geteuid().as_raw();
    Ok(if is_own { Found::Keeper(socket, peer.pid) } else { Found::Other })
}

/// The listening sockets with names like those of this user's labs, which any user may have bound.
fn listening() -> Result<Vec<(LabName, String)>, LabError> {
    let table = std::fs::read("/proc/net/unix").map_err(LabError::local("read /proc/net/unix"))?;
    // Any user chooses the bytes of names in it.
    Ok(sockets(&String::from_utf8_lossy(&table), &prefix()))
}

fn sockets(table: &str, prefix: &str) -> Vec<(LabName, String)> {
    table
        .lines()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let socket = columns.get(7)?.strip_prefix('@')?;
            let lab = lab_of(socket, prefix)?;
            (columns.get(3) == Some(&LISTENING)).then(|| (lab, socket.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_listening_sockets_with_names_of_the_user_are_candidates() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000: 00000002 00000000 00010000 0005 01 1183 @netduel-lab-1000-0123456789abcdef-two\n\
            0000: 00000003 00000000 00000000 0005 03 1184 @netduel-lab-1000-0123456789abcdef-two\n\
            0000: 00000002 00000000 00010000 0005 01 1185 @netduel-lab-1000-fedcba9876543210-a-b\n\
            0000: 00000002 00000000 00010000 0005 01 1186 @netduel-lab-10001-0123456789abcdef-x\n\
            0000: 00000002 00000000 00010000 0001 01 1187 /run/netduel-lab-1000-0123456789abcdef-file\n\
            0000: 00000002 00000000 00010000 0005 01 1188 @netduel-lab-1000-one\n\
            0000: 00000002 00000000 00000000 0005 01 1189 @netduel-lab-1000-0123456789abcdef-bound-only\n";
        let found: Vec<String> =
            sockets(table, "netduel-lab-1000-").iter().map(|(lab, _)| lab.to_string()).collect();
        assert_eq!(found, ["two", "a-b"]);
    }
}
