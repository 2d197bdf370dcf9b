//! The result of a job, by kind of job, and the sum of the results of all jobs of an end. Reads no clock and no socket.
use netduel_model::failover::{FailoverReport, ProbeArrivals};
use netduel_model::packet_path::PacketReport;
use netduel_model::sample::{
    EndReport, HistogramRecord, IntervalSample, RoundTripReport, TransactionParts, UnderLoad, ZeroCopyReport,
};
use netduel_model::stamps::StampReport;

use crate::flow_count::{FlowCount, FlowCounts};
use crate::send_count::SendCount;

/// The result of one job besides its stream counters.
pub(crate) enum Counted {
    /// Nothing besides the stream counters.
    Nothing,
    /// A TCP sender with zero-copy sends.
    ZeroCopy(ZeroCopyReport),
    /// A sender of datagrams, in the kernel or by AF_XDP.
    SentDatagrams { count: SendCount, packets: Option<PacketReport> },
    /// A receiver of datagrams, in the kernel or by AF_XDP.
    ReceivedDatagrams { flows: Vec<FlowCount>, packets: Option<PacketReport> },
    /// A generator in the kernel.
    Packets(PacketReport),
    /// The client of round trips.
    RoundTrips { report: Box<RoundTripReport>, messages: Messages },
    /// The server of round trips.
    Responses(Messages),
    /// Transactions on new connections under load.
    Foreign(Box<TransactionParts>),
    /// Round trips in the data of a connection that carries load.
    InBand { requests: u64, histogram: HistogramRecord },
    /// The sender of probes while the path is removed.
    SentProbes { count: SendCount, probes: u64 },
    /// Their receiver.
    ReceivedProbes { flows: Vec<FlowCount>, arrivals: ProbeArrivals },
    /// What streams received, at short intervals.
    FineSeries(Vec<IntervalSample>),
}

/// Time stamps and NAPI instance of an end of round trips.
#[derive(Default)]
pub(crate) struct Messages {
    /// Time-stamped round trips, when enabled.
    pub stamps: Option<Box<StampReport>>,
    /// The NAPI instance that its packets came from, where it busy-polls.
    pub napi_id: Option<u32>,
}

impl Counted {
    /// The NAPI instance that the job's packets came from, where it busy-polls.
    pub(crate) fn napi_id(&self) -> Option<u32> {
        match self {
            Self::RoundTrips { messages, .. } | Self::Responses(messages) => messages.napi_id,
            _ => None,
        }
    }
}

/// The sum over all jobs of an end. A kind without a job stays absent.
#[derive(Default)]
pub(crate) struct Totals {
    zero_copy: Option<ZeroCopyReport>,
    sent: Option<SendCount>,
    received: Option<FlowCounts>,
    packets: Option<PacketReport>,
    round_trips: Option<RoundTripReport>,
    stamps: Option<StampReport>,
    under_load: Option<UnderLoad>,
    failover: Option<FailoverReport>,
}

impl Totals {
    /// Adds the result of one job.
    pub(crate) fn add(&mut self, counted: Counted) {
        match counted {
            Counted::Nothing => {}
            Counted::ZeroCopy(report) => self.zero_copy.get_or_insert_default().add(report),
            Counted::SentDatagrams { count, packets } => {
                self.add_sent(count);
                self.add_packets(packets);
            }
            Counted::ReceivedDatagrams { flows, packets } => {
                self.add_received(&flows);
                self.add_packets(packets);
            }
            Counted::Packets(packets) => self.add_packets(Some(packets)),
            Counted::RoundTrips { report, messages } => {
                self.round_trips = Some(*report);
                self.add_messages(messages);
            }
            Counted::Responses(messages) => self.add_messages(messages),
            Counted::Foreign(parts) => self.under_load.get_or_insert_default().foreign = *parts,
            Counted::InBand { requests, histogram } => {
                let report = self.under_load.get_or_insert_default();
                (report.in_band_requests, report.in_band) = (requests, histogram);
            }
            Counted::SentProbes { count, probes } => {
                self.add_sent(count);
                self.failover.get_or_insert_default().probes_sent = probes;
            }
            Counted::ReceivedProbes { flows, arrivals } => {
                self.add_received(&flows);
                self.failover.get_or_insert_default().arrivals = arrivals;
            }
            Counted::FineSeries(series) => self.failover.get_or_insert_default().series = series,
        }
    }

    fn add_sent(&mut self, count: SendCount) {
        match &mut self.sent {
            Some(sent) => sent.add(&count),
            None => self.sent = Some(count),
        }
    }

    fn add_received(&mut self, flows: &[FlowCount]) {
        for flow in flows {
            self.received.get_or_insert_default().add(flow);
        }
    }

    /// Merges the queues of all threads, and the segmentation of the interface.
    fn add_packets(&mut self, packets: Option<PacketReport>) {
        let Some(next) = packets else { return };
        let Some(all) = &mut self.packets else {
            self.packets = Some(next);
            return;
        };
        all.queues.extend(next.queues);
        all.queues.sort_by_key(|queue| (queue.queue, queue.core));
        all.zero_copy = all.zero_copy.zip(next.zero_copy).map(|(one, other)| one && other);
        for (name, count) in next.drops {
            *all.drops.entry(name).or_default() += count;
        }
    }

    fn add_messages(&mut self, messages: Messages) {
        if let Some(stamps) = messages.stamps {
            self.stamps = Some(*stamps);
        }
    }

    /// Writes the sums into the report of the end, which started at `started_ns` of its monotonic clock.
    pub(crate) fn enter(self, report: &mut EndReport, started_ns: u64) {
        report.zero_copy = self.zero_copy;
        report.datagrams_sent = self.sent.map(|count| count.report());
        report.datagrams = self.received.map(FlowCounts::report);
        report.packets = self.packets;
        report.round_trips = self.round_trips;
        report.stamps = self.stamps;
        report.under_load = self.under_load;
        report.failover = self.failover.map(|failover| FailoverReport { started_ns, ..failover });
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::packet_path::QueuePackets;
    use netduel_model::workload::Role;

    use super::*;

    fn report(counted: impl IntoIterator<Item = Counted>) -> EndReport {
        let mut totals = Totals::default();
        counted.into_iter().for_each(|counted| totals.add(counted));
        let mut report = EndReport::new(Role::Client);
        totals.enter(&mut report, 77);
        report
    }

    #[test]
    fn kind_without_a_job_stays_absent() {
        assert_eq!(report([Counted::Nothing, Counted::Nothing]), EndReport::new(Role::Client));
    }

    #[test]
    fn results_of_one_kind_add_up() {
        let zero_copy = |sends| ZeroCopyReport { sends, completions: 1, copied: 0, deferred: 2 };
        let all =
            report([Counted::ZeroCopy(zero_copy(3)), Counted::Nothing, Counted::ZeroCopy(zero_copy(4))]);
        assert_eq!(all.zero_copy, Some(ZeroCopyReport { sends: 7, completions: 2, copied: 0, deferred: 4 }));

        let received = |stream, count| Counted::ReceivedDatagrams {
            flows: vec![FlowCount::counted(stream, count)],
            packets: None,
        };
        let datagrams = report([received(1, 5), received(0, 7)]).datagrams.unwrap();
        assert_eq!((datagrams.unique, datagrams.next_sequence), (12, vec![7, 5]));
        assert_eq!(datagrams.jitter_ns, None);
    }

    #[test]
    fn queues_are_sorted_and_zero_copy_needs_all_queues() {
        let packets = |queue, is_zero_copy| PacketReport {
            interface: "eth0".to_owned(),
            queues: vec![QueuePackets { queue: Some(queue), core: None, packets: 1 }],
            zero_copy: Some(is_zero_copy),
            drops: [("rx_dropped".to_owned(), 2)].into(),
            ..PacketReport::default()
        };
        let all = report([Counted::Packets(packets(1, true)), Counted::Packets(packets(0, false))]);
        let all = all.packets.unwrap();
        let queues: Vec<_> = all.queues.iter().map(|queue| queue.queue).collect();
        assert_eq!((queues, all.zero_copy), (vec![Some(0), Some(1)], Some(false)));
        assert_eq!(all.drops["rx_dropped"], 4);
    }

    #[test]
    fn several_jobs_fill_one_report() {
        let histogram = HistogramRecord { count: 2, ..HistogramRecord::default() };
        let foreign = TransactionParts { attempted: 9, ..TransactionParts::default() };
        let all = report([
            Counted::InBand { requests: 5, histogram: histogram.clone() },
            Counted::Foreign(Box::new(foreign.clone())),
        ]);
        assert_eq!(all.under_load, Some(UnderLoad { foreign, in_band_requests: 5, in_band: histogram }));

        let series = vec![IntervalSample { bytes: 1, ..IntervalSample::default() }];
        let failover = report([Counted::FineSeries(series.clone())]).failover.unwrap();
        assert_eq!((failover.started_ns, failover.series), (77, series));
    }
}
