//! What stopping on width does to coverage.
use netduel_stats::paired::{Scale, estimate};
use netduel_stats::sequential::{Blocks, Goal, MINIMUM_BLOCKS, Next, next};

use crate::chance::{Chance, Shape, share};

/// Runs blocks until the rule stops and says whether the interval holds the truth, and after how many blocks.
fn run(chance: &mut Chance, shape: Shape, blocks: Blocks, precision: f64) -> (bool, u32) {
    let mut pairs = Vec::new();
    loop {
        pairs.extend(chance.blocks(1, 1.3, 0.05, shape));
        let done = pairs.len() as u32;
        let estimate = estimate(&pairs, Scale::Ratio, 0.95);
        if next(done, blocks, &[Goal { estimate, scale: Scale::Ratio, precision }]) != Next::GoOn {
            let seen = estimate.unwrap();
            return (seen.low <= 1.3 && 1.3 <= seen.high, done);
        }
    }
}

#[test]
fn stopping_on_width_costs_a_little_coverage_as_the_design_note_says() {
    const RUNS: u32 = 4_000;
    for minimum in [6, MINIMUM_BLOCKS, 10, 12] {
    for shape in [Shape::Normal, Shape::LogNormal, Shape::Student3] {
        for precision in [0.08, 0.05, 0.03] {
            let mut chance = Chance::new(21);
            let mut blocks_run = 0;
            let covered = share(RUNS, || {
                let (covered, done) = run(&mut chance, shape, Blocks { minimum, maximum: 60 }, precision);
                blocks_run += done;
                covered
            });
            let mean = f64::from(blocks_run) / f64::from(RUNS);
            println!("stop {shape:?} min={minimum} precision={precision}: covered {covered:.4}, {mean:.1} blocks");
        }
    }
    }
}
