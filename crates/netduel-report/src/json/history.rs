//! The document of a history: `netduel history --json`.
use netduel_model::metric::Metric;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin, iso_8601};
use super::figures::VerdictTone;
use super::listing::Note;
use crate::analysis::Bound;
use crate::history::{History, LEVEL, PastRun, Series};

/// One plan over many stored runs: `netduel history --json`, `netduel history --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Name of the plan.
    pub plan: String,
    /// Its question, as in the newest run.
    pub question: String,
    /// Probability of any change in a history without one, over all series, at most.
    pub false_alarm_ratio: f64,
    /// Runs from which on a change halfway can be found in a series.
    pub runs_needed: usize,
    /// The runs in the order of their start.
    pub runs: Vec<HistoryRun>,
    /// A series for each workload, arm and metric.
    pub series: Vec<HistorySeries>,
}

impl Document for HistoryDocument {
    const NAME: &'static str = "netduel.history";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A run of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// Name in the store.
    pub id: String,
    /// Start: ISO 8601, UTC.
    pub started: String,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ms: u64,
    /// Title given on the command line.
    pub title: Option<String>,
    /// Notes given on the command line.
    pub notes: Vec<Note>,
    /// Why its values lack trials that were measured, or why it has no point in a series, in words: damaged records of its file, a block that was
    /// not finished, or valid trials whose result was too bad for a value; empty when nothing is lacking.
    pub left_out: Vec<String>,
}

/// A metric over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistorySeries {
    /// Workload.
    pub workload: String,
    /// Arm.
    pub arm: String,
    /// Key of the metric.
    pub metric: Metric,
    /// Name of the metric, for people.
    pub title: String,
    /// Unit of its values.
    pub unit: &'static str,
    /// Value of each run that has one in the workload with the settings of the newest run.
    pub points: Vec<HistoryPoint>,
    /// Where the level changed.
    pub changes: Vec<HistoryChange>,
}

/// The value of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryPoint {
    /// Name of the run.
    pub run: String,
    /// Valid trials.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// What the median bounds, because values are bounds, or missing because they were the worst; null when it is exact.
    pub median_bound: Option<Bound>,
    /// First quartile.
    pub quartile_1: f64,
    /// What the first quartile bounds; null when it is exact.
    pub quartile_1_bound: Option<Bound>,
    /// Third quartile.
    pub quartile_3: f64,
    /// What the third quartile bounds; null when it is exact.
    pub quartile_3_bound: Option<Bound>,
}

/// A change of level.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HistoryChange {
    /// Name of the first run after it.
    pub run: String,
    /// Probability of so clear a change without one.
    pub p_value: f64,
    /// Median of the runs before it, back to the previous change, in the unit of the metric.
    pub before: f64,
    /// What this median bounds; null when it is exact.
    pub before_bound: Option<Bound>,
    /// Median of the runs after it, up to the next change, in the unit of the metric.
    pub after: f64,
    /// What this median bounds; null when it is exact.
    pub after_bound: Option<Bound>,
    /// Whether it is an improvement; `open` where bounds do not show the direction.
    pub tone: VerdictTone,
    /// The change in words.
    pub text: String,
    /// Facts that differ between the last run before it and the first one after it, in words. Each may be the cause.
    pub differences: Vec<String>,
}

impl HistoryDocument {
    /// Of a history.
    pub fn of(history: &History, origin: &Origin) -> Self {
        Self {
            envelope: Self::envelope(origin),
            plan: history.plan.clone(),
            question: history.question.clone(),
            false_alarm_ratio: LEVEL,
            runs_needed: history.runs_needed(),
            runs: history.runs.iter().map(HistoryRun::of).collect(),
            series: history.series.iter().map(|one| HistorySeries::of(history, one)).collect(),
        }
    }
}

impl HistoryRun {
    fn of(run: &PastRun) -> Self {
        Self {
            id: run.id.clone(),
            started: iso_8601(run.started_unix_ms),
            started_unix_ms: run.started_unix_ms,
            title: run.annotations.title.clone(),
            notes: Note::all(&run.annotations.notes),
            left_out: run.left_out.clone(),
        }
    }
}

impl HistorySeries {
    fn of(history: &History, series: &Series) -> Self {
        let run = |place: usize| {
            let point = series.points.get(place);
            point.and_then(|point| history.runs.get(point.run)).map_or_else(String::new, |run| run.id.clone())
        };
        let points = series.points.iter().enumerate().map(|(place, point)| {
            let ([quartile_1, quartile_3], [quartile_1_bound, median_bound, quartile_3_bound]) =
                (point.quartiles, point.bounds);
            HistoryPoint {
                run: run(place),
                n: point.n,
                median: point.median,
                median_bound,
                quartile_1,
                quartile_1_bound,
                quartile_3,
                quartile_3_bound,
            }
        });
        let changes = series.changes.iter().map(|change| {
            let [before_bound, after_bound] = change.bounds;
            HistoryChange {
                run: run(change.at),
                p_value: change.p_value,
                before: change.before,
                before_bound,
                after: change.after,
                after_bound,
                tone: VerdictTone::of(change.tone),
                text: change.words(series),
                differences: change.causes.clone(),
            }
        });
        Self {
            workload: series.workload.to_string(),
            arm: series.arm.to_string(),
            metric: series.metric.metric,
            title: series.metric.title().to_owned(),
            unit: series.metric.metric.unit(),
            points: points.collect(),
            changes: changes.collect(),
        }
    }
}
