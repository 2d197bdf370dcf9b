//! What the two ends of a quick test counted, in JSON. Names of counters are values here; a stored run has them as keys.
use std::net::SocketAddr;

use netduel_model::packet_path::{PacketReport, XdpMode};
use netduel_model::sample::{self, DatagramReport, StreamReport};
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::Role;
use schemars::JsonSchema;
use serde::Serialize;

use super::host_counters::{Count, HostCounters};
use super::packets::CallError;
use super::parts::Latency;
use crate::analysis::histogram_of;

/// What one end of a test counted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TestEnd {
    /// Which end.
    pub role: Role,
    /// Payload that it sent; null when it sent none.
    pub sent: Option<PayloadCount>,
    /// Payload that it received; null when it received none.
    pub received: Option<PayloadCount>,
    /// Streams or flows, one by one; with more than 1024 of them in groups.
    pub streams: Vec<StreamCount>,
    /// How evenly the streams were served; null with one stream.
    pub fairness: Option<Fairness>,
    /// How the TCP connections were set up; null at the server, and for tests without connections of their whole length.
    pub connections: Option<Connections>,
    /// Requests and responses; null where the end counts none.
    pub round_trips: Option<RoundTripCount>,
    /// Datagrams or packets that a receiver counted one by one; null where the end counts none.
    pub datagrams: Option<DatagramCount>,
    /// Packets of an end of `pps` with kernel bypass; null for other ends.
    pub packets: Option<BypassPackets>,
    /// Completions of zero-copy sends; null for other engines.
    pub zero_copy: Option<ZeroCopySends>,
    /// Failed calls.
    pub errors: Vec<CallError>,
    /// Cores that the end chose for its threads; null when it chose none.
    pub placement: Option<ChosenCores>,
    /// Maximum number of tests of other clients at the same time on the server; 0 at the client.
    pub concurrent_tests: u32,
    /// What the kernel of the host counted around the traffic, of all programs.
    pub host: HostCounters,
}

/// Payload of one direction of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PayloadCount {
    /// Payload, from the first to the last byte.
    pub bytes: u64,
    /// Datagrams or messages; 0 for TCP streams.
    pub messages: u64,
    /// First byte, after the start; null without any.
    pub first_ns: Option<u64>,
    /// Last byte, after the start.
    pub last_ns: Option<u64>,
}

/// A stream or flow, or a group of streams with the sums of their counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StreamCount {
    /// Number of the stream, from 0, the same at both ends.
    pub stream: u32,
    /// Number of streams in this entry.
    pub members: u32,
    /// Payload sent by this end.
    pub sent_bytes: u64,
    /// Payload received by this end.
    pub received_bytes: u64,
    /// Core that the thread was pinned to; null when it was not pinned.
    pub core: Option<u16>,
    /// Core that processed the last received packet of a UDP flow; null for TCP.
    pub incoming_core: Option<u16>,
    /// Address and port of this end, of a UDP flow.
    pub local: Option<SocketAddr>,
    /// Address and port of the other end, as this end sees them.
    pub peer: Option<SocketAddr>,
    /// State of the TCP connection at its end; null for UDP.
    pub tcp: Option<TcpState>,
}

/// `struct tcp_info` at the end of a connection. A value is null where the kernel does not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TcpState {
    /// Congestion control.
    pub congestion: Option<String>,
    /// Maximum segment size of the sender.
    pub mss_bytes: Option<u32>,
    /// Path MTU.
    pub path_mtu_bytes: Option<u32>,
    /// Smoothed round trip.
    pub rtt_ns: Option<u64>,
    /// Variation of the round trip.
    pub rtt_variation_ns: Option<u64>,
    /// Minimum round trip.
    pub rtt_min_ns: Option<u64>,
    /// Congestion window, segments.
    pub cwnd_segments: Option<u32>,
    /// Retransmitted segments.
    pub retransmits: Option<u32>,
    /// Spurious retransmits (DSACK).
    pub spurious_retransmits: Option<u32>,
    /// Segments considered lost at the end.
    pub lost_segments: Option<u32>,
    /// Reordering events.
    pub reordering_events: Option<u32>,
    /// Segments sent.
    pub sent_segments: Option<u32>,
    /// Segments received.
    pub received_segments: Option<u32>,
    /// Bytes that the peer acknowledged.
    pub acknowledged_bytes: Option<u64>,
    /// Bytes received in order.
    pub received_bytes: Option<u64>,
    /// Size of the send buffer.
    pub send_buffer_bytes: Option<u64>,
    /// Receive window that this end offers.
    pub receive_window_bytes: Option<u32>,
    /// Time with data in flight.
    pub busy_ns: Option<u64>,
    /// Of this, time limited by the receive window of the peer.
    pub receive_window_limited_ns: Option<u64>,
    /// Of this, time limited by the send buffer.
    pub send_buffer_limited_ns: Option<u64>,
}

/// What the streams of an end moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Fairness {
    /// Number of streams.
    pub count: u32,
    /// Payload of the stream with the fewest bytes.
    pub min_bytes: u64,
    /// Payload of the median stream.
    pub median_bytes: u64,
    /// Payload of the stream with the most bytes.
    pub max_bytes: u64,
    /// Jain's fairness index: 1 for equal shares; null when nothing was moved.
    pub jain_index: Option<f64>,
}

/// How the TCP connections of a test were set up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Connections {
    /// From the first connect call until all were connected.
    pub elapsed_ns: u64,
    /// Threads that connected.
    pub concurrency: u32,
    /// Time of each connect call; null when none succeeded.
    pub connect: Option<Latency>,
}

/// Requests and responses of the whole test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoundTripCount {
    /// Requests sent.
    pub requests: u64,
    /// Responses received.
    pub responses: u64,
    /// Requests without a response within the timeout.
    pub timeouts: u64,
}

/// Datagrams that a receiver counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct DatagramCount {
    /// Received, each once.
    pub received: u64,
    /// Duplicates.
    pub duplicates: u64,
    /// Reordered datagrams.
    pub reordered: u64,
    /// Datagrams that arrived too late to tell whether they are duplicates.
    pub outside_window: u64,
    /// Datagrams that are not of this test.
    pub unexpected: u64,
    /// Jitter at the end of the test (RFC 3550); null with segmentation offload.
    pub jitter_ns: Option<f64>,
    /// Buffers dropped because that of the socket was full; null where not counted.
    pub socket_drops: Option<u64>,
}

/// Packets of an end with kernel bypass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BypassPackets {
    /// Interface.
    pub interface: String,
    /// Packets by queue and core.
    pub queues: Vec<QueueCount>,
    /// Whether driver and program shared the frames without a copy; null without AF_XDP.
    pub zero_copy: Option<bool>,
    /// Where the XDP program of the receiver ran; null without one.
    pub mode: Option<XdpMode>,
    /// Packets lost before the program had them, by counter.
    pub drops: Vec<Count>,
}

/// Packets of a queue and its core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueCount {
    /// Number of the queue; null where a core is counted for any queue.
    pub queue: Option<u32>,
    /// Core; null when it is not known.
    pub core: Option<u16>,
    /// Packets.
    pub packets: u64,
}

/// Completions of zero-copy sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ZeroCopySends {
    /// Send calls.
    pub sends: u64,
    /// Completed sends.
    pub completions: u64,
    /// Completed sends whose data the kernel copied.
    pub copied: u64,
    /// Send calls that the kernel deferred until earlier ones complete.
    pub deferred: u64,
}

/// Cores that an end chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChosenCores {
    /// Cores; empty when none could be chosen.
    pub cores: Vec<u16>,
    /// Reason for the choice.
    pub reason: String,
}

impl TestEnd {
    /// The ends with figures, the client first.
    pub(super) fn all(trial: &Trial) -> Vec<Self> {
        [Role::Client, Role::Server]
            .into_iter()
            .filter_map(|role| Some(Self::of(role, trial.end(role)?)))
            .collect()
    }

    fn of(role: Role, end: &TrialEnd) -> Self {
        let (report, seen) = (&end.report, &end.observation);
        let error = |error: &sample::ErrorCount| CallError {
            call: error.call.clone(),
            error: error.error.clone(),
            count: error.count,
        };
        Self {
            role,
            sent: report.sent.as_ref().map(PayloadCount::of),
            received: report.received.as_ref().map(PayloadCount::of),
            streams: report.streams.iter().map(StreamCount::of).collect(),
            fairness: report.fairness.as_ref().map(|fairness| Fairness {
                count: fairness.count,
                min_bytes: fairness.min_bytes,
                median_bytes: fairness.median_bytes,
                max_bytes: fairness.max_bytes,
                jain_index: fairness.jain_index,
            }),
            connections: report.connections.as_ref().map(|connections| Connections {
                elapsed_ns: connections.elapsed_ns,
                concurrency: connections.concurrency,
                connect: histogram_of(&connections.connect).as_ref().map(Latency::of),
            }),
            round_trips: report.round_trips.as_ref().map(|trips| RoundTripCount {
                requests: trips.requests,
                responses: trips.responses,
                timeouts: trips.timeouts,
            }),
            datagrams: report.datagrams.as_ref().map(DatagramCount::of),
            packets: report.packets.as_ref().map(BypassPackets::of),
            zero_copy: report.zero_copy.map(|sends| ZeroCopySends {
                sends: sends.sends,
                completions: sends.completions,
                copied: sends.copied,
                deferred: sends.deferred,
            }),
            errors: report.errors.iter().map(error).collect(),
            placement: seen
                .placement
                .as_ref()
                .map(|chosen| ChosenCores { cores: chosen.cores.clone(), reason: chosen.reason.clone() }),
            concurrent_tests: seen.concurrent_tests,
            host: HostCounters::of(seen),
        }
    }
}

impl PayloadCount {
    fn of(flow: &sample::Flow) -> Self {
        Self { bytes: flow.bytes, messages: flow.messages, first_ns: flow.first_ns, last_ns: flow.last_ns }
    }
}

impl StreamCount {
    fn of(stream: &StreamReport) -> Self {
        Self {
            stream: stream.index,
            members: stream.members,
            sent_bytes: stream.sent_bytes,
            received_bytes: stream.received_bytes,
            core: stream.core,
            incoming_core: stream.incoming_core,
            local: stream.local,
            peer: stream.peer,
            tcp: stream.tcp.as_ref().map(TcpState::of),
        }
    }
}

impl TcpState {
    /// The kernel counts times of connections in microseconds.
    fn of(tcp: &sample::TcpInfo) -> Self {
        let ns = |us: Option<u64>| us.map(|us| us.saturating_mul(1_000));
        let short = |us: Option<u32>| ns(us.map(u64::from));
        Self {
            congestion: tcp.congestion.clone(),
            mss_bytes: tcp.snd_mss,
            path_mtu_bytes: tcp.pmtu,
            rtt_ns: short(tcp.rtt_us),
            rtt_variation_ns: short(tcp.rttvar_us),
            rtt_min_ns: short(tcp.min_rtt_us),
            cwnd_segments: tcp.snd_cwnd,
            retransmits: tcp.retransmits,
            spurious_retransmits: tcp.dsack_dups,
            lost_segments: tcp.lost,
            reordering_events: tcp.reord_seen,
            sent_segments: tcp.segs_out,
            received_segments: tcp.segs_in,
            acknowledged_bytes: tcp.bytes_acked,
            received_bytes: tcp.bytes_received,
            send_buffer_bytes: tcp.sndbuf,
            receive_window_bytes: tcp.rcv_wnd,
            busy_ns: ns(tcp.busy_us),
            receive_window_limited_ns: ns(tcp.rwnd_limited_us),
            send_buffer_limited_ns: ns(tcp.sndbuf_limited_us),
        }
    }
}

impl DatagramCount {
    fn of(count: &DatagramReport) -> Self {
        Self {
            received: count.unique,
            duplicates: count.duplicates,
            reordered: count.reordered,
            outside_window: count.outside_window,
            unexpected: count.unexpected,
            jitter_ns: count.jitter_ns,
            socket_drops: count.socket_drops,
        }
    }
}

impl BypassPackets {
    fn of(report: &PacketReport) -> Self {
        let queue = |of: &netduel_model::packet_path::QueuePackets| QueueCount {
            queue: of.queue,
            core: of.core,
            packets: of.packets,
        };
        Self {
            interface: report.interface.clone(),
            queues: report.queues.iter().map(queue).collect(),
            zero_copy: report.zero_copy,
            mode: report.mode,
            drops: Count::all(&report.drops),
        }
    }
}
