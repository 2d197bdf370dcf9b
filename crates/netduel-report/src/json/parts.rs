//! Parts that several documents have: latency histograms, points of a series, settings of a workload, stamps.
use netduel_model::metric::Metric;
use netduel_model::stamps::{Clocks, Part as StampPart};
use netduel_model::workload::{
    Direction, Family, TcpEngine, UdpOffload, Unit, Wait, Wire, WorkUnit, WorkloadType,
};
use netduel_model::{packet_path, workload};
use netduel_stats::histogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

use crate::analysis;
use crate::words;

/// A distribution of times.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Latency {
    /// Number of times.
    pub count: u64,
    /// Minimum; null without any.
    pub min_ns: Option<u64>,
    /// Maximum.
    pub max_ns: Option<u64>,
    /// Mean.
    pub mean_ns: Option<f64>,
    /// Percentiles, ascending, to the largest time.
    pub percentiles: Vec<Percentile>,
}

/// A percentile.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Percentile {
    /// Percentile, 0 to 100.
    pub percentile: f64,
    /// The time that this share does not exceed.
    pub value_ns: u64,
}

impl Latency {
    /// Of a histogram of nanoseconds.
    pub(super) fn of(histogram: &Histogram) -> Self {
        let percentiles = histogram
            .cdf_tail()
            .into_iter()
            .map(|(percentile, value_ns)| Percentile { percentile, value_ns });
        Self {
            count: histogram.count(),
            min_ns: histogram.min(),
            max_ns: histogram.max(),
            mean_ns: histogram.mean(),
            percentiles: percentiles.collect(),
        }
    }
}

/// Seconds as whole nanoseconds; a time before the start is 0.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// A point of a series over the time within a trial, over all valid trials. The key of the series names the unit of the values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// Middle of the interval, after the start of a trial.
    pub time_ns: u64,
    /// Median over the trials.
    pub median: f64,
    /// Minimum of a trial.
    pub min: f64,
    /// Maximum of a trial.
    pub max: f64,
    /// Trials with a value.
    pub trials: u32,
}

impl Point {
    pub(super) fn all(points: &[analysis::SeriesPoint]) -> Vec<Self> {
        let point = |point: &analysis::SeriesPoint| Self {
            time_ns: nanoseconds(point.time_s),
            median: point.median,
            min: point.min,
            max: point.max,
            trials: point.trials,
        };
        points.iter().map(point).collect()
    }
}

/// Packets of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueuePackets {
    /// Number of the queue.
    pub queue: u32,
    /// Packets.
    pub packets: u64,
}

impl QueuePackets {
    pub(super) fn all<'a>(queues: impl IntoIterator<Item = (&'a u32, &'a u64)>) -> Vec<Self> {
        queues.into_iter().map(|(queue, packets)| Self { queue: *queue, packets: *packets }).collect()
    }
}

/// Packets of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CorePackets {
    /// Number of the core.
    pub core: u16,
    /// Packets.
    pub packets: u64,
}

impl CorePackets {
    pub(super) fn all<'a>(cores: impl IntoIterator<Item = (&'a u16, &'a u64)>) -> Vec<Self> {
        cores.into_iter().map(|(core, packets)| Self { core: *core, packets: *packets }).collect()
    }
}

/// A workload with every default written out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Workload {
    /// Name in the plan.
    pub name: String,
    /// Type, as in a plan.
    #[serde(rename = "type")]
    pub kind: WorkloadType,
    /// The settings in one sentence, for people.
    pub text: String,
    /// IP version.
    pub family: Family,
    /// From the first to the last send of a trial; of a search, the limit of its time.
    pub duration_ns: u64,
    /// Time that is cut from the beginning.
    pub warmup_ns: u64,
    /// Time that is cut from the end.
    pub cooldown_ns: u64,
    /// Which end sends the payload; null when neither end counts any.
    pub direction: Option<Direction>,
    /// How TCP streams move bytes in and out of the kernel; null without TCP streams.
    pub engine: Option<TcpEngine>,
    /// TCP congestion control that the plan sets; null for the host's default.
    pub congestion: Option<String>,
    /// How both ends wait for messages; null for workloads without round trips.
    pub wait: Option<Wait>,
    /// Segmentation offload of datagrams; null for other traffic.
    pub offload: Option<UdpOffload>,
    /// Generator of the packets of a packet workload; null for others.
    pub generator: Option<packet_path::PacketEngine>,
    /// Receiver of the packets of a packet workload; null for others.
    pub receiver: Option<packet_path::PacketReceiver>,
    /// Whether the kernels time-stamp some of the round trips.
    pub timestamps: bool,
    /// Cores of the threads at the client.
    pub pin_client: Pinning,
    /// Cores of the threads at the server.
    pub pin_server: Pinning,
    /// Settings that are quantities, with the keys of a plan. A quantity that the plan leaves out is left out here.
    pub quantities: Vec<Quantity>,
    /// Keys of the metrics that get a verdict, in the order of the plan.
    pub metrics: Vec<Metric>,
}

/// The cores of the threads of one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pinning {
    /// Cores of the plan; thread i runs on core i modulo their number. Empty when the plan names none.
    pub cores: Vec<u16>,
    /// Whether the host chooses the cores itself.
    pub auto: bool,
}

/// A setting that is a quantity.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Quantity {
    /// Key of the setting in a plan.
    pub key: &'static str,
    /// Value.
    pub value: f64,
    /// Unit of the value.
    pub unit: QuantityUnit,
}

/// Unit of a setting: the same words as the units of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum QuantityUnit {
    /// A number of things.
    #[serde(rename = "count")]
    Count,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Ns,
    /// Bits per second.
    #[serde(rename = "bit/s")]
    BitRate,
    /// Events per second.
    #[serde(rename = "/s")]
    PerSecond,
    /// A fraction, 0 to 1.
    #[serde(rename = "fraction")]
    Fraction,
}

impl Quantity {
    fn of((key, value, unit): (&'static str, u64, Unit)) -> Self {
        let (value, unit) = match unit {
            Unit::Count | Unit::Port => (value as f64, QuantityUnit::Count),
            Unit::Bytes | Unit::ByteCount => (value as f64, QuantityUnit::Bytes),
            Unit::Duration => (value as f64, QuantityUnit::Ns),
            Unit::BitRate => (value as f64, QuantityUnit::BitRate),
            Unit::PerSecond => (value as f64, QuantityUnit::PerSecond),
            // The range counts parts of a million.
            Unit::Share => (value as f64 / 1e6, QuantityUnit::Fraction),
        };
        Self { key, value, unit }
    }
}

impl Workload {
    /// Of a workload as it is run.
    pub fn of(workload: &workload::Workload) -> Self {
        let facts = workload.traffic.facts();
        let is_of_messages = matches!(facts.unit, WorkUnit::RoundTrip | WorkUnit::Transaction);
        let pinning = |cores: &[u16], auto| Pinning { cores: cores.to_vec(), auto };
        Self {
            name: workload.name.to_string(),
            kind: workload.traffic.kind(),
            text: words::workload(workload),
            family: workload.family,
            duration_ns: workload.timing.duration.0,
            warmup_ns: workload.timing.warmup.0,
            cooldown_ns: workload.timing.cooldown.0,
            direction: facts.payload,
            engine: facts.tcp.engine,
            congestion: facts.tcp.congestion.map(str::to_owned),
            wait: (is_of_messages || facts.is_datagram_stream()).then_some(facts.wait),
            offload: workload
                .traffic
                .facts()
                .flows
                .map(|udp| udp.offload)
                .filter(|_| facts.wire != Wire::Segments),
            generator: facts.packets.map(|packets| packets.engine),
            receiver: facts.packets.map(|packets| packets.receiver),
            timestamps: facts.is_stamped,
            pin_client: pinning(&workload.pin_client, workload.pin_auto.client),
            pin_server: pinning(&workload.pin_server, workload.pin_auto.server),
            quantities: workload.quantities().into_iter().map(Quantity::of).collect(),
            metrics: workload.metrics.clone(),
        }
    }
}

/// Round trips split into parts by kernel time stamps.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stamps {
    /// Stamped round trips in the steady windows.
    pub stamped: u64,
    /// Stamped round trips with all stamps, whose parts add up.
    pub complete: u64,
    /// Stamps that did not arrive.
    pub missing: MissingStamps,
    /// Round trips whose parts do not add up.
    pub inconsistent: u64,
    /// Round trips in which the wall clock was stepped.
    pub clock_steps: u64,
    /// Mean parts of the middle half of the round trips; null when there are too few.
    pub middle_half: Option<Composition>,
    /// Mean parts of the slowest hundredth.
    pub slowest_hundredth: Option<Composition>,
    /// Parts as the client measured them, in the order of a round trip.
    pub parts: Vec<StampedPart>,
    /// Parts that only the server knows.
    pub server_parts: Vec<StampedPart>,
    /// Stamped minus unstamped round trips: the cost of a transmit stamp.
    pub cost: Option<StampCost>,
    /// Network and server by the clock of the client's NIC; null without hardware stamps.
    pub hardware: Option<Latency>,
    /// Time that the server held a request, by the clock of its NIC.
    pub server_hardware: Option<Latency>,
    /// One-way delays; null when the clocks could not be compared.
    pub one_way: Option<OneWay>,
}

/// Stamps that did not arrive, by location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingStamps {
    /// Transmit stamps of the client.
    pub client_transmit: u64,
    /// Receive stamps of the client.
    pub client_receive: u64,
    /// Receive stamps of the server.
    pub server_receive: u64,
    /// Transmit stamps of the server.
    pub server_transmit: u64,
}

/// A mean round trip and its parts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Composition {
    /// The whole: the sum of the parts.
    pub mean_ns: f64,
    /// Round trips that the mean is of. It is a fraction when a level of the histogram counts in part.
    pub count: f64,
    /// The parts, in the order of a round trip.
    pub parts: Vec<MeanPart>,
}

/// The mean of a part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MeanPart {
    /// Which part.
    pub part: StampPart,
    /// Its mean.
    pub mean_ns: f64,
}

/// The distribution of a part.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StampedPart {
    /// Which part.
    pub part: StampPart,
    /// Its times.
    pub latency: Latency,
}

/// The cost of a transmit stamp: median of stamped round trips minus the median of the others, by trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StampCost {
    /// Median over the trials.
    pub median_ns: f64,
    /// Minimum of a trial.
    pub min_ns: f64,
    /// Maximum of a trial.
    pub max_ns: f64,
    /// Trials.
    pub trials: usize,
}

/// One-way delays with their error.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OneWay {
    /// Maximum error of a delay, in the worst trial.
    pub error_ns: u64,
    /// How the clocks of both ends were compared.
    pub clocks: Clocks,
    /// Exchanges with a delay below zero.
    pub negative: u64,
    /// Client to server.
    pub client_to_server: Latency,
    /// Server to client.
    pub server_to_client: Latency,
}

impl Stamps {
    pub(super) fn of(stamps: &analysis::Stamps) -> Self {
        let parts = |parts: &[(StampPart, Histogram)]| {
            parts.iter().map(|(part, of)| StampedPart { part: *part, latency: Latency::of(of) }).collect()
        };
        let composition = |composition: &analysis::Composition| Composition {
            mean_ns: composition.whole_ns,
            count: composition.count,
            parts: composition.parts.iter().map(|&(part, mean_ns)| MeanPart { part, mean_ns }).collect(),
        };
        Self {
            stamped: stamps.stamped,
            complete: stamps.complete,
            missing: MissingStamps {
                client_transmit: stamps.missing.client_transmit,
                client_receive: stamps.missing.client_receive,
                server_receive: stamps.missing.server_receive,
                server_transmit: stamps.missing.server_transmit,
            },
            inconsistent: stamps.inconsistent,
            clock_steps: stamps.clock_steps,
            middle_half: stamps.typical.as_ref().map(composition),
            slowest_hundredth: stamps.slow.as_ref().map(composition),
            parts: parts(&stamps.parts),
            server_parts: parts(&stamps.server_parts),
            cost: stamps.cost.map(|cost| StampCost {
                median_ns: cost.median_ns,
                min_ns: cost.min_ns,
                max_ns: cost.max_ns,
                trials: cost.trials,
            }),
            hardware: stamps.hardware.as_ref().map(Latency::of),
            server_hardware: stamps.server_hardware.as_ref().map(Latency::of),
            one_way: stamps.one_way.as_ref().map(|one_way| OneWay {
                error_ns: one_way.error_ns,
                clocks: one_way.clocks,
                negative: one_way.negative,
                client_to_server: Latency::of(&one_way.up),
                server_to_client: Latency::of(&one_way.down),
            }),
        }
    }
}

/// A known limit of the rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Expected {
    /// The limit; of traffic both ways, the sum of both.
    pub rate_bps: f64,
    /// Whose limit it is, and the source.
    pub source: String,
    /// Why the figure may be wrong; null when nothing is known against it.
    pub doubt: Option<String>,
}

impl Expected {
    pub(super) fn of(expected: &analysis::Expected) -> Self {
        Self { rate_bps: expected.bps, source: expected.whose.clone(), doubt: expected.doubt.clone() }
    }
}

/// An interval of a quick test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// Start, after the start of the test.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Payload received, both directions together.
    pub bytes: u64,
    /// Payload that the server received; null unless both ends send.
    pub to_server_bytes: Option<u64>,
    /// Payload that the client received; null unless both ends send.
    pub to_client_bytes: Option<u64>,
    /// Payload rate received; null for an interval without length.
    pub rate_bps: Option<f64>,
    /// Datagrams or packets received, or round trips completed.
    pub messages: u64,
    /// Retransmitted segments; null where the kernel does not count them.
    pub retransmits: Option<u64>,
    /// Congestion windows of the senders at the end of the interval, all connections together.
    pub cwnd_bytes: Option<u64>,
    /// Lost datagrams: those that have not arrived. A reordered datagram makes a later interval's number smaller.
    pub lost: Option<u64>,
    /// Jitter at the end of the interval (RFC 3550), of two directions the larger one; null with segmentation offload.
    pub jitter_ns: Option<u64>,
    /// Round trips of the interval; null without any.
    pub round_trips: Option<IntervalRoundTrips>,
}

/// Round trips of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IntervalRoundTrips {
    /// Number of round trips.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

impl Interval {
    /// Of an interval as it is printed.
    pub fn of(interval: &crate::quick::Interval) -> Self {
        let seconds = interval.end_s - interval.start_s;
        Self {
            start_ns: nanoseconds(interval.start_s),
            end_ns: nanoseconds(interval.end_s),
            bytes: interval.bytes,
            to_server_bytes: interval.by_direction.map(|[to_server, _]| to_server),
            to_client_bytes: interval.by_direction.map(|[_, to_client]| to_client),
            rate_bps: (seconds > 0.0).then(|| interval.bytes as f64 * 8.0 / seconds),
            messages: interval.messages,
            retransmits: interval.retransmits,
            cwnd_bytes: interval.cwnd_bytes,
            lost: interval.lost,
            jitter_ns: interval.jitter_ns,
            round_trips: interval.round_trips.map(|trips| IntervalRoundTrips {
                count: trips.count,
                p50_ns: trips.p50_ns,
                p99_ns: trips.p99_ns,
                max_ns: trips.max_ns,
            }),
        }
    }
}
