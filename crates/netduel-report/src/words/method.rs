//! The method of a run in words, for readers who do not know plans.
use netduel_model::metric::Scale;
use netduel_model::plan::ResolvedPlan;
use netduel_model::units::plural;
use netduel_model::workload::Workload;

use super::legend::error_rates;
use super::text::{listed, percent, percent_exact};
use super::treatment::changes;
use crate::document::verdicts::Sides;

/// How the comparison was made, a paragraph each.
pub fn method(plan: &ResolvedPlan) -> Vec<String> {
    let names = |names: Vec<&str>| listed(&names);
    let arms = names(plan.arms.iter().map(|arm| arm.name.as_str()).collect());
    let workloads = names(plan.workloads.iter().map(netduel_model::ids::WorkloadName::as_str).collect());
    let design = &plan.design;
    let is_compared = plan.compares();
    let trials = plan.arms.iter().map(|arm| arm.workloads.len()).sum::<usize>() as u32;
    let mut paragraphs = Vec::new();
    if is_compared {
        let baseline = plan.arms.first().map_or("", |arm| arm.name.as_str());
        paragraphs.push(format!(
            "The arms {arms} were compared with the same traffic ({workloads}). {baseline} is the baseline. A block has one trial of each workload \
             on each arm, {} in random order, so that a temporary slowdown of a host affects all arms alike.",
            plural(trials, "trial")
        ));
    } else {
        paragraphs.push(format!("Each block has {} ({workloads}) in random order.", plural(trials, "trial")));
    }
    if let Some(half) = plan.crossover_at() {
        let crossed = plan.arms.iter().enumerate().filter_map(|(index, arm)| {
            let other = plan.counterpart(arm)?;
            let is_first = plan.arms[..index].iter().all(|before| before.name != other.name);
            is_first.then(|| format!("{} and {}", arm.name, other.name))
        });
        let crossed: Vec<String> = crossed.collect();
        paragraphs.push(format!(
            "Arms exchange their hosts after block {half}: {}. A pair of a comparison is the mean of two blocks, one of each half (the geometric \
             mean where ratios are compared), in which both arms had both pairs of hosts, so that a difference between the hosts is in no \
             verdict.",
            listed(&crossed.iter().map(String::as_str).collect::<Vec<_>>())
        ));
    }
    if !changes(plan).is_empty() {
        paragraphs.push(
            "The settings of an arm were applied before each of its trials and restored after it.".to_owned(),
        );
    }
    if has_proven_trials(plan) {
        let share = percent(netduel_model::trial::PATH_SHARE_MIN);
        paragraphs.push(format!(
            "Interface counters at both ends were read around each trial. A trial is excluded if less than {share} of its bytes \
             crossed the interface that its arm expects."
        ));
    }
    if is_compared {
        let [_, blocks] = paired_within(plan);
        paragraphs.push(format!(
            "Verdicts rest on pairs within {blocks}: the estimate is the Hodges-Lehmann median of {}. {} (Holm); each interval has the \
             confidence at which its verdict was decided. \"No difference\" is stated only if an equivalence test shows that the \
             difference is smaller than {}.",
            compared_as(plan),
            error_rates(design.confidence.fraction(), Sides::Arms),
            percent_exact(design.equivalence.fraction())
        ));
        paragraphs.extend(early_end(plan));
    }
    paragraphs
}

/// When a run could end before its last block, and what that costs its tests; absent for a run with a fixed number of blocks.
fn early_end(plan: &ResolvedPlan) -> Option<String> {
    let design = &plan.design;
    let mut metrics = plan.arms.iter().flat_map(|arm| &arm.workloads).flat_map(|workload| &workload.metrics);
    let has_differences = metrics.any(|metric| metric.scale() == Scale::Difference);
    let or =
        if has_differences { ", or at most the margin where metrics are compared by difference" } else { "" };
    let words = || {
        format!(
            "The run could end before its last block: from {} on, as soon as the half-width of every interval was at most {} of its ratio{or}. To stop \
             when intervals are narrow favours those that are narrow by chance, so the tests used a confidence of {} instead of {}.",
            plural(design.blocks_min, "block"),
            design.precision,
            percent_exact(design.tested_confidence()),
            percent_exact(design.confidence.fraction())
        )
    };
    design.may_stop_early().then(words)
}

/// What has a pair of values of a comparison, for one pair and for all: a block, or two blocks of a crossover.
pub(super) fn paired_within(plan: &ResolvedPlan) -> [&'static str; 2] {
    if plan.design.crossover {
        ["the same two blocks, one of each half", "two blocks, one of each half"]
    } else {
        ["the same block", "blocks"]
    }
}

/// What verdicts are estimated from: `their ratios, for loss and outage of their differences`.
pub(super) fn compared_as(plan: &ResolvedPlan) -> String {
    let workloads = plan.arms.iter().flat_map(|arm| &arm.workloads);
    let mut titles: Vec<&str> = workloads
        .flat_map(|workload| &workload.metrics)
        .filter(|metric| metric.scale() == Scale::Difference)
        .map(|metric| metric.title())
        .collect();
    titles.sort_unstable();
    titles.dedup();
    if titles.is_empty() {
        return "their ratios".to_owned();
    }
    format!("their ratios, for {} of their differences", listed(&titles))
}

/// Whether the path of some trial is proven: not where events change it.
pub(crate) fn has_proven_trials(plan: &ResolvedPlan) -> bool {
    let is_steady = |workload: &Workload| workload.traffic.facts().events.is_empty();
    plan.arms.iter().any(|arm| arm.is_proven() && arm.workloads.iter().any(is_steady))
}

#[cfg(test)]
mod tests {
    use netduel_model::plan::parse;

    use super::*;

    #[test]
    fn method_names_arms_order_proof_and_confidence() {
        let text = "name = \"p\"\nquestion = \"?\"\n[lab]\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n\
             [[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"synthetic\" }]\n\
             [[arms]]\nname = \"two\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{ path = \"accelerated\" }]\n\
             [[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\n[design]\nequivalence = \"2.5 %\"\n";
        let words = method(&parse(text, "p").unwrap()).join("\n");
        for part in [
            "one and two",
            "one is the baseline",
            "2 trials in random order",
            "99 %",
            "Of many repetitions of this run, at most 5 % state any false difference",
            "(Holm)",
            "2.5 %",
        ] {
            assert!(words.contains(part), "no {part} in {words}");
        }
    }
}
