//! Comparisons of arms: both values and the verdict of each metric, all from one estimate.
use crate::words::tone::Tone;

/// The comparisons of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// The baseline.
    pub baseline: String,
    /// Names of the other arms.
    pub others: Vec<String>,
    /// The margin of the plan, a fraction.
    pub equivalence: f64,
    /// What the brackets of values and verdicts hold.
    pub legend: String,
    /// The same for a renderer that omits quartiles; empty without a comparison.
    pub legend_brief: &'static str,
    /// Comparisons by workload.
    pub groups: Vec<VerdictGroup>,
}

/// The comparisons of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictGroup {
    /// The workload.
    pub title: String,
    /// Its settings in one line.
    pub settings: String,
    /// A row for each metric and arm, grouped by metric.
    pub rows: Vec<VerdictRow>,
}

/// One arm against the baseline in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictRow {
    /// The metric.
    pub metric: String,
    /// The baseline's value.
    pub baseline: Measure,
    /// The other arm; absent in a run of one arm.
    pub arm: Option<Compared>,
    /// The mark that the warnings about this row have in their lists, for example `*2,5`; empty without any.
    pub mark: String,
}

/// The value of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The arm.
    pub arm: String,
    /// The median of its valid trials, with its unit; absent without a valid trial.
    pub median: Option<String>,
    /// The quartiles in brackets; empty for a single trial.
    pub quartiles: String,
    /// Valid trials.
    pub n: usize,
}

/// An arm with its verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Its value.
    pub measure: Measure,
    /// Whether the verdict is an improvement.
    pub tone: Tone,
    /// The verdict.
    pub verdict: String,
    /// The interval behind the verdict.
    pub effect: Effect,
}

impl Compared {
    /// The estimate in words where the verdict has no number of it: `estimate 0.256x [0.126, 56.2]`.
    pub fn estimate(&self) -> Option<String> {
        match (&self.effect, self.tone) {
            (Effect::Unknown, _) | (_, Tone::Better | Tone::Worse) => None,
            (Effect::Ratio { words, .. } | Effect::Difference(words), _) => Some(format!("estimate {words}")),
        }
    }
}

/// The estimate behind a verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// No estimate yet.
    Unknown,
    /// A ratio with its interval.
    Ratio {
        /// Estimate.
        centre: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
        /// `3.2x [2.9, 3.5]`.
        words: String,
    },
    /// A difference in words, for a metric that may be 0.
    Difference(String),
}

impl Measure {
    /// Median, quartiles and number of trials: `6.12 Gbit/s [6.02, 6.31] (n 8)`.
    pub fn words(&self) -> String {
        let Self { median, quartiles, n, .. } = self;
        match median {
            None => "no valid trial".to_owned(),
            Some(median) if quartiles.is_empty() => format!("{median} (n {n})"),
            Some(median) => format!("{median} {quartiles} (n {n})"),
        }
    }
}
