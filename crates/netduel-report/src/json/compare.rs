//! The document of a comparison of runs: `netduel compare --json`.
use netduel_model::metric::Metric;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin};
use super::figures::{BlockValue, ComparisonScale, MetricValues, Verdict};
use super::report::{self, Rule, RunInfo};
use super::warning::Warning;
use crate::analysis::compare::{self, Aspect, Difference, Owner, Reason, RunComparison, Subject, Unmatched};
use crate::analysis::published::{self, Published, Standing};
use crate::analysis::{ArmValues, Bound, MetricAnalysis};
use crate::words;

/// The comparison of stored runs: `netduel compare --json`, `netduel compare --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The runs; the others are compared with the first.
    pub runs: Vec<ComparedRun>,
    /// Confidence at which the verdicts are tested as one family: the highest of the runs. That of a plan that may stop early is above the one in
    /// the plan, and 1 minus the one in the plan bounds the chance of any false difference, and likewise of any false "no difference".
    pub confidence_ratio: f64,
    /// Margin of "no difference" on the scale `ratio`: that of the first run.
    pub equivalence_ratio: f64,
    /// Facts that differ between the runs.
    pub differences: Vec<RunDifference>,
    /// What is compared: each workload of each arm that the runs have with the same settings.
    pub comparisons: Vec<ComparedWorkload>,
    /// What is not compared.
    pub not_compared: Vec<NotCompared>,
    /// Published figures beside the values of the runs.
    pub published: Vec<PublishedFigure>,
    /// How the figures are counted.
    pub rules: Vec<Rule>,
}

impl Document for CompareDocument {
    const NAME: &'static str = "netduel.compare";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRun {
    /// Label of the run in this document, for example `A`.
    pub label: String,
    /// The run.
    pub run: RunInfo,
    /// Question of its plan.
    pub question: String,
    /// Blocks with at least one trial that counts.
    pub blocks: u32,
    /// Valid trials.
    pub trials_valid: u32,
    /// Excluded trials: failed, or on another path.
    pub trials_excluded: u32,
    /// Warnings of the run. Their marks are those of its report.
    pub warnings: Vec<Warning>,
}

/// A fact that differs between the runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunDifference {
    /// What it is about.
    pub aspect: Aspect,
    /// The fact, in words.
    pub text: String,
    /// Host of the plan; null for none.
    pub host: Option<String>,
    /// Arm; null for none.
    pub arm: Option<String>,
    /// Workload; null for none.
    pub workload: Option<String>,
    /// Its value in each run.
    pub values: Vec<RunFact>,
    /// Its mark in the other formats, `*2` for 2, at the verdicts that it may be the cause of; null when there is none.
    pub mark: Option<usize>,
}

/// The value of a fact in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunFact {
    /// Label of the run.
    pub run: String,
    /// Value; null where it is unknown or does not exist.
    pub value: Option<String>,
}

/// A workload of an arm in several runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedWorkload {
    /// Workload.
    pub workload: String,
    /// Arm.
    pub arm: String,
    /// The metrics that the first run judges.
    pub metrics: Vec<ComparedMetric>,
}

/// A metric in several runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ComparedMetric {
    /// Key of the metric.
    pub metric: Metric,
    /// Name of the metric, for people.
    pub title: String,
    /// Unit of its values.
    pub unit: &'static str,
    /// The values of each run, the first run first.
    pub runs: Vec<RunValues>,
    /// Every other run against the first.
    pub comparisons: Vec<RunVerdict>,
}

/// Values of a metric in a run, in the unit of the metric. A statistic is null without values, and where the true one may be smaller or larger.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunValues {
    /// Label of the run.
    pub run: String,
    /// Number of values.
    pub n: usize,
    /// Median.
    pub median: Option<f64>,
    /// What the median bounds, because values are bounds, or missing because they were the worst; null when it is exact.
    pub median_bound: Option<Bound>,
    /// First quartile.
    pub quartile_1: Option<f64>,
    /// What the first quartile bounds; null when it is exact.
    pub quartile_1_bound: Option<Bound>,
    /// Third quartile.
    pub quartile_3: Option<f64>,
    /// What the third quartile bounds; null when it is exact.
    pub quartile_3_bound: Option<Bound>,
    /// Value of each valid trial.
    pub values: Vec<BlockValue>,
}

/// A run against the first one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunVerdict {
    /// Label of the run.
    pub run: String,
    /// Usable values of the first run.
    pub values_first: usize,
    /// Usable values of this run.
    pub values_own: usize,
    /// Scale of the estimate and the margin.
    pub scale: ComparisonScale,
    /// Smallest difference that matters: a fraction on the scale `ratio`, else in the unit of the metric.
    pub margin: f64,
    /// Verdict.
    pub verdict: Verdict,
    /// Differences that may be the cause of the verdict: their positions in `differences` of the document, from 0.
    pub explained_by: Vec<usize>,
}

/// An arm or a workload that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotCompared {
    /// Label of the run that is not compared with the first one in it.
    pub run: String,
    /// Arm; null when a workload is meant for all arms.
    pub arm: Option<String>,
    /// Workload; null when an arm is meant with all its workloads.
    pub workload: Option<String>,
    /// Why.
    pub reason: NotComparedReason,
    /// Why, in words.
    pub text: String,
}

/// A published figure. It has no spread: the intervals are those of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedFigure {
    /// Name of the publication, as in `published:NAME`.
    pub publication: String,
    /// Title and date of the publication.
    pub source: String,
    /// The machine size, as the source names it.
    pub size: String,
    /// What was measured, in words.
    pub title: String,
    /// The lowest published value, in the unit of the metric or of `text`.
    pub low: f64,
    /// The highest published value; equal to `low` for one value.
    pub high: f64,
    /// The published value or range, in words with its unit.
    pub text: String,
    /// Tool and conditions.
    pub conditions: String,
    /// The values of the runs that it is about.
    pub values: Vec<PublishedComparison>,
}

/// The value of an arm of a run beside a published figure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PublishedComparison {
    /// Label of the run.
    pub run: String,
    /// Arm.
    pub arm: String,
    /// Workload.
    pub workload: String,
    /// Key of the metric.
    pub metric: Metric,
    /// Unit of the values.
    pub unit: &'static str,
    /// Size of the hosts of the run; null where it is unknown or differs between them.
    pub size: Option<String>,
    /// Usable values.
    pub values: usize,
    /// What the estimate and its interval bound, because values are bounds, or missing because they were the worst; null when they are exact.
    pub bound: Option<Bound>,
    /// Hodges-Lehmann estimate of the run's value, in the unit of the metric; null without a usable value.
    pub centre: Option<f64>,
    /// Lower end of its interval; null when the values are too few for one.
    pub low: Option<f64>,
    /// Upper end of its interval; null when the values are too few for one.
    pub high: Option<f64>,
    /// Confidence at which the interval was computed, a fraction, so that those of all values are together at that of the document (Bonferroni); null
    /// without an estimate.
    pub confidence_ratio: Option<f64>,
    /// Whether the run's value is higher or lower than the published one.
    pub verdict: PublishedVerdict,
}

/// A verdict on a run beside a published figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PublishedVerdict {
    /// Kind.
    pub kind: PublishedVerdictKind,
    /// The verdict in words.
    pub text: String,
}

/// Kind of a verdict on a run beside a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedVerdictKind {
    /// The interval of the run lies above the published value or range.
    Higher,
    /// The interval lies below it.
    Lower,
    /// The interval lies within the published range.
    WithinRange,
    /// The interval lies within the margin around the published value.
    NoDifference,
    /// The interval contains the published value or an end of the range, or there is none; `text` states why.
    Inconclusive,
    /// The source defines its figure in another way.
    NotComparable,
}

impl PublishedFigure {
    fn of(comparison: &RunComparison<'_>, one: &published::PublishedFigure) -> Self {
        let figure = &one.figure;
        let [low, high] = figure.range();
        Self {
            publication: figure.publication().id.clone(),
            source: figure.publication().source(),
            size: figure.size().to_owned(),
            title: words::published_title(figure),
            low,
            high,
            text: words::published_value(figure),
            conditions: figure.conditions().to_owned(),
            values: one
                .values
                .iter()
                .map(|value| PublishedComparison::of(comparison, figure, value))
                .collect(),
        }
    }
}

impl PublishedComparison {
    fn of(comparison: &RunComparison<'_>, figure: &Published, one: &published::PublishedComparison) -> Self {
        let kind = match one.standing {
            Standing::Above(_) => PublishedVerdictKind::Higher,
            Standing::Below(_) => PublishedVerdictKind::Lower,
            Standing::WithinRange => PublishedVerdictKind::WithinRange,
            Standing::Close(_) => PublishedVerdictKind::NoDifference,
            Standing::Open | Standing::TooFew | Standing::Bounds => PublishedVerdictKind::Inconclusive,
            Standing::OtherDefinition => PublishedVerdictKind::NotComparable,
        };
        let estimate = one.estimate.as_ref();
        Self {
            run: comparison.label(one.run).to_owned(),
            arm: one.arm.to_string(),
            workload: one.workload.to_string(),
            metric: one.metric,
            unit: one.metric.unit(),
            size: one.size.clone(),
            values: one.n,
            bound: one.bound,
            centre: estimate.map(|estimate| estimate.centre),
            low: estimate.filter(|estimate| estimate.high.is_finite()).map(|estimate| estimate.low),
            high: estimate.map(|estimate| estimate.high).filter(|high| high.is_finite()),
            confidence_ratio: estimate.map(|estimate| estimate.confidence),
            verdict: PublishedVerdict { kind, text: words::published_verdict(figure, one) },
        }
    }
}

/// Why an arm or a workload is not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotComparedReason {
    /// The first run has it, and this run does not.
    Missing,
    /// This run has it, and the first one does not.
    Additional,
    /// Client and server are other hosts of the plan, also where only one run exchanges them.
    Hosts,
    /// The traffic uses another network of the bed.
    Network,
    /// The arm has other treatments.
    Treatments,
    /// The traffic, its timing, its family or its DSCP differs.
    Settings,
}

impl CompareDocument {
    /// Of a comparison.
    pub fn of(comparison: &RunComparison<'_>, origin: &Origin) -> Self {
        let numbers = words::compare::difference_numbers(comparison);
        let mark = |place: usize| words::compare::difference_number(&numbers, place);
        let difference = |(place, one): (usize, &Difference)| RunDifference {
            mark: mark(place),
            ..RunDifference::of(comparison, one)
        };
        let rule = |(name, rule): (&str, String)| Rule { name: name.to_owned(), rule };
        Self {
            envelope: Self::envelope(origin),
            runs: comparison.runs.iter().map(ComparedRun::of).collect(),
            confidence_ratio: comparison.confidence,
            equivalence_ratio: comparison.equivalence,
            differences: comparison.differences.iter().enumerate().map(difference).collect(),
            comparisons: comparison
                .subjects
                .iter()
                .map(|one| ComparedWorkload::of(comparison, one))
                .collect(),
            not_compared: comparison.unmatched.iter().map(|one| NotCompared::of(comparison, one)).collect(),
            published: comparison.published.iter().map(|one| PublishedFigure::of(comparison, one)).collect(),
            rules: words::compare::rules(comparison).into_iter().map(rule).collect(),
        }
    }
}

impl ComparedRun {
    fn of(one: &compare::ComparedRun<'_>) -> Self {
        Self {
            label: one.label.to_string(),
            run: RunInfo::of(one.header, one.analysis),
            question: words::question(&one.analysis.plan),
            blocks: one.analysis.blocks,
            trials_valid: one.analysis.trials_valid,
            trials_excluded: one.analysis.trials_excluded,
            warnings: report::warnings(one.analysis),
        }
    }
}

impl RunDifference {
    /// Without its mark.
    fn of(comparison: &RunComparison<'_>, one: &Difference) -> Self {
        let (host, arm, workload) = match &one.owner {
            Owner::Run => (None, None, None),
            Owner::Host(host) => (Some(host.to_string()), None, None),
            Owner::Arm(arm) => (None, Some(arm.to_string()), None),
            Owner::Workload(arm, workload) => (None, Some(arm.to_string()), Some(workload.to_string())),
        };
        let value = |(run, value): (usize, &Option<String>)| RunFact {
            run: comparison.label(run).to_owned(),
            value: value.clone(),
        };
        Self {
            aspect: one.aspect,
            text: one.subject(),
            host,
            arm,
            workload,
            values: one.values.iter().enumerate().map(value).collect(),
            mark: None,
        }
    }
}

impl ComparedWorkload {
    fn of(comparison: &RunComparison<'_>, subject: &Subject) -> Self {
        let metrics = subject.workload.judged.iter();
        Self {
            workload: subject.workload.name.to_string(),
            arm: subject.arm.to_string(),
            metrics: metrics.map(|metric| ComparedMetric::of(comparison, subject, metric)).collect(),
        }
    }
}

impl ComparedMetric {
    fn of(comparison: &RunComparison<'_>, subject: &Subject, analysis: &MetricAnalysis) -> Self {
        let metric = analysis.metric;
        let verdicts = subject.verdicts.iter().filter(|verdict| verdict.metric == metric);
        Self {
            metric,
            title: analysis.title().to_owned(),
            unit: metric.unit(),
            runs: analysis.arms.iter().map(|values| RunValues::of(metric, values)).collect(),
            comparisons: verdicts.map(|verdict| RunVerdict::of(comparison, verdict)).collect(),
        }
    }
}

impl RunValues {
    /// As the report of a run has them for an arm.
    fn of(metric: Metric, run: &ArmValues) -> Self {
        let values = MetricValues::of(metric, run);
        Self {
            run: values.arm,
            n: values.n,
            median: values.median,
            median_bound: values.median_bound,
            quartile_1: values.quartile_1,
            quartile_1_bound: values.quartile_1_bound,
            quartile_3: values.quartile_3,
            quartile_3_bound: values.quartile_3_bound,
            values: values.values,
        }
    }
}

impl RunVerdict {
    fn of(comparison: &RunComparison<'_>, one: &compare::RunVerdict) -> Self {
        let [values_first, values_own] = one.sizes;
        let text = words::compare::verdict(comparison, one);
        Self {
            run: comparison.label(one.run).to_owned(),
            values_first,
            values_own,
            scale: ComparisonScale::of(one.metric),
            margin: one.margin,
            verdict: Verdict::in_words(one.metric, &one.judged, (one.withheld, one.has_bounds), text),
            explained_by: one.explained_by.clone(),
        }
    }
}

impl NotCompared {
    fn of(comparison: &RunComparison<'_>, one: &Unmatched) -> Self {
        Self {
            run: comparison.label(one.run).to_owned(),
            arm: one.arm.as_ref().map(ToString::to_string),
            workload: one.workload.as_ref().map(ToString::to_string),
            reason: match &one.reason {
                Reason::Missing => NotComparedReason::Missing,
                Reason::Additional => NotComparedReason::Additional,
                Reason::Pair(_) => NotComparedReason::Hosts,
                Reason::Network(_) => NotComparedReason::Network,
                Reason::Treatments(_) => NotComparedReason::Treatments,
                Reason::Settings(_) => NotComparedReason::Settings,
            },
            text: words::compare::unmatched(comparison, one),
        }
    }
}
