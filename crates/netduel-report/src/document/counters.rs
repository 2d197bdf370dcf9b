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

/// The arms whose counters have a paired ratio to the baseline, by their place. With CPU contention none has.
fn arms_with_ratios(workload: &WorkloadAnalysis) -> Vec<bool> {
    let has_any =
        |index| workload.counters.iter().any(|counter| matches!(counter.ratios.get(index), Some(Some(_))));
    (0..workload.arms.len()).map(has_any).collect()
}

/// The columns of both tables.
fn columns(workload: &WorkloadAnalysis, key: &str, ratio: &str) -> Vec<Column> {
    let mut columns = vec![Column::key(key), Column::key("unit")];
    for (arm, has_ratios) in workload.arms.iter().zip(arms_with_ratios(workload)) {
        columns.push(Column::number(arm.arm.as_str()));
        columns.extend(has_ratios.then(|| Column::number(ratio)));
    }
    columns
}

/// Medians of the trials, and the paired ratio of each arm to the baseline.
fn medians(workload: &WorkloadAnalysis) -> Table {
    let columns = columns(workload, "counter, median", "paired ratio");
    let has_ratios = arms_with_ratios(workload);
    let mut table = Table::new(columns);
    for counter in &workload.counters {
        let values: Vec<Option<f64>> =
            counter.arms.iter().map(|(_, spread)| spread.map(|spread| spread.median)).collect();
        let ratios: Vec<Option<f64>> =
            counter.ratios.iter().map(|ratio| Some(ratio.as_ref()?.centre)).collect();
        let ratios = (&ratios[..], &has_ratios[..]);
        table.rows.push(row([counter.title, counter.number_unit()], &values, ratios, |value| {
            counter.number(value)
        }));
    }
    let busiest: Vec<Option<f64>> = workload.arms.iter().map(|arm| arm.busiest_core).collect();
    if busiest.iter().any(Option::is_some) {
        table.rows.push(row(["busiest core of a trial, busy", "%"], &busiest, (&[], &has_ratios), |share| {
            three_digits(share * 100.0)
        }));
    }
    if has_ratios.contains(&true) {
        table.notes.push(
            "paired ratio: estimate from the pairs within blocks, as in the verdicts; it can differ from the ratio of the medians. None \
             (-) for the busiest core; if a trial has the value 0; if the two ratios point in opposite directions by more than the \
             plan's margin; and with CPU contention for counters of whole hosts"
                .to_owned(),
        );
    }
    table.notes.push(
        "each row is a median over the trials, and busy CPU time includes unaccounted time, so its parts need not add up"
            .to_owned(),
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
    (ratios, has_ratios): (&[Option<f64>], &[bool]),
    human: impl Fn(f64) -> String,
) -> Vec<Cell> {
    let mut cells: Vec<Cell> = keys.into_iter().map(Cell::from).collect();
    for (index, value) in values.iter().enumerate() {
        cells.push(Cell::number(value.map(&human)));
        if has_ratios.get(index) == Some(&true) {
            cells.push(Cell::number(ratios.get(index).copied().flatten().map(words::times)));
        }
    }
    cells
}

/// Median and range of each counter, and the paired ratios with their intervals.
fn ranges(workload: &WorkloadAnalysis) -> Table {
    let ratio = format!("paired ratio [{} interval]", words::percent(COUNTER_CONFIDENCE));
    let has_ratios = arms_with_ratios(workload);
    let mut table = Table::new(columns(workload, "counter, median [min, max]", &ratio));
    let cell = |counter: &Counter, spread: &Option<Spread>, arm: &ArmAnalysis| {
        let words = |spread: &Spread| {
            let [median, min, max] =
                [spread.median, spread.min, spread.max].map(|value| counter.number(value));
            // The number of trials of the arm stands elsewhere.
            let count = (spread.trials != arm.trials).then(|| format!(" (n {})", spread.trials));
            format!("{median} [{min}, {max}]{}", count.unwrap_or_default())
        };
        Cell::number(spread.as_ref().map(words))
    };
    for counter in &workload.counters {
        let mut cells = vec![Cell::from(counter.title), Cell::from(counter.number_unit())];
        for (index, ((_, spread), arm)) in counter.arms.iter().zip(&workload.arms).enumerate() {
            cells.push(cell(counter, spread, arm));
            if has_ratios.get(index) == Some(&true) {
                let ratio = counter.ratios.get(index).and_then(Option::as_ref);
                cells.push(Cell::number(ratio.map(words::times_with_interval)));
            }
        }
        table.rows.push(cells);
    }
    if has_ratios.contains(&true) {
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
        let is_contended = metric.comparisons.iter().any(|comparison| comparison.contention.is_some());
        let remark = if is_contended { "not comparable " } else { "" };
        let mark = format!("{remark}{}", mark(metric.metric));
        let mark = if mark.is_empty() { Cell::Absent } else { Cell::Text(mark.trim_end().to_owned()) };
        table.rows.push([Cell::from(metric.title())].into_iter().chain(values).chain([mark]).collect());
    }
    table.notes = words::few_round_trips(workload, &workload.unjudged);
    let title = if workload.arms.len() > 1 { "Metrics without a verdict" } else { "Other metrics" };
    let mut blocks = vec![Block::Heading(title.to_owned())];
    if workload.arms.len() > 1 {
        let why = "To judge these, list them in the plan (`metrics`); each further verdict widens the intervals of the others.";
        blocks.push(Block::Reading(why.to_owned()));
    }
    blocks.push(Block::Table(table.without_empty_columns()));
    blocks
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
