//! The table of the streams of a quick test: what each end sent and received.
use netduel_model::sample::{Flow, StreamReport};
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::{human_bit_rate, human_nanos, human_si};
use netduel_model::workload::Workload;

use super::whole_test;
use crate::document::table::{Cell, Column, Table};
use crate::words;

/// More streams than this are shown as their sum and their distribution.
const STREAMS_SHOWN: usize = 16;

/// Heading of the table of streams, whose rates have another time base than those of the steady window.
pub(super) fn title(trial: &Trial) -> String {
    let length = whole_test::span_ns(trial).map(|ns| format!("{} ", human_nanos(ns as f64)));
    let length = length.unwrap_or_default();
    format!("Whole test, {length}from the first to the last byte, warm-up and drain included")
}

/// A stream, or all of them, at one end.
#[derive(Default)]
struct Row {
    stream: String,
    end: String,
    bytes: u64,
    /// From the first to the last byte.
    seconds: f64,
    /// Packets, datagrams or retransmits.
    counted: Option<u64>,
    lost: Option<String>,
    jitter_ns: Option<f64>,
}

/// A row for each stream and end, and for their sum. Flows of packets have no rows, because their figures are alike. Single streams
/// have a rate; that of all streams is the result below the table, over the steady window alone. So have loss and jitter.
pub(super) fn table(workload: &Workload, client: &TrialEnd, server: &TrialEnd) -> Table {
    let is_udp = workload.traffic.facts().is_datagram_stream();
    let of_packets = workload.traffic.facts().is_of_packets();
    let ways = [(client, server), (server, client)];
    let has_rates = ways.iter().any(|(sender, _)| is_one_by_one(workload, sender));
    let has_flows = is_udp && has_rates;
    let mut table =
        Table::new(vec![Column::key(if of_packets { "flows" } else { "stream" }), Column::key("end")]);
    table.columns.push(Column::number("transfer"));
    table.columns.extend(has_rates.then(|| Column::number("mean rate")));
    table.columns.push(Column::number(match (of_packets, is_udp) {
        (true, _) => "packets",
        (false, true) => "datagrams",
        (false, false) => "retransmits",
    }));
    table.columns.extend(["lost", "jitter"].into_iter().filter(|_| has_flows).map(Column::number));
    for row in ways.into_iter().flat_map(|(sender, receiver)| rows(workload, sender, receiver)) {
        let rate = (row.seconds > 0.0).then(|| human_bit_rate(row.bytes as f64 * 8.0 / row.seconds));
        let mut cells =
            vec![Cell::Text(row.stream), Cell::Text(row.end), Cell::Number(human_si(row.bytes as f64, "B"))];
        cells.extend(has_rates.then(|| Cell::number(rate)));
        cells.push(row.counted.map_or(Cell::Absent, Cell::Count));
        let flow = [row.lost, row.jitter_ns.map(human_nanos)];
        cells.extend(flow.into_iter().filter(|_| has_flows).map(Cell::number));
        table.rows.push(cells);
    }
    table
}

/// The number of streams of a sender.
fn count(sender: &TrialEnd) -> usize {
    sender.report.streams.iter().map(|group| group.members as usize).sum()
}

fn is_one_by_one(workload: &Workload, sender: &TrialEnd) -> bool {
    (2..=STREAMS_SHOWN).contains(&count(sender)) && !workload.traffic.facts().is_of_packets()
}

/// The rows of one direction; empty where none was sent.
fn rows(workload: &Workload, sender: &TrialEnd, receiver: &TrialEnd) -> Vec<Row> {
    let (Some(sent), Some(received)) = (&sender.report.sent, &receiver.report.received) else {
        return Vec::new();
    };
    let facts = workload.traffic.facts();
    let (from, to) = (format!("{} sent", sender.report.role), format!("{} received", receiver.report.role));
    let of_stream = |stream: &StreamReport, end: &str, bytes: u64, flow: &Flow| Row {
        stream: (u64::from(stream.index) + 1).to_string(),
        end: end.to_owned(),
        bytes,
        seconds: span(flow),
        ..Row::default()
    };
    let datagrams = |stream: &StreamReport| stream.sent_bytes.checked_div(facts.flows?.size.0);
    let resent = |stream: &StreamReport| stream.tcp.as_ref()?.retransmits.map(u64::from);
    let mut rows = Vec::new();
    if is_one_by_one(workload, sender) {
        rows.extend(sender.report.streams.iter().map(|stream| Row {
            counted: datagrams(stream).or(resent(stream)),
            ..of_stream(stream, &from, stream.sent_bytes, sent)
        }));
        rows.extend(receiver.report.streams.iter().map(|stream| {
            let row = of_stream(stream, &to, stream.received_bytes, received);
            let flows = receiver.report.datagrams.as_ref().map(|report| &report.flows);
            let Some(flow) = flows.and_then(|flows| flows.get(stream.index as usize)) else { return row };
            let sent = sender.report.streams.iter().find(|other| other.index == stream.index);
            Row {
                counted: Some(flow.unique),
                lost: sent.and_then(datagrams).map(|sent| lost(sent, flow.unique)),
                jitter_ns: flow.jitter_ns.filter(|_| !facts.has_shared_send_times()),
                ..row
            }
        }));
    }
    let count = count(sender);
    let stream = if count > 1 { format!("all {count}") } else { "1".to_owned() };
    let connections = sender.report.streams.iter().filter(|stream| stream.tcp.is_some());
    let resent = connections.map(resent).reduce(|a, b| Some(a? + b?)).flatten();
    let messages = |flow: &Flow| facts.is_datagram_stream().then_some(flow.messages);
    for (end, flow, counted) in [(from, sent, messages(sent).or(resent)), (to, received, messages(received))]
    {
        let (stream, bytes, seconds) = (stream.clone(), flow.bytes, span(flow));
        rows.push(Row { stream, end, bytes, seconds, counted, ..Row::default() });
    }
    rows
}

/// The lost datagrams of a flow, with their share.
fn lost(sent: u64, unique: u64) -> String {
    let lost = sent.saturating_sub(unique);
    format!("{lost} ({})", words::percent(lost as f64 / sent.max(1) as f64))
}

/// From the first to the last byte, seconds.
fn span(flow: &Flow) -> f64 {
    flow.last_ns.unwrap_or(0).saturating_sub(flow.first_ns.unwrap_or(0)) as f64 / 1e9
}
