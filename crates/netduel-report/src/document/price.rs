//! What a run on a bed cost, and what its verdicts are worth. The price is that of the day on which the bed was created; no network is asked.
use netduel_model::bed::RunBed;
use netduel_model::bed::money::Money;
use netduel_model::metric::Quantity;
use netduel_model::run::Run;
use netduel_model::units::human_nanos;
use netduel_stats::summary;

use super::block::{Block, FactGroup};
use super::table::{Cell, Column, Table};
use super::verdicts::{Effect, Sides};
use crate::analysis::{Analysis, ArmValues, Comparison, MetricAnalysis};
use crate::words::{self, Tone};

/// Hosts of an arm.
const HOSTS_OF_ARM: f64 = 2.0;
/// Milliseconds of an hour.
const HOUR_MS: f64 = 3_600_000.0;
/// Bits of a gigabit.
const GIGABIT: f64 = 1e9;

/// Price and cost, and a table with what each rate costs.
pub(super) fn blocks(run: &Run, bed: &RunBed, analysis: &Analysis) -> Vec<Block> {
    let facts = Block::Facts(vec![FactGroup { rows: facts(run, bed), ..FactGroup::default() }]);
    let mut blocks = vec![Block::Heading("Price".to_owned()), facts];
    let table = table(bed, analysis);
    if !table.rows.is_empty() {
        blocks.push(Block::Table(table));
    }
    blocks
}

fn facts(run: &Run, bed: &RunBed) -> Vec<(String, String)> {
    let size = bed.vms.iter().find_map(|vm| vm.claimed.size.clone()).unwrap_or_else(|| "a VM".to_owned());
    let label = |text: &str| text.to_owned();
    let Some(price) = of_vm(bed) else {
        return vec![(label("Price of an hour"), "price unknown".to_owned())];
    };
    let all = price.times(bed.vms.len() as f64);
    let date = bed.price_read_unix_s.or(bed.created_unix_s);
    let of_day =
        date.map(|seconds| format!(", of {}", words::date(seconds.saturating_mul(1000)))).unwrap_or_default();
    let mut rows = vec![(
        label("Price of an hour"),
        format!(
            "{price} for {size}, {all} for {} (Retail Prices API{of_day}; without disks, addresses and traffic)",
            words::plural(bed.vms.len() as u32, "VM")
        ),
    )];
    if let Some(took_ms) = took_ms(run) {
        let cost = all.times(took_ms / HOUR_MS);
        rows.push((label("Cost of the run"), format!("{cost} for {}", human_nanos(took_ms * 1e6))));
    }
    rows
}

/// The price of one VM for an hour: all VMs of a bed have one size.
fn of_vm(bed: &RunBed) -> Option<Money> {
    let price = bed.price_per_hour.as_ref()?;
    (!bed.vms.is_empty()).then(|| price.times(1.0 / bed.vms.len() as f64))
}

/// Time from the start of the run to the end of its last trial, milliseconds. A resumed run has the pause in it: the VMs cost money then, too.
fn took_ms(run: &Run) -> Option<f64> {
    let last = run.trials.iter().max_by_key(|trial| trial.started_unix_ms)?;
    let arm = run.header.plan.arm(&last.slot.arm)?;
    let duration_ms = arm.workload(&last.slot.workload)?.timing.duration.0 / 1_000_000;
    let end = last.started_unix_ms.saturating_add(duration_ms);
    Some(end.saturating_sub(run.header.started_unix_ms) as f64)
}

fn table(bed: &RunBed, analysis: &Analysis) -> Table {
    let mut table = Table::new(vec![Column::key("workload"), Column::key("arm")]);
    table.columns.extend(
        ["rate, median", "rate for each unit of money an hour", "against the baseline"].map(Column::titled),
    );
    let price = of_vm(bed).map(|price| price.times(HOSTS_OF_ARM));
    for workload in &analysis.workloads {
        let rates = workload.judged.iter().filter(|metric| per_money(metric).is_some());
        // One rate of a workload is enough: the others follow from it.
        for metric in rates.take(1) {
            for (index, arm) in metric.arms.iter().enumerate() {
                let comparison = metric.comparisons.iter().find(|comparison| comparison.arm == arm.arm);
                table.rows.push(vec![
                    Cell::from(workload.name.to_string()),
                    Cell::from(arm.arm.to_string()),
                    median(arm).map_or(Cell::Absent, |value| Cell::from(metric.human(value))),
                    Cell::from(match (&price, median(arm)) {
                        (Some(price), Some(value)) => rate(metric, value, price),
                        _ => "price unknown".to_owned(),
                    }),
                    Cell::from(if index == 0 {
                        "baseline".to_owned()
                    } else {
                        worth(metric, comparison, price.as_ref())
                    }),
                ]);
            }
        }
    }
    if !table.rows.is_empty() {
        table.notes.push(
            "The price is that of both VMs of an arm; accelerated networking itself costs nothing. Against the baseline: what the difference \
             saves or costs an hour for the work of the baseline, if the VMs can be used in parts."
                .to_owned(),
        );
    }
    table
}

fn median(arm: &ArmValues) -> Option<f64> {
    summary::quantile(&arm.numbers(), 0.5)
}

/// The divisor and the unit of a rate that is worth money; `None` for other metrics.
fn per_money(metric: &MetricAnalysis) -> Option<(f64, &'static str)> {
    match metric.metric.quantity() {
        Quantity::BitRate => Some((GIGABIT, "Gbit/s")),
        Quantity::DatagramRate => Some((1e6, "million packets/s")),
        Quantity::RequestRate => Some((1e3, "thousand requests/s")),
        _ => None,
    }
}

fn rate(metric: &MetricAnalysis, value: f64, price: &Money) -> String {
    let Some((divisor, unit)) = per_money(metric).filter(|_| price.amount > 0.0) else {
        return "price unknown".to_owned();
    };
    format!("{} {unit} per {} and hour", words::significant(value / divisor / price.amount), price.currency)
}

/// What a proven difference saves or costs.
fn worth(metric: &MetricAnalysis, comparison: Option<&Comparison>, price: Option<&Money>) -> String {
    let judged = comparison.and_then(|comparison| comparison.judged.as_ref());
    let tone = words::tone(metric.metric, judged);
    let Effect::Ratio { centre, .. } = words::shown_effect(metric.metric, judged, Sides::Arms) else {
        return "inconclusive".to_owned();
    };
    let share = 1.0 - 1.0 / centre;
    match (tone, price) {
        (Tone::Better | Tone::Worse, None) => "price unknown".to_owned(),
        (Tone::Better, Some(price)) => {
            format!("saves {} an hour ({})", price.times(share), words::percent(share))
        }
        (Tone::Worse, Some(price)) => {
            format!("costs {} more an hour ({})", price.times(-share), words::percent(-share))
        }
        (Tone::Open, _) => "inconclusive".to_owned(),
        (Tone::Same, _) => "no difference that matters".to_owned(),
    }
}
