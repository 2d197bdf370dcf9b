//! A sweep as bars: packet workloads that differ in one parameter.
use netduel_model::ids::ArmName;
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::levels::{is_far, logarithmic_axis};
use super::metric_plots::in_words;
use super::scale::{Scaled, number, scaled_packets};
use super::table::{Cell, Column, Table};
use super::verdicts::Sides;
use crate::analysis::{Analysis, Bound, Sweep, SweepPoint, SweptBy, common_size};

/// A bar for each point of a sweep, with the table of its numbers.
pub(super) fn figure(sweep: &Sweep, analysis: &Analysis) -> Figure {
    let arms: Vec<&str> = analysis.plan.arms.iter().map(|arm| arm.name.as_str()).collect();
    drawn(sweep, title(sweep), &arms, published(sweep, analysis), Sides::Arms)
}

/// The same of several runs, whose labels are `runs`, in the place of arms; `arm` has the swept workloads.
pub(super) fn of_runs(sweep: &Sweep, arm: Option<&ArmName>, runs: &[&str]) -> Figure {
    let of_arm = arm.map(|arm| format!(", {arm}")).unwrap_or_default();
    drawn(sweep, format!("{}{of_arm}", title(sweep)), runs, None, Sides::Runs)
}

fn title(sweep: &Sweep) -> String {
    let rate = match sweep.search {
        Some(metric) => format!("Highest {}", metric.title()),
        None => "Packets received".to_owned(),
    };
    let by = match sweep.by {
        SweptBy::Frames => "frame size",
        SweptBy::Queues => "queues",
    };
    format!("{rate} by {by}: {}", sweep.name)
}

/// `names`: the arms or runs in the order of their colours.
fn drawn(
    sweep: &Sweep,
    title: String,
    names: &[&str],
    published: Option<(u32, f64)>,
    sides: Sides,
) -> Figure {
    let medians: Vec<f64> =
        sweep.points.iter().filter_map(|point| point.received).map(|rates| rates.median).collect();
    let is_logarithmic = is_far(&medians);
    let scale = scaled_packets(medians.into_iter().chain(published.map(|(_, received)| received)));
    let mark = if is_logarithmic { "Dot" } else { "Bar" };
    let mut reading = match sweep.search {
        Some(_) => format!("{mark}: median of the searches; line: from min to max."),
        None => format!(
            "{mark}: median received of the valid trials; line: from the lowest to the highest trial; tick: median sent."
        ),
    };
    if is_logarithmic {
        reading = format!("{reading} Rates: {}.", logarithmic_axis("medians"));
    }
    if published.is_some() {
        reading.push_str(" Dashed: published for this machine size.");
    }
    let has = |bound: Bound| sweep.points.iter().any(|point| point.bounds.contains(&Some(bound)));
    for (bound, words) in [
        (Bound::AtLeast, " A rate with >= is a lower bound."),
        (Bound::LessThan, " A rate with < is an upper bound."),
    ] {
        reading.push_str(if has(bound) { words } else { "" });
    }
    let table = table(sweep, sides, scale);
    let mut data = data(sweep, names, published, scale);
    data["log"] = is_logarithmic.into();
    Figure {
        alternative: format!("{title}: {}", in_words(&table)),
        title,
        reading,
        chart: Chart::Plot(Plot::new("sweep", data)),
        data: Some(table),
        in_text: true,
    }
}

fn table(sweep: &Sweep, sides: Sides, scale: Scaled) -> Table {
    let what = match sweep.by {
        SweptBy::Frames => "size",
        SweptBy::Queues => "queues",
    };
    let mut table = Table::new(vec![Column::key(what), Column::key(sides.noun())]);
    let titles = ["sent, median", "received, median", "lowest trial", "highest trial"];
    table.columns.extend(titles.map(|title| Column::of(title, scale.unit)));
    table.columns.push(Column::number("trials"));
    let found = |value: Option<f64>, bound: Option<Bound>| {
        let sign = bound.map_or("", Bound::sign);
        match number(value, scale) {
            Cell::Number(text) => Cell::Number(format!("{sign}{text}")),
            cell => cell,
        }
    };
    for point in &sweep.points {
        let [median, low, high] = point.bounds;
        table.rows.push(vec![
            Cell::Text(point.label.clone()),
            Cell::from(point.arm.as_str()),
            number(point.sent.map(|rates| rates.median), scale),
            found(point.received.map(|rates| rates.median), median),
            found(point.range.map(|range| range.0), low),
            found(point.range.map(|range| range.1), high),
            point.received.map_or(Cell::Absent, |rates| Cell::Count(u64::from(rates.trials))),
        ]);
    }
    table
}

/// Published rates for the machine size of a run: frame size, bytes, and packets per second received.
fn published(sweep: &Sweep, analysis: &Analysis) -> Option<(u32, f64)> {
    let size = common_size(analysis)?;
    let figures = netduel_model::published::packets_of_size(&size);
    let figure =
        figures.iter().find(|figure| sweep.points.iter().any(|point| point.frame == figure.frame))?;
    Some((figure.frame, figure.receiver_pps))
}

fn data(sweep: &Sweep, names: &[&str], published: Option<(u32, f64)>, scale: Scaled) -> Value {
    let sign = |point: &SweepPoint| {
        let [median, ..] = point.bounds;
        median.map(|bound| bound.sign().trim_end())
    };
    let arm = |point: &SweepPoint| names.iter().position(|name| *name == point.arm.as_str());
    json!({
        "unit": scale.unit,
        "points": sweep.points.iter().map(|point| json!({
            "label": point.label,
            "published": published.filter(|(frame, _)| *frame == point.frame).map(|(_, received)| scale.plotted(received)),
            "arm": arm(point),
            "sent": point.sent.map(|rates| scale.plotted(rates.median)),
            "received": point.received.map(|rates| scale.plotted(rates.median)),
            "bound": sign(point),
            "low": point.range.map(|range| scale.plotted(range.0)),
            "high": point.range.map(|range| scale.plotted(range.1)),
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;

    use super::*;
    use crate::analysis::PacketRates;

    #[test]
    fn search_results_that_are_bounds_have_their_sign() {
        let rates = PacketRates { trials: 8, median: 2e6, intervals: 0, min: None, max: None };
        let point = |frame: u32, bounds: [Option<Bound>; 3]| SweepPoint {
            label: format!("{frame} B"),
            frame,
            arm: "a".parse().unwrap(),
            sent: None,
            received: Some(rates),
            range: Some((1e6, 3e6)),
            bounds,
        };
        let [at_least, less_than] = [Bound::AtLeast, Bound::LessThan].map(Some);
        let sweep = Sweep {
            by: SweptBy::Frames,
            name: "search".to_owned(),
            search: Some(Metric::NoDropRate),
            points: vec![
                point(64, [None; 3]),
                point(128, [at_least, None, at_least]),
                point(256, [less_than, less_than, None]),
            ],
        };
        let table = table(&sweep, Sides::Arms, scaled_packets([3e6].into_iter()));
        let numbers = |row: usize| table.rows[row][3..6].to_vec();
        let cells = |texts: [&str; 3]| texts.map(|text| Cell::Number(text.to_owned())).to_vec();
        assert_eq!(numbers(0), cells(["2.00", "1.00", "3.00"]));
        assert_eq!(numbers(1), cells([">= 2.00", "1.00", ">= 3.00"]));
        assert_eq!(numbers(2), cells(["< 2.00", "< 1.00", "3.00"]));
        let reading = drawn(&sweep, String::new(), &["a"], None, Sides::Arms).reading;
        assert!(
            reading.contains("with >= is a lower") && reading.contains("with < is an upper"),
            "{reading}"
        );
    }
}
