//! Lines over one axis of time, in panels beneath each other, with moments marked.
//!
//! Drawn here and not by script, so that it is there without one. Places along the axis are percentages, and the lines a picture
//! that is stretched: so it fits any width, and no letter is stretched with it.
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use crate::document::chart::{Panel, Points, Timeline};
use crate::words::plain;

/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 96.0;
/// Room for the names of the marks above the first panel, CSS pixels.
const MARKS: f64 = 34.0;
/// The width that lines are drawn in before they are stretched.
const ACROSS: f64 = 1000.0;
/// Trials that are drawn as lines of their own at most.
const LINES_MAX: usize = 40;

/// How high a value stands in a panel, 0 to 1.
fn height(panel: &Panel, value: f64) -> f64 {
    let height = match panel.foot {
        Some(foot) => (value.max(foot) / foot).log10() / (panel.top.max(foot * 10.0) / foot).log10(),
        None => value / panel.top,
    };
    height.clamp(0.0, 1.0)
}

/// The values at which a panel has a line: the powers of ten, or the half of an axis from 0.
fn rules(panel: &Panel) -> Vec<f64> {
    match panel.foot {
        Some(foot) => {
            (1..12).map(|power| foot * 10_f64.powi(power)).take_while(|value| *value < panel.top).collect()
        }
        None => vec![panel.top / 2.0],
    }
}

/// The picture.
pub(super) fn picture(timeline: &Timeline, label: &str) -> Markup {
    let Timeline { seconds, panels, lines, .. } = timeline;
    let marks: Vec<(f64, &String)> = timeline.marks.iter().map(|(at, name)| (at / seconds, name)).collect();
    let bottom = MARKS + HEIGHT * panels.len() as f64;
    html! {
        p.lines { span.up { (lines[0]) } ", " span.down { (lines[1]) } }
        svg width="100%" height=(bottom + 22.0) role="img" aria-label=(plain(label)) {
            @for (index, (at, name)) in marks.iter().enumerate() {
                line.mark x1=(percent(*at)) x2=(percent(*at)) y1=(MARKS - 4.0) y2=(bottom) {}
                text.mark x=(percent(*at)) y=(if index % 2 == 0 { 12 } else { 27 })
                    text-anchor=(if *at > 0.85 { "end" } else if *at < 0.15 { "start" } else { "middle" }) { (plain(name)) }
            }
            @for (index, panel) in panels.iter().enumerate() {
                (drawn(panel, *seconds, MARKS + HEIGHT * index as f64))
            }
            @for tick in 0..=4 {
                @let at = f64::from(tick) / 4.0;
                text.tick x=(percent(at)) y=(bottom + 16.0)
                    text-anchor=(match tick { 0 => "start", 4 => "end", _ => "middle" }) {
                    (crate::words::failover::seconds(at * seconds))
                }
            }
        }
    }
}

fn drawn(panel: &Panel, seconds: f64, y: f64) -> Markup {
    let (floor, ceiling) = (HEIGHT - 6.0, 22.0);
    let path = |points: &Points| {
        let mut path = String::new();
        for (index, (x, value)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (x / seconds * ACROSS, floor - height(panel, *value) * (floor - ceiling));
            // Writing to a String cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        path
    };
    let ways = ["up", "down"];
    html! {
        svg x="0" y=(y) width="100%" height=(HEIGHT) viewBox={ "0 0 " (ACROSS) " " (HEIGHT) } preserveAspectRatio="none" {
            line.floor x1="0" x2=(ACROSS) y1=(floor) y2=(floor) {}
            @for value in rules(panel) {
                @let y = floor - height(panel, value) * (floor - ceiling);
                line.rule x1="0" x2=(ACROSS) y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
            }
            @for (number, way) in ways.iter().enumerate() {
                @for lines in panel.trials.iter().take(LINES_MAX) {
                    path class={ "thin " (way) } d=(PreEscaped(path(&lines[number]))) {}
                }
            }
            @for (number, way) in ways.iter().enumerate() {
                path class={ "bold " (way) } d=(PreEscaped(path(&panel.median[number]))) {}
            }
        }
        @for value in rules(panel) {
            text.rule x="100%" text-anchor="end" y=(format!("{:.1}", y + floor - height(panel, value) * (floor - ceiling) - 2.0)) {
                ((panel.human)(value))
            }
        }
        text.panel x="4" y=(y + 13.0) { (panel.title) ": up to " ((panel.human)(panel.top)) }
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0)
}
