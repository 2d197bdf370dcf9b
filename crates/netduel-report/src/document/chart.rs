//! Pictures as data: the chart, its text alternative, and the table of its numbers.
use netduel_model::snapshot::HostSnapshot;

use super::table::Table;

/// A picture.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The heading, a noun.
    pub title: String,
    /// How to read it.
    pub reading: String,
    /// What it shows, in words.
    pub alternative: String,
    /// What is drawn.
    pub chart: Chart,
    /// Its numbers.
    pub data: Option<Table>,
    /// Whether formats without pictures print the numbers. They do not where a table nearby has them.
    pub in_text: bool,
}

/// What is drawn.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Drawn by the script of the page: the kind of plot, and its data.
    Plot(&'static str, serde_json::Value),
    /// Bars of segments that add up.
    Bars(Bars),
    /// Lines over one axis of time, with moments marked.
    Timeline(Timeline),
    /// Steps in order by their rate, on a logarithmic axis.
    Steps(Steps),
    /// Interfaces, queues and cores of a host, by its name.
    Host(String, Box<HostSnapshot>),
}

/// Bars beneath each other.
#[derive(Debug, Clone, Default)]
pub struct Bars {
    /// The parts that bars are made of; empty where segments bear their names.
    pub legend: Vec<(String, Paint)>,
    /// Bars.
    pub rows: Vec<Bar>,
}

/// A bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Whose it is.
    pub title: String,
    /// More about it, set quietly.
    pub detail: String,
    /// The sum in words; empty when it is all.
    pub whole: String,
    /// Segments from left to right.
    pub segments: Vec<Segment>,
}

/// A part of a bar.
#[derive(Debug, Clone)]
pub struct Segment {
    /// What it is.
    pub title: String,
    /// Its share of the full width.
    pub share: f64,
    /// Its number in words.
    pub label: String,
    /// Its look.
    pub paint: Paint,
}

/// The look of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// As the plan expects.
    Expected,
    /// Anything else.
    Other,
    /// The class of that number, 0 to 4.
    Class(u8),
    /// Between two hosts.
    Between,
    /// Waiting.
    Waiting,
}

/// Points of a line: seconds, and values.
pub type Points = Vec<(f64, f64)>;

/// Lines over one axis of time.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The arm.
    pub title: String,
    /// Length of the axis, seconds.
    pub seconds: f64,
    /// Moments and their names.
    pub marks: Vec<(f64, String)>,
    /// Names of the two lines of a panel.
    pub lines: [&'static str; 2],
    /// Panels from top to bottom.
    pub panels: Vec<Panel>,
}

/// A panel of a timeline.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What it shows.
    pub title: &'static str,
    /// A value for people.
    pub human: fn(f64) -> String,
    /// The value at the foot of a logarithmic axis; absent for one from 0.
    pub foot: Option<f64>,
    /// The value at the top.
    pub top: f64,
    /// Each trial, by line.
    pub trials: Vec<[Points; 2]>,
    /// The median over trials, by line.
    pub median: [Points; 2],
}

/// Steps of a search.
#[derive(Debug, Clone)]
pub struct Steps {
    /// Steps in their order.
    pub steps: Vec<Step>,
    /// A rate for people.
    pub human: fn(f64) -> String,
    /// The lower and the upper bound.
    pub bounds: [Option<f64>; 2],
}

/// A step of a search.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its rate.
    pub rate: f64,
    /// Its outcome.
    pub outcome: Outcome,
    /// Whether it counts for the goal.
    pub is_confirming: bool,
    /// It in words.
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
