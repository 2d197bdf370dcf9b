//! What can be compared between two arms: each metric with its unit, its better direction and its words.
use crate::word::word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A figure of one trial that a verdict can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Payload bits per second that the receiver counted in the steady window, all streams together.
    Throughput,
    /// Datagrams per second that the receiver counted in the steady window.
    DatagramRate,
    /// Packets per second that the receiver's interface counted, from the first to the last arrival: what travelled, where one
    /// packet may carry many datagrams (segmentation offload) or a part of one (IP fragments).
    PacketRate,
    /// Highest rate without loss that a search of `pps` found, packets per second that arrive at it (RFC 9971's conditional
    /// throughput of the goal whose loss ratio is 0).
    NoDropRate,
    /// Highest rate with no more than a small loss that a search of `pps` found, packets per second that arrive at it.
    PartialDropRate,
    /// Share of the datagrams sent that never reached the receiver's program.
    Loss,
    /// Interarrival jitter at the receiver (RFC 3550 section 6.4.1), nanoseconds.
    Jitter,
    /// Median round trip, nanoseconds.
    LatencyP50,
    /// 99th percentile of the round trip, nanoseconds.
    LatencyP99,
    /// 99.9th percentile of the round trip, nanoseconds.
    LatencyP999,
    /// Median round trip of the probes of `loaded-latency` before the load, nanoseconds.
    LatencyIdleP50,
    /// Median round trip of its probes under load, nanoseconds.
    LatencyLoadedP50,
    /// 99th percentile of the round trip of its probes under load, nanoseconds.
    LatencyLoadedP99,
    /// Round trips per minute under load (RPM), after draft-ietf-ippm-responsiveness; `docs/methodology.md` says how it differs.
    Responsiveness,
    /// Round trips per second that were completed.
    RoundTripRate,
    /// CPU seconds per gigabyte (10^9 bytes) received: all cores of both hosts, each machine once.
    CpuPerGigabyte,
    /// CPU microseconds per round trip: all cores of both hosts, each machine once.
    CpuPerRoundTrip,
    /// CPU microseconds per datagram received: all cores of both hosts, each machine once.
    CpuPerDatagram,
    /// Retransmitted segments per gigabyte received.
    RetransmitsPerGigabyte,
    /// Longest time without a probe after an event of `failover`, less the probes' pace: of all events and both directions,
    /// nanoseconds.
    Outage,
    /// Probes of `failover` that were sent and never arrived, both directions together.
    LostInOutage,
    /// Longest time from an event of `failover` until the streams have 90 % of the rate that they had before, or of what the path
    /// then gives if that is less, nanoseconds.
    RecoveryTime,
}

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better: a rate.
    Higher,
    /// Less is better: a delay, a loss, a cost.
    Lower,
}

/// How two arms are set against each other in a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// By the ratio within a block: the metric is never zero.
    Ratio,
    /// By the difference within a block: the metric may be zero.
    Difference,
}

impl Metric {
    /// All metrics, in the order in which tables show them.
    pub const ALL: [Self; 22] = [
        Self::Throughput,
        Self::DatagramRate,
        Self::PacketRate,
        Self::NoDropRate,
        Self::PartialDropRate,
        Self::RoundTripRate,
        Self::LatencyP50,
        Self::LatencyP99,
        Self::LatencyP999,
        Self::LatencyIdleP50,
        Self::LatencyLoadedP50,
        Self::LatencyLoadedP99,
        Self::Responsiveness,
        Self::Jitter,
        Self::Loss,
        Self::Outage,
        Self::LostInOutage,
        Self::RecoveryTime,
        Self::CpuPerGigabyte,
        Self::CpuPerDatagram,
        Self::CpuPerRoundTrip,
        Self::RetransmitsPerGigabyte,
    ];

    /// The words for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::DatagramRate => "datagrams delivered",
            Self::PacketRate => "packets on the interface",
            Self::NoDropRate => "rate without loss",
            Self::PartialDropRate => "rate with little loss",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
            Self::LatencyP50 => "round trip p50",
            Self::LatencyP99 => "round trip p99",
            Self::LatencyP999 => "round trip p99.9",
            Self::LatencyIdleP50 => "idle round trip p50",
            Self::LatencyLoadedP50 => "loaded round trip p50",
            Self::LatencyLoadedP99 => "loaded round trip p99",
            Self::Responsiveness => "responsiveness",
            Self::RoundTripRate => "round trips",
            Self::CpuPerGigabyte => "CPU per GB",
            Self::CpuPerRoundTrip => "CPU per round trip",
            Self::CpuPerDatagram => "CPU per datagram",
            Self::RetransmitsPerGigabyte => "retransmits per GB",
            Self::Outage => "outage",
            Self::LostInOutage => "probes lost",
            Self::RecoveryTime => "recovery of throughput",
        }
    }

    /// The words for people in a workload of packets, where each datagram is a packet.
    pub fn packet_title(self) -> &'static str {
        match self {
            Self::DatagramRate => "packets delivered",
            Self::CpuPerDatagram => "CPU per packet",
            _ => self.title(),
        }
    }

    /// The name in plans, JSON and CSV, for example `latency-p50`.
    pub fn key(self) -> &'static str {
        word(&self)
    }

    /// The unit of the stored number.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "bit/s",
            Self::DatagramRate
            | Self::PacketRate
            | Self::NoDropRate
            | Self::PartialDropRate
            | Self::RoundTripRate => "/s",
            Self::Loss => "fraction",
            Self::Responsiveness => "/min",
            Self::CpuPerGigabyte => "s/GB",
            Self::CpuPerRoundTrip | Self::CpuPerDatagram => "us",
            Self::RetransmitsPerGigabyte => "segments/GB",
            Self::LostInOutage => "probes",
            Self::Jitter
            | Self::Outage
            | Self::RecoveryTime
            | Self::LatencyP50
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::LatencyIdleP50
            | Self::LatencyLoadedP50
            | Self::LatencyLoadedP99 => "ns",
        }
    }

    /// Whether it is a time that a round trip takes.
    pub fn is_latency(self) -> bool {
        matches!(
            self,
            Self::LatencyP50
                | Self::LatencyP99
                | Self::LatencyP999
                | Self::LatencyIdleP50
                | Self::LatencyLoadedP50
                | Self::LatencyLoadedP99
        )
    }

    /// Whether it comes from the round trips that began in the steady window.
    pub fn is_of_round_trips(self) -> bool {
        self == Self::RoundTripRate || self.is_latency() && self != Self::LatencyIdleP50
    }

    /// Whether it is CPU time per unit of work.
    pub fn is_cpu(self) -> bool {
        matches!(self, Self::CpuPerGigabyte | Self::CpuPerRoundTrip | Self::CpuPerDatagram)
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        match self {
            Self::Throughput
            | Self::DatagramRate
            | Self::PacketRate
            | Self::NoDropRate
            | Self::PartialDropRate
            | Self::RoundTripRate
            | Self::Responsiveness => Better::Higher,
            _ => Better::Lower,
        }
    }

    /// How arms are compared in it.
    pub fn scale(self) -> Scale {
        match self {
            Self::Loss
            | Self::RetransmitsPerGigabyte
            | Self::Outage
            | Self::LostInOutage
            | Self::RecoveryTime => Scale::Difference,
            _ => Scale::Ratio,
        }
    }

    /// A value of this metric for people, with its unit.
    pub fn human(self, value: f64) -> String {
        use crate::units::{count, human_bit_rate, human_nanos, human_si, three_digits};
        match self {
            Self::Throughput => human_bit_rate(value),
            Self::DatagramRate
            | Self::PacketRate
            | Self::NoDropRate
            | Self::PartialDropRate
            | Self::RoundTripRate => human_si(value, "/s"),
            Self::Loss => format!("{} %", three_digits(value * 100.0)),
            Self::Responsiveness if value < 999.5 => format!("{} RPM", three_digits(value)),
            Self::Responsiveness => format!("{value:.0} RPM"),
            // The title names the unit: `probes lost`.
            Self::LostInOutage => count(value),
            Self::Jitter
            | Self::Outage
            | Self::RecoveryTime
            | Self::LatencyP50
            | Self::LatencyP99
            | Self::LatencyP999
            | Self::LatencyIdleP50
            | Self::LatencyLoadedP50
            | Self::LatencyLoadedP99 => human_nanos(value),
            Self::CpuPerGigabyte => format!("{} s/GB", three_digits(value)),
            Self::CpuPerRoundTrip | Self::CpuPerDatagram => format!("{} us", three_digits(value)),
            Self::RetransmitsPerGigabyte => format!("{} /GB", three_digits(value)),
        }
    }
}
