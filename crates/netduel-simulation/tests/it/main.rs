//! Ten thousand runs in virtual time, each with its own faults. A seed that breaks a promise is printed with a minimal set of faults and
//! with its trace; `NETDUEL_SEED=N` plays that seed only.
mod broken;

use netduel_simulation::campaign;

const SEEDS: u64 = 10_000;

#[test]
fn runs_keep_their_promises_whatever_fails() {
    if let Some(seed) = std::env::var("NETDUEL_SEED").ok().map(|text| text.parse().expect("a number")) {
        println!("{}", campaign::trace(seed).text);
        let outcome = campaign::play(seed, 1);
        assert!(outcome.broken.is_empty(), "{}", outcome.report());
        return;
    }
    let outcome = campaign::play(0, SEEDS);
    assert!(outcome.broken.is_empty(), "{}", outcome.report());
    assert_eq!(outcome.seeds, SEEDS);
    // Seeds without faults would pass, too.
    assert!(outcome.hits > SEEDS, "only {} faults came about", outcome.hits);
    for end in ["BlockLimitReached", "BudgetReached", "PrecisionReached", "Interrupted", "error", "killed"] {
        let count = outcome.ends.get(end).copied().unwrap_or_default();
        assert!(count > SEEDS / 50, "{count} parts of runs ended as {end}: {:?}", outcome.ends);
    }
}

#[test]
fn seed_is_played_the_same_way_every_time() {
    for seed in [3, 117, 2_048] {
        assert_eq!(campaign::trace(seed), campaign::trace(seed), "seed {seed}");
    }
}
