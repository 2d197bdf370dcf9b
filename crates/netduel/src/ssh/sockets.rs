//! The private folder of the sockets of ssh connections. It connects nothing.
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use netduel_model::user_folder::UserFolder;
use rustix::fs::OFlags;

use super::obstacle::Obstacle;

/// Longest path of a socket, bytes: `sun_path` has 108 with the final zero (unix(7)), and ssh binds a name that is 17 bytes longer before it
/// renames it.
const PATH_LEN_MAX: usize = 108 - 1 - 17;
/// The beginning of the folders' names.
const PREFIX: &str = "netduel-ssh-";

/// A folder that only this user can enter; removed when it is dropped.
#[derive(Debug)]
pub struct SocketFolder {
    path: PathBuf,
    /// Locked while the folder is in use, also for a process that sees another /proc. The kernel unlocks it when the process ends in any way.
    _lock: File,
}

impl SocketFolder {
    /// In the first of the folders for temporary files that is there and short enough.
    pub fn new() -> Result<Self, Obstacle> {
        let bytes = netduel_sys::random::bytes16().map_err(Obstacle::Random)?;
        let name = format!("{PREFIX}{}-{:016x}", std::process::id(), u128::from_le_bytes(bytes) as u64);
        let runtime = UserFolder::Runtime.path(|name| std::env::var_os(name));
        let places = runtime.into_iter().chain([std::env::temp_dir(), PathBuf::from("/tmp")]);
        let mut failure = None;
        for place in places.filter(|place| place.is_absolute()) {
            let folder = place.join(&name);
            if socket_in(&folder, u32::MAX).as_os_str().as_bytes().len() > PATH_LEN_MAX {
                continue;
            }
            match make_locked(&folder) {
                Ok(lock) => {
                    remove_abandoned(&place);
                    return Ok(Self { path: folder, _lock: lock });
                }
                Err(error) => failure = Some((place, error)),
            }
        }
        Err(Obstacle::Sockets(failure))
    }

    /// A socket in it that was not used before.
    pub fn socket(&self, number: u32) -> PathBuf {
        socket_in(&self.path, number)
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        // The masters have removed their sockets. What is left is removed by a later run.
        drop(fs::remove_dir(&self.path));
    }
}

fn socket_in(folder: &Path, number: u32) -> PathBuf {
    folder.join(number.to_string())
}

/// Makes a private folder and locks it. Another process removes it only while it is not locked, and then it is made again.
fn make_locked(folder: &Path) -> io::Result<File> {
    loop {
        DirBuilder::new().mode(0o700).create(folder)?;
        let opened = open_folder(folder);
        if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            continue;
        }
        let lock = opened?;
        lock.lock()?;
        if folder.exists() {
            return Ok(lock);
        }
    }
}

/// Opens a folder and nothing else: another user may have planted a pipe of its name, which waits for a writer, or a link to a device.
fn open_folder(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

/// Removes empty folders of processes that were killed: no process holds their lock.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)) {
            continue;
        }
        // Those of other users cannot be opened by a user other than root.
        if let Ok(folder) = open_folder(&entry.path())
            && folder.try_lock().is_ok()
        {
            // It stays when it has the socket of a master that is ending.
            drop(fs::remove_dir(entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn folder_is_private_and_short_and_is_removed() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = SocketFolder::new().expect("a folder");
        assert_eq!(fs::metadata(&folder.path).expect("it exists").permissions().mode() & 0o777, 0o700);
        assert!(folder.socket(u32::MAX).as_os_str().len() <= PATH_LEN_MAX);
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folder_in_use_stays_and_an_abandoned_one_is_removed() {
        let place = std::env::temp_dir().join(format!("netduel-test-sockets-{}", std::process::id()));
        fs::create_dir(&place).expect("a folder");
        // The process that uses one may have any id here: it may be in another process namespace.
        let (used, abandoned) = (place.join("netduel-ssh-1-a"), place.join("netduel-ssh-1-b"));
        // A child of another test's thread has a copy of each descriptor until its exec, so closing one unlocks it later.
        let lock = make_locked(&used).expect("a folder");
        make_locked(&abandoned).and_then(|lock| lock.unlock()).expect("a folder");
        remove_abandoned(&place);
        assert!(used.exists());
        assert!(!abandoned.exists());
        lock.unlock().expect("it was locked");
        remove_abandoned(&place);
        assert!(!used.exists());
        fs::remove_dir(&place).expect("it is empty");
    }

    #[test]
    fn what_another_user_planted_is_not_opened() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(format!("{PREFIX}{name}"));
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, at("1-pipe"), FileType::Fifo, mode, 0).expect("a pipe");
        symlink(place.path(), at("1-link")).expect("a link");
        assert!(open_folder(&at("1-link")).is_err());
        let (done, ended) = channel();
        let path = place.path().to_owned();
        std::thread::spawn(move || {
            remove_abandoned(&path);
            done.send(()).expect("it is awaited");
        });
        // A pipe that is opened waits for a writer for ever.
        ended.recv_timeout(Duration::from_secs(90)).expect("the pipe is not opened");
        assert!(at("1-pipe").exists());
    }
}
