//! The configured rate of a workload, and whether it was reached.
use netduel_model::metric::Metric;
use netduel_model::trial::Trial;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::{Direction, PacedRate, Traffic, Workload};

use super::super::figures;
use crate::words;

/// From this share on, the configured rate was reached.
pub(super) const RATE_REACHED: f64 = 0.98;

/// The configured rate, and the rate received in the steady window, bit/s. A rate so low that less than one message is due is
/// reached without sending.
pub(super) fn configured_rate(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let facts = workload.traffic.facts();
    let PacedRate { rate, burst, .. } = facts.paced?;
    let ways = if facts.bulk == Some(Direction::Both) { 2.0 } else { 1.0 };
    let configured = rate.0 as f64 * ways;
    let due = configured / 8.0 * workload.timing.duration.0 as f64 / 1e9;
    let reached = figures::value_of(Metric::Throughput, workload, trial, false);
    Some((configured, reached.unwrap_or(if due < burst as f64 { configured } else { 0.0 })))
}

/// The configured requests per second, and the round trips per second that began in the steady window.
pub(super) fn configured_requests(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let requests = workload.traffic.facts().requests.filter(|requests| !requests.are_probes)?;
    let configured = requests.rate?.0 as f64;
    let reached = figures::value_of(Metric::RoundTripRate, workload, trial, false)?;
    Some((configured, reached))
}

/// The missed rate in words; absent without a configured rate, or when it was reached.
pub fn missed_rate(workload: &Workload, trial: &Trial) -> Option<String> {
    let missed = |(configured, reached): &(f64, f64)| *reached < configured * RATE_REACHED;
    let words = |configured: String, reached: String| format!("{reached} of the configured {configured}");
    let bits = configured_rate(workload, trial).filter(missed);
    let requests = configured_requests(workload, trial).filter(missed);
    let human = |bps: f64| human_rate(&workload.traffic, bps);
    bits.map(|(configured, reached)| words(human(configured), human(reached))).or_else(|| {
        requests.map(|(configured, reached)| words(human_si(configured, "/s"), human_si(reached, "/s")))
    })
}

/// A payload rate for people; of packets as packets per second.
pub(super) fn human_rate(traffic: &Traffic, bps: f64) -> String {
    match traffic.facts().packet_bytes() {
        Some(bytes) => words::packet_rate(bps / 8.0 / bytes as f64),
        None => human_bit_rate(bps),
    }
}
