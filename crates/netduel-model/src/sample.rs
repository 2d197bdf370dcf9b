//! What one end of a trial measured of its own traffic. Raw counts; rates are derived when shown.
use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dpdk::DpdkReport;
use crate::failover::FailoverReport;
use crate::packet_path::PacketReport;
pub use crate::recorded::{HistogramRecord, IntervalSample};
use crate::stamps::StampReport;
use crate::workload::terms::Role;

/// One direction of one end: everything sent, or everything received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// Payload bytes, from the first to the last.
    pub bytes: u64,
    /// Datagrams or messages; 0 for TCP streams.
    pub messages: u64,
    /// When the first byte was moved, nanoseconds after the start; absent when none was.
    pub first_ns: Option<u64>,
    /// When the last byte was moved, nanoseconds after the start.
    pub last_ns: Option<u64>,
    /// The series, about 100 ms apart.
    pub series: Vec<IntervalSample>,
}

/// What one end reports of its own traffic after a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndReport {
    /// Which end.
    pub role: Role,
    /// What this end sent, when it was a sender.
    pub sent: Option<Flow>,
    /// What this end received, when it was a receiver.
    pub received: Option<Flow>,
    /// One entry for each stream or flow; with more than 1024 streams, one for each group of streams.
    pub streams: Vec<StreamReport>,
    /// How evenly the streams were served, when there are several: of what each sent, or received at an end that sends nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<StreamFairness>,
    /// How the TCP connections were set up, at the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionReport>,
    /// Datagrams counted one by one, at a UDP receiver.
    pub datagrams: Option<DatagramReport>,
    /// How datagrams were handed to the kernel, at the sender of a `udp-stream`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams_sent: Option<DatagramSendReport>,
    /// Packets of a `pps` workload, at an end with kernel bypass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketReport>,
    /// testpmd's report, at an end where testpmd is the generator or receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpdk: Option<DpdkReport>,
    /// Round trips, at the client of a request-response workload.
    pub round_trips: Option<RoundTripReport>,
    /// Other measurements under load, at the client of `loaded-latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under_load: Option<UnderLoad>,
    /// Probes, one by one, and a fine series of bulk data, of `failover`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverReport>,
    /// Stamped round trips of a request-response workload with time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<StampReport>,
    /// Completions of zero-copy sends, at a sender with the engine `zerocopy` or `io-uring`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_copy: Option<ZeroCopyReport>,
    /// Errors that send and receive calls returned, by call and kind. They are data, not failures of the program.
    pub errors: Vec<ErrorCount>,
    /// CPU time of the agent's process during the traffic, nanoseconds: user and system.
    pub process_cpu_ns: (u64, u64),
    /// Core time of the threads that moved the traffic; absent when the kernel does not account for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_use: Option<ThreadUse>,
}

impl EndReport {
    /// Of an end that moved and counted nothing.
    pub fn new(role: Role) -> Self {
        Self {
            role,
            sent: None,
            received: None,
            streams: Vec::new(),
            fairness: None,
            connections: None,
            datagrams: None,
            datagrams_sent: None,
            packets: None,
            dpdk: None,
            round_trips: None,
            under_load: None,
            failover: None,
            stamps: None,
            zero_copy: None,
            errors: Vec::new(),
            process_cpu_ns: (0, 0),
            thread_use: None,
        }
    }
}

/// Threads and their cores, as the scheduler accounts for it (`/proc/thread-self/schedstat`, all threads together).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// Threads.
    pub threads: u32,
    /// Time on a core, nanoseconds.
    pub run_ns: u64,
    /// Time runnable but not scheduled, nanoseconds (run delay).
    pub run_delay_ns: u64,
}

/// Completions of zero-copy sends: the kernel reports for each that it no longer uses the memory, and whether it copied the data
/// (`SO_EE_CODE_ZEROCOPY_COPIED`, `IORING_NOTIF_USAGE_ZC_COPIED`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ZeroCopyReport {
    /// Send calls that the kernel accepted, of all streams.
    pub sends: u64,
    /// Of these, completed sends. Fewer when the end was aborted while some were outstanding.
    pub completions: u64,
    /// Of the completed sends, those whose data the kernel copied.
    pub copied: u64,
    /// Send calls that the kernel deferred until earlier ones complete (`ENOBUFS`, `ENOMEM`: net.core.optmem_max, RLIMIT_MEMLOCK).
    pub deferred: u64,
}

impl ZeroCopyReport {
    /// Adds those of another thread or trial. Those of a run file may be any numbers.
    pub fn add(&mut self, other: Self) {
        self.sends = self.sends.saturating_add(other.sends);
        self.completions = self.completions.saturating_add(other.completions);
        self.copied = self.copied.saturating_add(other.copied);
        self.deferred = self.deferred.saturating_add(other.deferred);
    }
}

/// The largest number of entries for streams. With more streams, those whose indexes are equal modulo this number share an entry.
pub const STREAM_REPORTS_MAX: usize = 1024;

/// What the streams of an end moved, one by one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamFairness {
    /// Number of streams.
    pub count: u32,
    /// Payload of the stream with the fewest bytes.
    pub min_bytes: u64,
    /// Payload of the median stream (of two, the smaller), bytes.
    pub median_bytes: u64,
    /// Payload of the stream with the most bytes.
    pub max_bytes: u64,
    /// Jain's fairness index, 1/count to 1: (sum of x)^2 / (count x sum of x^2); 1 means equal shares. Absent when nothing moved.
    pub jain_index: Option<f64>,
}

/// How the TCP connections of a trial were set up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectionReport {
    /// From the first connect(2) until all were connected and the server had answered on each, nanoseconds. As many as
    /// `concurrency` are set up at a time.
    pub elapsed_ns: u64,
    /// Threads that set connections up.
    pub concurrency: u32,
    /// The time of each connect(2), from SYN to established, nanoseconds.
    pub connect: HistogramRecord,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// One stream or flow, or a group of streams: then bytes and counts are sums, and what cannot be summed is that of the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StreamReport {
    /// Index of the stream, the same at both ends.
    pub index: u32,
    /// Number of streams in this entry.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub members: u32,
    /// Payload bytes sent by this end.
    pub sent_bytes: u64,
    /// Payload bytes received by this end.
    pub received_bytes: u64,
    /// Core that the thread was pinned to.
    pub core: Option<u16>,
    /// This end's address and port, of a UDP flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    /// The other end's, as this end sees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// Core on which the kernel processed the last packet that came in on a UDP flow (`SO_INCOMING_CPU`): where the queues of the
    /// NIC or RPS have sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incoming_core: Option<u16>,
    /// The kernel's account of the connection at its end; absent for UDP.
    pub tcp: Option<TcpInfo>,
    /// Where both ends wait by busy polling: the NAPI instance that this end's packets came from (`SO_INCOMING_NAPI_ID`). 0:
    /// from a device without one, so the kernel could not poll it and waited as with `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi_id: Option<u32>,
}

impl Default for StreamReport {
    fn default() -> Self {
        Self {
            index: 0,
            members: 1,
            sent_bytes: 0,
            received_bytes: 0,
            core: None,
            local: None,
            peer: None,
            incoming_core: None,
            tcp: None,
            napi_id: None,
        }
    }
}

impl StreamReport {
    /// Adds another stream to this group.
    pub fn take_in(&mut self, other: &Self) {
        self.members = self.members.saturating_add(other.members);
        self.sent_bytes = self.sent_bytes.saturating_add(other.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(other.received_bytes);
        match (&mut self.tcp, &other.tcp) {
            (Some(all), Some(other)) => all.take_in(other),
            (all, other) => *all = all.take().or_else(|| other.clone()),
        }
    }
}

/// The parts of the kernel's `struct tcp_info` (include/uapi/linux/tcp.h) that explain a result.
/// A field that the running kernel does not have is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TcpInfo {
    /// Congestion control in use.
    pub congestion: Option<String>,
    /// Sender's maximum segment size, bytes.
    pub snd_mss: Option<u32>,
    /// Path MTU, bytes.
    pub pmtu: Option<u32>,
    /// Smoothed round trip, microseconds.
    pub rtt_us: Option<u32>,
    /// Its variation, microseconds.
    pub rttvar_us: Option<u32>,
    /// Minimum round trip, microseconds.
    pub min_rtt_us: Option<u32>,
    /// Congestion window at the end, segments.
    pub snd_cwnd: Option<u32>,
    /// Retransmitted segments, whole connection.
    pub retransmits: Option<u32>,
    /// Spurious retransmits: the peer reported that it had received the segment before (DSACK, RFC 2883).
    pub dsack_dups: Option<u32>,
    /// Segments considered lost at the end.
    pub lost: Option<u32>,
    /// Reordering that was seen, segments.
    pub reord_seen: Option<u32>,
    /// Segments sent.
    pub segs_out: Option<u32>,
    /// Segments received.
    pub segs_in: Option<u32>,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: Option<u64>,
    /// Bytes received in order.
    pub bytes_received: Option<u64>,
    /// Size of the send buffer at the end, as the kernel accounts for it, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<u64>,
    /// The window that this end offers its peer at the end, bytes; Linux 6.2 and later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rcv_wnd: Option<u32>,
    /// Time with data in flight, microseconds.
    pub busy_us: Option<u64>,
    /// Of this, time limited by the peer's receive window, microseconds.
    pub rwnd_limited_us: Option<u64>,
    /// Of this, time limited by the send buffer, microseconds.
    pub sndbuf_limited_us: Option<u64>,
}

impl TcpInfo {
    /// Adds the counts and times of another connection. What cannot be summed stays as it is.
    fn take_in(&mut self, other: &Self) {
        let sum = |all: &mut Option<u32>, other: Option<u32>| {
            *all = all.zip(other).map(|(all, other)| all.saturating_add(other));
        };
        sum(&mut self.retransmits, other.retransmits);
        sum(&mut self.dsack_dups, other.dsack_dups);
        sum(&mut self.lost, other.lost);
        sum(&mut self.segs_out, other.segs_out);
        sum(&mut self.segs_in, other.segs_in);
        let sum = |all: &mut Option<u64>, other: Option<u64>| {
            *all = all.zip(other).map(|(all, other)| all.saturating_add(other));
        };
        sum(&mut self.bytes_acked, other.bytes_acked);
        sum(&mut self.bytes_received, other.bytes_received);
        sum(&mut self.busy_us, other.busy_us);
        sum(&mut self.rwnd_limited_us, other.rwnd_limited_us);
        sum(&mut self.sndbuf_limited_us, other.sndbuf_limited_us);
    }
}

/// Datagrams as a UDP receiver counted them, to the packet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DatagramReport {
    /// Different datagrams that arrived.
    pub unique: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Datagrams that arrived after one with a higher sequence number (RFC 4737 section 3.3), without duplicates.
    pub reordered: u64,
    /// Datagrams older than the window in which duplicates are recognized: neither received nor duplicate.
    pub outside_window: u64,
    /// Datagrams with a wrong size or header: they are not of this trial.
    pub unexpected: u64,
    /// For each flow the highest sequence number that arrived, plus one.
    pub next_sequence: Vec<u64>,
    /// Interarrival jitter (RFC 3550 section 6.4.1) at the end of the trial, mean over flows, nanoseconds.
    pub jitter_ns: Option<f64>,
    /// Buffers that the kernel dropped because the socket's own buffer was full (`SO_MEMINFO`). Each is a datagram, unless
    /// the receiver takes merged ones.
    pub socket_drops: Option<u64>,
    /// Buffers in which the datagrams came: fewer than datagrams when the kernel merged them (`UDP_GRO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u64>,
    /// The flows one by one, in the order of their indices; empty in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowReport>,
}

/// The datagrams of one flow as its receiver counted them.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FlowReport {
    /// Different datagrams that arrived.
    pub unique: u64,
    /// Interarrival jitter (RFC 3550 section 6.4.1) at the end of the trial, nanoseconds; absent for datagrams without send times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<f64>,
    /// Receive buffer that the kernel granted to the socket, in the measure of the request (`SO_RCVBUF`), bytes; absent without a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
}

/// How the sender of a `udp-stream` handed its datagrams to the kernel, all flows together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DatagramSendReport {
    /// Calls in which the kernel took datagrams.
    pub calls: u64,
    /// Datagrams handed over in one call at most: the length of a burst.
    pub burst_max: u32,
    /// Calls that the kernel refused for want of room (`ENOBUFS`, `EAGAIN`): back-pressure. What was refused was sent later, so
    /// it is no loss.
    pub refused: u64,
    /// With a rate: how late each burst of the steady window left, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_error: Option<HistogramRecord>,
}

/// Round trips as the client counted them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundTripReport {
    /// Requests sent.
    pub requests: u64,
    /// Responses received.
    pub responses: u64,
    /// Requests without a response within the timeout.
    pub timeouts: u64,
    /// Every round trip of the steady window that was not stamped, nanoseconds. In an open loop from the scheduled time.
    pub histogram: HistogramRecord,
    /// In an open loop: how late each request left, nanoseconds.
    pub pacing_error: Option<HistogramRecord>,
    /// Round-trip median and maximum per interval, for the time series.
    pub series: Vec<RoundTripSample>,
    /// Round trips that began in the steady window of the idle part, where a trial has one before its load; `histogram` holds
    /// those under load then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<HistogramRecord>,
    /// The parts of each, where each is a transaction on a connection of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<TransactionParts>,
}

/// The parts of transactions that each have a connection of their own; what they leave of the whole is the close.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TransactionParts {
    /// Transactions that were started.
    pub attempted: u64,
    /// Of these, transactions that ended with an error, counted by call among the errors of the end, or reached the timeout.
    pub failed: u64,
    /// From the connect call to its return (SYN, SYN-ACK), nanoseconds. Those of the steady window, as all histograms here.
    pub connect: HistogramRecord,
    /// From the first byte of the request to the last of the response, nanoseconds.
    pub exchange: HistogramRecord,
    /// Congestion control in use on a connection of the client; absent without a completed connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// What the client of a loaded path measured beside its probes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UnderLoad {
    /// Transactions on new connections: connect, request, response.
    pub foreign: TransactionParts,
    /// Requests sent in the data of a connection that carries load.
    pub in_band_requests: u64,
    /// Their round trips in the steady window, nanoseconds from the scheduled time.
    pub in_band: HistogramRecord,
}

/// Round trips in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RoundTripSample {
    /// End of the interval, nanoseconds after the start.
    pub end_ns: u64,
    /// Round trips completed.
    pub count: u64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// Maximum, nanoseconds.
    pub max_ns: u64,
}

/// How often a call failed in one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorCount {
    /// The system call, for example `sendmmsg`.
    pub call: String,
    /// The error's name and text, for example `ENOBUFS: no buffer space available`.
    pub error: String,
    /// Number of times.
    pub count: u64,
}

/// Call and text of the entry for connections whose data the peer had not acknowledged when an end was over.
pub const UNACKNOWLEDGED: (&str, &str) = ("close", "unacknowledged data was discarded");

/// Text of the entry of an open loop with requests that were not sent soon after its end.
pub const LEFT_UNSENT: &str = "requests left unsent: the request rate is higher than this host can send";

/// Figures of a running trial, for the progress line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveFigures {
    /// Nanoseconds since the start; of traffic that is over, until the last byte was moved.
    pub elapsed_ns: u64,
    /// Payload bytes sent so far.
    pub sent_bytes: u64,
    /// Payload bytes received so far.
    pub received_bytes: u64,
    /// Datagrams received or round trips completed so far.
    pub messages: u64,
    /// Retransmitted segments so far of this end's TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Congestion window of this end's TCP connections together, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwnd_bytes: Option<u64>,
    /// Datagrams that have not arrived at this receiver so far, of those up to the newest of each flow. Less when some come late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Interarrival jitter at this moment (RFC 3550, section 6.4.1), the mean over flows, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
    /// Round trips since the last figures; absent when none was completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<LiveRoundTrips>,
}

/// Recent round trips of a running trial. Percentiles are exact to one step of [`Self::STEPS`]. They are up to 0.1 s older than the
/// other figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LiveRoundTrips {
    /// Number of round trips.
    pub count: u64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Maximum, nanoseconds.
    pub max_ns: u64,
}

impl LiveRoundTrips {
    /// Steps of the percentiles in each power of two: few, so that the thread that measures counts and empties them quickly. A
    /// percentile is at most one step too high.
    pub const STEPS: u64 = 128;
}
