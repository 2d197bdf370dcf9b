//! The records of changes that are in force: what a guard keeps in memory, and what a journal says when it is read again.
use super::error::TreatmentError;
use super::processes::end_marked;
use super::protocol::Request;
use super::record::Record;

/// Records in the order of their changes.
#[derive(Debug, Default)]
pub(super) struct InForce(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    id: u64,
    undo: Record,
    /// Whether a command of it may be at work.
    running: bool,
}

impl InForce {
    /// Records a request and returns its number.
    pub(super) fn note(&mut self, request: Request) -> u64 {
        match request {
            Request::Keep { id, undo, running } => {
                self.0.push(Entry { id, undo, running });
                id
            }
            Request::Running { id, running } => {
                self.0.iter_mut().filter(|entry| entry.id == id).for_each(|entry| entry.running = running);
                id
            }
            Request::Forget { id } => {
                self.0.retain(|entry| entry.id != id);
                id
            }
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no change is in force.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was changed, in words, the first change first.
    pub(super) fn what(&self) -> Vec<String> {
        self.0.iter().map(|entry| entry.undo.what()).collect()
    }

    /// Undoes all changes, the last first. Returns those that could not be undone. `note` adds to the journal what has become of a change.
    pub(super) fn undo_all(self, mut note: impl FnMut(&Request)) -> Vec<TreatmentError> {
        // A command that outlived its agent would go on changing what is undone here.
        self.0
            .iter()
            .filter(|entry| entry.running)
            .filter_map(|entry| entry.undo.mark())
            .for_each(end_marked);
        let mut left = Vec::new();
        for Entry { id, undo, running } in self.0.into_iter().rev() {
            let is_command = undo.mark().is_some();
            if is_command {
                // It outlives this process: the next one that undoes the change ends it first.
                note(&Request::Running { id, running: true });
            }
            let Err(failed) = undo.undo() else {
                note(&Request::Forget { id });
                continue;
            };
            if is_command {
                note(&Request::Running { id, running });
            }
            left.push(if running { perhaps_without_a_change(failed) } else { failed });
        }
        left
    }

    /// Each number, and whether a command of it may be at work.
    #[cfg(test)]
    pub(super) fn running(&self) -> Vec<(u64, bool)> {
        self.0.iter().map(|entry| (entry.id, entry.running)).collect()
    }
}

/// The failure of an undo after a command of its change was killed. Only the command itself knows whether it took effect before. An undo without a
/// change to undo fails for many programs, but a failure is no proof of that: the user decides.
fn perhaps_without_a_change(failed: TreatmentError) -> TreatmentError {
    match failed {
        TreatmentError::NotUndone { what, cause, by_hand } => {
            let cause = format!(
                "{cause}; netduel was killed while a command of this change ran, so the change may not be in force"
            );
            TreatmentError::NotUndone { what, cause, by_hand }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The notes about a command whose undo runs a script, and whether a file was there at each.
    fn notes(running: bool, script: &str, file: &Path) -> Vec<(String, bool)> {
        let undo = ["sh", "-c", script];
        let record =
            serde_json::json!({ "kind": "command", "command": ["true"], "undo": undo, "mark": "noted" });
        let mut in_force = InForce::default();
        in_force.note(Request::Keep { id: 7, undo: serde_json::from_value(record).unwrap(), running });
        let mut notes = Vec::new();
        in_force.undo_all(|note| notes.push((serde_json::to_string(note).unwrap(), file.exists())));
        notes
    }

    #[test]
    fn undo_of_a_command_is_noted_before_it_runs_and_when_it_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("undone");
        let running = |running| format!("{{\"running\":{{\"id\":7,\"running\":{running}}}}}");
        let undone = notes(false, &format!("touch {}", file.display()), &file);
        assert_eq!(undone, [(running(true), false), ("{\"forget\":{\"id\":7}}".to_owned(), true)]);
        // What failed has ended; a change whose command was killed stays marked.
        for was_killed in [false, true] {
            let failed = notes(was_killed, "exit 1", &file);
            assert_eq!(failed, [(running(true), true), (running(was_killed), true)]);
        }
    }

    #[test]
    fn failed_undo_of_a_change_whose_command_was_killed_says_that_there_may_be_nothing_to_undo() {
        let mut in_force = InForce::default();
        for (id, running) in [(1, false), (2, true), (3, true)] {
            in_force.note(Request::Keep { id, undo: Record::of_sysctl("net.no.such", "1"), running });
        }
        in_force.note(Request::Running { id: 3, running: false });
        let left = in_force.undo_all(|note| panic!("{note:?}, and nothing is undone"));
        // The last change is undone first.
        let says = left.iter().map(|failed| failed.to_string().contains("may not be in force"));
        assert_eq!(says.collect::<Vec<_>>(), [false, true, false], "{left:?}");
    }
}
