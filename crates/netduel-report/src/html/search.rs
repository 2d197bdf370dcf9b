//! A search drawn: the rate of each step in order, good or not, and the bounds that it led to; with the table of its steps.
//!
//! Drawn here and not by script, so that it is there without one. Whether a step was good is told by its shape as well as its colour.
use maud::{Markup, html};
use netduel_model::search::{SearchPurpose, SearchReport, SearchStep};
use netduel_model::units::human_si;

use crate::analysis::WorkloadAnalysis;
use crate::words::{self, plain};

/// Height of the picture, and of the room for its letters beneath, CSS pixels.
const HEIGHT: f64 = 190.0;
const FOOT: f64 = 22.0;
/// Room above the highest rate, CSS pixels.
const HEAD: f64 = 14.0;
/// Most letters along the axis.
const TICKS_MAX: usize = 12;

/// The section of a workload; empty when it is no search.
pub(super) fn section(workload: &WorkloadAnalysis) -> Markup {
    let sentences = words::search::sentences(workload);
    if sentences.is_empty() {
        return html! {};
    }
    let shown = workload.arms.iter().filter_map(|arm| arm.search.as_ref()?.middle());
    let tables = words::search::steps(workload);
    html! {
        h3 { (words::search::TITLE) }
        ul.notes { @for sentence in &sentences { li { (plain(sentence)) } } }
        @for ((_, report), table) in shown.zip(&tables) {
            (picture(report, &table.title))
            details {
                summary { "the steps" }
                div.scroll {
                    table {
                        thead { tr { @for title in &table.header { th scope="col" { (title) } } } }
                        tbody { @for row in &table.rows { tr { @for cell in row { td { (cell) } } } } }
                    }
                }
            }
        }
    }
}

/// Where a rate stands: a logarithmic axis from the lowest to the highest that was tried.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(report: &SearchReport) -> Self {
        let loads = || report.steps.iter().map(|step| step.load.max(1) as f64);
        let (low, high) = (loads().fold(f64::INFINITY, f64::min), loads().fold(1.0, f64::max));
        // Steps that are all alike stand in the middle.
        if high > low * 1.02 { Self { low, high } } else { Self { low: low / 1.01, high: high * 1.01 } }
    }

    fn y(&self, rate: f64) -> f64 {
        let share = (rate.max(1.0) / self.low).ln() / (self.high / self.low).ln();
        HEIGHT - 20.0 - share.clamp(0.0, 1.0) * (HEIGHT - 20.0 - HEAD)
    }
}

fn picture(report: &SearchReport, title: &str) -> Markup {
    if report.steps.is_empty() {
        return html! {};
    }
    let axis = Axis::of(report);
    let count = report.steps.len();
    let x = |index: usize| format!("{:.2}%", (index as f64 + 0.5) / count as f64 * 100.0);
    let every = count.div_ceil(TICKS_MAX);
    let first = report.results.first();
    let bounds = first.map(|result| [("lower", result.lower), ("upper", result.upper)]).unwrap_or_default();
    let label = format!("{}: the rate of each step; the same stands in the table of the steps", plain(title));
    html! {
        figure.search {
            figcaption {
                strong { (plain(title)) } ". Each step by its rate, on a logarithmic axis; large: the goal's own trials. "
                span.good { "disc: good" } ", " span.bad { "ring: too much lost" } ", " span.slow { "square: generator too slow" }
                ". Lines: the bounds of the first goal."
            }
            svg width="100%" height=(HEIGHT + FOOT) role="img" aria-label=(label) {
                line.floor x1="0" x2="100%" y1=(HEIGHT) y2=(HEIGHT) {}
                @for (class, bound) in bounds {
                    @if let Some(bound) = bound {
                        @let y = axis.y(bound as f64);
                        line class={ "bound " (class) } x1="0" x2="100%" y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
                        text x=(if class == "lower" { "0" } else { "100%" }) text-anchor=(if class == "lower" { "start" } else { "end" })
                            y=(format!("{:.1}", if class == "lower" { y + 13.0 } else { y - 4.0 })) {
                            (class) " " (human_si(bound as f64, "pps"))
                        }
                    }
                }
                @for (index, step) in report.steps.iter().enumerate() {
                    (mark(step, &x(index), axis.y(step.load as f64)))
                }
                @for index in (0..count).step_by(every) {
                    text.tick x=(x(index)) y=(HEIGHT + 15.0) text-anchor="middle" { (index + 1) }
                }
            }
        }
    }
}

fn mark(step: &SearchStep, x: &str, y: f64) -> Markup {
    let radius = if step.ask.purpose == SearchPurpose::Confirm { 5.0 } else { 3.0 };
    let words = words::search::tried(step);
    let y = format!("{y:.1}");
    html! {
        @if step.fell_short && step.high_loss {
            svg x=(x) y=(y) overflow="visible" {
                rect.slow x=(-radius) y=(-radius) width=(2.0 * radius) height=(2.0 * radius) { title { (words) } }
            }
        } @else {
            circle class=(if step.high_loss { "bad" } else { "good" }) cx=(x) cy=(y) r=(radius) { title { (words) } }
        }
    }
}
