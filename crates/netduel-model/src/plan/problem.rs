//! What is wrong with a plan or a bed: every problem with its line, its key, and what is allowed instead.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use super::place;
use crate::ids::ArmName;
use crate::units::plural;

/// Problems that are kept at most, those of the first lines: more of them help no author.
const PROBLEMS_MAX: usize = 100;

/// One problem of a plan or a bed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1; 0 for a problem of an override, which is in no file.
    pub line: usize,
    /// The key, for example `arms[1].treatments[0].mtu`; empty when the text is not TOML at this line.
    pub key: String,
    /// What is wrong, as a fragment that follows the key.
    pub wrong: String,
    /// What is allowed instead.
    pub allowed: String,
}

/// Why a text is not a plan, or not a bed: every problem that was found, by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    /// The file, as it was named.
    pub file: String,
    /// At least one and at most 100, in the order of their lines.
    pub problems: Vec<Problem>,
    /// Whether there are more, on later lines.
    pub has_more: bool,
    /// Names of elements of lists, as of arms and workloads, by path, for example `arms[1]`.
    pub names: BTreeMap<String, String>,
}

impl PlanErrors {
    /// How many there are: `1 error`, `3 errors`, `more than 100 errors`.
    pub fn count(&self) -> String {
        let kept = plural(self.problems.len(), "error");
        if self.has_more { format!("more than {kept}") } else { kept }
    }

    /// Where a problem is, in words. An override is shown as it was given.
    fn place<'p>(&self, problem: &'p Problem) -> Cow<'p, str> {
        if problem.line == 0 {
            return Cow::Borrowed(&problem.key);
        }
        Cow::Owned(place::in_words(&problem.key, &self.names))
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            if problem.line > 0 {
                write!(f, "{}:{}: ", self.file, problem.line)?;
            }
            if !problem.key.is_empty() {
                write!(f, "{}: ", shortened(&self.place(problem)))?;
            }
            write!(f, "{}; {}", shortened(&problem.wrong), shortened(&problem.allowed))?;
        }
        if self.has_more {
            write!(f, "\n{}: has more problems on later lines; correct these first", self.file)?;
        }
        Ok(())
    }
}

/// Bytes of a part of a message at most: a part may quote the plan.
const PART_LEN_MAX: usize = 2000;

/// The beginning of a text that is too long to be printed.
fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= PART_LEN_MAX {
        return text.into();
    }
    let is_within = |(start, letter): &(usize, char)| start + letter.len_utf8() <= PART_LEN_MAX;
    let beginning: String = text.char_indices().take_while(is_within).map(|(_, letter)| letter).collect();
    format!("{beginning}...").into()
}

impl std::error::Error for PlanErrors {}

/// The tables of a document that have a key, in words.
pub(crate) type TablesWith = fn(&str) -> Vec<&'static str>;

/// Collects problems while a plan or a bed is read and checked, and knows on which line every key stands.
#[derive(Debug)]
pub(crate) struct Problems<'t> {
    text: &'t str,
    /// What the text is meant to be, for messages: `plan` or `bed`.
    document: &'static str,
    /// Which tables have a key that stands in another one.
    tables_with: TablesWith,
    /// Byte offset of each line end of the text.
    line_ends: Vec<usize>,
    /// Byte offset of every key and array element that was read, by its path.
    places: BTreeMap<String, usize>,
    /// The names of elements of lists, by their path.
    names: BTreeMap<String, String>,
    /// Keys that an override has set, with the override as it was given.
    overridden: BTreeMap<String, String>,
    /// The first of them, by line and in the order in which they were found.
    found: BTreeMap<(usize, usize), Problem>,
    /// Problems so far, with those that are not kept.
    count: usize,
}

impl<'t> Problems<'t> {
    /// For the text of a plan.
    pub(crate) fn new(text: &'t str) -> Self {
        Self::of(text, "plan")
    }

    /// For a text, and what it is meant to be.
    pub(crate) fn of(text: &'t str, document: &'static str) -> Self {
        Self {
            text,
            document,
            tables_with: |_| Vec::new(),
            line_ends: text.match_indices('\n').map(|(offset, _)| offset).collect(),
            places: BTreeMap::new(),
            names: BTreeMap::new(),
            overridden: BTreeMap::new(),
            found: BTreeMap::new(),
            count: 0,
        }
    }

    /// The same, for a document of several tables.
    pub(crate) fn knowing(self, tables_with: TablesWith) -> Self {
        Self { tables_with, ..self }
    }

    /// What the text is meant to be.
    pub(crate) fn document(&self) -> &'static str {
        self.document
    }

    /// The tables of the document that have a key, in words.
    pub(crate) fn tables_with(&self) -> TablesWith {
        self.tables_with
    }

    /// Remembers the name of an element of a list. A text that is no name is not shown in place of the number of the element.
    pub(crate) fn name_element(&mut self, path: &str, name: &str) {
        if path.ends_with(']') && ArmName::new(name).is_ok() {
            self.names.insert(path.to_owned(), name.to_owned());
        }
    }

    /// Remembers where a key stands.
    pub(crate) fn place(&mut self, path: &str, offset: usize) {
        self.places.insert(path.to_owned(), offset);
    }

    /// Remembers that an override has set a key.
    pub(crate) fn override_key(&mut self, path: &str, given: &str) {
        self.overridden.insert(path.to_owned(), given.to_owned());
    }

    /// Whether an override has set this key.
    pub(crate) fn is_overridden(&self, path: &str) -> bool {
        self.overridden.contains_key(path)
    }

    /// Whether the plan has this key.
    pub(crate) fn is_written(&self, path: &str) -> bool {
        self.places.contains_key(path) || self.overridden.contains_key(path)
    }

    /// Notes a problem at a key; its line is that of the key or, when it is not written, of the table it belongs in.
    pub(crate) fn add(&mut self, path: &str, wrong: impl Into<String>, allowed: impl Into<String>) {
        self.add_made(path, || (wrong.into(), allowed.into()));
    }

    /// As [`Self::add`], with texts that are made only when the problem is kept.
    pub(crate) fn add_made(&mut self, path: &str, texts: impl FnOnce() -> (String, String)) {
        let mut known = path;
        let offset = loop {
            if let Some(given) = self.overridden.get(known) {
                let key = format!("--set {given}");
                return self.note(0, key, texts);
            }
            if let Some(offset) = self.places.get(known) {
                break *offset;
            }
            match known.rfind(['.', '[']) {
                Some(end) => known = &known[..end],
                None => break 0,
            }
        };
        self.note(self.line(offset), path.to_owned(), texts);
    }

    /// Notes a problem at a byte offset. The same problem is noted once, however many arms run into it.
    pub(crate) fn add_at(&mut self, offset: usize, path: &str, wrong: String, allowed: String) {
        self.note(self.line(offset), path.to_owned(), || (wrong, allowed));
    }

    /// The line of a key that was read, from 1; `None` when it is not written.
    pub(crate) fn line_of(&self, path: &str) -> Option<usize> {
        self.places.get(path).map(|offset| self.line(*offset))
    }

    /// The line of a byte offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.line_ends.partition_point(|end| *end < offset.min(self.text.len())) + 1
    }

    fn note(&mut self, line: usize, key: String, texts: impl FnOnce() -> (String, String)) {
        let is_full = self.found.len() == PROBLEMS_MAX;
        if is_full && self.found.last_key_value().is_some_and(|((last, _), _)| *last < line) {
            self.count += 1;
            return;
        }
        let (wrong, allowed) = texts();
        let problem = Problem { line, key, wrong, allowed };
        if self.found.values().any(|found| *found == problem) {
            return;
        }
        self.found.insert((line, self.count), problem);
        self.count += 1;
        if is_full {
            self.found.pop_last();
        }
    }

    /// The number of problems so far.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All problems in the order of their lines.
    pub(crate) fn into_errors(self, file: &str) -> PlanErrors {
        let has_more = self.count > self.found.len();
        let problems = self.found.into_values().collect();
        PlanErrors { file: file.to_owned(), problems, has_more, names: self.names }
    }
}

/// The path of a key in a table; a key that TOML would have to quote is quoted.
pub(crate) fn key_path(table: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if table.is_empty() { key } else { format!("{table}.{key}") }
}

/// The path of an element of an array.
pub(crate) fn element_path(array: &str, index: usize) -> String {
    format!("{array}[{index}]")
}

/// Words for people: `a, b or c`, each in backticks.
pub(crate) fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    any_of(words.into_iter().map(|word| format!("`{word}`")))
}

/// Words for people: `a, b or c`.
pub(crate) fn any_of(words: impl IntoIterator<Item = String>) -> String {
    let words: Vec<String> = words.into_iter().collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}
