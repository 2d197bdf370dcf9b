//! The effect of a failover event on the streams, from the fine series of received bytes.
use netduel_model::failover::FINE_INTERVAL_NS;
use netduel_model::sample::IntervalSample;

use super::direction::quantile;
use super::failover::{AROUND_NS, REACH_NS, Span};

/// Number of consecutive intervals that must reach the rate to count as recovered.
const STEADY_SAMPLES: usize = 5;
/// The fraction of the reference rate that counts as recovered.
const RECOVERED: f64 = 0.9;
/// The fraction of the rate on the other side of an event up to which a path counts as dead: what a buffer still held is no traffic.
const DEAD: f64 = 0.01;

/// Throughput of the streams around an event, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dip {
    /// Mean of the 500 ms before the event.
    pub before_bps: f64,
    /// Minimum of the 10 ms intervals that overlap the 500 ms after the event, at most up to the next event. An interval is longer where the
    /// reader was delayed, and counts for every event that it overlaps.
    pub lowest_bps: f64,
    /// Steady state after the event: mean of the second half of the time to the next event.
    pub settled_bps: f64,
    /// Time from the event until 50 ms reach 90 % of the lower of before and steady state, or of the steady state alone where nothing arrived
    /// before; absent when the streams did not recover.
    pub recovery_ns: Option<f64>,
}

impl Dip {
    /// The median of a rate over trials, by nearest rank; absent without trials.
    pub fn median(dips: &[Self], of: fn(&Self) -> f64) -> Option<f64> {
        let mut rates: Vec<f64> = dips.iter().map(of).collect();
        rates.sort_by(f64::total_cmp);
        quantile(&rates, 0.5)
    }
}

fn start_ns(sample: &IntervalSample) -> i64 {
    sample.end_ns.saturating_sub(sample.length_ns).cast_signed()
}

fn rate(samples: &[&IntervalSample]) -> Option<f64> {
    let (bytes, length) = samples.iter().fold((0_u64, 0_u64), |sum, next| {
        (sum.0.saturating_add(next.bytes), sum.1.saturating_add(next.length_ns))
    });
    (length > 0).then(|| bytes as f64 * 8e9 / length as f64)
}

/// The series with intervals shorter than half of their nominal length merged into their neighbour. A thread that wakes late
/// reads several times in a row; most of these reads see nothing, and their rates are meaningless.
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

/// The rate that counts as the streams' own after an event: the lower of before and steady state, because the path after the event can be
/// slower. A path that was dead before the event has only a rate after it; without a rate after it there is no recovery.
fn reference(before_bps: f64, settled_bps: f64) -> Option<f64> {
    let least = DEAD * before_bps.max(settled_bps);
    let is_alive = |rate: &f64| *rate > least;
    let settled = Some(settled_bps).filter(is_alive)?;
    Some(if is_alive(&before_bps) { settled.min(before_bps) } else { settled })
}

/// Throughput around an event; absent without received bytes before or after it.
pub(super) fn dip(series: &[IntervalSample], span: Span) -> Option<Dip> {
    let series = joined(series);
    let between = |from: i64, until: i64| -> Vec<&IntervalSample> {
        series.iter().filter(|sample| (from..until).contains(&sample.end_ns.cast_signed())).collect()
    };
    let before_bps = rate(&between(span.began.saturating_sub(AROUND_NS).max(span.from), span.began))?;
    let after = between(span.began, span.until);
    let reach = span.ended.saturating_add(REACH_NS).min(span.until);
    let lowest_bps = series
        .iter()
        // A stalled reader makes one long interval. When its bytes arrived is unknown, so its rate is that of all its time. One that ends after
        // the traffic contains time without any.
        .filter(|sample| {
            let end_ns = sample.end_ns.cast_signed();
            end_ns > span.began && end_ns <= span.traffic_end && start_ns(sample) < reach
        })
        .filter_map(|sample| rate(&[sample]))
        .min_by(f64::total_cmp)?;
    let settled_bps = rate(after.get(after.len() / 2..)?)?;
    let target = RECOVERED * reference(before_bps, settled_bps).unwrap_or(f64::INFINITY);
    // The event lies within an interval; a mean could hide a stall behind faster data before it.
    let is_steady = |steady: &&[&IntervalSample]| {
        start_ns(steady[0]) >= span.began
            && rate(steady).is_some_and(|rate| rate >= target)
            && steady.iter().all(|sample| rate(&[sample]).is_none_or(|rate| rate >= target / 2.0))
    };
    let recovered = after.windows(STEADY_SAMPLES).find(is_steady);
    let recovery_ns = recovered.map(|steady| {
        // The first interval after the event is not a recovery when no byte was lost.
        let waited = start_ns(steady[0]).saturating_sub(span.began);
        if waited < steady[0].length_ns.cast_signed() { 0.0 } else { waited as f64 }
    });
    Some(Dip { before_bps, lowest_bps, settled_bps, recovery_ns })
}
