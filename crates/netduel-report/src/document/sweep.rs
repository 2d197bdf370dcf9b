//! A sweep as bars: packet workloads that differ in one parameter.
use serde_json::{Value, json};

use super::chart::{Chart, Figure, Plot};
use super::levels::{is_far, logarithmic_axis};
use super::metric_plots::in_words;
use super::scale::{Scaled, number, scaled_packets};
use super::table::{Cell, Column, Table};
use crate::analysis::{Analysis, Sweep, SweepPoint, SweptBy, common_size};

/// A bar for each point of a sweep, with the table of its numbers.
pub(super) fn figure(sweep: &Sweep, analysis: &Analysis) -> Figure {
    let rate = match sweep.search {
        Some(metric) => format!("Highest {}", metric.title()),
        None => "Packets received".to_owned(),
    };
    let (title, what) = match sweep.by {
        SweptBy::Frames => (format!("{rate} by frame size: {}", sweep.name), "size"),
        SweptBy::Queues => (format!("{rate} by queues: {}", sweep.name), "queues"),
    };
    let published = published(sweep, analysis);
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
    let table = table(sweep, what, scale);
    let mut data = data(sweep, analysis, published, scale);
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

fn table(sweep: &Sweep, what: &str, scale: Scaled) -> Table {
    let mut table = Table::new(vec![Column::key(what), Column::key("arm")]);
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

fn data(sweep: &Sweep, analysis: &Analysis, published: Option<(u32, f64)>, scale: Scaled) -> Value {
    let arm = |point: &SweepPoint| analysis.plan.arms.iter().position(|arm| arm.name == point.arm);
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
