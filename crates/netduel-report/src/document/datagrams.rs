//! Datagrams and packets: loss by location, packets per datagram, and every trial.
use netduel_model::units::{count, three_digits};
use netduel_model::workload::Role;

use super::block::{Block, list};
use super::table::{Cell, Column, Table};
use crate::analysis::{DatagramDirection, Lost, Packets, WorkloadAnalysis};
use crate::total::Total;
use crate::words;

/// The section of a workload; empty for traffic without datagrams.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    let mut sentences = words::datagrams(workload);
    if sentences.is_empty() && workload.arms.iter().all(|arm| arm.datagrams.is_empty()) {
        return Vec::new();
    }
    let mut shown = Vec::new();
    // Packet workloads have the table of both ends instead.
    if workload.arms.iter().all(|arm| arm.packets.is_empty()) {
        shown.push(Block::Table(losses(workload)));
        sentences.extend(note(workload));
    }
    if !sentences.is_empty() {
        shown.push(list(sentences));
    }
    // Text formats omit the trials: a heading for them alone would have nothing below it.
    let heading = (!shown.is_empty()).then(|| Block::Heading(words::datagrams_title(workload).to_owned()));
    let trials = Block::Folded("Trials".to_owned(), vec![Block::Table(trials(workload))]);
    heading.into_iter().chain(shown).chain([trials]).collect()
}

/// The note on the interfaces that counted the packets.
fn note(workload: &WorkloadAnalysis) -> Option<String> {
    let ways = workload.arms.iter().flat_map(|arm| &arm.datagrams);
    let counted = ways.flat_map(|way| [&way.packets_sent, &way.packets_received]).flatten();
    words::loopback_counters(counted.map(|packets| packets.interface.as_str()))
}

/// Totals of the valid trials, by arm and direction.
fn losses(workload: &WorkloadAnalysis) -> Table {
    let mut table = Table::new(vec![Column::key("arm"), Column::key("direction")]);
    let titles = [
        "sent",
        "received",
        "lost",
        "share",
        "at the socket",
        "at an interface",
        "elsewhere",
        "duplicate",
        "reordered",
    ];
    table.columns.extend(titles.map(Column::number));
    let all = || workload.arms.iter().flat_map(|arm| &arm.datagrams);
    let first = all().next().map(|way| way.sender);
    // With columns that say nothing the table would become a list on narrow terminals.
    let shown = Shown {
        direction: all().any(|way| Some(way.sender) != first),
        duplicates: all().any(|way| way.duplicates > 0),
        reordered: all().any(|way| way.reordered > 0),
    };
    for arm in &workload.arms {
        for sender in [Role::Client, Role::Server] {
            let ways: Vec<&DatagramDirection> =
                arm.datagrams.iter().filter(|way| way.sender == sender).collect();
            if !ways.is_empty() {
                table.rows.push(totals(arm.arm.as_str(), sender, &ways, shown));
            }
        }
    }
    if let Some(sender) = first.filter(|_| !shown.direction) {
        table.notes.push(format!("Direction: {}.", words::direction(sender)));
    }
    if !shown.duplicates && !shown.reordered {
        table.notes.push("Datagrams: 0 duplicate, 0 reordered.".to_owned());
    }
    table.notes.push(
        "Totals of all valid trials. Losses at the socket are a limit of netduel. Losses at an interface or qdisc are counted by the two \
         hosts. The rest was lost on the path or is not accounted for."
            .to_owned(),
    );
    table.without_empty_columns()
}

/// The columns that say something.
#[derive(Clone, Copy)]
struct Shown {
    direction: bool,
    duplicates: bool,
    reordered: bool,
}

fn totals(arm: &str, sender: Role, ways: &[&DatagramDirection], shown: Shown) -> Vec<Cell> {
    let sum = |of: fn(&DatagramDirection) -> u64| ways.iter().map(|way| of(way)).total();
    let lost: Option<Vec<Lost>> = ways.iter().map(|way| way.lost).collect();
    let part = |of: fn(&Lost) -> u64| {
        lost.as_ref().map_or(Cell::Absent, |lost| Cell::Count(lost.iter().map(of).total()))
    };
    let all = lost.as_ref().map(|lost| lost.iter().map(|lost| lost.all).total());
    let sent = sum(|way| way.sent);
    let unless_left_out = |is_shown: bool, cell: Cell| if is_shown { cell } else { Cell::Absent };
    vec![
        arm.into(),
        unless_left_out(shown.direction, words::direction(sender).into()),
        Cell::Count(sent),
        Cell::Count(sum(|way| way.received)),
        part(|lost| lost.all),
        Cell::number(all.map(|all| words::percent(all as f64 / sent.max(1) as f64))),
        part(|lost| lost.at_socket),
        part(|lost| lost.at_interface),
        part(|lost| lost.elsewhere()),
        unless_left_out(shown.duplicates, Cell::Count(sum(|way| way.duplicates))),
        unless_left_out(shown.reordered, Cell::Count(sum(|way| way.reordered))),
    ]
}

fn trials(workload: &WorkloadAnalysis) -> Table {
    let mut table = Table::new(vec![Column::key("Arm"), Column::key("Block"), Column::key("Direction")]);
    let titles = [
        "Sent",
        "Received",
        "Lost at the socket",
        "Lost at an interface",
        "Lost elsewhere",
        "Packets sent",
        "Packets received",
        "Bytes per packet",
        "Datagrams per packet",
    ];
    table.columns.extend(titles.map(Column::number));
    for arm in &workload.arms {
        table.rows.extend(arm.datagrams.iter().map(|way| trial(arm.arm.as_str(), way)));
    }
    table
}

fn trial(arm: &str, way: &DatagramDirection) -> Vec<Cell> {
    let lost = |of: fn(Lost) -> u64| way.lost.map_or(Cell::Absent, |lost| Cell::Count(of(lost)));
    let packets =
        |seen: &Option<Packets>| seen.as_ref().map_or(Cell::Absent, |seen| Cell::Count(seen.packets));
    let length = way.packets_received.as_ref().and_then(Packets::bytes_per_packet);
    vec![
        arm.into(),
        Cell::Text(way.block.saturating_add(1).to_string()),
        words::direction(way.sender).into(),
        Cell::Count(way.sent),
        Cell::Count(way.received),
        lost(|lost| lost.at_socket),
        lost(|lost| lost.at_interface),
        lost(Lost::elsewhere),
        packets(&way.packets_sent),
        packets(&way.packets_received),
        Cell::number(length.map(count)),
        Cell::number(way.datagrams_per_packet.map(three_digits)),
    ]
}
