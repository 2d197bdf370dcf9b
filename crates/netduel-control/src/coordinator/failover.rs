//! Whether a failover was what its plan says: every event was made, and the bytes moved where the events left them.
use netduel_model::lab::SYNTHETIC_INTERFACE;
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Arm, Launch, Pair, ResolvedPlan};
use netduel_model::trial::{Trial, TrialEnd, Validity};
use netduel_model::workload::Role;

/// The guest of the lab that a host of a pair is; absent for other hosts.
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

/// Judges a trial in which both interfaces carry bytes by design: it counts when all events were made, and when between them the
/// bytes of each guest went through the interface that they left in use.
pub(super) fn judge(plan: &ResolvedPlan, arm: &Arm, trial: &mut Trial, ends: [&TrialEnd; 2]) {
    let of_lab = trial.lab_events.iter().flat_map(|events| &events.events);
    let of_agents =
        ends.iter().filter_map(|end| end.report.failover.as_ref()).flat_map(|report| &report.events);
    let failed = of_lab.chain(of_agents).find_map(|event| Some((event, event.error.as_ref()?)));
    if let Some((event, error)) = failed {
        let reason = format!("the event {} ({}) was not made: {error}", event.index, event.kind);
        trial.validity = Validity::Failed { reason };
        return;
    }
    let Some(events) = &trial.lab_events else { return };
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
