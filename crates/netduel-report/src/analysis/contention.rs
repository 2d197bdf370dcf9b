//! CPU time of other processes, and CPU time that the hypervisor withheld, during trials.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::observation::CoreTime;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::warning::{OTHERS_SHARE_MAX, STEAL_SHARE_MAX};
use netduel_model::workload::{Role, Workload};

use super::machine;

/// Hosts on which other processes used so much CPU time that CPU metrics are overstated, with their share. Empty for generators outside
/// netduel (the kernel's, testpmd): they are not other processes, but their time cannot be separated from that of others.
pub fn busy_hosts(workload: &Workload, trial: &Trial, shared_machine: bool) -> Vec<(Role, f64)> {
    if workload.traffic.facts().packets.is_some_and(|packets| packets.engine.is_external()) {
        return Vec::new();
    }
    let neighbour = if shared_machine { trial.server.as_ref() } else { None };
    [Role::Client, Role::Server]
        .into_iter()
        .filter(|role| *role == Role::Client || !shared_machine)
        .filter_map(|role| Some((role, others_share(trial.end(role)?, neighbour)?)))
        .filter(|(_, share)| *share > OTHERS_SHARE_MAX)
        .collect()
}

/// The largest share of the CPU time of a host of a trial that other processes used, where that is CPU contention.
pub fn contention_of(workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<f64> {
    busy_hosts(workload, trial, shared_machine).into_iter().map(|(_, share)| share).reduce(f64::max)
}

/// Blocks whose trial had CPU contention, with that share.
pub(super) fn contended_blocks(
    workload: &Workload,
    trials: &[&Trial],
    shared_machine: bool,
) -> BTreeMap<u32, f64> {
    let share = |trial: &&Trial| Some((trial.slot.block, contention_of(workload, trial, shared_machine)?));
    trials.iter().filter_map(share).collect()
}

/// Blocks in whose trial the hypervisor withheld so much CPU time of a host that it is a warning.
pub(super) fn stolen_blocks(trials: &[&Trial]) -> BTreeSet<u32> {
    let has_stolen = |trial: &&&Trial| {
        [Role::Client, Role::Server]
            .into_iter()
            .filter_map(|role| stolen_share(trial.end(role)?))
            .any(|share| share > STEAL_SHARE_MAX)
    };
    trials.iter().filter(has_stolen).map(|trial| trial.slot.block).collect()
}

/// The share of a host's CPU time that the hypervisor withheld.
pub(super) fn stolen_share(end: &TrialEnd) -> Option<f64> {
    let cores = &end.observation.cores;
    let stolen = cores.iter().map(|core| core.steal_ns).fold(0, u64::saturating_add);
    let total = cores.iter().map(CoreTime::total_ns).fold(0, u64::saturating_add);
    (total > 0).then(|| stolen as f64 / total as f64)
}

/// The share of a host's CPU time that belongs to neither an agent nor interrupts. `neighbour`: the other end, when it runs on
/// the same cores. Helper commands and the coordinator are negligible.
pub(super) fn others_share(end: &TrialEnd, neighbour: Option<&TrialEnd>) -> Option<f64> {
    let cores = &end.observation.cores;
    let total = cores.iter().map(CoreTime::total_ns).fold(0, u64::saturating_add);
    let programs = cores.iter().flat_map(|core| [core.user_ns, core.system_ns]).fold(0, u64::saturating_add);
    let agents = [Some(end), neighbour]
        .into_iter()
        .flatten()
        .flat_map(|end| [end.observation.process.user_ns, end.observation.process.system_ns])
        .fold(0, u64::saturating_add);
    (total > 0 && machine::has_cpu_time(&end.observation))
        .then(|| programs.saturating_sub(agents) as f64 / total as f64)
}
