//! The figures of several tests of packets, one under the other.
use std::fmt::Write as _;

use netduel_model::metric::Metric;

use super::SummaryInput;
use crate::analysis::{self, value_of};
use crate::words;

const HEADINGS: [&str; 7] = ["frame", "queues", "sent", "received", "loss", "CPU per packet", "limited by"];

/// A line for each test, in their order.
pub fn sweep(tests: &[SummaryInput<'_>]) -> String {
    let rows: Vec<[String; 7]> = tests.iter().filter_map(|test| row(*test)).collect();
    let widths: Vec<usize> = (0..HEADINGS.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in std::iter::once(&HEADINGS.map(str::to_owned)).chain(&rows) {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // The last column is words, the others are figures.
            let _ = if index + 1 == HEADINGS.len() {
                write!(line, "  {cell}")
            } else {
                write!(line, "  {cell:>width$}")
            };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn row(test: SummaryInput<'_>) -> Option<[String; 7]> {
    let SummaryInput { workload, trial, shared_machine, expected } = test;
    let packets = workload.traffic.packets()?;
    let of = |metric: Metric| value_of(metric, workload, trial, shared_machine);
    let figure =
        |metric: Metric| of(metric).map_or("-".to_owned(), |value| words::metric_value(metric, true, value));
    // Each datagram is a packet, and loss is a share of what was sent.
    let received = of(Metric::DatagramRate);
    let sent = received.zip(of(Metric::Loss)).filter(|(_, loss)| *loss < 1.0);
    let limit = analysis::limit_of(workload, trial, shared_machine, expected);
    Some([
        format!("{} B", packets.frame),
        packets.queues.map_or("all".to_owned(), |queues| queues.to_string()),
        sent.map_or("-".to_owned(), |(rate, loss)| words::packet_rate(rate / (1.0 - loss))),
        figure(Metric::DatagramRate),
        figure(Metric::Loss),
        figure(Metric::CpuPerDatagram),
        limit.map_or("-".to_owned(), |limit| limit.cause.words().to_owned()),
    ])
}
