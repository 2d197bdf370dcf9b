//! Lists of exceptions from when a rule was introduced: an entry may shrink but not grow, and is removed when it is no longer
//! needed.
use std::collections::BTreeMap;

use super::tree::Tree;
use super::violation::Violation;

/// A list of exceptions: each line has the words of a key and a number.
#[derive(Debug)]
pub struct Ratchet {
    path: &'static str,
    rule: &'static str,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    line: usize,
    allowed: usize,
    is_needed: bool,
}

impl Ratchet {
    /// Reads the list at `path`, whose lines have the form `form`: a key and a number. No file is an empty list.
    pub fn read(
        path: &'static str,
        rule: &'static str,
        form: &str,
        tree: &Tree,
        found: &mut Vec<Violation>,
    ) -> Self {
        let mut list = Self { path, rule, entries: BTreeMap::new() };
        for (index, line) in tree.text(path).unwrap_or_default().lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let entry = line.rsplit_once(' ').and_then(|(key, number)| Some((key, number.parse().ok()?)));
            match entry {
                Some((key, allowed)) => {
                    let entry = Entry { line: index + 1, allowed, is_needed: false };
                    list.entries.insert(key.to_owned(), entry);
                }
                None => found.push(list.violation(index + 1, format!("write `{form}`"))),
            }
        }
        list
    }

    /// The allowed number for a violation; `None` when it is not listed.
    pub fn take(&mut self, key: &str) -> Option<usize> {
        let entry = self.entries.get_mut(key)?;
        entry.is_needed = true;
        Some(entry.allowed)
    }

    /// Reports the entries that were not used.
    pub fn report_stale(&self, found: &mut Vec<Violation>) {
        for (key, entry) in self.entries.iter().filter(|(_, entry)| !entry.is_needed) {
            let message = format!("`{key}` no longer breaks the rule: take it off the list");
            found.push(self.violation(entry.line, message));
        }
    }

    fn violation(&self, line: usize, message: String) -> Violation {
        Violation { path: self.path.to_owned(), line, rule: self.rule, message }
    }
}
