//! What events cost, drawn: gaps between probes, one-way delay and throughput of every trial on one time axis, with the events.
//!
//! Drawn here and not by script, so that it is there without one. Places along the axis are percentages, and the lines a picture
//! that is stretched: so it fits any width, and no letter is stretched with it.
use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};
use netduel_model::units::{human_bit_rate, human_nanos};

use crate::analysis::{ArmAnalysis, ArmFailover, Line, WorkloadAnalysis};
use crate::words::{self, plain};

/// Height of a panel, CSS pixels.
const HEIGHT: f64 = 96.0;
/// Room for the events' names above the first panel, CSS pixels.
const MARKS: f64 = 34.0;
/// The width that lines are drawn in before they are stretched.
const ACROSS: f64 = 1000.0;
/// Trials that are drawn as lines of their own at most.
const LINES_MAX: usize = 40;

type Points = Vec<(f64, f64)>;

/// One of the three panels.
struct Panel {
    title: &'static str,
    of: fn(&Line) -> &[Points; 2],
    human: fn(f64) -> String,
    /// The value at the foot of a logarithmic panel; absent for one that begins at 0.
    foot: Option<f64>,
}

impl Panel {
    /// How high a value stands, 0 to 1.
    fn height(&self, value: f64, top: f64) -> f64 {
        let height = match self.foot {
            Some(foot) => (value.max(foot) / foot).log10() / (top.max(foot * 10.0) / foot).log10(),
            None => value / top,
        };
        height.clamp(0.0, 1.0)
    }

    /// The values at which a logarithmic panel has a line.
    fn rules(&self, top: f64) -> Vec<f64> {
        let Some(foot) = self.foot else { return Vec::new() };
        (1..12).map(|power| foot * 10_f64.powi(power)).take_while(|value| *value < top).collect()
    }
}

const PANELS: [Panel; 3] = [
    Panel {
        title: "longest gap between probes",
        of: |line| &line.gap_ns,
        human: human_nanos,
        foot: Some(1e5),
    },
    Panel { title: "largest one-way delay", of: |line| &line.delay_ns, human: human_nanos, foot: Some(1e4) },
    Panel { title: "received by the streams", of: |line| &line.rate_bps, human: human_bit_rate, foot: None },
];

/// The section of a workload; empty when it is no failover.
pub(super) fn section(workload: &WorkloadAnalysis) -> Markup {
    let Some(table) = words::failover::events(workload) else { return html! {} };
    let tops = PANELS.each_ref().map(|panel| top(workload, panel));
    html! {
        h3 { (words::failover::TITLE) }
        @for arm in &workload.arms {
            @if let Some(failover) = &arm.failover { (picture(arm, failover, tops)) }
        }
        div.scroll {
            table {
                thead { tr { @for title in &table.header { th scope="col" { (title) } } } }
                tbody {
                    @for row in &table.rows { tr { @for cell in row { td { (cell) } } } }
                }
            }
        }
        ul.notes { @for note in &table.notes { li { (plain(note)) } } }
    }
}

/// The top of a panel over all arms, so that they can be compared by eye.
fn top(workload: &WorkloadAnalysis, panel: &Panel) -> f64 {
    let failovers = workload.arms.iter().filter_map(|arm| arm.failover.as_ref());
    let values =
        failovers.flat_map(|failover| &failover.lines).flat_map(panel.of).flatten().map(|point| point.1);
    if panel.foot.is_some() {
        return values.fold(0.0, f64::max);
    }
    // A reader that was late counts in one interval what came in several: such a peak is no rate of the path.
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    crate::analysis::quantile(&values, 0.99).unwrap_or(0.0) * 1.1
}

fn picture(arm: &ArmAnalysis, failover: &ArmFailover, tops: [f64; 3]) -> Markup {
    let seconds = arm.workload.timing.duration.0 as f64 / 1e9;
    let marks: Vec<(f64, String)> = failover
        .events
        .iter()
        .filter_map(|event| {
            let mut began = event.began_s.clone();
            began.sort_by(f64::total_cmp);
            Some((crate::analysis::quantile(&began, 0.5)? / seconds, event.event.kind.to_string()))
        })
        .collect();
    let panels: Vec<(&Panel, f64)> = PANELS.iter().zip(tops).filter(|(_, top)| *top > 0.0).collect();
    let name = plain(arm.arm.as_str());
    let label = format!(
        "{name}: probes, delay and throughput over {seconds} s of {} trials with the events",
        failover.lines.len()
    );
    html! {
        figure.failover {
            figcaption {
                strong { (name) } ", " (failover.lines.len()) " trials: thin lines, their median bold; gaps are less the pace. "
                span.up { "client to server" } ", " span.down { "server to client" } "."
            }
            svg width="100%" height=(MARKS + HEIGHT * panels.len() as f64 + 22.0) role="img" aria-label=(label) {
                @for (index, (at, kind)) in marks.iter().enumerate() {
                    line.mark x1=(percent(*at)) x2=(percent(*at)) y1=(MARKS - 4.0) y2=(MARKS + HEIGHT * panels.len() as f64) {}
                    text.mark x=(percent(*at)) y=(if index % 2 == 0 { 12 } else { 27 })
                        text-anchor=(if *at > 0.85 { "end" } else if *at < 0.15 { "start" } else { "middle" }) { (kind) }
                }
                @for (index, (panel, top)) in panels.iter().enumerate() {
                    (drawn(panel, *top, failover, seconds, MARKS + HEIGHT * index as f64))
                }
                @for tick in 0..=4 {
                    @let at = f64::from(tick) / 4.0;
                    text.tick x=(percent(at)) y=(MARKS + HEIGHT * panels.len() as f64 + 16.0)
                        text-anchor=(match tick { 0 => "start", 4 => "end", _ => "middle" }) {
                        (words::failover::seconds(at * seconds))
                    }
                }
            }
        }
    }
}

fn drawn(panel: &Panel, top: f64, failover: &ArmFailover, seconds: f64, y: f64) -> Markup {
    let (floor, ceiling) = (HEIGHT - 6.0, 22.0);
    let path = |points: &[(f64, f64)]| {
        let mut path = String::new();
        for (index, (x, value)) in points.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let (x, y) = (x / seconds * ACROSS, floor - panel.height(*value, top) * (floor - ceiling));
            // Writing to a String cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        path
    };
    let ways = ["up", "down"];
    html! {
        svg x="0" y=(y) width="100%" height=(HEIGHT) viewBox={ "0 0 " (ACROSS) " " (HEIGHT) } preserveAspectRatio="none" {
            line.floor x1="0" x2=(ACROSS) y1=(floor) y2=(floor) {}
            @for value in panel.rules(top) {
                @let y = floor - panel.height(value, top) * (floor - ceiling);
                line.rule x1="0" x2=(ACROSS) y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) {}
            }
            @for (number, way) in ways.iter().enumerate() {
                @for line in failover.lines.iter().take(LINES_MAX) {
                    path class={ "thin " (way) } d=(PreEscaped(path(&(panel.of)(line)[number]))) {}
                }
            }
            @for (number, way) in ways.iter().enumerate() {
                path class={ "bold " (way) } d=(PreEscaped(path(&median(failover, panel, number)))) {}
            }
        }
        @for value in panel.rules(top) {
            text.rule x="100%" text-anchor="end" y=(format!("{:.1}", y + floor - panel.height(value, top) * (floor - ceiling) - 2.0)) {
                ((panel.human)(value))
            }
        }
        text.panel x="4" y=(y + 13.0) { (panel.title) ": up to " ((panel.human)(top)) }
    }
}

/// The median over trials, by time.
fn median(failover: &ArmFailover, panel: &Panel, number: usize) -> Points {
    let mut by_time: std::collections::BTreeMap<u64, Vec<f64>> = std::collections::BTreeMap::new();
    for (x, value) in failover.lines.iter().flat_map(|line| &(panel.of)(line)[number]) {
        by_time.entry((x * 1e6) as u64).or_default().push(*value);
    }
    by_time
        .into_iter()
        .filter_map(|(x, mut values)| {
            values.sort_by(f64::total_cmp);
            Some((x as f64 / 1e6, crate::analysis::quantile(&values, 0.5)?))
        })
        .collect()
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share.clamp(0.0, 1.0) * 100.0)
}
