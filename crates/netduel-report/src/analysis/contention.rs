//! CPU time of other processes, and CPU time that the hypervisor withheld, during trials.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::warning::{OTHERS_SHARE_MAX, STEAL_SHARE_MAX};
use netduel_model::workload::{Role, Workload};

use super::machine::{self, Machines};

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
    machines: &Machines,
) -> BTreeMap<u32, f64> {
    let share = |trial: &&Trial| {
        let share = contention_of(workload, trial, machines.shared(trial))?;
        Some((trial.slot.block, share))
    };
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
    let total = end.observation.core_time_ns();
    (total > 0).then(|| stolen as f64 / total as f64)
}

/// Less user time than this is a sampling error: the kernel counts it by ticks of 1 to 10 ms.
const USER_TIME_MIN_NS: u64 = 50_000_000;

/// The share of a host's CPU time that belongs to neither an agent nor interrupts, a lower bound. `neighbour`: the other end, when it runs on
/// the same cores. Helper commands and the coordinator are negligible.
///
/// Most kernels charge softirq time to the process that it interrupts (`account_system_index_time`, `cputime_adjust` in
/// kernel/sched/cputime.c), while the cores count it apart: then the system time of the agents exceeds that of the cores, and hides as much time
/// of others. User time has no such part.
fn others_share(end: &TrialEnd, neighbour: Option<&TrialEnd>) -> Option<f64> {
    let cores = &end.observation.cores;
    let total = end.observation.core_time_ns();
    let agents = || [Some(end), neighbour].into_iter().flatten().map(|end| &end.observation.process);
    let sum = |times: &mut dyn Iterator<Item = u64>| times.fold(0, u64::saturating_add);
    let of_user = sum(&mut cores.iter().map(|core| core.user_ns))
        .saturating_sub(sum(&mut agents().map(|process| process.user_ns)));
    let of_both = sum(&mut cores.iter().flat_map(|core| [core.user_ns, core.system_ns]))
        .saturating_sub(sum(&mut agents().flat_map(|process| [process.user_ns, process.system_ns])));
    let others = if of_user < USER_TIME_MIN_NS { of_both } else { of_both.max(of_user) };
    (total > 0 && machine::has_cpu_time(&end.observation)).then(|| others as f64 / total as f64)
}
