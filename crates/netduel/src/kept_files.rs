//! The files that no output of a command replaces: those that it reads, and the runs of its store. They are compared by device and inode when an
//! output is about to be written, so that links, other paths and files that were replaced meanwhile count. Nothing is written here.
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use netduel_store::format::EXTENSION;

/// What this process knows of them.
static KNOWN: Mutex<Known> = Mutex::new(Known { inputs: Vec::new(), stores: Vec::new() });

struct Known {
    /// Paths of files that were read.
    inputs: Vec<PathBuf>,
    /// Folders of runs.
    stores: Vec<PathBuf>,
}

/// Why a file is not replaced.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("it is the file {}, which this command reads", .0.display())]
    Input(PathBuf),
    #[error("it is the file of a run in the store {}", .0.display())]
    StoredRun(PathBuf),
}

/// Notes a file that this command reads.
pub fn note_input(path: &Path) {
    note(|known| &mut known.inputs, path);
}

/// Notes the folder of a store. Nothing but the store replaces its runs: another process may be writing one.
pub fn note_store(folder: &Path) {
    note(|known| &mut known.stores, folder);
}

fn note(list: fn(&mut Known) -> &mut Vec<PathBuf>, path: &Path) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let list = list(&mut known);
    if !list.iter().any(|noted| noted == path) {
        list.push(path.to_owned());
    }
}

/// Whether an error is that of a file which no output replaces.
pub fn is_refusal(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.downcast_ref::<Refusal>().is_some())
}

/// Refuses an existing file that is an input or a stored run. `path` has no link at its end, and is in `folder`.
pub fn refuse(path: &Path, folder: &Path, file: &Metadata) -> io::Result<()> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(input) = known.inputs.iter().find(|input| is_at(input, file)) {
        return Err(io::Error::other(Refusal::Input(input.clone())));
    }
    let is_run = path.extension().is_some_and(|extension| extension == EXTENSION);
    let Some(folder) = fs::metadata(folder).ok().filter(|_| is_run) else { return Ok(()) };
    match known.stores.iter().find(|store| is_at(store, &folder)) {
        Some(store) => Err(io::Error::other(Refusal::StoredRun(store.clone()))),
        None => Ok(()),
    }
}

/// Whether a path leads to this file or folder now.
fn is_at(path: &Path, file: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (file.dev(), file.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::output_file::{Readers, check, open_to_append, write};

    #[test]
    fn input_is_replaced_under_none_of_its_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("folder")).expect("made");
        fs::write(at("words.md"), "words").expect("written");
        fs::hard_link(at("words.md"), at("same.md")).expect("linked");
        symlink("words.md", at("link.md")).expect("linked");
        note_input(&at("words.md"));
        for name in ["words.md", "same.md", "link.md", "folder/../words.md"] {
            for result in [
                write(&at(name), b"report", Readers::Umask),
                check(&at(name)),
                open_to_append(&at(name)).map(drop),
            ] {
                let error = result.expect_err(name);
                assert!(is_refusal(&error), "{name}: {error}");
                assert!(error.to_string().contains("words.md, which this command reads"), "{error}");
            }
        }
        assert_eq!(fs::read(at("words.md")).expect("read"), b"words");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 4);
        // Another file of the name that was an input, and a name beside it.
        fs::rename(at("words.md"), at("kept.md")).expect("renamed");
        write(&at("same.md"), b"report", Readers::Umask).expect("no input any more");
        write(&at("words.md"), b"report", Readers::Umask).expect("missing");
        assert_eq!(fs::read(at("kept.md")).expect("read"), b"words");
    }

    #[test]
    fn run_of_the_store_is_not_replaced_and_new_and_other_files_are_written_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("store")).expect("made");
        symlink("store", at("link")).expect("linked");
        for name in ["store/a.netduel", "store/a.md", "a.netduel"] {
            fs::write(at(name), "old").expect("written");
        }
        note_store(&at("store"));
        for name in ["store/a.netduel", "link/a.netduel"] {
            let error = write(&at(name), b"new", Readers::Umask).expect_err(name);
            assert!(is_refusal(&error) && error.to_string().contains("a run in the store"), "{error}");
        }
        for name in ["store/b.netduel", "store/a.md", "a.netduel"] {
            write(&at(name), b"new", Readers::Umask).expect(name);
        }
        assert_eq!(fs::read(at("store/a.netduel")).expect("read"), b"old");
    }
}
