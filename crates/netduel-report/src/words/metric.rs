//! Values of metrics. In workloads of packets each datagram is a packet, and rates are in pps.
use netduel_model::metric::{Metric, Quantity};
use netduel_model::units::human_si;
use netduel_model::workload::WorkUnit;

use crate::analysis::Bound;

/// The unit of packets per second, with SI prefixes: `kpps`, `Mpps`.
pub const PPS: &str = "pps";

/// A value for people, with its unit, in a workload with this unit of work.
pub fn metric_value(metric: Metric, unit: WorkUnit, value: f64) -> String {
    if is_packet_rate(metric, unit) { packet_rate(value) } else { metric.human(value) }
}

/// Whether a metric is in packets per second in a workload with this unit of work.
pub fn is_packet_rate(metric: Metric, unit: WorkUnit) -> bool {
    metric.quantity() == Quantity::DatagramRate && unit == WorkUnit::Packet
}

/// The same for a value that may be a bound: `>= 750 ms`.
pub fn metric_value_or_bound(metric: Metric, unit: WorkUnit, value: f64, bound: Option<Bound>) -> String {
    bound.map_or("", Bound::sign).to_owned() + &metric_value(metric, unit, value)
}

/// A rate of packets: `812 pps`, `620 kpps`, `44.2 Mpps`.
pub fn packet_rate(per_second: f64) -> String {
    human_si(per_second, PPS)
}
