//! Judges a failover trial: every planned event was made, and the bytes used the interfaces that the events left in use.
use netduel_model::failover::PathEventRecord;
use netduel_model::lab::SYNTHETIC_INTERFACE;
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Arm, Launch, Pair, ResolvedPlan};
use netduel_model::trial::{Trial, TrialEnd, Validity};
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Workload};

/// The lab guest of a host of a pair; absent for other hosts.
fn guest<'a>(plan: &'a ResolvedPlan, pair: &Pair, role: Role) -> Option<&'a str> {
    match &plan.hosts.get(pair.host(role))?.launch {
        Launch::Lab { guest } => Some(guest),
        _ => None,
    }
}

/// Whether the lab makes the events of a pair.
pub(super) fn is_in_lab(plan: &ResolvedPlan, pair: &Pair) -> bool {
    [Role::Client, Role::Server].into_iter().all(|role| guest(plan, pair, role).is_some())
}

/// Judges a trial in which both interfaces carry bytes by design. It is valid when all events were made while the traffic ran, and when
/// between events the bytes of each guest used the interface that the events left in use.
pub(super) fn judge(
    plan: &ResolvedPlan,
    arm: &Arm,
    workload: &Workload,
    trial: &mut Trial,
    ends: [&TrialEnd; 2],
) {
    let of_lab = trial.lab_events.iter().flat_map(|events| &events.events);
    let of_agents =
        ends.iter().filter_map(|end| end.report.failover.as_ref()).flat_map(|report| &report.events);
    let failed = of_lab.chain(of_agents).find_map(|event| Some((event, event.error.as_ref()?)));
    if let Some((event, error)) = failed {
        let reason = format!("{} was not made: {error}", numbered(event));
        trial.validity = Validity::Failed { reason };
        return;
    }
    let Some(events) = &trial.lab_events else { return };
    // The lab and its guests are on one machine, so they share a clock.
    let started = ends[Role::Client as usize].report.failover.as_ref().map(|report| report.started_ns);
    let planned = workload.traffic.facts().events.len();
    if let Some(start_ns) = started
        && let Some(reason) = late(planned, &events.events, ended_ns(start_ns, workload.timing.duration))
    {
        trial.validity = Validity::Failed { reason };
        return;
    }
    let mut failures = Vec::new();
    for (role, side) in [(Role::Client, Side::Client), (Role::Server, Side::Server)] {
        let (Some(guest), Some(expected)) = (guest(plan, &arm.pair, role), arm.expected(role)) else {
            continue;
        };
        for (index, one) in events.moves(guest, side, expected, SYNTHETIC_INTERFACE).iter().enumerate() {
            failures.extend(
                one.failure()
                    .map(|why| format!("at the {role}, in part {} between events: {why}", index + 1)),
            );
        }
    }
    if !failures.is_empty() {
        trial.validity = Validity::WrongPath { reason: failures.join("; ") };
    }
}

/// `event 2 (return)`: events are counted from 1, as in the plan.
fn numbered(event: &PathEventRecord) -> String {
    format!("event {} ({})", u64::from(event.index) + 1, event.kind)
}

/// When traffic of this duration ended.
fn ended_ns(start_ns: u64, duration: Nanos) -> u64 {
    start_ns.saturating_add(duration.0)
}

/// Why the events did not affect the traffic, which ended at `end_ns`: on a busy machine they may be late.
fn late(planned: usize, events: &[PathEventRecord], end_ns: u64) -> Option<String> {
    let cause = "this machine is too busy: run fewer programs beside it, or set a longer duration";
    if let Some(event) = events.iter().find(|event| event.began_ns >= end_ns) {
        let late_ms = (event.began_ns - end_ns) / 1_000_000;
        return Some(format!(
            "{} was made {late_ms} ms after the traffic had ended; {cause}",
            numbered(event)
        ));
    }
    let made = events.len();
    (made < planned)
        .then(|| format!("the traffic had ended when {made} of {planned} events had been made; {cause}"))
}

#[cfg(test)]
mod tests {
    use netduel_model::failover::PathEventKind;

    use super::*;

    fn event(index: u32, began_ns: u64) -> PathEventRecord {
        PathEventRecord {
            index,
            kind: PathEventKind::Return,
            on: Side::Client,
            began_ns,
            ended_ns: began_ns + 1,
            before: Vec::new(),
            after: Vec::new(),
            error: None,
        }
    }

    /// The start is an agent's: a wrong one must not end the program.
    #[test]
    fn start_near_the_largest_time_is_judged() {
        assert_eq!(ended_ns(u64::MAX - 1, Nanos(5)), u64::MAX);
        assert_eq!(ended_ns(1, Nanos(5)), 6);
    }

    #[test]
    fn events_after_the_traffic_or_missing_ones_leave_no_valid_trial() {
        let end_ns = 5_000_000_000;
        assert_eq!(late(2, &[event(0, 1), event(1, end_ns - 1)], end_ns), None);
        let text = late(2, &[event(0, 1), event(1, end_ns + 12_000_000)], end_ns).unwrap();
        assert!(text.starts_with("event 2 (return) was made 12 ms after the traffic had ended"), "{text}");
        // The place is an agent's, as the start is.
        assert_eq!(numbered(&event(u32::MAX, 1)), "event 4294967296 (return)");
        let text = late(2, &[event(0, 1)], end_ns).unwrap();
        assert!(text.starts_with("the traffic had ended when 1 of 2 events had been made"), "{text}");
    }
}
