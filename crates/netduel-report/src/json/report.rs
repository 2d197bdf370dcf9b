//! The document of a report: `netduel report --format json`, `netduel run --json` and `netduel demo --json`.
use netduel_model::run::{Run, RunHeader};
use netduel_model::workload::Role;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin, iso_8601};
use super::failover::Failover;
use super::figures::{Bottleneck, CounterReport, MetricReport};
use super::hosts::{Host, Pair};
use super::listing::{Note, RunEnd};
use super::packets::{Datagrams, PacketDirection};
use super::parts::{Expected, Latency, Point, QueuePackets, Stamps, Workload};
use super::plan::Plan;
use super::search::Searches;
use super::warning::Warning;
use crate::analysis::{self, Analysis, ArmAnalysis, Part, RequestCount, WorkloadAnalysis, added_by_load};
use crate::words;

/// The report of a run: `netduel report --format json`, `netduel run --json`, `netduel demo --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReportDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The run.
    pub run: RunInfo,
    /// Question of the plan.
    pub question: String,
    /// Arm that the others are compared with.
    pub baseline: Option<String>,
    /// Blocks with at least one trial that counts.
    pub blocks: u32,
    /// Blocks that the verdicts need before even a difference in every block is significant; null when the plan allows so many.
    pub blocks_needed: Option<u32>,
    /// Valid trials.
    pub trials_valid: u32,
    /// Excluded trials: failed, or on another path.
    pub trials_excluded: u32,
    /// The workloads, in the order of the plan.
    pub workloads: Vec<WorkloadReport>,
    /// What the counters prove about the path of each arm, in words.
    pub path_proofs: Vec<String>,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// The hosts at the beginning of the run, with their findings.
    pub hosts: Vec<Host>,
    /// The pairs of hosts, with their findings.
    pub pairs: Vec<Pair>,
    /// The plan with every default written out.
    pub plan: Plan,
    /// How the figures are counted.
    pub rules: Vec<Rule>,
}

impl Document for ReportDocument {
    const NAME: &'static str = "netduel.report";
    // 1: the first. 2: quartiles; medians of packet rates; `explanation`.
    // 3: `document` and `version`; typed parts in place of stored records; seed as text; units in every name; `requests` in place of `probes`.
    const VERSION: u32 = 3;
    const RELEASED: u32 = 2;
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunInfo {
    /// Name in the store.
    pub id: String,
    /// Program that ran it, with its version.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Start: ISO 8601, UTC.
    pub started: String,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ms: u64,
    /// Seed of the order of trials, as text because it may exceed 2^53.
    pub seed: String,
    /// How it ended; null while it runs and when it was killed.
    pub end: Option<RunEnd>,
    /// Title given on the command line.
    pub title: Option<String>,
    /// Notes given on the command line.
    pub notes: Vec<Note>,
    /// Settings of the plan that the command line overrides, as KEY=VALUE.
    pub overrides: Vec<String>,
}

/// How a figure is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rule {
    /// Name of the figure.
    pub name: String,
    /// The rule.
    pub rule: String,
}

/// A workload over all arms.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadReport {
    /// Name in the plan.
    pub name: String,
    /// The verdicts of each arm but the baseline, in words.
    pub answers: Vec<Answer>,
    /// The metrics, those with a verdict first.
    pub metrics: Vec<MetricReport>,
    /// Everything else of each arm, baseline first.
    pub arms: Vec<ArmReport>,
    /// Counters per unit of work.
    pub counters: Vec<CounterReport>,
    /// Counter analysis: what differs between the arms, in words.
    pub explanation: Vec<String>,
}

/// The verdicts of an arm in words. A failover with streams adds its throughput around events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// Arm.
    pub arm: String,
    /// The words.
    pub text: String,
}

/// An arm in one workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ArmReport {
    /// Arm.
    pub arm: String,
    /// Valid trials.
    pub trials: u32,
    /// The workload as this arm runs it.
    pub workload: Workload,
    /// Round trips of all valid trials; null for workloads without any.
    pub latency: Option<Latency>,
    /// Valid trials with a round trip in the steady window: only these are in `latency`.
    pub latency_trials: u32,
    /// Round trips split by kernel time stamps; null without stamps.
    pub stamps: Option<Stamps>,
    /// Parts of the round trips; empty when there are none.
    pub parts: Vec<PartReport>,
    /// Latency that load adds to the idle path; null for other workloads.
    pub added_by_load: Option<AddedByLoad>,
    /// Requests of round trips, or probes on the loaded path; null for other workloads, and for transactions.
    pub requests: Option<Requests>,
    /// Rate received over the time of a trial; empty for workloads of round trips.
    pub rate_series_bps: Vec<Point>,
    /// Median latency over the time of a trial; empty for workloads without round trips.
    pub latency_series_ns: Vec<Point>,
    /// CPU time by machine and core; empty where the hosts are one machine in one half of a crossover only.
    pub machines: Vec<Machine>,
    /// Interfaces that carried the bytes, by end.
    pub paths: Vec<Path>,
    /// Packets by queue, by end.
    pub queues: Vec<Queues>,
    /// Bottleneck of the trials; null without a valid trial.
    pub bottleneck: Option<Bottleneck>,
    /// Known limit of the hosts; null when none is known, and where the two halves of a crossover have different ones.
    pub expected: Option<Expected>,
    /// Calls that failed in the valid trials, the most frequent first; those of datagrams are also in `datagrams`, by trial.
    pub errors: Vec<FailedCalls>,
    /// Cores that hosts chose themselves.
    pub placements: Vec<Placement>,
    /// Datagrams of each direction of each valid trial of `udp-stream`.
    pub datagrams: Vec<Datagrams>,
    /// Packets of each direction of a packet workload.
    pub packets: Vec<PacketDirection>,
    /// The events of `failover`; null for other workloads.
    pub failover: Option<Failover>,
    /// The searches of a workload that searches for a rate; null for others.
    pub search: Option<Searches>,
}

/// Calls that failed in one way at one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailedCalls {
    /// Which end.
    pub role: Role,
    /// System call.
    pub call: String,
    /// Error of the operating system, what the program noted, or how much of a setting (`setsockopt`) was granted.
    pub error: String,
    /// Number of times, all valid trials.
    pub count: u64,
    /// Valid trials in which it failed.
    pub trials: u32,
}

/// A part of round trips, such as `connect`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PartReport {
    /// Key of the part.
    pub part: String,
    /// Name, for people.
    pub title: String,
    /// Its times.
    pub latency: Latency,
}

/// Latency that load adds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct AddedByLoad {
    /// Median under load minus the median of the idle path; below 0 when the loaded path was faster.
    pub p50_ns: f64,
    /// The same of the 99th percentiles.
    pub p99_ns: Option<f64>,
}

/// Requests of all valid trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Requests {
    /// Requests sent.
    pub sent: u64,
    /// Requests without a response in time: no percentile contains them.
    pub without_response: u64,
}

/// CPU time and packets of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Machine {
    /// The hosts of the plan on this machine, in words.
    pub machine: String,
    /// Its cores.
    pub cores: Vec<Core>,
}

/// CPU time of a core, as fractions of the time, and its packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Core {
    /// Number of the core.
    pub core: u16,
    /// In programs.
    pub user_ratio: f64,
    /// In system calls and kernel threads.
    pub system_ratio: f64,
    /// In hardware interrupts.
    pub hard_interrupt_ratio: f64,
    /// In softirqs.
    pub soft_interrupt_ratio: f64,
    /// Withheld by the hypervisor.
    pub stolen_ratio: f64,
    /// Neither idle, nor in a class that the kernel counted.
    pub unaccounted_ratio: f64,
    /// Idle.
    pub idle_ratio: f64,
    /// Packets that the machine's network stack processed on it, of any interface and program (`softnet_stat`); null where not counted.
    pub packets: Option<u64>,
}

/// Proof of the path of an arm at one end.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Path {
    /// Which end.
    pub role: Role,
    /// Host.
    pub host: String,
    /// Interface or kind of path that must carry the bytes.
    pub expected: String,
    /// Minimum share of the bytes that it carried in a valid trial; null without one.
    pub share_min_ratio: Option<f64>,
    /// Valid trials with a proof.
    pub proven: u32,
    /// Trials with a proof, valid or not.
    pub trials: u32,
    /// Bytes by interface, largest first.
    pub interfaces: Vec<InterfaceBytes>,
}

/// Bytes of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfaceBytes {
    /// Interface.
    pub interface: String,
    /// Bytes sent and received.
    pub bytes: u64,
}

/// Queues of an end, all valid trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Queues {
    /// Which end.
    pub role: Role,
    /// Host.
    pub host: String,
    /// Interface that carried most bytes.
    pub interface: String,
    /// Packets by receive queue; empty where the driver does not count by queue.
    pub received: Vec<QueuePackets>,
    /// Packets by transmit queue.
    pub sent: Vec<QueuePackets>,
}

/// Cores that a host chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Placement {
    /// Which end.
    pub role: Role,
    /// Cores; empty when none could be chosen.
    pub cores: Vec<u16>,
    /// Reason for the choice.
    pub reason: String,
    /// Valid trials with this choice.
    pub trials: u32,
}

impl ReportDocument {
    /// Of a run and its analysis.
    pub fn of(run: &Run, analysis: &Analysis, origin: &Origin) -> Self {
        let inspection = &analysis.inspection;
        let rule = |(name, rule): (&str, String)| Rule { name: name.to_owned(), rule };
        Self {
            envelope: Self::envelope(origin),
            run: RunInfo::of(&run.header, analysis),
            question: words::question(&analysis.plan),
            baseline: analysis.plan.baseline().map(|arm| arm.name.to_string()),
            blocks: analysis.blocks,
            blocks_needed: analysis.plan.too_few_blocks().map(|(_, needed)| needed),
            trials_valid: analysis.trials_valid,
            trials_excluded: analysis.trials_excluded,
            workloads: analysis.workloads.iter().map(|one| WorkloadReport::of(analysis, one)).collect(),
            path_proofs: words::proofs(analysis),
            warnings: warnings(analysis),
            hosts: inspection.hosts.iter().map(Host::of).collect(),
            pairs: inspection.pairs.iter().map(Pair::of).collect(),
            plan: Plan::of(&run.header.plan),
            rules: words::rules(&analysis.plan).into_iter().map(rule).collect(),
        }
    }
}

/// Every warning with the mark of its sentence in the other formats.
pub(super) fn warnings(analysis: &Analysis) -> Vec<Warning> {
    let marks = words::warning_marks(&words::warning_sentences(analysis));
    let warnings = analysis.warnings.iter().enumerate();
    warnings.map(|(index, one)| Warning::of(analysis, one, marks.get(&index).copied())).collect()
}

impl RunInfo {
    pub(super) fn of(header: &RunHeader, analysis: &Analysis) -> Self {
        Self {
            id: header.id.to_string(),
            program: header.program.clone(),
            command: header.command.clone(),
            started: iso_8601(header.started_unix_ms),
            started_unix_ms: header.started_unix_ms,
            seed: header.seed.to_string(),
            end: analysis.end.as_ref().map(RunEnd::of),
            title: header.annotations.title.clone(),
            notes: Note::all(&header.annotations.notes),
            overrides: header.annotations.overrides.clone(),
        }
    }
}

impl WorkloadReport {
    fn of(analysis: &Analysis, workload: &WorkloadAnalysis) -> Self {
        let answer = |arm: &ArmAnalysis| {
            let text = words::answer(workload, &arm.arm)?.characters();
            Some(Answer { arm: arm.arm.to_string(), text })
        };
        let judged = workload.judged.iter().map(|metric| MetricReport::of(analysis, workload, metric, true));
        let unjudged =
            workload.unjudged.iter().map(|metric| MetricReport::of(analysis, workload, metric, false));
        Self {
            name: workload.name.to_string(),
            answers: workload.arms.iter().skip(1).filter_map(answer).collect(),
            metrics: judged.chain(unjudged).collect(),
            arms: workload.arms.iter().map(ArmReport::of).collect(),
            counters: workload.counters.iter().map(CounterReport::of).collect(),
            explanation: workload.explanation.clone(),
        }
    }
}

impl ArmReport {
    fn of(arm: &ArmAnalysis) -> Self {
        let series = Point::all(&arm.series);
        // The series of a workload without bulk data is of its round trips.
        let (rate_series_bps, latency_series_ns) = match arm.workload.traffic.facts().bulk {
            Some(_) => (series, Point::all(&arm.latency_series)),
            None => (Vec::new(), series),
        };
        let requests = |RequestCount { sent, lost }: RequestCount| Requests { sent, without_response: lost };
        Self {
            arm: arm.arm.to_string(),
            trials: arm.trials,
            workload: Workload::of(&arm.workload),
            latency: arm.latency.as_ref().map(Latency::of),
            latency_trials: arm.latency_trials,
            stamps: arm.stamps.as_ref().map(Stamps::of),
            parts: arm.parts.iter().map(PartReport::of).collect(),
            added_by_load: added_by_load(&arm.parts, 50.0)
                .map(|p50_ns| AddedByLoad { p50_ns, p99_ns: added_by_load(&arm.parts, 99.0) }),
            requests: arm.requests.map(requests),
            rate_series_bps,
            latency_series_ns,
            machines: arm.machines.iter().map(Machine::of).collect(),
            paths: arm.paths.iter().map(Path::of).collect(),
            queues: arm.queues.iter().map(Queues::of).collect(),
            bottleneck: arm.limit.as_ref().map(Bottleneck::of_arm),
            expected: arm.expected.as_ref().map(Expected::of),
            errors: arm.errors.iter().map(FailedCalls::of).collect(),
            placements: arm.placements.iter().map(Placement::of).collect(),
            datagrams: arm.datagrams.iter().map(Datagrams::of).collect(),
            packets: arm.packets.iter().map(PacketDirection::of).collect(),
            failover: arm.failover.as_ref().map(Failover::of),
            search: arm.search.as_ref().map(Searches::of),
        }
    }
}

impl FailedCalls {
    fn of(failed: &analysis::FailedCall) -> Self {
        Self {
            role: failed.role,
            call: failed.call.clone(),
            error: failed.error.clone(),
            count: failed.count,
            trials: failed.trials,
        }
    }
}

impl PartReport {
    fn of(part: &Part) -> Self {
        Self {
            part: part.key.to_owned(),
            title: part.title.to_owned(),
            latency: Latency::of(&part.histogram),
        }
    }
}

impl Machine {
    fn of(machine: &analysis::Machine) -> Self {
        let core = |core: &analysis::CoreShare| Core {
            core: core.core,
            user_ratio: core.user,
            system_ratio: core.system,
            hard_interrupt_ratio: core.irq,
            soft_interrupt_ratio: core.softirq,
            stolen_ratio: core.steal,
            unaccounted_ratio: core.unaccounted,
            idle_ratio: core.idle,
            packets: core.packets,
        };
        Self { machine: machine.title.clone(), cores: machine.cores.iter().map(core).collect() }
    }
}

impl Path {
    fn of(path: &analysis::PathShares) -> Self {
        let bytes = |(interface, bytes): &(String, u64)| InterfaceBytes {
            interface: interface.clone(),
            bytes: *bytes,
        };
        Self {
            role: path.role,
            host: path.host.clone(),
            expected: path.expected.clone(),
            share_min_ratio: path.share_min,
            proven: path.proven,
            trials: path.trials,
            interfaces: path.bytes.iter().map(bytes).collect(),
        }
    }
}

impl Queues {
    fn of(queues: &analysis::QueueUse) -> Self {
        Self {
            role: queues.role,
            host: queues.host.clone(),
            interface: queues.interface.clone(),
            received: QueuePackets::all(&queues.received),
            sent: QueuePackets::all(&queues.sent),
        }
    }
}

impl Placement {
    fn of(placed: &analysis::Placed) -> Self {
        Self {
            role: placed.role,
            cores: placed.placement.cores.clone(),
            reason: placed.placement.reason.clone(),
            trials: placed.trials,
        }
    }
}
