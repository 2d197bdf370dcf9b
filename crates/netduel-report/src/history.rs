//! One plan over many stored runs: the value of each metric by run, and where its level changed.
//!
//! A run is read once and reduced to its values, so that a history of many runs fits into memory. Rendering is elsewhere.
use std::cmp::Reverse;

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Better, Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::{Annotations, Run};
use netduel_stats::change;
use netduel_stats::summary;

use crate::analysis::compare::{RunFacts, changed_facts, same_workloads};
use crate::analysis::{Analysis, ArmAnalysis, ArmValues, Bound, MetricAnalysis};
use crate::words::text::change_in_percent;
use crate::words::{self, Tone};

/// The probability of any change point in a history without a change, a fraction.
pub const LEVEL: f64 = 0.05;

/// A run reduced to what a history shows.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// Name in the store.
    pub id: String,
    /// Start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Title and notes.
    pub annotations: Annotations,
    /// Why its values lack trials that were measured, in words: damaged records, or a block that was not finished. In a history also the series
    /// in which it has no point, because results of valid trials were too bad for a value.
    pub left_out: Vec<String>,
    /// Without the names of a bed, which are others on each.
    plan: ResolvedPlan,
    facts: RunFacts,
    values: Vec<Values>,
}

/// The values of a metric in a run.
#[derive(Debug, Clone)]
struct Values {
    workload: WorkloadName,
    metric: MetricAnalysis,
    of_arm: ArmValues,
    /// The share of CPU time of other processes, where the metric is of CPU time and the arm has CPU contention: as in a comparison.
    contention: Option<f64>,
}

impl PastRun {
    /// Of a stored run.
    pub fn of(run: &Run, analysis: &Analysis) -> Self {
        let mut values = Vec::new();
        for workload in &analysis.workloads {
            let contention = |arm: &ArmName| {
                workload.arms.iter().find(|one| one.arm == *arm).and_then(ArmAnalysis::contention_max)
            };
            // A later run may judge what an earlier one only measured.
            for metric in workload.judged.iter().chain(&workload.unjudged) {
                let with_results = metric.arms.iter().filter(|arm| !arm.result_blocks().is_empty());
                values.extend(with_results.map(|arm| Values {
                    workload: workload.name.clone(),
                    metric: MetricAnalysis { arms: Vec::new(), comparisons: Vec::new(), ..metric.clone() },
                    of_arm: arm.clone(),
                    contention: contention(&arm.arm).filter(|_| metric.metric.is_cpu()),
                }));
            }
        }
        let left_out = analysis.warnings.iter().filter(|warning| warning.leaves_trials_out());
        Self {
            id: run.header.id.to_string(),
            started_unix_ms: run.header.started_unix_ms,
            annotations: run.header.annotations.clone(),
            left_out: left_out.map(ToString::to_string).collect(),
            plan: run.header.plan_without_bed().into_owned(),
            facts: RunFacts::of(run),
            values,
        }
    }
}

/// What a history is restricted to; absent for everything.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// One metric, in place of those that the newest run judges.
    pub metric: Option<Metric>,
    /// One workload.
    pub workload: Option<WorkloadName>,
    /// One arm.
    pub arm: Option<ArmName>,
}

/// A plan over its runs.
#[derive(Debug, Clone)]
pub struct History {
    /// Name of the plan.
    pub plan: String,
    /// Its question, as in the newest run.
    pub question: String,
    /// The runs in the order of their start.
    pub runs: Vec<PastRun>,
    /// A series for each workload, arm and metric.
    pub series: Vec<Series>,
    /// The runs that have no point in a series although they have results, each with the reason, the newest first. The list of what was left out
    /// of a run has the reason, too.
    pub without_point: Vec<String>,
}

/// A metric of an arm in a workload over the runs that have it with the settings of the newest run.
#[derive(Debug, Clone)]
pub struct Series {
    /// The arm.
    pub arm: ArmName,
    /// The workload.
    pub workload: WorkloadName,
    /// The metric, without values.
    pub metric: MetricAnalysis,
    /// Its value in each run, in the order of the runs; a run without one has it in [`PastRun::left_out`].
    pub points: Vec<Point>,
    /// Where its level changed.
    pub changes: Vec<LevelChange>,
    /// Runs that have the workload with other settings, without a result of the metric, or not at all.
    pub other_runs: usize,
}

/// The value of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Position of the run in the history.
    pub run: usize,
    /// Median of the valid trials.
    pub median: f64,
    /// First and third quartile.
    pub quartiles: [f64; 2],
    /// What the first quartile, the median and the third quartile bound.
    pub bounds: [Option<Bound>; 3],
    /// Valid trials.
    pub n: usize,
    /// The share of CPU time of other processes with which a metric of CPU time is not comparable.
    pub contention: Option<f64>,
}

/// A change of level between two runs.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelChange {
    /// Position of the first point after it.
    pub at: usize,
    /// Probability of so clear a change without one.
    pub p_value: f64,
    /// Median of the points before it, back to the previous change.
    pub before: f64,
    /// Median of the points after it, up to the next change.
    pub after: f64,
    /// What both medians bound.
    pub bounds: [Option<Bound>; 2],
    /// Whether it is an improvement; open where bounds do not show the direction.
    pub tone: Tone,
    /// Facts that differ between the last run before it and the first one after it, which may be the cause, in words.
    pub causes: Vec<String>,
}

impl History {
    /// The history of the plan of the newest run. Runs of another plan, by its name, are left out; the newest run decides which settings count.
    pub fn of(mut runs: Vec<PastRun>, selection: &Selection) -> Option<Self> {
        runs.sort_by(|one, other| (one.started_unix_ms, &one.id).cmp(&(other.started_unix_ms, &other.id)));
        let plan = runs.last()?.plan.clone();
        runs.retain(|run| run.plan.name == plan.name);
        let (mut series, mut left_out) = all_series(&runs, &plan, selection);
        left_out.sort_by_key(|(place, _)| Reverse(*place));
        let mut without_point = Vec::new();
        for (place, what) in left_out {
            if let Some(run) = runs.get_mut(place) {
                without_point.push(format!("{}: {what}", run.id));
                run.left_out.push(what);
            }
        }
        let level = level(&series);
        for one in &mut series {
            one.changes = level_changes(one, &runs, level);
        }
        let question = words::question(&plan);
        Some(Self { plan: plan.name.clone(), question, runs, series, without_point })
    }

    /// The number of runs from which on a change halfway can be found in a series of this history; one near an end needs more.
    pub fn runs_needed(&self) -> usize {
        change::values_needed(level(&self.series))
    }
}

/// The level of each series of a history.
fn level(series: &[Series]) -> f64 {
    LEVEL / series.len().max(1) as f64
}

/// The series, and the runs that have no point in one of them although it has results, with the reason.
fn all_series(
    runs: &[PastRun],
    plan: &ResolvedPlan,
    selection: &Selection,
) -> (Vec<Series>, Vec<(usize, String)>) {
    // The newest run is the reference; the positions in the matches count from it.
    let plans: Vec<&ResolvedPlan> = runs.iter().rev().map(|run| &run.plan).collect();
    let last = runs.len().saturating_sub(1);
    let (mut series, mut left_out) = (Vec::new(), Vec::new());
    for (arm, workload, places) in same_workloads(&plans) {
        let is_selected = selection.arm.as_ref().is_none_or(|own| *own == arm)
            && selection.workload.as_ref().is_none_or(|own| *own == workload);
        let judged = plan.arm(&arm).and_then(|own| own.workload(&workload)).map(|own| own.metrics.as_slice());
        let metrics = selection.metric.as_ref().map(std::slice::from_ref).or(judged).unwrap_or_default();
        for metric in metrics.iter().filter(|_| is_selected) {
            let with_results = places.iter().rev().filter_map(|place| {
                let run = last.checked_sub(*place)?;
                let own = |one: &&Values| {
                    one.of_arm.arm == arm && one.workload == workload && one.metric.metric == *metric
                };
                Some((run, runs.get(run)?.values.iter().find(own)?))
            });
            let found: Vec<(usize, &Values)> = with_results.collect();
            let Some((_, known)) = found.last() else { continue };
            let mut points = Vec::new();
            for (run, values) in &found {
                match point(*run, values) {
                    Some(point) => points.push(point),
                    None => left_out.push((*run, without_point(values))),
                }
            }
            if points.is_empty() {
                continue;
            }
            series.push(Series {
                arm: arm.clone(),
                workload: workload.clone(),
                metric: known.metric.clone(),
                points,
                changes: Vec::new(),
                other_runs: runs.len() - found.len(),
            });
        }
    }
    (series, left_out)
}

/// Why a run has no point: `rate without loss of udp on a: no value in 8 valid trials (the search found no rate that meets the goal)`.
fn without_point(values: &Values) -> String {
    let Values { workload, metric, of_arm, .. } = values;
    let trials = words::plural(of_arm.without.len() as u32, "valid trial");
    let reason = words::reason_of_worst(metric.metric);
    let others = if of_arm.values.is_empty() { "" } else { ", and bounds in others" };
    format!("{} of {workload} on {}: no value in {trials} ({reason}){others}", metric.title(), of_arm.arm)
}

fn point(run: usize, values: &Values) -> Option<Point> {
    let at = |share: f64| values.of_arm.quantile(values.metric.metric, share);
    let [(low, of_low), (median, of_median), (high, of_high)] = [at(0.25)?, at(0.5)?, at(0.75)?];
    let bounds = [of_low, of_median, of_high];
    let (quartiles, n, contention) = ([low, high], values.of_arm.values.len(), values.contention);
    Some(Point { run, median, quartiles, bounds, n, contention })
}

impl Point {
    /// What the median bounds.
    pub fn median_bound(&self) -> Option<Bound> {
        let [_, median, _] = self.bounds;
        median
    }
}

impl Series {
    /// The median of some of its points, and what it bounds; absent without a point, and where the true one may be smaller or larger.
    pub fn median(&self, points: &[Point]) -> Option<(f64, Option<Bound>)> {
        let medians: Vec<f64> = points.iter().map(|point| point.median).collect();
        // Of a search a median may be a bound of either kind.
        let of_kind = |kind: Bound| {
            let of_point = |point: &Point| (point.median, point.median_bound() == Some(kind));
            kind.of_quantile(&points.iter().map(of_point).collect::<Vec<_>>(), 0.5)
        };
        match [Bound::LessThan, Bound::AtLeast].map(of_kind) {
            [Some(_), Some(_)] => None,
            [less_than, at_least] => Some((summary::median(&medians)?, less_than.or(at_least))),
        }
    }

    /// A value of it in words, with its unit and the sign of a bound.
    pub fn human(&self, value: f64, bound: Option<Bound>) -> String {
        words::metric_value_or_bound(self.metric.metric, self.metric.unit, value, bound)
    }

    /// Whether a rise or a fall from one median to another is an improvement. The true value behind a bound may reverse it: then it is open.
    fn tone(&self, before: (f64, Option<Bound>), after: (f64, Option<Bound>)) -> Tone {
        let is_rise = after.0 > before.0;
        let (lower, higher) = if is_rise { (before.1, after.1) } else { (after.1, before.1) };
        if lower == Some(Bound::AtLeast) || higher == Some(Bound::LessThan) {
            return Tone::Open;
        }
        match (is_rise, self.metric.metric.better()) {
            (true, Better::Higher) | (false, Better::Lower) => Tone::Better,
            (true, Better::Lower) | (false, Better::Higher) => Tone::Worse,
        }
    }
}

fn level_changes(series: &Series, runs: &[PastRun], level: f64) -> Vec<LevelChange> {
    let medians: Vec<f64> = series.points.iter().map(|point| point.median).collect();
    let found = change::changes(&medians, level);
    let mut starts = [0].into_iter().chain(found.iter().map(|change| change.at));
    let ends = found.iter().skip(1).map(|change| change.at).chain([medians.len()]);
    let changes = found.iter().zip(ends).filter_map(|(one, end)| {
        let from = starts.next()?;
        let side = |points: Option<&[Point]>| series.median(points?);
        let (before, after) = (side(series.points.get(from..one.at))?, side(series.points.get(one.at..end))?);
        let facts = |place: usize| Some(&runs.get(series.points.get(place)?.run)?.facts);
        Some(LevelChange {
            at: one.at,
            p_value: one.p_value,
            before: before.0,
            after: after.0,
            bounds: [before.1, after.1],
            tone: series.tone(before, after),
            causes: changed_facts(facts(one.at.checked_sub(1)?)?, facts(one.at)?),
        })
    });
    changes.collect()
}

impl LevelChange {
    /// The change in words: `692 us to 951 us (+37.4 %)`, both values alone for a metric that can be 0 and where one of them is a bound.
    pub fn words(&self, series: &Series) -> String {
        let [of_before, of_after] = self.bounds;
        let (before, after) = (series.human(self.before, of_before), series.human(self.after, of_after));
        let ratio = self.after / self.before;
        let is_ratio = series.metric.metric.scale() == Scale::Ratio && ratio.is_finite() && ratio > 0.0;
        let by = change_in_percent(ratio).filter(|_| is_ratio && self.bounds == [None; 2]);
        let by = by.map(|by| format!(" ({by})")).unwrap_or_default();
        format!("{}{before} to {after}{by}", self.tone.mark())
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::workload::WorkUnit;

    use super::*;

    fn series(metric: Metric) -> Series {
        Series {
            arm: "a".parse().unwrap(),
            workload: "w".parse().unwrap(),
            metric: MetricAnalysis {
                metric,
                unit: WorkUnit::RoundTrip,
                arms: Vec::new(),
                comparisons: Vec::new(),
            },
            points: Vec::new(),
            changes: Vec::new(),
            other_runs: 0,
        }
    }

    #[test]
    fn guide_has_the_runs_that_so_many_series_need() {
        let guide = include_str!("../../../docs/history.md");
        let needed = |series: u32| change::values_needed(LEVEL / f64::from(series));
        for (first, last) in [(1, 1), (2, 6), (7, 23), (24, 85)] {
            let runs = needed(first);
            assert!(needed(last) == runs && needed(last + 1) > runs, "{first} to {last}: {runs}");
            let series = if first == last { first.to_string() } else { format!("{first} to {last}") };
            let row = format!("| {series} | {runs} |");
            assert!(guide.contains(&row), "no row {row}");
        }
    }

    #[test]
    fn level_that_rests_on_bounds_in_both_directions_is_none() {
        let series = series(Metric::NoDropRate);
        let level = |bounds: [Option<Bound>; 3]| {
            let point = |bound| Point {
                run: 0,
                median: 1e6,
                quartiles: [1e6; 2],
                bounds: [bound; 3],
                n: 8,
                contention: None,
            };
            series.median(&bounds.map(point))
        };
        let [at_least, less_than] = [Bound::AtLeast, Bound::LessThan].map(Some);
        assert_eq!(level([at_least, None, None]), Some((1e6, at_least)));
        assert_eq!(level([None, less_than, None]), Some((1e6, less_than)));
        assert_eq!(level([at_least, less_than, None]), None);
    }

    #[test]
    fn change_that_a_bound_may_reverse_has_no_direction() {
        let bound = |metric| Some(Bound::of_values(metric));
        let (latency, rate) = (Metric::LatencyP50, Metric::RoundTripRate);
        for (metric, before, after, tone, words) in [
            (latency, (2e9, None), (4e9, bound(latency)), Tone::Worse, "worse: 2.00 s to >= 4.00 s"),
            (latency, (4e9, bound(latency)), (2e9, None), Tone::Better, "better: >= 4.00 s to 2.00 s"),
            (latency, (2e9, bound(latency)), (4e9, None), Tone::Open, ">= 2.00 s to 4.00 s"),
            (latency, (4e9, None), (2e9, bound(latency)), Tone::Open, "4.00 s to >= 2.00 s"),
            (rate, (90.0, None), (2.0, bound(rate)), Tone::Worse, "worse: 90.0 /s to < 2.00 /s"),
            (rate, (1.0, None), (2.0, bound(rate)), Tone::Open, "1.00 /s to < 2.00 /s"),
            (latency, (2e9, None), (4e6, None), Tone::Better, "better: 2.00 s to 4.00 ms (-99.8 %)"),
        ] {
            let series = series(metric);
            let change = LevelChange {
                at: 4,
                p_value: 0.01,
                before: before.0,
                after: after.0,
                bounds: [before.1, after.1],
                tone: series.tone(before, after),
                causes: Vec::new(),
            };
            assert_eq!((change.tone, change.words(&series).as_str()), (tone, words));
        }
    }
}
