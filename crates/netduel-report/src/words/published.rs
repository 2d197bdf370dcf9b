//! The words of runs beside published figures.
use netduel_model::metric::Better;
use netduel_model::plan::spec::PathKind;
use netduel_model::published::{Figure, Measure};
use netduel_model::units::plural;
use netduel_stats::paired::Estimate;

use super::text::percent_exact;
use super::verdict::{amount, bounded, effect};
use super::{Tone, metric_value_or_bound, packet_rate};
use crate::analysis::compare::RunComparison;
use crate::analysis::published::{Published, PublishedComparison, PublishedFigure, Standing};

/// How to read the table of published figures.
pub fn published_legend(comparison: &RunComparison<'_>) -> String {
    format!(
        "Value: Hodges-Lehmann estimate over the valid trials of the run [interval; those of all rows hold together with a \
         confidence of at least {}]. A published figure is a constant here: its source states no spread, so the interval covers the run \
         only. Verdict: the run against the published value, or against the nearer end of a published range.",
        percent_exact(comparison.promised_confidence())
    )
}

/// The rule of counting.
pub fn published_rule(comparison: &RunComparison<'_>) -> String {
    format!(
        "Each value of a run with the path and the traffic of a published figure is set against it: one-sample Hodges-Lehmann estimate with \
         the interval of the Wilcoxon signed-rank test. The intervals together have a confidence of at least {} (Bonferroni). A verdict is given \
         when the interval lies wholly above or below the published value or range, within the range, or within {} of the value. The spread of the \
         published figure, its errors, and conditions that its source does not state are in no interval. A verdict does not show why the \
         values differ.",
        percent_exact(comparison.promised_confidence()),
        percent_exact(comparison.equivalence)
    )
}

/// The machine and the path of a figure: `Standard_DS4_v2, accelerated`.
pub fn published_for(published: &Published) -> String {
    match published {
        Published::Figure(figure) => place(figure),
        Published::Packets(packets) => packets.size.clone(),
    }
}

/// The machine and the path of a figure of a metric.
pub(crate) fn place(figure: &Figure) -> String {
    let path = match figure.path {
        PathKind::Vf => "accelerated",
        PathKind::Synthetic => "synthetic",
    };
    format!("{}, {path}", figure.size)
}

/// What was measured: `throughput, 8 streams, IPv4`.
pub fn published_title(published: &Published) -> String {
    match published {
        Published::Figure(figure) => title(figure),
        Published::Packets(packets) => format!("packets of {} B received", packets.frame),
    }
}

/// The same of a figure of a metric.
pub(crate) fn title(figure: &Figure) -> String {
    let what = match &figure.measure {
        Measure::Metric(metric) => metric.title().to_owned(),
        Measure::Other { title, .. } => title.clone(),
    };
    let streams = figure.streams.map(|streams| plural(streams, "stream"));
    let family = figure.family.map(|family| family.to_string());
    let details: Vec<String> = streams.into_iter().chain(family).collect();
    if details.is_empty() { what } else { format!("{what}, {}", details.join(", ")) }
}

/// The published value or range.
pub fn published_value(published: &Published) -> String {
    match published {
        Published::Figure(figure) => range(figure),
        Published::Packets(packets) => {
            format!("{} (sent {})", packet_rate(packets.receiver_pps), packet_rate(packets.sender_pps))
        }
    }
}

/// The same of a figure of a metric.
pub(crate) fn range(figure: &Figure) -> String {
    let human = |value: f64| match &figure.measure {
        Measure::Metric(metric) => metric.human(value),
        Measure::Other { unit, .. } => format!("{value} {unit}"),
    };
    if figure.low < figure.high {
        format!("{} to {}", human(figure.low), human(figure.high))
    } else {
        human(figure.low)
    }
}

/// The value of the run with its interval: `6.12 Gbit/s [6.02 Gbit/s, 6.31 Gbit/s] (n 8)`; each with its sign where values are bounds.
pub fn beside_published(one: &PublishedComparison) -> String {
    let human = |value: f64| metric_value_or_bound(one.metric, one.unit, value, one.bound);
    match &one.estimate {
        None => "no valid value".to_owned(),
        Some(Estimate { centre, high, .. }) if high.is_infinite() => {
            format!("{} (n {})", human(*centre), one.n)
        }
        Some(Estimate { centre, low, high, .. }) => {
            format!("{} [{}, {}] (n {})", human(*centre), human(*low), human(*high), one.n)
        }
    }
}

/// The verdict on a run beside a published figure.
pub fn published_verdict(figure: &Published, one: &PublishedComparison) -> String {
    let [low, high] = figure.range();
    match one.standing {
        Standing::Above(estimate) | Standing::Below(estimate) => effect(one.metric, &estimate),
        Standing::WithinRange => "within the published range".to_owned(),
        Standing::Close(margin) => format!("no difference beyond {}", amount(one.metric, margin)),
        Standing::Open if low < high => {
            "inconclusive: the interval contains an end of the published range".to_owned()
        }
        Standing::Open => "inconclusive: the interval contains the published value".to_owned(),
        Standing::TooFew => format!("inconclusive: too few values ({})", one.n),
        Standing::Bounds => bounded(one.metric).to_owned(),
        Standing::OtherDefinition => {
            "not comparable: the source defines its figure in another way".to_owned()
        }
    }
}

/// Whether a value of a run is better than the published one.
pub fn published_tone(one: &PublishedComparison) -> Tone {
    match (one.standing, one.metric.better()) {
        (Standing::Above(_), Better::Higher) | (Standing::Below(_), Better::Lower) => Tone::Better,
        (Standing::Above(_), Better::Lower) | (Standing::Below(_), Better::Higher) => Tone::Worse,
        (Standing::WithinRange | Standing::Close(_), _) => Tone::Same,
        (Standing::Open | Standing::TooFew | Standing::Bounds | Standing::OtherDefinition, _) => Tone::Open,
    }
}

/// Sizes that differ from the published ones, for each run: a cause of verdicts that no mark names.
pub fn other_sizes(comparison: &RunComparison<'_>) -> Vec<String> {
    let of_run = |run: usize| {
        let values = |figure: &PublishedFigure| {
            let own = figure.values.iter().find(|one| one.run == run)?;
            let is_same =
                own.size.as_deref().is_some_and(|size| size.eq_ignore_ascii_case(figure.figure.size()));
            (!is_same).then(|| (figure.figure.size(), own.size.clone()))
        };
        let mut sizes: Vec<(&str, Option<String>)> = Vec::new();
        for one in comparison.published.iter().filter_map(values) {
            if !sizes.contains(&one) {
                sizes.push(one);
            }
        }
        let (_, own) = sizes.first()?;
        let own = match own {
            Some(size) => format!("have the size {size}"),
            None => "have no known common size".to_owned(),
        };
        let published: Vec<&str> = sizes.iter().map(|(published, _)| *published).collect();
        Some(format!(
            "The hosts of {} {own}, not {}: the machines may be the cause of its verdicts.",
            comparison.label(run),
            published.join(" or ")
        ))
    };
    (0..comparison.runs.len()).filter_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;
    use netduel_model::published::figures;
    use netduel_model::workload::WorkUnit;

    use super::*;
    use crate::analysis::Bound;

    fn one(standing: Standing) -> PublishedComparison {
        PublishedComparison {
            run: 0,
            arm: "accelerated".parse().unwrap(),
            workload: "bulk".parse().unwrap(),
            metric: Metric::Throughput,
            unit: WorkUnit::Datagram,
            n: 8,
            estimate: None,
            bound: None,
            size: None,
            standing,
        }
    }

    #[test]
    fn value_that_rests_on_bounds_has_their_sign() {
        let estimate =
            |high| Estimate { n: 8, centre: 6.12e9, low: 6.02e9, high, confidence: 0.99, p_value: 0.01 };
        let words = |high, bound| {
            beside_published(&PublishedComparison {
                estimate: Some(estimate(high)),
                bound,
                ..one(Standing::Bounds)
            })
        };
        assert_eq!(words(6.31e9, None), "6.12 Gbit/s [6.02 Gbit/s, 6.31 Gbit/s] (n 8)");
        let bound = Some(Bound::of_values(Metric::Throughput));
        assert_eq!(words(6.31e9, bound), "< 6.12 Gbit/s [< 6.02 Gbit/s, < 6.31 Gbit/s] (n 8)");
        assert_eq!(words(f64::INFINITY, bound), "< 6.12 Gbit/s (n 8)");
    }

    #[test]
    fn every_standing_has_its_wording() {
        let range = Published::Figure(figures().iter().find(|figure| figure.low < figure.high).unwrap());
        let value = Published::Figure(figures().iter().find(|figure| figure.low >= figure.high).unwrap());
        let estimate =
            |centre, low, high| Estimate { n: 8, centre, low, high, confidence: 0.99, p_value: 0.01 };
        for (figure, standing, words, tone) in [
            (
                value,
                Standing::Above(estimate(1.31, 1.28, 1.33)),
                "1.31x (+31 %) [1.28x, 1.33x]",
                Tone::Better,
            ),
            (value, Standing::Below(estimate(0.9, 0.88, 0.95)), "0.90x (-10 %) [0.88x, 0.95x]", Tone::Worse),
            (range, Standing::WithinRange, "within the published range", Tone::Same),
            (value, Standing::Close(0.05), "no difference beyond 5 %", Tone::Same),
            (value, Standing::Open, "inconclusive: the interval contains the published value", Tone::Open),
            (
                range,
                Standing::Open,
                "inconclusive: the interval contains an end of the published range",
                Tone::Open,
            ),
            (value, Standing::TooFew, "inconclusive: too few values (8)", Tone::Open),
            (value, Standing::Bounds, "inconclusive: some values are only upper bounds", Tone::Open),
            (
                value,
                Standing::OtherDefinition,
                "not comparable: the source defines its figure in another way",
                Tone::Open,
            ),
        ] {
            let one = one(standing);
            assert_eq!((published_verdict(&figure, &one).as_str(), published_tone(&one)), (words, tone));
        }
    }
}
