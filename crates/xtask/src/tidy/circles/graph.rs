//! Circles of a graph: its strongly connected components (Tarjan 1972). Independent of imports.
use std::collections::BTreeMap;

use super::ties::Ties;

/// The strongly connected components with two files or more; the files of each are sorted.
pub fn circles(ties: &Ties) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = ties.keys().flat_map(|(from, to)| [from.as_str(), to.as_str()]).collect();
    names.sort_unstable();
    names.dedup();
    let numbers: BTreeMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
    let mut targets = vec![Vec::new(); names.len()];
    for (from, to) in ties.keys() {
        targets[numbers[from.as_str()]].push(numbers[to.as_str()]);
    }
    let mut search = Search {
        targets: &targets,
        order: vec![None; names.len()],
        low: vec![0; names.len()],
        is_open: vec![false; names.len()],
        open: Vec::new(),
        visited: 0,
        found: Vec::new(),
    };
    for node in 0..names.len() {
        if search.order[node].is_none() {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort();
    found.iter().map(|group| group.iter().map(|node| names[*node].to_owned()).collect()).collect()
}

struct Search<'a> {
    targets: &'a [Vec<usize>],
    order: Vec<Option<usize>>,
    /// The lowest index of a node on the stack that is reachable.
    low: Vec<usize>,
    is_open: Vec<bool>,
    open: Vec<usize>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// The recursion depth is the longest chain of imports, a few hundred files.
    fn visit(&mut self, node: usize) {
        let number = self.visited;
        self.visited += 1;
        self.order[node] = Some(number);
        self.low[node] = number;
        self.open.push(node);
        self.is_open[node] = true;
        for target in &self.targets[node] {
            match self.order[*target] {
                None => {
                    self.visit(*target);
                    self.low[node] = self.low[node].min(self.low[*target]);
                }
                Some(order) if self.is_open[*target] => self.low[node] = self.low[node].min(order),
                Some(_) => {}
            }
        }
        if self.low[node] == number {
            let start = self.open.iter().rposition(|open| *open == node).unwrap_or_default();
            let mut group = self.open.split_off(start);
            for closed in &group {
                self.is_open[*closed] = false;
            }
            group.sort_unstable();
            if group.len() > 1 {
                self.found.push(group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arrows: &[(&str, &str)]) -> Vec<String> {
        let ties = arrows
            .iter()
            .map(|(from, to)| {
                (((*from).to_owned(), (*to).to_owned()), crate::tidy::circles::ties::Tie::at(1))
            })
            .collect();
        circles(&ties).into_iter().map(|group| group.join("")).collect()
    }

    #[test]
    fn chains_are_not_circles() {
        let none: [&str; 0] = [];
        assert_eq!(of(&[("a", "b"), ("b", "c"), ("a", "c"), ("a", "a")]), none);
        assert_eq!(of(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")]), ["ab", "cd"]);
        // Two loops that share a file are one circle; a chain into it is not part of it.
        assert_eq!(of(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("c", "x"), ("y", "a")]), ["abc"]);
    }

    #[test]
    fn circle_is_found_from_any_start() {
        for first in ["a", "b", "c", "z"] {
            let name = |letter: &'static str| if letter == "a" { first } else { letter };
            let found = of(&[(name("a"), "m"), ("m", "n"), ("n", name("a"))]);
            assert_eq!(found.len(), 1, "{first}");
            assert_eq!(found[0].len(), 3, "{first}");
        }
    }
}
