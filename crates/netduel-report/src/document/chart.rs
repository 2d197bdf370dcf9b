//! Figures as data: the chart, its text alternative, and the table of its numbers.
use std::collections::BTreeSet;

use super::table::Table;

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The heading, a noun.
    pub title: String,
    /// How to read it.
    pub reading: String,
    /// Text alternative.
    pub alternative: String,
    /// The chart.
    pub chart: Chart,
    /// Its numbers; absent where its labels or the figure before it have them.
    pub data: Option<Table>,
    /// Whether formats without pictures print the numbers. False when a table nearby has them.
    pub in_text: bool,
}

/// The kinds of charts.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Drawn by the script of the page.
    Plot(Plot),
    /// Bars of segments that add up.
    Bars(Bars),
    /// Lines over a common time axis with marked events.
    Timeline(Timeline),
    /// Bars with intervals by arm, a group for each metric.
    Levels(Levels),
    /// Steps of a search in chronological order by rate, on a logarithmic axis.
    Steps(Steps),
    /// Interfaces, queues and cores of a host.
    Host(HostDrawing),
    /// Networks, VMs and NICs of a bed, or hosts and the paths between them.
    Bed(BedDrawing),
}

/// A plot with axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its kind, as the script names it.
    pub kind: &'static str,
    /// What the script draws.
    pub data: serde_json::Value,
    /// Its height: rows of other plots beside it, at least 1.
    pub rows: usize,
    /// The legend of styles that all arms share; empty where the marks have labels.
    pub legend: Vec<(String, Paint)>,
}

impl Plot {
    /// A plot as tall as the others, without a legend.
    pub fn new(kind: &'static str, data: serde_json::Value) -> Self {
        Self { kind, data, rows: 1, legend: Vec::new() }
    }

    /// The plot with another height.
    #[must_use]
    pub fn with_rows(self, rows: usize) -> Self {
        Self { rows: rows.max(1), ..self }
    }

    /// The plot with panels below each other, of which three are as tall as another plot.
    #[must_use]
    pub fn with_panels(self, panels: usize) -> Self {
        self.with_rows(panels.div_ceil(3))
    }

    /// The plot with a legend.
    #[must_use]
    pub fn with_legend(self, legend: Vec<(String, Paint)>) -> Self {
        Self { legend, ..self }
    }
}

/// A bar chart.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// The legend; empty when segments have labels.
    pub legend: Vec<(String, Paint)>,
    /// The bars from top to bottom.
    pub rows: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Its label.
    pub title: String,
    /// A secondary label.
    pub detail: String,
    /// The formatted sum; empty when it equals the full width.
    pub whole: String,
    /// Segments from left to right.
    pub segments: Vec<Segment>,
}

/// A segment of a bar.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Its label.
    pub title: String,
    /// Its share of the full width.
    pub share: f64,
    /// Its formatted number.
    pub label: String,
    /// Its style.
    pub paint: Paint,
}

/// The style of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// The interface that the plan expects.
    Expected,
    /// Any other interface.
    Other,
    /// A class with this number, 0 to 5.
    Class(u8),
    /// Waiting.
    Waiting,
}

/// Bars with intervals by arm.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    /// The metrics.
    pub groups: Vec<LevelGroup>,
}

/// A metric with a bar for each arm.
#[derive(Debug, Clone)]
pub struct LevelGroup {
    /// The metric.
    pub title: String,
    /// Which direction is better.
    pub note: String,
    /// Whether the axis is logarithmic; a linear one begins at 0.
    pub is_logarithmic: bool,
    /// Round values for the axis with their words.
    pub ticks: Vec<(f64, String)>,
    /// The arms, baseline first.
    pub bars: Vec<Level>,
}

/// The value of an arm.
#[derive(Debug, Clone)]
pub struct Level {
    /// Number of the arm, which selects its colour.
    pub arm: usize,
    /// The arm.
    pub name: String,
    /// The median; absent without a valid trial.
    pub value: Option<f64>,
    /// The ends of the interval; absent for a single trial.
    pub range: Option<(f64, f64)>,
    /// Minimum and maximum, between which the interval is a box; absent in a chart without whiskers.
    pub whiskers: Option<(f64, f64)>,
    /// The median in words.
    pub label: String,
    /// The interval in words.
    pub detail: String,
    /// Minimum and maximum in words; empty without whiskers.
    pub extremes: String,
    /// Why a reader must not compare the value; empty where it may be compared.
    pub remark: &'static str,
}

/// Points of a line: seconds and values.
pub type Points = Vec<(f64, f64)>;

/// Panels with lines over a common time axis.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The arm.
    pub title: String,
    /// Length of the axis, seconds.
    pub seconds: f64,
    /// Times and names of events.
    pub marks: Vec<(f64, String)>,
    /// Names of the two lines of each panel.
    pub lines: [&'static str; 2],
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// A panel of a timeline.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Formats a value.
    pub human: fn(f64) -> String,
    /// The lower end of a logarithmic axis; absent for a linear axis from 0.
    pub foot: Option<f64>,
    /// The upper end of the axis.
    pub top: f64,
    /// The lines of each trial.
    pub trials: Vec<[Points; 2]>,
    /// The lines of the median over trials.
    pub median: [Points; 2],
}

/// Steps of a search.
#[derive(Debug, Clone)]
pub struct Steps {
    /// The steps in chronological order.
    pub steps: Vec<Step>,
    /// Formats a rate.
    pub human: fn(f64) -> String,
    /// The lower and the upper bound.
    pub bounds: [Option<f64>; 2],
}

/// A step of a search.
#[derive(Debug, Clone)]
pub struct Step {
    /// The tested rate.
    pub rate: f64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether the step decided the goal.
    pub is_confirming: bool,
    /// Text of the step.
    pub words: String,
}

/// The outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The loss met the goal.
    Good,
    /// The loss exceeded the goal.
    LossAboveGoal,
    /// The generator did not reach the rate.
    GeneratorTooSlow,
}

/// On a logarithmic axis a whisker counts up to this factor from the medians: one trial with a pause would push all other marks together.
const WHISKER_FACTOR: f64 = 30.0;

impl LevelGroup {
    /// The lowest and the highest value above 0 that the axis covers; absent without one.
    pub fn ends(&self) -> Option<(f64, f64)> {
        let near = match span(self.bars.iter().filter_map(|bar| bar.value)) {
            Some((low, high)) if self.is_logarithmic => low / WHISKER_FACTOR..=high * WHISKER_FACTOR,
            _ => 0.0..=f64::INFINITY,
        };
        let boxes = self.bars.iter().flat_map(|bar| {
            let (low, high) = bar.range.unzip();
            [bar.value, low, high]
        });
        let whiskers = self.bars.iter().filter_map(|bar| bar.whiskers).flat_map(|(min, max)| [min, max]);
        span(boxes.flatten().chain(whiskers.filter(|end| near.contains(end))))
    }
}

/// The lowest and the highest of the values above 0.
fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| *value > 0.0 && value.is_finite()).fold(None::<(f64, f64)>, |span, value| {
        let (low, high) = span.unwrap_or((value, value));
        Some((value.min(low), value.max(high)))
    })
}

/// A host: its cores and interfaces.
#[derive(Debug, Clone)]
pub struct HostDrawing {
    /// The host.
    pub name: String,
    /// NUMA nodes with their cores.
    pub nodes: Vec<(String, Vec<u16>)>,
    /// Cores that the host may not use.
    pub withheld: BTreeSet<u16>,
    /// Cores that serve a queue.
    pub busy: BTreeSet<u16>,
    /// Interfaces from top to bottom.
    pub groups: Vec<DrawnGroup>,
    /// Number of further interfaces that are not drawn.
    pub groups_left: usize,
}

/// An interface with those below it.
#[derive(Debug, Clone)]
pub struct DrawnGroup {
    /// The interface.
    pub top: DrawnInterface,
    /// The state of its acceleration in words, and whether it is on; absent for an interface without such a state.
    pub acceleration: Option<(String, bool)>,
    /// The interfaces below it.
    pub ports: Vec<DrawnPort>,
    /// Number of further ones that are not drawn.
    pub ports_left: usize,
}

/// An interface below another one.
#[derive(Debug, Clone)]
pub struct DrawnPort {
    /// The interface.
    pub interface: DrawnInterface,
    /// Whether it carries the packets of the interface above.
    pub carries: bool,
}

/// An interface.
#[derive(Debug, Clone)]
pub struct DrawnInterface {
    /// Its name.
    pub name: String,
    /// Driver, speed, node and state.
    pub about: String,
    /// Its first addresses.
    pub addresses: Vec<String>,
    /// Number of queues to draw; 0 for none.
    pub queues: u32,
    /// The queues that each core serves.
    pub queues_by_core: Vec<(u16, Vec<u32>)>,
}

/// A bed: its VMs, the subnets that cross them, and the NICs where they meet. Or the hosts of a plan, its arms, and their interfaces.
#[derive(Debug, Clone)]
pub struct BedDrawing {
    /// What it shows, for readers who cannot see it.
    pub label: String,
    /// What the whole is.
    pub title: String,
    /// VMs that stand side by side, from top to bottom.
    pub rows: Vec<VmRow>,
}

/// VMs that stand side by side, and their subnets.
#[derive(Debug, Clone)]
pub struct VmRow {
    /// The VMs from left to right.
    pub vms: Vec<DrawnVm>,
    /// The subnets from top to bottom.
    pub bands: Vec<DrawnBand>,
}

/// A VM.
#[derive(Debug, Clone)]
pub struct DrawnVm {
    /// Its name.
    pub name: String,
    /// Size, zone, placement, physical host.
    pub lines: Vec<String>,
}

/// A subnet.
#[derive(Debug, Clone)]
pub struct DrawnBand {
    /// Its name.
    pub title: String,
    /// The NICs of each VM in it.
    pub nics: Vec<Vec<DrawnNic>>,
}

/// A NIC.
#[derive(Debug, Clone)]
pub struct DrawnNic {
    /// Its name.
    pub name: String,
    /// Addresses, and what the provider claims.
    pub lines: Vec<String>,
    /// What the guest shows, and whether it agrees with the provider; absent for a guest that was not inspected.
    pub guest: Option<(String, bool)>,
    /// Whether accelerated networking is on, as the provider claims.
    pub is_accelerated: bool,
    /// Whether it is attached to its VM.
    pub is_attached: bool,
}
