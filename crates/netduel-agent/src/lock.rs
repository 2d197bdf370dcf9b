//! One run at a time on a host: a second run's traffic would be part of the first one's result.
//!
//! The lock is an abstract Unix socket (unix(7)). It belongs to the network namespace, which is what must not be shared,
//! and the kernel drops it with the process, however that ends.
use std::io::{Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use netduel_control::agent::{FailureKind, WorkError};
use netduel_model::ids::RunId;
use netduel_sys::clock;

use crate::treatment::with_guard;

/// Name of the lock in the abstract namespace.
const LOCK_NAME: &[u8] = b"netduel-host-lock";
/// How long the holder of a lock may take to name its run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// Until the next look whether a guard has ended, nanoseconds.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// Held until the agent ends: nothing releases it but the end of the process.
pub struct HostLock;

impl HostLock {
    /// Takes the lock of this network namespace; the error names the run that holds it.
    pub fn take(run: &RunId) -> Result<Self, WorkError> {
        let failed = |error: std::io::Error| WorkError {
            kind: FailureKind::Environment,
            message: format!("failed to lock this host for the run: {error}"),
        };
        let address = SocketAddr::from_abstract_name(LOCK_NAME).map_err(failed)?;
        let listener = match UnixListener::bind_addr(&address) {
            Ok(listener) => listener,
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                let holder = holder(&address).unwrap_or_else(|| "another netduel".to_owned());
                return Err(WorkError {
                    kind: FailureKind::Busy,
                    message: format!("this host is in use by {holder}; wait until it ends, or stop it"),
                });
            }
            Err(error) => return Err(failed(error)),
        };
        let line = format!("run {run} (agent process {})", std::process::id());
        std::thread::Builder::new()
            .name("host-lock".to_owned())
            .spawn(move || {
                for mut peer in listener.incoming().flatten() {
                    // The peer may have closed its connection by now.
                    drop(peer.write_all(line.as_bytes()));
                }
            })
            .map_err(failed)?;
        Ok(Self)
    }
}

/// Waits until the guards of earlier runs in this network namespace have restored their settings; the caller has the lock of the host,
/// so the agents of these runs have ended. Whether there was one to wait for.
///
/// # Errors
/// When one still restores settings after `patience`.
pub(crate) fn await_guards(patience: Duration) -> Result<bool, WorkError> {
    let deadline_ns = clock::monotonic_ns().saturating_add(patience.as_nanos() as u64);
    let mut has_waited = false;
    while let Some(journal) = with_guard() {
        if clock::monotonic_ns() >= deadline_ns {
            let message = format!(
                "this host is in use: the guard of a run that was killed still restores its settings ({}); wait until that ends, or see \
                 what it does with `pgrep -af undo-guard`",
                journal.display()
            );
            return Err(WorkError { kind: FailureKind::Busy, message });
        }
        has_waited = true;
        // A guard that ends sends no message to other processes.
        clock::sleep_until(clock::monotonic_ns() + LOOK_AGAIN_NS);
    }
    Ok(has_waited)
}

/// The run that holds the lock, by its own answer.
fn holder(address: &SocketAddr) -> Option<String> {
    let stream = UnixStream::connect_addr(address).ok()?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
    let mut line = String::new();
    stream.take(200).read_to_string(&mut line).ok()?;
    (!line.is_empty()).then_some(line)
}
