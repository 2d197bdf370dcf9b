//! The journal of a guard as the process has it that makes the changes: while that process lives, no other agent restores them, whatever became
//! of the guard. It writes no record of a change.
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use netduel_sys::range_lock;
use rustix::fs::fstat;

use super::journal::{self, HOLDER_BYTE, cut_torn_line, write_line};
use super::protocol::Request;

/// A journal with the lock of this process.
#[derive(Debug)]
pub(super) struct HeldJournal {
    path: PathBuf,
    file: File,
}

impl HeldJournal {
    /// Holds the journal at a path.
    ///
    /// # Errors
    /// When it is not there, and when another agent restores what is in it: its guard is gone then.
    pub(super) fn hold(path: &Path) -> io::Result<Self> {
        let file = journal::open(path)?;
        if !range_lock::try_lock(file.as_fd(), HOLDER_BYTE)? {
            return Err(io::Error::other("another agent restores what is in it"));
        }
        let held = Self { path: path.to_owned(), file };
        if held.is_there() { Ok(held) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Whether the file still has a name. A guard removes the file when nothing is in force, and makes another one with the next change.
    pub(super) fn is_there(&self) -> bool {
        fstat(&self.file).is_ok_and(|found| found.st_nlink > 0)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes in place of the guard that is gone that a change is undone, so that no other agent undoes it again later, or that its undo runs.
    pub(super) fn note(&mut self, request: &Request) {
        // Without the note the change is undone twice, which is the same as once for a value.
        let _ = cut_torn_line(&mut self.file).and_then(|()| write_line(&mut self.file, request));
    }

    /// Removes the file of a guard that is gone: everything in it is undone.
    pub(super) fn remove(self) {
        // The lock ends after the name, so that no other agent finds the file without it.
        let _ = journal::discard(&self.path);
    }
}

impl Drop for HeldJournal {
    fn drop(&mut self) {
        let _ = range_lock::unlock(self.file.as_fd(), HOLDER_BYTE);
    }
}

#[cfg(test)]
mod tests {
    use netduel_control::protocol::Recovery;

    use super::super::journal::{Journal, Keeper};
    use super::super::record::Record;
    use super::super::recovery::{in_use_within, journaled, recover_within};
    use super::*;

    /// A journal with two changes that cannot be undone, in this folder. Its guard is killed while it writes a line.
    fn without_guard(folder: &Path) -> PathBuf {
        let mut journal = Journal::within(&[folder.to_owned()], Keeper::Agent);
        for id in [1, 2] {
            let undo = Record::of_sysctl("net.no.such", "1");
            journal.note(&Request::Keep { id, undo, running: false }).unwrap();
        }
        let path = journal.path().unwrap();
        drop(journal);
        io::Write::write_all(&mut journal::open(&path).unwrap(), b"{\"keep\":{\"id\":3").unwrap();
        path
    }

    #[test]
    fn journal_of_a_process_that_lives_without_its_guard_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let folders = [root.path().join("netduel")];
        let path = without_guard(&folders[0]);
        let held = HeldJournal::hold(&path).unwrap();
        assert_eq!(recover_within(&folders, Keeper::Agent), Recovery::default());
        assert_eq!(in_use_within(&folders), Some(path.clone()), "its host is in use");
        drop(held);
        assert_eq!(in_use_within(&folders), None);
        let recovery = recover_within(&folders, Keeper::Agent);
        assert_eq!(recovery.problems.len(), 2, "there is no such setting: {recovery:?}");
        assert!(path.exists());
    }

    #[test]
    fn change_that_is_undone_without_the_guard_is_noted_behind_a_line_that_was_cut_off() {
        let root = tempfile::tempdir().unwrap();
        let path = without_guard(&root.path().join("netduel"));
        let mut held = HeldJournal::hold(&path).unwrap();
        held.note(&Request::Forget { id: 2 });
        let (in_force, damaged_lines) = journaled(&std::fs::read_to_string(&path).unwrap());
        assert_eq!((in_force.len(), damaged_lines), (1, Vec::new()));
        held.remove();
        assert!(!path.exists());
    }

    #[test]
    fn journal_that_another_agent_restores_or_has_removed_is_not_held() {
        let root = tempfile::tempdir().unwrap();
        let path = without_guard(&root.path().join("netduel"));
        let other = HeldJournal::hold(&path).unwrap();
        let refused = HeldJournal::hold(&path).unwrap_err().to_string();
        assert!(refused.contains("another agent restores"), "{refused}");
        other.remove();
        assert_eq!(HeldJournal::hold(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
