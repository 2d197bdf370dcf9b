//! A run file without trials that the run stored: they are named, and a whole run, however it ended, is never called incomplete.
use netduel_model::plan::{ResolvedPlan, parse};
use netduel_model::run::RunEnd;
use netduel_model::trial::{Slot, Trial};
use netduel_store::Store;

use crate::sample;

/// Arms `synthetic` and `accelerated`, workloads `stream` and `requests`: four trials in a block, three blocks, two at least.
fn plan() -> ResolvedPlan {
    let text = include_str!("../../../../plans/demo.toml");
    let mut plan = parse(text, "plans/demo.toml").unwrap_or_else(|errors| panic!("{errors}"));
    (plan.design.blocks_min, plan.design.blocks_max) = (2, 3);
    plan
}

/// A valid trial. `place`: block, attempt and position. The order of every block is that of the plan.
fn trial([block, attempt, position]: [u32; 3]) -> Trial {
    let arm = sample::arm(if position < 2 { "synthetic" } else { "accelerated" });
    let workload = sample::workload(if position % 2 == 0 { "stream" } else { "requests" });
    Trial::new(Slot { block, position, arm, workload }, attempt, 0)
}

/// The trials of a block and attempt at these positions.
fn block(block: u32, attempt: u32, positions: &[u32]) -> Vec<[u32; 3]> {
    positions.iter().map(|position| [block, attempt, *position]).collect()
}

/// What the file of a run with these trials lacks; reports have it as well.
fn missing(parts: &[Vec<[u32; 3]>], end: Option<&RunEnd>) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut header = sample::header("missing");
    header.plan = plan();
    let mut writer = store.create(&header).expect("a run is created");
    for place in parts.concat() {
        writer.trial(&trial(place)).expect("stored");
    }
    if let Some(end) = end {
        writer.end(end).expect("stored");
    }
    drop(writer);
    let run = store.read("last").expect("it can be read");
    let found = store.verify("last").expect("it can be read");
    assert_eq!((found.damaged.len(), found.foreign.len()), (0, 0), "{parts:?} {end:?}");
    let words: Vec<String> = run.warnings.iter().map(ToString::to_string).collect();
    match &found.missing {
        None => assert_eq!(words, [""; 0]),
        Some(missing) => assert!(words.len() == 1 && words[0].contains(missing), "{words:?}"),
    }
    found.missing
}

fn ends_in_between() -> [Option<RunEnd>; 3] {
    [None, Some(RunEnd::Interrupted), Some(RunEnd::Failed { detail: "host b is lost".to_owned() })]
}

const ALL: &[u32] = &[0, 1, 2, 3];

#[test]
fn whole_run_lacks_nothing_however_it_ended() {
    let blocks = |count: u32| (0..count).map(|number| block(number, 0, ALL)).collect::<Vec<_>>();
    for (count, end) in [
        (3, RunEnd::BlockLimitReached),
        (2, RunEnd::PrecisionReached),
        (3, RunEnd::PrecisionReached),
        (1, RunEnd::BudgetReached),
    ] {
        assert_eq!(missing(&blocks(count), Some(&end)), None, "{count} blocks, {end:?}");
    }
    for end in ends_in_between() {
        assert_eq!(missing(&[], end.as_ref()), None, "{end:?}");
        for begun in [ALL, &[], &[0], &[0, 1, 2]] {
            let parts = [block(0, 0, ALL), block(1, 0, begun)];
            assert_eq!(missing(&parts, end.as_ref()), None, "{begun:?}, {end:?}");
        }
        // A host changed within the block: its last trial is that of the next attempt.
        let superseded = [block(0, 0, ALL), block(1, 0, &[0, 1, 2]), block(1, 1, &[3])];
        assert_eq!(missing(&superseded, end.as_ref()), None, "{end:?}");
        // Interrupted, resumed, and interrupted again.
        let repeated = [block(0, 0, &[0, 1]), block(0, 1, ALL), block(1, 0, &[0, 1]), block(1, 1, &[0])];
        assert_eq!(missing(&repeated, end.as_ref()), None, "{end:?}");
    }
}

#[test]
fn block_that_lacks_a_trial_is_named() {
    let lacks =
        |number: &str| Some(format!("it lacks trials of block {number}, although the run stored them"));
    for (one, two, three, named) in
        [(&[1, 2, 3][..], ALL, ALL, "1"), (ALL, &[0, 2, 3], ALL, "2"), (ALL, &[0], &[0, 1, 2], "2 to 3")]
    {
        let parts = [block(0, 0, one), block(1, 0, two), block(2, 0, three)];
        assert_eq!(missing(&parts, Some(&RunEnd::BlockLimitReached)), lacks(named));
    }
    for end in ends_in_between() {
        // Of a finished block, and of the block that the run began last.
        let finished = [block(0, 0, &[0, 1, 3]), block(1, 0, &[0])];
        assert_eq!(missing(&finished, end.as_ref()), lacks("1"), "{end:?}");
        let begun = [block(0, 0, ALL), block(1, 0, &[0, 2])];
        assert_eq!(missing(&begun, end.as_ref()), lacks("2"), "{end:?}");
        // A resumed run has repeated the block.
        let repeated = [block(0, 0, &[0, 1, 3]), block(1, 0, ALL), block(0, 1, ALL)];
        assert_eq!(missing(&repeated, end.as_ref()), None, "{end:?}");
    }
}

#[test]
fn blocks_without_a_trial_are_named_before_a_later_one_and_before_the_end() {
    let empty = |blocks: &str, required: u32| {
        Some(format!("it has no trial of block {blocks}, although its end requires {required} blocks"))
    };
    assert_eq!(missing(&[], Some(&RunEnd::BlockLimitReached)), empty("1 to 3", 3));
    assert_eq!(missing(&[block(0, 0, ALL)], Some(&RunEnd::PrecisionReached)), empty("2", 2));
    let both = missing(&[block(1, 0, ALL)], Some(&RunEnd::BlockLimitReached)).expect("two faults");
    let first = "it has no trial of block 1, although it has trials of a later block; ";
    assert_eq!(both, format!("{first}{}", empty("3", 3).unwrap_or_default()));
}

#[test]
fn many_missing_blocks_are_named_as_ranges() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut writer = store.create(&sample::header("gaps")).expect("a run is created");
    for block in [0, 2, 6] {
        writer.trial(&sample::trial(block)).expect("stored");
    }
    let missing = || store.verify("last").expect("it can be read").missing;
    let words = "it has no trial of block 2, 4 to 6, although it has trials of a later block";
    assert_eq!(missing().as_deref(), Some(words));
    for block in [8, 10, 12, 14] {
        writer.trial(&sample::trial(block)).expect("stored");
    }
    let words =
        "it has no trial of block 2, 4 to 6, 8, 10 and others, although it has trials of a later block";
    assert_eq!(missing().as_deref(), Some(words));
    for block in [1, 3, 4, 5, 7, 9, 11, 13] {
        writer.trial(&sample::trial(block)).expect("stored");
    }
    assert_eq!(missing(), None);
}

#[test]
fn older_run_that_lacks_a_trial_is_read_as_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/format-2.netduel");
    assert_eq!(store.verify(golden).expect("it can be read").missing, None);
}
