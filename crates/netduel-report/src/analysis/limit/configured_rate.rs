//! The configured rate of a workload, and whether it was reached.
use netduel_model::metric::Metric;
use netduel_model::trial::Trial;
use netduel_model::units::{human_bit_rate, human_nanos, human_si};
use netduel_model::workload::{Direction, PacedRate, Traffic, Workload};

use super::super::figures::{self, RATE_REACHED};
use super::super::schedule;
use crate::words;

/// The configured rate, and the rate received in the steady window, bit/s; absent where the rate is so low that less than one message is
/// due, which nothing can show.
pub(super) fn configured_rate(workload: &Workload, trial: &Trial) -> Option<(f64, Option<f64>)> {
    let facts = workload.traffic.facts();
    let PacedRate { rate, burst, .. } = facts.paced?;
    let ways = if facts.bulk == Some(Direction::Both) { 2.0 } else { 1.0 };
    let configured = rate.0 as f64 * ways;
    let due = configured / 8.0 * workload.timing.duration.0 as f64 / 1e9;
    let reached = figures::value_of(Metric::Throughput, workload, trial, false);
    let is_due = due >= burst as f64;
    Some((configured, reached.or(is_due.then_some(0.0))))
}

/// The requests per second of an open loop.
struct RequestRate {
    configured: f64,
    /// Responses per second in the steady window.
    reached: f64,
    /// Whether the responses were as many as the schedule made due in the steady window.
    is_kept: bool,
}

impl RequestRate {
    /// Absent without an open loop, and where its requests only measure.
    fn of(workload: &Workload, trial: &Trial) -> Option<Self> {
        let facts = workload.traffic.facts();
        let configured = facts.requests.filter(|requests| !requests.are_probes)?.rate?.0 as f64;
        let reached = figures::value_of(Metric::RoundTripRate, workload, trial, false)?;
        // At a few requests a second the number that is due is up to one above or below the rate times the length of the window.
        let window = workload.steady_window();
        let due = facts.requests_due(&window)? as f64;
        let answered = reached * window.end.saturating_sub(window.start) as f64 / 1e9;
        let is_kept = answered >= due * RATE_REACHED || reached >= configured * RATE_REACHED;
        Some(Self { configured, reached, is_kept })
    }
}

/// The configured requests per second and the responses per second, where the schedule was kept and the path kept up with it.
pub(super) fn kept_requests(workload: &Workload, trial: &Trial) -> Option<(f64, f64)> {
    let rate = RequestRate::of(workload, trial).filter(|rate| rate.is_kept)?;
    schedule::lateness(workload, &[trial]).is_none().then_some((rate.configured, rate.reached))
}

/// The missed rate of a test in words: of a stream what its sender sent, of an open loop the responses. Absent without a configured
/// rate, or when it was reached.
pub fn missed_rate(workload: &Workload, trial: &Trial) -> Option<String> {
    let human = |bps: f64| human_rate(&workload.traffic, bps);
    if let Some((configured, sent)) = schedule::rate_missed(workload, &[trial]) {
        return Some(format!(
            "{} sent in the whole test of the configured {}",
            human(sent),
            human(configured)
        ));
    }
    let RequestRate { configured, reached, .. } =
        RequestRate::of(workload, trial).filter(|rate| !rate.is_kept)?;
    Some(format!("{} answered of the configured {}", human_si(reached, "/s"), human_si(configured, "/s")))
}

/// The missed schedule of an open loop in words; absent when it was kept.
pub fn missed_schedule(workload: &Workload, trial: &Trial) -> Option<String> {
    let late_ns = schedule::lateness(workload, &[trial])?;
    Some(format!(
        "requests left {} late (p99); set a lower rate or pin the client",
        human_nanos(late_ns as f64)
    ))
}

/// A payload rate for people; of packets as packets per second.
pub(super) fn human_rate(traffic: &Traffic, bps: f64) -> String {
    match traffic.facts().packet_bytes() {
        Some(bytes) => words::packet_rate(bps / 8.0 / bytes as f64),
        None => human_bit_rate(bps),
    }
}
