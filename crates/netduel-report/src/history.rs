//! One plan over many stored runs: the value of each metric by run, and where its level changed.
//!
//! A run is read once and reduced to its values, so that a history of many runs fits into memory. Rendering is elsewhere.
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::{Better, Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::{Annotations, Run};
use netduel_stats::change;
use netduel_stats::summary;

use crate::analysis::compare::{RunFacts, changed_facts, same_workloads};
use crate::analysis::{Analysis, MetricAnalysis};
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
    /// Why its values lack trials that were measured, in words: damaged records, or a block that was not finished.
    pub left_out: Vec<String>,
    plan: ResolvedPlan,
    facts: RunFacts,
    values: Vec<Values>,
}

/// The values of a metric in a run.
#[derive(Debug, Clone)]
struct Values {
    arm: ArmName,
    workload: WorkloadName,
    metric: MetricAnalysis,
    numbers: Vec<f64>,
}

impl PastRun {
    /// Of a stored run.
    pub fn of(run: &Run, analysis: &Analysis) -> Self {
        let mut values = Vec::new();
        for workload in &analysis.workloads {
            // A later run may judge what an earlier one only measured.
            for metric in workload.judged.iter().chain(&workload.unjudged) {
                values.extend(metric.arms.iter().filter(|arm| !arm.values.is_empty()).map(|arm| Values {
                    arm: arm.arm.clone(),
                    workload: workload.name.clone(),
                    metric: MetricAnalysis { arms: Vec::new(), comparisons: Vec::new(), ..metric.clone() },
                    numbers: arm.numbers(),
                }));
            }
        }
        let left_out = analysis.warnings.iter().filter(|warning| warning.leaves_trials_out());
        Self {
            id: run.header.id.to_string(),
            started_unix_ms: run.header.started_unix_ms,
            annotations: run.header.annotations.clone(),
            left_out: left_out.map(ToString::to_string).collect(),
            plan: run.header.plan.clone(),
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
    /// Its value in each run, in the order of the runs.
    pub points: Vec<Point>,
    /// Where its level changed.
    pub changes: Vec<LevelChange>,
    /// Runs that have the workload with other settings, or not at all.
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
    /// Valid trials.
    pub n: usize,
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
    /// Whether it is an improvement.
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
        let mut series = all_series(&runs, &plan, selection);
        let level = LEVEL / series.len().max(1) as f64;
        for one in &mut series {
            one.changes = level_changes(one, &runs, level);
        }
        Some(Self { plan: plan.name.clone(), question: words::question(&plan), runs, series })
    }
}

fn all_series(runs: &[PastRun], plan: &ResolvedPlan, selection: &Selection) -> Vec<Series> {
    // The newest run is the reference; the positions in the matches count from it.
    let plans: Vec<&ResolvedPlan> = runs.iter().rev().map(|run| &run.plan).collect();
    let last = runs.len().saturating_sub(1);
    let mut series = Vec::new();
    for (arm, workload, places) in same_workloads(&plans) {
        let is_selected = selection.arm.as_ref().is_none_or(|own| *own == arm)
            && selection.workload.as_ref().is_none_or(|own| *own == workload);
        let judged = plan.arm(&arm).and_then(|own| own.workload(&workload)).map(|own| own.metrics.as_slice());
        let metrics = selection.metric.as_ref().map(std::slice::from_ref).or(judged).unwrap_or_default();
        for metric in metrics.iter().filter(|_| is_selected) {
            let with_values = places.iter().rev().filter_map(|place| {
                let run = last.checked_sub(*place)?;
                let own = |one: &&Values| {
                    one.arm == arm && one.workload == workload && one.metric.metric == *metric
                };
                Some((run, runs[run].values.iter().find(own)?))
            });
            let found: Vec<(usize, &Values)> = with_values.collect();
            let Some((_, known)) = found.last() else { continue };
            series.push(Series {
                arm: arm.clone(),
                workload: workload.clone(),
                metric: known.metric.clone(),
                points: found.iter().filter_map(|(run, values)| point(*run, &values.numbers)).collect(),
                changes: Vec::new(),
                other_runs: runs.len() - found.len(),
            });
        }
    }
    series
}

fn point(run: usize, numbers: &[f64]) -> Option<Point> {
    let [low, median, high] = [0.25, 0.5, 0.75].map(|share| summary::quantile(numbers, share));
    Some(Point { run, median: median?, quartiles: [low?, high?], n: numbers.len() })
}

fn level_changes(series: &Series, runs: &[PastRun], level: f64) -> Vec<LevelChange> {
    let medians: Vec<f64> = series.points.iter().map(|point| point.median).collect();
    let found = change::changes(&medians, level);
    let ends: Vec<usize> = found.iter().map(|change| change.at).chain([medians.len()]).collect();
    let mut start = 0;
    let mut changes = Vec::new();
    for (number, one) in found.iter().enumerate() {
        let end = ends.get(number + 1).copied().unwrap_or(medians.len());
        let [before, after] = [&medians[start..one.at], &medians[one.at..end]].map(summary::median);
        start = one.at;
        let (Some(before), Some(after)) = (before, after) else { continue };
        let tone = match (after > before, series.metric.metric.better()) {
            (true, Better::Higher) | (false, Better::Lower) => Tone::Better,
            (true, Better::Lower) | (false, Better::Higher) => Tone::Worse,
        };
        let [last, first] = [one.at - 1, one.at].map(|place| &runs[series.points[place].run].facts);
        let causes = changed_facts(last, first);
        changes.push(LevelChange { at: one.at, p_value: one.p_value, before, after, tone, causes });
    }
    changes
}

impl LevelChange {
    /// The change in words: `10 % lower`, `1.2x`, or both values for a metric that can be 0.
    pub fn words(&self, metric: &MetricAnalysis) -> String {
        let [before, after] = [self.before, self.after].map(|value| metric.human(value));
        let ratio = self.after / self.before;
        let is_ratio = metric.metric.scale() == Scale::Ratio && ratio.is_finite() && ratio > 0.0;
        let by = if is_ratio { format!(" ({:+.1} %)", (ratio - 1.0) * 100.0) } else { String::new() };
        format!("{}{before} to {after}{by}", self.tone.mark())
    }
}
