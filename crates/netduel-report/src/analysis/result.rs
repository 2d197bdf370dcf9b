//! What is derived from a run: figures by workload and arm, comparisons, warnings. Types only; nothing is computed here.
use std::collections::BTreeSet;

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::warning::Warning;
use netduel_model::workload::Workload;
use netduel_stats::histogram::Histogram;
use netduel_stats::verdict::Judged;

use super::counters::Counter;
use super::datagrams::DatagramWay;
use super::expected::Expected;
use super::failover::ArmFailover;
use super::limit::ArmLimit;
use super::machine::Machine;
use super::packets::ArmPackets;
use super::parts::Part;
use super::paths::PathShares;
use super::placements::Placed;
use super::queues::QueueUse;
use super::search::ArmSearch;
use super::series::SeriesPoint;
use super::stamps::Stamps;
use super::sweep::Sweep;
use crate::inspect::Inspection;
use crate::words::metric::{metric_title, metric_value};

/// Everything that is derived from a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The plan that was run.
    pub plan: ResolvedPlan,
    /// Blocks of which at least one trial counts.
    pub blocks: u32,
    /// Trials that enter verdicts.
    pub trials_valid: u32,
    /// Trials that count for their slot but failed or took another path.
    pub trials_left_out: u32,
    /// Each workload of the plan, in its order.
    pub workloads: Vec<WorkloadAnalysis>,
    /// Workloads of packets that differ in one thing, seen together.
    pub sweeps: Vec<Sweep>,
    /// Doubts: those that were stored, then those derived from the data.
    pub warnings: Vec<Warning>,
    /// Facts and findings of the hosts; empty while a run is in progress.
    pub inspection: Inspection,
    /// How the run ended; absent when it goes on or its coordinator was killed.
    pub end: Option<RunEnd>,
}

/// One workload over all arms.
#[derive(Debug, Clone)]
pub struct WorkloadAnalysis {
    /// Its name in the plan.
    pub name: WorkloadName,
    /// Each arm, baseline first.
    pub arms: Vec<ArmAnalysis>,
    /// The metrics that the verdict is about, in the plan's order.
    pub judged: Vec<MetricAnalysis>,
    /// Other metrics that the traffic yields; shown without a verdict, so that they do not weaken the others.
    pub unjudged: Vec<MetricAnalysis>,
    /// Counters per unit of work, for "where it comes from".
    pub counters: Vec<Counter>,
    /// Where the difference comes from, one statement each, from the counters alone.
    pub explanation: Vec<String>,
}

/// One arm in one workload, apart from the metrics.
#[derive(Debug, Clone)]
pub struct ArmAnalysis {
    /// Which arm.
    pub arm: ArmName,
    /// The workload as this arm runs it.
    pub workload: Workload,
    /// Valid trials.
    pub trials: u32,
    /// Every round trip of all valid trials; absent when the workload has none.
    pub latency: Option<Histogram>,
    /// The parts of its round trips; empty for workloads without parts.
    pub parts: Vec<Part>,
    /// Probes without a response and total probes of a loaded path.
    pub probes_lost: Option<(u64, u64)>,
    /// What time stamps say of the round trips; absent when the workload has none.
    pub stamps: Option<Stamps>,
    /// Median and range over trials, by time within the trial: bit/s, or nanoseconds for round trips.
    pub series: Vec<SeriesPoint>,
    /// The same of the round trips of a workload that moves bulk data beside them, nanoseconds; empty for others.
    pub latency_series: Vec<SeriesPoint>,
    /// Bit/s received in each interval of the steady windows of all valid trials; empty for round trips alone, which have a histogram.
    pub intervals: Vec<f64>,
    /// Where CPU time went, by machine and core.
    pub machines: Vec<Machine>,
    /// Which interfaces carried the bytes, by end.
    pub paths: Vec<PathShares>,
    /// The cores that ends selected for their threads; empty without `pin = "auto"`.
    pub placements: Vec<Placed>,
    /// Each direction of each valid trial of a `udp-stream`; empty for other traffic.
    pub datagrams: Vec<DatagramWay>,
    /// Packets in each direction that they went in; empty for workloads that are about anything else.
    pub packets: Vec<ArmPackets>,
    /// Which queues and cores worked, by end.
    pub queues: Vec<QueueUse>,
    /// The known rate limit of the sending hosts.
    pub expected: Option<Expected>,
    /// What limited its valid trials; absent without one.
    pub limit: Option<ArmLimit>,
    /// What each event of a failover cost; absent for other traffic.
    pub failover: Option<ArmFailover>,
    /// What searches for a rate did and found; absent for other workloads. Then the figures of traffic are those of one step each.
    pub search: Option<ArmSearch>,
}

/// One metric over all arms.
#[derive(Debug, Clone)]
pub struct MetricAnalysis {
    /// Which metric.
    pub metric: Metric,
    /// Whether packets are what its workload is about: each datagram is one then.
    pub of_packets: bool,
    /// Its values by arm, baseline first.
    pub arms: Vec<ArmValues>,
    /// Every other arm against the baseline.
    pub comparisons: Vec<Comparison>,
}

impl MetricAnalysis {
    /// The words for people.
    pub fn title(&self) -> &'static str {
        metric_title(self.metric, self.of_packets)
    }

    /// A value for people, with its unit.
    pub fn human(&self, value: f64) -> String {
        metric_value(self.metric, self.of_packets, value)
    }

    /// Whether its values are packets per second.
    pub fn is_packet_rate(&self) -> bool {
        let is_rate = matches!(
            self.metric,
            Metric::DatagramRate | Metric::PacketRate | Metric::NoDropRate | Metric::PartialDropRate
        );
        self.of_packets && is_rate
    }
}

/// The values of one metric on one arm.
#[derive(Debug, Clone)]
pub struct ArmValues {
    /// Which arm.
    pub arm: ArmName,
    /// Block and value of each valid trial that has the metric, by block.
    pub values: Vec<(u32, f64)>,
    /// Blocks whose value is what it was at least: streams that had not recovered when the trial ended.
    pub at_least: BTreeSet<u32>,
}

impl ArmValues {
    /// The values alone.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }
}

/// One arm against the baseline in one metric.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Which arm.
    pub arm: ArmName,
    /// Blocks in which both arms have a value: block, the baseline's value, this arm's value.
    pub pairs: Vec<(u32, f64, f64)>,
    /// Whether some of the baseline's values, and some of this arm's, are what it was at least.
    pub at_least: [bool; 2],
    /// The smallest difference that matters: a fraction of the ratio, or an absolute difference in the metric's unit.
    pub margin: f64,
    /// Verdict and interval; absent for a metric that is not judged.
    pub judged: Option<Judged>,
}
