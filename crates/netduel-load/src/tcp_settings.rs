//! What all TCP streams of an end have in common. Pure.
use netduel_model::workload::TcpEngine;

/// Settings of one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpSettings {
    pub engine: TcpEngine,
    /// Bytes handed to the kernel in one call.
    pub block: usize,
    /// Payload rate of all streams, bit/s; `None` is without limit.
    pub rate_bps: Option<u64>,
    /// Payload of all streams after which this direction ends, bytes.
    pub volume: Option<u64>,
    /// Size of both buffers, bytes; `None` lets the kernel choose.
    pub window: Option<usize>,
    pub streams: u32,
    pub duration_ns: u64,
    /// Another thread of this end works on the other direction.
    pub both: bool,
}
