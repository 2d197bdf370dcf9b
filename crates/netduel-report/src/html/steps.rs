//! Steps of a search in chronological order by rate, with their outcome and the bounds.
//!
//! Drawn without a script. Shape and colour show the outcome of a step.
use maud::{Markup, html};

use crate::document::chart::{Outcome, Step, Steps};
use crate::words::plain;

/// Height of the figure, and of the axis labels below, CSS pixels.
const HEIGHT: f64 = 190.0;
const FOOT: f64 = 22.0;
/// Space above the highest rate, CSS pixels.
const HEAD: f64 = 14.0;
/// Maximum number of characters along the axis.
const TICKS_MAX: usize = 12;

/// Position of a rate on a logarithmic axis from the lowest to the highest tested rate.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn of(steps: &[Step]) -> Self {
        let loads = || steps.iter().map(|step| step.rate.max(1.0));
        let (low, high) = (loads().fold(f64::INFINITY, f64::min), loads().fold(1.0, f64::max));
        // Steps of equal rate are in the middle.
        if high > low * 1.02 { Self { low, high } } else { Self { low: low / 1.01, high: high * 1.01 } }
    }

    fn y(&self, rate: f64) -> f64 {
        let share = (rate.max(1.0) / self.low).ln() / (self.high / self.low).ln();
        HEIGHT - 20.0 - share.clamp(0.0, 1.0) * (HEIGHT - 20.0 - HEAD)
    }
}

/// The figure.
pub(super) fn picture(steps: &Steps, label: &str) -> Markup {
    let Steps { steps, human, bounds } = steps;
    if steps.is_empty() {
        return html! {};
    }
    let axis = Axis::of(steps);
    let count = steps.len();
    let x = |index: usize| format!("{:.2}%", (index as f64 + 0.5) / count as f64 * 100.0);
    let every = count.div_ceil(TICKS_MAX);
    html! {
        p.lines {
            span.good { "disc: passed" } ", " span.bad { "ring: loss above goal" } ", " span.slow { "square: generator too slow" }
        }
        svg width="100%" height=(HEIGHT + FOOT) role="img" aria-label=(plain(label)) {
            line.floor x1="0" x2="100%" y1=(HEIGHT) y2=(HEIGHT) {}
            @for (class, bound) in ["lower", "upper"].into_iter().zip(bounds) {
                @if let Some(bound) = bound {
                    @let y = axis.y(*bound);
                    line class={ "bound " (class) } x1="0" x2="100%" y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
                    text x=(if class == "lower" { "0" } else { "100%" }) text-anchor=(if class == "lower" { "start" } else { "end" })
                        y=(format!("{:.1}", if class == "lower" { y + 13.0 } else { y - 4.0 })) {
                        (class) " " (human(*bound))
                    }
                }
            }
            @for (index, step) in steps.iter().enumerate() { (mark(step, &x(index), axis.y(step.rate))) }
            @for index in (0..count).step_by(every) {
                text.tick x=(x(index)) y=(HEIGHT + 15.0) text-anchor="middle" { (index + 1) }
            }
        }
    }
}

fn mark(step: &Step, x: &str, y: f64) -> Markup {
    let radius = if step.is_confirming { 5.0 } else { 3.0 };
    let y = format!("{y:.1}");
    html! {
        @match step.outcome {
            Outcome::GeneratorTooSlow => svg x=(x) y=(y) overflow="visible" {
                rect.slow x=(-radius) y=(-radius) width=(2.0 * radius) height=(2.0 * radius) { title { (plain(&step.words)) } }
            },
            Outcome::LossAboveGoal => circle.bad cx=(x) cy=(y) r=(radius) { title { (plain(&step.words)) } },
            Outcome::Good => circle.good cx=(x) cy=(y) r=(radius) { title { (plain(&step.words)) } },
        }
    }
}
