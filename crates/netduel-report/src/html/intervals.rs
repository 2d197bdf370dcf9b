//! Intervals as inline figures in the table of verdicts, drawn without a script.
use maud::{Markup, html};

use crate::document::verdicts::{Effect, Verdicts};
use crate::words::tone::Tone;

const WIDTH: f64 = 240.0;
const MARGIN: f64 = 16.0;
/// A narrower band is hidden by the line of ratio 1, pixels.
const BAND_MIN: f64 = 6.0;

/// Ratios beyond this are drawn at the edge, so that one extreme estimate does not flatten the others.
const RATIO_MAX: f64 = 64.0;

/// A logarithmic axis of ratios for all rows.
pub(super) struct Axis {
    /// Largest ratio shown; its inverse is the smallest, so that 1 is in the middle.
    reach: f64,
    /// The margin of the plan, a fraction.
    equivalence: f64,
}

impl Axis {
    /// The axis that holds every interval of a run.
    pub(super) fn over(verdicts: &Verdicts) -> Self {
        let reach = verdicts
            .rows()
            .filter_map(|row| match row.effect {
                Effect::Ratio { centre, low, high, .. } => Some([centre, low, high]),
                Effect::Difference(_) | Effect::Unknown => None,
            })
            .flatten()
            .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            .map(|ratio| ratio.max(1.0 / ratio))
            .fold(1.25, f64::max);
        let reach = match reach {
            short if short < 1.5 => short * 1.02,
            // Rounded to the next power of two, so that the outermost grid line is at the edge.
            long => 2_f64.powf(long.log2().ceil()).min(RATIO_MAX) * 1.02,
        };
        Self { reach, equivalence: verdicts.equivalence }
    }

    /// The band of no difference by the margin of the plan, pixels; absent where it would not be wider than the line of ratio 1.
    fn band(&self) -> Option<(f64, f64)> {
        let (from, to) = (self.x(1.0 / (1.0 + self.equivalence)), self.x(1.0 + self.equivalence));
        (to - from >= BAND_MIN).then_some((from, to - from))
    }

    /// Whether the band is drawn.
    pub(super) fn has_band(&self) -> bool {
        self.band().is_some()
    }

    /// Position of a ratio, pixels.
    fn x(&self, ratio: f64) -> f64 {
        let position = (ratio.ln() / self.reach.ln()).clamp(-1.0, 1.0);
        ((WIDTH / 2.0 + position * (WIDTH / 2.0 - MARGIN)) * 10.0).round() / 10.0
    }

    /// Grid lines: powers of two, or finer steps on a short axis.
    fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = if self.reach < 1.6 {
            &[0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4]
        } else if self.reach < 12.0 {
            &[0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
        } else {
            &[1.0 / 64.0, 1.0 / 16.0, 0.25, 1.0, 4.0, 16.0, 64.0]
        };
        steps.iter().copied().filter(|tick| *tick <= self.reach && *tick >= 1.0 / self.reach).collect()
    }

    /// The axis itself, for the head of the column.
    pub(super) fn header(&self) -> Markup {
        html! {
            svg.interval viewBox={ "0 0 " (WIDTH) " 18" } width=(WIDTH) height="18" aria-hidden="true" {
                @for tick in self.ticks() {
                    text x=(self.x(tick)) y="13" text-anchor="middle" { (label(tick)) }
                }
            }
        }
    }

    /// One interval, lower end, estimate and upper end: dot and bar, the shape of the dot by tone. An end beyond the axis has an
    /// arrow. Without an interval there is only the dot.
    pub(super) fn interval(&self, ends: [f64; 3], tone: Tone, words: &str) -> Markup {
        let is_bounded = ends.iter().all(|ratio| ratio.is_finite());
        let is_beyond = [ends[0] < 1.0 / self.reach, ends[2] > self.reach];
        let [low, centre, high] = ends.map(|ratio| self.x(ratio.max(1e-9)));
        html! {
            svg.interval viewBox={ "0 0 " (WIDTH) " 24" } width=(WIDTH) height="24" role="img" aria-label={ "ratio " (words) } {
                @if let Some((from, width)) = self.band() {
                    rect.band x=(from) y="0" width=(width) height="24" {}
                    @for end in [from, from + width].map(|end| format!("{end:.1}")) {
                        line.margin x1=(end) x2=(end) y1="0" y2="24" {}
                    }
                }
                @for tick in self.ticks() {
                    line.grid x1=(self.x(tick)) x2=(self.x(tick)) y1="0" y2="24" {}
                }
                line.one x1=(self.x(1.0)) x2=(self.x(1.0)) y1="0" y2="24" {}
                @if is_bounded {
                    line.bar x1=(low) x2=(high) y1="12" y2="12" {}
                    @for (end, beyond, outward) in [(low, is_beyond[0], -1.0), (high, is_beyond[1], 1.0)] {
                        @if beyond {
                            polyline.bar fill="none" points={ (end) ",7 " (end + outward * 6.0) ",12 " (end) ",17" } {}
                        } @else {
                            line.bar x1=(end) x2=(end) y1="8" y2="16" {}
                        }
                    }
                }
                @match tone {
                    Tone::Better => circle.dot cx=(centre) cy="12" r="4.5" {},
                    Tone::Worse => rect.dot x=(centre - 4.0) y="8" width="8" height="8" transform={ "rotate(45 " (centre) " 12)" } {},
                    Tone::Same => rect.dot.hollow x=(centre - 4.0) y="8" width="8" height="8" {},
                    Tone::Open => circle.dot.hollow cx=(centre) cy="12" r="4.5" {},
                }
            }
        }
    }
}

/// A tick label: `1/8`, `1/2`, `0.9`, `4`. A fraction is narrower than its decimals, and the axis is narrow.
fn label(tick: f64) -> String {
    let parts = 1.0 / tick;
    if parts > 1.5 && parts.fract() == 0.0 { format!("1/{parts}") } else { format!("{tick}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn band_of_the_margin_is_drawn_only_where_it_is_visible() {
        let bands = |reach: f64| {
            let axis = Axis { reach, equivalence: 0.05 };
            let drawn = axis.interval([0.9, 1.0, 1.1], Tone::Open, "").into_string();
            let count = |class: &str| drawn.matches(&format!("class=\"{class}\"")).count();
            (axis.has_band(), count("band"), count("margin"))
        };
        assert_eq!(bands(1.3), (true, 1, 2));
        assert_eq!(bands(64.0), (false, 0, 0));
    }

    #[test]
    fn interval_beyond_the_axis_ends_in_an_arrow_and_none_has_no_bar() {
        let axis = Axis { reach: RATIO_MAX * 1.02, equivalence: 0.05 };
        let drawn = |ends| axis.interval(ends, Tone::Open, "").into_string();
        assert_eq!(drawn([4.5, 40.0, 313.0]).matches("<polyline").count(), 1);
        assert_eq!(drawn([0.001, 1.0, 313.0]).matches("<polyline").count(), 2);
        assert_eq!(drawn([4.5, 20.0, 60.0]).matches("<polyline").count(), 0);
        assert!(!drawn([0.0, 2.0, f64::INFINITY]).contains("class=\"bar\""));
    }
}
