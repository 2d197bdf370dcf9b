//! The parts of a report, independent of the output format: sections of blocks, and text with emphasis.
//!
//! A renderer knows these types and no workloads. Any text may hold characters from outside (plans, hosts, errors): each renderer
//! escapes them for its format.
use crate::findings::Finding;
use crate::words::tone::Tone;

use super::chart::Figure;
use super::cover::Cover;
use super::table::Table;
use super::verdicts::Verdicts;

/// A report.
#[derive(Debug, Clone)]
pub struct Document {
    /// What a file shows before its sections.
    pub cover: Cover,
    /// The question of the plan.
    pub title: String,
    /// Name, date and program of the run.
    pub source: Vec<String>,
    /// Number of trials behind the result, and how the run ended.
    pub basis: String,
    /// Arms, baseline first; charts number them by their position here.
    pub arms: Vec<String>,
    /// Sections in the order of every format.
    pub sections: Vec<Section>,
}

/// The outputs that show a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Every output, including the closing lines of a run.
    Result,
    /// Every full report.
    Detail,
    /// Report files only; a terminal omits it.
    Reference,
}

/// A section with its heading.
#[derive(Debug, Clone)]
pub struct Section {
    /// Link target: letters, digits and hyphens.
    pub anchor: String,
    /// The heading, a noun.
    pub title: String,
    /// The outputs that show it.
    pub scope: Scope,
    /// The blocks of the section.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading within the section.
    Heading(String),
    /// A paragraph.
    Paragraph(Text),
    /// A short explanation of how to read the next block.
    Reading(String),
    /// The summary in one sentence per arm and workload; a terminal omits it because the verdicts are in view.
    Headlines(Vec<Headline>),
    /// A bulleted list.
    List(Vec<Text>),
    /// A numbered list.
    Numbered(Vec<Text>),
    /// A table.
    Table(Table),
    /// Comparisons of arms.
    Verdicts(Verdicts),
    /// A picture.
    Figure(Box<Figure>),
    /// Facts with their labels, in groups.
    Facts(Vec<FactGroup>),
    /// Findings: problems of hosts with their remedies.
    Findings(Vec<Finding>),
    /// Lines to copy, or a file.
    Code(Vec<String>),
    /// Reference material under a title, folded in HTML; text formats omit it.
    Folded(String, Vec<Block>),
}

/// The summary of one arm in one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headline {
    /// The workload.
    pub title: String,
    /// The sentence.
    pub text: Text,
}

/// A group of facts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactGroup {
    /// Name and one-line description; absent for facts of the section's own subject.
    pub head: Option<(String, String)>,
    /// Whether the group is below the previous one in the hierarchy.
    pub nested: bool,
    /// Label and text.
    pub rows: Vec<(String, String)>,
}

/// Text with emphasis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

/// A run of text with one emphasis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The characters.
    pub text: String,
    /// The emphasis.
    pub style: Style,
}

/// Emphasis. Never the only sign of a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// Plain.
    Plain,
    /// Strong.
    Strong,
    /// Stress in a text of the author.
    Emphasis,
    /// A verdict.
    Tone(Tone),
    /// A link to a section.
    Link(&'static str),
    /// A link to an address on the web, which begins with `https://` or `http://`.
    Web(String),
}

impl Text {
    /// Appends text.
    #[must_use]
    pub fn and(mut self, text: impl Into<String>, style: Style) -> Self {
        self.0.push(Span { text: text.into(), style });
        self
    }

    /// The text without emphasis.
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

/// A heading and a list below it; empty without items.
pub fn titled_list(title: &str, items: Vec<String>) -> Vec<Block> {
    if items.is_empty() { Vec::new() } else { vec![Block::Heading(title.to_owned()), list(items)] }
}
