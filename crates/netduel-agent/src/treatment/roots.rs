//! Where the kernel's files are. Only tests put them elsewhere.
use std::path::PathBuf;

/// The folders in which treatments look for the kernel's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc`.
    pub proc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { sys: "/sys".into(), proc: "/proc".into() }
    }
}
