//! The raw figures of one run in the JSON file. Derives nothing.
use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The values that the tool reports.
    pub reading: Reading,
    /// The CPU time.
    pub cost: Cost,
    /// The interface counters.
    pub interface: Interface,
}

/// The values that a tool reports of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Duration as measured by the tool, seconds.
    pub seconds: f64,
    /// Payload bytes at the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Datagrams or requests sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Datagrams delivered, or round trips completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Full round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// Injected stall only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
}

/// Full round trips, nanoseconds.
#[expect(clippy::struct_field_names, reason = "each field says its unit, as everywhere in stored figures")]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Median.
    pub p50_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// Mean.
    pub mean_ns: f64,
}

/// Accuracy of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests sent.
    pub requests: u64,
    /// Requests scheduled until the end of the duration or, if later, until the last one left.
    pub scheduled: f64,
    /// Median lateness, nanoseconds.
    pub pacing_p50_ns: f64,
    /// 99th percentile of lateness, nanoseconds.
    pub pacing_p99_ns: f64,
    /// Requests of the schedule that the client reports as unsent: its host cannot send so many. Absent in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_unsent: Option<u64>,
}

/// Effect of a stop of the server on the histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Time between the signals that stopped and continued the server, nanoseconds.
    pub length_ns: f64,
    /// Longest round trip, nanoseconds.
    pub longest_ns: f64,
    /// Round trips longer than half the stall.
    pub slow: u64,
    /// Requests due in the first half of the stall: their round trips are longer than half the stall.
    pub slow_due: f64,
}

/// Counters of the kernel at both ends of the veth during a run, for all traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Packets sent by the client's interface.
    pub packets_out: u64,
    /// Their bytes with Ethernet headers.
    pub bytes_out: u64,
    /// Packets that the client's interface dropped, which it does not count as sent: the backlog of a core was full. Absent in files of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_out: Option<u64>,
    /// Packets received by the server's interface.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
}
