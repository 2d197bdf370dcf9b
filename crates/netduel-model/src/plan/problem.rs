//! What is wrong with a plan: every problem with its line, its key, and what is allowed instead.
use std::collections::BTreeMap;
use std::fmt;

/// One problem of a plan.
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

/// Why a text is not a plan: every problem that was found, by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanErrors {
    /// The file, as it was named.
    pub file: String,
    /// At least one, in the order of their lines.
    pub problems: Vec<Problem>,
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
                write!(f, "{}: ", problem.key)?;
            }
            write!(f, "{}; {}", problem.wrong, problem.allowed)?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanErrors {}

/// Collects problems while a plan is read and checked, and knows on which line every key stands.
#[derive(Debug)]
pub(crate) struct Problems<'t> {
    text: &'t str,
    /// Byte offset of every key and array element that was read, by its path.
    places: BTreeMap<String, usize>,
    /// Keys that an override has set, with the override as it was given.
    overridden: BTreeMap<String, String>,
    found: Vec<Problem>,
}

impl<'t> Problems<'t> {
    /// For the text of a plan.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, places: BTreeMap::new(), overridden: BTreeMap::new(), found: Vec::new() }
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
        let mut known = path;
        let offset = loop {
            if let Some(given) = self.overridden.get(known) {
                let key = format!("--set {given}");
                return self.note(Problem { line: 0, key, wrong: wrong.into(), allowed: allowed.into() });
            }
            if let Some(offset) = self.places.get(known) {
                break *offset;
            }
            match known.rfind(['.', '[']) {
                Some(end) => known = &known[..end],
                None => break 0,
            }
        };
        self.add_at(offset, path, wrong.into(), allowed.into());
    }

    /// Notes a problem at a byte offset. The same problem is noted once, however many arms run into it.
    pub(crate) fn add_at(&mut self, offset: usize, path: &str, wrong: String, allowed: String) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.split(|byte| *byte == b'\n').count();
        self.note(Problem { line, key: path.to_owned(), wrong, allowed });
    }

    fn note(&mut self, problem: Problem) {
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    /// The number of problems so far.
    pub(crate) fn len(&self) -> usize {
        self.found.len()
    }

    /// All problems in the order of their lines.
    pub(crate) fn into_errors(mut self, file: &str) -> PlanErrors {
        self.found.sort_by_key(|problem| problem.line);
        PlanErrors { file: file.to_owned(), problems: self.found }
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

/// Words for people: `a, b or c`.
pub(crate) fn one_of<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "nothing".to_owned(),
    }
}
