//! The lab's part in a failover: each event is requested from the keeper at its time, while the coordinator serves the agents.
use netduel_agent::path_events::{EventThread, Performer};
use netduel_lab::{Lab, LabError};
use netduel_model::failover::{LabEvents, LinkBytes, PathEvent, PathEventRecord};
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Launch, Pair, ResolvedPlan};
use netduel_model::workload::Role;
use netduel_sys::clock;

use crate::exit::chain;

/// Events in progress. [`Self::end`] restores the path; when this process is killed the lab ends with it.
pub struct PathEvents {
    thread: EventThread<Keeper>,
    start: Vec<LinkBytes>,
}

impl PathEvents {
    /// Starts: the events happen at their times from now.
    pub fn begin(lab: &Lab, plan: &ResolvedPlan, pair: &Pair, events: &[PathEvent]) -> Result<Self, String> {
        let origin_ns = clock::monotonic_ns();
        let guests =
            events.iter().map(|event| guests(plan, pair, event.on)).collect::<Result<_, String>>()?;
        let failed = |error: LabError| format!("failed to {}", chain(&error));
        // A connection of its own: the keeper serves each client separately.
        let keeper = Keeper { lab: Lab::connect(lab.name()).map_err(failed)?, guests };
        let start = lab.bytes().map_err(failed)?;
        let events = (0..).zip(events.iter().cloned()).collect();
        let thread = EventThread::begin(events, origin_ns, keeper)
            .map_err(|error| format!("failed to start a thread for the events of the path: {error}"))?;
        Ok(Self { thread, start })
    }

    /// Stops further events, and restores the path.
    pub fn end(self, lab: &Lab) -> Result<LabEvents, String> {
        let (events, ()) = self.thread.end();
        let end = lab.bytes();
        lab.restore()
            .map_err(|error| format!("failed to restore the path after the events: {}", chain(&error)))?;
        let end = end.map_err(|error| format!("failed to {}", chain(&error)))?;
        Ok(LabEvents { start: self.start, events, end })
    }
}

/// Performs events by requests to the lab's keeper.
struct Keeper {
    lab: Lab,
    /// The guests of each event, by its place in the plan's list.
    guests: Vec<Vec<String>>,
}

impl Performer for Keeper {
    type Finished = ();

    fn perform(&mut self, index: u32, event: &PathEvent) -> PathEventRecord {
        let guests = self.guests.get(index as usize).map(Vec::as_slice).unwrap_or_default();
        let mut records = guests.iter().map(|guest| perform(&self.lab, index, event, guest));
        let first = records.next().expect("an event is on at least one guest");
        records.fold(first, |first, next| PathEventRecord {
            ended_ns: next.ended_ns,
            after: next.after,
            error: first.error.or(next.error),
            ..first
        })
    }

    fn finish(self) {}
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
