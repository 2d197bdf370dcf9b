//! Metrics, their values and verdicts, counters and bottlenecks in JSON.
use netduel_model::metric::{Metric, Scale};
use netduel_stats::paired;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Verdict as StatsVerdict};
use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis::{
    self, Analysis, ArmLimit, ArmValues, Bound, Cause, CounterKind, MetricAnalysis, Withheld,
    WorkloadAnalysis, is_estimated,
};
use crate::words;

/// A metric of a workload, over all arms.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MetricReport {
    /// Key of the metric.
    pub metric: Metric,
    /// Name of the metric, for people.
    pub title: String,
    /// Unit of its values: `bit/s`, `/s`, `/min`, `ns`, `s/GB`, `segments/GB`, `probes` or `fraction`.
    pub unit: &'static str,
    /// Whether it gets a verdict.
    pub judged: bool,
    /// The values of each arm, baseline first.
    pub arms: Vec<MetricValues>,
    /// Every other arm against the baseline; empty without a verdict.
    pub comparisons: Vec<Comparison>,
}

/// Values of a metric on an arm, in the unit of the metric. A statistic is null without values, and where the true one may be smaller or larger.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MetricValues {
    /// Arm.
    pub arm: String,
    /// Number of values.
    pub n: usize,
    /// Mean; null when a value is a bound, and when a valid trial lacks one because its result was the worst.
    pub mean: Option<f64>,
    /// Standard error of the mean; null with fewer than 2 values, and where the mean is null.
    pub standard_error: Option<f64>,
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

/// The value of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct BlockValue {
    /// Block, from 1.
    pub block: u32,
    /// Value, in the unit of the metric.
    pub value: f64,
    /// What the value bounds; null when it is exact.
    pub bound: Option<Bound>,
}

/// An arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Arm.
    pub arm: String,
    /// Blocks in which both arms have a value; in a crossover pairs of such blocks, one of each half.
    pub pairs: usize,
    /// Scale of the estimate and the margin.
    pub scale: ComparisonScale,
    /// Smallest difference that matters: a fraction on the scale `ratio`, else in the unit of the metric.
    pub margin: f64,
    /// Verdict.
    pub verdict: Option<Verdict>,
    /// Warnings that concern this comparison: their positions in `warnings` of the document, from 0.
    pub warnings: Vec<usize>,
}

/// Scale of a comparison: of an arm with the baseline, or of a run with the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonScale {
    /// The ratio to the baseline or the first run; 1 is no difference.
    Ratio,
    /// The difference from the baseline or the first run, in the unit of the metric; 0 is no difference.
    Difference,
}

impl ComparisonScale {
    pub(super) fn of(metric: Metric) -> Self {
        match metric.scale() {
            Scale::Ratio => Self::Ratio,
            Scale::Difference => Self::Difference,
        }
    }
}

/// A verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// Kind.
    pub kind: VerdictKind,
    /// What it means for the arm.
    pub tone: VerdictTone,
    /// The verdict in words.
    pub text: String,
    /// Further blocks for a verdict: about this number, or at least; null when not `inconclusive`, not known, or more than 1000.
    pub more_blocks: Option<u32>,
    /// Two-sided p value of "no difference", corrected for all verdicts of the document (Holm).
    pub adjusted_p: Option<f64>,
    /// Estimate and interval; null without a usable pair, and where values of an inconclusive comparison are bounds, or missing because they were the worst.
    pub estimate: Option<Estimate>,
    /// Whether values are bounds, or missing because they were the worst, so that the effect is at least the estimate; only of the kinds `higher` and `lower`.
    pub at_least: bool,
}

/// Kind of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// The arm's values are higher.
    Higher,
    /// The arm's values are lower.
    Lower,
    /// A difference, if any, is smaller than the margin.
    NoDifference,
    /// The interval holds both "no difference" and a difference that matters, or some values are only bounds; `text` states why.
    Inconclusive,
    /// The values cannot be compared, and more blocks do not change this: CPU time contains that of other processes; `text` states why.
    NotComparable,
}

/// What a verdict means for the arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictTone {
    /// Better than the baseline.
    Better,
    /// Worse than the baseline.
    Worse,
    /// No difference that matters.
    Same,
    /// Inconclusive or not comparable.
    Open,
}

impl VerdictTone {
    pub(super) fn of(tone: words::Tone) -> Self {
        match tone {
            words::Tone::Better => Self::Better,
            words::Tone::Worse => Self::Worse,
            words::Tone::Same => Self::Same,
            words::Tone::Open => Self::Open,
        }
    }
}

/// An estimate on the scale of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Pairs; between two runs the values of the one with fewer.
    pub n: usize,
    /// Hodges-Lehmann estimate.
    pub centre: Option<f64>,
    /// Lower end of the interval; null when the values are too few for one.
    pub low: Option<f64>,
    /// Upper end of the interval; null when the values are too few for one.
    pub high: Option<f64>,
    /// Confidence of the interval, a fraction.
    pub confidence_ratio: f64,
    /// Two-sided p value of "no difference", not corrected.
    pub p_value: f64,
}

impl MetricReport {
    pub(super) fn of(
        run: &Analysis,
        workload: &WorkloadAnalysis,
        analysis: &MetricAnalysis,
        judged: bool,
    ) -> Self {
        let metric = analysis.metric;
        let comparison = |one: &analysis::Comparison| Comparison {
            warnings: analysis::warnings_about(run, workload, metric, &one.arm),
            ..Comparison::of(metric, one)
        };
        Self {
            metric,
            title: analysis.title().to_owned(),
            unit: metric.unit(),
            judged,
            arms: analysis.arms.iter().map(|arm| MetricValues::of(metric, arm)).collect(),
            comparisons: analysis.comparisons.iter().map(comparison).collect(),
        }
    }
}

impl MetricValues {
    pub(super) fn of(metric: Metric, arm: &ArmValues) -> Self {
        let numbers = arm.numbers();
        let mean = summary::mean(&numbers).filter(|_| arm.bound(metric).is_none());
        let [(quartile_1, quartile_1_bound), (median, median_bound), (quartile_3, quartile_3_bound)] =
            [0.25, 0.5, 0.75].map(|share| arm.quantile(metric, share).unzip());
        let of_block = |&(block, value): &(u32, f64)| BlockValue {
            block: block.saturating_add(1),
            value,
            bound: arm.bound_in(metric, block),
        };
        Self {
            arm: arm.arm.to_string(),
            n: numbers.len(),
            mean: mean.map(|mean| mean.mean),
            standard_error: mean.and_then(|mean| mean.standard_error),
            median,
            median_bound: median_bound.flatten(),
            quartile_1,
            quartile_1_bound: quartile_1_bound.flatten(),
            quartile_3,
            quartile_3_bound: quartile_3_bound.flatten(),
            values: arm.values.iter().map(of_block).collect(),
        }
    }
}

impl Comparison {
    fn of(metric: Metric, comparison: &analysis::Comparison) -> Self {
        Self {
            arm: comparison.arm.to_string(),
            pairs: comparison.pairs.len(),
            scale: ComparisonScale::of(metric),
            margin: comparison.margin,
            verdict: comparison.judged.as_ref().map(|judged| Verdict::of(metric, comparison, judged)),
            warnings: Vec::new(),
        }
    }
}

impl Verdict {
    fn of(metric: Metric, comparison: &analysis::Comparison, judged: &Judged) -> Self {
        let seen = (comparison.withheld, comparison.has_bounds());
        Self::in_words(metric, judged, seen, words::verdict(metric, comparison))
    }

    /// With its text, why it is withheld, and whether values are bounds.
    pub(super) fn in_words(
        metric: Metric,
        judged: &Judged,
        (withheld, has_bounds): (Option<Withheld>, bool),
        text: String,
    ) -> Self {
        let (kind, more_blocks) = match judged.verdict {
            _ if matches!(withheld, Some(Withheld::CpuContention { .. })) => {
                (VerdictKind::NotComparable, None)
            }
            StatsVerdict::Higher { .. } => (VerdictKind::Higher, None),
            StatsVerdict::Lower { .. } => (VerdictKind::Lower, None),
            StatsVerdict::NoDifference { .. } => (VerdictKind::NoDifference, None),
            StatsVerdict::Inconclusive { more, .. } => {
                (VerdictKind::Inconclusive, more.and_then(words::blocks_worth_naming))
            }
        };
        let estimate = judged.estimate.as_ref().filter(|_| is_estimated(judged, has_bounds));
        Self {
            kind,
            tone: VerdictTone::of(words::tone(metric, Some(judged))),
            text,
            more_blocks,
            adjusted_p: judged.adjusted_p,
            estimate: estimate.map(Estimate::of),
            at_least: has_bounds && matches!(kind, VerdictKind::Higher | VerdictKind::Lower),
        }
    }
}

impl Estimate {
    /// An interval that has no end yet has null there: JSON knows no infinity.
    fn of(estimate: &paired::Estimate) -> Self {
        let end = |value: f64| value.is_finite().then_some(value);
        Self {
            n: estimate.n,
            centre: end(estimate.centre),
            low: end(estimate.low).filter(|_| estimate.high.is_finite()),
            high: end(estimate.high),
            confidence_ratio: estimate.confidence,
            p_value: estimate.p_value,
        }
    }
}

/// Bottleneck of the trials of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bottleneck {
    /// Cause in most trials; null when several causes share the largest number of trials.
    pub cause: Option<Cause>,
    /// The cause in words.
    pub text: String,
    /// Trials with this cause, or with each of these causes.
    pub trials: u32,
    /// Valid trials.
    pub trials_total: u32,
    /// The evidence of one of these trials, in words with its numbers; the decisive fact is first. Without a single cause that of a trial
    /// with the first of `others`.
    pub evidence: Vec<String>,
    /// Block of that trial, from 1; null for a quick test.
    pub evidence_block: Option<u32>,
    /// Bottlenecks of the other trials, most frequent first; without a single cause of all trials.
    pub others: Vec<OtherBottleneck>,
}

/// A less frequent bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherBottleneck {
    /// Cause.
    pub cause: Cause,
    /// Trials with this cause.
    pub trials: u32,
}

impl Bottleneck {
    pub(super) fn of_arm(limit: &ArmLimit) -> Self {
        Self {
            cause: limit.cause,
            text: limit.words().to_owned(),
            trials: limit.trials,
            trials_total: limit.of,
            evidence: limit.evidence.clone(),
            evidence_block: Some(limit.evidence_block.saturating_add(1)),
            others: limit.others.iter().map(|&(cause, trials)| OtherBottleneck { cause, trials }).collect(),
        }
    }

    pub(super) fn of_trial(limit: &analysis::Limit) -> Self {
        Self {
            cause: Some(limit.cause),
            text: limit.cause.words().to_owned(),
            trials: 1,
            trials_total: 1,
            evidence: limit.evidence.clone(),
            evidence_block: None,
            others: Vec::new(),
        }
    }
}

/// A counter over all arms, per unit of work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CounterReport {
    /// Which counter.
    pub counter: CounterKind,
    /// Name, for people.
    pub title: String,
    /// Unit of the numbers, for example `s/GB` or `ns/datagram`; `fraction` for a share.
    pub unit: String,
    /// The arms, baseline first.
    pub arms: Vec<CounterValues>,
}

/// A counter on an arm. The numbers are null when no trial has the counter.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CounterValues {
    /// Arm.
    pub arm: String,
    /// Trials with the counter.
    pub trials: Option<u32>,
    /// Median over these trials.
    pub median: Option<f64>,
    /// Minimum.
    pub min: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

impl CounterReport {
    pub(super) fn of(counter: &analysis::Counter) -> Self {
        // People read microseconds; documents have one unit of time per message.
        let (factor, unit) = match counter.unit.strip_prefix("us/") {
            Some(work) => (1e3, format!("ns/{work}")),
            None => (1.0, counter.unit.to_owned()),
        };
        let arm = |(arm, spread): &(netduel_model::ids::ArmName, Option<analysis::Spread>)| CounterValues {
            arm: arm.to_string(),
            trials: spread.map(|spread| spread.trials),
            median: spread.map(|spread| spread.median * factor),
            min: spread.map(|spread| spread.min * factor),
            max: spread.map(|spread| spread.max * factor),
        };
        Self {
            counter: counter.kind,
            title: counter.title.to_owned(),
            unit,
            arms: counter.arms.iter().map(arm).collect(),
        }
    }
}
