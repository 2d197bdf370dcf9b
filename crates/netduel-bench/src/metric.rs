//! The compared metrics, and how each is derived from a run.
use serde::{Deserialize, Serialize};

use crate::cost::Accounting;
use crate::outcome::Outcome;

/// A metric of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Payload at the receiver, bit/s.
    Throughput,
    /// CPU seconds of both ends per 10^9 payload bytes at the receiver.
    CpuPerGigabyte,
    /// Datagrams accepted by the sender's kernel, per second.
    Sent,
    /// Datagrams received by the receiver's program, per second.
    Delivered,
    /// Packets sent by the client's interface, per second.
    PacketsOut,
    /// Packets received by the server's interface, per second.
    PacketsIn,
    /// Packets received by the server's interface, divided by the datagrams that the tool counted as sent.
    PacketsPerSent,
    /// CPU microseconds of both ends per delivered datagram.
    CpuPerDatagram,
    /// CPU microseconds of both ends per packet received by the server's interface.
    CpuPerPacket,
    /// Median round trip, nanoseconds.
    P50,
    /// 99th percentile of round trips, nanoseconds.
    P99,
    /// Mean round trip, nanoseconds.
    Mean,
    /// CPU microseconds of both ends per round trip.
    CpuPerRoundTrip,
    /// Transactions completed, each on a connection of its own, per second.
    TransactionRate,
    /// CPU microseconds of both ends per transaction.
    CpuPerTransaction,
    /// Sent requests divided by scheduled requests.
    ScheduleKept,
    /// Median lateness of requests, nanoseconds.
    PacingP50,
    /// 99th percentile of the lateness of requests, nanoseconds.
    PacingP99,
    /// Longest round trip divided by the length of the injected stall.
    StallLongest,
    /// Number of round trips longer than half the stall, divided by the number expected from the schedule.
    StallShown,
}

impl Metric {
    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::CpuPerGigabyte => "CPU per GB",
            Self::Sent => "datagrams sent",
            Self::Delivered => "datagrams delivered",
            Self::PacketsOut => "packets out",
            Self::PacketsIn => "packets in",
            Self::PacketsPerSent => "packets in / datagrams sent",
            Self::CpuPerDatagram => "CPU per datagram",
            Self::CpuPerPacket => "CPU per packet",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::CpuPerRoundTrip => "CPU per round trip",
            Self::TransactionRate => "transactions",
            Self::CpuPerTransaction => "CPU per transaction",
            Self::ScheduleKept => "schedule kept",
            Self::PacingP50 => "pacing error p50",
            Self::PacingP99 => "pacing error p99",
            Self::StallLongest => "longest / stall",
            Self::StallShown => "slow round trips / due",
        }
    }

    /// A value with its unit.
    pub fn show(self, value: f64) -> String {
        use netduel_model::units::{human_bit_rate, human_nanos, human_si, three_digits};
        match self {
            Self::Throughput => human_bit_rate(value),
            Self::CpuPerGigabyte => format!("{} s", three_digits(value)),
            Self::Sent | Self::Delivered | Self::PacketsOut | Self::PacketsIn | Self::TransactionRate => {
                human_si(value, "/s")
            }
            Self::CpuPerDatagram | Self::CpuPerPacket | Self::CpuPerRoundTrip | Self::CpuPerTransaction => {
                format!("{} us", three_digits(value))
            }
            Self::P50 | Self::P99 | Self::Mean | Self::PacingP50 | Self::PacingP99 => human_nanos(value),
            Self::PacketsPerSent | Self::ScheduleKept | Self::StallLongest | Self::StallShown => {
                format!("{value:.4}")
            }
        }
    }

    /// The value of a run; absent when the tool does not report the necessary counts.
    pub fn of(self, outcome: &Outcome, accounting: Accounting) -> Option<f64> {
        let reading = &outcome.reading;
        let per_second = |count: Option<u64>| Some(count? as f64 / reading.seconds);
        let micros_per = |count: Option<u64>| {
            let count = count.filter(|count| *count > 0)? as f64;
            Some(outcome.cost.counted_s(accounting) * 1e6 / count)
        };
        let value = match self {
            Self::Throughput => reading.bytes? as f64 * 8.0 / reading.seconds,
            Self::CpuPerGigabyte => {
                let bytes = reading.bytes.filter(|bytes| *bytes > 0)? as f64;
                outcome.cost.counted_s(accounting) / (bytes / 1e9)
            }
            Self::Sent => per_second(reading.sent)?,
            Self::Delivered | Self::TransactionRate => per_second(reading.delivered)?,
            Self::PacketsOut => per_second(Some(outcome.interface.packets_out))?,
            Self::PacketsIn => per_second(Some(outcome.interface.packets_in))?,
            Self::PacketsPerSent => {
                outcome.interface.packets_in as f64 / reading.sent.filter(|sent| *sent > 0)? as f64
            }
            Self::CpuPerDatagram | Self::CpuPerRoundTrip | Self::CpuPerTransaction => {
                micros_per(reading.delivered)?
            }
            Self::CpuPerPacket => micros_per(Some(outcome.interface.packets_in))?,
            Self::P50 => reading.latency.as_ref()?.p50_ns?,
            Self::P99 => reading.latency.as_ref()?.p99_ns?,
            Self::Mean => reading.latency.as_ref()?.mean_ns,
            Self::ScheduleKept => {
                let open = reading.open_loop.as_ref()?;
                open.requests as f64 / open.scheduled
            }
            Self::PacingP50 => reading.open_loop.as_ref()?.pacing_p50_ns,
            Self::PacingP99 => reading.open_loop.as_ref()?.pacing_p99_ns,
            Self::StallLongest => {
                let stall = reading.stall.as_ref()?;
                stall.longest_ns / stall.length_ns
            }
            Self::StallShown => {
                let stall = reading.stall.as_ref()?;
                stall.slow as f64 / stall.slow_due
            }
        };
        value.is_finite().then_some(value)
    }
}

/// The kind of traffic, which determines the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bulk data over TCP.
    Stream,
    /// Datagrams in one direction.
    Datagrams,
    /// Requests and responses, one at a time.
    RoundTrips,
    /// Transactions, each on a TCP connection of its own.
    Transactions,
    /// Requests on a schedule.
    OpenLoop,
    /// Requests during a stall of the server.
    Stall,
}

impl Kind {
    /// The metrics in the order of the tables.
    pub fn metrics(self) -> &'static [Metric] {
        match self {
            Self::Stream => &[Metric::Throughput, Metric::CpuPerGigabyte],
            Self::Datagrams => &[
                Metric::Sent,
                Metric::Delivered,
                Metric::PacketsOut,
                Metric::PacketsIn,
                Metric::PacketsPerSent,
                Metric::CpuPerDatagram,
                Metric::CpuPerPacket,
            ],
            Self::RoundTrips => &[Metric::P50, Metric::P99, Metric::Mean, Metric::CpuPerRoundTrip],
            Self::Transactions => &[Metric::TransactionRate, Metric::CpuPerTransaction],
            Self::OpenLoop => {
                &[Metric::ScheduleKept, Metric::PacingP50, Metric::PacingP99, Metric::P50, Metric::P99]
            }
            Self::Stall => &[Metric::StallLongest, Metric::StallShown, Metric::P50, Metric::P99],
        }
    }
}
