//! Huge pages that another program gets for a trial: added before it, and removed after it, as many as were added. Other processes add and
//! remove pages meanwhile, so the earlier number is not restored.
//!
//! A token, a file of this user's own, states how many were added. It is removed before the pages, so that they are removed once. It appears with
//! its whole text: a process that is killed while it writes, or a full file system, leaves no token, and no page was added then.
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags};

use super::error::TreatmentError;
use super::own_folder::{folders, is_own, own_folder};

/// A token longer than this is none, bytes.
const LEN_MAX: u64 = 128;

/// What a token states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// Pages are being added to so many that were there.
    AddingTo(u64),
    /// So many were added.
    Added(u64),
}

impl Token {
    fn text(self) -> String {
        match self {
            Self::AddingTo(before) => format!("adding to {before}\n"),
            Self::Added(pages) => format!("added {pages}\n"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.strip_suffix('\n')?;
        match line.strip_prefix("adding to ") {
            Some(before) => before.parse().ok().map(Self::AddingTo),
            None => line.strip_prefix("added ")?.parse().ok().map(Self::Added),
        }
    }

    /// Writes it to a file beside the token, and gives that its name: an earlier one is replaced as a whole.
    fn write(self, token: &Path) -> io::Result<()> {
        let part = token.with_extension("part");
        // A file that another user has made under this name, or a link, is not written.
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let written = file.write_all(self.text().as_bytes()).and_then(|()| fs::rename(&part, token));
        written.inspect_err(|_| drop(fs::remove_file(&part)))
    }

    /// The text of a token; `None` when there is none.
    fn read(token: &Path) -> io::Result<Option<String>> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(token) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !is_own(&file, FileType::RegularFile)? {
            let why = format!("{} is not this user's own file", token.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        let mut bytes = Vec::new();
        file.take(LEN_MAX).read_to_end(&mut bytes)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// Where the token with this number is: a folder of this user's own that goes with the boot, as the pages do, else one for temporary files.
pub(super) fn token(number: u128) -> PathBuf {
    let own = folders().into_iter().find(|folder| own_folder(folder, true).is_ok());
    own.unwrap_or_else(std::env::temp_dir).join(format!("pages-{number:032x}"))
}

/// The number in a file of the kernel.
pub(super) fn number(file: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(file)?;
    text.trim()
        .parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, format!("it contains {text:?}")))
}

/// Adds huge pages and reads the number back: the kernel takes as many as it finds memory for.
pub(super) fn add(file: &Path, added: u64, token: &Path) -> Result<(), TreatmentError> {
    let doing = || format!("have {added} more huge pages ({})", file.display());
    let refused = |cause| TreatmentError::Refused { doing: doing(), cause };
    let before = number(file).map_err(refused)?;
    Token::AddingTo(before).write(token).map_err(refused)?;
    fs::write(file, before.saturating_add(added).to_string()).map_err(refused)?;
    let gained = number(file).map_err(refused)?.saturating_sub(before).min(added);
    Token::Added(gained).write(token).map_err(refused)?;
    if gained == added {
        return Ok(());
    }
    let answered = format!(
        "{gained}: too little memory is free in pieces of 2 MiB; reserve them soon after the start of the host"
    );
    Err(TreatmentError::NotTaken { doing: doing(), answered })
}

/// Removes what was added, once. Pages that are in use still become fewer when they are freed. After a token that states nothing the number is
/// left as it is: this is an error once, and not again.
pub(super) fn take(file: &Path, added: u64, token: &Path) -> io::Result<()> {
    let Some(text) = Token::read(token)? else {
        // None were added, or they are removed already. A process that was killed at the start may have left this.
        drop(fs::remove_file(token.with_extension("part")));
        return Ok(());
    };
    let now = number(file)?;
    let stated = Token::parse(&text);
    fs::remove_file(token)?;
    let surplus = match stated {
        Some(Token::Added(pages)) => pages,
        // Killed in between: what is more now was added.
        Some(Token::AddingTo(before)) => now.saturating_sub(before),
        None => {
            let why = format!(
                "{} states {text:?} in place of how many of the {added} pages were added, so that the number is left at {now}; compare it with \
                 that before the run",
                token.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
    };
    let surplus = surplus.min(added);
    if surplus == 0 {
        return Ok(());
    }
    let taken = fs::write(file, now.saturating_sub(surplus).to_string());
    // A number that the kernel does not take is tried again later.
    taken.inspect_err(|_| drop(Token::Added(surplus).write(token)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a number of pages, and the path of a token beside it.
    fn pages(count: u64) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nr_hugepages");
        fs::write(&file, format!("{count}\n")).unwrap();
        let token = folder.path().join("pages-1");
        (folder, file, token)
    }

    /// The token as a process leaves it that is killed there.
    fn leave(token: &Path, text: &str) {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(token).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn pages_of_a_process_that_was_killed_at_any_step_are_removed_as_far_as_they_were_added() {
        // Before the kernel added any, after it, after it had added fewer, and after all; what other programs added stays.
        for (now, text, after) in [
            (7, "adding to 7\n", 7),
            (60, "adding to 7\n", 7),
            (20, "adding to 7\n", 7),
            (90, "adding to 7\n", 37),
            (60, "added 53\n", 7),
            (20, "added 13\n", 7),
            (5, "adding to 7\n", 5),
            // More than the record has were never added.
            (90, "added 1000\n", 37),
        ] {
            let (_folder, file, token) = pages(now);
            leave(&token, text);
            for _ in 0..2 {
                take(&file, 53, &token).unwrap();
                assert_eq!(number(&file).unwrap(), after, "{now} {text:?}");
            }
            assert!(!token.exists());
        }
    }

    #[test]
    fn empty_record_of_pages_is_reported_once_and_changes_no_number() {
        for text in ["", "5", "added 5", "added x\n", "\u{fffd}"] {
            let (_folder, file, token) = pages(60);
            leave(&token, text);
            let failed = take(&file, 53, &token).unwrap_err().to_string();
            assert!(failed.contains("pages-1 states") && failed.contains("is left at 60"), "{failed}");
            take(&file, 53, &token).unwrap();
            assert_eq!(number(&file).unwrap(), 60);
        }
    }

    #[test]
    fn pages_that_the_kernel_does_not_take_back_are_tried_again() {
        let (_folder, _, token) = pages(60);
        leave(&token, "added 53\n");
        // It has a number and takes none, of no user.
        let file = Path::new("/proc/sys/kernel/ngroups_max");
        for _ in 0..2 {
            take(file, 53, &token).unwrap_err();
            assert_eq!(Token::read(&token).unwrap().as_deref(), Some("added 53\n"));
        }
    }

    #[test]
    fn pages_without_room_for_their_record_are_not_added() {
        let (folder, file, _) = pages(7);
        // No file can be made in a folder that is not there.
        let token = folder.path().join("full/pages-1");
        let refused = add(&file, 53, &token).unwrap_err().to_string();
        assert!(refused.contains("No such file"), "{refused}");
        take(&file, 53, &token).unwrap();
        assert_eq!(number(&file).unwrap(), 7);
    }

    #[test]
    fn record_of_pages_that_another_user_could_write_is_not_trusted() {
        let (_folder, file, token) = pages(60);
        leave(&token, "added 53\n");
        fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let failed = take(&file, 53, &token).unwrap_err().to_string();
        assert!(failed.contains("not this user's own"), "{failed}");
        assert_eq!(number(&file).unwrap(), 60);
    }
}
