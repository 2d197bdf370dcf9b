//! Imports between files, with the imported names.
use std::collections::{BTreeMap, BTreeSet};

/// From file to file: the names that the first imports from the second, and the line of the first import.
pub type Ties = BTreeMap<(String, String), Tie>;

/// The imports of one file from another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tie {
    /// The line of the first import.
    pub line: usize,
    /// The names.
    pub names: BTreeSet<String>,
}

impl Tie {
    /// An import without names yet, first found at a line.
    pub fn at(line: usize) -> Self {
        Self { line, names: BTreeSet::new() }
    }
}
