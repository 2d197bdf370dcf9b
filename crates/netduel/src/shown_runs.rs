//! How stored runs are called in what a command prints. With `--redact` names of runs have pseudonyms, and a file that cannot be read as a run
//! has a number in place of its name: which words of it are names of hosts or users is not known. Nothing is printed here.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use netduel_model::ids::RunId;
use netduel_model::run::Run;
use netduel_store::format::EXTENSION;
use netduel_store::{RunContents, RunSummary, Store, StoreError};

use crate::exit::{Failure, Kind, OrFail as _};
use crate::redaction;

/// The files that have a number, in the order of their first appearance.
static NUMBERED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The names of a store's runs in the output of one command.
#[derive(Default)]
pub struct ShownRuns {
    /// With `--redact` the runs that cannot be read, each with its number.
    numbered: BTreeMap<RunId, String>,
}

impl ShownRuns {
    /// With `--redact` learns the names in all runs of a store: a name has one pseudonym in all of them, and is known before the first of them
    /// is shown.
    pub fn of(store: &Store) -> Result<Self, Failure> {
        if !redaction::is_on() {
            return Ok(Self::default());
        }
        let runs = store.list().kind(Kind::Store)?;
        learn(&runs)?;
        let unread = runs.iter().filter(|run| run.contents.is_err());
        Ok(Self { numbered: unread.map(|run| (run.id.clone(), number(&run.path))).collect() })
    }

    /// The name of a run as it is shown.
    pub fn name(&self, id: &RunId) -> String {
        self.numbered.get(id).cloned().unwrap_or_else(|| redaction::text(id.as_str()))
    }
}

/// Learns the names in those of the listed runs that can be read.
pub fn learn(runs: &[RunSummary]) -> Result<(), Failure> {
    let readable = runs.iter().filter_map(|run| run.contents.as_ref().ok());
    readable.map(without_trials).try_for_each(|run| redaction::learn_run(&run))
}

/// What a listing knows of a run.
pub fn without_trials(contents: &RunContents) -> Run {
    let (header, end) = (contents.header.clone(), contents.end.clone());
    Run { header, trials: Vec::new(), warnings: Vec::new(), end }
}

/// With `--redact` puts the number of a file that cannot be read in place of its name in the error about it, and returns it. Absent for other
/// errors, and without the option.
pub fn number_file(error: &mut StoreError) -> Option<String> {
    if !redaction::is_on() {
        return None;
    }
    if let Some(path) = error.unread_file() {
        let name = number(path);
        *path = numbered(path, &name);
        return Some(name);
    }
    // A change may read no record of the file: only a listing has shown then that it cannot be read.
    let path = error.unchanged_file()?;
    let name = known_number(path)?;
    *path = numbered(path, &name);
    Some(name)
}

/// The path of a file that cannot be read with the number in place of its name.
pub fn numbered(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(format!("{name}.{EXTENSION}"))
}

/// The path of a baseline file that cannot be read as errors show it: with `--redact` a number is in place of its name, as for a run file.
pub fn numbered_baseline(path: &Path) -> PathBuf {
    if redaction::is_on() { path.with_file_name(format!("{}.json", number(path))) } else { path.to_owned() }
}

/// The number of a file that cannot be read: `file-1`. It has the same one in all messages of a command.
pub fn number(path: &Path) -> String {
    // A thread that panicked has left whole paths.
    let mut files = NUMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = files.iter().position(|file| file == path);
    let place = known.unwrap_or_else(|| {
        files.push(path.to_owned());
        files.len() - 1
    });
    number_at(place)
}

/// The number that a file has; absent for one that no message or listing had to number.
fn known_number(path: &Path) -> Option<String> {
    let files = NUMBERED.lock().unwrap_or_else(PoisonError::into_inner);
    files.iter().position(|file| file == path).map(number_at)
}

/// The number of the file at a place among those that have one.
fn number_at(place: usize) -> String {
    format!("file-{}", place + 1)
}
