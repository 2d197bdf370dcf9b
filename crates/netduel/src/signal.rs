//! Ctrl-C, SIGTERM and SIGHUP: the first asks a command to stop cleanly, the second ends the program at once.
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag::register_conditional_shutdown;

use crate::exit::{Failure, Kind};

/// Interval of the checks for a signal during a wait.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

/// Exit code of a program that the second signal ends.
const CODE: i32 = Kind::Interrupted as i32;

static INTERRUPTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// The handlers that end the program at the second signal; none when [`before_end`] has replaced them.
static ENDING: Mutex<Vec<SigId>> = Mutex::new(Vec::new());

/// The signals that stop a command. A SIGHUP ignored at the start stays ignored, as nohup(1) requires.
fn stopping() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hangs_up = !is_ignored(&status, SIGHUP);
    [SIGINT, SIGTERM].into_iter().chain(hangs_up.then_some(SIGHUP))
}

/// Whether a process ignores a signal (`SigIgn` in proc_pid_status(5), a mask in which bit 0 is signal 1).
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

/// Lets a write beyond the limit of file sizes (`ulimit -f`) fail with an error, which names the file, where the kernel's signal would end
/// the program. The handler does nothing: unlike an ignored signal it does not pass to the programs that this one starts.
pub fn outlive_file_limit() -> Result<(), Failure> {
    let registered = signal_hook::flag::register(SIGXFSZ, Arc::default());
    registered.map(drop).map_err(|error| unheard("SIGXFSZ", error))
}

/// The handler of a signal could not be installed, or its thread not be started.
pub fn unheard(signals: &str, error: io::Error) -> Failure {
    Failure::caused(Kind::Environment, format!("failed to wait for {signals}: {error}"), error).remedy(
        "raise the limits of threads (`ulimit -u`), of open files (`ulimit -n`) and of memory (`ulimit -v`)",
    )
}

/// A flag that becomes true at the first of these signals. The second ends the program at once: agents and labs detect the end of
/// their coordinator, undo their changes and end.
pub fn interrupted() -> io::Result<Arc<AtomicBool>> {
    if let Some(flag) = INTERRUPTED.get() {
        return Ok(flag.clone());
    }
    let flag = Arc::new(AtomicBool::new(false));
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    // A signal between the system call of a registration and its end, or between two of them, would be lost.
    let registered = netduel_sys::process::with_waiting_signals(|| {
        stopping().try_for_each(|signal| {
            ending.push(register_conditional_shutdown(signal, CODE, flag.clone())?);
            signal_hook::flag::register(signal, flag.clone()).map(drop)
        })
    });
    registered??;
    Ok(INTERRUPTED.get_or_init(|| flag).clone())
}

/// From now on a thread acts on the second of these signals, in place of a handler, which may do little: it calls `act` and ends the program.
/// The third ends it at once, where `act` waits. Later calls change nothing.
pub fn before_end(act: fn()) -> io::Result<()> {
    let flag = interrupted()?;
    let mut ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    if ending.is_empty() {
        return Ok(());
    }
    let (mut receiver, mut sender) = UnixStream::pair()?;
    let is_interrupted = flag.clone();
    std::thread::Builder::new().name("second signal".to_owned()).spawn(move || {
        // A byte for each signal. The other end is closed when the handlers could not be replaced.
        if receiver.read_exact(&mut [0; 2]).is_ok() {
            for signal in stopping() {
                // On error the third signal does nothing.
                drop(register_conditional_shutdown(signal, CODE, is_interrupted.clone()));
            }
            act();
            signal_hook::low_level::exit(CODE);
        }
    })?;
    let replaced = netduel_sys::process::with_waiting_signals(|| {
        if flag.load(Ordering::Relaxed) {
            // The first one came before.
            sender.write_all(&[0])?;
        }
        for signal in stopping() {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        for handler in ending.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
        io::Result::Ok(())
    });
    replaced?
}

/// Calls `act` at the first of these signals, in a thread that sleeps until then. The second ends the program at once, as with
/// [`interrupted`].
pub fn on_interrupt(act: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // Before the handlers of `interrupted`, which change which signals are ignored.
    let signals: Vec<i32> = stopping().collect();
    let flag = interrupted()?;
    let (mut receiver, sender) = UnixStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        // A signal before the socket pair was registered has set the flag only. The pair itself cannot fail: its other end lives as
        // long as the program.
        if flag.load(Ordering::Relaxed) || receiver.read_exact(&mut [0]).is_ok() {
            act();
        }
    })?;
    Ok(())
}

/// The result of `work`, which may wait for ever; `None` after the first of these signals. Without the handlers of [`interrupted`] the signal
/// ends the program.
pub fn unless_interrupted<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Option<T>> {
    let Some(flag) = INTERRUPTED.get() else { return Ok(Some(work())) };
    let (done, result) = channel();
    std::thread::Builder::new().spawn(move || {
        // Without a receiver the result is not needed.
        drop(done.send(work()));
    })?;
    while !flag.load(Ordering::Relaxed) {
        match result.recv_timeout(INTERRUPT_INTERVAL) {
            Ok(result) => return Ok(Some(result)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("the work panicked"),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, SIGHUP) && !is_ignored(status, SIGINT) && !is_ignored("", SIGHUP));
    }
}
