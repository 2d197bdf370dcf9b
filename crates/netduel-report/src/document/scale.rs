//! Units that make numbers short, for the plots and their tables.
use netduel_model::metric::{Metric, Quantity};
use netduel_model::units::three_digits;
use serde_json::{Value, json};

use crate::analysis::MetricAnalysis;

use super::table::Cell;

/// A unit and its factor: numbers are multiplied by `factor`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) factor: f64,
    pub(crate) unit: &'static str,
}

/// The unit in which the largest value of a metric has one to three digits before the point.
pub(crate) fn scaled(metric: Metric, values: impl Iterator<Item = f64>) -> Scaled {
    let max = values.map(f64::abs).fold(0.0, f64::max);
    let choose = |steps: &[(f64, &'static str)]| {
        let (size, unit) = steps.iter().rev().find(|(size, _)| max >= *size).copied().unwrap_or(steps[0]);
        Scaled { factor: 1.0 / size, unit }
    };
    match metric.quantity() {
        Quantity::BitRate => {
            choose(&[(1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")])
        }
        Quantity::DatagramRate | Quantity::RequestRate => choose(&[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")]),
        Quantity::Responsiveness => choose(&[(1.0, "RPM"), (1e3, "k RPM")]),
        Quantity::Latency | Quantity::Length => choose(&[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")]),
        Quantity::Share => Scaled { factor: 100.0, unit: "%" },
        Quantity::CpuPerMessage => Scaled { factor: 1e-3, unit: "us" },
        Quantity::CpuPerByte | Quantity::Probes | Quantity::Segments => {
            Scaled { factor: 1.0, unit: metric.unit() }
        }
    }
}

/// The unit of a metric's values over all arms.
pub(crate) fn scaled_values(metric: &MetricAnalysis) -> Scaled {
    let values = metric.arms.iter().flat_map(|arm| arm.values.iter().map(|(_, value)| *value));
    if metric.is_packet_rate() { scaled_packets(values) } else { scaled(metric.metric, values) }
}

/// The unit of rates of packets.
pub(crate) fn scaled_packets(rates: impl Iterator<Item = f64>) -> Scaled {
    let max = rates.map(f64::abs).fold(0.0, f64::max);
    let (size, unit) = match max {
        max if max >= 1e6 => (1e6, "Mpps"),
        max if max >= 1e3 => (1e3, "kpps"),
        _ => (1.0, "pps"),
    };
    Scaled { factor: 1.0 / size, unit }
}

/// Four significant digits: enough for a screen, and a third of the bytes.
pub(crate) fn short(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return json!(if value == 0.0 { Some(0.0) } else { None });
    }
    let digits = 10_f64.powi(3 - value.abs().log10().floor() as i32);
    json!((value * digits).round() / digits)
}

/// A number in the unit of a scale; empty when absent.
pub(crate) fn number(value: Option<f64>, scale: Scaled) -> Cell {
    Cell::number(value.map(|value| three_digits(value * scale.factor)))
}

impl Scaled {
    /// A value for a plot.
    pub(crate) fn plotted(self, value: f64) -> Value {
        short(value * self.factor)
    }
}
