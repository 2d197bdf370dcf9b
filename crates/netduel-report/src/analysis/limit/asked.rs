//! What a workload asks for, and whether it was reached.
use netduel_model::metric::Metric;
use netduel_model::trial::Trial;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::{Direction, PacedRate, Traffic, Workload};

use super::super::figures;
use crate::words;

/// From this share of the rate that was asked for on, it was reached.
pub(super) const RATE_REACHED: f64 = 0.98;

/// The rate that the workload asks for and what arrived of it in the steady window. So low a rate that less than one message
/// was due is reached by sending nothing.
pub(super) fn asked_rate(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let facts = workload.traffic.facts();
    let PacedRate { rate, burst, .. } = facts.paced?;
    let ways = if facts.bulk == Some(Direction::Both) { 2.0 } else { 1.0 };
    let asked = rate.0 as f64 * ways;
    let due = asked / 8.0 * workload.timing.duration.0 as f64 / 1e9;
    let reached = figures::value_of(Metric::Throughput, workload, trial, false);
    Some((asked, reached.unwrap_or(if due < burst as f64 { asked } else { 0.0 })))
}

/// The requests a second that the workload asks for, and the round trips a second that began in the steady window.
pub(super) fn asked_requests(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let requests = workload.traffic.facts().requests.filter(|requests| !requests.are_probes)?;
    let asked = requests.rate?.0 as f64;
    let reached = figures::value_of(Metric::RoundTripRate, workload, trial, false)?;
    Some((asked, reached))
}

/// What was asked for and not reached, in words; absent when nothing was asked for, or it was reached.
pub fn missed_rate(workload: &Workload, trial: &Trial) -> Option<String> {
    let missed = |(asked, reached): &(f64, f64)| *reached < asked * RATE_REACHED;
    let told = |asked: String, reached: String| format!("{reached} of the configured {asked}");
    let bits = asked_rate(workload, trial).filter(missed);
    let requests = asked_requests(workload, trial).filter(missed);
    let human = |bps: f64| human_rate(&workload.traffic, bps);
    bits.map(|(asked, reached)| told(human(asked), human(reached)))
        .or_else(|| requests.map(|(asked, reached)| told(human_si(asked, "/s"), human_si(reached, "/s"))))
}

/// A payload rate for people; of packets as packets per second.
pub(super) fn human_rate(traffic: &Traffic, bps: f64) -> String {
    match traffic.facts().packet_bytes() {
        Some(bytes) => words::packet_rate(bps / 8.0 / bytes as f64),
        None => human_bit_rate(bps),
    }
}
