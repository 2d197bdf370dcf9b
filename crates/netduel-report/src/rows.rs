//! The rows of every export by trial: each counting trial of a run with each of its metrics. Nothing is formatted here.
use std::borrow::Cow;

use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_model::workload::{Traffic, Workload};

use crate::analysis::{
    Bound, DatagramDirection, Machines, RequestCount, bound_of, contention_of, datagrams_of,
    in_schedule_order, is_too_bad, requests_of, value_of,
};
use crate::total::total_of_known;
use crate::words::{percent, reason_of_worst};

/// The counting trials of a run in the order of the schedule, with their figures.
pub(crate) fn of_run(run: &Run) -> impl Iterator<Item = (Cow<'_, Trial>, Vec<Row>)> {
    let machines = Machines::new(&run.header.plan, Some(&run.header));
    in_schedule_order(run).into_iter().map(move |trial| {
        let rows = figures(run, &trial, &machines);
        (trial, rows)
    })
}

/// The number of a block: reports and progress count from 1.
pub(crate) fn block_number(trial: &Trial) -> u64 {
    u64::from(trial.slot.block) + 1
}

/// A figure of a trial.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    /// Key of the metric or count; empty for a trial without figures.
    pub(crate) metric: &'static str,
    /// Its unit; empty without a metric.
    pub(crate) unit: &'static str,
    /// Its value, a finite number; absent without a metric, and where the result of a valid trial was too bad for one.
    pub(crate) value: Option<f64>,
    /// What the value bounds.
    pub(crate) bound: Option<Bound>,
    /// Why the value of a valid trial is doubtful, or why it has none.
    pub(crate) doubt: Option<String>,
}

/// Each metric of the trial; a row without a metric for a trial without any.
fn figures(run: &Run, trial: &Trial, machines: &Machines) -> Vec<Row> {
    let none = vec![Row::default()];
    let Some(arm) = run.header.plan.arm(&trial.slot.arm) else { return none };
    let Some(workload) = arm.workload(&trial.slot.workload) else { return none };
    let is_shared = machines.shared(trial);
    let figures: Vec<_> = workload
        .traffic
        .facts()
        .possible_metrics
        .iter()
        .filter_map(|metric| figure(*metric, workload, trial, is_shared))
        .chain(counts(&datagrams_of(workload, trial, is_shared)))
        .chain(requests(&workload.traffic, trial))
        .collect();
    if figures.is_empty() { none } else { figures }
}

/// A metric of the trial; absent where the trial shows no result of it.
fn figure(metric: Metric, workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<Row> {
    let row = Row { metric: metric.key(), unit: metric.unit(), ..Row::default() };
    let Some(value) = value_of(metric, workload, trial, shared_machine) else {
        let is_without = trial.is_valid() && is_too_bad(metric, workload, trial, shared_machine);
        let doubt = Some(format!("no value: {}", reason_of_worst(metric)));
        return is_without.then_some(Row { doubt, ..row });
    };
    let bound = bound_of(metric, workload, trial, shared_machine);
    let doubt = metric.is_cpu().then(|| contention(workload, trial, shared_machine)).flatten();
    Some(Row { value: Some(value), bound, doubt, ..row })
}

/// The CPU time of other processes that the CPU time of a trial contains.
fn contention(workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<String> {
    let share = contention_of(workload, trial, shared_machine)?;
    Some(format!("CPU contention: other processes used {} of the CPU time of a host", percent(share)))
}

/// Requests of the client, and those without a response in time.
fn requests(traffic: &Traffic, trial: &Trial) -> Vec<Row> {
    let Some(RequestCount { sent, lost }) = requests_of(traffic, trial) else { return Vec::new() };
    let row = |(metric, count): (&'static str, u64)| Row {
        metric,
        unit: "1",
        value: Some(count as f64),
        ..Row::default()
    };
    [("requests-sent", sent), ("requests-without-response", lost)].map(row).into()
}

/// Counts of both ends and both interfaces of a `udp-stream`, sum of both directions. An interface that is unknown in one
/// direction has no row.
fn counts(ways: &[DatagramDirection]) -> Vec<Row> {
    if ways.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&DatagramDirection) -> Option<u64>| total_of_known(ways.iter().map(of));
    let received = sum(|way| Some(way.packets_received.as_ref()?.packets));
    let bytes = sum(|way| Some(way.packets_received.as_ref()?.bytes));
    let rows = [
        ("datagrams-sent", sum(|way| Some(way.sent))),
        ("datagrams-received", sum(|way| Some(way.received))),
        ("datagrams-lost-at-socket", sum(|way| Some(way.lost?.at_socket))),
        ("datagrams-lost-at-interface", sum(|way| Some(way.lost?.at_interface))),
        ("datagrams-lost-elsewhere", sum(|way| Some(way.lost?.elsewhere()))),
        ("packets-sent", sum(|way| Some(way.packets_sent.as_ref()?.packets))),
        ("packets-received", received),
    ];
    let row = |metric, unit, value| Row { metric, unit, value: Some(value), ..Row::default() };
    let mut figures: Vec<_> =
        rows.into_iter().filter_map(|(name, count)| Some(row(name, "1", count? as f64))).collect();
    if let (Some(packets @ 1..), Some(bytes)) = (received, bytes) {
        figures.push(row("bytes-per-packet", "B", bytes as f64 / packets as f64));
    }
    figures
}
