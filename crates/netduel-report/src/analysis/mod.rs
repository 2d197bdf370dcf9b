//! What a run says: figures by workload and arm, comparisons, doubts, and where a difference comes from.
//!
//! Only this module computes; the formats print what stands here and never derive a figure of their own.
mod counters;
mod counts;
mod datagrams;
mod dip;
mod doubts;
pub mod expected;
mod explanation;
mod failover;
mod figures;
mod identities;
mod limit;
mod lost;
mod machine;
mod packets;
mod parts;
mod paths;
mod placements;
mod queues;
mod responsiveness;
mod search;
mod series;
mod spread;
mod stamps;
mod sweep;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload::Workload;
use netduel_stats::histogram::Histogram;
use netduel_stats::sequential;
use netduel_stats::verdict::Judged;

use crate::inspect::Inspection;
use crate::words;

pub use counters::{Counter, CounterKind, Spread};
pub use datagrams::{DatagramWay, FlowPorts, Lost, Pacing, Packets, not_packets, of_trial as datagrams_of};
pub use doubts::busy_hosts;
pub use expected::Expected;
pub use failover::{ArmFailover, Dip, EventFigures, Line, Phase, WayFigures, quantile};
pub use figures::{histogram as round_trip_histogram, of_record as histogram_of, value_of};
pub use limit::{ArmLimit, Cause, Limit, limit_of, missed_rate};
pub use lost::LostPackets;
pub use machine::{CoreShare, Machine, Machines};
pub use packets::{ArmPackets, LineShare, PacketRates};
pub use parts::{Part, added_by_load};
pub use paths::{Moved, PathShares};
pub use placements::Placed;
pub use queues::QueueUse;
pub use search::ArmSearch;
pub use series::SeriesPoint;
pub use spread::{DpdkEnd, PacketSpread, Uneven};
pub use stamps::{Composition, OneWay, StampCost, Stamps, of_trial as stamps_of};
pub use sweep::{Sweep, SweepPoint, SweptBy};

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
    /// What the hosts are and what is wrong with them; empty while a run is under way.
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
    /// What its round trips are made of; empty when nothing is told apart.
    pub parts: Vec<Part>,
    /// Probes that no response came to, and probes in all, of a loaded path.
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
    /// The cores that ends chose for their threads; empty where none was asked to.
    pub placements: Vec<Placed>,
    /// Each direction of each valid trial of a `udp-stream`; empty for other traffic.
    pub datagrams: Vec<DatagramWay>,
    /// Packets in each direction that they went in; empty for workloads that are about anything else.
    pub packets: Vec<ArmPackets>,
    /// Which queues and cores worked, by end.
    pub queues: Vec<QueueUse>,
    /// What the sending hosts can give at most; absent where nobody says so.
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
        words::metric_title(self.metric, self.of_packets)
    }

    /// A value for people, with its unit.
    pub fn human(&self, value: f64) -> String {
        words::metric_value(self.metric, self.of_packets, value)
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

/// Derives everything from a run's records. `trials` holds all attempts; only the highest of each block counts. Without
/// `header` (a run under way) hosts are taken to share a machine when the plan starts both on this one.
pub fn analyse(
    plan: &ResolvedPlan,
    header: Option<&RunHeader>,
    trials: &[Trial],
    warnings: &[Warning],
    end: Option<&RunEnd>,
) -> Analysis {
    let counting: Vec<&Trial> = counting(trials).collect();
    let valid: Vec<&Trial> = counting.iter().copied().filter(|trial| trial.is_valid()).collect();
    let machines = Machines::new(plan, header);
    let mut workloads: Vec<WorkloadAnalysis> = plan
        .workloads
        .iter()
        .map(|name| workload(plan, header, name, [&valid, &counting], &machines))
        .collect();
    let spans = identities::Spans::of(plan, &counting);
    verdicts::judge_all(plan, &spans, &mut workloads);
    for workload in &mut workloads {
        workload.explanation = explanation::sentences(workload);
    }
    let mut all_warnings = warnings.to_vec();
    for derived in spans.warnings().into_iter().chain(doubts::derive(plan, &counting, &workloads, &machines))
    {
        if !all_warnings.iter().any(|known| doubts::same_subject(known, &derived)) {
            all_warnings.push(derived);
        }
    }
    Analysis {
        plan: plan.clone(),
        blocks: counting.iter().map(|trial| trial.slot.block).collect::<BTreeSet<_>>().len() as u32,
        trials_valid: valid.len() as u32,
        trials_left_out: (counting.len() - valid.len()) as u32,
        sweeps: sweep::of_run(plan, &workloads),
        workloads,
        warnings: all_warnings,
        inspection: header.map(|header| Inspection::of_plan(plan, &header.hosts)).unwrap_or_default(),
        end: end.cloned(),
    }
}

fn workload(
    plan: &ResolvedPlan,
    header: Option<&RunHeader>,
    name: &WorkloadName,
    [valid, counting]: [&[&Trial]; 2],
    machines: &Machines,
) -> WorkloadAnalysis {
    let mut arms = Vec::new();
    let mut by_arm = Vec::new();
    for arm in &plan.arms {
        let Some(settings) = arm.workload(name) else { continue };
        let of_arm = |trial: &&&Trial| trial.slot.arm == arm.name && &trial.slot.workload == name;
        let trials: Vec<&Trial> = valid.iter().filter(of_arm).copied().collect();
        let all: Vec<&Trial> = counting.iter().filter(of_arm).copied().collect();
        let shared = machines.shared(&arm.pair);
        let unknown = BTreeMap::new();
        let hosts = header.map_or(&unknown, |header| &header.hosts);
        let expected = expected::of(plan, hosts, arm, settings);
        let machine_shares = machine::shares(arm, &trials, machines);
        let ways = datagrams::ways(settings, &trials, shared);
        let queues = queues::of_arm(arm, &trials);
        let around = packets::Surroundings { arm, hosts, machines: &machine_shares, queues: &queues, shared };
        arms.push(ArmAnalysis {
            packets: packets::of_arm(settings, &trials, &ways, around),
            arm: arm.name.clone(),
            workload: settings.clone(),
            trials: trials.len() as u32,
            latency: figures::merged_latency(&trials),
            parts: parts::of_trials(&settings.traffic, &trials),
            probes_lost: parts::probes_lost(&settings.traffic, &trials),
            stamps: stamps::of(&trials),
            series: series::over_trials(settings, &trials),
            latency_series: series::of_probes(settings, &trials),
            intervals: trials.iter().flat_map(|trial| series::steady(settings, trial)).collect(),
            machines: machine_shares,
            // A failover moves the bytes by design; where they went is told with its events.
            paths: if settings.traffic.facts().events.is_empty() {
                paths::shares(arm, &all)
            } else {
                Vec::new()
            },
            placements: placements::of(&trials),
            datagrams: ways,
            queues,
            limit: limit::of_arm(settings, &trials, shared, expected.as_ref()),
            expected,
            failover: failover::of_arm(settings, &trials, shared)
                .map(|failover| ArmFailover { moved: paths::moved(plan, arm, &trials), ..failover }),
            search: search::of_arm(settings, &trials),
        });
        by_arm.push((arm, settings, trials));
    }
    let counters = counters::of_workload(&by_arm, machines);
    let [judged, unjudged] = metrics_of(&arms, &by_arm, machines);
    WorkloadAnalysis { name: name.clone(), arms, judged, unjudged, counters, explanation: Vec::new() }
}

/// The metrics of a workload: those that a verdict is about, and the others that its traffic yields.
fn metrics_of(
    arms: &[ArmAnalysis],
    by_arm: &[(&Arm, &Workload, Vec<&Trial>)],
    machines: &Machines,
) -> [Vec<MetricAnalysis>; 2] {
    let judged_metrics = arms.first().map(|first| first.workload.metrics.clone()).unwrap_or_default();
    let possible = arms.first().map_or(&[][..], |first| first.workload.traffic.facts().possible_metrics);
    let of_packets = arms.first().is_some_and(|arm| words::is_of_packets(&arm.workload.traffic));
    let table = |metric: Metric| MetricAnalysis {
        metric,
        of_packets,
        arms: by_arm
            .iter()
            .map(|(arm, settings, trials)| ArmValues {
                arm: arm.name.clone(),
                values: figures::by_block(metric, settings, trials, machines.shared(&arm.pair)),
                at_least: figures::at_least(metric, settings, trials, machines.shared(&arm.pair)),
            })
            .collect(),
        comparisons: Vec::new(),
    };
    let judged = judged_metrics.iter().copied().map(table).collect();
    let unjudged = Metric::ALL
        .into_iter()
        .filter(|metric| possible.contains(metric) && !judged_metrics.contains(metric))
        .map(table)
        .filter(|metric| metric.arms.iter().any(|arm| !arm.values.is_empty()))
        .collect();
    [judged, unjudged]
}

/// The trials that count for their slot, as [`Run::counting_trials`] chooses them.
fn counting(trials: &[Trial]) -> impl Iterator<Item = &Trial> {
    let mut attempts: BTreeMap<u32, u32> = BTreeMap::new();
    for trial in trials {
        let highest = attempts.entry(trial.slot.block).or_default();
        *highest = (*highest).max(trial.attempt);
    }
    trials.iter().filter(move |trial| attempts.get(&trial.slot.block) == Some(&trial.attempt))
}

impl Analysis {
    /// Whether every comparison has something to go by: at least one block in which both arms have a figure.
    pub fn verdict_possible(&self) -> bool {
        let mut comparisons = self
            .workloads
            .iter()
            .flat_map(|workload| &workload.judged)
            .flat_map(|metric| &metric.comparisons)
            .peekable();
        comparisons.peek().is_some() && comparisons.all(|comparison| !comparison.pairs.is_empty())
    }

    /// Whether every metric's interval is narrower than the plan asks, so that the run may stop. False while there is
    /// nothing to compare.
    pub fn precise_enough(&self) -> bool {
        let mut comparisons = self
            .workloads
            .iter()
            .flat_map(|workload| &workload.judged)
            .flat_map(|metric| metric.comparisons.iter().map(move |comparison| (metric.metric, comparison)))
            .peekable();
        comparisons.peek().is_some()
            && comparisons.all(|(metric, comparison)| {
                let precision = match metric.scale() {
                    Scale::Ratio => self.plan.design.precision.fraction(),
                    Scale::Difference => comparison.margin,
                };
                comparison.judged.as_ref().and_then(|judged| judged.estimate.as_ref()).is_some_and(
                    |estimate| sequential::precise_enough(estimate, verdicts::scale(metric), precision),
                )
            })
    }
}

/// Gives a run's counting trials in the order of the schedule; used by every table of trials.
pub(crate) fn in_schedule_order(run: &Run) -> Vec<&Trial> {
    let mut trials: Vec<&Trial> = run.counting_trials().collect();
    trials.sort_by_key(|trial| (trial.slot.block, trial.slot.position));
    trials
}
