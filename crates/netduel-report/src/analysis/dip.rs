//! What an event of a failover did to the streams, from the fine series of what they received.
use netduel_model::failover::FINE_INTERVAL_NS;
use netduel_model::sample::IntervalSample;

use super::failover::{AROUND_NS, REACH_NS, Span};

/// Intervals of the fine series over which a rate counts as recovered.
const STEADY_SAMPLES: usize = 5;
/// The share of the rate that counts as recovered.
const RECOVERED: f64 = 0.9;

/// What became of the streams at an event, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dip {
    /// Half a second before it.
    pub before_bps: f64,
    /// The lowest interval of 10 ms in the half second after it.
    pub lowest_bps: f64,
    /// What the path gives in the second half of the time to the next event.
    pub settled_bps: f64,
    /// From the event until 50 ms give 90 % of the lesser of before and settled; absent when that never came.
    pub recovery_ns: Option<f64>,
}

fn rate(samples: &[&IntervalSample]) -> Option<f64> {
    let (bytes, length) = samples.iter().fold((0_u64, 0_u64), |sum, next| {
        (sum.0.saturating_add(next.bytes), sum.1.saturating_add(next.length_ns))
    });
    (length > 0).then(|| bytes as f64 * 8e9 / length as f64)
}

/// The series with what is shorter than half of its interval joined to its neighbour. A thread that woke late may have read several
/// times at one moment: most of these saw nothing, and a rate of such a time is none.
fn joined(series: &[IntervalSample]) -> Vec<IntervalSample> {
    let mut joined: Vec<IntervalSample> = Vec::with_capacity(series.len());
    for sample in series {
        match joined.last_mut() {
            Some(last) if last.length_ns.min(sample.length_ns) < FINE_INTERVAL_NS / 2 => {
                last.end_ns = sample.end_ns;
                last.length_ns = last.length_ns.saturating_add(sample.length_ns);
                last.bytes = last.bytes.saturating_add(sample.bytes);
                last.messages = last.messages.saturating_add(sample.messages);
            }
            _ => joined.push(*sample),
        }
    }
    joined
}

/// What became of the streams at an event; absent where nothing was received before or after it.
pub(super) fn dip(series: &[IntervalSample], span: Span) -> Option<Dip> {
    let series = joined(series);
    let between = |from: i64, until: i64| -> Vec<&IntervalSample> {
        series.iter().filter(|sample| (from..until).contains(&sample.end_ns.cast_signed())).collect()
    };
    let before_bps = rate(&between(span.began.saturating_sub(AROUND_NS).max(span.from), span.began))?;
    let after = between(span.began, span.until);
    let reach = span.ended.saturating_add(REACH_NS);
    let lowest_bps = after
        .iter()
        .filter(|sample| sample.end_ns.cast_signed() < reach)
        .filter_map(|sample| rate(&[sample]))
        .min_by(f64::total_cmp)?;
    let settled_bps = rate(after.get(after.len() / 2..)?)?;
    let target = RECOVERED * before_bps.min(settled_bps);
    // What came before the event is in an interval that began before it; and a mean may hide a stall behind what was faster.
    let is_steady = |steady: &&[&IntervalSample]| {
        steady[0].end_ns.saturating_sub(steady[0].length_ns).cast_signed() >= span.began
            && rate(steady).is_some_and(|rate| rate >= target)
            && steady.iter().all(|sample| rate(&[sample]).is_none_or(|rate| rate >= target / 2.0))
    };
    let recovered = after.windows(STEADY_SAMPLES).find(is_steady);
    let recovery_ns = recovered.map(|steady| {
        let begin = steady[0].end_ns.saturating_sub(steady[0].length_ns).cast_signed();
        // The first interval after the event is no recovery: nothing was lost.
        let waited = begin.saturating_sub(span.began);
        if waited < steady[0].length_ns.cast_signed() { 0.0 } else { waited as f64 }
    });
    Some(Dip { before_bps, lowest_bps, settled_bps, recovery_ns })
}
