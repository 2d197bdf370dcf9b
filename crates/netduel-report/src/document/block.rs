//! The parts of a report, free of any format: sections of blocks, and text with emphasis.
//!
//! A renderer knows these types and nothing of workloads. Every text here may hold characters from outside (plans, hosts,
//! errors): each renderer makes them harmless for its own format.
use crate::findings::Finding;
use crate::words::tone::Tone;

use super::chart::Figure;
use super::table::Table;
use super::verdicts::Verdicts;

/// A report.
#[derive(Debug, Clone)]
pub struct Document {
    /// The question of the plan.
    pub title: String,
    /// The run: its name, date and program.
    pub source: Vec<String>,
    /// How many trials the result rests on, and how the run ended.
    pub basis: String,
    /// Arms, baseline first; charts tell them apart by their place here.
    pub arms: Vec<String>,
    /// Sections in the order in which every format has them.
    pub sections: Vec<Section>,
}

/// Where a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In every form, the closing lines of a run included.
    Result,
    /// In every full report.
    Detail,
    /// In reports that are kept as files; a terminal leaves it out.
    Reference,
}

/// A section with its heading.
#[derive(Debug, Clone)]
pub struct Section {
    /// The name by which links lead here: letters, digits and hyphens.
    pub anchor: String,
    /// The heading, a noun.
    pub title: String,
    /// Where it is shown.
    pub scope: Scope,
    /// What it holds.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading within the section.
    Heading(String),
    /// A paragraph.
    Paragraph(Text),
    /// A short explanation of how to read what follows.
    Reading(String),
    /// The answers in one sentence each; a terminal, which has the verdicts in view, leaves them out.
    Headlines(Vec<Headline>),
    /// Paragraphs with a mark before each.
    List(Vec<Text>),
    /// A table.
    Table(Table),
    /// Comparisons of arms.
    Verdicts(Verdicts),
    /// A picture.
    Figure(Box<Figure>),
    /// Facts with their titles, in groups.
    Facts(Vec<FactGroup>),
    /// What is wrong with hosts, and what to do.
    Findings(Vec<Finding>),
    /// Lines to copy, or a file.
    Code(Vec<String>),
    /// Blocks to look something up in, with the title under which they are folded; text formats leave them out.
    Folded(String, Vec<Block>),
}

/// The answer for one arm in one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The workload.
    pub title: String,
    /// The sentence.
    pub text: Text,
}

/// Facts that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactGroup {
    /// A name and a line about it; absent for facts of the section's own subject.
    pub head: Option<(String, String)>,
    /// Whether the group lies beneath the one before it.
    pub nested: bool,
    /// Title and text.
    pub rows: Vec<(String, String)>,
}

/// Text with emphasis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The characters.
    pub text: String,
    /// How they are set off.
    pub style: Style,
}

/// How a piece of text is set off. Never the only sign of what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// Not at all.
    Plain,
    /// Stressed.
    Strong,
    /// A verdict.
    Tone(Tone),
    /// It leads to a section.
    Link(&'static str),
}

impl Text {
    /// Adds a piece.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push(Span { text: text.into(), style });
        self
    }

    /// The characters alone.
    pub fn characters(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().and(text, Style::Plain)
    }
}

/// A list of plain texts.
pub fn list(items: impl IntoIterator<Item = String>) -> Block {
    Block::List(items.into_iter().map(Text::from).collect())
}

/// A heading and a list beneath it; nothing without items.
pub fn titled_list(title: &str, items: Vec<String>) -> Vec<Block> {
    if items.is_empty() { Vec::new() } else { vec![Block::Heading(title.to_owned()), list(items)] }
}
