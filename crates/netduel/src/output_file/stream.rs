//! A pipe or a device that has the name of an output file: whose it is, and how it is opened. Nothing is written here.
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use netduel_store::folder::{check_maker, check_owner};
use rustix::fs::{Mode, OFlags, fcntl_setfl, fstat, open};
use rustix::io::Errno;

use super::{Readers, folder_of};
use crate::signal;

/// A pipe or a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) path: PathBuf,
    /// Its device and its inode: another one of the name is not opened.
    file: (u64, u64),
    is_pipe: bool,
    owner: u32,
}

impl Stream {
    /// What a path names, which is no link that could be followed. Where another user may have planted it, it is refused as a link is: he would
    /// read what is written, or let the write wait.
    pub(super) fn of(path: PathBuf, named: &Metadata) -> io::Result<Self> {
        let around = fs::metadata(folder_of(&path))?;
        let is_pipe = named.file_type().is_fifo();
        let kind = if is_pipe { "pipe" } else { "device or socket" };
        check_maker(&path, kind, named.uid(), around.mode(), around.uid())?;
        Ok(Self { path, file: (named.dev(), named.ino()), is_pipe, owner: named.uid() })
    }

    /// Opens it to write for these readers. A pipe is opened when a program reads it; the first signal ends the wait. What only the owner of a
    /// file may read goes into no pipe of another user, wherever it is.
    pub(super) fn open(self, readers: Readers) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
        if !self.is_pipe {
            return self.open_with(flags);
        }
        if readers == Readers::Owner {
            check_owner(&self.path, "pipe", self.owner)?;
        }
        match self.open_with(flags | OFlags::NONBLOCK) {
            Ok(file) => {
                fcntl_setfl(&file, OFlags::empty())?;
                Ok(file)
            }
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                let opened = signal::unless_interrupted(move || self.open_with(flags))?;
                opened.unwrap_or_else(|| Err(io::Error::other("no program reads this pipe")))
            }
            Err(error) => Err(error),
        }
    }

    /// Opens it with these flags.
    pub(super) fn open_with(&self, flags: OFlags) -> io::Result<File> {
        let file = open(&self.path, flags, Mode::empty())?;
        let opened = fstat(&file)?;
        if (opened.st_dev, opened.st_ino) == self.file {
            Ok(file.into())
        } else {
            Err(io::Error::other("another program replaced it at this moment"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, lchown};
    use std::path::Path;

    use netduel_test_support::skip;
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    /// A new pipe that a program reads.
    fn pipe(path: &Path) -> File {
        mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        // Linux opens a pipe for both directions without waiting for another end.
        File::options().read(true).write(true).open(path).expect("opened")
    }

    fn stream(path: &Path) -> io::Result<Stream> {
        Stream::of(path.to_owned(), &fs::symlink_metadata(path)?)
    }

    #[test]
    fn pipe_of_another_user_is_refused_where_everybody_can_make_one_and_gets_no_secret() {
        if !rustix::process::geteuid().is_root() {
            return skip("only root makes a pipe of another user");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pipe");
        let _reader = pipe(&path);
        lchown(&path, Some(65_534), Some(65_534)).expect("changed");
        let is_refused = |result: io::Result<()>| {
            result
                .is_err_and(|error| error.to_string().ends_with("pipe is a pipe of another user (uid 65534)"))
        };
        let mode = |mode: u32| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
        for everybody in [0o777, 0o1777] {
            mode(everybody).expect("changed");
            assert!(is_refused(stream(&path).map(drop)), "{everybody:o}");
        }
        mode(0o755).expect("changed");
        let named = stream(&path).expect("the owner of the folder let him make it");
        assert!(is_refused(named.clone().open(Readers::Owner).map(drop)));
        named.open(Readers::Umask).expect("a report may go there");
        lchown(&path, Some(0), Some(0)).expect("changed");
        mode(0o1777).expect("changed");
        stream(&path).and_then(|stream| stream.open(Readers::Owner)).expect("it is a pipe of this user");
    }

    #[test]
    fn pipe_that_takes_the_place_of_another_is_not_written_into() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, other] = ["pipe", "other"].map(|name| folder.path().join(name));
        let _readers = [pipe(&path), pipe(&other)];
        let named = stream(&path).expect("a pipe");
        fs::rename(&other, &path).expect("replaced");
        let error = named.open(Readers::Umask).expect_err("another pipe");
        assert!(error.to_string().contains("another program replaced it"), "{error}");
    }
}
