//! Notes on the counters of several rows: proven paths, the largest part of a difference in CPU time, rate caps.
//!
//! They state what was counted, not a cause.
use netduel_model::ids::ArmName;

use super::counters::{Counter, CounterKind, Spread};
use super::{ArmAnalysis, Cause, WorkloadAnalysis};

/// A smaller ratio of medians causes no note.
const RATIO_MIN: f64 = 1.25;

/// The notes of a workload: every arm against the baseline.
pub(super) fn sentences(workload: &WorkloadAnalysis) -> Vec<String> {
    let Some((baseline, others)) = workload.arms.split_first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for arm in others {
        let pair = Pair { workload, baseline, arm };
        sentences.extend(pair.path());
        sentences.extend(pair.cpu());
        sentences.extend(pair.cap());
    }
    sentences
}

/// The class of CPU time that changed most from the baseline to an arm, as the medians of the trials have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CpuChange {
    /// The class: `softirq`.
    class: &'static str,
    /// Its change, with its sign and without its unit.
    part: String,
    /// The change of the busy CPU time, likewise.
    total: String,
    /// The unit of both: `s/GB`.
    unit: &'static str,
    /// Whether it changed no more than the whole. A class that changed more is no part of it: others changed the other way.
    is_within: bool,
}

impl CpuChange {
    /// `-1.40 s/GB, of which softirq -1.11 s/GB`.
    fn words(&self) -> String {
        let Self { class, part, total, unit, is_within } = self;
        if *is_within {
            return format!("{total} {unit}, of which {class} {part} {unit}");
        }
        let others = if total.starts_with('-') { "rose" } else { "fell" };
        format!("{total} {unit}; {class} alone {part} {unit}, and all other CPU time together {others}")
    }
}

/// Notes about one arm against the baseline.
struct Pair<'a> {
    workload: &'a WorkloadAnalysis,
    baseline: &'a ArmAnalysis,
    arm: &'a ArmAnalysis,
}

impl Pair<'_> {
    fn names(&self) -> (&ArmName, &ArmName) {
        (&self.baseline.arm, &self.arm.arm)
    }

    fn counter(&self, kind: CounterKind) -> Option<(&Counter, Spread, Spread)> {
        let counter = self.workload.counters.iter().find(|counter| counter.kind == kind)?;
        let (baseline, arm) = self.names();
        Some((counter, *counter.of(baseline)?, *counter.of(arm)?))
    }

    fn path(&self) -> Option<String> {
        let proven_path = |arm: &ArmAnalysis| -> Option<String> {
            let proven: Vec<_> = arm.paths.iter().filter(|path| path.share_min.is_some()).collect();
            match proven.as_slice() {
                [] => None,
                [client, server] if client.expected == server.expected => {
                    Some(format!("{} at both ends", client.expected))
                }
                some => {
                    let ends: Vec<String> =
                        some.iter().map(|path| format!("{} at the {}", path.expected, path.role)).collect();
                    Some(ends.join(" and "))
                }
            }
        };
        let (arm, baseline) = (proven_path(self.arm)?, proven_path(self.baseline)?);
        let (baseline_name, arm_name) = self.names();
        (arm != baseline)
            .then(|| format!("Path, proven by counters: {arm} in {arm_name}, {baseline} in {baseline_name}."))
    }

    fn cpu(&self) -> Option<String> {
        let (baseline_name, arm_name) = self.names();
        Some(format!("CPU time of {arm_name} against {baseline_name}: {}.", self.cpu_change()?.words()))
    }

    fn cpu_change(&self) -> Option<CpuChange> {
        let (busy, baseline, arm) = self.counter(CounterKind::Busy)?;
        // Without a ratio there is nothing to compare: a value is 0, pairs and medians disagree, or the CPU time contains that of other processes.
        let index = busy.arms.iter().position(|(name, _)| *name == self.arm.arm)?;
        busy.ratios.get(index)?.as_ref()?;
        let total = arm.median - baseline.median;
        let (class, difference, counter) = [
            (CounterKind::User, "user time"),
            (CounterKind::System, "system time"),
            (CounterKind::HardInterrupt, "interrupts"),
            (CounterKind::SoftInterrupt, "softirq"),
        ]
        .into_iter()
        .filter_map(|(kind, class)| {
            let (counter, baseline, arm) = self.counter(kind)?;
            let difference = arm.median - baseline.median;
            (difference * total > 0.0).then_some((class, difference, counter))
        })
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
        .filter(|_| differs(baseline.median, arm.median))?;
        let signed = |counter: &Counter, value: f64| {
            format!("{}{}", if value < 0.0 { "-" } else { "+" }, counter.number(value.abs()))
        };
        Some(CpuChange {
            class,
            part: signed(counter, difference),
            total: signed(busy, total),
            unit: busy.number_unit(),
            is_within: difference.abs() <= total.abs(),
        })
    }

    /// A rate cap hides differences between paths.
    fn cap(&self) -> Option<String> {
        let is_cap = |arm: &ArmAnalysis| {
            let cause = arm.limit.as_ref().and_then(|limit| limit.cause);
            matches!(cause, Some(Cause::RateCap | Cause::TokenBucket))
        };
        let (baseline, arm) = self.names();
        let at = |arm: &ArmAnalysis| arm.expected.as_ref().map(|expected| format!(" ({})", expected.whose));
        match (is_cap(self.baseline), is_cap(self.arm)) {
            (true, true) => Some(format!(
                "Both arms are at a rate cap{}: throughput cannot show a difference between the paths; CPU time and latency can.",
                at(self.arm).unwrap_or_default()
            )),
            (false, true) => Some(format!(
                "{arm} is at a rate cap{}: its throughput can be higher without the cap.",
                at(self.arm).unwrap_or_default()
            )),
            (true, false) => Some(format!(
                "{baseline} is at a rate cap{}: its throughput can be higher without the cap.",
                at(self.baseline).unwrap_or_default()
            )),
            (false, false) => None,
        }
    }
}

/// Whether two amounts differ enough for a note.
fn differs(baseline: f64, arm: f64) -> bool {
    let (low, high) = (baseline.min(arm), baseline.max(arm));
    high > 0.0 && high >= low * RATIO_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_that_changed_more_than_the_whole_is_no_part_of_it() {
        let words = |part: &str, total: &str, is_within: bool| {
            let (part, total) = (part.to_owned(), total.to_owned());
            CpuChange { class: "softirq", part, total, unit: "s/GB", is_within }.words()
        };
        assert_eq!(words("-1.11", "-1.40", true), "-1.40 s/GB, of which softirq -1.11 s/GB");
        assert_eq!(
            words("-41.8", "-41.6", false),
            "-41.6 s/GB; softirq alone -41.8 s/GB, and all other CPU time together rose"
        );
        assert_eq!(
            words("+2.00", "+1.50", false),
            "+1.50 s/GB; softirq alone +2.00 s/GB, and all other CPU time together fell"
        );
    }
}
