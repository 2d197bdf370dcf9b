//! Pairs arms within blocks and judges all comparisons of a run as one family.
use std::collections::BTreeMap;

use netduel_model::ids::ArmName;
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_stats::paired::estimate;
use netduel_stats::summary;
use netduel_stats::verdict::{Judged, Question, Rule, Verdict, judge};

use super::identities::Spans;
use super::{ArmValues, Comparison, Counter, MetricAnalysis, WorkloadAnalysis};

/// The smallest relevant loss when the baseline loses nothing: 1 datagram in 1000.
pub(super) const LOSS_MARGIN_MIN: f64 = 0.001;

/// The smallest relevant number of retransmits per gigabyte when the baseline has none.
pub(super) const RETRANSMITS_MARGIN_MIN: f64 = 1.0;

/// The shortest relevant outage, nanoseconds: the default probe interval; shorter outages are not visible.
const OUTAGE_MARGIN_MIN_NS: f64 = 1e6;
/// The smallest relevant number of lost probes.
const LOST_MARGIN_MIN: f64 = 1.0;
/// The shortest relevant recovery, nanoseconds: one interval of the fine series.
const RECOVERY_MARGIN_MIN_NS: f64 = 1e7;

/// Fills in comparisons and verdicts of all judged metrics, and the ratios of counters. All comparisons of a run are one family:
/// more comparisons need more evidence for each verdict.
pub(super) fn judge_all(plan: &ResolvedPlan, spans: &Spans, workloads: &mut [WorkloadAnalysis]) {
    let design = &plan.design;
    let equivalence = design.equivalence.fraction();
    for workload in workloads.iter_mut() {
        let name = workload.name.clone();
        for metric in workload.judged.iter_mut().chain(&mut workload.unjudged) {
            metric.comparisons =
                comparisons(metric, equivalence, |block, arms| spans.paired(&name, block, arms));
        }
    }
    for workload in workloads.iter_mut() {
        let name = workload.name.clone();
        for counter in &mut workload.counters {
            counter.ratios = ratios(counter, |block, arms| spans.paired(&name, block, arms));
        }
    }
    let questions: Vec<Question> = judged(workloads)
        .map(|(metric, comparison)| Question {
            pairs: comparison.pairs.iter().map(|(_, baseline, arm)| (*baseline, *arm)).collect(),
            scale: metric.scale(),
            margin: comparison.margin,
        })
        .collect();
    let rule = Rule { confidence: design.tested_confidence(), equivalence };
    let answers = judge(&questions, &rule);
    for ((_, comparison), answer) in judged(workloads).zip(answers) {
        comparison.judged = Some(borne_out(answer, comparison.at_least));
    }
}

/// Ratio of each arm to the baseline, with the estimator of the verdicts.
fn ratios(counter: &Counter, paired: impl Fn(u32, [&ArmName; 2]) -> bool) -> Vec<Option<f64>> {
    // The point estimate does not depend on the confidence level.
    const CONFIDENCE: f64 = 0.95;
    let baseline: BTreeMap<u32, f64> = counter.by_block.first().into_iter().flatten().copied().collect();
    let Some((name, _)) = counter.arms.first() else { return Vec::new() };
    let of_arm = |(arm, values): (&ArmName, &Vec<(u32, f64)>)| {
        let pairs: Vec<(f64, f64)> = values
            .iter()
            .filter(|(block, _)| paired(*block, [name, arm]))
            .filter_map(|(block, value)| Some((*baseline.get(block)?, *value)))
            .collect();
        Some(estimate(&pairs, Scale::Ratio, CONFIDENCE)?.centre)
    };
    let arms = counter.arms.iter().map(|(arm, _)| arm).zip(&counter.by_block);
    [None].into_iter().chain(arms.skip(1).map(of_arm)).collect()
}

/// The verdict, or inconclusive when it depends on censored values (lower bounds) of the baseline or of the arm.
fn borne_out(answer: Judged, at_least: [bool; 2]) -> Judged {
    let [of_baseline, of_arm] = at_least;
    let may_be_wrong = match answer.verdict {
        Verdict::Higher { .. } => of_baseline,
        Verdict::Lower { .. } => of_arm,
        Verdict::NoDifference { .. } => of_baseline || of_arm,
        Verdict::NotEnough { .. } => false,
    };
    if may_be_wrong {
        let verdict = Verdict::NotEnough { estimate: answer.estimate, more: None };
        return Judged { verdict, ..answer };
    }
    answer
}

fn judged(workloads: &mut [WorkloadAnalysis]) -> impl Iterator<Item = (Metric, &mut Comparison)> {
    workloads
        .iter_mut()
        .flat_map(|workload| &mut workload.judged)
        .flat_map(|metric| metric.comparisons.iter_mut().map(|comparison| (metric.metric, comparison)))
}

/// `paired`: whether the trials of both arms in a block ran on the same hosts.
fn comparisons(
    metric: &MetricAnalysis,
    equivalence: f64,
    paired: impl Fn(u32, [&ArmName; 2]) -> bool,
) -> Vec<Comparison> {
    let Some((baseline, others)) = metric.arms.split_first() else { return Vec::new() };
    let margin = margin(metric.metric, baseline, equivalence);
    let by_block: BTreeMap<u32, f64> = baseline.values.iter().copied().collect();
    others
        .iter()
        .map(|arm| Comparison {
            arm: arm.arm.clone(),
            pairs: arm
                .values
                .iter()
                .filter(|(block, _)| paired(*block, [&baseline.arm, &arm.arm]))
                .filter_map(|(block, value)| Some((*block, *by_block.get(block)?, *value)))
                .collect(),
            at_least: [baseline, arm].map(|values| !values.at_least.is_empty()),
            margin,
            judged: None,
        })
        .collect()
}

/// A metric that may be zero has no ratio. Its margin is the plan's share of the baseline's median, with a floor for a baseline
/// at or near zero.
fn margin(metric: Metric, baseline: &ArmValues, equivalence: f64) -> f64 {
    let of_median = summary::median(&baseline.numbers()).unwrap_or(0.0) * equivalence;
    match metric {
        Metric::Loss => of_median.max(LOSS_MARGIN_MIN),
        Metric::RetransmitsPerGigabyte => of_median.max(RETRANSMITS_MARGIN_MIN),
        Metric::Outage => of_median.max(OUTAGE_MARGIN_MIN_NS),
        Metric::LostInOutage => of_median.max(LOST_MARGIN_MIN),
        Metric::RecoveryTime => of_median.max(RECOVERY_MARGIN_MIN_NS),
        _ => equivalence,
    }
}
