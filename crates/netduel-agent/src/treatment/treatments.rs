//! The changes that an agent has made and not yet undone. The core knows no kind of treatment: it makes a change, and keeps its
//! record with the guard first.
use std::path::PathBuf;
use std::time::Duration;

use netduel_model::plan::TreatmentAction;

use super::change::Change;
use super::command;
use super::device::{index_of, wait_for_carrier};
use super::error::TreatmentError;
use super::held_journal::HeldJournal;
use super::lifeline::{GuardCommand, Lifeline};
use super::protocol::Request;
use super::record::{self, Ready, Record};
use super::resource::HostResource;
use super::roots::Roots;
use crate::carrier::interface_with_carrier;

/// A change that is in force, or may be.
struct Applied {
    id: u64,
    undo: Record,
    change: Box<dyn Change>,
    /// The index of the interface that it restarts, when that had carrier before.
    restarted: Option<u32>,
}

/// The changes that this agent has made to its host and not yet undone.
pub struct Treatments {
    command: GuardCommand,
    /// Started with the first change.
    lifeline: Option<Lifeline>,
    applied: Vec<Applied>,
    last_id: u64,
    /// Journals of guards that were lost while changes were in force.
    orphans: Vec<HeldJournal>,
    roots: Roots,
}

impl Treatments {
    /// Nothing is changed yet, and no guard is started yet.
    pub fn new(guard: GuardCommand) -> Self {
        Self::with_roots(guard, Roots::default())
    }

    /// As [`Self::new`], with the kernel's files below other roots, which a test can write.
    pub fn with_roots(guard: GuardCommand, roots: Roots) -> Self {
        Self { command: guard, lifeline: None, applied: Vec::new(), last_id: 0, orphans: Vec::new(), roots }
    }

    /// How many changes are in force.
    pub fn applied(&self) -> usize {
        self.applied.len()
    }

    /// The file in which the guard keeps what is in force; absent without a guard, and where this host has no place for the file.
    pub fn journal(&self) -> Option<PathBuf> {
        let of_guard = self.lifeline.as_ref().and_then(Lifeline::journal);
        of_guard.or_else(|| self.orphans.last().map(|held| held.path().to_owned()))
    }

    /// Makes the changes in order. When one fails, those of this call are undone at once, the failed one included: a
    /// command may have done half of its work.
    ///
    /// # Errors
    /// The first failure, with what could not be undone after it.
    pub fn apply(&mut self, actions: &[TreatmentAction]) -> Result<(), TreatmentError> {
        self.apply_each(actions, record::treatment)
    }

    /// Lends these to a program that is not ours; they are restored with everything else.
    ///
    /// # Errors
    /// As [`Self::apply`], and when another program has one of them.
    pub fn hand_over(&mut self, resources: &[HostResource]) -> Result<(), TreatmentError> {
        self.apply_each(resources, |resource, _| record::resource(resource))
    }

    /// Keeps the undo of a change that the caller makes itself, after this: a command of `undo`, which runs when this is dropped, or by the
    /// guard when this process is gone. `what` names the change in messages; `limit` is that of the undo.
    ///
    /// # Errors
    /// When there is no guard; the change must not be made then.
    pub fn hold(&mut self, what: &str, undo: &[String], limit: Duration) -> Result<(), TreatmentError> {
        let (original, change) = command::hold(what, undo, limit)?;
        self.apply_one(original.into(), Box::new(change))
    }

    fn apply_each<T>(
        &mut self,
        all: &[T],
        prepare: impl Fn(&T, &Roots) -> Result<Ready, TreatmentError>,
    ) -> Result<(), TreatmentError> {
        let earlier = self.applied.len();
        for one in all {
            let made = prepare(one, &self.roots).and_then(|(undo, change)| self.apply_one(undo, change));
            made.or_else(|failed| self.not_applied(earlier, failed))?;
        }
        let restarted: Vec<u32> = self.applied[earlier..].iter().filter_map(|one| one.restarted).collect();
        wait_for_carrier(&restarted).or_else(|failed| self.not_applied(earlier, failed))
    }

    /// Undoes the changes after the first `earlier` ones because of an error.
    fn not_applied(&mut self, earlier: usize, failed: TreatmentError) -> Result<(), TreatmentError> {
        // Without a guard nothing may stay changed.
        let keep = if self.lifeline.is_some() { earlier } else { 0 };
        let left = self.undo_down_to(keep);
        if left.is_empty() {
            return Err(failed);
        }
        Err(TreatmentError::AndNotUndone { failed: Box::new(failed), left })
    }

    fn apply_one(&mut self, undo: Record, change: Box<dyn Change>) -> Result<(), TreatmentError> {
        self.last_id += 1;
        let id = self.last_id;
        let is_command = undo.mark().is_some();
        if let Err(failed) = self.keep(id, &Request::Keep { id, undo: undo.clone(), running: is_command }) {
            self.note_in_orphans(&Request::Forget { id });
            return Err(failed);
        }
        // It is on the list before it is made: a change that fails half-way is undone, too.
        let restarted = change.restarts().and_then(interface_with_carrier);
        self.applied.push(Applied { id, undo, change, restarted });
        self.applied.last().map_or(Ok(()), |applied| applied.change.make())?;
        if is_command {
            self.ask(id, &Request::Running { id, running: false })?;
        }
        Ok(())
    }

    /// Hands a record to the guard, which is started with the first change. A guard that was lost while nothing was in force is replaced:
    /// there is nothing that it could have undone.
    fn keep(&mut self, id: u64, request: &Request) -> Result<(), TreatmentError> {
        if self.lifeline.is_none() {
            self.lifeline = Some(Lifeline::start(&self.command)?);
        }
        let kept = self.ask(id, request);
        if self.lifeline.is_some() || !self.applied.is_empty() {
            return kept;
        }
        self.discard_orphans();
        self.lifeline = Some(Lifeline::start(&self.command)?);
        self.ask(id, request)
    }

    /// Reads whether the host still has every change; without `of_interfaces` those of an interface are left out.
    ///
    /// # Errors
    /// The changes that it has not, each with what it has instead, and those that cannot be read.
    pub fn read_back(&self, of_interfaces: bool) -> Result<(), Vec<TreatmentError>> {
        let changes = self.applied.iter().map(|applied| &applied.change);
        let read = changes.filter(|change| of_interfaces || !change.is_of_interface());
        let lost = read.filter_map(|change| change.read_back().err());
        let lost: Vec<TreatmentError> = lost
            .map(|error| match error {
                TreatmentError::NotTaken { doing, answered } => TreatmentError::NotKept { doing, answered },
                other => other,
            })
            .collect();
        if lost.is_empty() { Ok(()) } else { Err(lost) }
    }

    /// Undoes every change, the last first. A change that could not be undone stays on the list, to be tried again.
    ///
    /// # Errors
    /// What could not be undone; and, after everything was undone, that the guard was lost
    /// ([`TreatmentError::is_left_behind`] tells the two apart).
    pub fn undo_all(&mut self) -> Result<(), Vec<TreatmentError>> {
        let errors = self.undo_down_to(0);
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Undoes all but the first `keep` changes, the last first.
    fn undo_down_to(&mut self, keep: usize) -> Vec<TreatmentError> {
        let mut errors = Vec::new();
        let mut left = Vec::new();
        let mut restarted = Vec::new();
        while self.applied.len() > keep {
            let Some(applied) = self.applied.pop() else { break };
            let id = applied.id;
            restarted.extend(applied.restarted);
            // It may have returned with another index.
            let present = |_| index_of(applied.change.restarts()?).ok();
            restarted.extend(applied.restarted.and_then(present));
            let is_command = applied.undo.mark().is_some();
            if is_command {
                // Should this process die in the midst of the undo command, the guard must not run another one beside it, nor the next agent.
                let running = Request::Running { id, running: true };
                errors.extend(self.tell(id, &running));
                self.note_in_orphans(&running);
            }
            match applied.undo.undo() {
                Ok(()) => {
                    errors.extend(self.tell(id, &Request::Forget { id }));
                    self.note_in_orphans(&Request::Forget { id });
                }
                Err(failed) => {
                    if is_command {
                        self.note_in_orphans(&Request::Running { id, running: false });
                    }
                    errors.push(failed);
                    left.push(applied);
                }
            }
        }
        // The settings are restored in any case; a link that stays down is seen by the next trial.
        let _ = wait_for_carrier(&restarted);
        self.applied.extend(left.into_iter().rev());
        if self.applied.is_empty() {
            self.discard_orphans();
        }
        errors
    }

    /// Removes the journals of guards that were lost, when nothing is in force.
    fn discard_orphans(&mut self) {
        self.orphans.drain(..).for_each(HeldJournal::remove);
    }

    /// Notes in the journals of guards that were lost what has become of a change: what is left in them is undone by the next agent, which must not
    /// undo a change again over what was changed since.
    fn note_in_orphans(&mut self, request: &Request) {
        self.orphans.iter_mut().for_each(|held| held.note(request));
    }

    /// Sends a request to the guard; an error when there is no guard.
    fn ask(&mut self, id: u64, request: &Request) -> Result<(), TreatmentError> {
        self.tell(id, request).map_or(Ok(()), Err)
    }

    /// Sends a request to the guard, and notices when it is gone.
    fn tell(&mut self, id: u64, request: &Request) -> Option<TreatmentError> {
        let failed = self.lifeline.as_mut()?.ask(id, request).err()?;
        if matches!(failed, TreatmentError::GuardLost { .. }) {
            self.orphans.extend(self.lifeline.take().and_then(Lifeline::orphan));
        }
        Some(failed)
    }
}

impl Drop for Treatments {
    fn drop(&mut self) {
        // What fails here stays with the guard, which tries again and reports when the lifeline closes below.
        let _ = self.undo_all();
    }
}
