//! A sweep as bars: packet workloads that differ in one parameter.
use netduel_model::ids::ArmName;
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::levels::{is_far, logarithmic_axis};
use super::metric_plots::in_words;
use super::scale::{Scaled, number, scaled_packets};
use super::table::{Cell, Column, Table};
use super::verdicts::Sides;
use crate::analysis::{Analysis, Sweep, SweepPoint, SweptBy, common_size};

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
    for point in &sweep.points {
        table.rows.push(vec![
            Cell::Text(point.label.clone()),
            Cell::from(point.arm.as_str()),
            number(point.sent.map(|rates| rates.median), scale),
            number(point.received.map(|rates| rates.median), scale),
            number(point.range.map(|range| range.0), scale),
            number(point.range.map(|range| range.1), scale),
            Cell::Count(point.received.map_or(0, |rates| u64::from(rates.trials))),
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
    let arm = |point: &SweepPoint| names.iter().position(|name| *name == point.arm.as_str());
    json!({
        "unit": scale.unit,
        "points": sweep.points.iter().map(|point| json!({
            "label": point.label,
            "published": published.filter(|(frame, _)| *frame == point.frame).map(|(_, received)| scale.plotted(received)),
            "arm": arm(point),
            "sent": point.sent.map(|rates| scale.plotted(rates.median)),
            "received": point.received.map(|rates| scale.plotted(rates.median)),
            "low": point.range.map(|range| scale.plotted(range.0)),
            "high": point.range.map(|range| scale.plotted(range.1)),
        })).collect::<Vec<_>>(),
    })
}
