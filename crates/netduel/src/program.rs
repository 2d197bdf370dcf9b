//! This program itself: where its file is, and what it calls itself.
use std::path::PathBuf;

/// The file of the running program, to start agents and keepers of the very same version.
pub fn path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Name and version, for example `netduel 0.1.0`.
pub fn name_and_version() -> String {
    format!("netduel {}", env!("CARGO_PKG_VERSION"))
}
