//! Resource usage of this process and its children (getrusage(2), wait4(2)).
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

/// Resource usage of a process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// User time, nanoseconds.
    pub user_ns: u64,
    /// System time, nanoseconds.
    pub system_ns: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// The usage of all threads of the calling process.
///
/// # Errors
/// None with the arguments used here; returned for the caller to report.
pub fn of_this_process() -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` is a writable `rusage`, alive for the call; the kernel writes no more than its size.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, raw.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed bytes are a valid `rusage` (integers only), and the kernel filled them in.
    Ok(usage(&unsafe { raw.assume_init() }))
}

/// Time on a core and time runnable but not scheduled of the calling thread, nanoseconds; `None` on a kernel without
/// `CONFIG_SCHED_INFO`.
pub fn run_and_wait_of_this_thread() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// CPU time of all threads of another process since its start, nanoseconds (clock_getcpuclockid(3)): exact, where `/proc/PID/stat` counts
/// in ticks of 10 ms. `None` when there is no such process.
pub fn cpu_ns_of(pid: u32) -> Option<u64> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let mut id = 0;
    // SAFETY: `id` is a writable `clockid_t`, alive for the call.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut id) } != 0 {
        return None;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a writable `timespec`, alive for the call. The clock of a process that has ended is an error, not another memory.
    if unsafe { libc::clock_gettime(id, &raw mut time) } != 0 {
        return None;
    }
    // A CPU time is never negative, and 2^63 ns are 292 years.
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Reaps `child` when it has ended, and returns its status and usage: of all its threads, and of those children that it waited for.
/// `None` while it runs. Afterwards its id may belong to another process: do not signal it.
///
/// # Errors
/// `ECHILD` when the child was reaped before.
pub fn of_ended_child(child: &mut Child) -> io::Result<Option<(ExitStatus, Usage)>> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    // SAFETY: both pointers are to writable memory of the right types, alive for the call; the id is that of a child, which
    // `&mut Child` excludes a second wait.
    let result =
        unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, libc::WNOHANG, raw.as_mut_ptr()) };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        // SAFETY: zeroed bytes are a valid `rusage` (integers only), and the kernel filled them in.
        _ => Ok(Some((ExitStatus::from_raw(status), usage(&unsafe { raw.assume_init() })))),
    }
}

fn usage(raw: &libc::rusage) -> Usage {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Usage {
        user_ns: ns(raw.ru_utime),
        system_ns: ns(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        involuntary_switches: raw.ru_nivcsw as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_a_process_is_exact_and_absent_without_one() {
        let before = crate::clock::process_cpu_ns();
        let read = cpu_ns_of(std::process::id()).unwrap();
        let after = crate::clock::process_cpu_ns();
        assert!(before <= read && read <= after, "{before} {read} {after}");
        assert_eq!(cpu_ns_of(0), None);
        assert_eq!(cpu_ns_of(u32::MAX), None);
    }

    #[test]
    fn ended_child_reports_its_usage_and_a_running_one_does_not() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read line; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(of_ended_child(&mut child).unwrap().is_none());
        drop(child.stdin.take());
        let pid = rustix::process::Pid::from_child(&child);
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let pidfd = std::os::fd::AsFd::as_fd(&pidfd);
        assert!(crate::process::ends_within(pidfd, std::time::Duration::MAX, &is_over).unwrap());
        let (status, used) = of_ended_child(&mut child).unwrap().unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(used.user_ns + used.system_ns > 0, "{used:?}");
        assert!(of_ended_child(&mut child).is_err(), "it can be taken once");
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = of_this_process().unwrap();
        let mut sum = 0u64;
        while of_this_process().unwrap().user_ns + of_this_process().unwrap().system_ns
            == before.user_ns + before.system_ns
        {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(of_this_process().unwrap().user_ns >= before.user_ns);
    }
}
