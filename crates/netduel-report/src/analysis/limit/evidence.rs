//! The evidence for causes, and the order in which causes are checked.
use netduel_model::sample::TcpInfo;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::{human_nanos, human_si};
use netduel_model::workload::{Direction, Role, Traffic, Workload};

use super::super::expected::Expected;
use super::super::figures::{self, RATE_REACHED};
use super::super::requests::{self, RequestCount};
use super::super::{contention, datagrams, schedule, series};
use super::Cause;
use super::configured_rate::{configured_rate, kept_requests};
use super::cores::BusyThreads;
use crate::words::percent;

/// From this share of the busy time on, a window or a buffer limited the sender; of the time of a closed loop, requests without a response.
pub(super) const HELD_UP: f64 = 0.30;

/// A cause and its evidence.
pub(super) type Finding = (Cause, String);

/// TCP_INFO over all connections of the sender.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connections {
    /// Share of the time with data in flight.
    pub busy: f64,
    /// Of the busy time, shares: receive window, send buffer.
    pub window: f64,
    pub buffer: f64,
    /// Retransmitted segments, and those of them that are not spurious, as a share of all.
    pub retransmits: u64,
    pub lost: f64,
    /// Retransmitted bytes.
    pub retransmitted_bytes: f64,
    /// Smoothed round trip and smallest, microseconds, means.
    pub rtt_us: Option<f64>,
    pub min_rtt_us: Option<f64>,
    /// Congestion window and send buffer at the end, bytes, medians over connections.
    pub congestion_window: Option<f64>,
    pub send_buffer: Option<f64>,
}

/// All evidence.
pub(super) struct Evidence<'a> {
    pub sender: &'a TrialEnd,
    pub receiver: &'a TrialEnd,
    pub workload: &'a Workload,
    pub shared_machine: bool,
    pub expected: Option<&'a Expected>,
    /// Payload rate in the steady window, bit/s.
    pub rate_bps: Option<f64>,
    /// The throughput of the direction from the sender to the receiver, bit/s.
    pub received_bps: Option<f64>,
    /// The limits of the senders of traffic both ways, each with the throughput of its direction, bit/s.
    pub limits_by_sender: Vec<(Role, &'a Expected, f64)>,
    /// The rate over time.
    pub course: Vec<f64>,
    pub tcp: Option<Connections>,
    /// Datagrams sent, and lost ones by location.
    pub sent: u64,
    pub lost: datagrams::Lost,
    configured: Option<(f64, Option<f64>)>,
    kept_requests: Option<(f64, f64)>,
    /// Outstanding requests in a closed loop.
    pub outstanding: Option<u32>,
    /// Requests in datagrams.
    pub requests: Option<RequestCount>,
    /// Hosts on which other processes used CPU time, with their share: as in the warning `CPU contention`.
    pub others: Vec<(Role, f64)>,
    /// Length of a steady window without a round trip, nanoseconds.
    stalled_ns: Option<u64>,
    /// The p99 lateness of an open loop that missed its schedule, nanoseconds.
    late_ns: Option<u64>,
}

impl<'a> Evidence<'a> {
    pub fn gather(
        workload: &'a Workload,
        trial: &'a Trial,
        [client, server]: [&'a TrialEnd; 2],
        shared_machine: bool,
        expected: Option<&'a Expected>,
    ) -> Self {
        let is_down = workload.traffic.facts().payload == Some(Direction::Down);
        let (sender, receiver) = if is_down { (server, client) } else { (client, server) };
        let ways = datagrams::of_trial(workload, trial, shared_machine);
        let lost = ways.iter().filter_map(|way| way.lost).fold(datagrams::Lost::default(), |sum, lost| {
            datagrams::Lost {
                all: sum.all.saturating_add(lost.all),
                at_socket: sum.at_socket.saturating_add(lost.at_socket),
                at_interface: sum.at_interface.saturating_add(lost.at_interface),
            }
        });
        let rate = netduel_model::metric::Metric::Throughput;
        Self {
            sender,
            receiver,
            workload,
            shared_machine,
            expected,
            rate_bps: figures::value_of(rate, workload, trial, shared_machine),
            received_bps: figures::rate_received_by(receiver.report.role, rate, workload, trial),
            limits_by_sender: expected
                .into_iter()
                .flat_map(|expected| &expected.by_sender)
                .filter_map(|(role, limit)| {
                    let bps = figures::rate_received_by(role.opposite(), rate, workload, trial)?;
                    Some((*role, limit, bps))
                })
                .collect(),
            course: series::steady(workload, trial),
            tcp: connections(sender, workload),
            sent: ways.iter().map(|way| way.sent).fold(0, u64::saturating_add),
            lost,
            configured: configured_rate(workload, trial),
            kept_requests: kept_requests(workload, trial),
            outstanding: outstanding(&workload.traffic),
            requests: requests::in_datagrams(&workload.traffic, trial),
            others: contention::busy_hosts(workload, trial, shared_machine),
            stalled_ns: figures::has_stalled(workload, trial).then(|| {
                let (from, to) = figures::steady_bounds(workload);
                to.saturating_sub(from)
            }),
            late_ns: schedule::lateness(workload, &[trial]),
        }
    }

    /// Causes with their evidence, the decisive one first.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.stalled().into_iter().collect();
        found.extend(self.reached());
        found.extend(self.rejected_frames());
        // testpmd has no socket, but counts packets that it did not accept in time.
        let at_receiver = self.lost.at_socket.max(self.ring_drops());
        let at_socket = (at_receiver > 0).then(|| {
            self.ring_full().unwrap_or_else(|| {
                let words =
                    format!("{} {} dropped at the receiver's socket", self.lost.at_socket, self.noun());
                (Cause::ReceiverSocket, words)
            })
        });
        // Where more are lost before the socket, the path comes first.
        let (socket_first, socket_later) =
            if at_receiver.saturating_mul(2) >= self.lost.all && self.is_worth(at_receiver) {
                (at_socket, None)
            } else {
                (None, at_socket)
            };
        // A few lost packets are not a limit; the table of both ends shows them.
        let socket_later = socket_later.filter(|_| self.is_worth(at_receiver));
        found.extend(socket_first);
        // Counters of a cap come before the load of the cores: a capped path leaves time to other processes.
        let cap_of_queue = self.cap_of_queue();
        let is_capped = !cap_of_queue.is_empty();
        found.extend(cap_of_queue);
        if self.outstanding.is_none() {
            found.extend(self.known_cap());
        }
        // A thread that waits for a core explains a slow round trip and a queue that is not emptied.
        let is_early = |threads: &BusyThreads| {
            threads.finding.0 == Cause::CpuContention || self.outstanding.is_some() && threads.waited
        };
        let (early, threads): (Vec<BusyThreads>, Vec<BusyThreads>) =
            self.threads().into_iter().partition(is_early);
        found.extend(early.into_iter().map(|threads| threads.finding));
        found.extend(self.late());
        found.extend(self.requests_lost());
        if let Some(outstanding) = self.outstanding {
            found.push(self.latency_bound(outstanding));
            found.extend(self.known_cap());
        }
        found.extend(self.single_queue());
        // Datagrams lost on the path mean that the sender was faster than the path.
        let on_the_way = self.datagrams_lost();
        if !on_the_way.is_empty() {
            found.extend(on_the_way);
            found.extend(socket_later);
            return found;
        }
        found.extend(socket_later);
        let window = self.window();
        // A small window that was always full explains the rate, however busy the cores were, unless the receiver had no time to read.
        let (window_first, window) = if self.is_shut() { (window, Vec::new()) } else { (Vec::new(), window) };
        found.extend(window_first);
        found.extend(self.back_pressure());
        found.extend(self.generator());
        found.extend(threads.into_iter().map(|threads| threads.finding));
        found.extend(self.full_core());
        if !is_capped {
            found.extend(self.queue_held_back());
        }
        // A cap fills a queue, and a full queue fills the window: then the cap is the cause.
        let shape = self.shape();
        found.extend(shape);
        found.extend(window);
        found.extend(self.segments_lost());
        found.extend(self.buffer_and_program());
        found.extend(self.all_cores());
        found
    }

    fn reached(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let words = self.configured.and_then(|(configured, reached)| match reached {
            None => Some(format!("less than one message is due at {}", self.human_rate(configured))),
            Some(reached) => (reached >= configured * RATE_REACHED).then(|| {
                let [reached, configured] = [reached, configured].map(|rate| self.human_rate(rate));
                format!("{reached} of the configured {configured} in the steady window")
            }),
        });
        found.extend(words.map(|words| (Cause::ConfiguredRate, words)));
        if let Some((configured, reached)) = self.kept_requests {
            let words =
                format!("{} of the configured {}", human_si(reached, "/s"), human_si(configured, "/s"));
            found.push((Cause::ConfiguredRate, words));
        }
        found
    }

    /// A steady window without a round trip.
    fn stalled(&self) -> Option<Finding> {
        let window = human_nanos(self.stalled_ns? as f64);
        Some((Cause::Stalled, format!("no response in the {window} of the steady window")))
    }

    /// Requests that an open loop sent later than their schedule, and whether its threads waited for cores that other processes used.
    fn late(&self) -> Option<Finding> {
        let words = format!("requests sent {} late (p99)", human_nanos(self.late_ns? as f64));
        Some(match self.client_waited() {
            Some(waited) => (
                Cause::CpuContention,
                format!(
                    "{words}, the client's threads runnable but not scheduled {} of the time",
                    percent(waited)
                ),
            ),
            None => (Cause::LateRequests, words),
        })
    }

    /// CPU time of other processes by host; empty where it is small.
    pub fn other_processes(&self) -> impl Iterator<Item = String> {
        self.others.iter().map(|(role, share)| {
            let host =
                if self.shared_machine { "host".to_owned() } else { format!("{}'s host", role.word()) };
            format!("other processes used {} of the CPU time of the {host}", percent(*share))
        })
    }

    /// Numbers without a clear cause.
    pub fn background(&self) -> Vec<String> {
        let mut words = self.core_words();
        if let Some(tcp) = &self.tcp {
            words.push(format!(
                "receive window full {}, send buffer full {} of the time",
                percent(tcp.window),
                percent(tcp.buffer)
            ));
            if let (Some(rtt), Some(least)) = (tcp.rtt_us, tcp.min_rtt_us) {
                words.push(format!(
                    "round trip {}, min {}",
                    human_nanos(rtt * 1e3),
                    human_nanos(least * 1e3)
                ));
            }
            words.push(format!("{} retransmits", tcp.retransmits));
        }
        words
    }

    /// The two ends with their names, the sender first; a shared machine once.
    pub fn ends(&self) -> Vec<(&'a TrialEnd, &'static str)> {
        let named = |end: &'a TrialEnd| (end, end.report.role.word());
        if self.shared_machine {
            vec![named(self.sender)]
        } else {
            vec![named(self.sender), named(self.receiver)]
        }
    }
}

fn outstanding(traffic: &Traffic) -> Option<u32> {
    let requests = traffic.facts().requests?;
    requests.rate.is_none().then_some(requests.outstanding)
}

/// Sums over connections; absent when the kernel did not report a value.
fn sum(connections: &[&TcpInfo], field: impl Fn(&TcpInfo) -> Option<u64>) -> Option<f64> {
    let sum =
        connections.iter().map(|tcp| field(tcp)).reduce(|a, b| Some(a?.saturating_add(b?))).flatten()?;
    Some(sum as f64)
}

fn connections(sender: &TrialEnd, workload: &Workload) -> Option<Connections> {
    let reports = || sender.report.streams.iter().filter(|stream| stream.tcp.is_some());
    let all: Vec<&TcpInfo> = reports().filter_map(|stream| stream.tcp.as_ref()).collect();
    let count = reports().map(|stream| stream.members).fold(0, u32::saturating_add);
    let busy = sum(&all, |tcp| tcp.busy_us).filter(|busy| *busy > 0.0)?;
    let of_busy = |field: fn(&TcpInfo) -> Option<u64>| sum(&all, field).map_or(0.0, |time| time / busy);
    let retransmits = sum(&all, |tcp| tcp.retransmits.map(u64::from)).unwrap_or(0.0);
    let spurious = sum(&all, |tcp| Some(tcp.dsack_dups.map_or(0, u64::from))).unwrap_or(0.0);
    let segments = sum(&all, |tcp| tcp.segs_out.map(u64::from)).filter(|sent| *sent > 0.0);
    let median_of = |field: fn(&TcpInfo) -> Option<u32>| {
        let values: Vec<f64> = all.iter().filter_map(|tcp| field(tcp)).map(f64::from).collect();
        netduel_stats::summary::median(&values)
    };
    let mss = median_of(|tcp| tcp.snd_mss).unwrap_or(0.0);
    let could_ns = workload.timing.duration.0.max(1) as f64 * f64::from(count.max(1));
    Some(Connections {
        busy: busy * 1e3 / could_ns,
        window: of_busy(|tcp| tcp.rwnd_limited_us),
        buffer: of_busy(|tcp| tcp.sndbuf_limited_us),
        retransmits: retransmits as u64,
        lost: segments.map_or(0.0, |segments| (retransmits - spurious).max(0.0) / segments),
        retransmitted_bytes: retransmits * mss,
        rtt_us: median_of(|tcp| tcp.rtt_us),
        min_rtt_us: median_of(|tcp| tcp.min_rtt_us),
        congestion_window: median_of(|tcp| tcp.snd_cwnd).map(|segments| segments * mss),
        send_buffer: median_of(|tcp| tcp.sndbuf.and_then(|bytes| u32::try_from(bytes).ok())),
    })
}
