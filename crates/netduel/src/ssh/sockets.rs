//! The private folder of the sockets of ssh connections. It connects nothing.
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use super::obstacle::Obstacle;

/// Longest path of a socket, bytes: `sun_path` has 108 with the final zero (unix(7)), and ssh binds a name that is 17 bytes longer before it
/// renames it.
const PATH_LEN_MAX: usize = 108 - 1 - 17;
/// The beginning of the folders' names.
const PREFIX: &str = "netduel-ssh-";

/// A folder that only this user can enter; removed when it is dropped.
#[derive(Debug)]
pub struct SocketFolder(PathBuf);

impl SocketFolder {
    /// In the first of the folders for temporary files that is there and short enough.
    pub fn new() -> Result<Self, Obstacle> {
        let bytes = netduel_sys::random::bytes16().map_err(Obstacle::Random)?;
        let name = format!("{PREFIX}{}-{:016x}", std::process::id(), u128::from_le_bytes(bytes) as u64);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places = runtime.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp")]);
        let mut failure = None;
        for place in places.filter(|place| place.is_absolute()) {
            let folder = place.join(&name);
            if socket_in(&folder, u32::MAX).as_os_str().as_bytes().len() > PATH_LEN_MAX {
                continue;
            }
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    remove_abandoned(&place);
                    return Ok(Self(folder));
                }
                Err(error) => failure = Some((place, error)),
            }
        }
        Err(Obstacle::Sockets(failure))
    }

    /// A socket in it that was not used before.
    pub fn socket(&self, number: u32) -> PathBuf {
        socket_in(&self.0, number)
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // The masters have removed their sockets. What is left is removed by a later run.
        drop(fs::remove_dir(&self.0));
    }
}

fn socket_in(folder: &Path, number: u32) -> PathBuf {
    folder.join(number.to_string())
}

/// Removes empty folders of processes that were killed.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
        if let Some((id, _)) = id
            && id.parse::<u32>().is_ok()
            && !Path::new("/proc").join(id).exists()
        {
            // Of another user, or with the socket of a master that is ending.
            drop(fs::remove_dir(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_private_and_short_and_is_removed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = SocketFolder::new().expect("a folder");
        assert_eq!(fs::metadata(&folder.0).expect("it exists").permissions().mode() & 0o777, 0o700);
        assert!(folder.socket(u32::MAX).as_os_str().len() <= PATH_LEN_MAX);
        let path = folder.0.clone();
        drop(folder);
        assert!(!path.exists());
    }
}
