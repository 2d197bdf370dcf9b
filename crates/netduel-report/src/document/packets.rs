//! Packets: both ends of each arm, and the section of a packet report (test, results).
use netduel_model::metric::Metric;
use netduel_stats::summary;

use super::block::{Block, FactGroup, Scope, Section, list};
use super::table::{Cell, Column, Table};
use super::{sweep, testpmd};
use crate::analysis::{Analysis, ArmPackets, MetricAnalysis, PacketRates, WorkloadAnalysis, common_size};
use crate::words;

/// Rates and loss at both ends of each arm; empty for workloads that do not measure packets.
pub(super) fn both_ends(workload: &WorkloadAnalysis) -> Vec<Block> {
    let ways = || workload.arms.iter().flat_map(|arm| arm.packets.iter().map(move |way| (arm, way)));
    let Some(first) = workload.arms.first().filter(|_| ways().next().is_some()) else { return Vec::new() };
    let mut table = Table::new(vec![Column::key("arm"), Column::key("end")]);
    table.columns.extend(["median", "min", "max", "total"].map(Column::number));
    table.columns.push(Column::text("interface counter"));
    table.notes.push(words::packets_rule(&first.workload));
    for (arm, way) in ways() {
        table.rows.extend(rows(arm.arm.as_str(), way));
        table.notes.extend(words::packets_of_way(way).into_iter().map(|note| format!("{}: {note}", arm.arm)));
    }
    let counted = ways().flat_map(|(_, way)| [&way.interface_sent, &way.interface_received]).flatten();
    table.notes.extend(words::loopback_counters(counted.map(|(name, _)| name.as_str())));
    vec![Block::Heading("Packets at both ends".to_owned()), Block::Table(table)]
}

fn rows(arm: &str, way: &ArmPackets) -> [Vec<Cell>; 2] {
    let ends = [
        ("sent", way.sender, way.sent, way.sent_count, &way.interface_sent),
        ("received", way.sender.opposite(), way.received, way.received_count, &way.interface_received),
    ];
    ends.map(|(verb, role, rates, count, interface)| {
        let rate =
            |of: fn(PacketRates) -> Option<f64>| Cell::number(rates.and_then(of).map(words::packet_rate));
        let counted = interface
            .as_ref()
            .map_or_else(|| "bypassed".to_owned(), |(name, packets)| format!("{packets} on {name}"));
        vec![
            arm.into(),
            Cell::Text(format!("{verb} by {role}")),
            rate(|rates| Some(rates.median)),
            rate(|rates| rates.min),
            rate(|rates| rates.max),
            Cell::Count(count),
            Cell::Text(counted),
        ]
    })
}

/// The page of a packet report; absent for a run without packets.
pub(super) fn page(analysis: &Analysis) -> Option<Section> {
    let is_of_packets =
        |workload: &&WorkloadAnalysis| workload.arms.iter().any(|arm| !arm.packets.is_empty());
    let workloads: Vec<&WorkloadAnalysis> = analysis.workloads.iter().filter(is_of_packets).collect();
    if workloads.is_empty() {
        return None;
    }
    let size = common_size(analysis);
    let mut blocks = vec![Block::Heading("Test".to_owned())];
    let tests = workloads.iter().map(|workload| FactGroup {
        rows: vec![(workload.name.to_string(), words::test_description(workload).join(" "))],
        ..FactGroup::default()
    });
    blocks.push(Block::Facts(tests.collect()));
    blocks.extend(testpmd::blocks(&workloads));
    blocks.push(Block::Heading("Results".to_owned()));
    let results = results(&workloads);
    if !results.rows.is_empty() {
        blocks.push(Block::Table(results));
    }
    let published = workloads.iter().flat_map(|workload| words::published(workload, size.as_deref()));
    let sentences: Vec<String> = found(&workloads).into_iter().chain(published).collect();
    if !sentences.is_empty() {
        blocks.push(list(sentences));
    }
    blocks.extend(analysis.sweeps.iter().map(|one| Block::Figure(Box::new(sweep::figure(one, analysis)))));
    let (anchor, title) = ("packets".to_owned(), "Packets per second".to_owned());
    Some(Section { anchor, title, scope: Scope::Reference, blocks })
}

fn results(workloads: &[&WorkloadAnalysis]) -> Table {
    let mut table = Table::new(vec![Column::key("workload"), Column::key("arm")]);
    table.columns.extend(
        ["frame", "sent, median", "received, median", "loss, median of trials", "lost in total", "trials"]
            .map(Column::number),
    );
    for workload in workloads {
        let metrics = workload.judged.iter().chain(&workload.unjudged);
        let loss = metrics.clone().find(|metric| metric.metric == Metric::Loss);
        for arm in workload.arms.iter().filter(|arm| arm.search.is_none()) {
            table.rows.extend(arm.packets.iter().map(|way| {
                let rate = |rates: Option<PacketRates>| {
                    Cell::number(rates.map(|rates| words::packet_rate(rates.median)))
                };
                vec![
                    workload.name.as_str().into(),
                    arm.arm.as_str().into(),
                    Cell::Number(format!("{} B", way.path.frame)),
                    rate(way.sent),
                    rate(way.received),
                    Cell::number(loss_median(loss, arm.arm.as_str())),
                    Cell::number(way.loss().map(words::percent)),
                    Cell::Count(u64::from(arm.trials)),
                ]
            }));
        }
    }
    let ways = || workloads.iter().flat_map(|workload| &workload.arms).flat_map(|arm| &arm.packets);
    let exceeds = |way: &ArmPackets| {
        way.sent.zip(way.received).is_some_and(|(sent, received)| received.median > sent.median)
    };
    if ways().any(exceeds) {
        table.notes.push(
            "A received rate above the sent rate: each rate is a median over the trials of the packets in the steady window, and packets that were \
             sent before the window can arrive in it. The loss is of whole trials."
                .to_owned(),
        );
    }
    table
}

/// The median of an arm's loss over its trials, as the verdicts have it; of both directions together.
fn loss_median(loss: Option<&MetricAnalysis>, arm: &str) -> Option<String> {
    let values = loss?.arms.iter().find(|values| values.arm.as_str() == arm)?;
    summary::median(&values.numbers()).map(words::percent)
}

/// The results of the searches of each arm.
fn found(workloads: &[&WorkloadAnalysis]) -> Vec<String> {
    let searches = workloads.iter().filter(|workload| workload.arms.iter().any(|arm| arm.search.is_some()));
    let of_workload = |workload: &&WorkloadAnalysis| -> Vec<String> {
        let metrics = workload.judged.iter().chain(&workload.unjudged);
        let rates =
            metrics.filter(|metric| matches!(metric.metric, Metric::NoDropRate | Metric::PartialDropRate));
        rates
            .flat_map(|metric| metric.arms.iter().map(move |arm| (metric, arm)))
            .map(|(metric, arm)| {
                let found =
                    if arm.values.is_empty() { "not found".to_owned() } else { words::value(metric, arm) };
                format!("{} of {}: {}, {found}", workload.name, arm.arm, metric.title())
            })
            .collect()
    };
    searches.flat_map(of_workload).collect()
}
