//! Verdicts on a family of comparisons: higher, lower, no relevant difference, or inconclusive.
//!
//! Independent of metrics: the caller knows whether higher is better. A verdict contains the interval that decided it, so that
//! readers can check the words against the numbers.
use netduel_model::metric::Scale;

use crate::holm;
use crate::normal;
use crate::paired::{Estimate, Evidence, no_difference};
use crate::rank_interval::RankStatistic;
use crate::signed_rank::Walsh;

/// Above this number of further blocks the estimate is too uncertain to be shown.
pub const MORE_AT_MOST: f64 = 10_000.0;
/// Minimum number of blocks with a known spread: below it, the number of missing blocks cannot be estimated.
pub const SPREAD_KNOWN_FROM: usize = 3;
/// The power for which the number of missing blocks is computed, for an effect as large as the observed one.
const POWER: f64 = 0.95;

/// The verdict on one comparison, with the interval that decided it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// The arm's values are higher than the baseline's: the interval lies above "no difference".
    Higher {
        /// The effect.
        estimate: Estimate,
    },
    /// The arm's values are lower than the baseline's: the interval lies below "no difference".
    Lower {
        /// The effect.
        estimate: Estimate,
    },
    /// A possible difference is smaller than the margin: the interval lies within the margin.
    NoDifference {
        /// The effect, with the interval of two one-sided tests.
        estimate: Estimate,
        /// The margin: a fraction for [`Scale::Ratio`], the unit of the values for [`Scale::Difference`].
        larger_than: f64,
    },
    /// Inconclusive: the interval contains both "no difference" and a difference that matters.
    Inconclusive {
        /// The current effect; absent without a usable pair.
        estimate: Option<Estimate>,
        /// The further blocks that a verdict needs; absent without a usable pair, without a margin, and for two samples.
        more: Option<Forecast>,
    },
}

/// The further blocks that a verdict needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forecast {
    /// About this number, from the observed spread; only from as many pairs on as the rule needs. Cut at [`MORE_AT_MOST`].
    About(u32),
    /// At least this number: with fewer pairs no figures, however clear, reach the level of the rule.
    AtLeast(u32),
}

impl Forecast {
    /// The number of blocks.
    pub fn blocks(self) -> u32 {
        match self {
            Self::About(blocks) | Self::AtLeast(blocks) => blocks,
        }
    }
}

impl Verdict {
    /// The interval that decided it.
    pub fn estimate(&self) -> Option<Estimate> {
        match *self {
            Self::Higher { estimate } | Self::Lower { estimate } | Self::NoDifference { estimate, .. } => {
                Some(estimate)
            }
            Self::Inconclusive { estimate, .. } => estimate,
        }
    }
}

/// The rule for all comparisons of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// One minus the accepted probability of any wrong verdict of one kind in the family ([`judge`] names both kinds), a fraction from 0.5 to
    /// below 1.
    pub confidence: f64,
    /// The margin: ratios from 1/(1 + this) to 1 + this do not matter, a fraction. The margin of a [`Scale::Difference`] is in
    /// its question.
    pub equivalence: f64,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Baseline and arm, one pair per block.
    pub pairs: Vec<(f64, f64)>,
    /// How they are compared.
    pub scale: Scale,
    /// For [`Scale::Difference`]: the largest difference that does not matter, in the unit of the values. Not used for
    /// [`Scale::Ratio`], whose margin is [`Rule::equivalence`].
    pub margin: f64,
}

/// One comparison of two independent samples.
#[derive(Debug, Clone, PartialEq)]
pub struct UnpairedQuestion {
    /// Values of the baseline.
    pub baseline: Vec<f64>,
    /// Values of the arm.
    pub arm: Vec<f64>,
    /// How they are compared.
    pub scale: Scale,
    /// As [`Question::margin`].
    pub margin: f64,
}

/// The result of one comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The interval that decided it, the same as the verdict's: its confidence is one minus the level at which Holm's procedure
    /// tested the comparison, or one minus twice the level for `NoDifference`. Absent without a usable pair.
    pub estimate: Option<Estimate>,
    /// The two-sided p value of "no difference", adjusted for the family. Absent without a usable pair.
    pub adjusted_p: Option<f64>,
}

/// A comparison with its evidence on the symmetric scale, and its margin.
struct Open<S> {
    evidence: Evidence<S>,
    margin: Option<Margin>,
}

#[derive(Clone, Copy)]
struct Margin {
    shown: f64,
    symmetric: f64,
}

/// Judges a family of comparisons, in their order.
///
/// There are two kinds of wrong verdicts: "higher" or "lower" without a difference, and "no difference" when the difference
/// reaches the margin. Holm's procedure limits the probability of any of the first kind in the whole family to
/// 1 - confidence, and by itself that of any of the second kind. A comparison without a usable pair is not part of the family.
pub fn judge(family: &[Question], rule: &Rule) -> Vec<Judged> {
    let open = |question: &Question| {
        let evidence = Evidence::of_pairs(&question.pairs, question.scale)?;
        Some(Open { evidence, margin: margin(question.scale, question.margin, rule) })
    };
    judge_family(family.iter().map(open).collect(), rule, Open::more)
}

/// The same for comparisons of independent samples. An inconclusive verdict has no forecast: a stored run gains no further block.
pub fn judge_unpaired(family: &[UnpairedQuestion], rule: &Rule) -> Vec<Judged> {
    let open = |question: &UnpairedQuestion| {
        let evidence = Evidence::of_samples(&question.baseline, &question.arm, question.scale)?;
        Some(Open { evidence, margin: margin(question.scale, question.margin, rule) })
    };
    judge_family(family.iter().map(open).collect(), rule, |_, _| None)
}

/// `more`: the further blocks that a comparison needs at the levels of the two families.
fn judge_family<S: RankStatistic>(
    family: Vec<Option<Open<S>>>,
    rule: &Rule,
    more: impl Fn(&Open<S>, Levels) -> Option<Forecast>,
) -> Vec<Judged> {
    let unknown = Judged {
        verdict: Verdict::Inconclusive { estimate: None, more: None },
        estimate: None,
        adjusted_p: None,
    };
    let mut answers = vec![unknown; family.len()];
    if !(0.5..1.0).contains(&rule.confidence) {
        return answers;
    }
    let open: Vec<(usize, Open<S>)> =
        family.into_iter().enumerate().filter_map(|(index, question)| Some((index, question?))).collect();
    let alpha = 1.0 - rule.confidence;
    let differ: Vec<f64> = open.iter().map(|(_, question)| question.evidence.p_value()).collect();
    let alike: Vec<f64> = open.iter().map(|(_, question)| question.equivalence_p_value()).collect();
    let adjusted = holm::adjusted(&differ);
    let levels = holm::levels(&differ, alpha).into_iter().zip(holm::levels(&alike, alpha));
    for (((index, question), adjusted_p), (differ, alike)) in open.iter().zip(adjusted).zip(levels) {
        let verdict = question.verdict(Levels { differ, alike }, &more);
        answers[*index] = Judged { verdict, estimate: verdict.estimate(), adjusted_p: Some(adjusted_p) };
    }
    answers
}

/// The margin of a comparison; absent when it is not a positive number, and then "no difference" is impossible.
fn margin(scale: Scale, of_question: f64, rule: &Rule) -> Option<Margin> {
    let (shown, symmetric) = match scale {
        Scale::Ratio => (rule.equivalence, rule.equivalence.ln_1p()),
        Scale::Difference => (of_question, of_question),
    };
    (shown > 0.0 && shown.is_finite()).then_some(Margin { shown, symmetric })
}

/// The levels at which Holm's procedure tests a comparison in the two families.
#[derive(Clone, Copy)]
struct Levels {
    /// "It differs".
    differ: f64,
    /// "It does not differ".
    alike: f64,
}

impl<S: RankStatistic> Open<S> {
    fn equivalence_p_value(&self) -> f64 {
        self.margin.map_or(1.0, |margin| self.evidence.equivalence_p_value(margin.symmetric))
    }

    /// The verdict at the levels of the two families.
    fn verdict(&self, levels: Levels, more: impl Fn(&Self, Levels) -> Option<Forecast>) -> Verdict {
        let scale = self.evidence.scale;
        let estimate = self.evidence.estimate(1.0 - levels.differ);
        if estimate.low > no_difference(scale) {
            return Verdict::Higher { estimate };
        }
        if estimate.high < no_difference(scale) {
            return Verdict::Lower { estimate };
        }
        if let Some(margin) = self.margin {
            let estimate = self.evidence.estimate(1.0 - 2.0 * levels.alike);
            if estimate.lies_within(scale, margin.shown) {
                return Verdict::NoDifference { estimate, larger_than: margin.shown };
            }
        }
        // The wider of the two intervals: it contains "no difference" and exceeds the margin, and both are visible.
        let estimate = self.evidence.estimate(1.0 - levels.differ.min(2.0 * levels.alike));
        Verdict::Inconclusive { estimate: Some(estimate), more: more(self, levels) }
    }
}

impl Open<Walsh> {
    /// Number of further blocks after which an interval excludes either "no difference" or the margin, wherever the effect lies
    /// between them: when the half-widths of both together do not exceed the margin. An effect already further from "no
    /// difference" than its standard error needs only enough blocks for its own interval, with a power of 95 %.
    fn more(&self, levels: Levels) -> Option<Forecast> {
        let Levels { differ: differ_level, alike: alike_level } = levels;
        let n = self.evidence.statistic.n();
        // Fewer signs than this cannot reach the levels at all, and the spread of so few blocks is too uncertain for a forecast.
        let by_signs = (1.0 - differ_level.log2()).max(-alike_level.log2()).ceil() as usize;
        let missing = by_signs.max(SPREAD_KNOWN_FROM).saturating_sub(n) as u32;
        if missing > 0 {
            return self.margin.map(|_| Forecast::AtLeast(missing));
        }
        let spread = self.evidence.statistic.spread()?;
        let (differ_score, alike_score) =
            (normal::quantile(1.0 - differ_level / 2.0), normal::quantile(1.0 - alike_level));
        let by_spread = ((differ_score + alike_score) * spread / self.margin?.symmetric).powi(2);
        // With few blocks the intervals are wider than the normal distribution predicts, by about this many blocks (Guenther
        // 1981).
        let for_few = differ_score.max(alike_score).powi(2) / 2.0;
        let clear = self.evidence.statistic.centre().abs() - spread / (n as f64).sqrt();
        let by_effect = if clear > 0.0 {
            ((differ_score + normal::quantile(POWER)) * spread / clear).powi(2)
        } else {
            f64::INFINITY
        };
        let more = (by_spread.min(by_effect) + for_few).ceil() - n as f64;
        // A very large number is still reported: the spread is known, and the design cannot decide.
        Some(Forecast::About(more.clamp(1.0, MORE_AT_MOST) as u32))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: Rule = Rule { confidence: 0.95, equivalence: 0.05 };

    /// Ratios in blocks whose baseline is 100.
    fn ratios(ratios: &[f64]) -> Question {
        let pairs = ratios.iter().map(|ratio| (100.0, 100.0 * ratio)).collect();
        Question { pairs, scale: Scale::Ratio, margin: f64::NAN }
    }

    fn only(question: Question) -> Judged {
        judge(&[question], &RULE)[0]
    }

    #[test]
    fn very_large_spread_still_yields_a_number_of_blocks() {
        let wild: Vec<f64> = (0..12).map(|place| if place % 2 == 0 { 40.0 } else { 0.03 }).collect();
        let verdict = only(Question { margin: 0.05, ..ratios(&wild) }).verdict;
        assert!(
            matches!(verdict, Verdict::Inconclusive { more: Some(Forecast::About(10_000)), .. }),
            "{verdict:?}"
        );
    }

    #[test]
    fn clear_cases_have_clear_verdicts() {
        let around = |centre: f64, step: f64| {
            (-4..=4).map(|place| centre + step * f64::from(place)).collect::<Vec<_>>()
        };
        assert!(
            matches!(only(ratios(&around(1.5, 0.01))).verdict, Verdict::Higher { estimate } if estimate.low > 1.4)
        );
        assert!(
            matches!(only(ratios(&around(0.5, 0.01))).verdict, Verdict::Lower { estimate } if estimate.high < 0.6)
        );
        let Verdict::NoDifference { estimate, larger_than } = only(ratios(&around(1.0, 0.005))).verdict
        else {
            panic!("alike within 2 %")
        };
        assert!((estimate.confidence - 0.9).abs() < 1e-12 && larger_than == RULE.equivalence, "{estimate:?}");
        let Verdict::Inconclusive { estimate: Some(estimate), more: Some(Forecast::About(more)) } =
            only(ratios(&around(1.0, 0.05))).verdict
        else {
            panic!("spread far beyond the margin")
        };
        assert!(estimate.low < 1.0 / 1.05 && estimate.high > 1.05 && more > 50, "{estimate:?} {more}");
        let difference = Question {
            pairs: vec![(0.0, 0.001), (0.0, 0.0), (0.001, 0.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)],
            scale: Scale::Difference,
            margin: 0.01,
        };
        assert!(matches!(only(difference).verdict, Verdict::NoDifference { larger_than: 0.01, .. }));
    }

    #[test]
    fn few_blocks_are_inconclusive() {
        assert_eq!(only(ratios(&[])).verdict, Verdict::Inconclusive { estimate: None, more: None });
        assert_eq!(only(ratios(&[])).adjusted_p, None);
        let Verdict::Inconclusive { estimate: Some(one), more } = only(ratios(&[2.0])).verdict else {
            panic!("one block")
        };
        assert_eq!((one.n, one.low, one.high), (1, 0.0, f64::INFINITY));
        assert_eq!(more, Some(Forecast::AtLeast(5)));
        // Five equal blocks lack only the sixth.
        assert!(matches!(
            only(ratios(&[2.0; 5])).verdict,
            Verdict::Inconclusive { more: Some(Forecast::AtLeast(1)), .. }
        ));
        assert!(matches!(only(ratios(&[2.0; 6])).verdict, Verdict::Higher { .. }));
    }

    #[test]
    fn forecast_is_never_less_than_the_rule_needs() {
        // Nine comparisons at 95 %: 1 + log2(9 / 0.05) signs.
        for (blocks, missing) in [(1, 8), (2, 7), (3, 6), (6, 3), (8, 1)] {
            for judged in judge(&vec![ratios(&vec![2.0; blocks]); 9], &RULE) {
                let Verdict::Inconclusive { more: Some(more), .. } = judged.verdict else {
                    panic!("{judged:?}")
                };
                assert_eq!(more, Forecast::AtLeast(missing), "{blocks} blocks");
            }
        }
        assert!(matches!(judge(&vec![ratios(&[2.0; 9]); 9], &RULE)[8].verdict, Verdict::Higher { .. }));
    }

    #[test]
    fn fewer_blocks_than_the_rule_needs_are_no_basis_for_a_forecast_from_their_spread() {
        let of = |blocks: i32, ratio: f64, margin: f64| {
            let wild: Vec<f64> =
                (0..blocks).map(|place| if place % 2 == 0 { ratio } else { 1.0 / ratio }).collect();
            let scale = if margin > 0.0 { Scale::Ratio } else { Scale::Difference };
            match only(Question { scale, margin, ..ratios(&wild) }).verdict {
                Verdict::Inconclusive { more, .. } => more,
                verdict => panic!("{blocks} blocks of {ratio}: {verdict:?}"),
            }
        };
        // One comparison at 95 %: 1 + log2(1 / 0.05) signs.
        for (blocks, missing) in [(1, 5), (2, 4), (3, 3), (4, 2), (5, 1)] {
            for ratio in [1.3, 40.0] {
                assert_eq!(of(blocks, ratio, 0.05), Some(Forecast::AtLeast(missing)), "{blocks} of {ratio}");
            }
            assert_eq!(of(blocks, 1.3, 0.0), None, "{blocks} blocks without a margin");
        }
        assert!(matches!(of(6, 1.3, 0.05), Some(Forecast::About(_))));
    }

    #[test]
    fn correction_makes_a_single_significant_result_inconclusive() {
        let barely = ratios(&[1.2, 1.25, 1.3, 1.22, 1.27, 1.24]);
        let unclear = ratios(&[1.2, 0.8, 1.1, 0.9, 1.3, 0.7]);
        assert!(matches!(only(barely.clone()).verdict, Verdict::Higher { .. }));
        let judged = judge(&[barely, unclear], &RULE);
        let Verdict::Inconclusive { estimate: Some(estimate), .. } = judged[0].verdict else {
            panic!("2 in 64 is above 2.5 %")
        };
        assert_eq!((estimate.low, judged[0].adjusted_p), (0.0, Some(4.0 / 64.0)));
    }

    #[test]
    fn without_a_margin_there_is_no_equality_and_no_block_estimate() {
        let alike = Question { pairs: vec![(1.0, 1.0); 20], scale: Scale::Difference, margin: 0.0 };
        assert!(matches!(only(alike).verdict, Verdict::Inconclusive { estimate: Some(_), more: None }));
        let unusable = judge(&[ratios(&[2.0; 9])], &Rule { confidence: 0.3, ..RULE });
        assert_eq!(unusable[0].estimate, None);
    }

    /// Values whose ratios to 100 are these, against a baseline around 100.
    fn samples(ratios: &[f64]) -> UnpairedQuestion {
        let arm: Vec<f64> = ratios.iter().map(|ratio| 100.0 * ratio).collect();
        let baseline = vec![99.8, 100.3, 99.9, 100.1, 99.7, 100.2, 100.0, 99.6];
        UnpairedQuestion { baseline, arm, scale: Scale::Ratio, margin: f64::NAN }
    }

    #[test]
    fn samples_without_pairs_have_the_same_kinds_of_verdicts() {
        let only = |question: UnpairedQuestion| judge_unpaired(&[question], &RULE)[0];
        let around = |centre: f64, step: f64| {
            (-4..=4).map(|place| centre + step * f64::from(place)).collect::<Vec<_>>()
        };
        assert!(
            matches!(only(samples(&around(1.5, 0.01))).verdict, Verdict::Higher { estimate } if estimate.low > 1.4)
        );
        assert!(
            matches!(only(samples(&around(0.5, 0.01))).verdict, Verdict::Lower { estimate } if estimate.high < 0.6)
        );
        assert!(matches!(
            only(samples(&around(1.0, 0.001))).verdict,
            Verdict::NoDifference { larger_than, .. } if larger_than == RULE.equivalence
        ));
        assert!(matches!(
            only(samples(&around(1.0, 0.05))).verdict,
            Verdict::Inconclusive { estimate: Some(_), more: None }
        ));
        // Three values against eight: 2 in 165 orders; one value against eight: 2 in 9.
        assert!(matches!(only(samples(&[2.0; 3])).verdict, Verdict::Higher { .. }));
        let Verdict::Inconclusive { estimate: Some(one), more: None } = only(samples(&[2.0])).verdict else {
            panic!("one value")
        };
        assert_eq!((one.n, one.low, one.high), (1, 0.0, f64::INFINITY));
        assert_eq!(only(samples(&[])).verdict, Verdict::Inconclusive { estimate: None, more: None });
        // Each of five comparisons is tested at 1 %: 2 in 165 are too many.
        for judged in judge_unpaired(&vec![samples(&[2.0; 3]); 5], &RULE) {
            assert!(matches!(judged.verdict, Verdict::Inconclusive { .. }), "{judged:?}");
        }
    }

    fn family() -> impl Strategy<Value = Vec<Question>> {
        let spread = prop_oneof![Just(0.002), Just(0.02), Just(0.2)];
        let question = (0.9..1.1_f64, spread, proptest::collection::vec(-1.0..1.0_f64, 0..25)).prop_map(
            |(centre, spread, noise)| {
                ratios(&noise.iter().map(|noise| centre + spread * noise).collect::<Vec<_>>())
            },
        );
        proptest::collection::vec(question, 1..6)
    }

    fn unpaired_family() -> impl Strategy<Value = Vec<UnpairedQuestion>> {
        let spread = prop_oneof![Just(0.002), Just(0.02), Just(0.2)];
        let noise = || proptest::collection::vec(-1.0..1.0_f64, 0..25);
        let question =
            (0.9..1.1_f64, spread, noise(), noise()).prop_map(|(centre, spread, baseline, arm)| {
                let around = |centre: f64, noise: Vec<f64>| -> Vec<f64> {
                    noise.into_iter().map(|noise| 100.0 * (centre + spread * noise)).collect()
                };
                UnpairedQuestion {
                    baseline: around(1.0, baseline),
                    arm: around(centre, arm),
                    scale: Scale::Ratio,
                    margin: f64::NAN,
                }
            });
        proptest::collection::vec(question, 1..6)
    }

    proptest! {
        #[test]
        fn the_interval_shown_never_contradicts_the_verdict(paired in family(), unpaired in unpaired_family()) {
            for judged in judge(&paired, &RULE).into_iter().chain(judge_unpaired(&unpaired, &RULE)) {
                let excludes = judged.estimate.is_some_and(|shown| shown.excludes_no_difference(Scale::Ratio));
                let within = judged.estimate.is_some_and(|shown| shown.lies_within(Scale::Ratio, RULE.equivalence));
                prop_assert_eq!(judged.estimate, judged.verdict.estimate());
                match judged.verdict {
                    Verdict::Higher { estimate } => prop_assert!(estimate.low > 1.0 && judged.adjusted_p.unwrap() <= 0.05 + 1e-12),
                    Verdict::Lower { estimate } => prop_assert!(estimate.high < 1.0 && judged.adjusted_p.unwrap() <= 0.05 + 1e-12),
                    Verdict::NoDifference { .. } => prop_assert!(within && judged.adjusted_p.unwrap() > 0.05),
                    Verdict::Inconclusive { .. } => {
                        prop_assert!(!excludes && !within);
                        prop_assert!(judged.adjusted_p.is_none_or(|p| p > 0.05));
                    }
                }
            }
        }
    }
}
