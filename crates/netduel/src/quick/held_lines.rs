//! The lines of a quick test that wait until its live view has ended. Their memory is bounded, whatever the duration of the test.
use std::collections::VecDeque;

/// Lines that are kept: those of an hour at the default interval of one second.
const LINES_MAX: usize = 3_600;

/// The newest lines.
#[derive(Debug, Default)]
pub struct HeldLines {
    lines: VecDeque<String>,
    /// Number of earlier lines, which are not kept.
    left_out: u64,
}

impl HeldLines {
    /// Adds a line without its line end.
    pub fn push(&mut self, line: String) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            self.left_out += 1;
        }
        self.lines.push_back(line);
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines, after one with the number of those that were left out.
    pub fn into_lines(self) -> impl Iterator<Item = String> {
        let left_out = match self.left_out {
            0 => None,
            count => Some(format!("{count} earlier lines left out; --no-live prints all lines")),
        };
        left_out.into_iter().chain(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(count: usize) -> Vec<String> {
        let mut held = HeldLines::default();
        (0..count).for_each(|number| held.push(number.to_string()));
        held.into_lines().collect()
    }

    #[test]
    fn lines_are_kept_up_to_the_bound() {
        assert!(HeldLines::default().is_empty() && lines_of(0).is_empty());
        let lines = lines_of(LINES_MAX);
        assert_eq!((lines.len(), lines[0].as_str()), (LINES_MAX, "0"));
    }

    #[test]
    fn oldest_lines_beyond_the_bound_are_counted() {
        let lines = lines_of(LINES_MAX + 2);
        assert_eq!(lines.len(), LINES_MAX + 1, "and the line with the count");
        assert!(lines[0].starts_with("2 earlier lines left out"), "{}", lines[0]);
        assert_eq!((lines[1].as_str(), lines[LINES_MAX].clone()), ("2", (LINES_MAX + 1).to_string()));
    }
}
