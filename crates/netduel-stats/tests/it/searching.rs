//! The search on paths with a known capacity: correctness of its bounds, and cost compared with plain bisection.
use netduel_model::search::{Search, SearchEnd, SearchGoal, SearchPreset, SearchResult, SearchState};
use netduel_model::units::Nanos;
use netduel_stats::search::{Class, Next, RateSearch, Trial, classify};

use crate::device::{Device, Path};

const NO_LIMIT: (u32, Nanos) = (u32::MAX, Nanos(u64::MAX));
const SECOND: Nanos = Nanos(1_000_000_000);
const CAPACITY: f64 = 1_234_567.0;
const CEILING: f64 = 4e6;

/// A search with limits on trials and time.
fn begin(goals: &[SearchGoal], (trials_max, time): (u32, Nanos)) -> RateSearch {
    RateSearch::new(Search { goals: goals.to_vec(), trials_max }, time).expect("goals that can be reached")
}

fn search(goals: &[SearchGoal], limits: (u32, Nanos), path: &mut Path) -> (RateSearch, SearchEnd) {
    let mut search = begin(goals, limits);
    loop {
        match search.wanted() {
            Next::Ended(end) => return (search, end),
            Next::Measure(ask) => {
                let count = path.answer(ask);
                search.record(ask, count);
            }
        }
    }
}

fn complete(goals: &[SearchGoal], path: &mut Path) -> Vec<SearchResult> {
    let (search, end) = search(goals, NO_LIMIT, path);
    assert_eq!(end, SearchEnd::Complete);
    search.results()
}

/// Plain bisection to the same precision: between zero and the ceiling, with the goal's own trials at each load.
fn bisect(goal: &SearchGoal, path: &mut Path) -> (u64, u64) {
    let (mut low, mut high) = (0, path.ceiling as u64);
    while (high - low) as f64 > goal.width * high as f64 {
        let load = u64::midpoint(low, high);
        let mut trials = Vec::new();
        let class = loop {
            let outcome = path.trial(Some(load), goal.final_trial.0);
            let lost = outcome.sent.saturating_sub(outcome.received);
            let loss_ratio = lost as f64 / outcome.sent as f64;
            trials.push(Trial { load, duration_ns: goal.final_trial.0, loss_ratio });
            match classify(goal, trials.iter().copied()) {
                Class::Undecided => {}
                decided => break decided,
            }
        };
        if class == Class::Lower { low = load } else { high = load }
    }
    (low, high)
}

fn regular(result: &SearchResult) -> (f64, f64) {
    assert_eq!(result.state, SearchState::Regular, "{result:?}");
    let bound = |bound: Option<u64>| bound.expect("a regular result has both bounds") as f64;
    (bound(result.lower), bound(result.upper))
}

const PRESETS: [SearchPreset; 4] =
    [SearchPreset::NoDrop, SearchPreset::PartialDrop, SearchPreset::Rfc2544, SearchPreset::Tst009];

#[test]
fn bounds_contain_the_capacity_of_an_ideal_path() {
    for preset in PRESETS {
        let (name, goal) = (preset.word(), preset.goal());
        for device in [Device::Clean, Device::Livelock] {
            for factor in [0.002, 0.013, 0.2, 0.71, 0.999, 1.0] {
                let capacity = 2e6 * factor;
                let mut path = Path::new(device, capacity, 2e6, 1);
                let result = complete(std::slice::from_ref(&goal), &mut path).remove(0);
                if capacity / (1.0 - goal.loss_ratio) < 2e6 {
                    let (lower, upper) = regular(&result);
                    // With an allowed loss of g, a load of capacity / (1 - g) still meets the goal.
                    let truth = capacity / (1.0 - goal.loss_ratio);
                    assert!(upper - lower <= goal.width * upper + 1.0, "{name}: {result:?}");
                    if let Device::Clean = device {
                        assert!(lower <= truth + 1.0 && truth <= upper + 1.0, "{name} {truth}: {result:?}");
                    } else {
                        assert!(
                            lower <= truth + 1.0 && capacity <= upper + 1.0,
                            "{name} {truth}: {result:?}"
                        );
                    }
                    assert!(!result.generator_limited);
                } else {
                    assert_eq!(result.state, SearchState::MaxLoadReached, "{name}: {result:?}");
                    let throughput = result.conditional_throughput.unwrap();
                    let livelock = if let Device::Livelock = device { capacity / 2e6 } else { 1.0 };
                    // When nothing is lost at the maximum rate of the generator, the search tries rates that it can pace.
                    let kept = if factor < 1.0 { 1.0 } else { 0.95 };
                    assert!((throughput - capacity * livelock * kept).abs() < 1.0, "{name}: {result:?}");
                }
            }
        }
    }
}

#[test]
fn goal_without_loss_ends_at_a_paced_load() {
    let goal = SearchGoal {
        final_trial: SECOND,
        duration_sum: SECOND,
        initial_trial: SECOND,
        exceed_ratio: 0.0,
        ..SearchPreset::NoDrop.goal()
    };
    let mut path = Path::new(Device::Clean, 3e6, 2e6, 1);
    let result = complete(std::slice::from_ref(&goal), &mut path).remove(0);
    assert_eq!((result.state, result.lower), (SearchState::MaxLoadReached, Some(1_900_000)));
}

#[test]
fn one_search_serves_several_goals_for_less_than_a_search_each() {
    let goals = [SearchPreset::NoDrop.goal(), SearchPreset::PartialDrop.goal()];
    let mut together = Path::new(Device::Noisy, CAPACITY, CEILING, 3);
    let results = complete(&goals, &mut together);
    let (no_drop, partial) = (regular(&results[0]), regular(&results[1]));
    assert!(no_drop.0 < partial.0, "no drop {no_drop:?}, partial drop {partial:?}");
    let mut apart = Path::new(Device::Noisy, CAPACITY, CEILING, 3);
    for goal in goals {
        complete(&[goal], &mut apart);
    }
    assert!(together.spent_ns < apart.spent_ns, "{} against {} ns", together.spent_ns, apart.spent_ns);
}

#[test]
fn path_with_loss_at_any_load_ends_the_search_early() {
    for preset in PRESETS {
        let (name, goal) = (preset.word(), preset.goal());
        let mut path = Path::new(Device::Lossy, CAPACITY, CEILING, 1);
        let result = complete(std::slice::from_ref(&goal), &mut path).remove(0);
        assert_eq!(result.state, SearchState::MinLoadFails, "{name}: {result:?}");
        assert_eq!((result.lower, result.conditional_throughput), (None, None));
        assert!(path.trials < 60, "{name}: {} trials", path.trials);
    }
}

#[test]
fn generator_without_pacing_is_reported_as_the_limit() {
    // The path has no limit. Without pacing the generator reaches 2 Mpps, and half of that with pacing.
    let mut path = Path::new(Device::Clean, 5e6, 2e6, 1);
    path.paced_ceiling = 1e6;
    let (search, end) = search(&[SearchPreset::NoDrop.goal()], NO_LIMIT, &mut path);
    assert_eq!(end, SearchEnd::Complete);
    let result = search.results().remove(0);
    let (lower, upper) = regular(&result);
    assert!(lower <= 1.005e6 && upper >= 1e6 && result.generator_limited, "{result:?}");
    assert!(search.steps().iter().any(|step| step.generator_limited));
}

#[test]
fn exhausted_budget_ends_the_search_with_its_current_result() {
    for trials in 0..12 {
        let mut path = Path::new(Device::Clean, CAPACITY, CEILING, 1);
        let (search, end) = search(&[SearchPreset::Tst009.goal()], (trials, NO_LIMIT.1), &mut path);
        assert!(path.trials <= trials);
        let result = search.results().remove(0);
        if end == SearchEnd::Budget {
            assert_eq!((path.trials, result.state), (trials, SearchState::Unfinished));
        }
        if trials >= 3 {
            assert!(result.narrowed_lower.is_some(), "after {trials}: {result:?}");
        }
    }
    let mut path = Path::new(Device::Clean, CAPACITY, CEILING, 1);
    let time = Nanos(30 * SECOND.0);
    let (_, end) = search(&[SearchPreset::Rfc2544.goal()], (u32::MAX, time), &mut path);
    assert_eq!(end, SearchEnd::Budget);
    assert!(path.spent_ns <= time.0, "a trial that would not fit is not begun");
}

#[test]
fn generator_without_packets_ends_the_search() {
    let mut path = Path::new(Device::Clean, CAPACITY, 0.0, 1);
    let (search, end) = search(&[SearchPreset::NoDrop.goal()], NO_LIMIT, &mut path);
    assert_eq!((end, search.steps().len()), (SearchEnd::NothingSent, 1));
    assert_eq!(search.results()[0].state, SearchState::Unfinished);
}

#[test]
fn repeated_request_returns_the_same_action() {
    let mut path = Path::new(Device::Noisy, CAPACITY, CEILING, 9);
    let mut search = begin(&[SearchPreset::Tst009.goal()], NO_LIMIT);
    while let Next::Measure(ask) = search.wanted() {
        assert_eq!(search.wanted(), Next::Measure(ask));
        let outcome = path.answer(ask);
        search.record(ask, outcome);
    }
}

/// Cost and accuracy of many searches.
struct Cost {
    /// Median number of trials.
    trials: f64,
    /// Median time, seconds.
    seconds: f64,
    /// Median distance of the lower bound from the capacity, as a share of it.
    off: f64,
    /// 95th percentile of the distance from that median, as a share of the capacity.
    spread: f64,
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share) as usize]
}

/// Runs a search method on many paths of one kind with different capacities.
fn cost(device: Device, mut way: impl FnMut(&mut Path) -> f64) -> Cost {
    const SEEDS: u64 = 200;
    let (mut trials, mut seconds, mut off) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        let capacity = CAPACITY * (1.0 + 0.5 * (seed as f64 / SEEDS as f64));
        let mut path = Path::new(device, capacity, CEILING, seed);
        let found = way(&mut path);
        trials.push(f64::from(path.trials));
        seconds.push(path.spent_ns as f64 / 1e9);
        off.push(found / capacity - 1.0);
    }
    let middle = quantile(&mut off, 0.5);
    let mut distances: Vec<f64> = off.iter().map(|off| (off - middle).abs()).collect();
    Cost {
        trials: quantile(&mut trials, 0.5),
        seconds: quantile(&mut seconds, 0.5),
        off: middle,
        spread: quantile(&mut distances, 0.95),
    }
}

/// Minimum factor by which a search is faster than bisection.
type Gain = f64;

/// On 200 paths each. When a goal allows no failed trial, one bad moment spoils any search, which `spread` shows.
const CASES: [(Device, [Gain; 4]); 6] = [
    (Device::Clean, [3.0, 3.0, 7.0, 5.0]),
    (Device::Livelock, [1.8, 1.8, 5.5, 4.0]),
    (Device::Buffered, [2.0, 2.0, 2.0, 1.5]),
    (Device::Noisy, [1.1, 3.0, 2.0, 2.0]),
    (Device::Bursty, [3.0, 3.0, 7.0, 5.0]),
    (Device::Drifting, [3.0, 3.0, 7.0, 5.0]),
];

#[test]
fn search_is_as_accurate_as_bisection_in_less_time() {
    println!(
        "| path | goal | trials | time | lower bound off by | bisection: trials | time | off by | gain |"
    );
    for (device, gains) in CASES {
        for (preset, gain) in PRESETS.into_iter().zip(gains) {
            let (name, goal) = (preset.word(), preset.goal());
            let ours = cost(device, |path| {
                complete(std::slice::from_ref(&goal), path)[0].lower.unwrap_or_default() as f64
            });
            let plain = cost(device, |path| bisect(&goal, path).0 as f64);
            let off = |cost: &Cost| format!("{:+.1} ± {:.1} %", 100.0 * cost.off, 100.0 * cost.spread);
            println!(
                "| {device:?} | {name} | {} | {:.0} s | {} | {} | {:.0} s | {} | {:.1} |",
                ours.trials,
                ours.seconds,
                off(&ours),
                plain.trials,
                plain.seconds,
                off(&plain),
                plain.seconds / ours.seconds
            );
            assert!(plain.seconds >= gain * ours.seconds, "{device:?} {name} costs too much");
            // A drifting path has another capacity at the end, and bisection takes long enough to see much of the drift.
            let apart = (ours.off - plain.off).abs();
            assert!(
                apart < 0.015 || matches!(device, Device::Drifting),
                "{device:?} {name}: {} and {}",
                ours.off,
                plain.off
            );
        }
    }
}
