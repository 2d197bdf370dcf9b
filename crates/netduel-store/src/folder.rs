//! Creates the folder of a file, and the folders that it is in; refuses what another user may have planted in their place. Must not write files.
//!
//! Each name is opened in the folder that is open already, without a link that the kernel follows: a link that is planted after a check is
//! judged as any other, and a folder that is replaced meanwhile is not used.
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

/// Maximum number of links from a path to its file, as in the kernel (`MAXSYMLINKS`).
pub const LINKS_MAX: usize = 40;

/// Creates a folder and those that it is in, as far as they are missing, and opens it to open names in it. An empty path is the current folder.
///
/// # Errors
/// The error of the system, that of [`check_maker`] for a link, and one for a link to a missing folder.
pub fn create(path: &Path) -> io::Result<OwnedFd> {
    let mut walk = Walk::to(path, false);
    walk.finish()?;
    Ok(match walk.folder {
        Some(folder) => folder,
        None => openat(CWD, ".", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?,
    })
}

/// Refuses a folder that a link of another user leads to. Creates nothing. A folder that is missing or cannot be reached is not refused: nothing
/// is read or written there.
///
/// # Errors
/// That of [`check_maker`] for a link.
pub fn check(path: &Path) -> io::Result<()> {
    match Walk::to(path, true).finish() {
        Err(error) if error.raw_os_error().is_none() => Err(error),
        _ => Ok(()),
    }
}

/// As [`check`], for a file that is read: what is in it may be published, and this user may read more than the maker of the link.
///
/// # Errors
/// One without a path, so that it can stand beside a path that was replaced.
pub fn check_input(path: &Path) -> io::Result<()> {
    check(path).map_err(|_| {
        let text = "a link of another user leads to it; name the file itself if you trust it";
        io::Error::new(ErrorKind::PermissionDenied, text)
    })
}

/// In a folder that everybody can write, a link or a pipe is refused unless this user, root or the owner of that folder made it. The kernel has
/// the same rule for links where `fs.protected_symlinks` is on, and for pipes where `fs.protected_fifos` is and an open(2) could create the file
/// (proc_sys_fs(5)). `kind` is what the path names, in an error.
///
/// # Errors
/// That of [`check_owner`].
pub fn check_maker(
    path: &Path,
    kind: &str,
    owner: u32,
    folder_mode: u32,
    folder_owner: u32,
) -> io::Result<()> {
    let everybody_writes = folder_mode & Mode::WOTH.bits() != 0;
    if everybody_writes && owner != folder_owner { check_owner(path, kind, owner) } else { Ok(()) }
}

/// Refuses what neither this user nor root has made.
///
/// # Errors
/// One that names the path, its `kind` and the user.
pub fn check_owner(path: &Path, kind: &str, uid: u32) -> io::Result<()> {
    if uid == rustix::process::geteuid().as_raw() || uid == 0 {
        return Ok(());
    }
    let text = format!("{} is a {kind} of another user (uid {uid})", path.display());
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// The way to a folder.
struct Walk {
    /// Where it is; none before the first step, which begins in the current folder or at the root.
    folder: Option<OwnedFd>,
    /// The path of that folder, for messages.
    path: PathBuf,
    /// The names to open after that, the next one last.
    left: Vec<Name>,
    /// Links that were followed.
    links: usize,
}

/// A name on the way.
struct Name {
    name: OsString,
    /// Whether it is not created: that of a link must exist.
    must_exist: bool,
}

impl Walk {
    fn to(path: &Path, must_exist: bool) -> Self {
        let mut walk = Self { folder: None, path: PathBuf::new(), left: Vec::new(), links: 0 };
        walk.add(path, must_exist);
        walk
    }

    fn add(&mut self, path: &Path, must_exist: bool) {
        let names = path.components().rev().map(|part| part.as_os_str().to_owned());
        self.left.extend(names.map(|name| Name { name, must_exist }));
    }

    /// Takes all steps that are left.
    fn finish(&mut self) -> io::Result<()> {
        while let Some(next) = self.left.pop() {
            self.step(&next)?;
        }
        Ok(())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.folder.as_ref().map_or(CWD, AsFd::as_fd)
    }

    /// Opens a name to look at it, or to go on in it; a link of this name itself.
    fn open(&self, name: &OsStr, also: OFlags) -> Result<OwnedFd, Errno> {
        openat(self.here(), name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC | also, Mode::empty())
    }

    /// Enters a folder, which is made if it is missing and need not exist, or goes on with the target of a link.
    fn step(&mut self, next: &Name) -> io::Result<()> {
        let name = next.name.as_os_str();
        // Also has the kernel mount a file system that is mounted on demand.
        let mut opened = self.open(name, OFlags::DIRECTORY);
        if matches!(opened, Err(Errno::NOENT)) && !next.must_exist {
            match mkdirat(self.here(), name, Mode::from_raw_mode(0o777)) {
                // What another program made meanwhile is judged as what was there before.
                Ok(()) | Err(Errno::EXIST) => opened = self.open(name, OFlags::DIRECTORY),
                Err(error) => return Err(error.into()),
            }
        }
        match opened {
            Ok(folder) => self.enter(folder, name),
            Err(Errno::NOTDIR | Errno::LOOP) => return self.follow(name),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn enter(&mut self, folder: OwnedFd, name: &OsStr) {
        self.folder = Some(folder);
        self.path.push(name);
    }

    /// Goes on with the target of a link.
    fn follow(&mut self, name: &OsStr) -> io::Result<()> {
        let link = self.open(name, OFlags::empty())?;
        let found = fstat(&link)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {}
            // It was replaced since the step began.
            FileType::Directory => {
                self.enter(link, name);
                return Ok(());
            }
            _ => return Err(Errno::NOTDIR.into()),
        }
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let around = statat(self.here(), ".", AtFlags::empty())?;
        check_maker(&self.path.join(name), "link", found.st_uid, around.st_mode, around.st_uid)?;
        // Of the link that was judged, whatever has its name by now.
        let target = readlinkat(&link, "", Vec::new())?;
        self.add(Path::new(OsStr::from_bytes(target.to_bytes())), true);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

    use netduel_test_support::skip;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    /// Walks to the last name of a path.
    fn to_the_last_name(path: &Path) -> (Walk, Name) {
        let mut walk = Walk::to(path, false);
        loop {
            let next = walk.left.pop().expect("a name");
            if walk.left.is_empty() {
                return (walk, next);
            }
            walk.step(&next).expect("a folder");
        }
    }

    #[test]
    fn missing_folders_are_created_through_own_links() {
        let folder = folder();
        let path = folder.path();
        check(&path.join("a/b/c")).expect("nothing is there");
        assert!(!path.join("a").exists());
        create(&path.join("a/b/c")).expect("created");
        create(&path.join("a/b/c")).expect("it is there");
        // Absolute, relative, and a link to a link.
        symlink(path.join("a"), path.join("absolute")).expect("linked");
        symlink("../b", path.join("a/b/relative")).expect("linked");
        symlink("absolute/b/relative", path.join("both")).expect("linked");
        for (way, made) in [("absolute/x", "a/x"), ("a/b/relative/y", "a/b/y"), ("both/z/../u", "a/b/u")] {
            create(&path.join(way)).unwrap_or_else(|error| panic!("{way}: {error}"));
            assert!(path.join(made).is_dir(), "{way}");
        }
        create(Path::new("")).expect("the current folder");
        create(Path::new("/")).expect("the root");
    }

    #[test]
    fn what_is_no_folder_is_refused_and_nothing_is_created() {
        let folder = folder();
        let path = folder.path();
        fs::write(path.join("file"), "").expect("written");
        for (target, link) in [("loop", "loop"), ("missing", "dangling"), ("file", "to-a-file")] {
            symlink(target, path.join(link)).expect("linked");
        }
        for (way, expected) in [
            ("file/x", Errno::NOTDIR),
            ("file", Errno::NOTDIR),
            ("to-a-file/x", Errno::NOTDIR),
            ("loop/x", Errno::LOOP),
            ("dangling/x", Errno::NOENT),
        ] {
            let error = create(&path.join(way)).expect_err("no folder");
            assert_eq!(error.raw_os_error(), Some(expected.raw_os_error()), "{way}: {error}");
        }
        assert_eq!(fs::read_dir(path).expect("listed").count(), 4);
    }

    #[test]
    fn folder_that_is_replaced_by_a_link_is_still_the_one_that_was_opened() {
        let folder = folder();
        let path = folder.path();
        for name in ["a", "victim"] {
            fs::create_dir(path.join(name)).expect("created");
        }
        let (mut walk, last) = to_the_last_name(&path.join("a/new"));
        fs::rename(path.join("a"), path.join("moved")).expect("renamed");
        symlink("victim", path.join("a")).expect("linked");
        walk.step(&last).expect("created");
        assert!(path.join("moved/new").is_dir() && !path.join("victim/new").exists());
    }

    #[test]
    fn link_that_another_user_plants_after_the_first_step_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return skip("only root makes a link of another user");
        }
        let folder = folder();
        let (everybody, victim) = (folder.path().join("everybody"), folder.path().join("victim"));
        for path in [&everybody, &victim] {
            fs::create_dir(path).expect("created");
        }
        fs::set_permissions(&everybody, fs::Permissions::from_mode(0o777)).expect("changed");
        let (mut walk, last) = to_the_last_name(&everybody.join("reports"));
        let link = everybody.join("reports");
        symlink(&victim, &link).expect("linked");
        lchown(&link, Some(65_534), Some(65_534)).expect("changed");
        for error in [walk.step(&last), check(&link), check(&link.join("below"))].map(Result::unwrap_err) {
            assert!(error.to_string().contains("reports is a link of another user"), "{error}");
        }
        // Links of root are followed.
        lchown(&link, Some(0), Some(0)).expect("changed");
        check(&link.join("below")).expect("it may be missing");
        walk.step(&last).expect("the link is followed");
        assert!(!walk.left.is_empty());
    }
}
