//! CSV with one row per trial and metric. Raw numbers in the metric's unit, not rounded; `bound` says what a value bounds that is not
//! exact, `doubt` why a value of a valid trial is not that of the test alone.
use netduel_model::run::Run;
use netduel_model::trial::Trial;
use netduel_model::workload::Workload;

use crate::analysis::{
    Bound, DatagramDirection, Machines, bound_of, contention_of, datagrams_of, in_schedule_order, value_of,
};
use crate::words::percent;

/// The columns, in order.
const HEADER: &str =
    "run,block,position,attempt,arm,workload,valid,started_unix_ms,metric,unit,value,reason,bound,doubt";

/// The counting trials of a run as CSV (RFC 4180, line feeds). A failed trial has one row with its reason.
pub fn trials(run: &Run) -> String {
    let machines = Machines::new(&run.header.plan, Some(&run.header));
    let mut text = format!("{HEADER}\n");
    for trial in in_schedule_order(run) {
        for Row { metric, unit, value, bound, doubt } in figures(run, trial, &machines) {
            let reason = trial.validity.reason().unwrap_or_default();
            let fields = [
                run.header.id.to_string(),
                // Reports and progress count blocks from 1.
                (u64::from(trial.slot.block) + 1).to_string(),
                trial.slot.position.to_string(),
                trial.attempt.to_string(),
                trial.slot.arm.to_string(),
                trial.slot.workload.to_string(),
                trial.is_valid().to_string(),
                trial.started_unix_ms.to_string(),
                metric.to_owned(),
                unit.to_owned(),
                value.map(|value| value.to_string()).unwrap_or_default(),
                field(reason),
                bound.map(Bound::key).unwrap_or_default().to_owned(),
                field(&doubt.unwrap_or_default()),
            ];
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

/// A figure of a trial.
#[derive(Debug, Clone, Default)]
struct Row {
    metric: &'static str,
    unit: &'static str,
    value: Option<f64>,
    bound: Option<Bound>,
    /// Why the value of a valid trial is doubtful.
    doubt: Option<String>,
}

/// Each metric of the trial; a row without a metric for a trial without any.
fn figures(run: &Run, trial: &Trial, machines: &Machines) -> Vec<Row> {
    let none = vec![Row::default()];
    let Some(arm) = run.header.plan.arm(&trial.slot.arm) else { return none };
    let Some(workload) = arm.workload(&trial.slot.workload) else { return none };
    let figures: Vec<_> = workload
        .traffic
        .facts()
        .possible_metrics
        .iter()
        .filter_map(|metric| {
            let is_shared = machines.shared(&arm.pair);
            let value = value_of(*metric, workload, trial, is_shared)?;
            let bound = bound_of(*metric, workload, trial, is_shared);
            let doubt = metric.is_cpu().then(|| contention(workload, trial, is_shared)).flatten();
            Some(Row { metric: metric.key(), unit: metric.unit(), value: Some(value), bound, doubt })
        })
        .chain(counts(&datagrams_of(workload, trial, machines.shared(&arm.pair))))
        .collect();
    if figures.is_empty() { none } else { figures }
}

/// The CPU time of other processes that the CPU time of a trial contains.
fn contention(workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<String> {
    let share = contention_of(workload, trial, shared_machine)?;
    Some(format!("CPU contention: other processes used {} of the CPU time of a host", percent(share)))
}

/// Counts of both ends and both interfaces of a `udp-stream`, sum of both directions. An interface that is unknown in one
/// direction has no row.
fn counts(ways: &[DatagramDirection]) -> Vec<Row> {
    if ways.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&DatagramDirection) -> Option<u64>| ways.iter().map(of).sum::<Option<u64>>();
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

/// A field with any text. A leading `=`, `+`, `-` or `@` would be run as a formula by spreadsheets, so it gets a quote.
fn field(text: &str) -> String {
    let text = crate::words::plain(text);
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
