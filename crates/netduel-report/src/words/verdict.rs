//! What is said of a comparison: its tone, its words, its interval, and the sentence that answers the question.
use std::fmt::Write as _;

use netduel_model::ids::ArmName;
use netduel_model::metric::{Better, Metric, Scale};
use netduel_model::units::three_digits;
use netduel_stats::paired::Estimate;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Verdict};

use super::text::{figure, percent_exact, times};
use crate::analysis::{ArmValues, Comparison, MetricAnalysis, WorkloadAnalysis};

/// So many more blocks are named; beyond it nobody would run them.
const BLOCKS_WORTH_NAMING: u32 = 1000;

/// What a verdict means for the person who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The arm is better than the baseline.
    Better,
    /// The arm is worse.
    Worse,
    /// They do not differ by an amount that matters.
    Same,
    /// Nothing can be said yet.
    Open,
}

impl Tone {
    /// One word, also the name of the style.
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::Open => "open",
        }
    }

    /// A mark that tells the tones apart without colour.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Better => "+",
            Self::Worse => "-",
            Self::Same => "=",
            Self::Open => "?",
        }
    }
}

/// Whether a verdict is good news in its metric.
pub fn tone(metric: Metric, judged: Option<&Judged>) -> Tone {
    let Some(judged) = judged else { return Tone::Open };
    match (judged.verdict, metric.better()) {
        (Verdict::Higher { .. }, Better::Higher) | (Verdict::Lower { .. }, Better::Lower) => Tone::Better,
        (Verdict::Higher { .. }, Better::Lower) | (Verdict::Lower { .. }, Better::Higher) => Tone::Worse,
        (Verdict::NoDifference { .. }, _) => Tone::Same,
        (Verdict::NotEnough { .. }, _) => Tone::Open,
    }
}

/// A verdict, for example `faster by 220 % [190, 250] (3.2x)`.
pub fn verdict(metric: Metric, judged: Option<&Judged>) -> String {
    let Some(judged) = judged else { return "not judged".to_owned() };
    match judged.verdict {
        Verdict::Higher { estimate } => {
            format!("{} by {}", direction(metric, true), effect(metric, &estimate))
        }
        Verdict::Lower { estimate } => {
            format!("{} by {}", direction(metric, false), effect(metric, &estimate))
        }
        Verdict::NoDifference { larger_than, .. } => {
            format!("no difference larger than {}", amount(metric, larger_than))
        }
        Verdict::NotEnough { more: Some(1), .. } => "not enough trials: 1 more block would do".to_owned(),
        // The spread says no more than that this design will not answer the question.
        Verdict::NotEnough { more: Some(more), .. } if more > BLOCKS_WORTH_NAMING => {
            format!("not enough trials: more than {BLOCKS_WORTH_NAMING} more blocks would be needed")
        }
        Verdict::NotEnough { more: Some(more), .. } => {
            format!("not enough trials: {more} more blocks would do")
        }
        Verdict::NotEnough { estimate: None, .. } => "not enough trials: no block has both arms".to_owned(),
        Verdict::NotEnough { more: None, .. } => "not enough trials: the spread is not known yet".to_owned(),
    }
}

/// Rates and round trips are faster or slower; costs, losses and jitter are higher or lower.
fn direction(metric: Metric, higher: bool) -> &'static str {
    match (metric, higher) {
        (Metric::Throughput | Metric::DatagramRate | Metric::PacketRate | Metric::RoundTripRate, true) => {
            "faster"
        }
        (Metric::Throughput | Metric::DatagramRate | Metric::PacketRate | Metric::RoundTripRate, false) => {
            "slower"
        }
        (latency, true) if latency.is_latency() => "slower",
        (latency, false) if latency.is_latency() => "faster",
        (_, true) => "higher",
        (_, false) => "lower",
    }
}

/// `220 % [190, 250] (3.2x)` for a ratio, `1.2 percentage points [1.0, 1.4]` for a loss. The interval is given in the
/// direction of the verdict, smaller end first.
fn effect(metric: Metric, estimate: &Estimate) -> String {
    let sides = |centre: f64, low: f64, high: f64| {
        let (a, b) = (centre.signum() * low, centre.signum() * high);
        (centre.abs(), a.min(b), a.max(b))
    };
    match metric.scale() {
        Scale::Ratio => {
            let percent = |ratio: f64| (ratio - 1.0) * 100.0;
            let (centre, low, high) =
                sides(percent(estimate.centre), percent(estimate.low), percent(estimate.high));
            let of_what = if metric.is_latency() { " the time" } else { "" };
            format!("{} %{} ({}{of_what})", figure(centre), bracket(low, high), times(estimate.centre))
        }
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            let (centre, low, high) =
                sides(estimate.centre * factor, estimate.low * factor, estimate.high * factor);
            format!("{} {unit}{}", figure(centre), bracket(low, high))
        }
    }
}

fn bracket(low: f64, high: f64) -> String {
    if low.is_finite() && high.is_finite() {
        format!(" [{}, {}]", figure(low), figure(high))
    } else {
        String::new()
    }
}

/// A margin in words: `5 %`, `0.10 percentage points`.
fn amount(metric: Metric, margin: f64) -> String {
    match metric.scale() {
        Scale::Ratio => percent_exact(margin),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            format!("{} {unit}", figure(margin * factor))
        }
    }
}

fn difference_unit(metric: Metric) -> (f64, &'static str) {
    match metric {
        Metric::Loss => (100.0, "percentage points"),
        Metric::Outage | Metric::RecoveryTime => (1e-6, "ms"),
        _ => (1.0, metric.unit()),
    }
}

/// The interval of a comparison as ratios or differences: `3.2 [2.9, 3.5]`; absent when there is no estimate.
pub fn interval(metric: Metric, estimate: &Estimate) -> String {
    let (factor, unit) = match metric.scale() {
        Scale::Ratio => (1.0, "x".to_owned()),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            (factor, format!(" {unit}"))
        }
    };
    let (centre, low, high) = (estimate.centre * factor, estimate.low * factor, estimate.high * factor);
    if low.is_finite() && high.is_finite() {
        format!("{}{unit} [{}, {}]", three_digits(centre), three_digits(low), three_digits(high))
    } else {
        format!("{}{unit}, too few blocks for an interval", three_digits(centre))
    }
}

/// A mean with its standard error and number of trials: `6.12 Gbit/s ± 41.0 Mbit/s (n 8)`.
pub fn value(metric: &MetricAnalysis, values: &ArmValues) -> String {
    let numbers = values.numbers();
    let n = numbers.len();
    let Some(mean) = summary::mean(&numbers) else { return "no valid trial".to_owned() };
    match mean.standard_error {
        Some(error) => format!("{} ± {} (n {n})", metric.human(mean.mean), metric.human(error)),
        None => format!("{} (n {n})", metric.human(mean.mean)),
    }
}

/// A part of an answer: `is`, `faster by 220 % [190, 250] (3.2x)`, `in throughput`. Metrics of which the same is said share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The verb before the verdict.
    pub verb: &'static str,
    /// The verdict, or its head when it has a remedy.
    pub verdict: String,
    /// What it is said of: `in throughput`, `for round trip p50 and round trip p99`.
    pub subject: String,
    /// What to do about it, from the colon on; empty when there is nothing.
    pub remedy: String,
    /// Whether it is good news.
    pub tone: Tone,
}

/// What is said of one arm in one workload. Everything that is still open is one clause, with what the slowest metric needs.
pub fn clauses(workload: &WorkloadAnalysis, arm: &ArmName) -> Vec<Clause> {
    let mut groups: Vec<(Tone, String, Option<u32>, Vec<&'static str>)> = Vec::new();
    for (analysis, comparison) in comparisons(workload, arm) {
        let metric = analysis.metric;
        let judged = comparison.judged.as_ref();
        let (tone, words) = (tone(metric, judged), verdict(metric, judged));
        let more = judged.and_then(|judged| match judged.verdict {
            Verdict::NotEnough { more, .. } => more,
            _ => None,
        });
        let alike = |group: &(Tone, String, Option<u32>, _)| {
            group.0 == tone && (tone == Tone::Open || group.1 == words)
        };
        if let Some(group) = groups.iter_mut().find(|group| alike(group)) {
            group.3.push(analysis.title());
            // A number that is not known is longer than any that is.
            if group.2.is_some() && more.is_none_or(|more| Some(more) > group.2) {
                (group.1, group.2) = (words, more);
            }
        } else {
            groups.push((tone, words, more, vec![analysis.title()]));
        }
    }
    groups.into_iter().map(|(tone, words, _, metrics)| clause(tone, &words, &metrics)).collect()
}

fn clause(tone: Tone, words: &str, metrics: &[&str]) -> Clause {
    let (verb, preposition) = match tone {
        Tone::Better | Tone::Worse => ("is", "in"),
        Tone::Same => ("shows", "in"),
        Tone::Open => ("has", "for"),
    };
    let list = match metrics.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => metrics.concat(),
    };
    let (head, remedy) = words.split_once(": ").map_or((words, None), |(head, rest)| (head, Some(rest)));
    Clause {
        verb,
        verdict: head.to_owned(),
        subject: format!("{preposition} {list}"),
        remedy: remedy.map(|remedy| format!(": {remedy}")).unwrap_or_default(),
        tone,
    }
}

/// What stands between the clauses of an answer: before clause `index` of `count`.
pub fn joint(index: usize, count: usize) -> &'static str {
    match index {
        0 => " ",
        _ if index + 1 == count => ", and ",
        _ => ", ",
    }
}

/// The answer for one arm in one workload, a sentence: all judged metrics against the baseline.
pub fn answer(workload: &WorkloadAnalysis, arm: &ArmName) -> Option<String> {
    let clauses = clauses(workload, arm);
    let mut sentence = arm.to_string();
    for (index, Clause { verb, verdict, subject, remedy, .. }) in clauses.iter().enumerate() {
        let joint = joint(index, clauses.len());
        let _ = write!(sentence, "{joint}{verb} {verdict} {subject}{remedy}");
    }
    (!clauses.is_empty()).then(|| sentence + ".")
}

/// Every judged metric of a workload with the comparison of one arm.
fn comparisons<'a>(
    workload: &'a WorkloadAnalysis,
    arm: &'a ArmName,
) -> impl Iterator<Item = (&'a MetricAnalysis, &'a Comparison)> {
    workload.judged.iter().filter_map(move |metric: &MetricAnalysis| {
        Some((metric, metric.comparisons.iter().find(|comparison| &comparison.arm == arm)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(centre: f64, low: f64, high: f64) -> Estimate {
        Estimate { n: 8, centre, low, high, confidence: 0.95, p_value: 0.01 }
    }

    fn judged(verdict: Verdict) -> Judged {
        Judged { verdict, estimate: verdict.estimate(), adjusted_p: None }
    }

    #[test]
    fn verdicts_have_their_words() {
        let more = |more| Verdict::NotEnough { estimate: None, more };
        for (metric, given, words) in [
            (
                Metric::Throughput,
                Verdict::Higher { estimate: estimate(3.2, 2.9, 3.5) },
                "faster by 220 % [190, 250] (3.2x)",
            ),
            (
                Metric::Throughput,
                Verdict::Lower { estimate: estimate(0.9, 0.88, 0.95) },
                "slower by 10 % [5.0, 12] (0.90x)",
            ),
            (
                Metric::LatencyP99,
                Verdict::Lower { estimate: estimate(0.31, 0.29, 0.34) },
                "faster by 69 % [66, 71] (0.31x the time)",
            ),
            (
                Metric::LatencyP50,
                Verdict::Higher { estimate: estimate(12.0, 11.0, 13.0) },
                "slower by 1100 % [1000, 1200] (12x the time)",
            ),
            (
                Metric::CpuPerGigabyte,
                Verdict::Lower { estimate: estimate(0.5, 0.4, 0.6) },
                "lower by 50 % [40, 60] (0.50x)",
            ),
            (
                Metric::Jitter,
                Verdict::Higher { estimate: estimate(1.02, 1.01, 1.03) },
                "higher by 2.0 % [1.0, 3.0] (1.02x)",
            ),
            (
                Metric::Loss,
                Verdict::Lower { estimate: estimate(-0.012, -0.014, -0.01) },
                "lower by 1.2 percentage points [1.0, 1.4]",
            ),
            (
                Metric::RetransmitsPerGigabyte,
                Verdict::Higher { estimate: estimate(40.0, 30.0, 50.0) },
                "higher by 40 segments/GB [30, 50]",
            ),
            (
                Metric::Throughput,
                Verdict::NoDifference { estimate: estimate(1.0, 0.99, 1.01), larger_than: 0.05 },
                "no difference larger than 5 %",
            ),
            (
                Metric::Loss,
                Verdict::NoDifference { estimate: estimate(0.0, 0.0, 0.0), larger_than: 0.001 },
                "no difference larger than 0.10 percentage points",
            ),
            (Metric::Loss, more(Some(12)), "not enough trials: 12 more blocks would do"),
            (Metric::Loss, more(Some(9819)), "not enough trials: more than 1000 more blocks would be needed"),
            (Metric::Loss, more(Some(1)), "not enough trials: 1 more block would do"),
            (Metric::Loss, more(None), "not enough trials: no block has both arms"),
        ] {
            assert_eq!(verdict(metric, Some(&judged(given))), words);
        }
    }

    #[test]
    fn an_interval_without_ends_is_not_printed_as_one() {
        let endless = estimate(2.0, 0.0, f64::INFINITY);
        assert_eq!(interval(Metric::Throughput, &endless), "2.00x, too few blocks for an interval");
        assert_eq!(effect(Metric::Throughput, &endless), "100 % (2.0x)");
    }
}
