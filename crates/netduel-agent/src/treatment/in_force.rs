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

    /// Undoes all changes, the last first, and calls `undone` for each. Returns those that could not be undone.
    pub(super) fn undo_all(self, mut undone: impl FnMut(u64)) -> Vec<TreatmentError> {
        // A command that outlived its agent would go on changing what is undone here.
        self.0
            .iter()
            .filter(|entry| entry.running)
            .filter_map(|entry| entry.undo.mark())
            .for_each(end_marked);
        let mut left = Vec::new();
        for entry in self.0.into_iter().rev() {
            match entry.undo.undo() {
                Ok(()) => undone(entry.id),
                // Only the command itself knows whether it took effect before it was killed. An undo without a change to undo fails
                // for many programs, but a failure is no proof of that: the user decides.
                Err(TreatmentError::NotUndone { what, cause, by_hand }) if entry.running => {
                    let cause = format!(
                        "{cause}; netduel was killed while a command of this change ran, so the change may not be in force"
                    );
                    left.push(TreatmentError::NotUndone { what, cause, by_hand });
                }
                Err(failed) => left.push(failed),
            }
        }
        left
    }

    /// Each number, and whether a command of it may be at work.
    #[cfg(test)]
    pub(super) fn running(&self) -> Vec<(u64, bool)> {
        self.0.iter().map(|entry| (entry.id, entry.running)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_undo_of_a_change_whose_command_was_killed_says_that_there_may_be_nothing_to_undo() {
        let mut in_force = InForce::default();
        for (id, running) in [(1, false), (2, true), (3, true)] {
            in_force.note(Request::Keep { id, undo: Record::of_sysctl("net.no.such", "1"), running });
        }
        in_force.note(Request::Running { id: 3, running: false });
        let left = in_force.undo_all(|id| panic!("{id} was undone"));
        // The last change is undone first.
        let says = left.iter().map(|failed| failed.to_string().contains("may not be in force"));
        assert_eq!(says.collect::<Vec<_>>(), [false, true, false], "{left:?}");
    }
}
