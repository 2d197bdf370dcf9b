//! Where a difference comes from, in sentences made of the counters. States what was counted and never why it must be so.
use netduel_model::ids::ArmName;

use super::counters::{Counter, CounterKind, Spread};
use super::{ArmAnalysis, Cause, WorkloadAnalysis, machine};
use crate::words;

/// Two medians nearer than this are not worth a sentence.
const RATIO_WORTH_SAYING: f64 = 1.25;

/// A limit that held for less than this share of the time is not worth a sentence.
const SHARE_WORTH_SAYING: f64 = 0.05;

/// The sentences of a workload, every arm against the baseline.
pub(super) fn sentences(workload: &WorkloadAnalysis) -> Vec<String> {
    let Some((baseline, others)) = workload.arms.split_first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for arm in others {
        let pair = Pair { workload, baseline, arm };
        sentences.extend(pair.path());
        sentences.extend(pair.cpu());
        sentences.extend(pair.busiest_core());
        for (kind, what) in [
            (CounterKind::Interrupts, "Interrupts"),
            (CounterKind::ContextSwitches, "Context switches"),
            (CounterKind::TimeSqueeze, "Receive rounds that ran out of budget or time"),
            (CounterKind::Retransmits, "Segments that TCP sent again"),
            (CounterKind::Spurious, "Segments sent again that the peer says it had already (DSACK)"),
        ] {
            sentences.extend(pair.amount(kind, what));
        }
        for (kind, what) in [
            (CounterKind::WindowLimited, "The peer's window was the limit for"),
            (CounterKind::SendBufferLimited, "The send buffer was the limit for"),
        ] {
            sentences.extend(pair.limit(kind, what));
        }
        sentences.extend(pair.datagrams());
        sentences.extend(pair.cap());
    }
    sentences
}

/// One arm and the baseline.
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

    /// `0.11 s/GB in accelerated, 0.53 s/GB in synthetic (0.21x)`.
    fn both(&self, counter: &Counter, baseline: f64, arm: f64) -> String {
        let (baseline_name, arm_name) = self.names();
        let times = if baseline > 0.0 && arm > 0.0 {
            format!(" ({})", words::times(arm / baseline))
        } else {
            String::new()
        };
        format!("{} in {arm_name}, {} in {baseline_name}{times}", counter.human(arm), counter.human(baseline))
    }

    fn path(&self) -> Option<String> {
        let through = |arm: &ArmAnalysis| -> Option<String> {
            let proven: Vec<_> = arm.paths.iter().filter(|path| path.share_min.is_some()).collect();
            let ends = match proven.as_slice() {
                [] => return None,
                [client, server] if client.expected == server.expected => {
                    format!("{} at both ends", client.expected)
                }
                some => {
                    let ends: Vec<String> =
                        some.iter().map(|path| format!("{} at the {}", path.expected, path.role)).collect();
                    ends.join(" and ")
                }
            };
            Some(format!("{ends} in {}", arm.arm))
        };
        let (arm, baseline) = (through(self.arm)?, through(self.baseline)?);
        Some(format!("Path, proven by counters: {arm}, {baseline}."))
    }

    fn cpu(&self) -> Option<String> {
        let (busy, baseline, arm) = self.counter(CounterKind::Busy)?;
        let (busy_baseline, busy_arm) = (baseline.median, arm.median);
        let total = busy_arm - busy_baseline;
        let mut text = format!("CPU time: {}.", self.both(busy, baseline.median, arm.median));
        let part = [
            (CounterKind::User, "user time"),
            (CounterKind::System, "system time"),
            (CounterKind::HardInterrupt, "hard interrupts"),
            (CounterKind::SoftInterrupt, "soft interrupts"),
        ]
        .into_iter()
        .filter_map(|(kind, what)| {
            let (counter, baseline, arm) = self.counter(kind)?;
            let difference = arm.median - baseline.median;
            (difference * total > 0.0).then_some((what, difference, counter, baseline.median, arm.median))
        })
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        if let Some((what, difference, counter, baseline, arm)) = part
            && differs(busy_baseline, busy_arm)
        {
            use std::fmt::Write as _;
            let _ = write!(
                text,
                " The largest part of the difference of {} is {what}, {}: {}.",
                busy.human(total.abs()),
                counter.human(difference.abs()),
                self.both(counter, baseline, arm)
            );
        }
        Some(text)
    }

    fn busiest_core(&self) -> Option<String> {
        let baseline = machine::busiest_core(&self.baseline.machines)?;
        let arm = machine::busiest_core(&self.arm.machines)?;
        let (baseline_name, arm_name) = self.names();
        Some(format!(
            "The busiest core worked {} of the time in {arm_name} and {} in {baseline_name}.",
            words::percent(arm),
            words::percent(baseline)
        ))
    }

    fn amount(&self, kind: CounterKind, what: &str) -> Option<String> {
        let (counter, baseline, arm) = self.counter(kind)?;
        differs(baseline.median, arm.median)
            .then(|| format!("{what}: {}.", self.both(counter, baseline.median, arm.median)))
    }

    fn limit(&self, kind: CounterKind, what: &str) -> Option<String> {
        let (_, baseline, arm) = self.counter(kind)?;
        let (baseline_name, arm_name) = self.names();
        (baseline.median.max(arm.median) >= SHARE_WORTH_SAYING).then(|| {
            format!(
                "{what} {} of the time with data under way in {arm_name}, {} in {baseline_name} (TCP_INFO).",
                words::percent(arm.median),
                words::percent(baseline.median)
            )
        })
    }

    /// A cap hides what the paths differ in.
    fn cap(&self) -> Option<String> {
        let is_cap = |arm: &ArmAnalysis| {
            let cause = arm.limit.as_ref().map(|limit| limit.cause);
            matches!(cause, Some(Cause::RateCap | Cause::TokenBucket))
        };
        let (baseline, arm) = self.names();
        let at = |arm: &ArmAnalysis| arm.expected.as_ref().map(|expected| format!(" ({})", expected.whose));
        match (is_cap(self.baseline), is_cap(self.arm)) {
            (true, true) => Some(format!(
                "Both arms stand at a rate cap{}: throughput cannot show a difference between the paths; CPU time and latency can.",
                at(self.arm).unwrap_or_default()
            )),
            (false, true) => Some(format!(
                "{arm} stands at a rate cap{}, so it may be faster than it could show here.",
                at(self.arm).unwrap_or_default()
            )),
            (true, false) => Some(format!(
                "{baseline} stands at a rate cap{}, so it may be faster than it could show here.",
                at(self.baseline).unwrap_or_default()
            )),
            (false, false) => None,
        }
    }

    fn datagrams(&self) -> Option<String> {
        let (counter, baseline, arm) = self.counter(CounterKind::SocketDrops)?;
        let both = self.both(counter, baseline.median, arm.median);
        Some(if self.arm.packets.is_empty() {
            format!("Of the datagrams sent, the receiver's own socket dropped {both}.")
        } else {
            format!("Of the packets sent, the receiver's own socket or ring dropped {both}.")
        })
    }
}

/// Whether two amounts are far enough apart to be worth a sentence.
fn differs(baseline: f64, arm: f64) -> bool {
    let (low, high) = (baseline.min(arm), baseline.max(arm));
    high > 0.0 && high >= low * RATIO_WORTH_SAYING
}
