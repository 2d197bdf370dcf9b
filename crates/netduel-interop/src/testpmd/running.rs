//! testpmd while it forwards: its counters as a series, its end and its result.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use netduel_model::dpdk::{DpdkCounts, DpdkFlows, DpdkReport};
use netduel_model::packet_path::{PacketReport, QueuePackets};
use netduel_model::sample::{DatagramReport, EndReport, Flow, IntervalSample, LiveFigures};
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, SAMPLE_INTERVAL_NS};
use netduel_sys::clock::{monotonic_ns, sleep_until_or};
use netduel_sys::usage;

use super::command::Mode;
use super::error::DpdkError;
use super::forward::Forwarded;
use super::program::{ForwardingCore, Testpmd};
use super::telemetry::PortStats;
use super::version::Version;

/// Called once when an end is finished, from a thread of the end.
pub type Notify = Box<dyn Fn() + Send + Sync>;

/// Samples after the peer's end in which a receiver may still receive packets in flight: 2 s.
const DRAIN_SAMPLES: u32 = 20;

/// The traffic of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traffic {
    /// The forwarding mode.
    pub role: Role,
    /// From the first to the last packet, at the sender. A receiver runs until the request to finish.
    pub duration: Nanos,
    /// Payload of the datagram in a packet, bytes.
    pub payload: u64,
    /// Whether packets were to belong to many flows.
    pub many_flows: bool,
    /// The kernel's interface below, or DPDK's name of the port.
    pub interface: String,
}

/// State shared by the thread and its owner.
#[derive(Debug, Default)]
struct Shared {
    started_ns: u64,
    /// The peer has finished.
    is_finished: AtomicBool,
    /// The traffic is cancelled.
    is_cut: AtomicBool,
    is_done: AtomicBool,
    elapsed_ns: AtomicU64,
    packets: AtomicU64,
}

/// Running traffic.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<(EndReport, Testpmd), DpdkError>>,
    mode: Mode,
    payload: u64,
    pid: u32,
}

impl Running {
    /// Starts the traffic of testpmd, and returns when testpmd confirms it. The time base starts then.
    ///
    /// # Errors
    /// When testpmd does not confirm it by the deadline on the monotonic clock, or a thread cannot be started.
    pub fn begin(
        mut testpmd: Testpmd,
        traffic: Traffic,
        deadline_ns: u64,
        notify: Notify,
    ) -> Result<Self, DpdkError> {
        testpmd.wait_for_link(deadline_ns)?;
        let before = testpmd.stats_by(deadline_ns)?;
        let used = testpmd.forward(deadline_ns)?;
        let started_ns = monotonic_ns();
        let shared = Arc::new(Shared { started_ns, ..Shared::default() });
        let (mode, payload, pid) = (testpmd.mode(), traffic.payload, testpmd.pid());
        // At `start` testpmd drains a receiver's queues, and then starts its forward statistics, which are the source of the
        // totals. The port's counters include the drained packets, so the series starts after it; packets received in between are
        // in the totals only.
        let base = if mode == Mode::ReceiveOnly { testpmd.stats_by(deadline_ns)? } else { before };
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("testpmd-traffic".to_owned())
            .spawn(move || {
                let watch =
                    Watch { testpmd, traffic, shared: own, base, series: Vec::new(), last: Seen::default() };
                let shared = Arc::clone(&watch.shared);
                let result = watch.run(&used);
                shared.is_done.store(true, Ordering::Release);
                notify();
                result
            })
            .map_err(|error| DpdkError::system("start a thread", error))?;
        Ok(Self { shared, thread, mode, payload, pid })
    }

    /// Current figures.
    pub fn live(&self) -> LiveFigures {
        let packets = self.shared.packets.load(Ordering::Relaxed);
        let bytes = payload_bytes(packets, self.payload);
        let sends = self.mode == Mode::TransmitOnly;
        LiveFigures {
            elapsed_ns: self.shared.elapsed_ns.load(Ordering::Relaxed),
            sent_bytes: if sends { bytes } else { 0 },
            received_bytes: if sends { 0 } else { bytes },
            messages: if sends { 0 } else { packets },
            ..LiveFigures::default()
        }
    }

    /// CPU time of testpmd since its start, user and system, nanoseconds; absent after its end.
    pub fn cpu_ns(&self) -> Option<(u64, u64)> {
        cpu_ns(self.pid)
    }

    /// The peer has finished: a sender stops, a receiver receives packets in flight and then stops.
    pub fn finish(&self) {
        self.shared.is_finished.store(true, Ordering::Relaxed);
    }

    /// Stops it at once.
    pub fn abort(&self) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
        self.shared.is_finished.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::join`] would return at once.
    pub fn is_done(&self) -> bool {
        self.shared.is_done.load(Ordering::Acquire)
    }

    /// Waits for the end of the traffic, and returns the counts and testpmd, which is at its prompt again.
    ///
    /// # Errors
    /// When testpmd ended early, its output has an unknown format, or no packet passed.
    ///
    /// # Panics
    /// When the thread panicked, which is a bug.
    pub fn join(self) -> Result<(EndReport, Testpmd), DpdkError> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The last sample.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    at_ns: u64,
    packets: u64,
}

/// The thread's work.
struct Watch {
    testpmd: Testpmd,
    traffic: Traffic,
    shared: Arc<Shared>,
    base: PortStats,
    series: Vec<IntervalSample>,
    last: Seen,
}

impl Watch {
    fn run(mut self, used: &[ForwardingCore]) -> Result<(EndReport, Testpmd), DpdkError> {
        let cpu_before = cpu_ns(self.testpmd.pid());
        self.watch()?;
        let forwarded = self.testpmd.halt()?;
        // The last sample is taken after the cores have stopped.
        let stats = self.sample()?;
        let extended = self.testpmd.extended()?;
        let cpu = cpu_ns(self.testpmd.pid());
        let Self { testpmd, traffic, shared, series, .. } = self;
        let (mode, version, info) = (testpmd.mode(), testpmd.version(), testpmd.info().clone());
        let words = testpmd.words().to_vec();
        if !shared.is_cut.load(Ordering::Relaxed) {
            refuse_nothing(mode, &info.name, &forwarded, &stats)?;
        }
        let moved = match mode {
            Mode::TransmitOnly => forwarded.port.sent,
            Mode::ReceiveOnly => forwarded.port.received,
        };
        let flow = Flow {
            bytes: payload_bytes(moved, traffic.payload),
            messages: moved,
            first_ns: series.iter().find(|sample| sample.messages > 0).map(|s| s.end_ns - s.length_ns),
            last_ns: series.iter().rfind(|sample| sample.messages > 0).map(|sample| sample.end_ns),
            series,
        };
        let dpdk = DpdkReport {
            version: version.to_string(),
            rdma_core: testpmd.rdma_core().map(str::to_owned),
            command: words,
            port: info.name,
            numa_node: info.numa_node.and_then(|node| u32::try_from(node).ok()),
            flows: flows(traffic.many_flows, version),
            counts: counts(&forwarded, &stats, &self.base),
            xstats: extended,
            cores: used.iter().map(|one| one.core).collect(),
        };
        let queues = queues(mode, info.nb_tx_queues, &forwarded, used);
        Ok((end_report(&traffic, mode, flow, dpdk, queues, [cpu_before, cpu]), testpmd))
    }

    /// Samples until the end: the duration at a sender, the packets in flight at a receiver.
    fn watch(&mut self) -> Result<(), DpdkError> {
        let end_ns = match self.testpmd.mode() {
            Mode::TransmitOnly => self.shared.started_ns.saturating_add(self.traffic.duration.0),
            Mode::ReceiveOnly => u64::MAX,
        };
        let mut due_ns = self.shared.started_ns;
        loop {
            due_ns += SAMPLE_INTERVAL_NS;
            if !sleep_until_or(due_ns.min(end_ns), &self.shared.is_finished) || due_ns >= end_ns {
                break;
            }
            self.sample()?;
        }
        if self.testpmd.mode() == Mode::TransmitOnly || self.shared.is_cut.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Packets in flight arrive until an interval has no packets, other traffic aside.
        for _ in 0..DRAIN_SAMPLES {
            let before = self.last.packets;
            sleep_until_or(monotonic_ns() + SAMPLE_INTERVAL_NS, &self.shared.is_cut);
            self.sample()?;
            if self.last.packets == before {
                break;
            }
        }
        Ok(())
    }

    fn sample(&mut self) -> Result<PortStats, DpdkError> {
        let stats = self.testpmd.stats()?;
        let end_ns = monotonic_ns() - self.shared.started_ns;
        let packets = match self.testpmd.mode() {
            Mode::TransmitOnly => stats.opackets.saturating_sub(self.base.opackets),
            Mode::ReceiveOnly => stats.ipackets.saturating_sub(self.base.ipackets),
        };
        let moved = packets.saturating_sub(self.last.packets);
        self.series.push(IntervalSample {
            end_ns,
            length_ns: end_ns - self.last.at_ns,
            bytes: payload_bytes(moved, self.traffic.payload),
            messages: moved,
        });
        self.last = Seen { at_ns: end_ns, packets };
        self.shared.packets.store(packets, Ordering::Relaxed);
        self.shared.elapsed_ns.store(end_ns, Ordering::Relaxed);
        Ok(stats)
    }
}

/// Payload of so many packets.
fn payload_bytes(packets: u64, payload: u64) -> u64 {
    packets.saturating_mul(payload)
}

/// The varying fields of a sender's packets.
fn flows(many: bool, version: Version) -> DpdkFlows {
    match (many, version >= Version::PORTS_VARY) {
        (false, _) => DpdkFlows::One,
        (true, true) => DpdkFlows::SourcePorts,
        (true, false) => DpdkFlows::SourceAddresses,
    }
}

/// A run without a packet is a failure, whatever the exit code.
fn refuse_nothing(mode: Mode, port: &str, forwarded: &Forwarded, stats: &PortStats) -> Result<(), DpdkError> {
    let counts = &forwarded.port;
    let (doing, why) = match mode {
        Mode::TransmitOnly if counts.sent > 0 => return Ok(()),
        Mode::ReceiveOnly if counts.received > 0 => return Ok(()),
        Mode::TransmitOnly if counts.refused > 0 => (
            "send",
            format!(
                "The device took none of the {} packets that were handed to it: its link is down, or its other end is not connected",
                counts.refused
            ),
        ),
        Mode::TransmitOnly => {
            ("send", "No core made a packet: see whether its buffers are too few, and its link is up".to_owned())
        }
        Mode::ReceiveOnly if counts.missed > 0 || stats.rx_nombuf > 0 => (
            "receive",
            format!("The device dropped {} packets and lacked a buffer for {}", counts.missed, stats.rx_nombuf),
        ),
        Mode::ReceiveOnly => (
            "receive",
            "Nothing reached the port: see that the sender names this port's hardware address, that the network carries its \
             source addresses (before DPDK 23.11, many flows have foreign ones, which clouds drop), and that no other program has the \
             queues"
                .to_owned(),
        ),
    };
    Err(DpdkError::Nothing { doing, port: port.to_owned(), why })
}

fn counts(forwarded: &Forwarded, stats: &PortStats, base: &PortStats) -> DpdkCounts {
    let port = &forwarded.port;
    DpdkCounts {
        tx_packets: port.sent,
        tx_dropped: port.refused,
        rx_packets: port.received,
        rx_missed: port.missed,
        rx_errors: stats.ierrors.saturating_sub(base.ierrors),
        rx_nombuf: stats.rx_nombuf.saturating_sub(base.rx_nombuf),
        tx_errors: stats.oerrors.saturating_sub(base.oerrors),
    }
}

/// All queues of an end. testpmd does not print queues without packets, nor a single queue.
fn queues(mode: Mode, count: u32, forwarded: &Forwarded, used: &[ForwardingCore]) -> Vec<QueuePackets> {
    let of_port = if mode == Mode::TransmitOnly { forwarded.port.sent } else { forwarded.port.received };
    let packets_of = |queue: u16| {
        let of_queue = forwarded.streams.iter().filter_map(|stream| match mode {
            Mode::TransmitOnly => (stream.transmit_queue == queue).then_some(stream.sent),
            Mode::ReceiveOnly => (stream.receive_queue == queue).then_some(stream.received),
        });
        of_queue.fold(0, u64::saturating_add)
    };
    let of_queue = |queue: u16| QueuePackets {
        queue: Some(queue.into()),
        core: used.iter().find(|one| one.queues.contains(&queue)).map(|one| one.core),
        packets: if count == 1 { of_port } else { packets_of(queue) },
    };
    (0..count as u16).map(of_queue).collect()
}

fn end_report(
    traffic: &Traffic,
    mode: Mode,
    flow: Flow,
    dpdk: DpdkReport,
    queues: Vec<QueuePackets>,
    cpu: [Option<(u64, u64)>; 2],
) -> EndReport {
    let counts = dpdk.counts;
    let lost =
        [("rx-missed", counts.rx_missed), ("rx-nombuf", counts.rx_nombuf), ("rx-errors", counts.rx_errors)];
    let packets = PacketReport {
        interface: traffic.interface.clone(),
        queues,
        drops: lost
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect(),
        ..PacketReport::default()
    };
    let received = (mode == Mode::ReceiveOnly).then(|| flow.clone());
    let datagrams = received
        .as_ref()
        .map(|received| DatagramReport { unique: received.messages, ..DatagramReport::default() });
    let process_cpu_ns = match cpu {
        [Some(before), Some(after)] => between(before, after),
        _ => (0, 0),
    };
    EndReport {
        sent: (mode == Mode::TransmitOnly).then_some(flow),
        received,
        datagrams,
        packets: Some(packets),
        dpdk: Some(dpdk),
        process_cpu_ns,
        ..EndReport::new(traffic.role)
    }
}

/// CPU time of a process, user and system, nanoseconds: the exact sum, in the shares of proc_pid_stat(5) (`utime` and `stime`, in ticks of 10 ms).
/// A process without a core for most of a short trial has no tick in it.
fn cpu_ns(pid: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain spaces and brackets; the fields after it are numbers.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some(in_shares(usage::cpu_ns_of(pid)?, (ticks()?, ticks()?)))
}

/// CPU time between two readings, user and system. The sum is exact; a share of few ticks may be less at the second reading.
fn between(before: (u64, u64), after: (u64, u64)) -> (u64, u64) {
    let sum = |(user, system): (u64, u64)| user.saturating_add(system);
    let total = sum(after).saturating_sub(sum(before));
    let system = after.1.saturating_sub(before.1).min(total);
    (total - system, system)
}

/// A CPU time in the shares of its ticks, user and system. Without a tick in the kernel all of it is user time, as the kernel itself assigns it
/// (`cputime_adjust` in kernel/sched/cputime.c).
fn in_shares(total_ns: u64, (user, system): (u64, u64)) -> (u64, u64) {
    let ticks = u128::from(user) + u128::from(system);
    let of_system = (u128::from(total_ns) * u128::from(system)).checked_div(ticks).unwrap_or(0);
    let system_ns = u64::try_from(of_system).unwrap_or(total_ns);
    (total_ns - system_ns, system_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testpmd::forward::{ForwardCounts, StreamCounts};

    #[test]
    fn run_without_a_packet_fails_with_a_reason() {
        let with = |mode, port| {
            let forwarded = Forwarded { port, streams: Vec::new() };
            refuse_nothing(mode, "net_null0", &forwarded, &PortStats::default())
                .map_err(|error| error.to_string())
        };
        let none = ForwardCounts::default();
        assert!(with(Mode::TransmitOnly, none).unwrap_err().contains("no packet at all. No core made"));
        let refused = ForwardCounts { refused: 7, ..none };
        assert!(with(Mode::TransmitOnly, refused).unwrap_err().contains("took none of the 7 packets"));
        assert!(with(Mode::ReceiveOnly, none).unwrap_err().contains("hardware address"));
        assert!(
            with(Mode::ReceiveOnly, ForwardCounts { missed: 3, ..none }).unwrap_err().contains("dropped 3")
        );
        assert_eq!(with(Mode::TransmitOnly, ForwardCounts { sent: 1, ..none }), Ok(()));
        // Sent packets do not count as received.
        assert!(with(Mode::ReceiveOnly, ForwardCounts { sent: 1, ..none }).is_err());
    }

    /// Counts are those of another program.
    #[test]
    fn counts_beyond_the_range_of_a_number_are_the_largest() {
        let counts = ForwardCounts { missed: u64::MAX, ..ForwardCounts::default() };
        let stats = PortStats { rx_nombuf: 1, ..PortStats::default() };
        let forwarded = Forwarded { port: counts, streams: Vec::new() };
        assert!(refuse_nothing(Mode::ReceiveOnly, "net_null0", &forwarded, &stats).is_err());
        let stream = StreamCounts { sent: u64::MAX, ..StreamCounts::default() };
        let forwarded = Forwarded { streams: vec![stream, stream], ..Forwarded::default() };
        assert_eq!(queues(Mode::TransmitOnly, 2, &forwarded, &[])[0].packets, u64::MAX);
        assert_eq!(payload_bytes(u64::MAX, 18), u64::MAX);
    }

    #[test]
    fn varying_field_of_flows_depends_on_the_version() {
        let flows = |words: &str| flows(true, Version::parse(words).unwrap());
        assert_eq!(flows("DPDK 22.11.11"), DpdkFlows::SourceAddresses);
        assert_eq!(flows("DPDK 24.11.0"), DpdkFlows::SourcePorts);
    }

    #[test]
    fn idle_queues_are_reported_with_their_core() {
        let stream = |queue, sent| StreamCounts {
            receive_queue: queue,
            transmit_queue: queue,
            sent,
            ..StreamCounts::default()
        };
        let forwarded = Forwarded { streams: vec![stream(0, 5), stream(2, 7)], ..Forwarded::default() };
        let used = [(3, vec![0]), (5, vec![1, 2])].map(|(core, queues)| ForwardingCore { core, queues });
        let queues = |mode, count, forwarded: &Forwarded| -> Vec<_> {
            let all = queues(mode, count, forwarded, &used);
            all.iter().map(|queue| (queue.queue.unwrap(), queue.core.unwrap(), queue.packets)).collect()
        };
        assert_eq!(queues(Mode::TransmitOnly, 3, &forwarded), [(0, 3, 5), (1, 5, 0), (2, 5, 7)]);
        let one = Forwarded {
            port: ForwardCounts { received: 9, ..ForwardCounts::default() },
            streams: Vec::new(),
        };
        assert_eq!(queues(Mode::ReceiveOnly, 1, &one), [(0, 3, 9)]);
    }

    #[test]
    fn cpu_time_of_this_process_is_read() {
        assert!(cpu_ns(std::process::id()).is_some_and(|(user, system)| user + system > 0));
        assert_eq!(cpu_ns(u32::MAX), None);
    }

    #[test]
    fn cpu_time_is_divided_as_its_ticks_and_is_whole() {
        assert_eq!(in_shares(7_000_001, (0, 0)), (7_000_001, 0));
        assert_eq!(in_shares(40_000_000, (3, 1)), (30_000_000, 10_000_000));
        assert_eq!(in_shares(10, (1, 2)), (4, 6));
        assert_eq!(in_shares(u64::MAX, (0, u64::MAX)), (0, u64::MAX));
        assert_eq!(between((10, 20), (15, 27)), (5, 7));
        assert_eq!(between((10, 20), (5, 28)), (0, 3));
        assert_eq!(between((10, 20), (14, 19)), (3, 0));
    }
}
