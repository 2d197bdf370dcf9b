//! Counters per unit of work: a row for each counter with its unit, a column for each arm.
use std::collections::BTreeSet;

use netduel_model::metric::Metric;
use netduel_model::units::three_digits;

use super::block::{Block, Text};
use super::table::{Cell, Column, Table};
use crate::analysis::{Analysis, ArmAnalysis, COUNTER_CONFIDENCE, Counter, Spread, WorkloadAnalysis};
use crate::words;

/// The section of a workload; empty without counters.
pub(super) fn blocks(workload: &WorkloadAnalysis) -> Vec<Block> {
    if workload.counters.is_empty() && workload.explanation.is_empty() {
        return Vec::new();
    }
    let mut blocks = vec![Block::Heading("Counter analysis".to_owned()), Block::Table(medians(workload))];
    if !workload.counters.is_empty() {
        blocks.push(Block::Folded("Counter ranges".to_owned(), vec![Block::Table(ranges(workload))]));
    }
    blocks
}

/// Medians of the trials, and the paired ratio of each arm to the baseline.
fn medians(workload: &WorkloadAnalysis) -> Table {
    let mut columns = vec![Column::key("counter, median"), Column::key("unit")];
    for (index, arm) in workload.arms.iter().enumerate() {
        columns.push(Column::number(arm.arm.as_str()));
        if index > 0 {
            columns.push(Column::number("paired ratio"));
        }
    }
    let mut table = Table::new(columns);
    for counter in &workload.counters {
        let values: Vec<Option<f64>> =
            counter.arms.iter().map(|(_, spread)| spread.map(|spread| spread.median)).collect();
        let ratios: Vec<Option<f64>> =
            counter.ratios.iter().map(|ratio| Some(ratio.as_ref()?.centre)).collect();
        table.rows.push(row([counter.title, counter.number_unit()], &values, &ratios, |value| {
            counter.number(value)
        }));
    }
    let busiest: Vec<Option<f64>> = workload.arms.iter().map(|arm| arm.busiest_core).collect();
    if busiest.iter().any(Option::is_some) {
        table.rows.push(row(["busiest core of a trial, busy", "%"], &busiest, &[], |share| {
            three_digits(share * 100.0)
        }));
    }
    if workload.arms.len() > 1 {
        table.notes.push(
            "paired ratio: estimate from the pairs within blocks, as in the verdicts; it can differ from the ratio of the medians. Absent \
             for the busiest core, where a value is 0, where the paired ratio is a rise and the ratio of the medians a fall beyond the \
             plan's margin or the reverse, and for counters of whole hosts with CPU contention"
                .to_owned(),
        );
    }
    table.notes.push(
        "each row is a median over the trials, so the parts of the CPU time need not add up".to_owned(),
    );
    let contended: Vec<&str> =
        workload.arms.iter().filter(|arm| arm.has_cpu_contention()).map(|arm| arm.arm.as_str()).collect();
    if !contended.is_empty() {
        table.notes.push(format!(
            "CPU contention in {}: CPU time, interrupts, context switches and time_squeeze are of whole hosts and contain those of other \
             processes",
            words::listed(&contended)
        ));
    }
    table.notes.extend(workload.explanation.iter().cloned());
    table
}

fn row(
    keys: [&str; 2],
    values: &[Option<f64>],
    ratios: &[Option<f64>],
    human: impl Fn(f64) -> String,
) -> Vec<Cell> {
    let mut cells: Vec<Cell> = keys.into_iter().map(Cell::from).collect();
    for (index, value) in values.iter().enumerate() {
        cells.push(Cell::number(value.map(&human)));
        if index > 0 {
            cells.push(Cell::number(ratios.get(index).copied().flatten().map(words::times)));
        }
    }
    cells
}

/// Median and range of each counter, and the paired ratios with their intervals.
fn ranges(workload: &WorkloadAnalysis) -> Table {
    let mut columns = vec![Column::key("counter, median [min, max]")];
    for (index, arm) in workload.arms.iter().enumerate() {
        columns.push(Column::number(arm.arm.as_str()));
        if index > 0 {
            columns.push(Column::number(format!(
                "paired ratio [{} interval]",
                words::percent(COUNTER_CONFIDENCE)
            )));
        }
    }
    let mut table = Table::new(columns);
    let cell = |counter: &Counter, spread: &Option<Spread>| {
        let words = |spread: &Spread| {
            let [median, min, max] =
                [spread.median, spread.min, spread.max].map(|value| counter.human(value));
            format!("{median} [{min}, {max}] (n {})", spread.trials)
        };
        Cell::number(spread.as_ref().map(words))
    };
    for counter in &workload.counters {
        let mut cells = vec![Cell::from(counter.title)];
        for (index, (_, spread)) in counter.arms.iter().enumerate() {
            cells.push(cell(counter, spread));
            if index > 0 {
                let ratio = counter.ratios.get(index).and_then(Option::as_ref);
                cells.push(Cell::number(ratio.map(words::times_with_interval)));
            }
        }
        table.rows.push(cells);
    }
    if workload.arms.len() > 1 {
        table.notes.push(
            "the interval is for this counter alone: of many intervals, some exclude 1 by chance. A ratio without one has too few blocks"
                .to_owned(),
        );
    }
    table
}

/// Metrics without a verdict, with the marks of the warnings about them; empty where there are none.
pub(super) fn not_judged(analysis: &Analysis, workload: &WorkloadAnalysis) -> Vec<Block> {
    if workload.unjudged.is_empty() {
        return Vec::new();
    }
    let warnings = words::warning_sentences(analysis);
    let mark = |metric: Metric| {
        let of_arm =
            |arm: &ArmAnalysis| words::warning_numbers(analysis, &warnings, workload, metric, &arm.arm);
        let numbers: BTreeSet<usize> = workload.arms.iter().flat_map(of_arm).collect();
        words::marks(&numbers.into_iter().collect::<Vec<_>>())
    };
    let arms = workload.arms.iter().map(|arm| Column::number(arm.arm.as_str()));
    // A single trial has neither quartiles nor a number of trials.
    let is_single = workload.arms.len() == 1 && workload.arms.iter().all(|arm| arm.trials < 2);
    let key = if is_single { "metric" } else { "metric, median [quartiles] (n)" };
    let mut table = Table::new([Column::key(key)].into_iter().chain(arms).collect());
    table.columns.push(Column::text("warnings"));
    for metric in &workload.unjudged {
        let values = metric.arms.iter().map(|arm| match words::measure(metric, arm).median {
            Some(median) if is_single => Cell::Number(median),
            _ => Cell::Number(words::value(metric, arm)),
        });
        let mark = mark(metric.metric);
        let mark = if mark.is_empty() { Cell::Absent } else { Cell::Text(mark) };
        table.rows.push([Cell::from(metric.title())].into_iter().chain(values).chain([mark]).collect());
    }
    let title = if workload.arms.len() > 1 { "Metrics without a verdict" } else { "Other metrics" };
    vec![Block::Heading(title.to_owned()), Block::Table(table.without_empty_columns())]
}

/// A list of sentences with emphasis up to the first colon.
pub(super) fn headed_list(items: Vec<String>) -> Block {
    let item = |text: String| match text.split_once(": ") {
        Some((head, rest)) => Text::default()
            .and(head, super::block::Style::Strong)
            .and(format!(": {rest}"), super::block::Style::Plain),
        None => Text::from(text),
    };
    Block::List(items.into_iter().map(item).collect())
}
