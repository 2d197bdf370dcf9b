//! A folder for one use, which only this user can read. It is removed with everything in it.
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use netduel_sys::clock::{monotonic_ns, sleep_until_or};

/// A process that was killed may still write a file while the folder is removed.
const REMOVALS_MAX: u32 = 20;
const REMOVAL_INTERVAL_NS: u64 = 50_000_000;

/// The folder.
#[derive(Debug)]
pub(super) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// A new empty folder in that of temporary files. Its name cannot be predicted, and an existing one is not taken. Its path is absolute.
    pub(super) fn new() -> io::Result<Self> {
        let name = u128::from_ne_bytes(netduel_sys::random::bytes16()?);
        let path = std::path::absolute(std::env::temp_dir().join(format!("netduel-pdf-{name:032x}")))?;
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            match fs::remove_dir_all(&self.0) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    sleep_until_or(
                        monotonic_ns().saturating_add(REMOVAL_INTERVAL_NS),
                        &AtomicBool::new(false),
                    );
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn folder_is_private_and_removed_with_its_content() {
        let folder = PrivateFolder::new().expect("a folder");
        let path = folder.path().to_owned();
        let mode = fs::metadata(&path).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::create_dir(path.join("profile")).expect("created");
        fs::write(path.join("profile/state"), "x").expect("written");
        drop(folder);
        assert!(!path.exists());
    }
}
