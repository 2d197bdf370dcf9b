//! Broken products: the judges report each of them, and a failing seed shrinks to the fault that it needs. Without this a judge that
//! reports nothing would keep every seed green.
use netduel_simulation::campaign;
use netduel_simulation::sabotage::Sabotage;

/// Seeds of which at least one reports a broken product.
const SEEDS: u64 = 200;
/// Seeds of which at least one has several faults of which a broken product needs at most one.
const SEEDS_TO_SHRINK: u64 = 1_000;

/// Each broken product with the words that report it, in the order of the promises of design note 0027.
const REPORTED: [(u8, Sabotage, &str); 18] = [
    (1, Sabotage::StoresTwice, "is stored twice"),
    (2, Sabotage::StoresOneEnd, "is called valid: an end is missing"),
    (2, Sabotage::StoresFailedAsValid, "is called valid: an end is missing"),
    (2, Sabotage::KeepsPath, "is called valid: the lab is on"),
    (3, Sabotage::KeepsTreatments, "treatments are applied twice on"),
    (3, Sabotage::RestoresNothing, " is in place on "),
    (3, Sabotage::TakesNoLock, "which no host has locked"),
    (4, Sabotage::GivesUpAgents, "is given up"),
    (5, Sabotage::RepeatsLines, "was sent what the protocol forbids"),
    (5, Sabotage::LeavesAgents, "is left behind at the end of the run"),
    (6, Sabotage::SkipsPrecision, "starts without a check of the precision"),
    (6, Sabotage::EndsEarly, "the run ended as Some(PrecisionReached) with"),
    (7, Sabotage::IgnoresInterrupts, "starts after an interrupt"),
    (7, Sabotage::StopsLate, "s to stop"),
    (7, Sabotage::HidesWarnings, "and not shown are [SharedMachine"),
    (8, Sabotage::RestartsNoAgents, "one fault at a host ended the run"),
    (9, Sabotage::LosesRecord, " with the complete blocks {"),
    (10, Sabotage::DescribesOnce, "and a host was not compared after block"),
];

#[test]
fn each_broken_promise_is_reported() {
    for (promise, sabotage, words) in REPORTED {
        let is_reported = |seed| campaign::play_broken(seed, sabotage).reports(words);
        assert!(
            (0..SEEDS).any(is_reported),
            "{sabotage:?} breaks promise {promise}, and no seed below {SEEDS} reports: {words}"
        );
    }
}

#[test]
fn failing_seed_shrinks_to_the_fault_that_it_needs() {
    for (_, sabotage, words) in REPORTED {
        let shrinks = |seed| {
            let whole = campaign::play_broken(seed, sabotage);
            if whole.faults < 2 || !whole.reports(words) {
                return false;
            }
            let smallest = campaign::shrink_broken(seed, sabotage);
            assert_eq!(smallest.sabotage, Some(sabotage), "seed {seed} is shrunk without what breaks it");
            assert!(!smallest.violations.is_empty(), "seed {seed} is shrunk until it keeps its promises");
            smallest.faults <= 1 && smallest.reports(words)
        };
        assert!(
            (0..SEEDS_TO_SHRINK).any(shrinks),
            "no seed below {SEEDS_TO_SHRINK} with {sabotage:?} is shrunk to one fault that reports: {words}"
        );
    }
}
