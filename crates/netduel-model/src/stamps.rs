//! Round trips that were time-stamped: their parts, what is missing of them, and one-way delay. Raw counts of one end.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::recorded::HistogramRecord;
use crate::word::word;

/// Bytes that a response needs to carry the server's times over TCP; over UDP [`STAMPED_UDP_BYTES`]. In smaller ones the
/// server's parts stay at the server, and there is no one-way delay.
pub const STAMPED_TCP_BYTES: u64 = 48;
/// As [`STAMPED_TCP_BYTES`], for UDP, whose messages begin with 16 bytes of header.
pub const STAMPED_UDP_BYTES: u64 = 64;

/// A part of a round trip. From send call to return of the receive call they follow each other without a gap, but for the
/// network's part, which is what the client's kernel waited less what the server held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Open loop only: from the scheduled time to the client's send call.
    ScheduleDelay,
    /// From the client's send call to the transmit stamp of its kernel.
    ClientSend,
    /// Between the kernels' stamps, both ways: drivers, NICs, switches, wires.
    Network,
    /// The same and the server's time in it, where responses are too small to carry the server's times.
    NetworkAndServer,
    /// From the receive stamp of the server's kernel to the server's program: queues, wake-up, copy.
    ServerReceive,
    /// In the server's program.
    ServerProgram,
    /// From the server's send call to the transmit stamp of its kernel.
    ServerSend,
    /// From the receive stamp of the client's kernel to the client's program.
    ClientReceive,
}

impl Part {
    /// All parts, in the order of a round trip.
    pub const ALL: [Self; 8] = [
        Self::ScheduleDelay,
        Self::ClientSend,
        Self::Network,
        Self::NetworkAndServer,
        Self::ServerReceive,
        Self::ServerProgram,
        Self::ServerSend,
        Self::ClientReceive,
    ];

    /// The words for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::ScheduleDelay => "behind schedule",
            Self::ClientSend => "client, program to wire",
            Self::Network => "network, both ways",
            Self::NetworkAndServer => "network and server",
            Self::ServerReceive => "server, wire to program",
            Self::ServerProgram => "server's program",
            Self::ServerSend => "server, program to wire",
            Self::ClientReceive => "client, wire to program",
        }
    }

    /// The name in JSON.
    pub fn key(self) -> &'static str {
        word(&self)
    }
}

/// The stamped round trips of one end of a trial. Only those of the steady window are counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StampReport {
    /// Stamped requests that were answered.
    pub stamped: u64,
    /// Of these, those that have all their stamps and whose parts add up: they make the histograms of parts.
    pub complete: u64,
    /// Missing time stamps, by location. A round trip may lack several.
    pub missing: MissingStamps,
    /// Round trips with all stamps whose parts do not add up to the whole.
    pub inconsistent: u64,
    /// Round trips in which the wall clock, on which kernels stamp, was stepped; they are excluded.
    pub clock_steps: u64,
    /// At the client: every stamped round trip whole, nanoseconds. Those of the workload's histogram are not stamped, so the
    /// difference of the two is what a transmit stamp costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<HistogramRecord>,
    /// The parts, in the order of a round trip, nanoseconds.
    pub parts: Vec<PartRecord>,
    /// At the client: the parts' sums by length of the whole, so that one can say of what the typical and of what the slow
    /// round trips consist. Ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<StampLevel>,
    /// The time between this end's transmit and receive stamps by the NIC's own clock, nanoseconds; absent when the NIC's
    /// stamping is not enabled. At the client that is network and server, at the server what the server held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HistogramRecord>,
    /// At the client: the one-way delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWayReport>,
}

/// Missing time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MissingStamps {
    /// Of the client's kernel when it sent.
    pub client_transmit: u64,
    /// Of the client's kernel when it received; over TCP also those of segments that the kernel had joined with others.
    pub client_receive: u64,
    /// Of the server's kernel when it received; as `client_receive`.
    pub server_receive: u64,
    /// Of the server's kernel when it sent. It travels with the next stamped response, so the last is never known.
    pub server_transmit: u64,
}

/// A part of all complete round trips.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartRecord {
    /// Which.
    pub part: Part,
    /// Nanoseconds.
    pub histogram: HistogramRecord,
}

/// The parts of the complete round trips of about one length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StampLevel {
    /// The longest round trip of this level, nanoseconds. Levels are the same in all trials, an eighth of an octave wide.
    pub round_trip_max_ns: u64,
    /// Round trips.
    pub count: u64,
    /// Sum of each part over them, nanoseconds, in the order of `parts`. Together they are the sum of the wholes.
    pub sums_ns: Vec<u64>,
}

/// One-way delay between the kernels' stamps, and how wrong it may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OneWayReport {
    /// From the client's transmit stamp to the server's receive stamp, nanoseconds.
    pub up: HistogramRecord,
    /// From the server's transmit stamp to the client's receive stamp, nanoseconds.
    pub down: HistogramRecord,
    /// Every delay may be wrong by this much, up and down in opposite directions, nanoseconds: how well the offset between the
    /// two clocks is known. It is one value for the trial, since the offset is.
    pub error_ns: u64,
    /// How the clocks were brought together.
    pub clocks: Clocks,
    /// The server's monotonic clock less the client's in the middle of the trial, nanoseconds: as far as the starts of two
    /// machines are apart.
    pub offset_ns: i64,
    /// How fast the server's clock ran away from the client's, billionths.
    pub drift_ppb: f64,
    /// Exchanges with a negative time by the estimated clocks, recorded in the histograms as 0.
    pub negative: u64,
}

/// How the clocks of both ends were brought together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Clocks {
    /// Both ends read one clock: same boot of one machine, and no exchange contradicts it.
    Shared,
    /// The offset was estimated from the exchanges of the trial.
    Estimated,
}
