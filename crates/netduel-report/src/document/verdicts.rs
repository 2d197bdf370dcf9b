//! Comparisons of arms: both values, the verdict and the drawn interval of each metric, all from one estimate.
use super::table::Column;
use crate::words::tone::Tone;

/// What is set against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sides {
    /// Arms of one run, paired within its blocks.
    Arms,
    /// Runs, whose trials are not paired.
    Runs,
}

/// The comparisons of a run: a table for each workload, and an interval for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdicts {
    /// What is set against the baseline.
    pub sides: Sides,
    /// The baseline.
    pub baseline: String,
    /// The other arm or run, or [`Sides::noun`] if there are several, each named in its row.
    pub other: String,
    /// The margin of the plan, a fraction.
    pub equivalence: f64,
    /// What the brackets of values and verdicts hold.
    pub legend: String,
    /// The same for a renderer that omits quartiles.
    pub legend_brief: String,
    /// The columns of every workload. The first has the metric, the last the verdict.
    pub columns: Vec<Column>,
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
    /// The bottleneck of its arms, for a renderer that shows no sections of workloads; empty when it is unknown.
    pub bottleneck: String,
    /// A row for each metric and arm, grouped by metric.
    pub rows: Vec<VerdictRow>,
}

/// One arm against the baseline in one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictRow {
    /// One cell per column.
    pub cells: Vec<VerdictCell>,
    /// Number of leading cells that are those of the row above: its metric and the baseline's value.
    pub repeated: usize,
    /// Whether the verdict is an improvement.
    pub tone: Tone,
    /// The mark that the warnings about this row have in their lists, for example `*2,5`; empty without any.
    pub mark: String,
    /// The interval behind the verdict, for a picture of it.
    pub effect: Effect,
}

/// A cell of the comparisons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerdictCell {
    /// Its text.
    pub text: String,
    /// What brief output omits: quartiles and number of trials of a value, the estimate behind a verdict without a number of it.
    /// Empty without any.
    pub detail: String,
}

/// The value of an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The median of its valid trials, with its unit; absent without a value, and where the true one may be smaller or larger.
    pub median: Option<String>,
    /// The quartiles in brackets; empty for a single trial.
    pub quartiles: String,
    /// Valid trials.
    pub n: usize,
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

impl Sides {
    /// What each of them is.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Arms => "arm",
            Self::Runs => "run",
        }
    }

    /// What a row compares: the words before the name of the baseline, and those after it.
    pub fn reading(self) -> [&'static str; 2] {
        match self {
            Self::Arms => ["Each row compares an arm with ", " within the blocks. "],
            Self::Runs => ["Each row compares a run with ", ". "],
        }
    }

    /// What follows an estimate without an interval. The verdict between two runs states that there are too few values.
    pub fn without_interval(self) -> &'static str {
        match self {
            Self::Arms => ", too few blocks for an interval",
            Self::Runs => "",
        }
    }

    /// What the estimate of a row is called.
    pub fn estimate(self) -> &'static str {
        match self {
            Self::Arms => "paired estimate",
            Self::Runs => "estimate",
        }
    }
}

impl Verdicts {
    /// The columns of a comparison of these arms or runs, the baseline first. Two have a column each; of several, each row names its
    /// own.
    pub fn columns(sides: Sides, baseline: &str, others: &[String]) -> Vec<Column> {
        let values = match others {
            [other] => vec![Column::number(baseline), Column::number(other)],
            _ => vec![
                Column::number(format!("baseline {baseline}")),
                Column::key(sides.noun()),
                Column::number(format!("value of the {}", sides.noun())),
            ],
        };
        [vec![Column::key("metric")], values, vec![Column::text("verdict")]].concat()
    }

    /// Whether a row has a ratio to draw.
    pub fn has_ratios(&self) -> bool {
        self.rows().any(|row| matches!(row.effect, Effect::Ratio { .. }))
    }

    /// The rows of all workloads.
    pub fn rows(&self) -> impl Iterator<Item = &VerdictRow> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}

impl VerdictCell {
    /// Text and detail with a separator between them.
    pub fn with_detail(&self, separator: &str) -> String {
        let separator = if self.text.is_empty() || self.detail.is_empty() { "" } else { separator };
        format!("{}{separator}{}", self.text, self.detail)
    }
}

impl From<&Measure> for VerdictCell {
    fn from(measure: &Measure) -> Self {
        let Measure { median, quartiles, n } = measure;
        match median {
            None => Self::from("no value"),
            Some(median) if quartiles.is_empty() => Self { text: median.clone(), detail: format!("(n {n})") },
            Some(median) => Self { text: median.clone(), detail: format!("{quartiles} (n {n})") },
        }
    }
}

impl From<&str> for VerdictCell {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), detail: String::new() }
    }
}

impl Measure {
    /// Median, quartiles and number of trials: `6.12 Gbit/s [6.02, 6.31] (n 8)`.
    pub fn words(&self) -> String {
        VerdictCell::from(self).with_detail(" ")
    }
}

impl Effect {
    /// The estimate with its interval; empty when unknown.
    pub fn words(&self) -> &str {
        match self {
            Self::Unknown => "",
            Self::Ratio { words, .. } | Self::Difference(words) => words,
        }
    }
}
