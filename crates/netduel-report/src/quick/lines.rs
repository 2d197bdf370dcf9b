//! The lines of the intervals of a running test, and their heading. Each type of traffic has one table of columns, which both are made of.
use netduel_model::sample::LiveRoundTrips;
use netduel_model::units::{human_bit_rate, human_nanos, human_si};
use netduel_model::workload::{Direction, Traffic, Wire, WorkUnit};

use super::intervals::{INTERVAL_SHARE_MIN, Interval};
use crate::words;

/// Width of the first column, the times of an interval.
const TIMES_WIDTH: usize = 19;

/// A column of the lines.
struct Column {
    title: &'static str,
    /// Its width. A space before its text belongs to it, also before a text that is wider: a count has no maximum width.
    width: usize,
    /// What it shows of an interval, with the unit.
    cell: fn(&Row) -> String,
    /// Whether the lines of each direction have it.
    is_by_direction: bool,
}

impl Column {
    const fn new(title: &'static str, width: usize, cell: fn(&Row) -> String) -> Self {
        Self { title, width, cell, is_by_direction: false }
    }

    /// A column of bytes, which are counted by direction.
    const fn of_bytes(title: &'static str, width: usize, cell: fn(&Row) -> String) -> Self {
        Self { is_by_direction: true, ..Self::new(title, width, cell) }
    }

    fn padded(&self, text: &str) -> String {
        format!(" {text:>width$}", width = self.width.saturating_sub(1))
    }
}

/// The columns of the lines of a test.
fn columns(traffic: &Traffic) -> Vec<Column> {
    let facts = traffic.facts();
    if facts.is_stream() && facts.wire == Wire::Segments {
        let has_several = facts.sockets.bulk > 1 || facts.bulk == Some(Direction::Both);
        return vec![
            Column::of_bytes("transfer", 12, Row::transfer),
            Column::of_bytes("rate", 16, Row::rate),
            Column::new("retransmits", 13, Row::retransmits),
            Column::new(if has_several { "total cwnd" } else { "cwnd" }, 12, Row::cwnd),
        ];
    }
    if facts.is_datagram_stream() {
        let mut columns = vec![
            Column::of_bytes("transfer", 9, Row::transfer),
            Column::of_bytes("rate", 13, Row::rate),
            Column::new("per second", 11, Row::per_second),
            Column::new("lost", 19, Row::lost),
        ];
        // Packets carry no send time.
        if !facts.is_of_packets() {
            columns.push(Column::new("jitter", 9, Row::jitter));
        }
        return columns;
    }
    let requests = if facts.unit == WorkUnit::Transaction { "transactions" } else { "round trips" };
    vec![
        Column::new(requests, 13, Row::messages),
        Column::new("per second", 13, Row::per_second),
        Column::new("p50", 10, |row| row.time(|trips| trips.p50_ns)),
        Column::new("p99", 10, |row| row.time(|trips| trips.p99_ns)),
        Column::new("max", 10, |row| row.time(|trips| trips.max_ns)),
    ]
}

/// An interval, or one direction of it, as its line shows it.
struct Row {
    interval: Interval,
    /// Its length; absent where it is too short for a rate.
    seconds: Option<f64>,
    /// Unit of messages per second.
    unit: &'static str,
}

impl Row {
    fn by_time(&self, amount: f64, show: impl Fn(f64) -> String) -> String {
        self.seconds.map_or_else(absent, |seconds| show(amount / seconds))
    }

    fn transfer(&self) -> String {
        human_si(self.interval.bytes as f64, "B")
    }

    fn rate(&self) -> String {
        self.by_time(self.interval.bytes as f64 * 8.0, human_bit_rate)
    }

    fn messages(&self) -> String {
        self.interval.messages.to_string()
    }

    fn per_second(&self) -> String {
        self.by_time(self.interval.messages as f64, |rate| human_si(rate, self.unit))
    }

    fn retransmits(&self) -> String {
        self.interval.retransmits.map_or_else(absent, |count| count.to_string())
    }

    fn cwnd(&self) -> String {
        self.interval.cwnd_bytes.map_or_else(absent, |bytes| human_si(bytes as f64, "B"))
    }

    /// What an interval without arrivals lost is known when a later datagram arrives, or at the end.
    fn lost(&self) -> String {
        let all = self.interval.messages.saturating_add(self.interval.lost.unwrap_or(0));
        self.interval
            .lost
            .filter(|_| all > 0)
            .map_or_else(absent, |lost| format!("{lost} ({} %)", percent_of(lost, all)))
    }

    fn jitter(&self) -> String {
        self.interval.jitter_ns.map_or_else(absent, |ns| human_nanos(ns as f64))
    }

    fn time(&self, of: fn(LiveRoundTrips) -> u64) -> String {
        self.interval.round_trips.map(of).map_or_else(absent, |ns| human_nanos(ns as f64))
    }
}

fn absent() -> String {
    "-".to_owned()
}

/// A part in percent with two decimals, for a column: some is not `0.00`, and not all is not `100.00`.
fn percent_of(part: u64, all: u64) -> String {
    match part as f64 * 100.0 / all as f64 {
        percent if percent > 0.0 && percent < 0.01 => "<0.01".to_owned(),
        percent if percent > 99.99 && part < all => ">99.99".to_owned(),
        percent => format!("{percent:.2}"),
    }
}

/// The heading of the interval lines: measured quantity, time base, and column titles.
pub fn heading(traffic: &Traffic) -> String {
    let facts = traffic.facts();
    let counted = match (facts.bulk.filter(|_| facts.is_stream()), facts.is_of_packets()) {
        (Some(_), true) => "packets received",
        (Some(_), false) => "payload received",
        (None, _) if facts.unit == WorkUnit::Transaction => "transactions completed",
        (None, _) => "round trips completed",
    };
    let ways = match facts.bulk {
        Some(Direction::Both) if facts.is_stream() => ", both directions together and each",
        _ => "",
    };
    let note = if facts.is_of_packets() {
        "; lost `-`: counted after the test only".to_owned()
    } else if facts.requests.is_some() {
        let step = words::percent(1.0 / LiveRoundTrips::STEPS as f64);
        format!("; percentiles in steps of {step}, exact in the result")
    } else {
        String::new()
    };
    let titles: String = columns(traffic).iter().map(|column| column.padded(column.title)).collect();
    format!("  per interval: {counted}{ways}, warm-up included{note}\n{:<TIMES_WIDTH$}{titles}", "  interval")
}

/// The line of an interval, of intervals that are `length_s` seconds long; with both directions, a line for each below it. A rate over a
/// small part of an interval says nothing.
pub fn line(traffic: &Traffic, interval: &Interval, length_s: f64) -> String {
    let columns = columns(traffic);
    let row = |bytes: u64| Row {
        interval: Interval { bytes, ..*interval },
        seconds: Some(interval.end_s - interval.start_s)
            .filter(|seconds| *seconds >= length_s * INTERVAL_SHARE_MIN),
        unit: if traffic.facts().is_of_packets() { words::PPS } else { "/s" },
    };
    let text = |title: &str, row: &Row, is_shown: fn(&Column) -> bool| -> String {
        let shown = columns.iter().filter(|column| is_shown(column));
        let cells: String = shown.map(|column| column.padded(&(column.cell)(row))).collect();
        format!("{title:<TIMES_WIDTH$}{cells}")
    };
    let times = format!("{:>6.2} - {:>6.2} s  ", interval.start_s, interval.end_s);
    let mut lines = vec![text(&times, &row(interval.bytes), |_| true)];
    if interval.is_drain {
        lines[0].push_str("  received after the end of the test");
    }
    for (title, bytes) in ["to server", "to client"].into_iter().zip(interval.by_direction.iter().flatten()) {
        lines.push(text(&format!("    {title}"), &row(*bytes), |column| column.is_by_direction));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_reads_neither_as_nothing_nor_as_all() {
        for (part, all, text) in [
            (0, 5, "0.00"),
            (1, 1_000_000, "<0.01"),
            (1, 5_000, "0.02"),
            (192_546, 911_546, "21.12"),
            (999_999, 1_000_000, ">99.99"),
            (5, 5, "100.00"),
        ] {
            assert_eq!(percent_of(part, all), text, "{part} of {all}");
        }
    }
}
