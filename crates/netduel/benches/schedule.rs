//! Time to compute a schedule of 10,000 trials: the order of every block, as in a run.
use netduel_control::schedule;
use netduel_model::plan;

/// Number of scheduled trials.
const TRIALS: u32 = 10_000;
/// Repetitions; the median is the result.
const REPEATS: usize = 7;
/// The plan of the demo: two arms, two workloads.
const PLAN: &str = include_str!("../../../plans/demo.toml");

fn main() {
    let plan = plan::parse(PLAN, "plans/demo.toml").expect("the demo's plan is good");
    let blocks = TRIALS / plan.trials_per_block();
    let mut times_ms: Vec<f64> = (0..REPEATS as u64)
        .map(|seed| {
            let started_ns = netduel_sys::clock::monotonic_ns();
            let slots: usize = (0..blocks).map(|block| schedule::block(&plan, seed, block).len()).sum();
            assert_eq!(slots, TRIALS as usize, "a block lost a trial");
            (netduel_sys::clock::monotonic_ns() - started_ns) as f64 / 1e6
        })
        .collect();
    times_ms.sort_by(f64::total_cmp);
    println!("schedule: {TRIALS} trials in {:.2} ms; asked for: under 1000 ms", times_ms[REPEATS / 2]);
    println!("figure schedule-of-10000-trials {:.3} ms", times_ms[REPEATS / 2]);
}
