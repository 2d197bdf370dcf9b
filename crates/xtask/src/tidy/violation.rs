//! A violation: location, rule, and what to do.
use std::fmt;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// File, relative to the root.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// The rule's name.
    pub rule: &'static str,
    /// The problem, and what to do about it.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.path, self.line, self.rule, self.message)
    }
}

/// The lines in which a rule finds something, for its tests.
#[cfg(test)]
pub fn lines<T>(check: impl Fn(&T, &mut Vec<Violation>), judged: &T) -> Vec<usize> {
    let mut found = Vec::new();
    check(judged, &mut found);
    found.iter().map(|violation| violation.line).collect()
}
