//! How often a doubt is raised without cause, and with it.
use netduel_stats::doubt::{autocorrelation, bimodal, burst, drift, outliers, plateau};

use crate::chance::{Chance, Shape, share};

const RUNS: u32 = 2_000;
const SIZES: [usize; 6] = [8, 10, 12, 20, 30, 100];

#[test]
fn order_is_doubted_without_cause_in_about_one_case_of_a_hundred() {
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
fn a_single_group_is_taken_for_two_in_a_few_cases_of_a_hundred_at_most() {
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
fn two_groups_far_apart_are_found() {
    for (n, apart, share_low) in
        [(8, 14.0, 0.5), (12, 10.0, 0.5), (12, 12.0, 0.3), (30, 8.0, 0.5), (30, 8.0, 0.25), (100, 7.0, 0.5)]
    {
        let mut chance = Chance::new(33);
        let found = share(RUNS, || {
            let lower = (n as f64 * share_low) as usize;
            let values: Vec<f64> = (0..n)
                .map(|index| 100.0 + chance.normal() + if index < lower { 0.0 } else { apart })
                .collect();
            bimodal(&values).is_some()
        });
        println!("two groups n={n} apart={apart} {share_low}: {found:.3}");
        assert!(found >= 0.8, "{n} values, {apart} deviations apart: {found}");
    }
}

#[test]
fn outliers_are_rare_without_cause_and_found_with_it() {
    for n in SIZES {
        let mut chance = Chance::new(34);
        let shapes = [Shape::Normal, Shape::Uniform];
        for shape in shapes {
            let raised = share(RUNS, || !outliers(&chance.series(shape, n)).is_empty());
            println!("{shape:?} n={n}: outliers {raised:.4}");
            assert!(raised <= 0.02, "{shape:?} {n}: {raised}");
        }
        let found = share(RUNS, || {
            let mut values: Vec<f64> = (0..n).map(|_| 100.0 + chance.normal()).collect();
            values[2] += 25.0;
            outliers(&values).iter().any(|outlier| outlier.index == 2)
        });
        println!("n={n}: found {found:.3}");
        assert!(found >= 0.9, "{n} values: {found}");
    }
}

#[test]
fn a_drift_of_three_deviations_and_a_slow_wander_are_found() {
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
fn rates_with_the_noise_of_a_path_are_neither_a_cap_nor_a_burst() {
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
