//! testpmd of DPDK at the ends of a packet report: command lines, parameters, and the driver's own counters.
use netduel_model::dpdk::{DpdkFlows, DpdkReport};
use netduel_model::shell;

use super::block::Block;
use super::table::{Cell, Column, Table};
use crate::analysis::{ArmAnalysis, PacketSpread, WorkloadAnalysis};
use crate::words;

/// Options of testpmd whose purpose neither their names nor the table of parameters shows.
const OPTIONS: [(&str, &str); 4] = [
    ("--txpkts", "length of a packet without the check sequence, which is 4 B of a frame"),
    ("--tx-ip", "addresses of the packets: the network of a cloud routes by them, not by MAC addresses"),
    ("--txonly-multi-flow", "several flows, which the hash of the receiver (RSS) spreads over its queues"),
    ("--rss-udp", "the hash of the receiver (RSS) includes the UDP ports"),
];

/// An end with testpmd.
struct End<'a> {
    workload: &'a WorkloadAnalysis,
    arm: &'a ArmAnalysis,
    spread: &'a PacketSpread,
    report: &'a DpdkReport,
}

fn ends<'a>(workloads: &[&'a WorkloadAnalysis]) -> Vec<End<'a>> {
    let mut found = Vec::new();
    for workload in workloads.iter().copied() {
        for arm in &workload.arms {
            let spreads = arm.packets.iter().flat_map(|way| &way.spread);
            let of_testpmd = spreads.filter_map(|spread| Some((spread, spread.dpdk.as_ref()?)));
            found.extend(of_testpmd.map(|(spread, report)| End { workload, arm, spread, report }));
        }
    }
    found
}

/// Command lines and parameters; empty without testpmd.
pub(super) fn blocks(workloads: &[&WorkloadAnalysis]) -> Vec<Block> {
    let ends = ends(workloads);
    if ends.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![
        Block::Heading("testpmd".to_owned()),
        Block::Reading(
            "The command line of each end. netduel types `start` at the prompt of the receiver and then at that of the sender, and `stop` after the \
             duration; `show port stats all` has the counters."
                .to_owned(),
        ),
        Block::Code(commands(&ends)),
        Block::Table(parameters(&ends)),
    ];
    let counters = counters(&ends);
    if !counters.rows.is_empty() {
        blocks.push(Block::Folded("Counters of the DPDK driver".to_owned(), vec![Block::Table(counters)]));
    }
    blocks
}

/// Each command line below a comment that names the trials that it is of; equal ones once.
fn commands(ends: &[End<'_>]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for one in ends {
        let words: Vec<String> = one.report.command.iter().map(|word| shell::word(word)).collect();
        let (line, title) = (words.join(" "), title(one));
        match groups.iter_mut().find(|(known, _)| *known == line) {
            Some((_, titles)) if titles.contains(&title) => {}
            Some((_, titles)) => titles.push(title),
            None => groups.push((line, vec![title])),
        }
    }
    let lines = |(line, titles): (String, Vec<String>)| {
        [words::plain(&format!("# {}", titles.join("; "))), words::plain(&line)]
    };
    groups.into_iter().flat_map(lines).collect()
}

fn title(one: &End<'_>) -> String {
    format!("{} on {}, {} {}", one.workload.name, one.arm.arm, one.spread.role, one.spread.host)
}

fn parameters(ends: &[End<'_>]) -> Table {
    let mut table = Table::new(["workload", "arm", "end"].map(Column::key).into());
    table.columns.extend(["device", "port", "forwarding cores"].map(Column::text));
    table.columns.extend(["queues", "descriptors"].map(Column::number));
    table.columns.extend(["buffers", "flows", "NUMA node"].map(Column::text));
    for one in ends {
        let Some(settings) = one.arm.workload.traffic.facts().packets.and_then(|path| path.dpdk.as_ref())
        else {
            continue;
        };
        let cores = words::ranges(one.report.cores.iter().copied());
        let is_huge = !one.report.command.iter().any(|word| word == "--no-huge");
        table.rows.push(vec![
            one.workload.name.as_str().into(),
            one.arm.arm.as_str().into(),
            Cell::Text(format!("{} {}", one.spread.role, one.spread.host)),
            settings.device.word().into(),
            Cell::Text(one.report.port.clone()),
            if cores.is_empty() { Cell::Absent } else { Cell::Text(cores) },
            Cell::Count(u64::from(settings.queues(one.spread.role))),
            settings.descriptors.map_or_else(|| "the driver's".into(), |count| Cell::Count(u64::from(count))),
            if is_huge { "huge pages" } else { "ordinary pages" }.into(),
            if one.spread.is_sender { flows(one.report.flows).into() } else { Cell::Absent },
            one.report.numa_node.map_or(Cell::Absent, |node| Cell::Text(node.to_string())),
        ]);
    }
    let mut table = table.without_empty_columns();
    table.rows.dedup();
    table.notes.extend(options(ends));
    table
}

/// The purpose of each option that a command line has.
fn options(ends: &[End<'_>]) -> Vec<String> {
    let has = |option: &str| {
        let mut words = ends.iter().flat_map(|one| &one.report.command);
        words.any(|word| word.split('=').next() == Some(option))
    };
    let used = OPTIONS.iter().filter(|(option, _)| has(option));
    used.map(|(option, purpose)| format!("`{option}`: {purpose}")).collect()
}

fn flows(flows: DpdkFlows) -> &'static str {
    match flows {
        DpdkFlows::One => "one",
        DpdkFlows::SourcePorts => "64 source ports for each core",
        DpdkFlows::SourceAddresses => "256 source addresses",
    }
}

/// The counters (xstats) of each end.
fn counters(ends: &[End<'_>]) -> Table {
    let mut table = Table::new(["workload", "arm", "end", "counter"].map(Column::key).into());
    table.columns.push(Column::number("value"));
    table.notes.push(
        "The driver's own counters (xstats) that are not 0, from the start of testpmd to the end of the first valid trial. Their names are the driver's."
            .to_owned(),
    );
    for one in ends {
        for (name, value) in &one.report.xstats {
            table.rows.push(vec![
                one.workload.name.as_str().into(),
                one.arm.arm.as_str().into(),
                Cell::Text(format!("{} {}", one.spread.role, one.spread.host)),
                Cell::Text(words::plain(name)),
                Cell::Count(*value),
            ]);
        }
    }
    table
}
