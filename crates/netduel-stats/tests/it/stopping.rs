//! The effect of stopping on width on coverage.
use netduel_model::metric::Scale;
use netduel_model::plan::guarded;
use netduel_stats::paired::estimate;
use netduel_stats::sequential::precise_enough;

use crate::chance::{Chance, Shape, margin, share};

/// The default of plans.
const BLOCKS_MIN: usize = 8;
const BLOCKS_MAX: usize = 60;
const RUNS: u32 = 1_500;

/// Runs blocks until the rule stops; returns whether the interval contains the true value, and the number of blocks.
fn run(chance: &mut Chance, shape: Shape, confidence: f64, precision: f64) -> (bool, u32) {
    let mut pairs = chance.blocks(BLOCKS_MIN, 1.3, 0.05, shape);
    loop {
        let seen = estimate(&pairs, Scale::Ratio, confidence).expect("pairs that have a ratio");
        if pairs.len() >= BLOCKS_MAX || precise_enough(&seen, Scale::Ratio, precision) {
            return (seen.low <= 1.3 && 1.3 <= seen.high, pairs.len() as u32);
        }
        pairs.extend(chance.blocks(1, 1.3, 0.05, shape));
    }
}

/// Coverage and mean number of blocks.
fn covered(shape: Shape, confidence: f64, precision: f64) -> (f64, f64) {
    let mut chance = Chance::new(21);
    let mut blocks = 0;
    let covered = share(RUNS, || {
        let (covered, done) = run(&mut chance, shape, confidence, precision);
        blocks += done;
        covered
    });
    let mean = f64::from(blocks) / f64::from(RUNS);
    println!("stop {shape:?} {confidence:.3} precision={precision}: covered {covered:.4}, {mean:.1} blocks");
    assert!(mean < 50.0, "the budget and not the rule stopped most runs: {mean}");
    (covered, mean)
}

#[test]
fn stopping_on_width_makes_misses_up_to_one_and_a_half_times_as_frequent() {
    for (shape, precision) in [(Shape::Normal, 0.05), (Shape::Normal, 0.03), (Shape::Student3, 0.05)] {
        let (covered, _) = covered(shape, 0.95, precision);
        assert!(covered >= 1.0 - 1.5 * 0.05 - margin(0.05, RUNS), "{shape:?} to {precision}: {covered}");
    }
}

#[test]
fn tested_confidence_keeps_coverage_despite_stopping() {
    for shape in [Shape::Normal, Shape::LogNormal, Shape::Student3] {
        for precision in [0.05, 0.03] {
            let (covered, _) = covered(shape, guarded(0.95), precision);
            assert!(covered >= 0.95 - margin(0.05, RUNS), "{shape:?} to {precision}: {covered}");
        }
    }
}
