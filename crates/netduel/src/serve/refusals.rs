//! Rate limit of printed rejections and failures: a flood of clients does not fill the log, and the log still shows it.

/// Maximum number of refusals printed per minute.
const PRINTED_A_MINUTE: u32 = 30;
const MINUTE_NS: u64 = 60_000_000_000;

/// Counts refusals.
#[derive(Debug, Default)]
pub struct Refusals {
    minute_began_ns: u64,
    count: u32,
}

impl Refusals {
    /// Counts a refusal at this time of a monotonic clock; returns the lines to print.
    pub fn take(&mut self, why: &str, now_ns: u64) -> Vec<String> {
        let mut lines = Vec::new();
        if now_ns.saturating_sub(self.minute_began_ns) >= MINUTE_NS {
            let hidden = self.count.saturating_sub(PRINTED_A_MINUTE);
            if hidden > 0 {
                lines.push(format!("{hidden} earlier ones were not printed"));
            }
            *self = Self { minute_began_ns: now_ns, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        if self.count <= PRINTED_A_MINUTE {
            lines.push(why.to_owned());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_refusals_is_limited_and_counted() {
        let mut refusals = Refusals::default();
        let printed: usize = (0..1000).map(|at| refusals.take("no", MINUTE_NS + at).len()).sum();
        assert_eq!(printed, 30);
        let later = refusals.take("no", 2 * MINUTE_NS + 1000);
        assert_eq!(later, ["970 earlier ones were not printed", "no"]);
    }
}
