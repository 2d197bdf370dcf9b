//! The unit of work of a workload: what its costs and counters are divided by.

/// What the costs and counters of a workload are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkUnit {
    /// 10^9 bytes received.
    Byte,
    /// A datagram received.
    Datagram,
    /// A packet received: a datagram of a workload about packets.
    Packet,
    /// A completed round trip.
    RoundTrip,
    /// A completed transaction.
    Transaction,
}

impl WorkUnit {
    /// The unit of CPU time by it.
    pub fn cpu(self) -> &'static str {
        match self {
            Self::Byte => "s/GB",
            Self::Datagram => "us/datagram",
            Self::Packet => "us/packet",
            Self::RoundTrip => "us/round trip",
            Self::Transaction => "us/transaction",
        }
    }

    /// The unit of events by it.
    pub fn events(self) -> &'static str {
        match self {
            Self::Byte => "/GB",
            Self::Datagram => "/1000 datagrams",
            Self::Packet => "/1000 packets",
            Self::RoundTrip => "/1000 round trips",
            Self::Transaction => "/1000 transactions",
        }
    }

    /// Whether the client counts it, as completed requests; otherwise the receivers do.
    pub fn is_request(self) -> bool {
        matches!(self, Self::RoundTrip | Self::Transaction)
    }
}
