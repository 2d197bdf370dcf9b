//! The value of an arm in words: median, quartiles and number of trials.
use netduel_stats::histogram::Histogram;

use super::text::significant;
use crate::analysis::{ArmValues, Bound, MetricAnalysis, WorkloadAnalysis, percentile_of};
use crate::document::verdicts::Measure;

/// Median and quartiles of an arm's valid trials.
pub fn measure(metric: &MetricAnalysis, values: &ArmValues) -> Measure {
    let n = values.values.len();
    let at = |share: f64| values.quantile(metric.metric, share);
    let sign = |bound: Option<Bound>| bound.map_or("", Bound::sign);
    let quartiles = match (at(0.25), at(0.5), at(0.75)) {
        (Some((low, of_low)), Some((median, _)), Some((high, of_high))) if n > 1 => {
            let ends = [low, high].map(|value| (value, metric.human(value)));
            let [low, high] = within((median, &metric.human(median)), ends);
            format!("[{}{low}, {}{high}]", sign(of_low), sign(of_high))
        }
        _ => String::new(),
    };
    let median = at(0.5).map(|(value, bound)| format!("{}{}", sign(bound), metric.human(value)));
    Measure { median, quartiles, n }
}

/// Two ends in the unit of the middle. Each is a value and its words.
fn within((middle, words): (f64, &str), ends: [(f64, String); 2]) -> [String; 2] {
    ends.map(|(value, own)| {
        let Some((number, unit)) = words.split_once(' ') else { return own };
        match own.split_once(' ') {
            Some((number, own)) if own == unit => number.to_owned(),
            _ if value == 0.0 => "0".to_owned(),
            _ => {
                let number: f64 = number.parse().unwrap_or_default();
                if number <= 0.0 || middle <= 0.0 {
                    return own;
                }
                // Units differ by powers of ten; the words of the middle are rounded.
                let size = 10_f64.powf((middle / number).log10().round());
                significant(value / size)
            }
        }
    })
}

/// Median, quartiles and number of trials: `6.12 Gbit/s [6.02, 6.31] (n 8)`.
pub fn value(metric: &MetricAnalysis, values: &ArmValues) -> String {
    measure(metric, values).words()
}

/// Those of these metrics that are a percentile for which a trial has too few round trips, each with the numbers. Their values stay: without them
/// the trials would be missing from the verdict.
pub fn few_round_trips(workload: &WorkloadAnalysis, metrics: &[MetricAnalysis]) -> Vec<String> {
    let Some(fewest) = workload.arms.iter().filter_map(|arm| arm.round_trips_min).min() else {
        return Vec::new();
    };
    let note = |metric: &MetricAnalysis| {
        let needed = Histogram::samples_to_resolve(percentile_of(metric.metric)?);
        (fewest < needed).then(|| {
            format!(
                "{}: close to the maximum in trials with fewer than {needed} round trips; the smallest trial has {fewest}",
                metric.title()
            )
        })
    };
    metrics.iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;
    use netduel_model::workload::WorkUnit;

    use super::*;

    #[test]
    fn quartiles_have_the_unit_of_the_median() {
        let quartiles = |metric: Metric, values: [f64; 3]| {
            let values = ArmValues {
                values: values.into_iter().enumerate().map(|(block, value)| (block as u32, value)).collect(),
                ..ArmValues::new("a".parse().unwrap())
            };
            let metric =
                MetricAnalysis { metric, unit: WorkUnit::Byte, arms: Vec::new(), comparisons: Vec::new() };
            measure(&metric, &values).words()
        };
        assert_eq!(quartiles(Metric::LatencyP50, [125e3, 1.48e6, 3.78e6]), "1.48 ms [0.802, 2.63] (n 3)");
        assert_eq!(quartiles(Metric::Throughput, [9e8, 1e9, 2e9]), "1.00 Gbit/s [0.950, 1.50] (n 3)");
        assert_eq!(quartiles(Metric::Outage, [0.0, 0.0, 598.0]), "0 ns [0, 299] (n 3)");
    }
}
