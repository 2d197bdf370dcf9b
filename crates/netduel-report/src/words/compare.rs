//! The words of a comparison of runs: verdicts, differences between the runs, and what is not compared.
use std::cmp::Ordering;

use netduel_model::bed::BedNetwork;
use netduel_model::plan::{Pair, Treatment};
use netduel_model::units::plural;
use netduel_model::word::word;
use netduel_stats::unpaired::values_needed;
use netduel_stats::verdict::Verdict;

use super::text::percent_exact;
use super::verdict::{amount, bounded, bounded_effect, no_value, not_comparable};
use super::{ended, marks, published_rule, question, treatment, trials, warnings, workload};
use crate::analysis::Withheld;
use crate::analysis::compare::{ComparedRun, Difference, Reason, RunComparison, RunVerdict, Unmatched};
use crate::document::verdicts::Sides;

/// A verdict: `3.2x (+220 %) [2.9x, 3.5x]`, `no difference beyond 5 %`, `inconclusive: too few values (3 and 8), at least 4 in each needed`.
pub fn verdict(comparison: &RunComparison<'_>, verdict: &RunVerdict) -> String {
    verdict_between([0, verdict.run].map(|run| comparison.label(run)), verdict)
}

/// The verdict on the second of two runs with these labels.
fn verdict_between(labels: [&str; 2], verdict: &RunVerdict) -> String {
    let metric = verdict.metric;
    match (verdict.withheld, verdict.judged.verdict) {
        (Some(Withheld::CpuContention { share_max }), _) => not_comparable(share_max),
        (Some(Withheld::Bounds), _) => bounded(metric).to_owned(),
        (Some(Withheld::NoValue { trials }), _) => no_value(labels, trials),
        (None, Verdict::Higher { estimate } | Verdict::Lower { estimate }) => {
            bounded_effect(metric, &estimate, verdict.has_bounds)
        }
        (None, Verdict::NoDifference { larger_than, .. }) => {
            format!("no difference beyond {}", amount(metric, larger_than))
        }
        (None, Verdict::Inconclusive { estimate: None, .. }) => without_value(labels, verdict.sizes),
        (None, Verdict::Inconclusive { estimate: Some(estimate), .. }) if estimate.high.is_infinite() => {
            too_few(verdict.sizes, estimate.confidence)
        }
        (None, Verdict::Inconclusive { .. }) => "inconclusive".to_owned(),
    }
}

/// `sizes`: the valid values of each run.
fn without_value([first, own]: [&str; 2], sizes: [usize; 2]) -> String {
    match sizes {
        [0, 0] => format!("inconclusive: {first} and {own} have no valid value"),
        [0, _] => format!("inconclusive: {first} has no valid value"),
        [_, 0] => format!("inconclusive: {own} has no valid value"),
        // A confidence at which nothing is tested.
        _ => "inconclusive".to_owned(),
    }
}

/// `confidence`: that at which the values allow no interval.
fn too_few(sizes: [usize; 2], confidence: f64) -> String {
    let [first, own] = sizes;
    let needed = values_needed(sizes, confidence);
    let needed = needed.map_or_else(String::new, |needed| format!(", at least {needed} in each needed"));
    format!("inconclusive: too few values ({first} and {own}){needed}")
}

/// The title of a comparison, with the question of the first run.
pub fn title(comparison: &RunComparison<'_>) -> String {
    let what = if comparison.is_of_runs() {
        format!("Comparison of {}", plural(comparison.runs.len() as u32, "run"))
    } else {
        "Comparison with published figures".to_owned()
    };
    match comparison.runs.first() {
        Some(first) => format!("{what}: {}", question(&first.analysis.plan)),
        None => what,
    }
}

/// What the brackets of values and verdicts hold.
pub fn verdict_legend(comparison: &RunComparison<'_>) -> String {
    format!(
        "Value: median [quartiles] (n valid trials). Verdict: estimate over the valid trials of both runs, not paired [interval at the \
         confidence of its own test, so the widths of two intervals are not comparable]. {}.",
        error_rates(comparison)
    )
}

/// The same for a table without quartiles.
pub const VERDICT_LEGEND_BRIEF: &str =
    "Value: median. Verdict: estimate over all trials, not paired [interval].";

/// How often verdicts of the comparison may be false.
pub fn error_rates(comparison: &RunComparison<'_>) -> String {
    super::error_rates(comparison.promised_confidence(), Sides::Runs)
}

/// How the figures of a comparison are counted.
pub fn rules(comparison: &RunComparison<'_>) -> Vec<(&'static str, String)> {
    let first = comparison.label(0);
    let margin = percent_exact(comparison.equivalence);
    let of_runs = [
        (
            "Comparison",
            format!(
                "Each run against {first}, for each workload of each arm that both have with the same settings. The trials of two runs \
                 share no block, so they are two independent samples: two-sample Hodges-Lehmann estimate of the ratio (of the difference \
                 for metrics that can be 0) with the interval of the Mann-Whitney test."
            ),
        ),
        (
            "Verdict",
            format!(
                "All comparisons are one family (Holm's procedure). {}. The interval in brackets decided the verdict. \"No difference beyond\" is \
                 an equivalence test at {margin}, the margin of {first}. Metrics are those that {first} judges.",
                error_rates(comparison)
            ),
        ),
        (
            "Time",
            "Runs at different times differ in everything that changes between them: other load on the machines and on the network, \
             and what no fact of a host shows. The interval covers the spread of the trials within each run only. To compare two paths, \
             run both as arms of one plan."
                .to_owned(),
        ),
    ];
    let published =
        (!comparison.published.is_empty()).then(|| ("Published figures", published_rule(comparison)));
    of_runs.into_iter().filter(|_| comparison.is_of_runs()).chain(published).collect()
}

/// The numbers of differences that can cause a verdict, counted from 1 in the order of the differences: position and number.
pub fn difference_numbers(comparison: &RunComparison<'_>) -> Vec<(usize, usize)> {
    comparison.explaining().into_iter().zip(1..).collect()
}

/// The number of the difference at a position among those of [`difference_numbers`]; absent for one that causes no verdict.
pub fn difference_number(numbers: &[(usize, usize)], place: usize) -> Option<usize> {
    let at = numbers.binary_search_by_key(&place, |(own, _)| *own).ok()?;
    numbers.get(at).map(|(_, number)| *number)
}

/// The mark of a verdict that differences between the runs can cause: `*1,3`; empty without any.
pub fn verdict_mark(numbers: &[(usize, usize)], verdict: &RunVerdict) -> String {
    let own = numbers.iter().filter(|(place, _)| verdict.explained_by.binary_search(place).is_ok());
    marks(&own.map(|(_, number)| *number).collect::<Vec<_>>())
}

/// Differences that can cause a verdict, one sentence each with its mark.
pub fn explanations(comparison: &RunComparison<'_>) -> Vec<String> {
    let sentence = |(place, number): (usize, usize)| {
        let one = comparison.differences.get(place)?;
        Some(format!(
            "{} {} ({}): may be the cause of the verdicts with this mark",
            marks(&[number]),
            one.subject(),
            in_runs(comparison, one)
        ))
    };
    difference_numbers(comparison).into_iter().filter_map(sentence).collect()
}

/// The value of a fact in each run: `A: 600; B: 3000`.
pub(crate) fn in_runs(comparison: &RunComparison<'_>, one: &Difference) -> String {
    let value = |run| format!("{}: {}", comparison.label(run), one.value(run));
    (0..one.values.len()).map(value).collect::<Vec<_>>().join("; ")
}

/// The warnings of each run, with its label.
pub fn run_warnings(comparison: &RunComparison<'_>) -> Vec<(String, Vec<String>)> {
    let of_run = |run: &ComparedRun<'_>| (run.label.to_string(), warnings(run.analysis));
    comparison.runs.iter().map(of_run).filter(|(_, warnings)| !warnings.is_empty()).collect()
}

/// How each run ended, in one line: `A: 8 blocks, 48 valid trials, 0 excluded, stopped: block limit reached`.
fn run_basis(comparison: &RunComparison<'_>) -> String {
    let of_run = |run: &ComparedRun<'_>| {
        let end = match &run.analysis.end {
            Some(end) => ended(end),
            None => "no end recorded".to_owned(),
        };
        format!("{}: {}, {end}", run.label, trials(run.analysis))
    };
    let runs: Vec<String> = comparison.runs.iter().map(of_run).collect();
    format!("{}.", runs.join(". "))
}

/// What a comparison rests on: its verdicts, and the trials of each run.
pub fn basis(comparison: &RunComparison<'_>) -> String {
    if comparison.is_of_runs() {
        format!("{}. {}", verdict_count(comparison), run_basis(comparison))
    } else {
        run_basis(comparison)
    }
}

/// The number of comparisons and of verdicts without a result.
fn verdict_count(comparison: &RunComparison<'_>) -> String {
    let verdicts = || comparison.subjects.iter().flat_map(|subject| &subject.verdicts);
    let is_open = |one: &&RunVerdict| matches!(one.judged.verdict, Verdict::Inconclusive { .. });
    let open = verdicts().filter(is_open).count();
    format!("{}, {open} without a result", plural(verdicts().count() as u32, "comparison"))
}

/// What is not compared: `bulk of arm accelerated`, `arm accelerated`, `workload bulk`.
pub fn unmatched_subject(one: &Unmatched) -> String {
    match (&one.arm, &one.workload) {
        (Some(arm), Some(workload)) => format!("{workload} of arm {arm}"),
        (Some(arm), None) => format!("arm {arm}"),
        (None, Some(workload)) => format!("workload {workload}"),
        (None, None) => "plan".to_owned(),
    }
}

/// Why an arm or a workload is not compared.
pub fn unmatched(comparison: &RunComparison<'_>, one: &Unmatched) -> String {
    let what = unmatched_subject(one);
    let [first, own] = [0, one.run].map(|run| comparison.label(run));
    let reason = match &one.reason {
        Reason::Missing => format!("{first} has it, {own} does not"),
        Reason::Additional => format!("{own} has it, {first} does not"),
        Reason::Pair(pairs) => {
            let what = other_hosts(pairs, [first, own]);
            let [before, after] = pairs.each_ref().map(|all| hosts(all));
            format!("{what} ({first}: {before}; {own}: {after})")
        }
        Reason::Network(networks) => {
            let words = |network: Option<BedNetwork>| network.map_or("none", |network| word(&network));
            let [before, after] = networks.map(words);
            format!("another network of the bed ({first}: {before}; {own}: {after})")
        }
        Reason::Treatments(treatments) => {
            let [before, after] = treatments.each_ref().map(|all| changes(all));
            format!("other treatments ({first}: {before}; {own}: {after})")
        }
        Reason::Settings(workloads) => {
            let [before, after] = workloads.each_ref().map(workload);
            format!("other settings ({first}: {before}; {own}: {after})")
        }
    };
    format!("{what}: {reason}")
}

/// How the hosts of an arm differ between two runs with these labels. In a crossover an arm has a second pair of hosts.
fn other_hosts([before, after]: &[Vec<Pair>; 2], [first, own]: [&str; 2]) -> String {
    match (before.first() == after.first(), before.len().cmp(&after.len())) {
        (true, Ordering::Greater) => format!("crossover in {first} only"),
        (true, Ordering::Less) => format!("crossover in {own} only"),
        _ => "other hosts".to_owned(),
    }
}

/// The hosts of an arm, those of the second half of a crossover last: `a to b, then c to d`.
fn hosts(pairs: &[Pair]) -> String {
    let words = pairs.iter().map(|pair| format!("{} to {}", pair.client, pair.server));
    words.collect::<Vec<_>>().join(", then ")
}

fn changes(treatments: &[Treatment]) -> String {
    if treatments.is_empty() {
        return "none".to_owned();
    }
    treatments.iter().map(change).collect::<Vec<_>>().join(", ")
}

/// A treatment with the resource group that the plan names: `accelerated networking of x on (client), resource group y`.
fn change(one: &Treatment) -> String {
    let group = one.action.resource_group().map(|group| format!(", resource group {group}"));
    format!("{}{}", treatment(one), group.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use netduel_model::metric::Metric;
    use netduel_stats::paired::Estimate;
    use netduel_stats::verdict::Judged;

    use super::*;

    fn run_verdict(judged: Verdict, withheld: Option<Withheld>) -> RunVerdict {
        RunVerdict {
            metric: Metric::Throughput,
            run: 1,
            sizes: [3, 8],
            margin: 0.05,
            judged: Judged { verdict: judged, estimate: judged.estimate(), adjusted_p: None },
            has_bounds: false,
            withheld,
            explained_by: vec![4, 7],
        }
    }

    fn estimate(centre: f64, low: f64, high: f64) -> Estimate {
        Estimate { n: 3, centre, low, high, confidence: 0.95, p_value: 0.01 }
    }

    #[test]
    fn every_kind_of_verdict_has_its_wording() {
        let open = |estimate| Verdict::Inconclusive { estimate, more: None };
        let bounded = Some(estimate(1.0, 0.9, 1.1));
        let contention = Withheld::CpuContention { share_max: 0.741 };
        for (judged, withheld, words) in [
            (Verdict::Lower { estimate: estimate(0.9, 0.88, 0.95) }, None, "0.90x (-10 %) [0.88x, 0.95x]"),
            (
                Verdict::NoDifference { estimate: estimate(1.0, 0.99, 1.01), larger_than: 0.05 },
                None,
                "no difference beyond 5 %",
            ),
            (open(bounded), None, "inconclusive"),
            (
                // At 95 % 3 and 8 values would do.
                open(Some(Estimate { confidence: 0.99, ..estimate(1.0, 0.0, f64::INFINITY) })),
                None,
                "inconclusive: too few values (3 and 8), at least 4 in each needed",
            ),
            (open(bounded), Some(Withheld::Bounds), "inconclusive: some values are only upper bounds"),
            (
                open(None),
                Some(Withheld::NoValue { trials: [2, 1] }),
                "inconclusive: no value in 2 valid trials of A and 1 valid trial of B",
            ),
            (
                open(None),
                Some(contention),
                "not comparable: other processes used up to 74 % of the CPU time of a host",
            ),
        ] {
            assert_eq!(verdict_between(["A", "B"], &run_verdict(judged, withheld)), words);
        }
    }

    #[test]
    fn verdict_names_the_run_without_a_valid_value() {
        let open = Verdict::Inconclusive { estimate: None, more: None };
        for (sizes, words) in [
            ([0, 8], "inconclusive: A has no valid value"),
            ([8, 0], "inconclusive: C has no valid value"),
            ([0, 0], "inconclusive: A and C have no valid value"),
        ] {
            let open = RunVerdict { sizes, ..run_verdict(open, None) };
            assert_eq!(verdict_between(["A", "C"], &open), words);
        }
    }

    #[test]
    fn effect_of_values_that_are_bounds_is_at_least_so_large() {
        let lower = run_verdict(Verdict::Lower { estimate: estimate(0.9, 0.88, 0.95) }, None);
        let lower = RunVerdict { has_bounds: true, ..lower };
        assert_eq!(verdict_between(["A", "B"], &lower), "at most 0.90x (-10 %) [0.88x, 0.95x]");
        assert!(lower.estimated().is_some());
        let open = Verdict::Inconclusive { estimate: Some(estimate(1.0, 0.9, 1.1)), more: None };
        let open = run_verdict(open, None);
        assert!(open.estimated().is_some());
        assert_eq!(RunVerdict { has_bounds: true, ..open }.estimated(), None);
    }

    #[test]
    fn mark_has_the_numbers_of_the_differences_that_concern_the_verdict() {
        let verdict = run_verdict(Verdict::Inconclusive { estimate: None, more: None }, None);
        assert_eq!(verdict_mark(&[(2, 1), (4, 2), (7, 3)], &verdict), "*2,3");
        assert_eq!(verdict_mark(&[(2, 1)], &verdict), "");
    }
}
