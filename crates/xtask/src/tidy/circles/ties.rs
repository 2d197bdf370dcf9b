//! Which file imports which, and by what names.
use std::collections::{BTreeMap, BTreeSet};

/// From file to file, the names that the first takes from the second and the line of the first of them.
pub type Ties = BTreeMap<(String, String), Tie>;

/// Why one file imports another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tie {
    /// The line of the first import.
    pub line: usize,
    /// The names.
    pub names: BTreeSet<String>,
}

impl Tie {
    /// A tie of no name yet, first met at a line.
    pub fn at(line: usize) -> Self {
        Self { line, names: BTreeSet::new() }
    }
}
