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
