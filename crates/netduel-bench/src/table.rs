//! The terminal's table, and a line `figure NAME VALUE UNIT` for each ratio, which `cargo xtask bench` collects.
use crate::cases::{CASES, Case};
use crate::record::{Bound, Comparison, Record, Target};
use crate::summary::{self, Row, Spread};

/// Share of all cores used by other programs above which the machine is reported as busy. Ordinary system services stay below it.
const OTHERS_MOST: f64 = 0.05;

/// The names and the comparison of all cases, a line each.
pub fn cases() -> String {
    let line = |case: &Case| {
        let against = case.against.map_or_else(String::new, |tool| format!(" v {}", tool.label()));
        format!("{:<16} {}{against}\n", case.name, case.ours.name)
    };
    CASES.iter().map(line).collect::<Vec<_>>().concat()
}

/// The whole result.
pub fn whole(record: &Record) -> String {
    let mut lines = head(record);
    for comparison in &record.results {
        let placement = comparison.placement.title();
        lines.push(format!("\n{} [{placement}]{}", summary::heading(comparison), note(comparison)));
        let missing = comparison.missing.iter().chain(&comparison.failures);
        lines.extend(missing.map(|line| format!("  NOT MEASURED: {line}")));
        let rows = summary::rows(comparison, record.accounting);
        lines.extend(rows.iter().map(|row| format!("  {}", line(row))));
    }
    lines.push(String::new());
    for comparison in &record.results {
        for row in summary::rows(comparison, record.accounting) {
            if let Some(ratio) = row.ratio {
                lines.push(format!("figure {} {:.4} x", figure_name(comparison, &row), ratio.median));
            }
        }
    }
    lines.join("\n") + "\n"
}

/// Machine, date and method.
pub fn head(record: &Record) -> Vec<String> {
    let machine = &record.machine;
    let offload = |(name, on): &(String, bool)| format!("{name} {}", if *on { "on" } else { "off" });
    let mut lines = vec![
        format!("command: {}", record.command),
        format!("date: {} UTC; commit {}", record.date, record.commit.as_deref().unwrap_or("unknown")),
        format!(
            "machine: {}, {} cores, Linux {}, clock source {}",
            machine.cpu,
            machine.cores,
            machine.kernel,
            machine.clock_source.as_deref().unwrap_or("unknown")
        ),
        format!(
            "path: two network namespaces, one veth, MTU {}, congestion control {} (by route, for all tools)",
            machine.mtu, machine.congestion
        ),
        format!("offloads of the veth: {}", machine.offloads.iter().map(offload).collect::<Vec<_>>().join(", ")),
        format!(
            "socket buffers: {}",
            machine.buffers.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        ),
        format!("CPU counted: {}", record.accounting.explanation()),
        "placement: free = placed by the kernel; apart = client on core 0, server on core 1, all threads of each; together = all on core 0"
            .to_owned(),
    ];
    for peer in &record.peers {
        let version = peer.version.as_deref().unwrap_or("NOT INSTALLED: its comparisons are missing");
        lines.push(format!("peer {}: {version}", peer.program));
    }
    if let Some(others) = summary::others(record) {
        lines.push(format!(
            "other programs during the runs: {:.1} % of all cores, [{:.1}-{:.1}]",
            others.median * 100.0,
            others.least * 100.0,
            others.most * 100.0
        ));
        if others.median > OTHERS_MOST {
            lines.push("BUSY MACHINE: repeat on a quiet machine before you quote a figure".to_owned());
        }
    }
    if !record.optimised {
        lines.push("NOT OPTIMISED: figures of a debug build are meaningless".to_owned());
    }
    lines
}

fn note(comparison: &Comparison) -> &'static str {
    if comparison.segmented { " (tx-udp-segmentation off: a datagram is a packet)" } else { "" }
}

fn line(row: &Row) -> String {
    let metric = row.metric;
    let head = format!("{:<20}", metric.title());
    let Some((ratio, theirs)) = row.ratio.zip(row.theirs) else {
        return format!("{head} {}{}", range(row.ours, |value| metric.show(value)), targets(row));
    };
    format!(
        "{head} {} x{}   ours {}, theirs {}{}",
        range(ratio, |value| format!("{value:.2}")),
        row.interval.map_or_else(String::new, |(low, high)| format!("  95 % [{low:.2}, {high:.2}]")),
        metric.show(row.ours.median),
        metric.show(theirs.median),
        targets(row)
    )
}

/// `median [min-max]`.
pub fn range(spread: Spread, show: impl Fn(f64) -> String) -> String {
    format!("{} [{}-{}]", show(spread.median), show(spread.least), show(spread.most))
}

fn targets(row: &Row) -> String {
    let targets = row.targets.iter().map(|(target, is_reached)| {
        format!("   target {}: {}", bound(target), if *is_reached { "yes" } else { "NO" })
    });
    targets.collect()
}

/// A target as a formula.
pub fn bound(target: &Target) -> String {
    let sign = match target.bound {
        Bound::AtLeast => ">=",
        Bound::AtMost => "<=",
    };
    format!("{sign} {}", target.value)
}

/// One word.
fn figure_name(comparison: &Comparison, row: &Row) -> String {
    let words =
        format!("{}:{}:{}", summary::heading(comparison), comparison.placement.title(), row.metric.title());
    let mut name = String::new();
    for c in words.chars() {
        let c = if c.is_ascii_alphanumeric() || c == ':' { c } else { '-' };
        if !(c == '-' && name.ends_with(['-', ':'])) {
            name.push(c);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::Metric;

    #[test]
    fn target_is_printed_as_a_formula() {
        let target = Target { metric: Metric::Throughput, bound: Bound::AtLeast, value: 1.8 };
        assert_eq!(bound(&target), ">= 1.8");
    }

    #[test]
    fn range_is_printed_with_both_ends() {
        let spread = Spread { median: 2.0, least: 1.5, most: 2.25 };
        assert_eq!(range(spread, |value| format!("{value:.2}")), "2.00 [1.50-2.25]");
    }
}
