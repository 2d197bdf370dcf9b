//! The values of several packet tests as a table.
use netduel_model::metric::Metric;
use netduel_model::workload::WorkUnit;

use super::SummaryInput;
use crate::analysis::{self, value_of};
use crate::document::block::Block;
use crate::document::table::{Cell, Column, Table};
use crate::{terminal, words};

/// A row for each test in their order, as text of `width` columns.
pub fn sweep(tests: &[SummaryInput<'_>], width: usize) -> String {
    let mut table = Table::new(vec![Column::key("frame"), Column::key("queues")]);
    table.columns.extend(["sent", "received", "loss", "CPU per packet"].map(Column::number));
    table.columns.push(Column::text("bottleneck"));
    table.rows = tests.iter().filter_map(|test| row(*test)).collect();
    terminal::blocks(&[Block::Table(table)], width, false)
}

fn row(test: SummaryInput<'_>) -> Option<Vec<Cell>> {
    let SummaryInput { workload, trial, shared_machine, expected, .. } = test;
    let packets = workload.traffic.facts().packets?;
    let of = |metric: Metric| value_of(metric, workload, trial, shared_machine);
    let bound = |metric: Metric| analysis::bound_of(metric, workload, trial, shared_machine);
    let value = |metric: Metric| {
        let words = |value| words::metric_value_or_bound(metric, WorkUnit::Packet, value, bound(metric));
        Cell::number(of(metric).map(words))
    };
    // Each datagram is a packet, and loss is a share of the sent packets. No rate follows from one that is a bound.
    let received = of(Metric::DatagramRate).filter(|_| bound(Metric::DatagramRate).is_none());
    let sent = received.zip(of(Metric::Loss)).filter(|(_, loss)| *loss < 1.0);
    let limit = analysis::limit_of(workload, trial, shared_machine, expected);
    Some(vec![
        Cell::Text(format!("{} B", packets.frame)),
        Cell::Text(packets.queues.map_or("all".to_owned(), |queues| queues.to_string())),
        Cell::number(sent.map(|(rate, loss)| words::packet_rate(rate / (1.0 - loss)))),
        value(Metric::DatagramRate),
        value(Metric::Loss),
        value(Metric::CpuPerDatagram),
        limit.map_or(Cell::Absent, |limit| limit.cause.words().into()),
    ])
}
