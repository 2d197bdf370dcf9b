//! What this process has used of the machine (getrusage(2)).
use std::io;
use std::mem::MaybeUninit;

/// A process's use since it started.
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

/// The use of the calling process, all its threads.
///
/// # Errors
/// Does not happen with the arguments used here; kept for the caller to report.
pub fn of_this_process() -> io::Result<Usage> {
    let mut raw = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `raw` is a writable `rusage`, alive for the call; the kernel writes no more than its size.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, raw.as_mut_ptr()) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed bytes are a valid `rusage` (integers only), and the kernel filled them in.
    let raw = unsafe { raw.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    Ok(Usage {
        user_ns: ns(raw.ru_utime),
        system_ns: ns(raw.ru_stime),
        voluntary_switches: raw.ru_nvcsw as u64,
        involuntary_switches: raw.ru_nivcsw as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_grows_with_work() {
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
