//! Blocks that a resumed run repeats, and blocks in which another program changed a host.
use netduel_control::coordinator::RunErrorKind;
use netduel_control::schedule;
use netduel_model::attempts;
use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;

use crate::coordinator::{FOUR_TRIALS, once, reasons};
use crate::surroundings::{Script, plan, run};

const SIX_TRIALS: &str = "blocks_min = 3\nblocks_max = 3";
/// The seed of scripted runs.
const SEED: u64 = 5;

/// Blocks and attempts of trials.
fn attempts_of(trials: &[Trial]) -> Vec<(u32, u32)> {
    trials.iter().map(|trial| (trial.slot.block, trial.attempt)).collect()
}

/// The plan with two workloads.
fn with_two_workloads(design: &str) -> ResolvedPlan {
    let mut plan = plan(design);
    for arm in &mut plan.arms {
        let mut again = arm.workloads[0].clone();
        again.name = "again".parse().unwrap();
        arm.workloads.push(again);
    }
    plan.workloads.push("again".parse().unwrap());
    plan
}

/// The plan with a third arm `far`, from host c.
pub fn with_far_arm(design: &str) -> ResolvedPlan {
    let mut plan = plan(design);
    let (a, c) = (HostName::new("a").unwrap(), HostName::new("c").unwrap());
    plan.hosts.insert(c.clone(), plan.hosts[&a].clone());
    let mut far = plan.arms[1].clone();
    (far.name, far.pair.client) = (ArmName::new("far").unwrap(), c);
    plan.arms.push(far);
    plan
}

#[test]
fn resumed_run_repeats_only_the_incomplete_block() {
    let mut whole = Script::default();
    run(&plan(FOUR_TRIALS), &mut whole).unwrap();
    let mut script = Script { done_before: whole.stored[..3].to_vec(), ..Script::default() };
    run(&plan(FOUR_TRIALS), &mut script).unwrap();
    let slots: Vec<_> = script.stored.iter().map(|trial| (trial.slot.clone(), trial.attempt)).collect();
    let expected: Vec<_> = whole.stored[2..].iter().map(|trial| (trial.slot.clone(), 1)).collect();
    assert_eq!(slots, expected);
}

#[test]
fn resumed_run_repeats_a_block_with_a_damaged_record_and_no_later_one() {
    let mut whole = Script::default();
    run(&plan(SIX_TRIALS), &mut whole).unwrap();
    for (damaged, repeated) in [(0, [(0, 1), (0, 1)]), (3, [(1, 1), (1, 1)])] {
        let mut done_before = whole.stored.clone();
        done_before.remove(damaged);
        let mut resumed = Script { done_before: done_before.clone(), ..Script::default() };
        assert_eq!(run(&plan(SIX_TRIALS), &mut resumed).unwrap(), RunEnd::BlockLimitReached);
        assert_eq!(attempts_of(&resumed.stored), repeated);
        done_before.extend(resumed.stored);
        assert_eq!(attempts::counting(&done_before).count(), 6);
    }
}

#[test]
fn block_without_a_readable_record_is_run_again_also_after_the_budget() {
    let mut whole = Script::default();
    run(&plan(SIX_TRIALS), &mut whole).unwrap();
    let mut done_before = whole.stored.clone();
    done_before.drain(2..4);
    let used_up = plan("blocks_min = 2\nblocks_max = 9\nbudget = \"1 ms\"");
    let mut resumed = Script { done_before, stop_after: Some(1), ..Script::default() };
    assert_eq!(run(&used_up, &mut resumed).unwrap(), RunEnd::PrecisionReached);
    assert_eq!(attempts_of(&resumed.stored), [(1, 0), (1, 0)]);
    assert_eq!(resumed.stored[0].slot, whole.stored[2].slot);
}

#[test]
fn trials_that_are_superseded_do_not_decide_whether_to_stop() {
    let mut whole = Script::default();
    run(&plan(FOUR_TRIALS), &mut whole).unwrap();
    // Block 1 is incomplete and runs again. Five valid trials exist after block 2 only.
    let done_before = whole.stored[..3].to_vec();
    let mut script = Script { done_before, stop_after: Some(5), ..Script::default() };
    let end = run(&plan("blocks_min = 2\nblocks_max = 9"), &mut script).unwrap();
    assert_eq!((end, script.stored.len()), (RunEnd::PrecisionReached, 4));
}

/// The descriptions before that of the end of block 0: at the start, and after the lock.
const OF_THE_START: u32 = 2;

/// The word of a script for a change that another program makes in a block.
fn changed_in(block: u32) -> String {
    format!("sack-off-from={}", OF_THE_START + block)
}

/// Nothing of a block counts, and the reason is that another program has changed a host.
#[track_caller]
fn assert_does_not_count(trials: &[Trial], block: u32) {
    let of_block: Vec<&Trial> =
        attempts::counting(trials).filter(|trial| trial.slot.block == block).collect();
    let [superseding] = of_block[..] else { panic!("{of_block:?}") };
    let reason = superseding.validity.reason().unwrap();
    assert!(
        reason.starts_with("the block does not count: host b has other settings")
            && reason.contains("net.ipv4.tcp_sack is 0 instead of 1"),
        "{reason}"
    );
    assert!(superseding.client.is_none() && superseding.server.is_none());
}

#[test]
fn run_ends_when_another_program_changes_a_host_and_its_block_is_repeated() {
    let plan = with_two_workloads(FOUR_TRIALS);
    let mut changed = Script::default().host("b", &[changed_in(1).as_str()]);
    let error = run(&plan, &mut changed).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b") && text.contains("net.ipv4.tcp_sack is 0 instead of 1"), "{text}");
    let attempts = attempts_of(&changed.stored);
    assert_eq!(attempts, [(0, 0), (0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (1, 0), (1, 1)]);
    assert_does_not_count(&changed.stored, 1);

    let mut resumed = Script { done_before: changed.stored.clone(), ..Script::default() };
    assert_eq!(run(&plan, &mut resumed).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(attempts_of(&resumed.stored), [(1, 2); 4]);
}

#[test]
fn virtual_function_that_is_gone_after_a_block_ends_the_run_unless_it_comes_back() {
    let gone = format!("vf-gone-from={}", OF_THE_START + 1);
    let mut script = Script::default().host("b", &[gone.as_str()]);
    let text = run(&plan(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(text.contains("host b has other settings") && text.contains("vf is gone"), "{text}");
    assert_eq!(attempts_of(&script.stored), [(0, 0), (0, 0), (1, 0), (1, 1)]);

    let back = format!("vf-back-from={}", OF_THE_START + 4);
    let mut script = Script::default().host("b", &[gone.as_str(), back.as_str()]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert!(script.stored.iter().all(Trial::is_valid), "{:?}", reasons(&script.stored));
}

/// The warnings of a run about hosts that differed for a while, each with its block.
fn differed(script: &Script) -> Vec<(u32, &str)> {
    let events = script.events.iter();
    events
        .filter_map(|event| match event {
            Event::Warned { warning: Warning::HostDiffered { block, detail, .. } } => {
                Some((*block, detail.as_str()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn setting_that_returns_while_the_host_is_compared_does_not_end_the_run() {
    let off = changed_in(1);
    let on = |looks: u32| format!("sack-on-from={}", OF_THE_START + 1 + looks);
    // It is back at the third look, which is the last one where nothing moved.
    let mut script = Script::default().host("b", &[off.as_str(), on(2).as_str()]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert!(script.stored.iter().all(Trial::is_valid), "{:?}", reasons(&script.stored));
    assert_eq!(differed(&script), [(1, "net.ipv4.tcp_sack is 0 instead of 1")]);
    let mut late = Script::default().host("b", &[off.as_str(), on(3).as_str()]);
    let text = run(&plan(FOUR_TRIALS), &mut late).unwrap_err().to_string();
    assert!(text.contains("net.ipv4.tcp_sack is 0 instead of 1"), "{text}");

    // A virtual function comes back, and the setting follows.
    let gone = format!("vf-gone-from={}", OF_THE_START + 1);
    let back = format!("vf-back-from={}", OF_THE_START + 4);
    let follows = on(6);
    let words = [off.as_str(), follows.as_str(), gone.as_str(), back.as_str()];
    let mut script = Script::default().host("b", &words);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert!(script.stored.iter().all(Trial::is_valid), "{:?}", reasons(&script.stored));
}

#[test]
fn block_after_the_largest_attempt_has_no_number() {
    let mut whole = Script::default();
    run(&plan(FOUR_TRIALS), &mut whole).unwrap();
    let mut interrupted = whole.stored[0].clone();
    interrupted.attempt = u32::MAX - 1;
    let mut changed =
        Script { done_before: vec![interrupted], ..Script::default() }.host("b", &[changed_in(0).as_str()]);
    let error = run(&plan(FOUR_TRIALS), &mut changed).unwrap_err().to_string();
    assert!(error.contains("block 1 of the run file has attempt 4294967295"), "{error}");
    assert_eq!(attempts_of(&changed.stored), [(0, u32::MAX)]);
}

#[test]
fn block_whose_last_slot_is_of_a_dropped_arm_is_compared_with_the_start() {
    let design = |blocks: u32| format!("blocks_min = {blocks}\nblocks_max = {blocks}");
    let far = ArmName::new("far").unwrap();
    let is_last = |block: &u32| {
        let slots = schedule::block(&with_far_arm(FOUR_TRIALS), SEED, *block);
        slots.last().is_some_and(|slot| slot.arm == far)
    };
    let block = (1..100).find(is_last).unwrap();
    let plan = with_far_arm(&design(block + 2));
    // Host c is not restored after its first trial, so its arm is dropped, and the run goes on with the others.
    let mut script =
        Script::default().host("b", &[changed_in(block).as_str()]).host("c", &["refuse-undo", "own-machine"]);
    let text = run(&plan, &mut script).unwrap_err().to_string();
    assert!(text.contains("host b has other settings"), "{text}");
    assert_eq!(script.stored.last().map(|trial| trial.slot.block), Some(block));
    assert_does_not_count(&script.stored, block);
}

#[test]
fn hosts_on_other_machines_are_compared_after_a_failed_undo() {
    let mut script =
        Script::default().host("b", &[changed_in(1).as_str()]).host("c", &["refuse-undo", "own-machine"]);
    let text = run(&with_far_arm(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(text.contains("host b has other settings"), "{text}");
    assert_does_not_count(&script.stored, 1);
    let valid = attempts::counting(&script.stored).filter(|trial| trial.is_valid());
    assert!(valid.map(|trial| trial.slot.block).all(|block| block == 0));
}

#[test]
fn block_whose_last_trial_lost_an_agent_is_compared_when_it_is_restarted() {
    let mut one = plan(FOUR_TRIALS);
    one.arms.truncate(1);
    (one.design.blocks_min, one.design.blocks_max) = (1, 1);
    for change in [None, Some(changed_in(0))] {
        let marker = tempfile::NamedTempFile::new().unwrap();
        let words: Vec<&str> = change.iter().map(String::as_str).collect();
        let mut script = Script::default().host("a", &["die-undo", &once(&marker)]).host("b", &words);
        let result = run(&one, &mut script);
        if change.is_some() {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("host b has other settings"), "{text}");
            assert_does_not_count(&script.stored, 0);
        } else {
            assert_eq!(result.unwrap(), RunEnd::BlockLimitReached);
            assert!(script.stored.len() == 1 && script.stored[0].is_valid());
        }
    }
}

#[test]
fn block_that_cannot_be_compared_does_not_count() {
    let refuses = format!("refuse-describe-from={OF_THE_START}");
    let mut script = Script::default().host("b", &[refuses.as_str()]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(error.contains("the script refuses to describe"), "{error}");
    assert_eq!(attempts_of(&script.stored), [(0, 0), (0, 1)]);
    let expected = "the block does not count: host b: the script refuses to describe";
    assert_eq!(reasons(&script.stored), [expected]);
}

#[test]
fn last_trial_of_a_block_that_loses_an_agent_for_good_has_its_own_reason() {
    // The agent dies in every trial, and is restarted three times.
    let mut script = Script::default().host("b", &["always-die-result"]);
    run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(attempts_of(&script.stored), [(0, 0), (0, 0), (1, 0), (1, 0)]);
    assert!(reasons(&script.stored).iter().all(|reason| reason.starts_with("host b vanished")));
}
