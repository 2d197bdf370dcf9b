//! Hosts that share a machine, and CPU time of each machine by class.
use std::collections::BTreeMap;

use netduel_model::ids::{ArmName, HostName};
use netduel_model::observation::{CoreTime, Observation};
use netduel_model::plan::{Arm, Launch, Pair, ResolvedPlan};
use netduel_model::run::RunHeader;
use netduel_model::trial::Trial;
use netduel_model::workload::Role;
use netduel_stats::summary::median;

use super::halves::Halves;
use crate::words::end_and_host;

/// The kernel counts CPU time in hundredths of a second. An observation shorter than ten of them has no CPU time, nanoseconds.
const CPU_TIME_MIN_NS: u64 = 100_000_000;

/// Whether an observation was long enough for CPU time.
pub fn has_cpu_time(observation: &Observation) -> bool {
    observation.wall_ns >= CPU_TIME_MIN_NS
}

/// CPU time of one machine over the valid trials of an arm.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The label in reports, for example `client a` or `client a and server b`.
    pub title: String,
    /// The cores in ascending order.
    pub cores: Vec<CoreShare>,
}

/// Time of a core by class, as fractions.
#[derive(Debug, Clone, Copy, Default)]
pub struct CoreShare {
    /// Core number.
    pub core: u16,
    /// User time.
    pub user: f64,
    /// System time.
    pub system: f64,
    /// Hardware interrupts.
    pub irq: f64,
    /// Soft interrupts.
    pub softirq: f64,
    /// Steal time: withheld by the hypervisor.
    pub steal: f64,
    /// Unaccounted: neither idle, nor in a class that the kernel counted.
    pub unaccounted: f64,
    /// Idle time.
    pub idle: f64,
    /// Packets that the network stack of the machine processed on it (`softnet_stat`), of any interface and program; absent where
    /// the kernel does not count them.
    pub packets: Option<u64>,
}

/// From this share on, a core is full.
const CORE_FULL: f64 = 0.9;

/// Whether a core with these shares of its time is full. Steal time was not available to the host.
pub(super) fn is_full(busy: f64, steal: f64) -> bool {
    busy + steal >= CORE_FULL
}

impl Machine {
    /// Whether at least one core is full.
    pub(super) fn has_full_core(&self) -> bool {
        self.cores.iter().any(|core| is_full(core.busy(), core.steal))
    }
}

impl CoreShare {
    /// The names of the classes except idle, in the order of [`Self::classes`], in which plots stack them.
    pub const CLASSES: [&str; 6] = ["user", "system", "interrupt", "softirq", "steal", "unaccounted"];

    /// Time of all classes except steal and idle.
    pub(super) fn busy(&self) -> f64 {
        self.user + self.system + self.irq + self.softirq + self.unaccounted
    }

    /// The shares of the classes except idle.
    pub fn classes(&self) -> [f64; 6] {
        [self.user, self.system, self.irq, self.softirq, self.steal, self.unaccounted]
    }
}

/// The trials of a run whose hosts share a machine.
#[derive(Debug, Clone)]
pub struct Machines {
    shared: BTreeMap<ArmName, Halves<bool>>,
}

impl Machines {
    /// From the snapshots; without them, from the launchers of the plan.
    pub fn new(plan: &ResolvedPlan, header: Option<&RunHeader>) -> Self {
        let of_arm = |arm: &Arm| Halves::new(plan, arm, |pair| are_one(plan, header, pair));
        Self { shared: plan.arms.iter().map(|arm| (arm.name.clone(), of_arm(arm))).collect() }
    }

    /// Whether both hosts of a trial are one machine.
    pub fn shared(&self, trial: &Trial) -> bool {
        self.shared.get(&trial.slot.arm).is_some_and(|halves| *halves.of_trial(trial))
    }

    /// Whether both hosts of all these trials of an arm are one machine; absent where they are in one half of a crossover only.
    pub(super) fn shared_in_all(&self, arm: &ArmName, trials: &[&Trial]) -> Option<bool> {
        self.shared.get(arm)?.of_all(trials).copied()
    }
}

/// Whether both hosts of a pair are one machine.
fn are_one(plan: &ResolvedPlan, header: Option<&RunHeader>, Pair { client, server }: &Pair) -> bool {
    let snapshots = header.and_then(|header| Some((header.hosts.get(client)?, header.hosts.get(server)?)));
    let with_boot_id = snapshots.filter(|(a, b)| a.boot_id.is_some() && b.boot_id.is_some());
    let here = |name: &HostName| {
        plan.hosts.get(name).is_some_and(|host| {
            !matches!(
                host.launch,
                Launch::Command { .. } | Launch::Ssh(_) | Launch::Paired { .. } | Launch::Bed { .. }
            )
        })
    };
    client == server
        || match with_boot_id {
            Some((a, b)) => a.same_machine(b),
            None => here(client) && here(server),
        }
}

/// The observations of a trial that cover each machine once; absent when a machine has none. On a shared machine the longer one
/// is used: it covers the traffic from its first to its last byte.
pub(super) fn observations(trial: &Trial, shared_machine: bool) -> Option<Vec<&Observation>> {
    let with_cores = |role| {
        trial
            .end(role)
            .map(|end| &end.observation)
            .filter(|observation: &&Observation| !observation.cores.is_empty())
    };
    let (client, server) = (with_cores(Role::Client), with_cores(Role::Server));
    if shared_machine {
        let longer = client.into_iter().chain(server).max_by_key(|observation| observation.wall_ns)?;
        Some(vec![longer])
    } else {
        Some(vec![client?, server?])
    }
}

/// CPU time by class on each machine of an arm, over all its valid trials. `hosts`: the words for client and server. Empty where the hosts are one
/// machine in one half of a crossover only: the times of one machine and of two have no sum.
pub(super) fn shares(arm: &Arm, hosts: &[String; 2], trials: &[&Trial], machines: &Machines) -> Vec<Machine> {
    let Some(shared_machine) = machines.shared_in_all(&arm.name, trials) else { return Vec::new() };
    let [client, server] = hosts;
    let ends = [(Role::Client, client), (Role::Server, server)].map(|(role, host)| end_and_host(role, host));
    let titles =
        if shared_machine { vec![format!("{}, one machine", ends.join(" and "))] } else { ends.to_vec() };
    let mut sums: Vec<BTreeMap<u16, (CoreTime, u64)>> = vec![BTreeMap::new(); titles.len()];
    let mut packets: Vec<BTreeMap<u16, u64>> = vec![BTreeMap::new(); titles.len()];
    for trial in trials {
        let Some(seen) = observations(trial, shared_machine) else { continue };
        for ((sum, packets), observation) in sums.iter_mut().zip(&mut packets).zip(seen) {
            for core in &observation.softnet {
                let sum: &mut u64 = packets.entry(core.core).or_default();
                *sum = sum.saturating_add(core.processed);
            }
            for core in &observation.cores {
                let (total, unaccounted_ns) =
                    sum.entry(core.core).or_insert((CoreTime { core: core.core, ..CoreTime::default() }, 0));
                *unaccounted_ns = unaccounted_ns.saturating_add(core.unaccounted_ns(observation.wall_ns));
                total.user_ns = total.user_ns.saturating_add(core.user_ns);
                total.system_ns = total.system_ns.saturating_add(core.system_ns);
                total.irq_ns = total.irq_ns.saturating_add(core.irq_ns);
                total.softirq_ns = total.softirq_ns.saturating_add(core.softirq_ns);
                total.steal_ns = total.steal_ns.saturating_add(core.steal_ns);
                total.idle_ns = total.idle_ns.saturating_add(core.idle_ns);
            }
        }
    }
    titles
        .into_iter()
        .zip(sums)
        .zip(packets)
        .map(|((title, cores), packets)| {
            let shares = cores.values().filter_map(|(core, unaccounted_ns)| share(core, *unaccounted_ns));
            let cores =
                shares.map(|core| CoreShare { packets: packets.get(&core.core).copied(), ..core }).collect();
            Machine { title, cores }
        })
        .filter(|machine| !machine.cores.is_empty())
        .collect()
}

fn share(core: &CoreTime, unaccounted_ns: u64) -> Option<CoreShare> {
    // Rounding within each trial adds up to no work.
    let total = core.total_ns(0).saturating_add(unaccounted_ns);
    let of = |part: u64| part as f64 / total as f64;
    (total > 0).then(|| CoreShare {
        core: core.core,
        user: of(core.user_ns),
        system: of(core.system_ns),
        irq: of(core.irq_ns),
        softirq: of(core.softirq_ns),
        steal: of(core.steal_ns),
        unaccounted: of(unaccounted_ns),
        idle: of(core.idle_ns),
        packets: None,
    })
}

/// The busy share of the busiest core of each trial (all classes except steal and idle), median over the trials; absent without
/// observations. Another core may be the busiest in another trial.
pub(super) fn busiest_core(trials: &[&Trial], machines: &Machines) -> Option<f64> {
    let of_trial = |trial: &&Trial| {
        let seen = observations(trial, machines.shared(trial))?.into_iter();
        let cores =
            seen.flat_map(|seen| seen.cores.iter().map(|core| (core, core.unaccounted_ns(seen.wall_ns))));
        let shares = cores.filter_map(|(core, unaccounted_ns)| share(core, unaccounted_ns));
        shares.map(|core| core.busy()).reduce(f64::max)
    };
    median(&trials.iter().filter_map(of_trial).collect::<Vec<f64>>())
}
