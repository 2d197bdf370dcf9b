//! The first stage: outside of the lab's pid namespace, so that another process can wait for its end. Holds no part of the lab.
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;

use netduel_sys::descriptor_pass;
use netduel_sys::namespace::{self, Kind};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{Stage, command};
use crate::directory;
use crate::error::LabError;
use crate::protocol::{Lifetime, Task};

/// Byte to the init: the lab is in a user namespace of its own.
pub(super) const WITH_USER: &[u8] = b"user";
/// Byte to the init: the lab has no user namespace of its own.
pub(super) const WITHOUT_USER: &[u8] = b"root";

pub(super) fn run(task: &Task) -> Result<i32, LabError> {
    // The name is bound first, in the network namespace of the users: it would not be visible from the lab's own.
    let listener = directory::claim(&task.name)?;
    // A lab that runs for weeks must not keep a file system busy.
    rustix::process::chdir("/").map_err(LabError::local("change to /"))?;
    let user = make_namespaces()?;
    let (guard_end, init_end) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(LabError::local("make a socket pair for the keeper"))?;
    let mut init = command(task, Stage::Init)?
        .stdin(Stdio::from(init_end))
        .spawn()
        .map_err(LabError::local(format!("start the keeper's second stage {}", task.program.display())))?;
    hand_over(&guard_end, listener, task.lifetime, user)?;
    let status = init.wait().map_err(LabError::local("wait for the keeper's second stage"))?;
    Ok(status.code().unwrap_or(1))
}

/// Creates the pid namespace, and a user namespace if privileges are missing.
fn make_namespaces() -> Result<bool, LabError> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // Root without CAP_SYS_ADMIN, as in most containers, fails here and continues like an ordinary user.
    if namespace::unshare(&[Kind::Pid]).is_ok() {
        return Ok(false);
    }
    namespace::unshare(&[Kind::User, Kind::Pid])
        .map_err(LabError::namespaces("unshare user and pid namespaces"))?;
    namespace::map_to_root(uid, gid).map_err(LabError::namespaces("map this user to the lab's root"))?;
    Ok(true)
}

/// Passes the name and the lifeline to the init, which is then their only owner.
fn hand_over(guard_end: &OwnedFd, listener: OwnedFd, lifetime: Lifetime, user: bool) -> Result<(), LabError> {
    let input = std::io::stdin();
    let lifeline: Option<BorrowedFd<'_>> = (lifetime == Lifetime::Attached).then(|| input.as_fd());
    let descriptors: Vec<BorrowedFd<'_>> = std::iter::once(listener.as_fd()).chain(lifeline).collect();
    let text = if user { WITH_USER } else { WITHOUT_USER };
    descriptor_pass::send(guard_end.as_fd(), text, &descriptors)
        .map_err(LabError::local("pass the lab's name to the keeper's second stage"))?;
    drop(listener);
    Ok(())
}
