//! Limits of the lines of a server: a flood of clients does not fill the log, and the log has the number of lines that were not printed. Pure.

/// Maximum number of lines of one kind that are printed per minute.
const PRINTED_A_MINUTE: u32 = 30;
const MINUTE_NS: u64 = 60_000_000_000;

/// The lines of one kind.
#[derive(Debug, Default)]
pub struct PrintLimit {
    minute_began_ns: u64,
    count: u32,
}

impl PrintLimit {
    /// Counts a line at this time of a monotonic clock; whether it is within the limit.
    pub fn admits(&mut self, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.minute_began_ns) >= MINUTE_NS {
            *self = Self { minute_began_ns: now_ns, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= PRINTED_A_MINUTE
    }
}

/// Numbers of lines that were not printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unprinted {
    /// Of finished tests.
    pub tests: u64,
    /// Of tests without a result.
    pub failed: u64,
    /// Of rejected clients and requests.
    pub refused: u64,
}

impl Unprinted {
    /// The line for people; absent when every line was printed.
    pub fn words(self) -> Option<String> {
        let counts = [(self.failed, "failure"), (self.refused, "refusal"), (self.tests, "test")];
        let words = |(count, name): (u64, &str)| match count {
            0 => None,
            1 => Some(format!("1 further {name}")),
            _ => Some(format!("{count} further {name}s")),
        };
        let parts: Vec<String> = counts.into_iter().filter_map(words).collect();
        let total = self.failed.saturating_add(self.refused).saturating_add(self.tests);
        let verb = if total == 1 { "was" } else { "were" };
        (total > 0).then(|| format!("{} {verb} not printed", parts.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minute_has_the_same_limit() {
        let mut limit = PrintLimit::default();
        for minute in 1..4 {
            let admitted = (0..1000).filter(|at| limit.admits(minute * MINUTE_NS + at)).count();
            assert_eq!(admitted, 30);
        }
    }

    #[test]
    fn numbers_of_unprinted_lines_are_in_one_line() {
        let words = |failed, refused, tests| Unprinted { tests, failed, refused }.words();
        assert_eq!(words(0, 0, 0), None);
        assert_eq!(words(970, 0, 0).as_deref(), Some("970 further failures were not printed"));
        assert_eq!(words(0, 1, 0).as_deref(), Some("1 further refusal was not printed"));
        let all = words(2, 1, 3);
        assert_eq!(
            all.as_deref(),
            Some("2 further failures and 1 further refusal and 3 further tests were not printed")
        );
    }
}
