//! The namespaces of the bench, so that nothing is left behind however it ends.
//!
//! The outer program creates them and starts itself again as pid 1 of the new pid namespace. The inner program ends when its
//! standard input ends, which happens when its starter dies from any signal. When pid 1 ends, the kernel kills every process of
//! the namespace, and removes the unnamed network namespaces with the last process.
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use netduel_sys::namespace::{self, Kind};
use netduel_sys::{mount, usage};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// First argument of the inner program.
pub const WORD: &str = "--inside";

/// Creates the namespaces, starts this program in them with the arguments `words`, and waits for it. With `lifeline` it ends when
/// standard input ends.
pub fn enter(words: &[String], lifeline: bool) -> Result<ExitCode> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if !user.is_root() {
        namespace::unshare(&[Kind::User])
            .context("failed to make a user namespace (be root, or allow it: user_namespaces(7))")?;
        namespace::map_to_root(user.as_raw(), group.as_raw())
            .context("failed to become root of the user namespace")?;
    }
    namespace::unshare(&[Kind::Mount, Kind::Pid, Kind::Net])
        .context("failed to make mount, pid and network namespaces")?;
    let program = std::env::current_exe().context("failed to find this program")?;
    let mut inner = Command::new(program)
        .arg(WORD)
        .args(words)
        .stdin(Stdio::piped())
        .spawn()
        .context("failed to start this program in its namespaces")?;
    watch(&mut inner, lifeline)
}

/// Waits for the inner program. Returning earlier closes its lifeline.
fn watch(inner: &mut Child, lifeline: bool) -> Result<ExitCode> {
    let pidfd = pidfd_open(Pid::from_child(inner), PidfdFlags::empty())
        .context("failed to open the process in the namespaces")?;
    let input = std::io::stdin();
    loop {
        let mut polled = vec![PollFd::new(&pidfd, PollFlags::IN)];
        if lifeline {
            polled.push(PollFd::from_borrowed_fd(input.as_fd(), PollFlags::IN));
        }
        match poll(&mut polled, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for the process in the namespaces"),
        }
        if polled.get(1).is_some_and(|input| !input.revents().is_empty()) && ends(input.lock()) {
            return Ok(ExitCode::FAILURE);
        }
        let ended = usage::of_ended_child(inner).context("failed to take the process in the namespaces")?;
        if let Some((status, _)) = ended {
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
}

/// Whether a readable input is at its end; other input is ignored.
fn ends(mut input: impl Read) -> bool {
    !matches!(input.read(&mut [0; 256]), Ok(length) if length > 0)
}

/// In the inner program: ends with its starter. [`mount_proc`] mounts the `/proc` of its own pid namespace later, when the files
/// of the machine's `/proc` are open.
pub fn settle() -> Result<()> {
    std::thread::Builder::new()
        .name("lifeline".to_owned())
        .spawn(|| {
            while !ends(std::io::stdin().lock()) {}
            std::process::exit(1);
        })
        .context("failed to start the thread that watches the starter")?;
    mount::make_private().context("failed to make the mounts private")
}

/// Mounts the `/proc` of this pid namespace, in which the ids of children are valid.
pub fn mount_proc() -> Result<()> {
    mount::proc().context("failed to mount /proc (a container that masks parts of it does not allow this)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_input_is_detected() {
        assert!(!ends(&b"x"[..]));
        assert!(ends(&b""[..]));
    }
}
