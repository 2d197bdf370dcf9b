//! Causes in the hosts' processors: threads, the cores they were pinned to, packet processing on one core or from one queue.
use netduel_model::observation::{CoreTime, Observation};
use netduel_model::trial::TrialEnd;
use netduel_model::units::plural;
use netduel_model::warning::STEAL_SHARE_MAX;
use netduel_model::workload::Role;

use super::super::machine::is_full;
use super::super::queues::{self, PACKETS_MIN, carrier};
use super::Cause;
use super::evidence::{Evidence, Finding, HELD_UP};
use crate::total::Total;
use crate::words::percent;

/// From this share of the time on, a thread was saturated, on whichever cores it ran: it moves between cores, so no core need be full.
const THREAD_FULL: f64 = 0.85;
/// From this share of a host's packets on, one queue or core received all traffic of the test. The rest is other traffic of the host.
const ALL_PACKETS: f64 = 0.95;
/// From this share of the time on, waiting for a core limited a thread: one that also waits for other things, where buffers cover shorter
/// waits, and one of which each wait counts, because it waits for nothing else or is part of a closed loop.
const WAITED_MOST: f64 = 0.4;
const WAITED_PART: f64 = 0.2;
/// From this share of the time on, waiting for a core is part of the evidence.
const WAITED_MUCH: f64 = 0.1;
/// From this share of the time on, waiting for a core explains the p99 lateness of an open loop: the latest 1 % of its requests are due in
/// 1 % of the time.
const WAITED_BY_LATEST: f64 = 0.01;
/// From this share of the other busy time of a host on, that of the ends and of their packets, the CPU time of other processes explains
/// why threads waited: without them the ends would have had so much more. Below it the ends took the cores from themselves.
const OTHERS_MUCH: f64 = 0.25;
/// The share of a machine's packets on the core of one queue; the rest is other traffic.
const MOST_PACKETS: f64 = 0.8;
/// From this share of softirq time on, a saturated core of a single queue is saturated by packets. Programs get the rest, because
/// the kernel moves long packet processing to a kernel thread.
const SOFTIRQ_MUCH: f64 = 0.3;
/// From this share of datagrams dropped at the backlog of a core on, the core is the limit.
const BACKLOG_LOST: f64 = 0.01;

/// Load of a core, as shares of its time.
#[derive(Debug, Clone, Copy)]
struct Core {
    number: u16,
    busy: f64,
    /// Of the time that the kernel accounted for: a sample of all.
    softirq: f64,
    /// Softirq, as a share of the busy time that the kernel accounted for.
    softirq_of_busy: f64,
    stolen: f64,
}

impl Core {
    /// A core without idle time.
    fn is_full(&self) -> bool {
        is_full(self.busy, self.stolen)
    }

    /// For example `82 % busy, 14 % steal time`.
    fn words(&self) -> String {
        format!("{} busy{}", percent(self.busy), self.stolen_words())
    }

    fn stolen_words(&self) -> String {
        if self.stolen > STEAL_SHARE_MAX {
            format!(", {} steal time", percent(self.stolen))
        } else {
            String::new()
        }
    }
}

fn cores(observation: &Observation) -> Vec<Core> {
    let wall_ns = observation.wall_ns;
    let share = |core: &CoreTime| {
        let total = core.total_ns(wall_ns).max(1) as f64;
        let softirq = core.softirq_ns.saturating_add(core.irq_ns) as f64;
        Core {
            number: core.core,
            busy: core.busy_ns(wall_ns) as f64 / total,
            softirq: softirq / core.total_ns(0).max(1) as f64,
            softirq_of_busy: softirq / core.busy_ns(0).max(1) as f64,
            stolen: core.steal_ns as f64 / total,
        }
    };
    observation.cores.iter().map(share).collect()
}

fn busiest(observation: &Observation) -> Option<Core> {
    let load = |core: &Core| core.busy + core.stolen;
    cores(observation).into_iter().max_by(|a, b| load(a).total_cmp(&load(b)))
}

/// Load of all cores together.
fn whole(observation: &Observation) -> Core {
    let cores = cores(observation);
    let mean = |part: fn(&Core) -> f64| cores.iter().map(part).sum::<f64>() / cores.len().max(1) as f64;
    Core {
        number: 0,
        busy: mean(|core| core.busy),
        softirq: mean(|core| core.softirq),
        softirq_of_busy: mean(|core| core.softirq_of_busy),
        stolen: mean(|core| core.stolen),
    }
}

/// Mean shares of the time in which the threads of an end ran, and waited for a core. Runs of earlier versions lack the second.
fn thread_shares(end: &TrialEnd) -> (f64, f64) {
    let wall = end.observation.wall_ns.max(1) as f64;
    if let Some(usage) = end.report.thread_use {
        let of = |ns: u64| ns as f64 / wall / f64::from(usage.threads.max(1));
        return (of(usage.run_ns), of(usage.run_delay_ns));
    }
    let threads = end.report.streams.len().min(end.observation.cores.len().max(1)).max(1);
    let (user, system) = end.report.process_cpu_ns;
    (user.saturating_add(system) as f64 / wall / threads as f64, 0.0)
}

/// How many threads of an end on how many cores: `8 threads on 2 cores`.
fn threads_on_cores(end: &TrialEnd) -> Option<String> {
    let threads = end.report.thread_use.map(|usage| usage.threads).filter(|threads| *threads > 0)?;
    let cores = end.observation.cores.len() as u32;
    (cores > 0).then(|| format!("{} on {}", plural(threads, "thread"), plural(cores, "core")))
}

/// A thread, or waiting for cores, that limits the traffic.
#[derive(Debug, Clone)]
pub(super) struct BusyThreads {
    /// The cause and its evidence.
    pub finding: Finding,
    /// Whether the threads waited for a core long enough to be the reason.
    pub waited: bool,
}

/// The saturated core to which all threads of an end were pinned.
fn pinned_full(end: &TrialEnd) -> Option<Core> {
    let mut pinned: Vec<u16> = end.report.streams.iter().filter_map(|stream| stream.core).collect();
    pinned.sort_unstable();
    pinned.dedup();
    let [core] = pinned.as_slice() else { return None };
    cores(&end.observation).into_iter().find(|seen| seen.number == *core && seen.is_full())
}

/// Whether threads that ran for this share of the time moved between cores: no core was busy for so long.
fn has_moved(end: &TrialEnd, ran: f64) -> bool {
    // Without the times of the threads, the share is that of the whole process.
    let is_known = end.report.thread_use.is_some();
    let is_pinned = end.report.streams.iter().any(|stream| stream.core.is_some());
    is_known && !is_pinned && busiest(&end.observation).is_some_and(|core| ran > core.busy + core.stolen)
}

impl Evidence<'_> {
    /// The core of an end as a cause. Both ends of a round trip send and receive.
    fn core_of(&self, end: &TrialEnd) -> Cause {
        if let [Some(one), Some(other)] = [self.sender, self.receiver].map(pinned_full)
            && self.shared_machine
            && one.number == other.number
        {
            return Cause::SharedCore;
        }
        let is_request = self.workload.traffic.facts().unit.is_request();
        match (is_request, end.report.role) {
            (true, Role::Client) => Cause::ClientCore,
            (true, Role::Server) => Cause::ServerCore,
            (false, role) if role == self.sender.report.role => Cause::SenderCore,
            (false, _) => Cause::ReceiverCore,
        }
    }

    /// Saturated threads, and threads that waited for cores. A saturated sender comes before a saturated receiver, because the receiver
    /// may be busy-polling; not where the receive window was full.
    pub(super) fn threads(&self) -> Vec<BusyThreads> {
        let window_closed = self.tcp.is_some_and(|tcp| tcp.window >= HELD_UP);
        let mut ends = [self.sender, self.receiver];
        if window_closed {
            ends.reverse();
        }
        let mut found = Vec::new();
        for end in ends {
            let cause = self.core_of(end);
            if self.always_runs(end) {
                continue;
            }
            let name = end.report.role.word();
            let (ran, waited) = thread_shares(end);
            let is_full = ran + waited >= THREAD_FULL;
            let waited_min = if self.outstanding.is_some() || is_full { WAITED_PART } else { WAITED_MOST };
            let has_waited = waited >= waited_min;
            if !is_full && !has_waited {
                continue;
            }
            let (noun, verb) = match end.report.thread_use {
                Some(usage) if usage.threads == 1 => ("thread", "was"),
                _ => ("threads", "were"),
            };
            let waiting = if waited >= WAITED_MUCH {
                format!(" and {verb} runnable but not scheduled {} of the time", percent(waited))
            } else {
                String::new()
            };
            let pinned = pinned_full(end);
            let note = match pinned {
                Some(core) => Some(format!("pinned to core {}, {}", core.number, core.words())),
                None => threads_on_cores(end).filter(|_| waited >= WAITED_MUCH),
            };
            let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
            let moved =
                if has_moved(end, ran) { " (on changing cores, so that no core was as busy)" } else { "" };
            let words = format!("the {name}'s {noun} ran {} of the time{moved}{waiting}{note}", percent(ran));
            // A pinned core belongs to the end, even if other processes use it.
            let cause = if !has_waited || pinned.is_some() {
                cause
            } else if self.is_shared_with_others(end) {
                Cause::CpuContention
            } else if whole(&end.observation).is_full() {
                // Threads that wait on a machine without idle time, of which other processes used little, fill it themselves, together
                // with the other end on the same machine and with packet processing.
                Cause::AllCores
            } else {
                cause
            };
            found.push(BusyThreads { finding: (cause, words), waited: has_waited });
        }
        found
    }

    /// Whether the receiver's threads waited for a core, and never for data.
    pub(super) fn receiver_is_starved(&self) -> bool {
        let (ran, waited) = thread_shares(self.receiver);
        ran + waited >= THREAD_FULL && waited >= WAITED_PART && !self.always_runs(self.receiver)
    }

    /// Whether other processes used the CPU time of an end's host, enough for the warning `CPU contention` and beside what the ends used.
    fn is_shared_with_others(&self, end: &TrialEnd) -> bool {
        let is_here = |role: Role| self.shared_machine || role == end.report.role;
        let busy = whole(&end.observation).busy;
        self.others.iter().any(|(role, share)| is_here(*role) && *share >= (busy - *share) * OTHERS_MUCH)
    }

    /// Mean share of the time in which the client's threads waited for a core beside other processes, where the waits explain late requests:
    /// its threads, or the core they were pinned to, were not saturated.
    pub(super) fn client_waited(&self) -> Option<f64> {
        let client = [self.sender, self.receiver].into_iter().find(|end| end.report.role == Role::Client)?;
        let threads = client.report.thread_use?.threads;
        let (ran, waited) = thread_shares(client);
        let is_saturated = ran >= THREAD_FULL || pinned_full(client).is_some();
        // The wait of each thread delays requests.
        let is_long = waited * f64::from(threads) >= WAITED_BY_LATEST;
        (is_long && !is_saturated && self.is_shared_with_others(client)).then_some(waited)
    }

    /// The outstanding requests of a closed loop, with the waits for cores where these are known.
    pub(super) fn latency_bound(&self, outstanding: u32) -> Finding {
        let ends = [self.sender, self.receiver];
        let waits = ends.map(|end| end.report.thread_use.map(|_| thread_shares(end).1));
        let longest = waits.into_iter().flatten().reduce(f64::max);
        let waited = longest
            .map(|share| format!("; threads were runnable but not scheduled {} of the time", percent(share)));
        (
            Cause::RoundTrip,
            format!("{}{}", plural(outstanding, "outstanding request"), waited.unwrap_or_default()),
        )
    }

    /// All packets of the receiving host on one queue or core, and that core saturated.
    pub(super) fn single_queue(&self) -> Vec<Finding> {
        let (observation, name) = (&self.receiver.observation, self.receiver.report.role.word());
        let processed: u64 =
            observation.softnet.iter().map(|core| core.processed).fold(0, u64::saturating_add);
        let Some(most) = observation.softnet.iter().max_by_key(|core| core.processed) else {
            return Vec::new();
        };
        let share = most.processed as f64 / processed.max(1) as f64;
        if processed < PACKETS_MIN || share < MOST_PACKETS || observation.softnet.len() < 2 {
            return Vec::new();
        }
        let Some(core) = cores(observation).into_iter().find(|core| core.number == most.core) else {
            return Vec::new();
        };
        let dropped = self.sent > 0 && most.dropped as f64 >= self.sent as f64 * BACKLOG_LOST;
        let full = core.is_full() && core.softirq >= SOFTIRQ_MUCH;
        let Some(queue) = one_queue(observation) else { return Vec::new() };
        if !dropped && !full {
            return Vec::new();
        }
        let mut words = format!(
            "core {} processed {} of the packets at the {name}: {}, {} of the time in softirq; {queue}",
            core.number,
            percent(share),
            core.words(),
            percent(core.softirq)
        );
        if dropped {
            words = format!("{} packets dropped because the core's backlog was full; {words}", most.dropped);
        }
        vec![(Cause::SingleQueue, words)]
    }

    /// A core saturated by packet processing, or by any work on a host of one end.
    pub(super) fn full_core(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (end, name) in self.ends() {
            let Some(core) = busiest(&end.observation).filter(Core::is_full) else {
                continue;
            };
            let is_softirq = core.softirq_of_busy >= 0.5;
            // A busy-polling core is always full.
            if self.always_runs(end) && !is_softirq {
                continue;
            }
            // On a shared machine a saturated core belongs to both ends; only its softirq share shows the kind of work.
            if self.shared_machine && !is_softirq {
                continue;
            }
            let whose = if self.shared_machine { "this machine".to_owned() } else { format!("the {name}") };
            let words = format!(
                "core {} of {whose} was {} busy, {} of the busy time in softirq{}",
                core.number,
                percent(core.busy),
                percent(core.softirq_of_busy),
                core.stolen_words()
            );
            found.push((if is_softirq { Cause::SoftirqCore } else { self.core_of(end) }, words));
        }
        found
    }

    /// A machine with all cores saturated.
    pub(super) fn all_cores(&self) -> Vec<Finding> {
        // Load of other processes does not limit threads that never waited for a core.
        let waited = [self.sender, self.receiver]
            .map(|end| end.report.thread_use.is_none() || thread_shares(end).1 >= WAITED_MUCH);
        if !waited.contains(&true) {
            return Vec::new();
        }
        self.ends()
            .into_iter()
            .map(|(end, name)| (end, name, whole(&end.observation)))
            .filter(|(_, _, all)| all.is_full())
            .map(|(end, name, all)| {
                let whose =
                    if self.shared_machine { "this machine".to_owned() } else { format!("the {name}") };
                let cores = match end.observation.cores.len() {
                    1 => "the only core".to_owned(),
                    2 => "both cores".to_owned(),
                    more => format!("all {more} cores"),
                };
                (Cause::AllCores, format!("{cores} of {whose}: {} on average", all.words()))
            })
            .collect()
    }

    /// Load of cores where it is not the cause.
    pub(super) fn core_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (end, name) in self.ends() {
            if let Some(core) = busiest(&end.observation) {
                let whose = if self.shared_machine { "this machine" } else { name };
                words.push(format!("busiest core of {whose} {}", core.words()));
            }
            let stolen = whole(&end.observation).stolen;
            if stolen > STEAL_SHARE_MAX {
                words.push(format!("steal time: {} of the {name}'s CPU time", percent(stolen)));
            }
        }
        words
    }
}

/// Evidence that one receive queue received all packets: driver counters, or a single queue.
fn one_queue(observation: &Observation) -> Option<String> {
    let carrier = carrier(observation)?;
    let by_queue = observation.driver.get(&carrier.name).map(queues::received).unwrap_or_default();
    let all: u64 = by_queue.values().total();
    if let Some((queue, most)) =
        by_queue.iter().max_by_key(|(_, packets)| **packets).filter(|_| all >= PACKETS_MIN)
    {
        let share = *most as f64 / all as f64;
        return (share >= ALL_PACKETS).then(|| {
            format!("receive queue {queue} of {} received {} of them", carrier.name, percent(share))
        });
    }
    let nics = &observation.identity.as_ref()?.nics;
    let alone = !nics.is_empty() && nics.iter().all(|nic| nic.rx_queues == Some(1));
    alone.then(|| format!("{} has one receive queue", carrier.name))
}
