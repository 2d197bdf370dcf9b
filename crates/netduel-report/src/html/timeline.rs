//! Timelines: panels below each other on a common time axis, with marked events.
//!
//! Drawn without a script. Positions along the axis are percentages, and the lines are a stretched image: the timeline fits any
//! width, and text is not stretched.
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use crate::document::chart::{Panel, Points, Timeline};
use crate::words::plain;

/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 96.0;
/// Lower and upper margin of the lines within a panel, CSS pixels.
const FLOOR: f64 = HEIGHT - 6.0;
const CEILING: f64 = 22.0;
/// Width of the axis labels beside the panels, CSS pixels.
const SCALE: f64 = 72.0;
/// Height of a character with its spacing, CSS pixels.
const LETTER_HEIGHT: f64 = 15.0;
/// Width of the lines before they are stretched.
const ACROSS: f64 = 1000.0;
/// Maximum number of trials drawn as individual lines.
const LINES_MAX: usize = 40;

/// Relative height of a value in a panel, 0 to 1.
fn height(panel: &Panel, value: f64) -> f64 {
    let height = match panel.foot {
        Some(foot) => (value.max(foot) / foot).log10() / (panel.top.max(foot * 10.0) / foot).log10(),
        None => value / panel.top,
    };
    height.clamp(0.0, 1.0)
}

/// The grid lines of a panel: powers of ten on a logarithmic axis, else two or three round values. Their labels do not overlap.
fn rules(panel: &Panel) -> Vec<f64> {
    let values: Vec<f64> = if let Some(foot) = panel.foot {
        (1..12).map(|power| foot * 10_f64.powi(power)).take_while(|value| *value < panel.top).collect()
    } else {
        let unit = 10_f64.powf((panel.top / 3.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * unit);
        let step = step.into_iter().find(|step| panel.top / step <= 3.5).unwrap_or(panel.top);
        (1..5).map(|count| step * f64::from(count)).take_while(|value| *value < panel.top).collect()
    };
    let every = (values.len() as f64 * LETTER_HEIGHT / (FLOOR - CEILING)).ceil().max(1.0) as usize;
    values.into_iter().step_by(every).collect()
}

/// A number of an event within this distance of the one before it stands for both, share of the axis on a narrow page.
const MARKS_APART: f64 = 0.06;

/// The events in the order of time with the numbers that are drawn: all at one height, those too near to each other as a range, `2-3`.
fn numbered(marks: &[(f64, &String)]) -> Vec<(f64, String)> {
    let mut drawn: Vec<(f64, usize, usize)> = Vec::new();
    for (index, (at, _)) in marks.iter().enumerate() {
        match drawn.last_mut() {
            Some((from, _, last)) if at - *from < MARKS_APART => *last = index + 1,
            _ => drawn.push((*at, index + 1, index + 1)),
        }
    }
    let words =
        |first: usize, last: usize| if first == last { first.to_string() } else { format!("{first}-{last}") };
    drawn.into_iter().map(|(at, first, last)| (at, words(first, last))).collect()
}

/// The timeline: panels, and the axis labels beside them.
pub(super) fn picture(timeline: &Timeline, label: &str) -> Markup {
    let Timeline { seconds, panels, lines, .. } = timeline;
    let mut marks: Vec<(f64, &String)> =
        timeline.marks.iter().map(|(at, name)| (at / seconds, name)).collect();
    marks.sort_by(|one, other| one.0.total_cmp(&other.0));
    let head = LETTER_HEIGHT + 8.0;
    let bottom = head + HEIGHT * panels.len() as f64;
    let top_of = |index: usize| head + HEIGHT * index as f64;
    html! {
        p.lines { span.up { (lines[0]) } ", " span.down { (lines[1]) } }
        @if !marks.is_empty() {
            p.events {
                @for (index, (at, name)) in marks.iter().enumerate() {
                    span { b { (index + 1) } " " (plain(name)) " at " (crate::words::failover::seconds(at * seconds)) } " "
                }
            }
        }
        div.frame {
            svg width="100%" height=(bottom + 22.0) role="img" aria-label=(plain(label)) {
                @for (at, _) in &marks { line.mark x1=(percent(*at)) x2=(percent(*at)) y1=(head - 4.0) y2=(bottom) {} }
                @for (at, number) in numbered(&marks) {
                    text.mark x=(percent(at)) y="12" text-anchor=(if at > 0.97 { "end" } else if at < 0.03 { "start" } else { "middle" }) { (number) }
                }
                @for (index, panel) in panels.iter().enumerate() { (drawn(panel, *seconds, top_of(index))) }
                @for tick in 0..=4 {
                    @let at = f64::from(tick) / 4.0;
                    text.tick x=(percent(at)) y=(bottom + 16.0)
                        text-anchor=(match tick { 0 => "start", 4 => "end", _ => "middle" }) {
                        (crate::words::failover::seconds(at * seconds))
                    }
                }
            }
            svg.scale width=(SCALE) height=(bottom + 22.0) aria-hidden="true" {
                @for (index, panel) in panels.iter().enumerate() { (scale(panel, top_of(index))) }
            }
        }
    }
}

/// The axis labels of a panel.
fn scale(panel: &Panel, y: f64) -> Markup {
    let foot = panel.foot.map_or_else(|| "0".to_owned(), |foot| format!("≤ {}", (panel.human)(foot)));
    html! {
        text.rule x="6" y=(format!("{:.1}", y + FLOOR + 4.0)) { (foot) }
        @for value in rules(panel).into_iter().filter(|value| height(panel, *value) * (FLOOR - CEILING) >= LETTER_HEIGHT) {
            text.rule x="6" y=(format!("{:.1}", y + FLOOR - height(panel, value) * (FLOOR - CEILING) + 4.0)) { ((panel.human)(value)) }
        }
    }
}

fn drawn(panel: &Panel, seconds: f64, y: f64) -> Markup {
    let path = |points: &Points| {
        let mut path = String::new();
        for (index, (x, value)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (x / seconds * ACROSS, FLOOR - height(panel, *value) * (FLOOR - CEILING));
            // Writing to a String cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        path
    };
    let ways = ["up", "down"];
    // Many thin lines would hide the median.
    let opacity = format!("{:.2}", (1.2 / panel.trials.len().max(1) as f64).clamp(0.07, 0.22));
    html! {
        svg x="0" y=(y) width="100%" height=(HEIGHT) viewBox={ "0 0 " (ACROSS) " " (HEIGHT) } preserveAspectRatio="none" {
            line.floor x1="0" x2=(ACROSS) y1=(FLOOR) y2=(FLOOR) {}
            @for value in rules(panel) {
                @let y = FLOOR - height(panel, value) * (FLOOR - CEILING);
                line.rule x1="0" x2=(ACROSS) y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
            }
            @for (number, way) in ways.iter().enumerate() {
                @for lines in panel.trials.iter().take(LINES_MAX) {
                    path class={ "thin " (way) } style={ "opacity:" (opacity) } d=(PreEscaped(path(&lines[number]))) {}
                }
            }
            @for (number, way) in ways.iter().enumerate() {
                path class={ "bold " (way) } d=(PreEscaped(path(&panel.median[number]))) {}
            }
        }
        text.panel x="4" y=(y + 13.0) { (plain(&panel.title)) ": up to " ((panel.human)(panel.top)) }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_near_events_are_drawn_as_a_range() {
        let name = "remove".to_owned();
        let at = |places: &[f64]| {
            let marks: Vec<(f64, &String)> = places.iter().map(|at| (*at, &name)).collect();
            numbered(&marks).into_iter().map(|(_, words)| words).collect::<Vec<_>>()
        };
        assert_eq!(at(&[0.1, 0.5, 0.9]), ["1", "2", "3"]);
        assert_eq!(at(&[0.1, 0.12, 0.15, 0.9]), ["1-3", "4"]);
    }
}
