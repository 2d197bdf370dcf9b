//! Titles and values of metrics. In workloads of packets each datagram is a packet, and rates are in pps.
use netduel_model::metric::Metric;
use netduel_model::units::human_si;
use netduel_model::workload::Traffic;

/// The unit of packets per second, with SI prefixes: `kpps`, `Mpps`.
pub const PPS: &str = "pps";

/// The title of a metric: [`Metric::title`], or the one for packets.
pub fn metric_title(metric: Metric, of_packets: bool) -> &'static str {
    title_of(of_packets)(metric)
}

/// The titles of metrics in a workload, by [`is_of_packets`].
pub fn title_of(of_packets: bool) -> fn(Metric) -> &'static str {
    if of_packets { Metric::packet_title } else { Metric::title }
}

/// A value for people, with its unit.
pub fn metric_value(metric: Metric, of_packets: bool, value: f64) -> String {
    match (metric, of_packets) {
        (Metric::DatagramRate | Metric::PacketRate | Metric::NoDropRate | Metric::PartialDropRate, true) => {
            packet_rate(value)
        }
        _ => metric.human(value),
    }
}

/// A rate of packets: `812 pps`, `620 kpps`, `44.2 Mpps`.
pub fn packet_rate(per_second: f64) -> String {
    human_si(per_second, PPS)
}

/// Whether a workload measures packets.
pub fn is_of_packets(traffic: &Traffic) -> bool {
    traffic.facts().is_of_packets()
}
