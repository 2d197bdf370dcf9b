//! The agent's part in a failover: a thread that takes this host's own interface away and gives it back, each at its time.
//!
//! What takes is a treatment with a guard of its own, so the interface is restored whichever process is killed.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netduel_model::failover::{PathEvent, PathEventKind, PathEventRecord};
use netduel_model::plan::TreatmentAction;
use netduel_model::workload::{Role, Workload};
use netduel_sys::clock;

use crate::error_chain::chain;
use crate::treatment::Treatments;

/// The events of a workload that this host makes itself, with their places in the plan's list. Those that name no interface are
/// the lab's.
pub fn of(workload: &Workload, role: Role) -> Vec<(u32, PathEvent)> {
    (0..)
        .zip(workload.traffic.facts().events)
        .filter(|(_, event)| event.interface.is_some() && event.on.includes(role))
        .map(|(index, event)| (index, event.clone()))
        .collect()
}

/// Events in progress.
pub struct PathEvents {
    thread: JoinHandle<(Vec<PathEventRecord>, Vec<String>)>,
    is_over: Arc<AtomicBool>,
}

impl PathEvents {
    /// Begins: the events are made at their times from now.
    pub fn begin(events: Vec<(u32, PathEvent)>, treatments: Treatments) -> std::io::Result<Self> {
        let origin_ns = clock::monotonic_ns();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("path-events".to_owned())
            .spawn(move || make(&events, origin_ns, treatments, &seen))?;
        Ok(Self { thread, is_over })
    }

    /// Makes no more of them and gives back what was taken. What was made, and what could not be given back.
    pub fn end(self) -> (Vec<PathEventRecord>, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn make(
    events: &[(u32, PathEvent)],
    origin_ns: u64,
    mut treatments: Treatments,
    is_over: &AtomicBool,
) -> (Vec<PathEventRecord>, Vec<String>) {
    let mut records = Vec::with_capacity(events.len());
    for (index, event) in events {
        let due_ns = origin_ns.saturating_add(event.at.0);
        if !clock::sleep_until_or(due_ns, is_over) {
            break;
        }
        let began_ns = clock::monotonic_ns();
        let error = perform(event, &mut treatments).err();
        records.push(PathEventRecord {
            index: *index,
            kind: event.kind,
            on: event.on,
            began_ns,
            ended_ns: clock::monotonic_ns(),
            before: Vec::new(),
            after: Vec::new(),
            error,
        });
    }
    // What was taken and not returned by an event stays taken for as long as traffic runs.
    clock::sleep_until_or(u64::MAX, is_over);
    (records, give_back(&mut treatments).err().into_iter().collect())
}

fn perform(event: &PathEvent, treatments: &mut Treatments) -> Result<(), String> {
    let interface = event.interface.clone().unwrap_or_default();
    let action = match event.kind {
        PathEventKind::Down => TreatmentAction::Vf { interface },
        PathEventKind::Remove => TreatmentAction::Pci { interface },
        PathEventKind::Return => return give_back(treatments),
        kind => return Err(format!("{kind} is not possible on a host that is no guest of the lab")),
    };
    treatments.apply(&[action]).map_err(|error| format!("failed to {}", chain(&error)))
}

fn give_back(treatments: &mut Treatments) -> Result<(), String> {
    if treatments.applied() == 0 {
        return Ok(());
    }
    let Err(problems) = treatments.undo_all() else { return Ok(()) };
    // A guard that was lost while everything was undone is nothing that a user has to mend.
    let left: Vec<String> = problems
        .iter()
        .filter(|problem| problem.is_left_behind())
        .map(|problem| format!("failed to {}", chain(problem)))
        .collect();
    if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
}
