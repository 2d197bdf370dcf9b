//! Types of everything that is derived from a run: values by workload and arm, comparisons, warnings. No figure of a trial is computed here.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::warning::Warning;
use netduel_model::workload::{WorkUnit, Workload};
use netduel_stats::histogram::Histogram;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Verdict};

use super::bound::Bound;
use super::counters::Counter;
use super::datagrams::DatagramDirection;
use super::errors::FailedCall;
use super::expected::Expected;
use super::failover::ArmFailover;
use super::limit::ArmLimit;
use super::machine::Machine;
use super::packets::ArmPackets;
use super::parts::Part;
use super::paths::PathShares;
use super::placements::Placed;
use super::queues::QueueUse;
use super::requests::RequestCount;
use super::search::ArmSearch;
use super::series::SeriesPoint;
use super::stamps::Stamps;
use super::sweep::Sweep;
use crate::inspect::Inspection;
use crate::words::metric::{is_packet_rate, metric_value};

/// Everything that is derived from a run.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The plan of the run.
    pub plan: ResolvedPlan,
    /// Number of blocks with at least one counting trial.
    pub blocks: u32,
    /// Number of trials that enter verdicts.
    pub trials_valid: u32,
    /// Number of counting trials that failed or used another path.
    pub trials_excluded: u32,
    /// The workloads in the order of the plan.
    pub workloads: Vec<WorkloadAnalysis>,
    /// Packet workloads that differ in one parameter.
    pub sweeps: Vec<Sweep>,
    /// Warnings: stored ones, then those derived from the data.
    pub warnings: Vec<Warning>,
    /// Facts and findings of the hosts; empty while a run is in progress.
    pub inspection: Inspection,
    /// How the run ended; absent while it is in progress, or when its coordinator was killed.
    pub end: Option<RunEnd>,
}

/// One workload over all arms.
#[derive(Debug, Clone)]
pub struct WorkloadAnalysis {
    /// Its name in the plan.
    pub name: WorkloadName,
    /// The arms, baseline first.
    pub arms: Vec<ArmAnalysis>,
    /// The metrics with verdicts, in the order of the plan.
    pub judged: Vec<MetricAnalysis>,
    /// Metrics without verdicts, so that they do not weaken the others.
    pub unjudged: Vec<MetricAnalysis>,
    /// Counters per unit of work, for the section "Counter analysis".
    pub counters: Vec<Counter>,
    /// Notes derived from the counters, one sentence each.
    pub explanation: Vec<String>,
}

impl WorkloadAnalysis {
    /// Whether its parts are the times that connections took to be established. A trial without a round trip has them, too.
    pub fn has_connect_time(&self) -> bool {
        self.arms.iter().flat_map(|arm| &arm.parts).any(Part::is_connect_time)
    }
}

/// One arm in one workload, without its metrics.
#[derive(Debug, Clone)]
pub struct ArmAnalysis {
    /// The arm.
    pub arm: ArmName,
    /// The workload as this arm runs it.
    pub workload: Workload,
    /// Number of valid trials.
    pub trials: u32,
    /// Blocks in which it has a trial, valid or not.
    pub blocks: BTreeSet<u32>,
    /// Blocks whose valid trial had no round trip in the steady window.
    pub stalled: BTreeSet<u32>,
    /// Blocks in whose valid trial other processes used so much CPU time that a warning says so, with the share of the CPU time
    /// of the host.
    pub contended: BTreeMap<u32, f64>,
    /// Blocks in whose valid trial the hypervisor withheld so much CPU time that a warning says so.
    pub stolen: BTreeSet<u32>,
    /// Histogram of all round trips of all valid trials; absent for workloads without round trips.
    pub latency: Option<Histogram>,
    /// Number of valid trials with a round trip in that histogram.
    pub latency_trials: u32,
    /// The smallest number of round trips of a valid trial among those; absent without one.
    pub round_trips_min: Option<u64>,
    /// The parts of its round trips; empty for workloads without parts.
    pub parts: Vec<Part>,
    /// Requests of all valid trials, or probes of a loaded path; absent without round trips, and for transactions.
    pub requests: Option<RequestCount>,
    /// Calls that failed in its valid trials, the most frequent first.
    pub errors: Vec<FailedCall>,
    /// The timestamp analysis; absent for workloads without timestamps.
    pub stamps: Option<Stamps>,
    /// Median and range over trials, by time within the trial: bit/s, or nanoseconds for round trips.
    pub series: Vec<SeriesPoint>,
    /// The same for probes beside bulk data, nanoseconds; empty without probes.
    pub latency_series: Vec<SeriesPoint>,
    /// Received bit/s in each interval of the steady windows of all valid trials; empty for workloads without bulk data.
    pub intervals: Vec<f64>,
    /// The busy share of the busiest core of a trial, median over the valid trials; absent without observations.
    pub busiest_core: Option<f64>,
    /// CPU time by machine and core; empty where the hosts are one machine in one half of a crossover only.
    pub machines: Vec<Machine>,
    /// Interfaces that carried the bytes, by end.
    pub paths: Vec<PathShares>,
    /// The cores that ends selected for their threads; empty without `pin_client` or `pin_server` = "auto".
    pub placements: Vec<Placed>,
    /// Each direction of each valid trial of a `udp-stream`; empty for other traffic.
    pub datagrams: Vec<DatagramDirection>,
    /// Packets by direction; empty for workloads that do not measure packets.
    pub packets: Vec<ArmPackets>,
    /// Queues and cores that processed the packets, by end.
    pub queues: Vec<QueueUse>,
    /// The known rate limit of the sending hosts; absent where the two halves of a crossover have different ones.
    pub expected: Option<Expected>,
    /// The bottleneck of the valid trials; absent without one.
    pub limit: Option<ArmLimit>,
    /// Effects of each event of a failover; absent for other workloads.
    pub failover: Option<ArmFailover>,
    /// Steps and results of rate searches; absent for other workloads. With a search, the other figures are each of one step.
    pub search: Option<ArmSearch>,
}

/// One metric over all arms.
#[derive(Debug, Clone)]
pub struct MetricAnalysis {
    /// The metric.
    pub metric: Metric,
    /// The unit of work of the workload.
    pub unit: WorkUnit,
    /// Its values by arm, baseline first.
    pub arms: Vec<ArmValues>,
    /// The other arms against the baseline.
    pub comparisons: Vec<Comparison>,
}

impl MetricAnalysis {
    /// The label in reports.
    pub fn title(&self) -> &'static str {
        self.metric.title_in(self.unit)
    }

    /// A formatted value with its unit.
    pub fn human(&self, value: f64) -> String {
        metric_value(self.metric, self.unit, value)
    }

    /// Whether all its values are bounds: they have no interval, however many there are.
    pub fn has_only_bounds(&self) -> bool {
        self.arms.iter().all(|arm| {
            !arm.values.is_empty() && arm.values.iter().all(|(block, _)| arm.at_least.contains(block))
        })
    }

    /// Whether an arm of a comparison has valid trials and no value, because the result of each was the worst: no block has a pair, however many
    /// there are.
    pub fn is_never_paired(&self, comparison: &Comparison) -> bool {
        let own = self.arms.iter().filter(|arm| arm.arm == comparison.arm);
        let mut both = self.arms.first().into_iter().chain(own);
        both.any(|arm| arm.values.is_empty() && !arm.without.is_empty())
    }

    /// Whether its values are packets per second.
    pub fn is_packet_rate(&self) -> bool {
        is_packet_rate(self.metric, self.unit)
    }
}

/// The values of a metric on one arm.
#[derive(Debug, Clone)]
pub struct ArmValues {
    /// The arm.
    pub arm: ArmName,
    /// Block and value of each valid trial that has the metric, ordered by block.
    pub values: Vec<(u32, f64)>,
    /// Blocks whose value is a bound, as [`super::bound_of`] says.
    pub at_least: BTreeSet<u32>,
    /// Blocks whose valid trial has no value because its result was the worst there is.
    pub without: BTreeSet<u32>,
}

impl ArmValues {
    /// Without values.
    pub fn new(arm: ArmName) -> Self {
        Self { arm, values: Vec::new(), at_least: BTreeSet::new(), without: BTreeSet::new() }
    }

    /// Adds the value of a block, and what it bounds, in place of that of an earlier attempt.
    pub fn insert(&mut self, block: u32, (value, bound): (f64, Option<Bound>)) {
        let place = self.values.partition_point(|(known, _)| *known < block);
        match self.values.get_mut(place) {
            Some((known, earlier)) if *known == block => *earlier = value,
            _ => self.values.insert(place, (block, value)),
        }
        self.without.remove(&block);
        self.at_least.remove(&block);
        self.at_least.extend(bound.map(|_| block));
    }

    /// Adds a block whose valid trial has no value because its result was too bad for one, in place of the value of an earlier attempt.
    pub fn insert_without(&mut self, block: u32) {
        self.values.retain(|(known, _)| *known != block);
        self.at_least.remove(&block);
        self.without.insert(block);
    }

    /// Whether the value of a block is a bound.
    pub fn bound_in(&self, metric: Metric, block: u32) -> Option<Bound> {
        self.at_least.contains(&block).then(|| Bound::of_values(metric))
    }

    /// Whether a block has a value.
    pub fn has_value_in(&self, block: u32) -> bool {
        self.values.binary_search_by_key(&block, |(own, _)| *own).is_ok()
    }

    /// The blocks that have a value, or lack it because the result was the worst.
    pub fn result_blocks(&self) -> BTreeSet<u32> {
        self.values.iter().map(|(block, _)| *block).chain(self.without.iter().copied()).collect()
    }

    /// What its values bound together; absent where all are exact and no valid trial lacks one because its result was the worst.
    pub fn bound(&self, metric: Metric) -> Option<Bound> {
        match (self.without.is_empty(), self.at_least.is_empty()) {
            (false, _) => Some(Bound::of_worst(metric)),
            (true, false) => Some(Bound::of_values(metric)),
            (true, true) => None,
        }
    }

    /// The quantile `share`, and what it bounds: the true values may be in another order, or some are missing that are worse than all others.
    /// Absent without a value, and where both may be, so that the true quantile is smaller or larger: such a number would say nothing.
    pub fn quantile(&self, metric: Metric, share: f64) -> Option<(f64, Option<Bound>)> {
        let quantile = summary::quantile(&self.numbers(), share)?;
        let value = |(block, value): &(u32, f64)| (*value, self.at_least.contains(block));
        let values: Vec<(f64, bool)> = self.values.iter().map(value).collect();
        let of_known = Bound::of_values(metric).of_quantile(&values, share);
        let worst = Bound::of_worst(metric);
        let of_missing = (!self.without.is_empty() && worst.moves_quantile(share)).then_some(worst);
        match (of_known, of_missing) {
            (Some(known), Some(missing)) if known != missing => None,
            (known, missing) => Some((quantile, known.or(missing))),
        }
    }

    /// The values without their blocks.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }
}

/// One arm against the baseline in one metric.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The arm.
    pub arm: ArmName,
    /// Blocks in which both arms have a value: block, value of the baseline, value of the arm. In a crossover each is of two blocks, one of each
    /// half: the first block, and the means of both.
    pub pairs: Vec<(u32, f64, f64)>,
    /// Whether it is of a crossover.
    pub is_crossover: bool,
    /// Whether some values of the baseline, and some of the arm, are bounds: of those in a pair, or in one if no result were too bad for a value.
    pub at_least: [bool; 2],
    /// Valid trials of the baseline, and of the arm, that would be in a pair if their result were not too bad for a value.
    pub without: [u32; 2],
    /// The smallest relevant difference: a fraction of the ratio, or an absolute difference in the metric's unit.
    pub margin: f64,
    /// Blocks in which both arms have a trial, valid or not; in a crossover pairs of such blocks.
    pub blocks: usize,
    /// For CPU time: the largest share of a host's CPU time that other processes used, when too many pairs are affected.
    pub contention: Option<f64>,
    /// Verdict and interval; absent for a metric that is not judged.
    pub judged: Option<Judged>,
    /// Why there is no verdict although there are enough pairs.
    pub withheld: Option<Withheld>,
}

impl Comparison {
    /// Whether a pair contains a bound, or is missing because a value was the worst. Then the estimate of a verdict "higher" or "lower" that is not
    /// withheld is a bound, too: the effect is at least so large.
    pub fn has_bounds(&self) -> bool {
        self.at_least != [false; 2] || self.without != [0; 2]
    }

    /// The verdict, where its estimate says something: that of an inconclusive one may be too high or too low with bounds.
    pub fn estimated(&self) -> Option<&Judged> {
        self.judged.as_ref().filter(|judged| is_estimated(judged, self.has_bounds()))
    }
}

/// Whether the estimate of a verdict says something: with bounds only where the verdict is "higher" or "lower".
pub(crate) fn is_estimated(judged: &Judged, has_bounds: bool) -> bool {
    !has_bounds || matches!(judged.verdict, Verdict::Higher { .. } | Verdict::Lower { .. })
}

/// Why a verdict is withheld.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Withheld {
    /// It would rest on values that are bounds.
    Bounds,
    /// It would leave out valid trials without a value, whose result was the worst.
    NoValue {
        /// Those of the baseline or the first run, and those of the arm or the other run.
        trials: [u32; 2],
    },
    /// The CPU time contains that of other processes.
    CpuContention {
        /// The largest share of a host's CPU time that they used, a fraction.
        share_max: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_attempt_of_a_block_replaces_the_earlier_one() {
        let mut values = ArmValues::new("a".parse().unwrap());
        for (block, value) in [(1, (2.0, None)), (0, (7.0, Some(Bound::AtLeast))), (0, (1.0, None))] {
            values.insert(block, value);
        }
        assert_eq!((values.values, values.at_least), (vec![(0, 1.0), (1, 2.0)], BTreeSet::new()));
    }

    fn bound_at(values: &ArmValues, metric: Metric, share: f64) -> Option<Bound> {
        values.quantile(metric, share).unwrap().1
    }

    #[test]
    fn quantile_is_a_bound_when_a_bound_can_move_it() {
        let values = |bounds: &[u32]| ArmValues {
            arm: "a".parse().unwrap(),
            values: vec![(0, 1.0), (1, 2.0), (2, 3.0), (3, 750.0)],
            at_least: bounds.iter().copied().collect(),
            without: BTreeSet::new(),
        };
        let at = |bounds: &[u32], share| bound_at(&values(bounds), Metric::LatencyP50, share);
        assert_eq!(at(&[], 1.0), None);
        assert_eq!(at(&[3], 0.5), None, "it is above the median wherever it lies");
        assert_eq!(at(&[3], 0.75), Some(Bound::AtLeast), "interpolated between 3 and 750");
        assert_eq!(at(&[2, 3], 0.5), Some(Bound::AtLeast));
        assert_eq!(at(&[0], 0.5), Some(Bound::AtLeast), "the smallest may be the largest");
        let rate = |bounds: &[u32], share| bound_at(&values(bounds), Metric::RoundTripRate, share);
        assert_eq!((rate(&[0], 0.5), rate(&[0], 0.0)), (None, Some(Bound::LessThan)));
    }

    #[test]
    fn missing_worst_value_makes_each_quantile_a_bound_but_that_of_the_best() {
        for (metric, bound, best) in [
            (Metric::NoDropRate, Bound::LessThan, 1.0),
            (Metric::PacketRate, Bound::LessThan, 1.0),
            (Metric::CpuPerGigabyte, Bound::AtLeast, 0.0),
        ] {
            let mut values = ArmValues::new("a".parse().unwrap());
            values.without.insert(1);
            assert_eq!(values.quantile(metric, 0.5), None, "there is no median");
            values.insert(0, (1.0, None));
            values.insert(2, (3.0, None));
            let at = [0.25, 0.5, 0.75, best].map(|share| bound_at(&values, metric, share));
            assert_eq!(at, [Some(bound), Some(bound), Some(bound), None], "{metric:?}");
            assert_eq!(values.bound(metric), Some(bound));
            assert_eq!(values.result_blocks(), BTreeSet::from([0, 1, 2]));
            values.insert(1, (2.0, None));
            assert_eq!(values.bound(metric), None, "a later attempt has a value");
            values.insert_without(1);
            assert_eq!((values.bound(metric), values.numbers()), (Some(bound), vec![1.0, 3.0]));
        }
    }

    #[test]
    fn quantile_whose_true_value_may_be_smaller_or_larger_is_none() {
        let at_least = Some(Bound::AtLeast);
        let mut values = ArmValues::new("a".parse().unwrap());
        for (block, value) in [(0, (1.0, None)), (1, (2.0, None)), (2, (9.0, at_least))] {
            values.insert(block, value);
        }
        let all = |values: &ArmValues| {
            [0.25, 0.5, 0.75, 1.0].map(|share| values.quantile(Metric::NoDropRate, share))
        };
        assert_eq!(
            all(&values),
            [Some((1.5, None)), Some((2.0, None)), Some((5.5, at_least)), Some((9.0, at_least))]
        );
        values.without.insert(3);
        let less_than = Some(Bound::LessThan);
        assert_eq!(
            all(&values),
            [Some((1.5, less_than)), Some((2.0, less_than)), None, Some((9.0, at_least))]
        );
    }
}
