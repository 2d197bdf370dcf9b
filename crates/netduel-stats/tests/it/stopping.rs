//! What stopping on width does to coverage.
use netduel_stats::paired::{Scale, estimate};
use netduel_stats::sequential::{Blocks, Goal, MINIMUM_BLOCKS, Next, next};

use crate::chance::{Chance, Shape, margin, share};

/// Runs blocks until the rule stops and says whether the interval holds the truth, and after how many blocks.
fn run(chance: &mut Chance, shape: Shape, blocks: Blocks, precision: f64) -> (bool, u32) {
    let mut pairs = Vec::new();
    loop {
        pairs.extend(chance.blocks(1, 1.3, 0.05, shape));
        let done = pairs.len() as u32;
        // Looked at only when the rule may stop, which is all that the estimate is for.
        let estimate = (done >= blocks.minimum).then(|| estimate(&pairs, Scale::Ratio, 0.95)).flatten();
        if next(done, blocks, &[Goal { estimate, scale: Scale::Ratio, precision }]) != Next::GoOn {
            let seen = estimate.unwrap();
            return (seen.low <= 1.3 && 1.3 <= seen.high, done);
        }
    }
}

#[test]
fn stopping_on_width_costs_at_most_one_and_a_half_points_of_coverage() {
    const RUNS: u32 = 2_000;
    for shape in [Shape::Normal, Shape::LogNormal, Shape::Student3] {
        for precision in [0.08, 0.05, 0.03] {
            let mut chance = Chance::new(21);
            let mut blocks_run = 0;
            let covered = share(RUNS, || {
                let (covered, done) =
                    run(&mut chance, shape, Blocks { minimum: MINIMUM_BLOCKS, maximum: 60 }, precision);
                blocks_run += done;
                covered
            });
            let mean = f64::from(blocks_run) / f64::from(RUNS);
            println!("stop {shape:?} precision={precision}: covered {covered:.4}, {mean:.1} blocks");
            assert!(
                covered >= 0.935 - margin(0.935, RUNS),
                "{shape:?} to {precision}: {covered} after {mean} blocks"
            );
            assert!(mean < 50.0, "the budget and not the rule stopped most runs: {mean}");
        }
    }
}
