//! Settings of workloads that are requests and responses.
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Direction, TcpEngine, Timing, Wait};
use crate::units::{Bytes, Nanos, PerSecond};

/// Settings of a request-response workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Bytes of a request, and of its response.
    pub size: Bytes,
    /// Requests under way at a time in a closed loop.
    pub outstanding: u32,
    /// How both ends wait for a message.
    pub wait: Wait,
    /// `None`: closed loop, the next request follows a response. Otherwise an open loop: requests leave on a schedule of
    /// this rate and each round trip is counted from its scheduled time.
    pub rate: Option<PerSecond>,
    /// Whether some of the requests are time-stamped by the kernels, which splits their round trips into parts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timestamps: bool,
    /// Congestion control of the connection of `tcp-rr`, as the kernel names it; `None` leaves the host's default (which is recorded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// Settings of transactions that each have a connection of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transaction {
    /// Bytes of a request.
    pub request: Bytes,
    /// Bytes of a response.
    pub response: Bytes,
    /// Transactions under way at a time; in an open loop at most.
    pub outstanding: u32,
    /// How both ends wait.
    pub wait: Wait,
    /// `None`: closed loop, the next transaction follows the end of one. Otherwise an open loop: transactions begin on a
    /// schedule of this rate, and each is counted from its scheduled time.
    pub rate: Option<PerSecond>,
    /// Congestion control of its TCP connections, as the kernel names it; `None` leaves the host's default (which is recorded).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
}

/// Settings of round trips on a path that is idle first and then loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadedLatency {
    /// TCP connections that make the load; one more carries round trips in its own stream of data.
    pub streams: u32,
    /// Who sends the load.
    pub direction: Direction,
    /// Bytes of the load handed to the kernel in one call.
    pub block: Bytes,
    /// How the load is moved in and out of the kernel.
    pub engine: TcpEngine,
    /// Congestion control of the load, as the kernel names it; `None` leaves the host's default (which is recorded).
    pub congestion: Option<String>,
    /// What the probes travel in.
    pub probe: ProbeProtocol,
    /// Bytes of a probe, and of its response.
    pub size: Bytes,
    /// The schedule of the probes; each counts from its scheduled time.
    pub rate: PerSecond,
    /// How long the path is idle before the load begins.
    pub idle: Nanos,
}

impl LoadedLatency {
    /// The steady window of the idle part, nanoseconds after the start. Warm-up and cool-down are cut from each part.
    pub fn idle_window(&self, timing: &Timing) -> Range<u64> {
        timing.warmup.0..self.idle.0.saturating_sub(timing.cooldown.0)
    }

    /// The steady window of the loaded part, nanoseconds after the start.
    pub fn loaded_window(&self, timing: &Timing) -> Range<u64> {
        let from = self.idle.0.saturating_add(timing.warmup.0);
        from..timing.duration.0.saturating_sub(timing.cooldown.0)
    }
}

/// What a probe travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProbeProtocol {
    /// UDP datagrams: one that is lost is lost.
    #[default]
    Udp,
    /// A TCP connection of their own: one that is lost is sent again, and those behind it wait.
    Tcp,
}
