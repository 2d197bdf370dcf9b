//! The lab's part in a failover: a thread that requests each event from the keeper at its time, while the coordinator serves the
//! agents.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netduel_lab::{Lab, LabError};
use netduel_model::failover::{LabEvents, LinkBytes, PathEvent, PathEventRecord};
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Launch, Pair, ResolvedPlan};
use netduel_model::workload::Role;
use netduel_sys::clock;

use crate::exit::chain;

/// Events in progress. [`Self::end`] restores the path; when this process is killed the lab ends with it.
pub struct PathEvents {
    thread: JoinHandle<Vec<PathEventRecord>>,
    is_over: Arc<AtomicBool>,
    start: Vec<LinkBytes>,
}

/// An event and its guests, by name.
type Order = (u32, PathEvent, Vec<String>);

impl PathEvents {
    /// Starts: the events happen at their times from now.
    pub fn begin(lab: &Lab, plan: &ResolvedPlan, pair: &Pair, events: &[PathEvent]) -> Result<Self, String> {
        let origin_ns = clock::monotonic_ns();
        let orders = (0..).zip(events).map(|(index, event)| {
            let guests = guests(plan, pair, event.on)?;
            Ok((index, event.clone(), guests))
        });
        let orders: Vec<Order> = orders.collect::<Result<_, String>>()?;
        let failed = |error: LabError| format!("failed to {}", chain(&error));
        // A connection of its own: the keeper serves each client separately.
        let hands = Lab::connect(lab.name()).map_err(failed)?;
        let start = lab.bytes().map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = std::thread::Builder::new()
            .name("path-events".to_owned())
            .spawn(move || make(&hands, origin_ns, orders, &seen))
            .map_err(|error| format!("failed to start a thread for the events of the path: {error}"))?;
        Ok(Self { thread, is_over, start })
    }

    /// Stops further events, and restores the path.
    pub fn end(self, lab: &Lab) -> Result<LabEvents, String> {
        self.is_over.store(true, Ordering::Relaxed);
        let events = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let end = lab.bytes();
        lab.restore()
            .map_err(|error| format!("failed to restore the path after the events: {}", chain(&error)))?;
        let end = end.map_err(|error| format!("failed to {}", chain(&error)))?;
        Ok(LabEvents { start: self.start, events, end })
    }
}

/// The guests at one end of a pair, or at both.
fn guests(plan: &ResolvedPlan, pair: &Pair, on: Side) -> Result<Vec<String>, String> {
    let roles: &[Role] = match on {
        Side::Client => &[Role::Client],
        Side::Server => &[Role::Server],
        Side::Both => &[Role::Client, Role::Server],
    };
    roles
        .iter()
        .map(|role| match plan.hosts.get(pair.host(*role)).map(|host| &host.launch) {
            Some(Launch::Lab { guest }) => Ok(guest.clone()),
            _ => Err(format!(
                "host {} is no guest of the lab, so the lab cannot take its path",
                pair.host(*role)
            )),
        })
        .collect()
}

fn make(lab: &Lab, origin_ns: u64, orders: Vec<Order>, is_over: &AtomicBool) -> Vec<PathEventRecord> {
    let mut records = Vec::with_capacity(orders.len());
    for (index, event, guests) in orders {
        let due_ns = origin_ns.saturating_add(event.at.0);
        if !clock::sleep_until_or(due_ns, is_over) {
            return records;
        }
        let mut record: Option<PathEventRecord> = None;
        for guest in guests {
            let done = perform(lab, index, &event, &guest);
            match &mut record {
                Some(first) => {
                    (first.ended_ns, first.after) = (done.ended_ns, done.after);
                    first.error = first.error.take().or(done.error);
                }
                None => record = Some(done),
            }
        }
        records.extend(record);
    }
    records
}

fn perform(lab: &Lab, index: u32, event: &PathEvent, guest: &str) -> PathEventRecord {
    let asked_ns = clock::monotonic_ns();
    let (kind, on) = (event.kind, event.on);
    match lab.perform(kind, guest) {
        Ok(done) => PathEventRecord {
            index,
            kind,
            on,
            began_ns: done.began_ns,
            ended_ns: done.ended_ns,
            before: done.before,
            after: done.after,
            error: None,
        },
        Err(error) => PathEventRecord {
            index,
            kind,
            on,
            began_ns: asked_ns,
            ended_ns: clock::monotonic_ns(),
            before: Vec::new(),
            after: Vec::new(),
            error: Some(format!("failed to {}", chain(&error))),
        },
    }
}
