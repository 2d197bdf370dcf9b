//! How many descriptors this process may have open (RLIMIT_NOFILE, getrlimit(2)).
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, which needs no privilege, and returns the limit that then holds; `None` is
/// without limit.
///
/// # Errors
/// Does not happen when the soft limit was not above the hard one.
pub fn raise() -> io::Result<Option<u64>> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    }
    Ok(limit.maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise().unwrap();
        assert_eq!(getrlimit(Resource::Nofile).current, limit);
    }
}
