//! Which cores a thread may run on (sched_setaffinity(2)).
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Cores that the calling thread may run on, ascending, by the kernel's numbers from 0.
///
/// # Errors
/// When the machine has more cores than the 1024 of the fixed set.
pub fn allowed() -> io::Result<Vec<u16>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).map(|core| core as u16).collect())
}

/// Binds the calling thread to one core.
///
/// # Errors
/// `EINVAL` when the core does not exist, is offline, or the control group of this process does not allow it.
pub fn pin_this_thread(core: u16) -> io::Result<()> {
    let core = usize::from(core);
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_thread_may_run_on_its_core_only() {
        std::thread::spawn(|| {
            let core = *allowed().unwrap().last().unwrap();
            pin_this_thread(core).unwrap();
            assert_eq!(allowed().unwrap(), [core]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn missing_core_is_refused() {
        assert!(pin_this_thread(u16::MAX).is_err());
        assert!(pin_this_thread(1023).is_err());
    }
}
