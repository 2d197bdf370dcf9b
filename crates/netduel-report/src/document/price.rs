//! What a run cost, and what its verdicts are worth: by the price of its bed on the day on which that was created, else by the prices of the
//! plan. No network is asked.
use netduel_model::bed::RunBed;
use netduel_model::bed::money::Money;
use netduel_model::ids::{ArmName, HostName};
use netduel_model::metric::Quantity;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::run::Run;
use netduel_model::units::human_nanos;

use super::block::{Block, FactGroup, Scope, Section};
use super::table::{Cell, Column, Table};
use super::verdicts::{Effect, Sides};
use crate::analysis::{Analysis, ArmValues, Bound, Comparison, MetricAnalysis};
use crate::words::{self, Tone};

/// Hosts of an arm.
const HOSTS_OF_ARM: f64 = 2.0;
/// Milliseconds of an hour.
const HOUR_MS: f64 = 3_600_000.0;
/// Bits of a gigabit.
const GIGABIT: f64 = 1e9;

/// Who states the price of the hosts of a run.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Its bed, all VMs of which have one size.
    Bed(&'a RunBed),
    /// Its plan, for each host.
    Plan(&'a ResolvedPlan),
}

impl Source<'_> {
    /// The price of both hosts of an arm for an hour.
    fn of_arm(self, arm: &ArmName) -> Option<Money> {
        match self {
            Self::Bed(bed) => of_vm(bed).map(|price| price.times(HOSTS_OF_ARM)),
            Self::Plan(plan) => {
                let arm = plan.arm(arm)?;
                // In a crossover it has each of two pairs for half of the blocks.
                let other = plan.counterpart(arm).unwrap_or(arm);
                Some(of_pair(plan, arm)?.plus(&of_pair(plan, other)?)?.times(0.5))
            }
        }
    }

    /// The price of all hosts for an hour.
    fn of_all(self) -> Option<Money> {
        match self {
            Self::Bed(bed) => of_vm(bed).map(|price| price.times(bed.vms.len() as f64)),
            Self::Plan(plan) => {
                let mut prices = hosts(plan).into_iter().map(|(_, price)| price.cloned());
                let first = prices.next()??;
                prices.try_fold(first, |all, price| all.plus(&price?))
            }
        }
    }

    /// The price of all hosts in words.
    fn words(self) -> String {
        let Some(all) = self.of_all() else { return "price unknown".to_owned() };
        match self {
            Self::Bed(bed) => of_bed(bed, &all),
            Self::Plan(plan) => {
                let hosts = hosts(plan);
                let priced = hosts.iter().filter_map(|(name, price)| Some(format!("{name} {}", (*price)?)));
                let priced: Vec<String> = priced.collect();
                let count = words::plural(hosts.len() as u32, "host");
                format!("{}; {all} for {count} (stated in the plan)", priced.join(", "))
            }
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Bed(_) => {
                "The price is that of both VMs of an arm; accelerated networking itself costs nothing."
            }
            Self::Plan(_) => "The price is that of both hosts of an arm, stated in the plan.",
        }
    }
}

/// Price and cost of a bed, and a table with what each rate costs.
pub(super) fn blocks(run: &Run, bed: &RunBed, analysis: &Analysis) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Price".to_owned())];
    blocks.extend(of_source(run, Source::Bed(bed), analysis));
    blocks
}

/// The same for hosts of one's own; absent for a run on a bed, whose section has it, and where the plan has no price.
pub(super) fn section(run: &Run, analysis: &Analysis) -> Option<Section> {
    let plan = &run.header.plan;
    let has_price = plan.hosts.values().any(|host| host.price_per_hour.is_some());
    (run.header.bed.is_none() && has_price).then(|| Section {
        anchor: "price".to_owned(),
        title: "Price".to_owned(),
        scope: Scope::Detail,
        blocks: of_source(run, Source::Plan(plan), analysis),
    })
}

fn of_source(run: &Run, source: Source<'_>, analysis: &Analysis) -> Vec<Block> {
    let mut rows = vec![("Price of an hour".to_owned(), source.words())];
    if let Some((all, took_ms)) = source.of_all().zip(took_ms(run)) {
        let cost = all.times(took_ms / HOUR_MS);
        rows.push(("Cost of the run".to_owned(), format!("{cost} for {}", human_nanos(took_ms * 1e6))));
    }
    let facts = Block::Facts(vec![FactGroup { rows, ..FactGroup::default() }]);
    let table = table(source, analysis);
    let table = (!table.rows.is_empty()).then_some(Block::Table(table));
    [facts].into_iter().chain(table).collect()
}

fn of_bed(bed: &RunBed, all: &Money) -> String {
    let Some(price) = of_vm(bed) else { return "price unknown".to_owned() };
    let size = bed.vms.iter().find_map(|vm| vm.claimed.size.clone()).unwrap_or_else(|| "a VM".to_owned());
    let date = bed.price_read_unix_s.or(bed.created_unix_s);
    let of_day =
        date.map(|seconds| format!(", of {}", words::date(seconds.saturating_mul(1000)))).unwrap_or_default();
    format!(
        "{price} for {size}, {all} for {} (Retail Prices API{of_day}; without disks, addresses and traffic)",
        words::plural(bed.vms.len() as u32, "VM")
    )
}

/// The price of one VM for an hour: all VMs of a bed have one size.
fn of_vm(bed: &RunBed) -> Option<Money> {
    let price = bed.price_per_hour.as_ref()?;
    (!bed.vms.is_empty()).then(|| price.times(1.0 / bed.vms.len() as f64))
}

/// The hosts of the arms with their prices, by name: other hosts of a plan do nothing.
fn hosts(plan: &ResolvedPlan) -> Vec<(&HostName, Option<&Money>)> {
    let used: Vec<&HostName> =
        plan.arms.iter().flat_map(|arm| [&arm.pair.client, &arm.pair.server]).collect();
    let hosts = plan.hosts.iter().filter(|(name, _)| used.contains(name));
    hosts.map(|(name, host)| (name, host.price_per_hour.as_ref())).collect()
}

/// The price of both hosts of an arm for an hour.
fn of_pair(plan: &ResolvedPlan, arm: &Arm) -> Option<Money> {
    let price = |host: &HostName| plan.hosts.get(host)?.price_per_hour.as_ref();
    price(&arm.pair.client)?.plus(price(&arm.pair.server)?)
}

/// Time from the start of the run to the end of its last trial, milliseconds. A resumed run has the pause in it: the hosts cost money then, too.
fn took_ms(run: &Run) -> Option<f64> {
    let last = run.trials.iter().max_by_key(|trial| trial.started_unix_ms)?;
    let arm = run.header.plan.arm(&last.slot.arm)?;
    let duration_ms = arm.workload(&last.slot.workload)?.timing.duration.0 / 1_000_000;
    let end = last.started_unix_ms.saturating_add(duration_ms);
    Some(end.saturating_sub(run.header.started_unix_ms) as f64)
}

fn table(source: Source<'_>, analysis: &Analysis) -> Table {
    let mut table = Table::new(vec![Column::key("workload"), Column::key("arm")]);
    table.columns.extend(
        ["rate, median", "rate for each unit of money an hour", "against the baseline"].map(Column::titled),
    );
    for workload in &analysis.workloads {
        let rates = workload.judged.iter().filter(|metric| per_money(metric).is_some());
        // One rate of a workload is enough: the others follow from it.
        for metric in rates.take(1) {
            let baseline = metric.arms.first().and_then(|arm| source.of_arm(&arm.arm));
            for (index, arm) in metric.arms.iter().enumerate() {
                let comparison = metric.comparisons.iter().find(|comparison| comparison.arm == arm.arm);
                let price = source.of_arm(&arm.arm);
                table.rows.push(vec![
                    Cell::from(workload.name.to_string()),
                    Cell::from(arm.arm.to_string()),
                    median(metric, arm).map_or(Cell::Absent, |(value, bound)| {
                        Cell::from(words::metric_value_or_bound(metric.metric, metric.unit, value, bound))
                    }),
                    Cell::from(match (&price, median(metric, arm)) {
                        (Some(price), Some(value)) => rate(metric, value, price),
                        (Some(_), None) => "no value".to_owned(),
                        (None, _) => "price unknown".to_owned(),
                    }),
                    Cell::from(if index == 0 {
                        "baseline".to_owned()
                    } else {
                        worth(metric, comparison, [baseline.as_ref(), price.as_ref()])
                    }),
                ]);
            }
        }
    }
    if !table.rows.is_empty() {
        table.notes.push(format!(
            "{} Against the baseline: what the difference saves or costs an hour for the work of the baseline, if the hosts can be used in parts.",
            source.note()
        ));
    }
    table
}

/// The median of an arm, and what it bounds.
fn median(metric: &MetricAnalysis, arm: &ArmValues) -> Option<(f64, Option<Bound>)> {
    arm.quantile(metric.metric, 0.5)
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

fn rate(metric: &MetricAnalysis, (value, bound): (f64, Option<Bound>), price: &Money) -> String {
    let Some((divisor, unit)) = per_money(metric).filter(|_| price.amount > 0.0) else {
        return "price unknown".to_owned();
    };
    let sign = bound.map_or("", Bound::sign);
    let rate = words::significant(value / divisor / price.amount);
    format!("{sign}{rate} {unit} per {} and hour", price.currency)
}

/// What a proven difference saves or costs, and what the same work does on hosts of another price. The prices are those of the baseline and of
/// the arm.
fn worth(
    metric: &MetricAnalysis,
    comparison: Option<&Comparison>,
    [baseline, own]: [Option<&Money>; 2],
) -> String {
    let judged = comparison.and_then(|comparison| comparison.judged.as_ref());
    let has_bounds = comparison.is_some_and(Comparison::has_bounds);
    let effect = words::shown_effect(metric.metric, judged, has_bounds, Sides::Arms);
    let Effect::Ratio { centre, .. } = effect else {
        return "inconclusive".to_owned();
    };
    let tone = words::tone(metric.metric, judged);
    let ratio = match tone {
        Tone::Better | Tone::Worse => centre,
        Tone::Same if baseline == own => return "no difference that matters".to_owned(),
        Tone::Same => 1.0,
        Tone::Open => return "inconclusive".to_owned(),
    };
    let (Some(baseline), Some(own)) = (baseline.filter(|price| price.amount > 0.0), own) else {
        return "price unknown".to_owned();
    };
    if baseline.currency != own.currency {
        return "price unknown".to_owned();
    }
    let share = 1.0 - own.amount / ratio / baseline.amount;
    // With bounds a better arm is better, and a worse one worse, by at least the estimate.
    let limit = match (tone, share < 0.0) {
        _ if !has_bounds => "",
        (Tone::Better, false) | (Tone::Worse, true) => "at least ",
        _ => "at most ",
    };
    let amount = baseline.times(share.abs());
    match share {
        share if share >= 0.0 => format!("saves {limit}{amount} an hour ({})", words::percent(share)),
        share if share > -0.1 => format!("costs {limit}{amount} more an hour ({})", words::percent(-share)),
        // Not a share of a whole: three times the price for the same work is 200 % more.
        share => format!("costs {limit}{amount} more an hour ({:.0} %)", share.abs() * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;
    use netduel_model::workload::WorkUnit;
    use netduel_stats::paired::Estimate;
    use netduel_stats::verdict::{Judged, Verdict};

    use super::*;

    fn comparison(centre: f64, at_least: [bool; 2]) -> Comparison {
        let [low, high] = [centre * 0.99, centre * 1.01];
        let estimate = Estimate { n: 8, centre, low, high, confidence: 0.95, p_value: 0.01 };
        let verdict = if centre > 1.0 { Verdict::Higher { estimate } } else { Verdict::Lower { estimate } };
        Comparison {
            arm: "a".parse().unwrap(),
            pairs: vec![(0, 1.0, centre); 8],
            is_crossover: false,
            at_least,
            without: [0; 2],
            margin: 0.05,
            blocks: 8,
            contention: None,
            judged: Some(Judged { verdict, estimate: Some(estimate), adjusted_p: Some(0.01) }),
            withheld: None,
        }
    }

    #[test]
    fn worth_of_a_difference_that_rests_on_bounds_is_a_bound() {
        let metric = MetricAnalysis {
            metric: Metric::Throughput,
            unit: WorkUnit::Byte,
            arms: Vec::new(),
            comparisons: Vec::new(),
        };
        let [one, four]: [Money; 2] = ["1 EUR", "4 EUR"].map(|text| text.parse().unwrap());
        // Twice the rate or half of it, for the same price and for four times the price or a quarter.
        for (centre, at_least, [baseline, own], words) in [
            (2.0, [false; 2], [&one, &one], "saves 0.50 EUR an hour (50 %)"),
            (2.0, [true, false], [&one, &one], "saves at least 0.50 EUR an hour (50 %)"),
            (2.0, [true, false], [&one, &four], "costs at most 1.00 EUR more an hour (100 %)"),
            (0.5, [false, true], [&one, &one], "costs at least 1.00 EUR more an hour (100 %)"),
            (0.5, [false, true], [&four, &one], "saves at most 2.00 EUR an hour (50 %)"),
            (0.997, [false; 2], [&one, &one], "costs 0.0030 EUR more an hour (0.3 %)"),
        ] {
            let comparison = comparison(centre, at_least);
            assert_eq!(worth(&metric, Some(&comparison), [Some(baseline), Some(own)]), words);
        }
    }

    #[test]
    fn rate_that_is_a_bound_has_its_sign() {
        let metric = MetricAnalysis {
            metric: Metric::Throughput,
            unit: WorkUnit::Byte,
            arms: Vec::new(),
            comparisons: Vec::new(),
        };
        let bounds = [1, 2].into_iter().collect();
        let arm = ArmValues {
            values: vec![(1, 2e9), (2, 4e9)],
            at_least: bounds,
            ..ArmValues::new("a".parse().unwrap())
        };
        let price: Money = "2 EUR".parse().unwrap();
        let shown = rate(&metric, median(&metric, &arm).unwrap(), &price);
        assert_eq!(shown, "< 1.50 Gbit/s per EUR and hour");
    }
}
