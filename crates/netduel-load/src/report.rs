//! From counters to an `EndReport`: series, flows and streams. Pure but for reading TCP_INFO.
use std::net::TcpStream;

use netduel_model::sample::{Flow, HistogramRecord, IntervalSample, TcpInfo};
use netduel_stats::histogram::Histogram;
use netduel_sys::{tcp, tcp_info};

use crate::lane::{self, Lane, Reading};

/// The series of one direction while it is gathered.
#[derive(Debug)]
pub(crate) struct SeriesGatherer {
    samples: Vec<IntervalSample>,
    last: Reading,
    last_ns: u64,
}

impl SeriesGatherer {
    pub(crate) fn new() -> Self {
        Self { samples: Vec::new(), last: Reading::default(), last_ns: 0 }
    }

    /// An interval ends at `end_ns` after the start with these totals.
    pub(crate) fn sample(&mut self, end_ns: u64, total: Reading) {
        self.samples.push(IntervalSample {
            end_ns,
            length_ns: end_ns.saturating_sub(self.last_ns),
            bytes: total.bytes - self.last.bytes,
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
pub(crate) fn flow(lanes: &[Lane], started_ns: u64, series: SeriesGatherer) -> Flow {
    let total = lane::total(lanes);
    let spans = || lanes.iter().filter_map(Lane::span);
    Flow {
        bytes: total.bytes,
        messages: total.messages,
        first_ns: spans().map(|span| span.0.saturating_sub(started_ns)).min(),
        last_ns: spans().map(|span| span.1.saturating_sub(started_ns)).max(),
        series: series.finish(),
    }
}

/// A histogram as it is stored.
pub(crate) fn record(histogram: &Histogram) -> HistogramRecord {
    HistogramRecord {
        count: histogram.count(),
        // An empty record has no pairs, and its bounds say nothing.
        min: histogram.min().unwrap_or(0),
        max: histogram.max().unwrap_or(0),
        pairs: histogram.pairs(),
    }
}

/// The kernel's account of a connection; absent when it cannot be read.
pub(crate) fn account(stream: &TcpStream) -> std::io::Result<TcpInfo> {
    let info = tcp_info::read(stream)?;
    Ok(TcpInfo {
        congestion: tcp::congestion(stream).ok(),
        snd_mss: info.snd_mss(),
        pmtu: info.pmtu(),
        rtt_us: info.rtt(),
        rttvar_us: info.rttvar(),
        min_rtt_us: info.min_rtt().filter(|value| *value != u32::MAX),
        snd_cwnd: info.snd_cwnd(),
        retransmits: info.total_retrans(),
        dsack_dups: info.dsack_dups(),
        lost: info.lost(),
        reord_seen: info.reord_seen(),
        segs_out: info.segs_out(),
        segs_in: info.segs_in(),
        bytes_acked: info.bytes_acked(),
        bytes_received: info.bytes_received(),
        busy_us: info.busy_time(),
        rwnd_limited_us: info.rwnd_limited(),
        sndbuf_limited_us: info.sndbuf_limited(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_adds_up_and_has_no_empty_tail() {
        let mut series = SeriesGatherer::new();
        series.sample(100, Reading { bytes: 10, messages: 1 });
        series.sample(200, Reading { bytes: 10, messages: 1 });
        series.sample(310, Reading { bytes: 25, messages: 3 });
        series.sample(400, Reading { bytes: 25, messages: 3 });
        let lanes = [Lane::default(), Lane::default()];
        lanes[0].add(15, 2, 1250);
        lanes[1].add(10, 1, 1100);
        lanes[1].add(0, 0, 1300);
        let flow = flow(&lanes, 1000, series);
        assert_eq!((flow.bytes, flow.messages), (25, 3));
        assert_eq!((flow.first_ns, flow.last_ns), (Some(100), Some(300)));
        let lengths: Vec<_> = flow.series.iter().map(|sample| (sample.length_ns, sample.bytes)).collect();
        assert_eq!(lengths, [(100, 10), (100, 0), (110, 15)]);
    }

    #[test]
    fn nothing_moved_has_no_time() {
        let flow = flow(&[Lane::default()], 1000, SeriesGatherer::new());
        assert_eq!((flow.first_ns, flow.last_ns), (None, None));
    }
}
