//! The events of a failover: a thread performs each at its time. On a host it removes the host's own interface and restores it; the
//! coordinator performs those of its lab by the same thread.
//!
//! What removes is a treatment with a guard of its own, so the interface is restored whichever process is killed.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netduel_model::failover::{PathEvent, PathEventKind, PathEventRecord};
use netduel_model::plan::TreatmentAction;
use netduel_model::workload::{Role, Workload};
use netduel_sys::clock;

use crate::error_chain::chain;
use crate::treatment::{Treatments, left_behind};

/// The events of a workload that this host makes itself, with their places in the plan's list. Those that name no interface are
/// the lab's.
pub fn of(workload: &Workload, role: Role) -> Vec<(u32, PathEvent)> {
    (0..)
        .zip(workload.traffic.facts().events)
        .filter(|(_, event)| event.interface.is_some() && event.on.includes(role))
        .map(|(index, event)| (index, event.clone()))
        .collect()
}

/// Performs the events of a failover.
pub trait Performer: Send + 'static {
    /// The result of [`Self::finish`].
    type Finished: Send + 'static;
    /// Performs an event now; `index` is its place in the plan's list.
    fn perform(&mut self, index: u32, event: &PathEvent) -> PathEventRecord;
    /// Called once, when no more events are to be performed.
    fn finish(self) -> Self::Finished;
}

/// A thread that performs events.
pub struct EventThread<P: Performer> {
    thread: JoinHandle<(Vec<PathEventRecord>, P::Finished)>,
    is_over: Arc<AtomicBool>,
}

impl<P: Performer> EventThread<P> {
    /// Starts it: the events, each with its place in the plan's list, are performed at their times from `origin_ns` of the monotonic clock.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(events: Vec<(u32, PathEvent)>, origin_ns: u64, performer: P) -> std::io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("path-events".to_owned())
            .spawn(move || perform_all(&events, origin_ns, performer, &seen))?;
        Ok(Self { thread, is_over })
    }

    /// Stops further events. Returns those that were performed.
    pub fn end(self) -> (Vec<PathEventRecord>, P::Finished) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn perform_all<P: Performer>(
    events: &[(u32, PathEvent)],
    origin_ns: u64,
    mut performer: P,
    is_over: &AtomicBool,
) -> (Vec<PathEventRecord>, P::Finished) {
    let mut records = Vec::with_capacity(events.len());
    for (index, event) in events {
        if !clock::sleep_until_or(origin_ns.saturating_add(event.at.0), is_over) {
            break;
        }
        records.push(performer.perform(*index, event));
    }
    // What was removed and not restored by an event stays removed for as long as traffic runs.
    clock::sleep_until_or(u64::MAX, is_over);
    (records, performer.finish())
}

/// Performs the events of this host's own interfaces. The result is what could not be restored.
pub struct OwnInterfaces(pub Treatments);

impl Performer for OwnInterfaces {
    type Finished = Vec<String>;

    fn perform(&mut self, index: u32, event: &PathEvent) -> PathEventRecord {
        let began_ns = clock::monotonic_ns();
        let error = perform(event, &mut self.0).err();
        PathEventRecord {
            index,
            kind: event.kind,
            on: event.on,
            began_ns,
            ended_ns: clock::monotonic_ns(),
            before: Vec::new(),
            after: Vec::new(),
            error,
        }
    }

    fn finish(mut self) -> Vec<String> {
        restore(&mut self.0).err().into_iter().collect()
    }
}

fn perform(event: &PathEvent, treatments: &mut Treatments) -> Result<(), String> {
    let interface = event.interface.clone().unwrap_or_default();
    let action = match event.kind {
        PathEventKind::Down => TreatmentAction::Vf { interface },
        PathEventKind::Remove => TreatmentAction::Pci { interface },
        PathEventKind::Command => {
            TreatmentAction::Command { command: event.command.clone(), undo: event.undo.clone() }
        }
        PathEventKind::Return => return restore(treatments),
        kind => return Err(format!("{kind} is not possible on a host that is no guest of the lab")),
    };
    treatments.apply(&[action]).map_err(|error| format!("failed to {}", chain(&error)))
}

fn restore(treatments: &mut Treatments) -> Result<(), String> {
    if treatments.applied() == 0 {
        return Ok(());
    }
    let journal = treatments.journal();
    let Err(problems) = treatments.undo_all() else { return Ok(()) };
    // A guard that was lost while everything was undone is nothing that a user has to mend.
    let left: Vec<String> = problems
        .iter()
        .filter(|problem| problem.is_left_behind())
        .map(|problem| left_behind(problem, journal.as_deref()))
        .collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}
