//! The limit of open descriptors of this process (RLIMIT_NOFILE, getrlimit(2)).
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, which needs no privilege, and the hard one to `needed` if that is more and permitted
/// (`CAP_SYS_RESOURCE`). Returns the resulting limit; `None` is unlimited.
///
/// # Errors
/// None while the soft limit is not above the hard one.
pub fn raise(needed: u64) -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        let wanted = Rlimit { current: Some(needed), maximum: Some(needed) };
        if setrlimit(Resource::Nofile, wanted).is_ok() {
            return Ok(Some(needed));
        }
    }
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum)
}

/// Number of open descriptors of this process.
///
/// # Errors
/// Without /proc.
pub fn open() -> io::Result<u64> {
    // The directory that is read is one of them.
    Ok(std::fs::read_dir("/proc/self/fd")?.count().saturating_sub(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_is_raised_to_the_hard_limit() {
        let limit = raise(0).unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }

    #[test]
    fn open_descriptors_are_counted() {
        let files: Vec<_> = (0..50).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        assert!(open().unwrap() >= files.len() as u64 + 3);
    }
}
