//! Rates of false and true warnings.
use netduel_stats::doubt::{autocorrelation, bimodal, burst, drift, outliers, plateau};

use crate::chance::{Chance, Shape, share};

const RUNS: u32 = 2_000;
const SIZES: [usize; 6] = [8, 10, 12, 20, 30, 100];

#[test]
fn false_order_warnings_occur_in_one_of_a_hundred_tests() {
    for shape in Shape::ALL {
        for n in SIZES {
            let mut chance = Chance::new(31);
            let runs = if n > 50 { 500 } else { RUNS };
            let drifting = share(runs, || drift(&chance.series(shape, n)).is_some());
            let alike = share(runs, || autocorrelation(&chance.series(shape, n)).is_some());
            println!("{shape:?} n={n}: drift {drifting:.4} autocorrelation {alike:.4}");
            assert!(drifting <= 0.02 && alike <= 0.02, "{shape:?} {n}: {drifting} {alike}");
        }
    }
}

#[test]
fn false_bimodal_warnings_are_rare() {
    for shape in Shape::ALL {
        for n in SIZES {
            let mut chance = Chance::new(32);
            let two = share(RUNS, || bimodal(&chance.series(shape, n)).is_some());
            println!("{shape:?} n={n}: bimodal {two:.4}");
            assert!(two <= 0.03, "{shape:?} {n}: {two}");
        }
    }
}

#[test]
fn separated_groups_are_detected() {
    for (n, apart, share_low) in
        [(8, 16.0, 0.5), (12, 12.0, 0.5), (12, 14.0, 0.3), (30, 8.0, 0.5), (30, 9.0, 0.25), (100, 7.0, 0.5)]
    {
        let mut chance = Chance::new(33);
        let found = share(RUNS, || {
            let lower = (n as f64 * share_low) as usize;
            let values: Vec<f64> = (0..n)
                // The groups differ by at least a fifth, the smallest relevant difference.
                .map(|index| 30.0 + chance.normal() + if index < lower { 0.0 } else { apart })
                .collect();
            bimodal(&values).is_some()
        });
        println!("two groups n={n} apart={apart} {share_low}: {found:.3}");
        assert!(found >= 0.8, "{n} values, {apart} deviations apart: {found}");
    }
}

/// Values of one arm and metric of a clean run: noise of the given distribution on the log scale, partly common to the block.
fn clean(chance: &mut Chance, shape: Shape, noise: f64, blocks: usize) -> Vec<f64> {
    (0..blocks).map(|_| (noise * chance.draw(shape) + 0.3 * noise * chance.normal()).exp()).collect()
}

#[test]
fn false_shape_warnings_occur_in_fewer_than_one_run_of_twenty() {
    // Two arms by four metrics, as in the demo, and twice as many. Rates are about normal, latencies are skewed to the right, and
    // noise of shared machines has heavier tails; more than 10 % of noise is not a clean run.
    for (series, blocks) in [(8, 8), (8, 10), (8, 30), (16, 8), (16, 12)] {
        for (shape, noises) in [
            (Shape::Normal, &[0.01, 0.05, 0.1][..]),
            (Shape::Uniform, &[0.05, 0.1]),
            (Shape::Exponential, &[0.01, 0.05, 0.08]),
            (Shape::Student3, &[0.01, 0.02]),
        ] {
            for noise in noises {
                let mut chance = Chance::new(37);
                let doubted = share(RUNS, || {
                    let all: Vec<Vec<f64>> =
                        (0..series).map(|_| clean(&mut chance, shape, *noise, blocks)).collect();
                    all.iter().any(|values| bimodal(values).is_some() || !outliers(values).is_empty())
                });
                println!("{series} series of {blocks}, {shape:?} {noise}: {doubted:.4}");
                assert!(doubted < 0.05, "{series} series of {blocks}, {shape:?} {noise}: {doubted}");
            }
        }
    }
}

#[test]
fn levels_of_one_arm_are_rarely_taken_for_a_state_of_the_machines() {
    for (noise, at_most) in [(0.03, 0.001), (0.1, 0.02), (0.2, 0.15)] {
        for blocks in [10, 20] {
            let mut chance = Chance::new(38);
            let missed = share(RUNS, || {
                // The blocks are in random order in a run; the number of them at each level counts here.
                let level = |block: usize| if block < blocks / 3 { 1.25 } else { 1.0 };
                let pairs: Vec<(f64, f64)> = (0..blocks)
                    .map(|block| {
                        let own = level(block) * (0.01 * chance.normal()).exp();
                        (own, 0.25 * (noise * chance.normal()).exp())
                    })
                    .collect();
                let own: Vec<f64> = pairs.iter().map(|(own, _)| *own).collect();
                bimodal(&own).is_some_and(|modes| modes.are_levels_of_pairs(&pairs))
            });
            println!("{blocks} blocks, another arm with {noise} of noise: missed {missed:.4}");
            assert!(missed <= at_most, "{blocks} blocks, {noise}: {missed}");
        }
    }
}

#[test]
fn outlier_block_by_a_factor_of_three_is_detected() {
    for blocks in [8, 10, 30] {
        for times in [1.0 / 3.0, 3.0] {
            let mut chance = Chance::new(34);
            let found = share(RUNS, || {
                let mut values = clean(&mut chance, Shape::Normal, 0.015, blocks);
                values[2] *= times;
                outliers(&values).iter().any(|outlier| outlier.index == 2)
            });
            println!("{blocks} blocks, {times:.2} times: found {found:.3}");
            assert!(found >= 0.8, "{blocks} blocks, {times}: {found}");
        }
    }
}

#[test]
fn drift_and_slow_waves_are_detected() {
    let mut chance = Chance::new(35);
    let drifting = share(RUNS, || {
        let values: Vec<f64> =
            (0..20).map(|block| 100.0 + 3.0 * f64::from(block) / 19.0 + chance.normal()).collect();
        drift(&values).is_some_and(|drift| drift.change > 0.0)
    });
    let wandering = share(RUNS, || {
        let mut level = 0.0;
        let values: Vec<f64> = (0..30)
            .map(|_| {
                level = 0.8 * level + chance.normal();
                level
            })
            .collect();
        autocorrelation(&values).is_some()
    });
    println!("drift found {drifting:.3}, wander found {wandering:.3}");
    assert!(drifting > 0.7 && wandering > 0.8, "{drifting} {wandering}");
}

#[test]
fn noisy_rates_are_neither_a_cap_nor_a_burst() {
    let mut chance = Chance::new(36);
    let path = |chance: &mut Chance, noise: f64| {
        (0..50).map(|_| 1e10 * (1.0 + noise * chance.normal())).collect::<Vec<_>>()
    };
    let capped = share(RUNS, || plateau(&path(&mut chance, 0.04)).is_some());
    let bursts = share(RUNS, || burst(&path(&mut chance, 0.3)).is_some());
    let policed = share(RUNS, || plateau(&path(&mut chance, 0.005)).is_some());
    let emptied = share(RUNS, || {
        let mut series = path(&mut chance, 0.03);
        series[12..].iter_mut().for_each(|rate| *rate *= 0.6);
        burst(&series).is_some_and(|burst| burst.at == 12)
    });
    println!("capped {capped}, bursts {bursts}, policed {policed}, emptied {emptied}");
    assert_eq!((capped, bursts), (0.0, 0.0));
    assert!(policed > 0.99 && emptied > 0.99, "{policed} {emptied}");
}
