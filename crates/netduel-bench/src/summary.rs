//! Values derived from raw figures: ratios of pairs, their spread and interval, and whether targets are met.
use netduel_model::metric::Scale;
use netduel_stats::paired;
use netduel_stats::summary::{median, quantile};

use crate::cost::Accounting;
use crate::metric::Metric;
use crate::outcome::Outcome;
use crate::record::{Bound, Comparison, Pair, Record, Target};

/// Median, minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Maximum.
    pub most: f64,
}

/// One metric of one comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The metric.
    pub metric: Metric,
    /// Number of pairs, or of netduel's runs without another tool.
    pub n: usize,
    /// netduel's value divided by the other tool's, by pair; absent without another tool.
    pub ratio: Option<Spread>,
    /// 95 % interval of the ratio: Hodges-Lehmann with Wilcoxon's signed ranks; absent with fewer than 6 pairs.
    pub interval: Option<(f64, f64)>,
    /// netduel.
    pub ours: Spread,
    /// The other tool.
    pub theirs: Option<Spread>,
    /// The target, and whether it is met.
    pub targets: Vec<(Target, bool)>,
}

/// The metrics of a comparison that both sides report.
pub fn rows(comparison: &Comparison, accounting: Accounting) -> Vec<Row> {
    let metrics = comparison.kind.metrics().iter();
    metrics.filter_map(|&metric| row(comparison, metric, accounting)).collect()
}

fn row(comparison: &Comparison, metric: Metric, accounting: Accounting) -> Option<Row> {
    let of = |outcome: &Outcome| metric.of(outcome, accounting);
    let mut ours = Vec::new();
    let mut both = Vec::new();
    for pair in &comparison.pairs {
        match &pair.theirs {
            None => ours.extend(of(&pair.ours)),
            Some(theirs) => both.extend(of(theirs).zip(of(&pair.ours))),
        }
    }
    ours.extend(both.iter().map(|(_, ours)| *ours));
    let ratios: Vec<f64> =
        both.iter().map(|(theirs, ours)| ours / theirs).filter(|ratio| ratio.is_finite()).collect();
    let theirs: Vec<f64> = both.iter().map(|(theirs, _)| *theirs).collect();
    let (ratio, ours, theirs) = (spread(&ratios), spread(&ours)?, spread(&theirs));
    let estimate = paired::estimate(&both, Scale::Ratio, 0.95);
    let judged = if comparison.against.is_some() { ratio?.median } else { ours.median };
    let is_reached = |target: &Target| match target.bound {
        Bound::AtLeast => judged >= target.value,
        Bound::AtMost => judged <= target.value,
    };
    let targets = comparison.targets.iter().filter(|target| target.metric == metric);
    Some(Row {
        metric,
        n: comparison.pairs.len(),
        ratio,
        interval: estimate
            .filter(|estimate| estimate.high.is_finite())
            .map(|estimate| (estimate.low, estimate.high)),
        ours,
        theirs,
        targets: targets.map(|target| (*target, is_reached(target))).collect(),
    })
}

fn spread(values: &[f64]) -> Option<Spread> {
    Some(Spread { median: median(values)?, least: quantile(values, 0.0)?, most: quantile(values, 1.0)? })
}

/// Share of all cores used by other programs during the runs.
pub fn others(record: &Record) -> Option<Spread> {
    let share = |outcome: &Outcome| {
        let all = outcome.cost.wall_s * record.machine.cores as f64;
        outcome.cost.others_s(record.accounting) / all
    };
    let outcomes = record.results.iter().flat_map(|result| &result.pairs).flat_map(outcomes);
    spread(&outcomes.map(share).collect::<Vec<_>>())
}

fn outcomes(pair: &Pair) -> impl Iterator<Item = &Outcome> {
    std::iter::once(&pair.ours).chain(&pair.theirs)
}

/// The two sides of a comparison, for a heading.
pub fn heading(comparison: &Comparison) -> String {
    let against = comparison.against.as_ref().map_or_else(String::new, |name| format!(" v {name}"));
    format!("{}: {}{against}", comparison.case, comparison.ours)
}

/// A line about the latest pair, or its failure.
pub fn last_pair(comparison: &Comparison, accounting: Accounting) -> String {
    let head = format!("{} [{}]", heading(comparison), comparison.placement.title());
    let Some(last) = comparison.pairs.last() else {
        return format!("{head}: {}", comparison.failures.last().map_or("", String::as_str));
    };
    let alone = Comparison { pairs: vec![last.clone()], ..comparison.clone() };
    let figures: Vec<String> = rows(&alone, accounting)
        .iter()
        .map(|row| match row.ratio {
            Some(ratio) => format!("{} {:.2} x", row.metric.title(), ratio.median),
            None => format!("{} {}", row.metric.title(), row.metric.show(row.ours.median)),
        })
        .collect();
    format!("{head}: {}", figures.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Cost;
    use crate::metric::Kind;
    use crate::outcome::{Interface, Reading};
    use crate::record::Placement;

    fn outcome(bytes: u64, cpu_s: f64) -> Outcome {
        Outcome {
            reading: Reading { seconds: 1.0, bytes: Some(bytes), ..Reading::default() },
            cost: Cost { client_s: cpu_s, busy_s: cpu_s + 0.1, wall_s: 1.0, ..Cost::default() },
            interface: Interface::default(),
        }
    }

    fn comparison(pairs: &[(u64, u64)]) -> Comparison {
        let pair = |&(ours, theirs): &(u64, u64)| Pair {
            ours_first: true,
            ours: outcome(ours, 1.0),
            theirs: Some(outcome(theirs, 1.0)),
        };
        Comparison {
            case: "tcp-1".into(),
            kind: Kind::Stream,
            ours: "lean".into(),
            workload: serde_json::Value::Null,
            against: Some("iperf3".into()),
            placement: Placement::Free,
            segmented: false,
            targets: vec![
                Target { metric: Metric::Throughput, bound: Bound::AtLeast, value: 1.8 },
                Target { metric: Metric::CpuPerGigabyte, bound: Bound::AtMost, value: 0.4 },
            ],
            missing: None,
            failures: Vec::new(),
            pairs: pairs.iter().map(pair).collect(),
        }
    }

    #[test]
    fn the_median_ratio_is_of_pairs_and_decides() {
        let rows = rows(&comparison(&[(200, 100), (30, 10), (19, 10)]), Accounting::InProcesses);
        let ratio = rows[0].ratio.unwrap();
        assert_eq!((ratio.median, ratio.least, ratio.most), (2.0, 1.9, 3.0));
        assert!(rows[0].targets[0].1);
        // The same CPU time for twice the bytes is half the cost per byte.
        assert!((rows[1].ratio.unwrap().median - 0.5).abs() < 1e-9);
        assert!(!rows[1].targets[0].1);
        assert_eq!(rows[0].interval, None, "three pairs have no interval of 95 %");
    }

    #[test]
    fn seven_pairs_have_an_interval() {
        let rows = rows(&comparison(&[(20, 10); 7]), Accounting::InProcesses);
        let (low, high) = rows[0].interval.unwrap();
        assert!((low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9);
    }

    #[test]
    fn metric_missing_on_one_side_is_not_compared() {
        let mut comparison = comparison(&[(20, 10)]);
        comparison.pairs[0].theirs.as_mut().unwrap().reading.bytes = None;
        assert_eq!(rows(&comparison, Accounting::InProcesses), []);
    }
}
