//! What can be compared between two arms: each metric with its unit, its better direction and its words.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failover::{FINE_INTERVAL_NS, PROBE_RATE};
use crate::units::{almost_whole, count, human_bit_rate, human_nanos, human_si, three_digits};
use crate::word::word;
use crate::workload::work_unit::WorkUnit;

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
    /// Share of the datagrams sent that never reached the receiver's program; of `udp-rr` and `icmp-rr` share of the requests without a
    /// response in time.
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
    /// CPU nanoseconds per round trip: all cores of both hosts, each machine once.
    CpuPerRoundTrip,
    /// CPU nanoseconds per datagram received: all cores of both hosts, each machine once.
    CpuPerDatagram,
    /// Retransmitted segments per gigabyte received.
    RetransmitsPerGigabyte,
    /// Longest time without a probe after an event of `failover`, minus the probe interval: of all events and both
    /// directions, nanoseconds.
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

/// What a metric measures: its unit and its form for people follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// A rate of payload, bit/s.
    BitRate,
    /// Datagrams or packets per second.
    DatagramRate,
    /// Round trips or transactions per second.
    RequestRate,
    /// A part of the datagrams or requests sent, a fraction.
    Share,
    /// The time of a round trip, nanoseconds.
    Latency,
    /// Another length of time, nanoseconds.
    Length,
    /// Round trips per minute.
    Responsiveness,
    /// CPU seconds per gigabyte.
    CpuPerByte,
    /// CPU nanoseconds per datagram, packet, round trip or transaction.
    CpuPerMessage,
    /// Segments per gigabyte.
    Segments,
    /// A number of probes.
    Probes,
}

/// How two arms are compared in a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Compared {
    /// By [`Scale::Ratio`].
    Ratio,
    /// By [`Scale::Difference`]; a smaller difference is never relevant, whatever the baseline's median is. In the metric's unit.
    Difference { margin_min: f64 },
}

/// The facts of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    title: &'static str,
    /// Its title in workloads with this unit of work, where it is another one.
    title_in: Option<(WorkUnit, &'static str)>,
    quantity: Quantity,
    better: Better,
    compared: Compared,
}

impl Row {
    const fn new(title: &'static str, quantity: Quantity, better: Better, compared: Compared) -> Self {
        Self { title, title_in: None, quantity, better, compared }
    }

    const fn titled(self, unit: WorkUnit, title: &'static str) -> Self {
        Self { title_in: Some((unit, title)), ..self }
    }
}

/// A loss of 1 datagram or request in 1000.
const LOSS_MARGIN: Compared = Compared::Difference { margin_min: 0.001 };
/// One segment or probe.
const COUNT_MARGIN: Compared = Compared::Difference { margin_min: 1.0 };
/// The default interval between probes: shorter outages are not visible.
const OUTAGE_MARGIN: Compared = Compared::Difference { margin_min: 1e9 / PROBE_RATE.0 as f64 };
/// One interval of the series in which a recovery is seen.
const RECOVERY_MARGIN: Compared = Compared::Difference { margin_min: FINE_INTERVAL_NS as f64 };

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

    /// The table of metrics.
    fn row(self) -> Row {
        use Better::{Higher, Lower};
        use Compared::Ratio;
        use Quantity::{
            BitRate, CpuPerByte, CpuPerMessage, DatagramRate, Latency, Length, Probes, RequestRate, Segments,
            Share,
        };
        use WorkUnit::{Packet, Transaction};
        let row = Row::new;
        match self {
            Self::Throughput => row("throughput", BitRate, Higher, Ratio),
            Self::DatagramRate => {
                row("datagrams delivered", DatagramRate, Higher, Ratio).titled(Packet, "packets delivered")
            }
            Self::PacketRate => row("packets on the interface", DatagramRate, Higher, Ratio),
            Self::NoDropRate => row("rate without loss", DatagramRate, Higher, Ratio),
            Self::PartialDropRate => row("rate with little loss", DatagramRate, Higher, Ratio),
            Self::Loss => row("loss", Share, Lower, LOSS_MARGIN),
            Self::Jitter => row("jitter", Length, Lower, Ratio),
            Self::LatencyP50 => row("round trip p50", Latency, Lower, Ratio),
            Self::LatencyP99 => row("round trip p99", Latency, Lower, Ratio),
            Self::LatencyP999 => row("round trip p99.9", Latency, Lower, Ratio),
            Self::LatencyIdleP50 => row("idle round trip p50", Latency, Lower, Ratio),
            Self::LatencyLoadedP50 => row("loaded round trip p50", Latency, Lower, Ratio),
            Self::LatencyLoadedP99 => row("loaded round trip p99", Latency, Lower, Ratio),
            Self::Responsiveness => row("responsiveness", Quantity::Responsiveness, Higher, Ratio),
            Self::RoundTripRate => {
                row("round trips", RequestRate, Higher, Ratio).titled(Transaction, "transactions")
            }
            Self::CpuPerGigabyte => row("CPU per GB", CpuPerByte, Lower, Ratio),
            Self::CpuPerRoundTrip => row("CPU per round trip", CpuPerMessage, Lower, Ratio)
                .titled(Transaction, "CPU per transaction"),
            Self::CpuPerDatagram => {
                row("CPU per datagram", CpuPerMessage, Lower, Ratio).titled(Packet, "CPU per packet")
            }
            Self::RetransmitsPerGigabyte => row("retransmits per GB", Segments, Lower, COUNT_MARGIN),
            Self::Outage => row("outage", Length, Lower, OUTAGE_MARGIN),
            Self::LostInOutage => row("probes lost", Probes, Lower, COUNT_MARGIN),
            Self::RecoveryTime => row("recovery of throughput", Length, Lower, RECOVERY_MARGIN),
        }
    }

    /// The words for people.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// The words for people in a workload with this unit of work.
    pub fn title_in(self, unit: WorkUnit) -> &'static str {
        match self.row().title_in {
            Some((of, title)) if of == unit => title,
            _ => self.title(),
        }
    }

    /// What it measures.
    pub fn quantity(self) -> Quantity {
        self.row().quantity
    }

    /// The name in plans, JSON and CSV, for example `latency-p50`.
    pub fn key(self) -> &'static str {
        word(&self)
    }

    /// The unit of the stored number.
    pub fn unit(self) -> &'static str {
        match self.quantity() {
            Quantity::BitRate => "bit/s",
            Quantity::DatagramRate | Quantity::RequestRate => "/s",
            Quantity::Share => "fraction",
            Quantity::Latency | Quantity::Length | Quantity::CpuPerMessage => "ns",
            Quantity::Responsiveness => "/min",
            Quantity::CpuPerByte => "s/GB",
            Quantity::Segments => "segments/GB",
            Quantity::Probes => "probes",
        }
    }

    /// Whether it comes from the round trips that began in the steady window.
    pub fn is_of_round_trips(self) -> bool {
        match self.quantity() {
            Quantity::RequestRate => true,
            Quantity::Latency => self != Self::LatencyIdleP50,
            _ => false,
        }
    }

    /// Whether it is CPU time per unit of work.
    pub fn is_cpu(self) -> bool {
        matches!(self.quantity(), Quantity::CpuPerByte | Quantity::CpuPerMessage)
    }

    /// Which way is better.
    pub fn better(self) -> Better {
        self.row().better
    }

    /// How arms are compared in it.
    pub fn scale(self) -> Scale {
        match self.row().compared {
            Compared::Ratio => Scale::Ratio,
            Compared::Difference { .. } => Scale::Difference,
        }
    }

    /// The least difference that is relevant, in the unit of the metric; absent for [`Scale::Ratio`].
    pub fn margin_min(self) -> Option<f64> {
        match self.row().compared {
            Compared::Ratio => None,
            Compared::Difference { margin_min } => Some(margin_min),
        }
    }

    /// A value of this metric for people, with its unit.
    pub fn human(self, value: f64) -> String {
        match self.quantity() {
            Quantity::BitRate => human_bit_rate(value),
            Quantity::DatagramRate | Quantity::RequestRate => human_si(value, "/s"),
            Quantity::Share => {
                let percent = value * 100.0;
                format!("{} %", almost_whole(percent).unwrap_or_else(|| three_digits(percent)))
            }
            Quantity::Latency | Quantity::Length => human_nanos(value),
            Quantity::Responsiveness if value < 999.5 => format!("{} RPM", three_digits(value)),
            Quantity::Responsiveness => format!("{value:.0} RPM"),
            Quantity::CpuPerByte => format!("{} s/GB", three_digits(value)),
            Quantity::CpuPerMessage if value >= 999_500.0 => human_nanos(value),
            Quantity::CpuPerMessage => format!("{} us", three_digits(value / 1e3)),
            Quantity::Segments => format!("{} /GB", three_digits(value)),
            // The title names the unit: `probes lost`.
            Quantity::Probes => count(value),
        }
    }
}
