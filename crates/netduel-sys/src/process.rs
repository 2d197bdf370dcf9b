//! Processes: parent-death signal, signals as a descriptor, reaping, and starting a program inside other namespaces.
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::clock;
use crate::namespace::{self, Kind};

/// Makes the kernel kill the calling process when the thread that started it ends. A change of credentials (exec of a
/// privileged file, entering a user namespace) clears the setting, so call it after those.
///
/// # Errors
/// None with the signal used here; returned for the caller to report.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Signals that are read from a descriptor instead of being delivered.
#[derive(Debug)]
pub struct SignalDescriptor(OwnedFd);

impl SignalDescriptor {
    /// Blocks the signals for the calling thread and those it starts, and opens the descriptor. A blocked signal is not
    /// lost even by a process that is pid 1 of its namespace, to which unhandled signals are not delivered.
    ///
    /// # Errors
    /// When no descriptor is available.
    pub fn block_and_open(signals: &[Signal]) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: `set` is writable; sigemptyset initialises all of it and cannot fail.
        unsafe { libc::sigemptyset(set.as_mut_ptr()) };
        for signal in signals {
            // SAFETY: `set` was initialised above, and `Signal` holds valid numbers only.
            unsafe { libc::sigaddset(set.as_mut_ptr(), signal.as_raw()) };
        }
        // SAFETY: `set` is initialised; the old mask is not requested.
        let result = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        // SAFETY: `set` is initialised, and -1 requests a new descriptor.
        let raw = unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened `raw` for us; nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// The next pending signal, if any. Several of one kind may have been merged.
    ///
    /// # Errors
    /// Errors of read(2).
    pub fn next(&self) -> io::Result<Option<i32>> {
        // The record is 128 bytes and begins with the signal's number (include/uapi/linux/signalfd.h).
        let mut record = [0; 128];
        match rustix::io::read(&self.0, &mut record) {
            Ok(128) => Ok(Some(i32::from_ne_bytes([record[0], record[1], record[2], record[3]]))),
            Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for SignalDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A process that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub pid: i32,
    /// Its status as in a shell: the exit code, or 128 + the signal that killed it.
    pub code: i32,
}

/// Reaps one child that has ended, if any; never blocks.
///
/// # Errors
/// Errors of wait(2), except `ECHILD`, which means "none".
pub fn reap() -> io::Result<Option<Ended>> {
    match rustix::process::wait(WaitOptions::NOHANG) {
        Ok(Some((pid, status))) => Ok(Some(Ended { pid: pid.as_raw_nonzero().get(), code: code_of(status) })),
        Ok(None) | Err(rustix::io::Errno::CHILD) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn code_of(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(255)
}

/// While it exists, the process ignores SIGINT and SIGQUIT of the keyboard, as system(3) does: the program in the foreground
/// receives them, too.
#[derive(Debug)]
pub struct KeyboardSignalsIgnored([libc::sighandler_t; 2]);

const KEYBOARD_SIGNALS: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

impl KeyboardSignalsIgnored {
    /// Starts to ignore them.
    pub fn begin() -> Self {
        Self(KEYBOARD_SIGNALS.map(|signal| {
            // SAFETY: SIG_IGN is a valid disposition, and both signals may be ignored.
            unsafe { libc::signal(signal, libc::SIG_IGN) }
        }))
    }
}

impl Drop for KeyboardSignalsIgnored {
    fn drop(&mut self) {
        for (signal, before) in KEYBOARD_SIGNALS.into_iter().zip(self.0) {
            // SAFETY: `before` is the disposition that the kernel returned for this signal.
            unsafe { libc::signal(signal, before) };
        }
    }
}

/// Starts `command` so that the kernel kills it when the calling thread ends for any reason. Call it from a thread that exists as
/// long as the program is needed.
///
/// # Errors
/// When the fork fails, the program cannot be executed, or the caller has already ended.
pub fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    let caller = rustix::process::getpid();
    let bind = move || {
        die_with_parent()?;
        // A child that ended before this line sends no further signal.
        if rustix::process::getppid() == Some(caller) {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
    };
    // SAFETY: between fork and exec `bind` makes system calls only; it takes no lock and no memory.
    unsafe { command.pre_exec(bind) };
    command.spawn()
}

/// Starts `command` inside the given namespaces, which are entered in this order: put a user namespace first. It has its own
/// mount namespace with `/proc` and `/sys` of the given ones, and it is killed when the calling process ends.
///
/// The returned child is an intermediate process: entering a pid namespace affects children only, so it enters the namespaces,
/// starts the program, waits for it and ends with its code (128 + signal when it was killed).
///
/// # Errors
/// When the fork fails, a namespace cannot be entered, or the program cannot be executed.
pub fn spawn_inside(command: &mut Command, namespaces: Vec<(Kind, OwnedFd)>) -> io::Result<Child> {
    let caller = rustix::process::getpid();
    let enter = move || enter_and_fork(&namespaces, caller);
    // SAFETY: between fork and exec `enter` makes system calls only; it takes no lock and no memory.
    unsafe { command.pre_exec(enter) };
    command.spawn()
}

/// Runs in the forked child. Returns in the grandchild only, which then executes the program.
fn enter_and_fork(namespaces: &[(Kind, OwnedFd)], caller: Pid) -> io::Result<()> {
    for (kind, descriptor) in namespaces {
        namespace::enter(*kind, descriptor.as_fd())?;
    }
    // Blocked, so that this process outlives the caller until it has reaped the program. If it were killed, pid 1 of the
    // outer namespace would inherit the program, and the inner namespace could not end until that reaps it.
    let before = block_all()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid() != Some(caller) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // SAFETY: the process has one thread; the child goes on to make system calls only and then executes.
    let pid = unsafe { libc::fork() };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => settle(&before),
        pid => stand_between(pid, caller),
    }
}

/// Blocks all signals that can be blocked. Returns the previous mask.
fn block_all() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `all` is writable; sigfillset initialises all of it and cannot fail.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is initialised and `before` is writable.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::from_raw_os_error(result));
    }
    // SAFETY: zeroed bytes are a valid set (integers only), and the kernel filled it in.
    Ok(unsafe { before.assume_init() })
}

/// Sets the mask of the calling thread again.
fn set_mask(before: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set was written by the kernel; the old mask is not requested.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Does `work` while signals to the calling thread wait. Those that came meanwhile are delivered after it, before this returns. `work` must
/// start no thread: it would never get a signal.
///
/// # Errors
/// Of pthread_sigmask(3); `work` was not done when the signals could not be blocked.
pub fn with_waiting_signals<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let before = block_all()?;
    let result = work();
    set_mask(&before)?;
    Ok(result)
}

/// The preparations of the program.
fn settle(signals_before: &libc::sigset_t) -> io::Result<()> {
    die_with_parent()?;
    set_mask(signals_before)?;
    namespace::unshare(&[Kind::Mount])?;
    crate::mount::make_private()?;
    // A container may refuse: the program then sees the /proc of its caller, which is correct except for the pids.
    let _ = crate::mount::proc();
    if crate::mount::sys().is_err() {
        crate::mount::hide_sys_class_net()?;
    }
    Ok(())
}

/// Waits for the program and ends with its code; kills it when the caller ends. Holds no descriptor open, so that pipes
/// close when the program closes them, and the starter learns whether the program was executed. All signals are blocked.
fn stand_between(program: libc::pid_t, caller: Pid) -> ! {
    // SAFETY: nothing in this process uses a descriptor after this; the owners never run again.
    unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) };
    let mut awaited = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `awaited` is writable; sigemptyset initialises all of it and cannot fail.
    unsafe { libc::sigemptyset(awaited.as_mut_ptr()) };
    for signal in [libc::SIGCHLD, libc::SIGTERM] {
        // SAFETY: `awaited` was initialised above, and both numbers are valid.
        unsafe { libc::sigaddset(awaited.as_mut_ptr(), signal) };
    }
    let code = loop {
        match rustix::process::waitpid(Pid::from_raw(program), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => break code_of(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break 255,
        }
        if rustix::process::getppid() != Some(caller) {
            // SAFETY: the program has not been reaped, so the id is still its own.
            unsafe { libc::kill(program, libc::SIGKILL) };
        }
        let mut signal = 0;
        // SAFETY: `awaited` is initialised and its signals are blocked; `signal` is writable.
        unsafe { libc::sigwait(awaited.as_ptr(), &raw mut signal) };
    };
    // SAFETY: _exit ends the process at once; no destructor of the forked copy may run.
    unsafe { libc::_exit(code) }
}

/// Maximum delay of [`ends_within`] in noticing `is_over`, milliseconds.
const STEP_MS: u64 = 100;

/// Waits until the process behind a pidfd has ended, `patience` at most, or until `is_over` was set. Whether the process has ended.
///
/// # Errors
/// Errors of poll(2).
pub fn ends_within(pidfd: BorrowedFd<'_>, patience: Duration, is_over: &AtomicBool) -> io::Result<bool> {
    let deadline_ns =
        clock::monotonic_ns().saturating_add(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX));
    let mut polled = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    loop {
        let left_ms = deadline_ns.saturating_sub(clock::monotonic_ns()).div_ceil(1_000_000);
        let wait_ms = if is_over.load(Ordering::Relaxed) { 0 } else { left_ms.min(STEP_MS) };
        // SAFETY: `polled` is one writable record, alive for the call.
        let result = unsafe { libc::poll(&raw mut polled, 1, wait_ms as libc::c_int) };
        if result > 0 {
            return Ok(true);
        }
        if result < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(io::Error::last_os_error());
        }
        if wait_ms == 0 {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_to_a_thread_waits_for_its_work_and_is_not_lost() {
        // The kernel discards this one where no handler is set and it is not blocked.
        let send = || {
            // SAFETY: the call has no arguments.
            let this = unsafe { libc::pthread_self() };
            // SAFETY: the call takes no pointer, and the thread is the calling one, so it lives.
            assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGURG) }, 0);
        };
        let waits = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigPnd:")).unwrap();
            u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (libc::SIGURG - 1)) != 0
        };
        send();
        assert!(!waits());
        let waited = with_waiting_signals(|| {
            send();
            waits()
        });
        assert!(waited.unwrap() && !waits());
    }

    #[test]
    fn wait_for_a_process_ends_with_it_or_with_the_patience_or_when_it_is_over() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pidfd =
            rustix::process::pidfd_open(Pid::from_child(&child), rustix::process::PidfdFlags::empty())
                .unwrap();
        let is_over = AtomicBool::new(false);
        let ends = |patience| ends_within(pidfd.as_fd(), patience, &is_over).unwrap();
        assert!(!ends(Duration::from_millis(1)));
        is_over.store(true, Ordering::Relaxed);
        assert!(!ends(Duration::MAX));
        is_over.store(false, Ordering::Relaxed);
        child.kill().unwrap();
        assert!(ends(Duration::MAX));
        child.wait().unwrap();
    }

    #[test]
    fn blocked_signals_are_read_in_place_of_being_delivered() {
        std::thread::spawn(|| {
            let signals = SignalDescriptor::block_and_open(&[Signal::USR1]).unwrap();
            assert_eq!(signals.next().unwrap(), None);
            // SAFETY: sends a signal that this thread has blocked to this thread.
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(signals.next().unwrap(), Some(libc::SIGUSR1));
        })
        .join()
        .unwrap();
    }
}
