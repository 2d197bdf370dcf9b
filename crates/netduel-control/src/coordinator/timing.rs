//! Timeouts of the steps of a trial. Pure.
use netduel_model::failover::{PathEvent, PathEventKind, RETURN_DEADLINE_NS};
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Traffic, Workload};

use crate::protocol::{COMMAND_TIMEOUT_NS, Limits, STEP_TIMEOUT_NS};

/// Timeout of connecting all streams, nanoseconds.
pub(super) const CONNECT_TIMEOUT_NS: u64 = 10_000_000_000;
/// Time that a trial may take beyond its duration, nanoseconds.
pub(super) const DONE_MARGIN_NS: u64 = 15_000_000_000;

/// The longest time of a trial beside its traffic, when every step ends just before its deadline, nanoseconds.
const TRIAL_MARGIN_NS: u64 = 300_000_000_000;
/// The longest time between two trials, nanoseconds: restarts, storing, judging, and the same time once more for a pause of the user.
pub const PAUSE_MAX_NS: u64 = 600_000_000_000;

/// The longest time in which the provider changes the resources of an arm: both machines are stopped and started, nanoseconds.
const PROVIDER_MAX_NS: u64 = 2_400_000_000_000;
/// The longest time of a message, nanoseconds: a longer one is no quantity to its reader. 285 years.
const TIME_MAX_NS: u64 = 9_000_000_000_000_000_000;

/// When agents abandon their coordinator: later than any plan needs. A host may be idle for almost two blocks, when its arm comes first in
/// one and last in the next.
pub(super) fn agent_limits(plan: &ResolvedPlan, progress: Nanos) -> Limits {
    let of_arm = |arm: &Arm| {
        // Applied and undone at both ends.
        let has_provider = arm.treatments.iter().any(|treatment| treatment.action.is_of_provider());
        let treatments_ns = 4 * arm_timeout_ns(arm) + if has_provider { 2 * PROVIDER_MAX_NS } else { 0 };
        let of_trial = |workload: &Workload| workload.timing.duration.0.saturating_add(TRIAL_MARGIN_NS);
        let trials = arm.workloads.iter().map(of_trial).map(|time_ns| time_ns.saturating_add(treatments_ns));
        trials.fold(0, u64::saturating_add)
    };
    let block_ns = plan.arms.iter().map(of_arm).fold(0, u64::saturating_add);
    let idle_ns = block_ns.saturating_mul(2).saturating_add(2 * PAUSE_MAX_NS);
    let blocks_ns = block_ns.saturating_mul(u64::from(plan.design.blocks_max));
    let total_ns = blocks_ns.saturating_add(idle_ns).min(TIME_MAX_NS);
    Limits { total: Nanos(total_ns), idle: Nanos(idle_ns.min(TIME_MAX_NS)), progress }
}

/// Timeout of treatments, or of undoing them. Applying one may wait for an interface or a command, and undoing it, when another fails,
/// waits again.
pub(super) fn treatment_timeout_ns(treatments: &[TreatmentAction]) -> u64 {
    let wait_ns = |action: &TreatmentAction| match action {
        TreatmentAction::Vf { .. } | TreatmentAction::Pci { .. } => RETURN_DEADLINE_NS,
        TreatmentAction::Command { .. } => COMMAND_TIMEOUT_NS,
        _ => 0,
    };
    STEP_TIMEOUT_NS + 2 * treatments.iter().map(wait_ns).sum::<u64>()
}

/// Time in which an agent may still change its own interfaces after the traffic of a failover: an event in progress, and the undoing of
/// those before it.
pub(super) fn return_ns(traffic: &Traffic) -> u64 {
    let events = traffic.facts().events;
    let own = || events.iter().filter(|event| event.interface.is_some());
    let wait_ns = |event: &PathEvent| match event.kind {
        PathEventKind::Return => 0,
        PathEventKind::Command => COMMAND_TIMEOUT_NS,
        _ => RETURN_DEADLINE_NS,
    };
    let in_progress_ns = own().map(wait_ns).max();
    in_progress_ns
        .map_or(0, |longest_ns| longest_ns.max(RETURN_DEADLINE_NS) + own().map(wait_ns).sum::<u64>())
}

/// Timeout of restoring a host of a plan.
pub(super) fn restore_timeout_ns(plan: &ResolvedPlan) -> u64 {
    plan.arms.iter().map(arm_timeout_ns).max().unwrap_or(STEP_TIMEOUT_NS)
}

/// Timeout of the treatments of an arm at the end that takes longer.
fn arm_timeout_ns(arm: &Arm) -> u64 {
    let of_end = |role| treatment_timeout_ns(&arm.agent_treatments(role));
    of_end(Role::Client).max(of_end(Role::Server))
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::spec::Side;
    use netduel_model::units::{Bytes, PerSecond};
    use netduel_model::workload::{Direction, Failover, TcpEngine};

    use super::*;

    fn failover(events: &[(PathEventKind, Option<&str>)]) -> Traffic {
        let event = |(kind, interface): &(PathEventKind, Option<&str>)| PathEvent {
            at: Nanos(1),
            kind: *kind,
            on: Side::Client,
            interface: interface.map(str::to_owned),
            command: Vec::new(),
            undo: Vec::new(),
        };
        Traffic::Failover(Failover {
            streams: 1,
            direction: Direction::Down,
            block: Bytes(1),
            engine: TcpEngine::default(),
            congestion: None,
            size: Bytes(64),
            rate: PerSecond(1),
            events: events.iter().map(event).collect(),
        })
    }

    #[test]
    fn timeout_of_commands_is_longer_than_the_agent_runs_them_and_their_undo() {
        let words = |text: &str| vec![text.to_owned()];
        let command = TreatmentAction::Command { command: words("hang"), undo: words("true") };
        let three = treatment_timeout_ns(&[command.clone(), command.clone(), command]);
        assert!(three > 6 * COMMAND_TIMEOUT_NS, "three are run and undone: {three} ns");
    }

    #[test]
    fn timeout_of_treatments_is_longer_than_the_wait_for_interfaces() {
        let vf = TreatmentAction::Vf { interface: "vf0".to_owned() };
        let mtu = TreatmentAction::Mtu { interface: "va".to_owned(), mtu: 1500 };
        assert_eq!(treatment_timeout_ns(std::slice::from_ref(&mtu)), STEP_TIMEOUT_NS);
        let both = treatment_timeout_ns(&[vf.clone(), mtu, vf]);
        assert!(both > 4 * RETURN_DEADLINE_NS, "two are made and undone: {both} ns");

        let (down, back) = (PathEventKind::Down, PathEventKind::Return);
        let own = failover(&[(down, Some("vf0")), (back, Some("vf0"))]);
        // A return in progress at the end of the traffic, and its repetition when it failed.
        assert!(DONE_MARGIN_NS + return_ns(&own) > 2 * RETURN_DEADLINE_NS);
        assert_eq!(return_ns(&failover(&[(down, None), (back, None)])), 0, "the lab's are the coordinator's");
        // It runs at the end of the traffic, and then its undo.
        let command = failover(&[(PathEventKind::Command, Some("vf0"))]);
        assert!(DONE_MARGIN_NS + return_ns(&command) > 2 * COMMAND_TIMEOUT_NS);
    }
}
