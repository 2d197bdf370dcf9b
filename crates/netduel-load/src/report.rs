//! From counters to an `EndReport`: series, flows and streams. Pure.
use netduel_model::sample::{
    Flow, IntervalSample, STREAM_REPORTS_MAX, StreamFairness, StreamReport, ThreadUse,
};

use crate::stream_counter::{self, CounterValues, StreamCounter};

/// The series of one direction while it is gathered.
///
/// An interval ends when its last byte was counted, not when the counters were read. A thread counts after its call returns, up to
/// 20 ms after the bytes arrived on a slow path; with the reading time, one second of a steady 100 Mbit/s was up to 2 % wrong. With
/// several counters the end is the mean of their times, weighted by the bytes of each. An interval without data ends at the
/// reading, so a stall stays visible.
#[derive(Debug)]
pub(crate) struct SeriesGatherer {
    samples: Vec<IntervalSample>,
    last: CounterValues,
    last_ns: u64,
    /// Bytes of each counter at the last sample.
    counters: Vec<u64>,
}

impl SeriesGatherer {
    pub(crate) fn new() -> Self {
        Self { samples: Vec::new(), last: CounterValues::default(), last_ns: 0, counters: Vec::new() }
    }

    /// An interval ends: the counters are read at `now_ns`, and the trial began at `started_ns`, both of the monotonic clock.
    pub(crate) fn sample(&mut self, now_ns: u64, started_ns: u64, counters: &[StreamCounter]) {
        self.counters.resize(counters.len(), 0);
        let (mut total, mut weighted) = (CounterValues::default(), 0_u128);
        for (counter, before) in counters.iter().zip(&mut self.counters) {
            let reading = counter.read();
            total.bytes += reading.bytes;
            total.messages += reading.messages;
            let counted_ns = counter.span().map_or(now_ns, |span| span.1).clamp(started_ns, now_ns);
            weighted += u128::from(reading.bytes - *before) * u128::from(counted_ns - started_ns);
            *before = reading.bytes;
        }
        let bytes = total.bytes - self.last.bytes;
        let end_ns = match bytes {
            0 => now_ns.saturating_sub(started_ns),
            moved => (weighted / u128::from(moved)) as u64,
        };
        // A counter that started late could move the mean before the previous interval.
        let end_ns = end_ns.max(self.last_ns);
        self.samples.push(IntervalSample {
            end_ns,
            length_ns: end_ns - self.last_ns,
            bytes,
            messages: total.messages - self.last.messages,
        });
        (self.last, self.last_ns) = (total, end_ns);
    }

    /// The series without the empty intervals at its end, in which this end only waited for its peer.
    fn finish(mut self) -> Vec<IntervalSample> {
        while self.samples.last().is_some_and(|sample| sample.bytes == 0 && sample.messages == 0) {
            self.samples.pop();
        }
        self.samples
    }
}

/// One direction of an end.
pub(crate) fn flow(counters: &[StreamCounter], started_ns: u64, series: SeriesGatherer) -> Flow {
    let total = stream_counter::total(counters);
    let spans = || counters.iter().filter_map(StreamCounter::span);
    Flow {
        bytes: total.bytes,
        messages: total.messages,
        first_ns: spans().map(|span| span.0.saturating_sub(started_ns)).min(),
        last_ns: spans().map(|span| span.1.saturating_sub(started_ns)).max(),
        series: series.finish(),
    }
}

/// How evenly the streams were served; absent with fewer than two.
pub(crate) fn spread(streams: &[StreamReport], sends: bool) -> Option<StreamFairness> {
    if streams.len() < 2 {
        return None;
    }
    let mut moved: Vec<u64> =
        streams.iter().map(|stream| if sends { stream.sent_bytes } else { stream.received_bytes }).collect();
    moved.sort_unstable();
    let sum: f64 = moved.iter().map(|bytes| *bytes as f64).sum();
    let squares: f64 = moved.iter().map(|bytes| (*bytes as f64).powi(2)).sum();
    Some(StreamFairness {
        count: moved.len() as u32,
        min_bytes: moved[0],
        // Of an even count the mean of the two in the middle.
        median_bytes: moved[(moved.len() - 1) / 2].midpoint(moved[moved.len() / 2]),
        max_bytes: moved[moved.len() - 1],
        jain_index: (squares > 0.0).then(|| sum * sum / (moved.len() as f64 * squares)),
    })
}

/// The streams for the report: one by one, or in groups when there are many.
pub(crate) fn grouped(mut streams: Vec<StreamReport>) -> Vec<StreamReport> {
    let others = streams.split_off(streams.len().min(STREAM_REPORTS_MAX));
    for other in others {
        streams[other.index as usize % STREAM_REPORTS_MAX].take_in(&other);
    }
    streams
}

/// CPU and run-queue time of all threads; absent when one is unknown.
pub(crate) fn thread_use(threads: impl Iterator<Item = Option<(u64, u64)>>) -> Option<ThreadUse> {
    let mut all = ThreadUse::default();
    for thread in threads {
        let (ran_ns, waited_ns) = thread?;
        all.threads += 1;
        all.run_ns += ran_ns;
        all.run_delay_ns += waited_ns;
    }
    (all.threads > 0).then_some(all)
}

#[cfg(test)]
mod tests {
    use netduel_model::sample::TcpInfo;

    use super::*;

    #[test]
    fn series_adds_up_and_ends_with_the_last_data() {
        let mut series = SeriesGatherer::new();
        let counters = [StreamCounter::default(), StreamCounter::default()];
        counters[0].add(10, 1, 1090);
        series.sample(1100, 1000, &counters);
        series.sample(1200, 1000, &counters);
        counters[0].add(10, 1, 1260);
        counters[1].add(30, 1, 1300);
        series.sample(1310, 1000, &counters);
        series.sample(1400, 1000, &counters);
        let flow = flow(&counters, 1000, series);
        assert_eq!((flow.bytes, flow.messages), (50, 3));
        assert_eq!((flow.first_ns, flow.last_ns), (Some(90), Some(300)));
        let seen: Vec<_> =
            flow.series.iter().map(|sample| (sample.end_ns, sample.length_ns, sample.bytes)).collect();
        // The first ends with its last byte, the empty one with its reading, the third at (10 * 260 + 30 * 300) / 40.
        assert_eq!(seen, [(90, 90, 10), (200, 110, 0), (290, 90, 40)]);
    }

    #[test]
    fn steady_rate_is_exact_although_bytes_are_counted_in_lumps() {
        // 100 B every 7 ns and 300 B every 30 ns: 24.29 B/ns, read every 100 ns.
        let mut series = SeriesGatherer::new();
        let counters = [StreamCounter::default(), StreamCounter::default()];
        for now in 1..=1000 {
            for (counter, period, lump) in [(&counters[0], 7, 100), (&counters[1], 30, 300)] {
                if now % period == 0 {
                    counter.add(lump, 0, 5000 + now);
                }
            }
            if now % 100 == 0 {
                series.sample(5000 + now, 5000, &counters);
            }
        }
        let window = &series.finish()[1..9];
        let (bytes, length) =
            window.iter().fold((0, 0), |sum, next| (sum.0 + next.bytes, sum.1 + next.length_ns));
        let rate = bytes as f64 / length as f64;
        assert!((rate / (100.0 / 7.0 + 10.0) - 1.0).abs() < 0.002, "{rate}");
    }

    #[test]
    fn many_streams_are_reported_in_groups_that_add_up() {
        let stream = |index: u32| StreamReport {
            index,
            sent_bytes: u64::from(index),
            tcp: Some(TcpInfo { retransmits: Some(1), rtt_us: Some(index), ..TcpInfo::default() }),
            ..StreamReport::default()
        };
        let grouped = grouped((0..2_500).map(stream).collect());
        assert_eq!(grouped.len(), STREAM_REPORTS_MAX);
        assert_eq!((grouped[0].members, grouped[0].sent_bytes), (3, 1024 + 2048));
        let tcp = grouped[500].tcp.as_ref().unwrap();
        assert_eq!((grouped[500].members, tcp.retransmits, tcp.rtt_us), (2, Some(2), Some(500)));
        assert_eq!(grouped.iter().map(|group| group.sent_bytes).sum::<u64>(), (0..2_500_u64).sum::<u64>());
        assert_eq!(grouped.iter().map(|group| group.members).sum::<u32>(), 2_500);
    }

    #[test]
    fn fairness_is_the_index_of_jain() {
        let streams = |bytes: &[u64]| -> Vec<StreamReport> {
            let stream = |bytes: &u64| StreamReport { received_bytes: *bytes, ..StreamReport::default() };
            bytes.iter().map(stream).collect()
        };
        assert_eq!(spread(&streams(&[5]), false), None);
        let alike = spread(&streams(&[7, 7, 7, 7]), false).unwrap();
        assert_eq!((alike.count, alike.min_bytes, alike.max_bytes, alike.jain_index), (4, 7, 7, Some(1.0)));
        let one_has_all = spread(&streams(&[0, 8, 0, 0]), false).unwrap();
        assert_eq!(
            (one_has_all.median_bytes, one_has_all.max_bytes, one_has_all.jain_index),
            (0, 8, Some(0.25))
        );
        assert_eq!(spread(&streams(&[20, 10, 10, 14]), false).unwrap().median_bytes, 12);
        assert_eq!(spread(&streams(&[7, 7]), true).unwrap().jain_index, None);
    }

    #[test]
    fn flow_without_data_has_no_time() {
        let flow = flow(&[StreamCounter::default()], 1000, SeriesGatherer::new());
        assert_eq!((flow.first_ns, flow.last_ns), (None, None));
    }
}
