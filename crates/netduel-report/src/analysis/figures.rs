//! The value of each metric of a trial, from the raw counts of both ends.
use std::collections::BTreeSet;

use netduel_model::metric::Metric;
use netduel_model::sample::{DatagramReport, Flow, HistogramRecord, IntervalSample, RoundTripReport};
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_stats::histogram::Histogram;

use super::counted::{self, Counted, rate_on_its_clock};
use super::machine::Machines;
use super::{machine, requests, responsiveness, search};
use crate::total::total_of_known;

const BYTES_PER_GIGABYTE: f64 = 1e9;
/// Up to this many requests of an open loop are answered outside the window in which they began without being behind the schedule.
const REQUESTS_AT_EDGES: f64 = 3.0;
/// From this share on, a rate was reached.
pub(super) const RATE_REACHED: f64 = 0.98;

/// Block and value of each trial that has the metric, ordered by block.
pub(super) fn by_block(
    metric: Metric,
    workload: &Workload,
    trials: &[&Trial],
    machines: &Machines,
) -> Vec<(u32, f64)> {
    let value = |trial: &Trial| value_of(metric, workload, trial, machines.shared(trial));
    let mut values: Vec<(u32, f64)> =
        trials.iter().filter_map(|trial| Some((trial.slot.block, value(trial)?))).collect();
    values.sort_by_key(|(block, _)| *block);
    values
}

/// The value of a metric in a trial, in the metric's unit, finite; absent when the trial lacks the counts. `shared_machine`: both hosts
/// are one machine, whose CPU time counts once.
pub fn value_of(metric: Metric, workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<f64> {
    let value = match metric {
        Metric::Throughput => steady_rate(workload, trial, |sample| sample.bytes)? * 8.0,
        Metric::DatagramRate => steady_rate(workload, trial, |sample| sample.messages)?,
        Metric::PacketRate => super::datagrams::packet_rate(workload, trial)?,
        Metric::NoDropRate | Metric::PartialDropRate => search::rate(metric, workload, trial)?,
        Metric::RoundTripRate => round_trips_per_second(workload, trial)?,
        Metric::Loss => loss(&workload.traffic, trial)?,
        Metric::Jitter => jitter(trial)?,
        Metric::LatencyP50
        | Metric::LatencyLoadedP50
        | Metric::LatencyP99
        | Metric::LatencyLoadedP99
        | Metric::LatencyP999 => percentile(workload, trial, percentile_of(metric)?)?,
        Metric::LatencyIdleP50 => idle(trial)?.percentile(50.0)? as f64,
        Metric::Responsiveness => responsiveness::of_trial(trial)?,
        Metric::CpuPerGigabyte => busy_ns(trial, shared_machine)? / 1e9 / gigabytes(trial)?,
        Metric::CpuPerDatagram | Metric::CpuPerRoundTrip => {
            busy_ns(trial, shared_machine)? / messages(&workload.traffic, trial)?
        }
        Metric::RetransmitsPerGigabyte => retransmits(trial)? / gigabytes(trial)?,
        Metric::Outage => super::failover::outage(workload, trial, shared_machine)?.0,
        Metric::LostInOutage => super::failover::lost(workload, trial, shared_machine)?,
        Metric::RecoveryTime => super::failover::recovery(workload, trial, shared_machine)?.0,
    };
    value.is_finite().then_some(value)
}

/// The percentile of the round trips of a trial that a metric is. That of a loaded-latency workload is of its loaded phase.
pub fn percentile_of(metric: Metric) -> Option<f64> {
    match metric {
        Metric::LatencyP50 | Metric::LatencyLoadedP50 => Some(50.0),
        Metric::LatencyP99 | Metric::LatencyLoadedP99 => Some(99.0),
        Metric::LatencyP999 => Some(99.9),
        _ => None,
    }
}

/// The ends of a trial that have a report.
pub(super) fn ends(trial: &Trial) -> impl Iterator<Item = &TrialEnd> {
    [Role::Client, Role::Server].into_iter().filter_map(|role| trial.end(role))
}

/// The counts of the receivers of bulk traffic: the end opposite to each sender, both with bidirectional traffic.
pub(super) fn receivers<'a>(workload: &Workload, trial: &'a Trial) -> Option<Vec<Counted<'a>>> {
    let direction = workload.traffic.facts().bulk?;
    let senders = [(Role::Server, direction.client_sends()), (Role::Client, direction.server_sends())];
    let receivers = senders.into_iter().filter(|(_, receives)| *receives);
    receivers.map(|(role, _)| Counted::received_by(role, trial)).collect()
}

/// The steady window of a workload, nanoseconds after the start of the trial.
pub(super) fn steady_bounds(workload: &Workload) -> (u64, u64) {
    let window = workload.steady_window();
    (window.start, window.end)
}

/// Received units per second in the steady window; the sum of both directions with bidirectional traffic, of volumes in the time of the slower
/// one. Where nothing arrived of what was sent the rate is less than one unit in the window, which stands for it: without the trial the arm that
/// lost all would look better than it is.
fn steady_rate(workload: &Workload, trial: &Trial, amount: impl Fn(&IntervalSample) -> u64) -> Option<f64> {
    let received = receivers(workload, trial)?;
    let rate = if workload.traffic.facts().volume().is_some() {
        counted::rate_of_volumes(&received, workload, amount)?
    } else {
        let rates = received.into_iter().map(|received| received.in_steady_window(workload, &amount));
        rates.sum::<Option<f64>>()?
    };
    let (from, to) = steady_bounds(workload);
    Some(if rate > 0.0 { rate } else { 1e9 / to.checked_sub(from).filter(|length| *length > 0)? as f64 })
}

/// Whether nothing arrived in the steady window of a trial, although it was sent.
pub(super) fn is_silent(workload: &Workload, trial: &Trial) -> bool {
    let rates = receivers(workload, trial).unwrap_or_default();
    let mut rates = rates
        .into_iter()
        .map(|received| received.in_steady_window(workload, |sample| sample.bytes))
        .peekable();
    rates.peek().is_some() && rates.all(|rate| rate == Some(0.0))
}

/// Whether nothing arrived in a direction of bulk traffic of what was sent. One datagram of a flow alone has neither a rate nor a jitter.
pub(super) fn lost_all(workload: &Workload, trial: &Trial) -> bool {
    let facts = workload.traffic.facts();
    let Some(direction) = facts.bulk else { return false };
    let is_lost = |sent: &Flow, received: &Flow| {
        let is_nothing = match facts.flows {
            Some(udp) => received.messages <= u64::from(udp.flows),
            None => received.bytes == 0,
        };
        is_nothing && sent.bytes > received.bytes
    };
    let senders = [(Role::Client, direction.client_sends()), (Role::Server, direction.server_sends())];
    senders.into_iter().filter(|(_, sends)| *sends).any(|(role, _)| {
        let sent = trial.end(role).and_then(|end| end.report.sent.as_ref());
        let received = trial.end(role.opposite()).and_then(|end| end.report.received.as_ref());
        sent.zip(received).is_some_and(|(sent, received)| is_lost(sent, received))
    })
}

/// The throughput or the rate of datagrams of one direction, by the count of the end that received it; absent where that end received
/// no bulk traffic, and for other metrics. [`value_of`] is the sum of both directions.
pub fn rate_received_by(role: Role, metric: Metric, workload: &Workload, trial: &Trial) -> Option<f64> {
    let direction = workload.traffic.facts().bulk?;
    let is_receiver = match role {
        Role::Client => direction.server_sends(),
        Role::Server => direction.client_sends(),
    };
    let received = Counted::received_by(role, trial).filter(|_| is_receiver)?;
    match metric {
        Metric::Throughput => Some(received.in_steady_window(workload, |sample| sample.bytes)? * 8.0),
        Metric::DatagramRate => received.in_steady_window(workload, |sample| sample.messages),
        _ => None,
    }
}

/// When the last data of a trial with a volume had arrived, nanoseconds after the trial began on the receiver's clock.
pub fn volume_over_ns(workload: &Workload, trial: &Trial) -> Option<u64> {
    workload.traffic.facts().volume()?;
    let ends = receivers(workload, trial)?.into_iter();
    ends.filter_map(|received| Some(received.flow().last_ns?.saturating_sub(received.late_ns(workload))))
        .max()
}

pub(super) fn round_trips(trial: &Trial) -> Option<&RoundTripReport> {
    trial.client.as_ref()?.report.round_trips.as_ref()
}

/// Round trips that began in the steady window, stamped ones included.
fn round_trip_count(trial: &Trial) -> Option<u64> {
    let stamped = trial.client.as_ref()?.report.stamps.as_ref().map_or(0, |stamps| stamps.stamped);
    Some(round_trips(trial)?.histogram.count.saturating_add(stamped))
}

/// The histograms hold every round trip that began in the steady window, so their counts over its length are the rate. Requests of an
/// open loop begin on a schedule whether or not the path keeps up: where clearly fewer were answered in the window, its rate is that of
/// the responses, whose time is known to a sample of the series. Without any it is less than one in the window, which stands for it.
fn round_trips_per_second(workload: &Workload, trial: &Trial) -> Option<f64> {
    let (from, to) = steady_bounds(workload);
    let window_s = to.checked_sub(from).filter(|length| *length > 0)? as f64 / 1e9;
    let began = round_trip_count(trial)?;
    let is_open = workload.traffic.facts().request_rate().is_some();
    let received = trial.client.as_ref()?.report.received.as_ref().filter(|_| is_open);
    let completed = received.and_then(|flow| rate_on_its_clock(flow, (from, to), |sample| sample.messages));
    let rate = began as f64 / window_s;
    let is_behind = |completed: &f64| {
        *completed < rate * RATE_REACHED && (rate - completed) * window_s > REQUESTS_AT_EDGES
    };
    match completed.filter(is_behind) {
        Some(completed) => Some(completed.max(1.0 / window_s)),
        None if began == 0 => is_stalled(workload, trial).then(|| 1.0 / window_s),
        None => Some(rate),
    }
}

/// Whether a trial had round trips, but none in the steady window, although requests were due in it.
fn is_stalled(workload: &Workload, trial: &Trial) -> bool {
    round_trip_count(trial) == Some(0)
        && round_trips(trial).is_some_and(|trips| trips.responses > 0)
        && workload.traffic.facts().requests_due(&workload.steady_window()) != Some(0)
}

/// Whether a trial of a workload of round trips had none in the steady window: the path, or a host, stalled for all of it.
pub(super) fn has_stalled(workload: &Workload, trial: &Trial) -> bool {
    let metrics = workload.traffic.facts().possible_metrics;
    metrics.iter().any(|metric| metric.is_of_round_trips()) && is_stalled(workload, trial)
}

/// Whether no request of a trial had a response.
pub(super) fn has_no_response(trial: &Trial) -> bool {
    round_trips(trial).is_some_and(|trips| trips.requests > 0 && trips.responses == 0)
}

/// Whether no request that was due before the load had a response.
pub(super) fn has_no_idle_response(workload: &Workload, trial: &Trial) -> bool {
    let facts = workload.traffic.facts();
    let due = facts.idle_window(&workload.timing).and_then(|window| facts.requests_due(&window));
    let idle = round_trips(trial).and_then(|trips| trips.idle.as_ref());
    due.is_some_and(|due| due > 0) && idle.is_some_and(|idle| idle.count == 0)
}

/// Blocks whose trial had no round trip in the steady window.
pub(super) fn stalled_blocks(workload: &Workload, trials: &[&Trial]) -> BTreeSet<u32> {
    trials.iter().filter(|trial| has_stalled(workload, trial)).map(|trial| trial.slot.block).collect()
}

/// Number of trials with a round trip in the steady window.
pub(super) fn trials_with_round_trips(trials: &[&Trial]) -> u32 {
    let has_any = |trial: &&&Trial| round_trips(trial).is_some_and(|trips| trips.histogram.count > 0);
    trials.iter().filter(has_any).count() as u32
}

/// The smallest number of round trips of a trial among those that have one in the steady window.
pub(super) fn fewest_round_trips(trials: &[&Trial]) -> Option<u64> {
    let counts = trials.iter().filter_map(|trial| Some(round_trips(trial)?.histogram.count));
    counts.filter(|count| *count > 0).min()
}

/// The round trips of a trial.
pub fn histogram(trial: &Trial) -> Option<Histogram> {
    of_record(&round_trips(trial)?.histogram)
}

/// A percentile of the steady window. Without a round trip in it each of them took at least as long as the window, which stands
/// for it: without the trial the arm that stalls would look better than it is.
fn percentile(workload: &Workload, trial: &Trial, percentile: f64) -> Option<f64> {
    if is_stalled(workload, trial) {
        let (from, to) = steady_bounds(workload);
        return (to > from).then(|| (to - from) as f64);
    }
    Some(histogram(trial)?.percentile(percentile)? as f64)
}

/// The idle-phase round trips of a trial.
pub(super) fn idle(trial: &Trial) -> Option<Histogram> {
    of_record(round_trips(trial)?.idle.as_ref()?)
}

/// A stored histogram; absent when it is corrupt.
pub fn of_record(record: &HistogramRecord) -> Option<Histogram> {
    Histogram::from_record(record).ok()
}

/// All round trips of all trials in one histogram; absent when there are none.
pub(super) fn merged_latency(trials: &[&Trial]) -> Option<Histogram> {
    merged(trials.iter().filter_map(|trial| histogram(trial)))
}

/// The merged histogram of several trials; absent when it is empty.
pub(super) fn merged(histograms: impl Iterator<Item = Histogram>) -> Option<Histogram> {
    let mut merged: Option<Histogram> = None;
    for histogram in histograms {
        match &mut merged {
            Some(merged) => merged.merge(&histogram),
            None => merged = Some(histogram),
        }
    }
    merged.filter(|merged| merged.count() > 0)
}

/// Datagram reports with the number of datagrams that the opposite end sent.
pub(super) fn datagrams(trial: &Trial) -> Vec<(u64, &DatagramReport)> {
    let opposite = [(&trial.client, &trial.server), (&trial.server, &trial.client)];
    opposite
        .into_iter()
        .filter_map(|(sender, receiver)| {
            let sent = sender.as_ref()?.report.sent.as_ref()?.messages;
            Some((sent, receiver.as_ref()?.report.datagrams.as_ref()?))
        })
        .collect()
}

/// 1 - unique / sent over the whole trial, exact; of requests in datagrams the share without a response in time. Absent when more datagrams
/// arrived than were sent: the record is inconsistent.
fn loss(traffic: &Traffic, trial: &Trial) -> Option<f64> {
    if let Some(count) = requests::in_datagrams(traffic, trial) {
        return count.share();
    }
    let reports = datagrams(trial);
    let sent: u64 = reports.iter().map(|(sent, _)| *sent).fold(0, u64::saturating_add);
    let unique: u64 = reports.iter().map(|(_, report)| report.unique).fold(0, u64::saturating_add);
    (sent > 0 && unique <= sent).then(|| (sent - unique) as f64 / sent as f64)
}

/// The mean over the directions in which datagrams were sent; absent when one has none: the mean of the other is not that of the path.
fn jitter(trial: &Trial) -> Option<f64> {
    let directions = datagrams(trial).into_iter().filter(|(sent, _)| *sent > 0);
    let values: Vec<f64> = directions.map(|(_, report)| report.jitter_ns).collect::<Option<_>>()?;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Busy time of all cores of both hosts, each machine counted once, nanoseconds; absent for a trial too short for the CPU clock.
pub(super) fn busy_ns(trial: &Trial, shared_machine: bool) -> Option<f64> {
    let mut busy = 0;
    for observation in machine::observations(trial, shared_machine)? {
        if !machine::has_cpu_time(observation) {
            return None;
        }
        busy = observation.busy_ns().saturating_add(busy);
    }
    Some(busy as f64)
}

/// Payload received by both ends in the whole trial, 10^9 bytes; absent when it is zero.
pub(super) fn gigabytes(trial: &Trial) -> Option<f64> {
    let bytes: u64 = ends(trial)
        .filter_map(|end| end.report.received.as_ref())
        .map(|flow| flow.bytes)
        .fold(0, u64::saturating_add);
    (bytes > 0).then(|| bytes as f64 / BYTES_PER_GIGABYTE)
}

/// Datagrams received, or round trips completed, in the whole trial; absent when it is zero.
pub(super) fn messages(traffic: &Traffic, trial: &Trial) -> Option<f64> {
    let count = if traffic.facts().unit.is_request() {
        round_trips(trial)?.responses
    } else {
        ends(trial)
            .filter_map(|end| end.report.received.as_ref())
            .map(|flow| flow.messages)
            .fold(0, u64::saturating_add)
    };
    (count > 0).then_some(count as f64)
}

/// Segments retransmitted by all senders; absent when a connection lacks the counter.
pub(super) fn retransmits(trial: &Trial) -> Option<f64> {
    sum_tcp(trial, |tcp| tcp.retransmits.map(u64::from))
}

/// A sum over the connections of every sending end; absent when there is no connection or one lacks the counter.
pub(super) fn sum_tcp(
    trial: &Trial,
    field: impl Fn(&netduel_model::sample::TcpInfo) -> Option<u64>,
) -> Option<f64> {
    let connections: Vec<_> = ends(trial)
        .filter(|end| end.report.sent.is_some())
        .flat_map(|end| end.report.streams.iter())
        .filter_map(|stream| stream.tcp.as_ref())
        .collect();
    if connections.is_empty() {
        return None;
    }
    total_of_known(connections.into_iter().map(field)).map(|sum| sum as f64)
}
