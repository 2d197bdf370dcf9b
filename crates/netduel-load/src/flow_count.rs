//! Counts of the datagrams of flows at their receiver: per flow, and the sum of an end. Reads no clock and no socket.
use netduel_model::failover::{ProbeArrival, ProbeArrivals};
use netduel_model::sample::{DatagramReport, FlowReport};
use netduel_stats::series::Jitter;

use crate::sequence_window::{Arrival, SequenceWindow};

/// The counts of one flow.
pub(crate) struct FlowCount {
    pub stream: usize,
    pub accounting: SequenceWindow,
    pub unexpected: u64,
    pub buffers: u64,
    pub jitter: Jitter,
    pub socket_drops: Option<u64>,
    /// Granted receive buffer of the flow's socket, bytes.
    pub receive_buffer: Option<u64>,
    /// Every arrival, when recorded.
    pub trace: Option<Trace>,
}

/// Arrivals one by one, with a fixed capacity.
pub(crate) struct Trace {
    /// Number, arrival time, and arrival minus send time, nanoseconds.
    arrivals: Vec<(u64, u64, i64)>,
    /// Arrivals beyond the capacity.
    pub dropped: u64,
}

impl Trace {
    fn new(room: usize) -> Option<Self> {
        (room > 0).then(|| Self { arrivals: Vec::with_capacity(room), dropped: 0 })
    }

    #[inline]
    fn note(&mut self, number: u64, sent_ns: u64, now: u64) {
        if self.arrivals.len() < self.arrivals.capacity() {
            self.arrivals.push((number, now, now.wrapping_sub(sent_ns).cast_signed()));
        } else {
            self.dropped += 1;
        }
    }

    /// The arrivals, with times after the start of this end.
    pub(crate) fn arrivals(self, started_ns: u64) -> ProbeArrivals {
        ProbeArrivals::of(self.arrivals.into_iter().map(|(number, now, delay_ns)| ProbeArrival {
            number,
            arrived_ns: now.wrapping_sub(started_ns).cast_signed(),
            delay_ns,
        }))
    }
}

impl FlowCount {
    pub(crate) fn new(stream: usize, trace: usize) -> Self {
        let (accounting, jitter) = (SequenceWindow::new(), Jitter::default());
        let trace = Trace::new(trace);
        Self {
            stream,
            accounting,
            unexpected: 0,
            buffers: 0,
            jitter,
            socket_drops: None,
            receive_buffer: None,
            trace,
        }
    }

    /// Of datagrams that were counted without reading their numbers.
    pub(crate) fn counted(stream: usize, count: u64) -> Self {
        Self { accounting: SequenceWindow::counted(count), ..Self::new(stream, 0) }
    }

    /// Accounts for a datagram that arrived at `now_ns` of this host's clock, and was sent at `sent_ns` of its sender's.
    #[inline]
    pub(crate) fn arrive(&mut self, number: u64, sent_ns: Option<u64>, now_ns: u64) -> Arrival {
        let arrival = self.accounting.arrive(number);
        let Some(sent_ns) = sent_ns else { return arrival };
        if let Some(trace) = &mut self.trace {
            trace.note(number, sent_ns, now_ns);
        }
        if matches!(arrival, Arrival::InOrder | Arrival::Reordered) {
            self.jitter.update(now_ns.wrapping_sub(sent_ns).cast_signed());
        }
        arrival
    }

    /// Counts an unexpected datagram.
    pub(crate) fn add_unexpected(&mut self) {
        self.unexpected += 1;
    }

    /// Adds datagrams that the socket dropped because the program was late.
    pub(crate) fn add_socket_drops(&mut self, drops: u64) {
        self.socket_drops = Some(self.socket_drops.unwrap_or(0) + drops);
    }

    /// Whether it has any count.
    pub(crate) fn has_any(&self) -> bool {
        self.accounting.highest_plus_one() > 0 || self.unexpected > 0 || self.socket_drops.is_some()
    }
}

/// The sum over the flows of an end.
#[derive(Default)]
pub(crate) struct FlowCounts {
    report: DatagramReport,
    /// Of each flow, those of its parts.
    jitters_ns: Vec<Vec<f64>>,
}

impl FlowCounts {
    /// Adds a flow, or the part of it that one thread received.
    pub(crate) fn add(&mut self, flow: &FlowCount) {
        let Self { report, jitters_ns } = self;
        report.unique += flow.accounting.unique();
        report.duplicates += flow.accounting.duplicates();
        report.reordered += flow.accounting.reordered();
        report.outside_window += flow.accounting.outside_window();
        report.unexpected += flow.unexpected;
        if report.next_sequence.len() <= flow.stream {
            report.next_sequence.resize(flow.stream + 1, 0);
            report.flows.resize(flow.stream + 1, FlowReport::default());
            jitters_ns.resize(flow.stream + 1, Vec::new());
        }
        jitters_ns[flow.stream].extend(flow.jitter.nanoseconds());
        let one = &mut report.flows[flow.stream];
        one.unique += flow.accounting.unique();
        // The parts of a flow with a socket have one socket.
        one.receive_buffer_bytes = one.receive_buffer_bytes.max(flow.receive_buffer);
        // Threads of several queues may each have seen a part of a flow.
        let highest = &mut report.next_sequence[flow.stream];
        *highest = (*highest).max(flow.accounting.highest_plus_one());
        report.buffers = Some(report.buffers.unwrap_or(0) + flow.buffers);
        if let Some(drops) = flow.socket_drops {
            report.socket_drops = Some(report.socket_drops.unwrap_or(0) + drops);
        }
    }

    /// All of them. The jitter of a flow is the mean over its parts, that of the end the mean over its flows.
    pub(crate) fn report(self) -> DatagramReport {
        let Self { mut report, jitters_ns } = self;
        for (flow, parts) in report.flows.iter_mut().zip(&jitters_ns) {
            flow.jitter_ns = mean(parts);
        }
        let of_flows: Vec<f64> = report.flows.iter().filter_map(|flow| flow.jitter_ns).collect();
        report.jitter_ns = mean(&of_flows);
        report
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a flow in which a datagram took so much longer than the one before it.
    fn part(stream: usize, longer_ns: u64) -> FlowCount {
        let mut count = FlowCount::new(stream, 0);
        count.arrive(0, Some(0), 1_000_000);
        count.arrive(1, Some(1_000_000), 2_000_000 + longer_ns);
        count
    }

    #[test]
    fn jitter_covers_the_parts_of_a_flow_and_weighs_flows_equally() {
        let [small, large, other] = [part(0, 16_000), part(0, 48_000), part(1, 320_000)];
        let jitter = |count: &FlowCount| count.jitter.nanoseconds().unwrap();
        let of_flow = f64::midpoint(jitter(&small), jitter(&large));
        assert!(jitter(&small) < of_flow);
        let of_all = f64::midpoint(of_flow, jitter(&other));
        let mut counts = FlowCounts::default();
        for count in [&small, &other, &large] {
            counts.add(count);
        }
        let report = counts.report();
        let is_equal = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-6;
        assert!(is_equal(report.flows[0].jitter_ns, of_flow), "{report:?}");
        assert!(is_equal(report.flows[1].jitter_ns, jitter(&other)), "{report:?}");
        assert!(is_equal(report.jitter_ns, of_all), "{report:?}");
    }
}
