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
    jitters_ns: Vec<f64>,
}

impl FlowCounts {
    /// Adds a flow, or the part of it that one thread received.
    pub(crate) fn add(&mut self, flow: &FlowCount) {
        let Self { report, jitters_ns } = self;
        jitters_ns.extend(flow.jitter.nanoseconds());
        report.unique += flow.accounting.unique();
        report.duplicates += flow.accounting.duplicates();
        report.reordered += flow.accounting.reordered();
        report.outside_window += flow.accounting.outside_window();
        report.unexpected += flow.unexpected;
        if report.next_sequence.len() <= flow.stream {
            report.next_sequence.resize(flow.stream + 1, 0);
            report.flows.resize(flow.stream + 1, FlowReport::default());
        }
        let one = &mut report.flows[flow.stream];
        one.unique += flow.accounting.unique();
        one.jitter_ns = one.jitter_ns.or(flow.jitter.nanoseconds());
        one.receive_buffer_bytes = one.receive_buffer_bytes.or(flow.receive_buffer);
        // Threads of several queues may each have seen a part of a flow.
        let highest = &mut report.next_sequence[flow.stream];
        *highest = (*highest).max(flow.accounting.highest_plus_one());
        report.buffers = Some(report.buffers.unwrap_or(0) + flow.buffers);
        if let Some(drops) = flow.socket_drops {
            report.socket_drops = Some(report.socket_drops.unwrap_or(0) + drops);
        }
    }

    /// All of them, with the mean of their jitters.
    pub(crate) fn report(self) -> DatagramReport {
        let count = self.jitters_ns.len() as f64;
        let jitter_ns = (count > 0.0).then(|| self.jitters_ns.iter().sum::<f64>() / count);
        DatagramReport { jitter_ns, ..self.report }
    }
}
