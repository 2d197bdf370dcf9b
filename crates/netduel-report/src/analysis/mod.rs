//! Everything that is derived from a run: values by workload and arm, comparisons, warnings, and notes on counters.
//!
//! Only this module computes. The renderers print its results and derive no value of their own.
mod affected;
mod bound;
mod clocks;
pub mod compare;
mod connections;
mod contention;
mod counted;
mod counters;
mod counts;
mod datagrams;
mod dip;
mod direction;
mod errors;
pub mod expected;
mod explanation;
mod failover;
mod figures;
mod halves;
mod identities;
mod limit;
mod loss_by_counter;
mod machine;
mod modes;
mod packets;
mod parts;
mod paths;
mod placements;
pub mod published;
mod queues;
mod requests;
mod responsiveness;
mod result;
mod schedule;
mod search;
mod series;
mod sizes;
mod spread;
mod stamps;
mod sweep;
mod verdicts;
mod warnings;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::attempts;
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::{Run, RunEnd, RunHeader};
use netduel_model::trial::{Trial, Validity};
use netduel_model::warning::Warning;
use netduel_model::workload::{Role, Workload};
use netduel_stats::sequential;

use crate::inspect::Inspection;
use halves::Halves;

pub use affected::warnings_about;
pub use bound::{Bound, bound_of, is_too_bad};
pub use contention::{busy_hosts, contention_of};
pub use counters::{Counter, CounterKind, Spread};
pub use datagrams::{
    DatagramDirection, FlowPorts, Lost, Pacing, Packets, not_packets, of_trial as datagrams_of,
};
pub use direction::{DirectionFigures, Phase, quantile};
pub use errors::FailedCall;
pub use expected::Expected;
pub use failover::{ArmFailover, Dip, EventFigures, Line};
pub use figures::{
    histogram as round_trip_histogram, of_record as histogram_of, percentile_of, rate_received_by, value_of,
    volume_over_ns,
};
pub use limit::{ArmLimit, Cause, Limit, limit_of, missed_rate, missed_schedule};
pub use loss_by_counter::LostPackets;
pub use machine::has_cpu_time;
pub use machine::{CoreShare, Machine, Machines};
pub use packets::{ArmPackets, LineShare, PacketRates};
pub use parts::{Part, added_by_load};
pub use paths::{Moved, PathShares};
pub use placements::Placed;
pub use queues::QueueUse;
pub use requests::{RequestCount, of_trial as requests_of};
pub(crate) use result::is_estimated;
pub use result::{Analysis, ArmAnalysis, ArmValues, Comparison, MetricAnalysis, Withheld, WorkloadAnalysis};
pub use search::ArmSearch;
pub use series::SeriesPoint;
pub(crate) use sizes::size_of;
pub use sizes::{common_size, sizes};
pub use spread::{PacketSpread, Uneven};
pub use stamps::{Composition, OneWay, StampCost, Stamps, of_trial as stamps_of};
pub use sweep::{Sweep, SweepPoint, SweptBy};
pub use verdicts::COUNTER_CONFIDENCE;

/// Derives everything from a run's records. `trials` holds all attempts; only the highest attempt of each block counts, and blocks that
/// the run did not finish do not count. Without `header` (a run in progress), these blocks count, and hosts share a machine when the plan
/// starts both locally.
pub fn analyse(
    plan: &ResolvedPlan,
    header: Option<&RunHeader>,
    trials: &[Trial],
    warnings: &[Warning],
    end: Option<&RunEnd>,
) -> Analysis {
    let unfinished =
        header.map(|_| attempts::unfinished(trials, plan.trials_per_block(), end)).unwrap_or_default();
    let counting: Vec<&Trial> = attempts::in_result(trials, &unfinished).collect();
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
    let mut all_warnings = warnings::of_the_run(warnings);
    let of_bed = header.map(warnings::of_the_bed).unwrap_or_default();
    let of_trials =
        spans.warnings().into_iter().chain(warnings::derive(plan, &counting, &workloads, &machines));
    let of_blocks = unfinished.into_iter().map(warnings::of_the_block);
    let mut subjects: BTreeSet<String> = all_warnings.iter().map(warnings::subject).collect();
    for derived in of_blocks.chain(of_bed).chain(of_trials) {
        if subjects.insert(warnings::subject(&derived)) {
            all_warnings.push(derived);
        }
    }
    Analysis {
        plan: plan.clone(),
        blocks: counting.iter().map(|trial| trial.slot.block).collect::<BTreeSet<_>>().len() as u32,
        trials_valid: valid.len() as u32,
        trials_excluded: (counting.len() - valid.len()) as u32,
        sweeps: sweep::of_run(plan, &workloads),
        workloads,
        warnings: all_warnings,
        inspection: header
            .map(|header| {
                Inspection::of_plan(plan, &header.hosts).with_bed(header.bed.as_ref(), plan, &header.hosts)
            })
            .unwrap_or_default(),
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
        let unknown = BTreeMap::new();
        let hosts = header.map_or(&unknown, |header| &header.hosts);
        let expected = Halves::new(plan, arm, |pair| expected::of_pair(plan, hosts, (arm, pair), settings));
        let host_words = [Role::Client, Role::Server].map(|role| plan.host_words(arm, role));
        let machine_shares = machine::shares(arm, &host_words, &trials, machines);
        let ways = datagrams::ways(settings, &trials, machines);
        let queues = queues::of_arm(&host_words, &trials);
        let around = packets::Surroundings {
            plan,
            arm,
            host_words: &host_words,
            hosts,
            machines,
            shares: &machine_shares,
            queues: &queues,
        };
        arms.push(ArmAnalysis {
            packets: packets::of_arm(settings, &trials, &ways, around),
            arm: arm.name.clone(),
            workload: settings.clone(),
            trials: trials.len() as u32,
            blocks: all.iter().map(|trial| trial.slot.block).collect(),
            stalled: figures::stalled_blocks(settings, &trials),
            contended: contention::contended_blocks(settings, &trials, machines),
            stolen: contention::stolen_blocks(&trials),
            latency: figures::merged_latency(&trials),
            latency_trials: figures::trials_with_round_trips(&trials),
            round_trips_min: figures::fewest_round_trips(&trials),
            parts: parts::of_trials(&settings.traffic, &trials),
            requests: requests::of_trials(&settings.traffic, &trials),
            errors: errors::of_trials(&trials),
            stamps: stamps::of(&trials),
            series: series::over_trials(settings, &trials),
            latency_series: series::of_probes(settings, &trials),
            intervals: trials.iter().flat_map(|trial| series::steady(settings, trial)).collect(),
            busiest_core: machine::busiest_core(&trials, machines),
            machines: machine_shares,
            paths: paths::shares(arm, settings, &host_words, &all),
            placements: placements::of(&trials),
            datagrams: ways,
            queues,
            limit: limit::of_arm(settings, &trials, machines, &expected),
            expected: expected.of_all(&trials).cloned().flatten(),
            failover: failover::of_arm(settings, &trials, machines)
                .map(|failover| ArmFailover { moved: paths::moved(plan, arm, &trials), ..failover }),
            search: search::of_arm(settings, &trials),
        });
        by_arm.push((arm, settings, trials));
    }
    let counters = counters::of_workload(&by_arm, machines);
    let [judged, unjudged] = metrics_of(&arms, &by_arm, machines);
    WorkloadAnalysis { name: name.clone(), arms, judged, unjudged, counters, explanation: Vec::new() }
}

/// The metrics of a workload: judged metrics, and the others that its traffic yields.
fn metrics_of(
    arms: &[ArmAnalysis],
    by_arm: &[(&Arm, &Workload, Vec<&Trial>)],
    machines: &Machines,
) -> [Vec<MetricAnalysis>; 2] {
    let judged_metrics = arms.first().map(|first| first.workload.metrics.clone()).unwrap_or_default();
    let facts = arms.first().map(|first| first.workload.traffic.facts()).unwrap_or_default();
    let possible = facts.possible_metrics;
    let table = |metric: Metric| MetricAnalysis {
        metric,
        unit: facts.unit,
        arms: by_arm
            .iter()
            .map(|(arm, settings, trials)| values_of(metric, arm, settings, trials, machines))
            .collect(),
        comparisons: Vec::new(),
    };
    let judged = judged_metrics.iter().copied().map(table).collect();
    let unjudged = Metric::ALL
        .into_iter()
        .filter(|metric| possible.contains(metric) && !judged_metrics.contains(metric))
        .map(table)
        .filter(|metric| metric.arms.iter().any(|arm| !arm.result_blocks().is_empty()))
        .collect();
    [judged, unjudged]
}

/// The values of a metric in the valid trials of an arm.
fn values_of(
    metric: Metric,
    arm: &Arm,
    workload: &Workload,
    trials: &[&Trial],
    machines: &Machines,
) -> ArmValues {
    let is_bound = |trial: &Trial| bound_of(metric, workload, trial, machines.shared(trial)).is_some();
    let is_without = |trial: &Trial| is_too_bad(metric, workload, trial, machines.shared(trial));
    ArmValues {
        arm: arm.name.clone(),
        values: figures::by_block(metric, workload, trials, machines),
        at_least: trials.iter().filter(|trial| is_bound(trial)).map(|trial| trial.slot.block).collect(),
        without: trials.iter().filter(|trial| is_without(trial)).map(|trial| trial.slot.block).collect(),
    }
}

impl Analysis {
    /// Whether every comparison has data: at least one block in which both arms have a value. A dropped arm does not count, because its
    /// warning states why it has none. False without comparisons.
    pub fn verdict_possible(&self, is_dropped: impl Fn(&ArmName) -> bool) -> bool {
        let mut comparisons = self
            .workloads
            .iter()
            .flat_map(|workload| &workload.judged)
            .flat_map(|metric| &metric.comparisons)
            .filter(|comparison| !is_dropped(&comparison.arm))
            .peekable();
        comparisons.peek().is_some() && comparisons.all(|comparison| !comparison.pairs.is_empty())
    }

    /// Whether the interval of every metric is narrower than the plan requires, so that the run may stop. Dropped arms, CPU metrics
    /// with CPU contention, metrics whose values are all bounds, and arms without any value, because the result of each valid trial was the worst,
    /// do not count: more blocks do not narrow their intervals. A comparison that lacks the worst results of some blocks is not precise,
    /// because no interval contains them. More blocks show how often they occur, and may prove that the arm is worse. That does not
    /// depend on its verdict: a run that went on only where its values favour the arm would favour the opposite verdict. False without comparisons.
    pub fn precise_enough(&self, is_dropped: impl Fn(&ArmName) -> bool) -> bool {
        let mut comparisons = self.with_precision(is_dropped).peekable();
        comparisons.peek().is_some()
            && comparisons.all(|(_, metric, comparison)| self.is_precise(metric, comparison))
    }

    /// The metrics with an interval that is wider than the plan requires, by workload.
    pub fn imprecise_metrics(&self) -> Vec<(&WorkloadName, &MetricAnalysis)> {
        let comparisons = self.with_precision(|_| false);
        by_metric(comparisons.filter(|(_, metric, comparison)| {
            comparison.without == [0; 2] && !self.is_precise(metric, comparison)
        }))
    }

    /// The metrics of which a comparison lacks the worst results, by workload: they have no precision.
    pub fn metrics_without_precision(&self) -> Vec<(&WorkloadName, &MetricAnalysis)> {
        by_metric(self.judged_comparisons().filter(|(.., comparison)| comparison.without != [0; 2]))
    }

    /// The comparisons that count for the precision of the run.
    fn with_precision<'a>(
        &'a self,
        is_dropped: impl Fn(&ArmName) -> bool + 'a,
    ) -> impl Iterator<Item = (&'a WorkloadName, &'a MetricAnalysis, &'a Comparison)> + 'a {
        self.judged_comparisons().filter(move |(_, metric, comparison)| {
            !metric.has_only_bounds()
                && !metric.is_never_paired(comparison)
                && !is_dropped(&comparison.arm)
                && comparison.contention.is_none()
        })
    }

    fn judged_comparisons(&self) -> impl Iterator<Item = (&WorkloadName, &MetricAnalysis, &Comparison)> {
        let metrics = self
            .workloads
            .iter()
            .flat_map(|workload| workload.judged.iter().map(move |metric| (&workload.name, metric)));
        metrics.flat_map(|(workload, metric)| {
            metric.comparisons.iter().map(move |comparison| (workload, metric, comparison))
        })
    }

    fn is_precise(&self, metric: &MetricAnalysis, comparison: &Comparison) -> bool {
        if comparison.without != [0; 2] {
            return false;
        }
        let scale = metric.metric.scale();
        let precision = match scale {
            Scale::Ratio => self.plan.design.precision.fraction(),
            Scale::Difference => comparison.margin,
        };
        let estimate = comparison.judged.as_ref().and_then(|judged| judged.estimate.as_ref());
        estimate.is_some_and(|estimate| sequential::precise_enough(estimate, scale, precision))
    }
}

/// The metrics of comparisons. A metric has a comparison for each arm.
fn by_metric<'a>(
    comparisons: impl Iterator<Item = (&'a WorkloadName, &'a MetricAnalysis, &'a Comparison)>,
) -> Vec<(&'a WorkloadName, &'a MetricAnalysis)> {
    let mut metrics: Vec<(&WorkloadName, &MetricAnalysis)> =
        comparisons.map(|(workload, metric, _)| (workload, metric)).collect();
    metrics.dedup_by_key(|(workload, metric)| (*workload, metric.metric));
    metrics
}

/// A run's counting trials in the order of the schedule; used by every table of trials. Those of a block that the run did not finish are
/// excluded there, with the reason.
pub(crate) fn in_schedule_order(run: &Run) -> Vec<Cow<'_, Trial>> {
    let per_block = run.header.plan.trials_per_block();
    let unfinished = attempts::unfinished(&run.trials, per_block, run.end.as_ref());
    let mut trials: Vec<&Trial> = attempts::counting(&run.trials).collect();
    trials.sort_by_key(|trial| (trial.slot.block, trial.slot.position));
    trials
        .into_iter()
        .map(|trial| match attempts::left_out(trial, &unfinished) {
            Some(block) if trial.is_valid() => {
                let reason = warnings::of_the_block(block).to_string();
                Cow::Owned(Trial { validity: Validity::Failed { reason }, ..trial.clone() })
            }
            _ => Cow::Borrowed(trial),
        })
        .collect()
}
