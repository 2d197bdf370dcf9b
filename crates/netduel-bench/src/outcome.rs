//! The raw figures of one run, as they are written to the JSON file. Derives nothing.
use serde::{Deserialize, Serialize};

use crate::cost::Cost;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What the tool reports.
    pub reading: Reading,
    /// What it cost.
    pub cost: Cost,
    /// What the interfaces counted.
    pub interface: Interface,
}

/// What a tool reports of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// Its own time base, seconds.
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
    /// Of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// Of an injected stall.
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

/// How an open loop kept its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Requests sent.
    pub requests: u64,
    /// Requests that the schedule has until the duration is over or, when that is later, the last one left.
    pub scheduled: f64,
    /// How late they left, median, nanoseconds.
    pub pacing_p50_ns: f64,
    /// How late they left, 99th percentile, nanoseconds.
    pub pacing_p99_ns: f64,
}

/// What a stop of the server shows in the histogram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Time between the signals that stopped the server and let it go on, nanoseconds.
    pub length_ns: f64,
    /// Longest round trip, nanoseconds.
    pub longest_ns: f64,
    /// Round trips longer than half the stall.
    pub slow: u64,
    /// Requests that were due in the first half of the stall, which cannot be answered sooner.
    pub slow_due: f64,
}

/// What the kernel counted at the two ends of the veth during a run, whatever sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Packets sent by the client's interface.
    pub packets_out: u64,
    /// Their bytes, with Ethernet headers.
    pub bytes_out: u64,
    /// Packets received by the server's interface.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
}
