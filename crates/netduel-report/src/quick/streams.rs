//! The table of the streams of a quick test: what each end sent and received.
use netduel_model::sample::{Flow, StreamReport};
use netduel_model::trial::TrialEnd;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::{Role, Workload};

use crate::document::table::{Cell, Column, Table};
use crate::words;

/// More streams than this are shown as their sum and their distribution.
const STREAMS_SHOWN: usize = 16;
/// Heading of the table of streams, whose rates have another time base than those of the steady window.
pub(super) const TITLE: &str = "Whole test, from the first to the last byte, warm-up and drain included";
const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// A row for each stream and end, and for their sum. Flows of packets have no rows, because their figures are alike. Single streams
/// have a rate; that of all streams is the result below the table, over the steady window alone.
pub(super) fn table(workload: &Workload, client: &TrialEnd, server: &TrialEnd) -> Table {
    let is_udp = workload.traffic.facts().is_datagram_stream();
    let of_packets = words::is_of_packets(&workload.traffic);
    let mut table =
        Table::new(vec![Column::key(if of_packets { "flows" } else { "stream" }), Column::key("end")]);
    let counts = ROLES.map(|role| {
        let sender = if role == Role::Client { client } else { server };
        sender.report.streams.iter().map(|group| group.members as usize).sum::<usize>()
    });
    let one_by_one = |count: usize| count > 1 && count <= STREAMS_SHOWN && !of_packets;
    let has_rates = counts.into_iter().any(one_by_one);
    table.columns.push(Column::number("transfer"));
    table.columns.extend(has_rates.then(|| Column::number("mean rate")));
    table.columns.push(Column::number(match (of_packets, is_udp) {
        (true, _) => "packets",
        (false, true) => "datagrams",
        (false, false) => "retransmits",
    }));
    let mut row = |stream: String, end: &str, (bytes, seconds): (u64, f64), last: Option<u64>| {
        let mut cells = vec![Cell::Text(stream), end.into(), Cell::Number(human_si(bytes as f64, "B"))];
        let rate = (seconds > 0.0).then(|| human_bit_rate(bytes as f64 * 8.0 / seconds));
        cells.extend(has_rates.then(|| Cell::number(rate)));
        cells.push(last.map_or(Cell::Absent, Cell::Count));
        table.rows.push(cells);
    };
    for role in ROLES {
        let (sender, receiver) = if role == Role::Client { (client, server) } else { (server, client) };
        let (Some(sent), Some(received)) = (&sender.report.sent, &receiver.report.received) else { continue };
        let (from, to) = (format!("{role} sent"), format!("{} received", receiver.report.role));
        let count = counts[role as usize];
        if one_by_one(count) {
            for stream in &sender.report.streams {
                let resent = stream.tcp.as_ref().and_then(|tcp| tcp.retransmits).map(u64::from);
                row(number(stream), &from, (stream.sent_bytes, span(sent)), resent);
            }
            for stream in &receiver.report.streams {
                row(number(stream), &to, (stream.received_bytes, span(received)), None);
            }
        }
        let all = if count > 1 { format!("all {count}") } else { "1".to_owned() };
        let connections = sender.report.streams.iter().filter_map(|stream| stream.tcp.as_ref());
        let resent =
            connections.map(|tcp| tcp.retransmits.map(u64::from)).reduce(|a, b| Some(a? + b?)).flatten();
        let messages = |flow: &Flow| if is_udp { Some(flow.messages) } else { None };
        row(all.clone(), &from, (sent.bytes, span(sent)), messages(sent).or(resent));
        row(all, &to, (received.bytes, span(received)), messages(received));
    }
    table
}

/// Streams count from 1.
fn number(stream: &StreamReport) -> String {
    (u64::from(stream.index) + 1).to_string()
}

/// From the first to the last byte, seconds.
fn span(flow: &Flow) -> f64 {
    flow.last_ns.unwrap_or(0).saturating_sub(flow.first_ns.unwrap_or(0)) as f64 / 1e9
}
