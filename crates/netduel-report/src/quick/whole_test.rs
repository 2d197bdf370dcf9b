//! The whole of a quick test beside its steady window: how long the traffic took, and whether its rate was that of the window. The result
//! stays that of the steady window.
use netduel_model::metric::Metric;
use netduel_model::sample::Flow;
use netduel_model::trial::Trial;
use netduel_model::units::human_nanos;
use netduel_model::workload::{Direction, Role, Workload};

use crate::{analysis, words};

/// Traffic that takes longer than planned by a larger share, and a rate of the whole test that differs from that of the steady window by
/// a larger share, cause a warning. The slow start of a test of 10 s on a long path is below it.
const DEVIATION_MAX: f64 = 0.1;
/// Traffic with a rate arrives in bursts. With fewer of them the rate depends on how many fall into the window.
const BURSTS_MIN: u64 = 50;

/// What an end received, and how long that took from the first to the last byte, nanoseconds; absent where it has no duration.
fn received(trial: &Trial, role: Role) -> Option<(&Flow, u64)> {
    let flow = trial.end(role)?.report.received.as_ref()?;
    let span_ns = flow.last_ns?.saturating_sub(flow.first_ns?);
    (span_ns > 0).then_some((flow, span_ns))
}

/// How long the traffic took from the first to the last byte, of two directions the longer one, nanoseconds.
pub(super) fn span_ns(trial: &Trial) -> Option<u64> {
    Role::ALL.into_iter().filter_map(|role| Some(received(trial, role)?.1)).max()
}

/// A warning for each direction whose traffic took clearly longer than planned, or had another rate in the whole test than in the steady
/// window. Traffic that a volume or a search ends has no planned duration.
pub(crate) fn deviations(workload: &Workload, trial: &Trial) -> Vec<String> {
    let facts = workload.traffic.facts();
    if facts.volume().is_some() || facts.search().is_some() {
        return Vec::new();
    }
    let is_bidirectional = facts.bulk == Some(Direction::Both);
    let of_receiver = |role: Role| {
        let words = deviation(workload, trial, role)?;
        Some(if is_bidirectional { format!("to {role}: {words}") } else { words })
    };
    Role::ALL.into_iter().filter_map(of_receiver).collect()
}

/// The deviation of the traffic that an end received.
fn deviation(workload: &Workload, trial: &Trial, role: Role) -> Option<String> {
    let facts = workload.traffic.facts();
    let metric = if facts.is_of_packets() { Metric::DatagramRate } else { Metric::Throughput };
    let steady = analysis::rate_received_by(role, metric, workload, trial)?;
    let (flow, span_ns) = received(trial, role)?;
    let amount = if facts.is_of_packets() { flow.messages as f64 } else { flow.bytes as f64 * 8.0 };
    let whole = amount / (span_ns as f64 / 1e9);
    let planned_ns = workload.timing.duration.0;
    let is_late = span_ns as f64 > planned_ns as f64 * (1.0 + DEVIATION_MAX);
    let has_few = facts.paced.is_some_and(|paced| flow.bytes < paced.burst.saturating_mul(BURSTS_MIN));
    let differs = !has_few && (whole - steady).abs() > steady * DEVIATION_MAX;
    let meaning = match (is_late, differs) {
        (false, false) => return None,
        (_, true) if whole > steady => "the traffic was slower in the steady window than outside it",
        (true, true) => "the traffic stalled outside the steady window, or ended late",
        (true, false) => "the traffic ended late",
        (false, true) => "the traffic stalled or was slower outside the steady window",
    };
    let duration = if is_late {
        format!(" ({} instead of {})", human_nanos(span_ns as f64), human_nanos(planned_ns as f64))
    } else {
        String::new()
    };
    let human = |rate| words::metric_value(metric, facts.unit, rate);
    Some(format!(
        "{} in the whole test{duration}, {} in the steady window: {meaning}",
        human(whole),
        human(steady)
    ))
}
