//! Pairs arms within blocks and judges all comparisons of a run as one family.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::ArmName;
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_stats::paired::{Estimate, estimate};
use netduel_stats::summary;
use netduel_stats::verdict::{Forecast, Judged, Question, Rule, Verdict, judge};

use super::bound::Bound;
use super::identities::Spans;
use super::result::Withheld;
use super::{ArmAnalysis, ArmValues, Comparison, Counter, MetricAnalysis, WorkloadAnalysis};

/// From this share of the pairs on, pairs with CPU contention could decide the estimate: the breakdown point of the
/// Hodges-Lehmann estimator is 29 %.
const CONTENDED_PAIRS_MAX: f64 = 0.25;
/// Confidence of the interval of a counter's ratio, which is not one of the verdicts and shares no confidence with them.
pub const COUNTER_CONFIDENCE: f64 = 0.95;

/// Fills in comparisons and verdicts of all judged metrics, and the ratios of counters. All comparisons of a run are one family:
/// more comparisons need more evidence for each verdict.
pub(super) fn judge_all(plan: &ResolvedPlan, spans: &Spans, workloads: &mut [WorkloadAnalysis]) {
    let design = &plan.design;
    let equivalence = design.equivalence.fraction();
    let half = plan.crossover_at();
    for workload in workloads.iter_mut() {
        let name = workload.name.clone();
        let arms = &workload.arms;
        for metric in workload.judged.iter_mut().chain(&mut workload.unjudged) {
            metric.comparisons = comparisons(metric, arms, (equivalence, half), |block, arms| {
                spans.paired(&name, block, arms)
            });
        }
    }
    for workload in workloads.iter_mut() {
        let name = workload.name.clone();
        for counter in &mut workload.counters {
            counter.ratios = ratios(counter, &workload.arms, (equivalence, half), |block, arms| {
                spans.paired(&name, block, arms)
            });
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
    for ((metric, comparison), answer) in judged(workloads).zip(answers) {
        let answer = if half.is_some() { in_blocks_of_a_crossover(answer) } else { answer };
        let unknown = (comparison.at_least, comparison.without);
        let (answer, withheld) = borne_out(metric, answer, comparison.contention, unknown);
        comparison.judged = Some(answer);
        comparison.withheld = withheld;
    }
}

/// Ratio of each arm to the baseline by the estimate of the verdicts. Absent where a value is 0, because its pair has no ratio and
/// the others alone would be a selection; where it contradicts the medians; and for counters of whole hosts with CPU contention.
fn ratios(
    counter: &Counter,
    arms: &[ArmAnalysis],
    (equivalence, half): (f64, Option<u32>),
    paired: impl Fn(u32, [&ArmName; 2]) -> bool,
) -> Vec<Option<Estimate>> {
    let baseline: BTreeMap<u32, f64> = counter.by_block.first().into_iter().flatten().copied().collect();
    let Some((name, _)) = counter.arms.first() else { return Vec::new() };
    let of_arm = |(arm, values): (&ArmName, &Vec<(u32, f64)>)| {
        let pairs: Vec<(u32, f64, f64)> = values
            .iter()
            .filter(|(block, _)| paired(*block, [name, arm]))
            .filter_map(|(block, value)| Some((*block, *baseline.get(block)?, *value)))
            .collect();
        let pairs = crossed(pairs, half, Scale::Ratio).into_iter().map(|(_, one, other)| (one, other));
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let [of_baseline, of_arm] = [counter.of(name)?, counter.of(arm)?];
        if of_baseline.min <= 0.0 || of_arm.min <= 0.0 {
            return None;
        }
        let blocks: Vec<u32> = values.iter().map(|(block, _)| *block).collect();
        if counter.kind.is_of_host() && contention(arms, [name, arm], &blocks, None).is_some() {
            return None;
        }
        let of_medians = of_arm.median / of_baseline.median;
        estimate(&pairs, Scale::Ratio, COUNTER_CONFIDENCE)
            .filter(|paired| !are_opposite([paired.centre, of_medians], equivalence))
    };
    let values = counter.arms.iter().map(|(arm, _)| arm).zip(&counter.by_block);
    [None].into_iter().chain(values.skip(1).map(of_arm)).collect()
}

/// Whether one of two ratios is a rise and the other a fall, each beyond the margin.
fn are_opposite(ratios: [f64; 2], margin: f64) -> bool {
    ratios.iter().any(|ratio| *ratio > 1.0 + margin)
        && ratios.iter().any(|ratio| *ratio < 1.0 / (1.0 + margin))
}

/// The largest share of the CPU time of a host that other processes used in one of these blocks, if that happened in so many of
/// them that CPU times of the two arms cannot be compared. With the half of a crossover they are pairs of blocks.
fn contention(arms: &[ArmAnalysis], pair: [&ArmName; 2], blocks: &[u32], half: Option<u32>) -> Option<f64> {
    let of_pair = |block: &u32| {
        let own = arms.iter().filter(|arm| pair.contains(&&arm.arm));
        let shares = own.flat_map(|arm| {
            blocks_of_pair(*block, half).filter_map(move |block| arm.contended.get(&block).copied())
        });
        shares.reduce(f64::max)
    };
    let shares: Vec<f64> = blocks.iter().filter_map(of_pair).collect();
    let share_max = shares.iter().copied().reduce(f64::max)?;
    (shares.len() as f64 > blocks.len() as f64 * CONTENDED_PAIRS_MAX).then_some(share_max)
}

impl ArmAnalysis {
    /// Whether other processes used CPU time in so many of its trials that figures of its whole hosts are not those of the test.
    pub fn has_cpu_contention(&self) -> bool {
        self.contended.len() as f64 > f64::from(self.trials) * CONTENDED_PAIRS_MAX
    }

    /// The largest share of the CPU time of a host that other processes used in one of its trials, where it has CPU contention.
    pub fn contention_max(&self) -> Option<f64> {
        self.contended.values().copied().reduce(f64::max).filter(|_| self.has_cpu_contention())
    }
}

/// The answer, unless it rests on values that may have been larger or smaller, or leaves out valid trials whose result was the worst (those of
/// the baseline and those of the arm), or rests on the CPU time of other processes.
pub(super) fn borne_out(
    metric: Metric,
    answer: Judged,
    contention: Option<f64>,
    (at_least, without): ([bool; 2], [u32; 2]),
) -> (Judged, Option<Withheld>) {
    if let Some(share_max) = contention {
        let judged = Judged {
            verdict: Verdict::Inconclusive { estimate: None, more: None },
            estimate: None,
            adjusted_p: None,
        };
        return (judged, Some(Withheld::CpuContention { share_max }));
    }
    // Whether true values of the baseline, and of the arm, may be larger than the known ones, or smaller.
    let may_be = |side: Bound| {
        let [baseline, arm] = at_least.map(|any| any && Bound::of_values(metric) == side);
        let [lacks, arm_lacks] = without.map(|trials| trials > 0 && Bound::of_worst(metric) == side);
        [baseline || lacks, arm || arm_lacks]
    };
    let [baseline_larger, arm_larger] = may_be(Bound::AtLeast);
    let [baseline_smaller, arm_smaller] = may_be(Bound::LessThan);
    let is_without = without != [0; 2];
    let may_be_wrong = match answer.verdict {
        Verdict::Higher { .. } => baseline_larger || arm_smaller,
        Verdict::Lower { .. } => arm_larger || baseline_smaller,
        Verdict::NoDifference { .. } => is_without || at_least != [false; 2],
        Verdict::Inconclusive { estimate, .. } => is_without && estimate.is_none(),
    };
    if may_be_wrong {
        let verdict = Verdict::Inconclusive { estimate: answer.estimate, more: None };
        let reason = if is_without { Withheld::NoValue { trials: without } } else { Withheld::Bounds };
        return (Judged { verdict, ..answer }, Some(reason));
    }
    (answer, None)
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
    arms: &[ArmAnalysis],
    (equivalence, half): (f64, Option<u32>),
    paired: impl Fn(u32, [&ArmName; 2]) -> bool,
) -> Vec<Comparison> {
    let Some((baseline, others)) = metric.arms.split_first() else { return Vec::new() };
    let margin = margin(metric.metric, baseline, equivalence);
    let by_block: BTreeMap<u32, f64> = baseline.values.iter().copied().collect();
    let blocks_of = |name: &ArmName| arms.iter().find(|arm| arm.arm == *name).map(|arm| &arm.blocks);
    let compared = |arm: &ArmValues| {
        let pairs: Vec<(u32, f64, f64)> = arm
            .values
            .iter()
            .filter(|(block, _)| paired(*block, [&baseline.arm, &arm.arm]))
            .filter_map(|(block, value)| Some((*block, *by_block.get(block)?, *value)))
            .collect();
        let tried = blocks_of(&baseline.arm).zip(blocks_of(&arm.arm));
        let tried: BTreeSet<u32> =
            tried.map(|(one, other)| one.intersection(other).copied().collect()).unwrap_or_default();
        let has_other_half = |block: &&u32| {
            half.is_none_or(|half| **block < half && tried.contains(&block.saturating_add(half)))
        };
        let pairs = crossed(pairs, half, metric.metric.scale());
        let blocks: Vec<u32> = pairs.iter().map(|(block, ..)| *block).collect();
        // The pairs that there would be if no result were too bad for a value.
        let [of_baseline, of_arm] = [baseline, arm].map(ArmValues::result_blocks);
        let both = of_baseline.intersection(&of_arm).copied();
        let both =
            both.filter(|block| paired(*block, [&baseline.arm, &arm.arm])).map(|block| (block, 1.0, 1.0));
        let both = crossed(both.collect(), half, metric.metric.scale());
        let used: BTreeSet<u32> =
            both.into_iter().flat_map(|(block, ..)| blocks_of_pair(block, half)).collect();
        let sides = [baseline, arm];
        Comparison {
            arm: arm.arm.clone(),
            blocks: tried.iter().filter(has_other_half).count(),
            is_crossover: half.is_some(),
            at_least: sides.map(|values| !values.at_least.is_disjoint(&used)),
            without: sides.map(|values| values.without.intersection(&used).count() as u32),
            margin,
            contention: if metric.metric.is_cpu() {
                contention(arms, [&baseline.arm, &arm.arm], &blocks, half)
            } else {
                None
            },
            pairs,
            judged: None,
            withheld: None,
        }
    };
    others.iter().map(compared).collect()
}

/// The blocks of a pair: of a crossover that of the first half and that of the second.
fn blocks_of_pair(block: u32, half: Option<u32>) -> impl Iterator<Item = u32> {
    [Some(block), half.map(|half| block.saturating_add(half))].into_iter().flatten()
}

/// The pairs of a crossover: the mean of two blocks, one of each half, of what has both (the geometric mean where ratios are compared). A
/// host has both arms then, so what it adds to one it adds to the other.
fn crossed(pairs: Vec<(u32, f64, f64)>, half: Option<u32>, scale: Scale) -> Vec<(u32, f64, f64)> {
    let Some(half) = half else { return pairs };
    let mean = |one: f64, other: f64| match scale {
        Scale::Ratio => (one * other).sqrt(),
        Scale::Difference => f64::midpoint(one, other),
    };
    let second: BTreeMap<u32, (f64, f64)> =
        pairs.iter().map(|(block, baseline, arm)| (*block, (*baseline, *arm))).collect();
    let of_both = pairs.iter().filter(|(block, ..)| *block < half).filter_map(|(block, baseline, arm)| {
        let (later_baseline, later_arm) = second.get(&block.saturating_add(half))?;
        Some((*block, mean(*baseline, *later_baseline), mean(*arm, *later_arm)))
    });
    of_both.collect()
}

/// The values of an arm over the blocks, or over the pairs of blocks of a crossover.
pub(super) fn crossed_values(values: &[(u32, f64)], half: Option<u32>, scale: Scale) -> Vec<(u32, f64)> {
    let twice = values.iter().map(|(block, value)| (*block, *value, *value)).collect();
    crossed(twice, half, scale).into_iter().map(|(block, value, _)| (block, value)).collect()
}

/// An answer with its forecast in blocks: a pair of a crossover has two.
fn in_blocks_of_a_crossover(mut answer: Judged) -> Judged {
    if let Verdict::Inconclusive { more, .. } = &mut answer.verdict {
        *more = more.map(|more| match more {
            Forecast::About(pairs) => Forecast::About(pairs.saturating_mul(2)),
            Forecast::AtLeast(pairs) => Forecast::AtLeast(pairs.saturating_mul(2)),
        });
    }
    answer
}

/// A metric that may be zero has no ratio. Its margin is the plan's share of the baseline's median, with a floor for a baseline
/// at or near zero.
pub(super) fn margin(metric: Metric, baseline: &ArmValues, equivalence: f64) -> f64 {
    let of_median = summary::median(&baseline.numbers()).unwrap_or(0.0) * equivalence;
    metric.margin_min().map_or(equivalence, |least| of_median.max(least))
}
