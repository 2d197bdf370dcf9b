//! The section of a workload: bottleneck, counters, tables of its traffic type, and plots.
use netduel_model::workload::Workload;

use super::block::{Block, Scope, Section, titled_list};
use super::chart::Figure;
use super::table::{Cell, Column, Table};
use super::verdicts::Sides;
use super::{
    core_plots, counters, datagrams, errors, failover, latency_plots, levels, metric_plots, packets, search,
    stamps, time_plots,
};
use crate::analysis::{Analysis, ArmAnalysis, ArmLimit, WorkloadAnalysis};
use crate::words;

/// The section of the workload with that number; absent when no arm has the workload.
pub(super) fn section(analysis: &Analysis, number: usize, workload: &WorkloadAnalysis) -> Option<Section> {
    if workload.arms.is_empty() {
        return None;
    }
    let mut blocks = settings(workload);
    blocks.extend(levels::of_workload(analysis, workload).map(|figure| Block::Figure(Box::new(figure))));
    blocks.extend(bottleneck(analysis, workload));
    blocks.extend(counters::blocks(workload));
    blocks.extend(stamps::blocks(workload));
    blocks.extend(failover::blocks(workload));
    blocks.extend(search::blocks(workload));
    blocks.extend(packets::both_ends(workload));
    blocks.extend(datagrams::blocks(workload));
    blocks.extend(distribution(workload));
    blocks.extend(errors::blocks(workload));
    blocks.extend(titled_list("CPU placement", words::placements(workload)));
    blocks.extend(figures(workload).into_iter().map(|figure| Block::Figure(Box::new(figure))));
    blocks.extend(counters::not_judged(analysis, workload));
    Some(Section {
        anchor: format!("workload-{}", number + 1),
        title: workload.name.to_string(),
        scope: Scope::Detail,
        blocks,
    })
}

/// The settings: once if all arms agree, else by arm.
fn settings(workload: &WorkloadAnalysis) -> Vec<Block> {
    vec![Block::Reading(words::workload_of_arms(workload))]
}

/// Queues of each arm's interfaces, and cores that processed packets; empty when none was counted.
fn distribution(workload: &WorkloadAnalysis) -> Vec<Block> {
    let mut table = Table::new(["arm", "end", "interface"].map(Column::key).to_vec());
    table.columns.extend([
        Column::text("packets by queue"),
        Column::text("packets by core"),
        Column::text("remarks"),
    ]);
    let text = |text: Option<String>| text.map_or(Cell::Absent, Cell::Text);
    table.rows = words::queues(workload)
        .into_iter()
        .map(|row| {
            let remarks = (!row.remarks.is_empty()).then(|| row.remarks.join("; "));
            vec![
                row.arm.into(),
                row.end.into(),
                row.interface.into(),
                text(row.queues),
                text(row.cores),
                text(remarks),
            ]
        })
        .collect();
    let mut by_core = Table::new(["arm", "machine"].map(Column::key).to_vec());
    by_core.columns.push(Column::text("packets of the machine by core"));
    by_core.rows =
        words::packets_by_core(workload).into_iter().map(|row| row.map(Cell::Text).into()).collect();
    by_core.notes.push(
        "packets of the machine: all packets that its network stack processed (softnet_stat), of any interface and program; a \
         packet counts again at each virtual interface that it passes"
            .to_owned(),
    );
    let title = if table.rows.is_empty() { "CPU distribution" } else { "Queue and CPU distribution" };
    let tables = [table.without_empty_columns(), by_core].into_iter().filter(|table| !table.rows.is_empty());
    let tables: Vec<Block> = tables.map(Block::Table).collect();
    if tables.is_empty() {
        return tables;
    }
    [vec![Block::Heading(title.to_owned())], tables].concat()
}

/// The bottleneck of each arm; empty without a valid trial.
fn bottleneck(analysis: &Analysis, workload: &WorkloadAnalysis) -> Vec<Block> {
    let mut columns = vec![Column::key("arm"), Column::text("cause")];
    columns.extend([Column::number("trials"), Column::text("evidence")]);
    let mut table = Table::new(columns);
    table.rows = workload.arms.iter().filter_map(row).collect();
    table.notes = words::limit_shares(workload);
    let names_softirq = |arm: &ArmAnalysis| {
        arm.limit.iter().flat_map(|limit| &limit.evidence).any(|words| words.contains("softirq"))
    };
    let explains_softirq = workload.explanation.iter().any(|words| words.contains("softirq"));
    if explains_softirq || workload.arms.iter().any(names_softirq) {
        table.notes.extend(words::switch_in_softirq(&analysis.plan));
    }
    if table.rows.is_empty() && table.notes.is_empty() {
        return Vec::new();
    }
    vec![Block::Heading("Bottleneck".to_owned()), Block::Table(table)]
}

fn row(arm: &ArmAnalysis) -> Option<Vec<Cell>> {
    let limit = arm.limit.as_ref()?;
    let ArmLimit { cause, trials, of, evidence, others, .. } = limit;
    let noun = if cause.is_some() { "other trial" } else { "trial" };
    let others =
        others.iter().map(|(cause, count)| format!("in {}: {}", words::plural(*count, noun), cause.words()));
    let mut parts = vec![evidence.join("; ")];
    parts.retain(|words| !words.is_empty());
    if *of > 1 {
        for words in &mut parts {
            *words = format!("{}: {words}", trial_of_evidence(&arm.workload, limit));
        }
    }
    // Without a single cause they come first: the evidence is that of the first of them.
    let place = if cause.is_some() { parts.len() } else { 0 };
    parts.splice(place..place, others);
    let evidence = if parts.is_empty() { Cell::Absent } else { Cell::Text(parts.join("; ")) };
    Some(vec![
        arm.arm.as_str().into(),
        limit.words().into(),
        Cell::Number(format!("{trials}{} of {of}", if cause.is_some() { "" } else { " each" })),
        evidence,
    ])
}

/// The trial whose evidence is shown, among which it is the median, and by which metric.
fn trial_of_evidence(workload: &Workload, limit: &ArmLimit) -> String {
    let cause = if limit.cause.is_some() { "this cause" } else { "the first cause" };
    let unit = workload.traffic.facts().unit;
    let metric = workload.metrics.first().map(|metric| format!(" by {}", metric.title_in(unit)));
    let metric = metric.unwrap_or_default();
    // Of an even number of trials none is the median: the evidence is that of the lower one of the two in the middle.
    let lower = if limit.trials.is_multiple_of(2) { "lower " } else { "" };
    let trial = match limit.trials {
        all if all == limit.of => format!("{lower}median trial{metric}"),
        1 => format!("the trial with {cause}"),
        some => format!("{lower}median{metric} of the {some} trials with {cause}"),
    };
    format!("{trial} (block {})", limit.evidence_block.saturating_add(1))
}

fn figures(workload: &WorkloadAnalysis) -> Vec<Figure> {
    let by_block = |metric| metric_plots::by_block(workload, metric, Sides::Arms);
    let mut figures: Vec<Figure> = workload.judged.iter().filter_map(by_block).collect();
    figures.extend(over_trials(workload, Sides::Arms));
    figures.extend(latency_plots::parts(workload));
    figures.extend(core_plots::by_machine(workload));
    figures
}

/// The time series of a trial and the distribution of its samples, each over all valid trials of an arm or run.
pub(super) fn over_trials(workload: &WorkloadAnalysis, sides: Sides) -> Vec<Figure> {
    // A failover has its own picture with the events, and a search has one with its steps.
    let is_drawn = workload.arms.iter().any(|arm| arm.failover.is_some() || arm.search.is_some());
    let mut figures = Vec::new();
    if !is_drawn {
        figures.extend(time_plots::within_a_trial(workload));
    }
    let distribution = latency_plots::distribution(workload);
    if distribution.is_empty() && !is_drawn {
        figures.extend(match sides {
            Sides::Arms => metric_plots::all_intervals(workload),
            // Runs are often alike: lines over each other show a small difference.
            Sides::Runs => metric_plots::cumulative_intervals(workload),
        });
    }
    figures.extend(distribution);
    figures
}
