//! Error rates of `judge` for a whole family: wrong verdicts of either kind are no more frequent than the level.
use netduel_model::metric::Scale;
use netduel_stats::verdict::{Question, Rule, UnpairedQuestion, Verdict, judge, judge_unpaired};

use crate::chance::{Chance, Shape, margin, share};

const RULE: Rule = Rule { confidence: 0.95, equivalence: 0.05 };

fn question(pairs: Vec<(f64, f64)>) -> Question {
    Question { pairs, scale: Scale::Ratio, margin: 0.0 }
}

fn differs(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Higher { .. } | Verdict::Lower { .. })
}

fn alike(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::NoDifference { .. })
}

#[test]
fn family_of_four_keeps_its_error_rate_without_effects() {
    const RUNS: u32 = 3_000;
    for (n, shape) in [(8, Shape::Normal), (12, Shape::LogNormal), (30, Shape::Student3)] {
        let mut chance = Chance::new(11);
        let wrong = share(RUNS, || {
            let family: Vec<_> = (0..4).map(|_| question(chance.blocks(n, 1.0, 0.05, shape))).collect();
            judge(&family, &RULE).iter().any(|judged| differs(&judged.verdict))
        });
        println!("A/A n={n} {shape:?}: {wrong:.4}");
        assert!(wrong <= 0.05 + margin(0.05, RUNS), "{n} blocks, {shape:?}: {wrong}");
        assert!(wrong > 0.01, "a test that never rejects would pass: {wrong}");
    }
}

/// Two samples with independent noise on the log scale, whose levels differ by the factor `ratio`.
fn samples(chance: &mut Chance, sizes: [usize; 2], ratio: f64, noise: f64, shape: Shape) -> UnpairedQuestion {
    let [baseline, arm] = [(sizes[0], 1.0), (sizes[1], ratio)].map(|(size, level)| {
        chance.series(shape, size).into_iter().map(|drawn| 1e9 * level * (noise * drawn).exp()).collect()
    });
    UnpairedQuestion { baseline, arm, scale: Scale::Ratio, margin: 0.0 }
}

#[test]
fn independent_samples_keep_the_error_rate_of_their_family_without_effects() {
    // The last one is beyond the exact distribution.
    for (runs, sizes, shape) in [
        (3_000, [8, 8], Shape::Normal),
        (3_000, [12, 20], Shape::LogNormal),
        (1_000, [60, 60], Shape::Student3),
    ] {
        let mut chance = Chance::new(16);
        let wrong = share(runs, || {
            let family: Vec<_> = (0..4).map(|_| samples(&mut chance, sizes, 1.0, 0.05, shape)).collect();
            judge_unpaired(&family, &RULE).iter().any(|judged| differs(&judged.verdict))
        });
        println!("two samples A/A {sizes:?} {shape:?}: {wrong:.4}");
        assert!(wrong <= 0.05 + margin(0.05, runs), "{sizes:?}, {shape:?}: {wrong}");
        assert!(wrong > 0.01, "a test that never rejects would pass: {wrong}");
    }
}

#[test]
fn independent_samples_at_the_margin_are_called_equal_within_the_error_rate() {
    const RUNS: u32 = 3_000;
    for (sizes, noise) in [([12, 12], 0.036), ([20, 30], 0.05)] {
        let mut chance = Chance::new(17);
        let wrong = share(RUNS, || {
            let question = samples(&mut chance, sizes, 1.05, noise, Shape::Normal);
            alike(&judge_unpaired(&[question], &RULE)[0].verdict)
        });
        println!("two samples at the margin {sizes:?} noise={noise}: {wrong:.4}");
        assert!(wrong > 0.01, "a test that never errs here is not at its limit: {wrong}");
        assert!(wrong <= 0.05 + margin(0.05, RUNS), "{sizes:?} of {noise}: {wrong}");
    }
}

#[test]
fn true_effects_do_not_raise_the_error_rate_of_the_others() {
    const RUNS: u32 = 3_000;
    let mut chance = Chance::new(12);
    let wrong = share(RUNS, || {
        let family: Vec<_> = [2.0, 1.0, 1.5, 1.0]
            .map(|ratio| question(chance.blocks(12, ratio, 0.05, Shape::Normal)))
            .into_iter()
            .collect();
        let judged = judge(&family, &RULE);
        differs(&judged[1].verdict) || differs(&judged[3].verdict)
    });
    println!("two true, two null: {wrong:.4}");
    assert!(wrong <= 0.05 + margin(0.05, RUNS) && wrong > 0.02, "{wrong}");
}

#[test]
fn difference_at_the_margin_is_called_equal_within_the_error_rate() {
    const RUNS: u32 = 3_000;
    for (n, noise) in [(12, 0.036), (30, 0.057)] {
        for ratios in [&[1.05][..], &[1.05; 4], &[1.0 / 1.05, 1.05, 1.05, 2.0]] {
            let mut chance = Chance::new(13);
            let wrong = share(RUNS, || {
                let family: Vec<_> = ratios
                    .iter()
                    .map(|&ratio| question(chance.blocks(n, ratio, noise, Shape::Normal)))
                    .collect();
                judge(&family, &RULE).iter().any(|judged| alike(&judged.verdict))
            });
            println!("at the margin n={n} noise={noise} {ratios:?}: {wrong:.4}");
            assert!(wrong > 0.01, "a test that never errs here is not at its limit: {wrong}");
            assert!(wrong <= 0.05 + margin(0.05, RUNS), "{n} blocks of {noise}, {ratios:?}: {wrong}");
        }
    }
}

#[test]
fn equal_arms_with_little_noise_are_called_equal() {
    let mut chance = Chance::new(14);
    let found = share(1_000, || {
        let family: Vec<_> = (0..4).map(|_| question(chance.blocks(12, 1.0, 0.015, Shape::Normal))).collect();
        judge(&family, &RULE).iter().all(|judged| alike(&judged.verdict))
    });
    println!("all four equal: {found:.3}");
    assert!(found > 0.8, "{found}");
}

#[test]
fn estimated_further_blocks_suffice_without_much_excess() {
    for ratio in [1.0, 1.025, 1.05] {
        let mut chance = Chance::new(15);
        let (mut decided, mut decided_early, mut asked) = (0_u32, 0_u32, 0_u32);
        for _ in 0..600 {
            let start = chance.blocks(10, ratio, 0.03, Shape::Normal);
            let Verdict::Inconclusive { more: Some(more), .. } =
                judge(&[question(start.clone())], &RULE)[0].verdict
            else {
                continue;
            };
            let with = |chance: &mut Chance, more: usize| {
                let further = chance.blocks(more, ratio, 0.03, Shape::Normal);
                !matches!(
                    judge(&[question([start.clone(), further].concat())], &RULE)[0].verdict,
                    Verdict::Inconclusive { .. }
                )
            };
            asked += 1;
            decided += u32::from(with(&mut chance, more.blocks() as usize));
            decided_early += u32::from(with(&mut chance, more.blocks() as usize / 5));
        }
        let (decided, early) =
            (f64::from(decided) / f64::from(asked), f64::from(decided_early) / f64::from(asked));
        println!("more at {ratio}: {decided:.3} decided, {early:.3} with a fifth, of {asked}");
        assert!(decided > 0.8, "at {ratio}: {decided}");
        assert!(early < decided - 0.1, "at {ratio} a fifth would have done: {early}");
    }
}
