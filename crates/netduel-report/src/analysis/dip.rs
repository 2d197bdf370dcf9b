//! The effect of a failover event on the streams, from the fine series of received bytes.
use netduel_model::failover::FINE_INTERVAL_NS;
use netduel_model::sample::IntervalSample;

use super::direction::quantile;
use super::failover::{AROUND_NS, Span};

/// Time that must reach the rate to count as recovered, and the shortest outage that a recovery must not precede.
const STEADY_NS: i64 = 50_000_000;
/// Number of consecutive intervals in this time.
const STEADY_SAMPLES: usize = (STEADY_NS / FINE_INTERVAL_NS.cast_signed()) as usize;
/// Shortest time from the end of an event to the next one that has a steady state: its second half has ten intervals. In less, a pause of the
/// sender would count as a dead path.
const SETTLING_NS: i64 = 200_000_000;
/// The fraction of the reference rate that counts as recovered.
const RECOVERED: f64 = 0.9;
/// The fraction of the rate on the other side of an event up to which a path counts as dead: what a buffer still held is no traffic.
const DEAD: f64 = 0.01;

/// Throughput of the streams around an event, bit/s.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dip {
    /// Mean of the 500 ms before the event, at most since the end of all earlier events. Absent when no interval ended in this time, as when an
    /// earlier event lasted longer, and when only one of a delayed reader did that began before it.
    pub before_bps: Option<f64>,
    /// Minimum of the 10 ms intervals that overlap the 500 ms after the event, at most up to the next event. An interval is longer where the
    /// reader was delayed, and counts for every event that it overlaps. Absent without such an interval.
    pub lowest_bps: Option<f64>,
    /// Steady state after the event: mean of the second half of the time from the end of the event to the next event. Absent when this time is
    /// shorter than 200 ms, or when a delayed reader left no interval in that half.
    pub settled_bps: Option<f64>,
    /// Time from the beginning of the event until 50 ms reach 90 % of the lower of before and steady state, or of the steady state alone where
    /// nothing arrived before. No outage of 50 ms begins after them, up to 500 ms after the end of the event. Absent when the streams did not
    /// recover, and when the rate before or the steady state is absent.
    pub recovery_ns: Option<f64>,
}

impl Dip {
    /// The median of a rate over the trials that have it, by nearest rank; absent without such a trial.
    pub fn median(dips: &[Self], of: fn(&Self) -> Option<f64>) -> Option<f64> {
        let mut rates: Vec<f64> = dips.iter().filter_map(of).collect();
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

/// Whether an interval has only bytes of the time from `earliest` on: one of a stalled reader across it may have bytes that arrived before. One of
/// the usual length counts.
fn is_since(sample: &IntervalSample, earliest: i64) -> bool {
    start_ns(sample) >= earliest.saturating_sub(FINE_INTERVAL_NS.cast_signed())
}

/// The rate before an event, which the effect of an earlier one may not change.
fn before(series: &[IntervalSample], span: Span) -> Option<f64> {
    let from = span.began.saturating_sub(AROUND_NS).max(span.from);
    let inside = series.iter().filter(|sample| {
        (from..span.began).contains(&sample.end_ns.cast_signed()) && is_since(sample, span.from)
    });
    rate(&inside.collect::<Vec<_>>())
}

/// The steady state after an event. The effect of an event may begin as late as its end, so the time before that does not count.
fn settled(series: &[IntervalSample], span: Span) -> Option<f64> {
    let ended = span.ended.max(span.began);
    let rest = span.until.saturating_sub(ended);
    if rest < SETTLING_NS {
        return None;
    }
    let middle = ended.saturating_add(rest / 2);
    let inside = series.iter().filter(|sample| {
        (middle..span.until).contains(&sample.end_ns.cast_signed()) && is_since(sample, middle)
    });
    rate(&inside.collect::<Vec<_>>())
}

/// Start of the last outage of an event: at least 50 ms of intervals below half of the target, up to the next event.
fn last_outage(series: &[IntervalSample], span: Span, target: f64) -> Option<i64> {
    let is_low = |sample: &IntervalSample| rate(&[sample]).is_some_and(|rate| rate < target / 2.0);
    // An interval that ends after the traffic contains time without any.
    let known = series.partition_point(|sample| sample.end_ns.cast_signed() <= span.traffic_end);
    let runs = series.get(..known)?.chunk_by(|one, next| is_low(one) == is_low(next));
    let outages = runs.filter(|run| run.first().is_some_and(is_low)).filter_map(|run| {
        let (began, ended) = (start_ns(run.first()?), run.last()?.end_ns.cast_signed().min(span.until));
        (began < span.reach() && ended.saturating_sub(began) >= STEADY_NS).then_some(began)
    });
    outages.max()
}

/// Throughput around an event; absent without streams.
pub(super) fn dip(series: &[IntervalSample], span: Span) -> Option<Dip> {
    if series.is_empty() {
        return None;
    }
    let series = joined(series);
    let is_after = |sample: &&IntervalSample| (span.began..span.until).contains(&sample.end_ns.cast_signed());
    let after: Vec<&IntervalSample> = series.iter().filter(is_after).collect();
    let reach = span.reach();
    let lowest_bps = series
        .iter()
        // A stalled reader makes one long interval. When its bytes arrived is unknown, so its rate is that of all its time. One that ends after
        // the traffic contains time without any.
        .filter(|sample| {
            let end_ns = sample.end_ns.cast_signed();
            end_ns > span.began && end_ns <= span.traffic_end && start_ns(sample) < reach
        })
        .filter_map(|sample| rate(&[sample]))
        .min_by(f64::total_cmp);
    let (before_bps, settled_bps) = (before(&series, span), settled(&series, span));
    let reference = before_bps.zip(settled_bps).and_then(|(before, settled)| reference(before, settled));
    let recovery_ns = reference.and_then(|reference| {
        let target = RECOVERED * reference;
        recovery(&after, span, target, last_outage(&series, span, target))
    });
    Some(Dip { before_bps, lowest_bps, settled_bps, recovery_ns })
}

/// Time from the beginning of an event until the first 50 ms after its last outage that reach the target.
fn recovery(after: &[&IntervalSample], span: Span, target: f64, last_outage: Option<i64>) -> Option<f64> {
    // The event lies within an interval; a mean could hide a stall behind faster data before it.
    let is_steady = |steady: &&[&IntervalSample]| {
        let start = start_ns(steady[0]);
        start >= span.began
            && last_outage.is_none_or(|outage| start > outage)
            && rate(steady).is_some_and(|rate| rate >= target)
            && steady.iter().all(|sample| rate(&[sample]).is_none_or(|rate| rate >= target / 2.0))
    };
    after.windows(STEADY_SAMPLES).find(is_steady).map(|steady| {
        // The first interval after the event is not a recovery when no byte was lost.
        let waited = start_ns(steady[0]).saturating_sub(span.began);
        if waited < steady[0].length_ns.cast_signed() { 0.0 } else { waited as f64 }
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const MS: i64 = 1_000_000;
    /// Bytes of an interval of the path that works.
    const WHOLE: u64 = 1_000_000;

    /// Five seconds of intervals, with these bytes by number; one begins every 10 ms.
    fn series(bytes: impl Fn(u64) -> u64) -> Vec<IntervalSample> {
        let interval = |number: u64| IntervalSample {
            end_ns: (number + 1) * FINE_INTERVAL_NS,
            length_ns: FINE_INTERVAL_NS,
            bytes: bytes(number),
            messages: 0,
        };
        (0..500).map(interval).collect()
    }

    /// Nothing arrives in these intervals.
    fn without(first: Range<u64>, second: Range<u64>) -> Vec<IntervalSample> {
        series(|number| if first.contains(&number) || second.contains(&number) { 0 } else { WHOLE })
    }

    /// An event at 1 s that takes so many milliseconds; the next one is at 4 s.
    fn event(took_ms: i64) -> Span {
        let began = 1_000 * MS;
        Span { began, ended: began + took_ms * MS, from: 0, until: 4_000 * MS, traffic_end: 5_000 * MS }
    }

    /// The steady state relative to the path that works, and the recovery in milliseconds.
    fn outcome(series: &[IntervalSample], took_ms: i64) -> (Option<f64>, Option<f64>) {
        let dip = dip(series, event(took_ms)).unwrap();
        (dip.settled_bps.map(|rate| rate / dip.before_bps.unwrap()), dip.recovery_ns.map(|took| took / 1e6))
    }

    /// The series with one interval of a stalled reader, from the end of one number to the end of another, with these bytes.
    fn with_stall(mut series: Vec<IntervalSample>, from: u64, until: u64, bytes: u64) -> Vec<IntervalSample> {
        series.retain(|sample| !(from + 1..=until).contains(&(sample.end_ns / FINE_INTERVAL_NS)));
        let place = series.partition_point(|sample| sample.end_ns <= from * FINE_INTERVAL_NS);
        let (end_ns, length_ns) = (until * FINE_INTERVAL_NS, (until - from) * FINE_INTERVAL_NS);
        series.insert(place, IntervalSample { end_ns, length_ns, bytes, messages: 0 });
        series
    }

    #[test]
    fn path_that_dies_late_in_a_slow_event_is_not_recovered() {
        // A stall from 1 s to 1.15 s, then traffic, which ends for good 50 ms before the event ends.
        assert_eq!(outcome(&without(100..115, 270..500), 1_750), (Some(0.0), None));
        // The event takes nearly all of the time until the next one.
        assert_eq!(outcome(&without(100..115, 370..500), 2_750), (Some(0.0), None));
    }

    #[test]
    fn recovery_follows_the_last_outage_that_begins_in_a_slow_event_or_soon_after_it() {
        for (first, second, expected) in [
            (0..0, 180..220, 1_200.0),
            (100..115, 180..220, 1_200.0),
            (100..115, 240..260, 1_600.0),
            // The second one begins half a second after the end of the event.
            (100..115, 250..270, 150.0),
        ] {
            let found = outcome(&without(first, second.clone()), 1_000);
            assert_eq!(found, (Some(1.0), Some(expected)), "{second:?}");
        }
        // The second one begins after the middle of the time to the next event, and lasts until then.
        let (settled, recovery) = outcome(&without(100..115, 385..500), 2_600);
        assert!(settled.is_some_and(|rate| rate > 0.2) && recovery.is_none(), "{settled:?} {recovery:?}");
    }

    #[test]
    fn stall_below_50_ms_after_a_recovery_does_not_move_it() {
        for took_ms in [0, 1_000] {
            let recovery = |stall| outcome(&without(100..106, stall), took_ms).1;
            assert_eq!([recovery(130..134), recovery(130..135)], [Some(60.0), Some(350.0)], "{took_ms} ms");
        }
    }

    #[test]
    fn event_without_an_effect_has_a_recovery_of_0() {
        for took_ms in [0, 20, 1_000, 2_800] {
            assert_eq!(outcome(&without(0..0, 0..0), took_ms), (Some(1.0), Some(0.0)), "{took_ms} ms");
        }
    }

    #[test]
    fn event_that_ends_less_than_200_ms_before_the_next_one_has_no_steady_state() {
        for took_ms in [2_801, 3_000, 3_500] {
            assert_eq!(outcome(&without(0..0, 0..0), took_ms), (None, None), "{took_ms} ms");
        }
    }

    #[test]
    fn interval_of_a_stalled_reader_across_the_middle_is_no_steady_state() {
        // The path dies at 2.1 s, while the reader is stalled until 3 s; the middle of the time to the next event is at 2.5 s.
        let series = series(|number| if number < 200 { WHOLE } else { 0 });
        let stalled = |until: u64| outcome(&with_stall(series.clone(), 200, until, 10 * WHOLE), 0);
        assert_eq!(stalled(300), (Some(0.0), None));
        // Nothing is left when it lasts until the next event.
        assert_eq!(stalled(400), (None, None));
    }

    #[test]
    fn interval_of_a_stalled_reader_across_the_end_of_an_earlier_event_is_no_rate_before() {
        // An earlier event lasts from 0.5 s to 0.8 s, without traffic. The reader is stalled from then until 0.9 s. From the event on the path has two
        // fifths of its rate for a second: it recovers then, and not at once.
        let slow = series(|number| if (100..200).contains(&number) { WHOLE * 2 / 5 } else { WHOLE });
        let span = Span { from: 800 * MS, ..event(0) };
        let found = |stalled_until: u64| {
            let series = with_stall(slow.clone(), 50, stalled_until, (stalled_until - 80) * WHOLE);
            let dip = dip(&series, span).unwrap();
            (dip.before_bps.map(|rate| rate / 8e8), dip.recovery_ns.map(|took| took / 1e6))
        };
        assert_eq!(found(90), (Some(1.0), Some(1_000.0)));
        // Nothing is left when it lasts until the event.
        assert_eq!(found(100), (None, None));
    }

    #[test]
    fn event_without_an_interval_before_it_or_after_it_has_the_other_figures() {
        let series = without(100..110, 0..0);
        // An earlier event lasts until after this one has begun.
        let early = dip(&series, Span { from: 1_200 * MS, ..event(0) }).unwrap();
        assert_eq!((early.before_bps, early.recovery_ns), (None, None));
        assert_eq!((early.lowest_bps, early.settled_bps), (Some(0.0), Some(8e8)));
        // The next event is 5 ms later.
        let late = Span { began: 1_001 * MS, ended: 1_001 * MS, until: 1_006 * MS, ..event(0) };
        let late = dip(&series, late).unwrap();
        assert_eq!((late.before_bps.is_some(), late.lowest_bps), (true, Some(0.0)));
        assert_eq!((late.settled_bps, late.recovery_ns), (None, None));
        assert_eq!(dip(&[], event(0)), None);
    }
}
