//! One run at a time on a host: a second run's traffic would be part of the first one's result.
//!
//! The lock belongs to the network namespace, which is what must not be shared, and the kernel drops it with the process, however that
//! ends. It has two parts. A byte of a file that no other user can open excludes the runs of this user. An abstract Unix socket
//! (unix(7)) excludes those of root, and those in another mount namespace. Any user may bind its name, so that of another user is
//! ignored: it must not block every run of this host.
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_model::ids::RunId;
use netduel_sys::namespace::network_cookie;
use netduel_sys::{clock, descriptor_pass, range_lock};
use rustix::fs::{Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use crate::treatment::{folders, in_use, own_folder};

/// Name of the lock in the abstract namespace.
const LOCK_NAME: &[u8] = b"netduel-host-lock";
/// The file of the locks: each network namespace has the byte at its cookie.
const LOCK_FILE: &str = "host-locks";
/// A holder that does not name its run.
const ANONYMOUS: &str = "another netduel";
/// How long the holder of a lock may take to name its run. It is of this user or root, and on a busy host it waits for a core.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process that is ending may keep a part of the lock, nanoseconds. It waits for a core as well.
const ENDING_NS: u64 = 5_000_000_000;
/// Between two attempts to answer when there is no descriptor for a peer, nanoseconds.
const REFUSED_PAUSE_NS: u64 = 200_000_000;
/// Until the next look whether a guard has ended, nanoseconds.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// Held until the agent ends: nothing releases it but the end of the process.
pub struct HostLock {
    /// `None` where this host has no folder for it.
    _byte: Option<OwnedFd>,
}

/// Who has bound the name of the lock.
enum Holder {
    /// A run of this user or of root, in its own words.
    Trusted(String),
    /// Another user, or a socket that is gone by now.
    Other,
}

impl HostLock {
    /// Takes the lock of this network namespace; the error names the run that holds it.
    ///
    /// A lost connection ends an agent, which then undoes its changes, while its run starts another one: an earlier agent of the same run is
    /// awaited until `deadline_ns`.
    pub fn take(run: &RunId, deadline_ns: u64) -> Result<Self, WorkError> {
        let mut was_own = false;
        // An agent that is ending may have lost its name before its byte.
        let mut nameless_ns = deadline_ns.min(clock::monotonic_ns().saturating_add(ENDING_NS));
        loop {
            let holder = match Self::try_take(run, deadline_ns)? {
                Tried::Locked(lock) => return Ok(lock),
                Tried::Taken(holder) => holder,
            };
            if holder.starts_with(&words_of(run)) {
                was_own = true;
            } else if holder != ANONYMOUS {
                return Err(busy(&holder));
            }
            if was_own {
                nameless_ns = deadline_ns;
            }
            if clock::monotonic_ns() >= nameless_ns {
                return Err(busy(&holder));
            }
            // The kernel drops the lock with its process, and sends no message to others.
            clock::sleep_until(clock::monotonic_ns() + LOOK_AGAIN_NS);
        }
    }

    fn try_take(run: &RunId, deadline_ns: u64) -> Result<Tried, WorkError> {
        let failed = |error: io::Error| WorkError {
            kind: FailureKind::Environment,
            message: format!("failed to lock this host for the run: {error}"),
        };
        let byte = match lock_byte().map_err(failed)? {
            Byte::Locked(byte) => Some(byte),
            Byte::Unavailable => None,
            Byte::Taken => {
                let Holder::Trusted(holder) = holder(deadline_ns).map_err(failed)? else {
                    return Ok(Tried::Taken(ANONYMOUS.to_owned()));
                };
                return Ok(Tried::Taken(holder));
            }
        };
        let address = SocketAddr::from_abstract_name(LOCK_NAME).map_err(failed)?;
        let listener = match UnixListener::bind_addr(&address) {
            Ok(listener) => listener,
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return match holder(deadline_ns).map_err(failed)? {
                    Holder::Trusted(holder) => Ok(Tried::Taken(holder)),
                    Holder::Other => Ok(Tried::Locked(Self { _byte: byte })),
                };
            }
            Err(error) => return Err(failed(error)),
        };
        let line = format!("{}{})", words_of(run), std::process::id());
        std::thread::Builder::new()
            .name("host-lock".to_owned())
            .spawn(move || {
                answer(listener.incoming(), line.as_bytes(), || {
                    clock::sleep_until(clock::monotonic_ns() + REFUSED_PAUSE_NS);
                });
            })
            .map_err(failed)?;
        Ok(Tried::Locked(Self { _byte: byte }))
    }
}

/// Writes to each peer which run has the lock. Without a descriptor for a peer, its connection waits and the next attempt fails as this one
/// did: there is a pause in between, because trials run on this host.
fn answer<P: io::Write>(peers: impl Iterator<Item = io::Result<P>>, line: &[u8], pause: impl Fn()) {
    for peer in peers {
        match peer {
            // The peer may have closed its connection by now.
            Ok(mut peer) => drop(peer.write_all(line)),
            Err(_) => pause(),
        }
    }
}

/// What came of an attempt.
enum Tried {
    Locked(HostLock),
    /// By this holder, in its own words.
    Taken(String),
}

/// The beginning of what an agent of a run answers; the number of its process follows.
fn words_of(run: &RunId) -> String {
    format!("run {run} (agent process ")
}

fn busy(holder: &str) -> WorkError {
    WorkError {
        kind: FailureKind::Busy,
        message: format!("this host is in use by {holder}; wait until it ends, or stop it"),
    }
}

/// The byte of this network namespace.
enum Byte {
    Locked(OwnedFd),
    /// Another run of this user has it.
    Taken,
    /// This host has no folder that only this user can write, no space in it, or no cookies of namespaces (before Linux 5.14).
    Unavailable,
}

fn lock_byte() -> io::Result<Byte> {
    let folder = folders().iter().find_map(|path| own_folder(path, true).ok());
    let (Some(folder), Ok(cookie)) = (folder, network_cookie()) else { return Ok(Byte::Unavailable) };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(&folder, LOCK_FILE, flags, Mode::RUSR | Mode::WUSR) else {
        return Ok(Byte::Unavailable);
    };
    // Cookies are counted from 1, so the highest bit is free.
    let is_locked = range_lock::try_lock(file.as_fd(), (cookie & i64::MAX as u64).cast_signed())?;
    Ok(if is_locked { Byte::Locked(file) } else { Byte::Taken })
}

/// Waits until the guards of earlier runs in this network namespace have restored their settings; the caller has the lock of the host,
/// so the agents of these runs have ended or are about to.
///
/// # Errors
/// When one still restores settings at `deadline_ns`.
pub(crate) fn await_guards(deadline_ns: u64) -> Result<(), WorkError> {
    while let Some(journal) = in_use() {
        if clock::monotonic_ns() >= deadline_ns {
            let message = format!(
                "this host is in use: the guard of a run that was killed still restores its settings, or its agent still has them changed ({}); \
                 wait until that ends, or see what it does with `pgrep -af 'netduel agent|undo-guard'`",
                journal.display()
            );
            return Err(WorkError { kind: FailureKind::Busy, message });
        }
        // A guard that ends sends no message to other processes.
        clock::sleep_until(clock::monotonic_ns() + LOOK_AGAIN_NS);
    }
    Ok(())
}

/// The run that has bound the name of the lock, whose answer is awaited until `deadline_ns`. The kernel knows whose it is, before anything is
/// read from it.
fn holder(deadline_ns: u64) -> io::Result<Holder> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Without waiting: another user may let its queue of connections fill.
    if rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(LOCK_NAME)?).is_err() {
        return Ok(Holder::Other);
    }
    let peer = descriptor_pass::peer(socket.as_fd())?;
    if peer.uid != geteuid().as_raw() && peer.uid != 0 {
        return Ok(Holder::Other);
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(answer_timeout(deadline_ns.saturating_sub(clock::monotonic_ns()))))?;
    let mut line = String::new();
    let is_answered = stream.take(200).read_to_string(&mut line).is_ok() && !line.is_empty();
    Ok(Holder::Trusted(if is_answered { line } else { ANONYMOUS.to_owned() }))
}

/// How long the holder of a lock is waited for when this time is left, nanoseconds: the caller has the answer before its coordinator gives
/// up.
fn answer_timeout(left_ns: u64) -> Duration {
    // The kernel takes no time of zero.
    Duration::from_nanos(left_ns).clamp(Duration::from_millis(1), ANSWER_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn thread_of_the_lock_pauses_while_there_is_no_descriptor_and_answers_the_next_peer() {
        let pauses = Cell::new(0);
        let mut answered = Vec::new();
        {
            let refused = (0..3).map(|_| Err(io::ErrorKind::Other.into()));
            let peers = refused.chain([Ok(&mut answered)]);
            answer(peers, b"run x", || pauses.set(pauses.get() + 1));
        }
        assert_eq!((pauses.get(), answered.as_slice()), (3, &b"run x"[..]));
    }

    #[test]
    fn holder_of_a_lock_is_not_waited_for_beyond_the_deadline() {
        assert_eq!(answer_timeout(60_000_000_000), ANSWER_TIMEOUT);
        assert_eq!(answer_timeout(7_000_000), Duration::from_millis(7));
        assert_eq!(answer_timeout(0), Duration::from_millis(1));
    }
}
