//! The words of a comparison: verdict and interval.
//!
//! All use the estimates of the verdict: medians of trials, and the median of pairs within blocks.
use netduel_model::metric::{Better, Metric, Scale};
use netduel_model::units::{count, plural, three_digits};
use netduel_stats::paired::Estimate;
use netduel_stats::verdict::{Forecast, Judged, Verdict};

use super::text::{fall, figure, percent, percent_exact, times};
use super::tone::Tone;
use crate::analysis::{Bound, Comparison, Withheld};
use crate::document::verdicts::{Effect, Sides};

/// Above this number of missing blocks a forecast from few blocks is only an order of magnitude.
const BLOCKS_MANY: u32 = 100;
/// Above this number of missing blocks the design cannot decide, and the exact number is meaningless.
const BLOCKS_WORTH_NAMING: u32 = 1000;

/// The further blocks that a verdict needs; absent when the design cannot decide.
pub fn blocks_worth_naming(more: Forecast) -> Option<u32> {
    Some(more.blocks()).filter(|blocks| *blocks <= BLOCKS_WORTH_NAMING)
}

/// Whether a verdict is an improvement in its metric.
pub fn tone(metric: Metric, judged: Option<&Judged>) -> Tone {
    let Some(judged) = judged else { return Tone::Open };
    match (judged.verdict, metric.better()) {
        (Verdict::Higher { .. }, Better::Higher) | (Verdict::Lower { .. }, Better::Lower) => Tone::Better,
        (Verdict::Higher { .. }, Better::Lower) | (Verdict::Lower { .. }, Better::Higher) => Tone::Worse,
        (Verdict::NoDifference { .. }, _) => Tone::Same,
        (Verdict::Inconclusive { .. }, _) => Tone::Open,
    }
}

/// A verdict: `3.2x (+220 %) [2.9x, 3.5x]`, `65 % lower [61, 68]`, `no difference beyond 5 %`, `inconclusive: about 12 more blocks`.
/// Where blocks lack a pair their number follows: `65 % lower [61, 68] (9 of 10 pairs)`. With bounds it is `at least 65 % lower [61, 68]`.
pub fn verdict(metric: Metric, comparison: &Comparison) -> String {
    let Some(judged) = comparison.judged.as_ref() else { return "not judged".to_owned() };
    match comparison.withheld {
        Some(Withheld::CpuContention { share_max }) => return not_comparable(share_max),
        Some(Withheld::NoValue { trials }) => {
            return no_value(["the baseline", comparison.arm.as_str()], trials);
        }
        Some(Withheld::Bounds) | None => {}
    }
    // A pair whose values have no ratio, because one is 0, is not used.
    let used = judged.estimate.map_or(0, |estimate| estimate.n);
    let (pairs, blocks) = (comparison.pairs.len().min(used), comparison.blocks);
    let words = match judged.verdict {
        Verdict::Higher { estimate } | Verdict::Lower { estimate } => {
            bounded_effect(metric, &estimate, comparison.has_bounds())
        }
        Verdict::NoDifference { larger_than, .. } => {
            format!("no difference beyond {}", amount(metric, larger_than))
        }
        Verdict::Inconclusive { estimate: None, .. } => return without_pair(comparison).to_owned(),
        Verdict::Inconclusive { more: Some(Forecast::AtLeast(more)), .. } if pairs < blocks => {
            return too_few_pairs(comparison, [pairs, blocks], more);
        }
        Verdict::Inconclusive { more: Some(more), .. } if blocks_worth_naming(more).is_none() => {
            "inconclusive: the spread is too large; use longer trials or quieter hosts".to_owned()
        }
        Verdict::Inconclusive { more: Some(Forecast::About(more)), .. } if more > BLOCKS_MANY => {
            format!("inconclusive: more than {BLOCKS_MANY} more blocks")
        }
        Verdict::Inconclusive { more: Some(Forecast::About(more)), .. } => further("about", more),
        Verdict::Inconclusive { more: Some(Forecast::AtLeast(more)), .. } => further("at least", more),
        Verdict::Inconclusive { more: None, .. } if comparison.withheld == Some(Withheld::Bounds) => {
            bounded(metric).to_owned()
        }
        Verdict::Inconclusive { more: None, .. } => "inconclusive".to_owned(),
    };
    if pairs < blocks { format!("{words} ({pairs} of {blocks} pairs)") } else { words }
}

/// The effect of a verdict "higher" or "lower"; with bounds it is at least so large.
pub(super) fn bounded_effect(metric: Metric, estimate: &Estimate, has_bounds: bool) -> String {
    let limit = match manner(metric) {
        _ if !has_bounds => "",
        // A factor below 1 is the smaller the larger the effect is.
        Manner::Times if estimate.centre < 1.0 => "at most ",
        _ => "at least ",
    };
    format!("{limit}{}", effect(metric, estimate))
}

/// A comparison without a pair that can be used.
fn without_pair(comparison: &Comparison) -> &'static str {
    match (comparison.pairs.is_empty(), comparison.is_crossover) {
        (false, _) => "inconclusive: no pair has a ratio, because values are 0",
        (true, false) => "inconclusive: no block with both arms",
        (true, true) => "inconclusive: no two blocks, one of each half, with both arms",
    }
}

/// A comparison with fewer pairs than trials allow, and than the rule needs: by `more` blocks, of which a pair of a crossover has two.
fn too_few_pairs(comparison: &Comparison, [pairs, possible]: [usize; 2], more: u32) -> String {
    if comparison.is_crossover {
        let needed = pairs + more.div_ceil(2) as usize;
        return format!(
            "inconclusive: {pairs} of {possible} pairs of blocks have values, at least {needed} needed"
        );
    }
    let needed = pairs + more as usize;
    format!("inconclusive: {pairs} of {possible} blocks have a pair, at least {needed} needed")
}

/// A verdict on a metric that bounds withhold.
pub(super) fn bounded(metric: Metric) -> &'static str {
    match Bound::of_values(metric) {
        Bound::AtLeast => "inconclusive: some values are only lower bounds",
        Bound::LessThan => "inconclusive: some values are only upper bounds",
    }
}

/// A verdict that valid trials without a value withhold. `names`: the two sides, which have so many of them.
pub(super) fn no_value(names: [&str; 2], trials: [u32; 2]) -> String {
    let of_side = |(name, trials): (&str, u32)| {
        (trials > 0).then(|| format!("{} of {name}", plural(trials, "valid trial")))
    };
    let sides: Vec<String> = names.into_iter().zip(trials).filter_map(of_side).collect();
    format!("{INCONCLUSIVE}no value in {}", sides.join(" and "))
}

/// A verdict that the CPU time of other processes withholds.
pub(crate) fn not_comparable(share_max: f64) -> String {
    let share = percent(share_max);
    format!("{NOT_COMPARABLE}other processes used up to {share} of the CPU time of a host")
}

fn further(about: &str, blocks: u32) -> String {
    format!("inconclusive: {about} {}", plural(blocks, "more block"))
}

/// How a number is written.
type Words = fn(f64) -> String;

/// How the effect of a metric is expressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// A rate: `3.2x (+220 %)`.
    Times,
    /// A time or another size: `65 % lower`.
    Share,
    /// A cost: `74 % less per GB`.
    Cost(&'static str),
    /// A difference: `1.2 percentage points lower`.
    Difference,
}

pub(super) fn manner(metric: Metric) -> Manner {
    match (metric.scale(), metric.better()) {
        (Scale::Difference, _) => Manner::Difference,
        (Scale::Ratio, Better::Higher) => Manner::Times,
        (Scale::Ratio, Better::Lower) => match metric {
            Metric::CpuPerGigabyte => Manner::Cost(" per GB"),
            Metric::CpuPerRoundTrip | Metric::CpuPerDatagram => Manner::Cost(""),
            _ => Manner::Share,
        },
    }
}

/// An effect with its interval, in the direction of the effect, smaller end first.
pub(super) fn effect(metric: Metric, estimate: &Estimate) -> String {
    let in_percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let manner = manner(metric);
    let worded = |[more, less, as_much]: [&str; 3], unit: &str| {
        let Estimate { centre, low, high, .. } = *estimate;
        match manner {
            // Above a factor of two, a percentage is harder to read than a factor.
            Manner::Share | Manner::Cost(_) if centre >= 2.0 => {
                let [centre, interval] = bracketed([centre, low, high], times);
                format!("{centre} {as_much}{unit}{interval}")
            }
            _ => {
                let [centre, low, high] = [centre, low, high].map(in_percent);
                let word = if centre < 0.0 { less } else { more };
                let words: Words = if centre < 0.0 { fall } else { figure };
                let [centre, interval] = without_sign([centre, low, high], words);
                format!("{centre} % {word}{unit}{interval}")
            }
        }
    };
    match manner {
        Manner::Times => {
            let Estimate { centre, low, high, .. } = *estimate;
            let [factor, interval] = bracketed([centre, low, high], times);
            let change = in_percent(centre);
            let (sign, change) = if change < 0.0 { ("-", fall(-change)) } else { ("+", figure(change)) };
            // From here on a percentage says no more than the factor.
            if centre >= 9.95 || change.starts_with('>') {
                return format!("{factor}{interval}");
            }
            format!("{factor} ({sign}{change} %){interval}")
        }
        Manner::Share => worded(["higher", "lower", "as high"], ""),
        Manner::Cost(unit) => worded(["more", "less", "as much"], unit),
        Manner::Difference => {
            let (factor, unit) = difference_unit(metric);
            let [centre, low, high] =
                [estimate.centre, estimate.low, estimate.high].map(|value| value * factor);
            let word = if centre < 0.0 { "lower" } else { "higher" };
            let [centre, interval] = without_sign([centre, low, high], difference_digits(metric));
            format!("{centre} {unit} {word}{interval}")
        }
    }
}

/// An effect without sign, and its interval.
fn without_sign([centre, low, high]: [f64; 3], words: Words) -> [String; 2] {
    let (a, b) = (centre.signum() * low, centre.signum() * high);
    bracketed([centre.abs(), a.min(b), a.max(b)], words)
}

/// A value, and its interval ` [2.9x, 3.5x]`; empty without one.
fn bracketed([centre, low, high]: [f64; 3], words: Words) -> [String; 2] {
    if !low.is_finite() || !high.is_finite() {
        return [words(centre), String::new()];
    }
    let [centre, low, high] = with_distinct_ends([centre, low, high], words);
    [centre, format!(" [{low}, {high}]")]
}

/// A centre and the ends of its interval in words, with further digits where an end would read like the centre: `4.73x`, `4.68x`,
/// `4.92x`. An end that needs more than two of them is the centre for a reader.
pub(super) fn with_distinct_ends(values: [f64; 3], words: Words) -> [String; 3] {
    const FURTHER_MAX: usize = 2;
    let is_clear = |texts: &[String; 3]| {
        [1, 2].into_iter().all(|end| texts[end] != texts[0] || values[end].to_bits() == values[0].to_bits())
    };
    (0..=FURTHER_MAX)
        .map(|further| values.map(|value| with_further_digits(value, words, further)))
        .find(is_clear)
        .unwrap_or_else(|| values.map(words))
}

/// The words of a value with further decimals.
fn with_further_digits(value: f64, words: Words, further: usize) -> String {
    let text = words(value);
    // Beyond a limit (`>99.9999`) there are no further digits.
    if further == 0 || text.starts_with('>') {
        return text;
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let (number, unit) = text.split_at(text.find(|c| !is_number(c)).unwrap_or(text.len()));
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{value:.*}{unit}", decimals + further)
}

/// A margin in words: `5 %`, `0.10 percentage points`.
pub(super) fn amount(metric: Metric, margin: f64) -> String {
    match metric.scale() {
        Scale::Ratio => percent_exact(margin),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            format!("{} {unit}", difference_digits(metric)(margin * factor))
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

/// The digits of a difference: whole probes have no decimals.
fn difference_digits(metric: Metric) -> Words {
    if metric == Metric::LostInOutage { count } else { figure }
}

/// A ratio with its interval, where it has one: `0.04x [0.01x, 0.62x]`.
pub fn times_with_interval(estimate: &Estimate) -> String {
    bracketed([estimate.centre, estimate.low, estimate.high], times).concat()
}

/// The estimate of a comparison with its interval; absent without one. With bounds the difference of a result is at least so large:
/// `>= 3.20x [2.90x, 3.50x]`, `<= 0.31x [0.29x, 0.34x]`.
fn shown_estimate(metric: Metric, judged: &Judged, has_bounds: bool, sides: Sides) -> Option<String> {
    let words = interval(metric, judged.estimate.as_ref()?, sides);
    let sign = match judged.verdict {
        Verdict::Higher { .. } if has_bounds => ">= ",
        Verdict::Lower { .. } if has_bounds => "<= ",
        _ => "",
    };
    Some(format!("{sign}{words}"))
}

/// An estimate as a ratio or a difference with its interval: `3.20x [2.90x, 3.50x]`.
fn interval(metric: Metric, estimate: &Estimate, sides: Sides) -> String {
    let values = [estimate.centre, estimate.low, estimate.high];
    let [centre, interval] = match metric.scale() {
        Scale::Ratio => bracketed(values, times_exactly),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            let digits = if metric == Metric::LostInOutage { count } else { three_digits };
            let [centre, interval] = bracketed(values.map(|value| value * factor), digits);
            [format!("{centre} {unit}"), interval]
        }
    };
    if interval.is_empty() {
        return format!("{centre}{}", sides.without_interval());
    }
    format!("{centre}{interval}")
}

/// Half of the width of an interval: that of a ratio in percent of the estimate, that of a difference in its unit. Absent for an interval without
/// both ends.
pub fn half_width(metric: Metric, estimate: &Estimate) -> Option<String> {
    let half = (estimate.high - estimate.low) / 2.0;
    let words = match metric.scale() {
        Scale::Ratio => format!("{:.1} %", half / estimate.centre * 100.0),
        Scale::Difference => {
            let (factor, unit) = difference_unit(metric);
            format!("{} {unit}", three_digits(half * factor))
        }
    };
    half.is_finite().then_some(words)
}

fn times_exactly(ratio: f64) -> String {
    format!("{}x", three_digits(ratio))
}

/// The estimate behind a verdict, for a picture of it. `has_bounds`: whether values that it rests on are bounds.
pub fn shown_effect(metric: Metric, judged: Option<&Judged>, has_bounds: bool, sides: Sides) -> Effect {
    let words = judged.and_then(|judged| shown_estimate(metric, judged, has_bounds, sides));
    let Some((judged, words)) = judged.zip(words) else { return Effect::Unknown };
    let Some(estimate) = judged.estimate.as_ref() else { return Effect::Unknown };
    match metric.scale() {
        Scale::Ratio => {
            Effect::Ratio { centre: estimate.centre, low: estimate.low, high: estimate.high, words }
        }
        Scale::Difference => Effect::Difference(words),
    }
}

/// The start of a verdict without a result.
pub(super) const INCONCLUSIVE: &str = "inconclusive: ";
/// The start of a verdict that more blocks do not change.
pub(super) const NOT_COMPARABLE: &str = "not comparable: ";

#[cfg(test)]
mod tests;
