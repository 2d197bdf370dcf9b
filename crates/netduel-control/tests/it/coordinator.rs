//! The coordinator over real child processes that follow a script.
//!
//! Long because: each test is the script of an agent.
use std::collections::VecDeque;
use std::time::Duration;

use netduel_control::coordinator::{RunError, RunErrorKind};
use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError};
use netduel_control::protocol::{FailureKind, FromAgent, PROTOCOL, ToAgent, decode, encode};
use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName};
use netduel_model::plan::TreatmentAction;
use netduel_model::plan::spec::LabPath;
use netduel_model::run::RunEnd;
use netduel_model::trial::Trial;
use netduel_model::units::Nanos;
use netduel_model::warning::Warning;

use crate::surroundings::{Script, describe, plan, run, run_over};

pub const FOUR_TRIALS: &str = "blocks_min = 2\nblocks_max = 2";

/// A log file of agents, and its lines.
pub fn logged(script: &mut Script) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    script.environment.push(("SCRIPT_LOG".to_owned(), file.path().display().to_string()));
    file
}

pub fn lines(file: &tempfile::NamedTempFile) -> Vec<String> {
    std::fs::read_to_string(file.path()).unwrap().lines().map(str::to_owned).collect()
}

/// The word of a script for a single death: the agent dies only while this file exists.
pub fn once(marker: &tempfile::NamedTempFile) -> String {
    format!("once={}", marker.path().display())
}

pub fn reasons(trials: &[Trial]) -> Vec<String> {
    trials.iter().filter_map(|trial| trial.validity.reason().map(str::to_owned)).collect()
}

#[test]
fn every_trial_is_run_stored_and_reported() {
    let mut script = Script::default();
    let log = logged(&mut script);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(script.stored.len(), 4);
    assert!(script.stored.iter().all(Trial::is_valid), "{:?}", reasons(&script.stored));
    assert!(script.stored.iter().all(|trial| trial.proofs.len() == 2 && trial.server.is_some()));
    assert_eq!(script.tokens.len(), 5, "the probe and each trial have a secret of their own");
    let finished = script.events.iter().filter(|event| matches!(event, Event::TrialFinished { .. })).count();
    assert_eq!(finished, 4);
    assert!(matches!(script.events.last(), Some(Event::RunFinished { end: RunEnd::BlockLimitReached })));
    let log = lines(&log);
    let count = |word: &str| log.iter().filter(|line| *line == word).count();
    // Two hosts, four trials; one network namespace for both, so one lock. Each agent undoes once more at its end.
    assert_eq!((count("apply"), count("undo"), count("start"), count("lock")), (8, 10, 8, 1));
}

#[test]
fn forgotten_pause_delays_one_trial_and_not_each_of_them() {
    let mut script = Script { pauses: 1, waits: true, ..Script::default() };
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!((script.stored.len(), script.pauses), (4, 0));
    assert_eq!(script.now_ns / 60_000_000_000, 10, "minutes of virtual time");
}

#[test]
fn hosts_with_networks_of_their_own_are_locked_each() {
    let mut script = Script::default().host("a", &["own-network"]).host("b", &["own-network"]);
    let log = logged(&mut script);
    run(&plan(FOUR_TRIALS), &mut script).unwrap();
    assert_eq!(lines(&log).iter().filter(|line| *line == "lock").count(), 2);
}

#[test]
fn agent_of_another_version_is_rejected_with_both_versions() {
    let mut script = Script::default().host("b", &["other-version"]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b") && text.contains("999") && text.contains("netduel 9.9.9"), "{text}");
    assert!(script.stored.is_empty());
}

#[test]
fn missing_program_is_named() {
    let mut script = Script::default().host("b", &["/no/such/program"]);
    let text = run(&plan(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(text.contains("host b") && text.contains("/no/such/program"), "{text}");
}

#[test]
fn last_output_of_an_agent_that_ends_at_once_is_reported() {
    let mut script = Script::default().host("b", &["sh", "-c", "echo no such host key >&2; exit 255"]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert!(matches!(error, RunError::NotStarted { .. }));
    let text = error.to_string();
    assert!(text.contains("no such host key") && text.contains("255"), "{text}");
}

#[test]
fn agent_that_dies_in_a_trial_is_restarted_and_the_run_continues() {
    let marker = tempfile::NamedTempFile::new().unwrap();
    let mut script = Script::default().host("b", &["die-start", &once(&marker)]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(script.stored.len(), 4);
    let reasons = reasons(&script.stored);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        reasons[0].contains("host b vanished") && reasons[0].contains("the script dies at start"),
        "{reasons:?}"
    );
}

#[test]
fn refused_treatment_fails_the_trial_and_applied_ones_are_undone() {
    let mut script = Script::default().host("b", &["refuse-apply"]);
    let log = logged(&mut script);
    let error = run(&plan("blocks_min = 9\nblocks_max = 9"), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Environment);
    assert!(error.to_string().contains("the script refuses to apply"), "{error}");
    // Each arm may fail three times in a row, then the agents are started again, and then three times more.
    assert!((6..=11).contains(&script.stored.len()), "{} trials", script.stored.len());
    assert_eq!(script.events.iter().filter(|event| matches!(event, Event::HostReady { .. })).count(), 4);
    let log = lines(&log);
    assert!(!log.contains(&"start".to_owned()), "traffic ran without its treatment");
    let count = |word: &str| log.iter().filter(|line| *line == word).count();
    // Around every trial, and once more at the end of each of four agents.
    assert_eq!(count("undo"), 2 * script.stored.len() + 4);
}

#[test]
fn arm_with_a_refused_treatment_is_dropped_while_two_arms_remain() {
    let mut plan = plan("blocks_min = 9\nblocks_max = 9");
    let mut third = plan.arms[1].clone();
    third.name = ArmName::new("third").unwrap();
    plan.arms.push(third);
    let value = |action: &mut TreatmentAction| match action {
        TreatmentAction::Sysctl { value, .. } => "2".clone_into(value),
        other => panic!("{other:?}"),
    };
    plan.arms[2].treatments.iter_mut().for_each(|treatment| value(&mut treatment.action));
    let mut script = Script::default().host("b", &["refuse-value-2"]);
    let log = logged(&mut script);
    assert_eq!(run(&plan, &mut script).unwrap(), RunEnd::BlockLimitReached);
    // Every slot has a trial, so a resumed run finds complete blocks.
    assert_eq!(script.stored.len(), 27);
    let of =
        |name: &str| script.stored.iter().filter(|trial| trial.slot.arm.as_str() == name).collect::<Vec<_>>();
    assert!(of("off").iter().chain(&of("on")).all(|trial| trial.is_valid()));
    let reasons = reasons(&script.stored);
    assert_eq!(reasons.len(), 9);
    // Three trials, three more with new agents, and then none.
    assert_eq!(reasons.iter().filter(|reason| reason.starts_with("the arm was dropped: host b")).count(), 3);
    let dropped = |event: &&Event| {
        matches!(event, Event::Warned { warning: Warning::ArmDropped { arm, reason } }
        if arm.as_str() == "third" && reason.contains("refuses this value"))
    };
    assert_eq!(script.events.iter().filter(dropped).count(), 1);
    assert_eq!(script.dropped.iter().map(ArmName::as_str).collect::<Vec<_>>(), ["third"]);
    assert_eq!(lines(&log).iter().filter(|line| *line == "start").count(), 36);
}

#[test]
fn baseline_with_a_refused_treatment_ends_the_run() {
    let mut plan = plan("blocks_min = 9\nblocks_max = 9");
    let mut third = plan.arms[1].clone();
    third.name = ArmName::new("third").unwrap();
    plan.arms.push(third);
    let mut script = Script::default().host("b", &["refuse-value-0"]);
    let error = run(&plan, &mut script).unwrap_err();
    assert!(error.to_string().contains("refuses this value"), "{error}");
}

#[test]
fn bytes_on_another_interface_make_a_trial_invalid() {
    let mut script = Script::default().host("a", &["wrong-path"]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    let reasons = reasons(&script.stored);
    assert_eq!(reasons.len(), 4);
    assert!(reasons[0].contains("at the client 0.0 %") && reasons[0].contains("eth9"), "{reasons:?}");
}

#[test]
fn wrong_interface_at_both_ends_is_reported_for_both() {
    let mut script = Script::default().host("a", &["wrong-path"]).host("b", &["wrong-path"]);
    run(&plan(FOUR_TRIALS), &mut script).unwrap();
    let reason = reasons(&script.stored).remove(0);
    assert!(reason.contains("at the client") && reason.contains("at the server"), "{reason}");
}

#[test]
fn agent_that_sends_live_figures_continuously_is_abandoned_at_its_deadline() {
    // Fifteen thousand live figures to the deadline: messages arrive without a pause.
    // The other end sends few figures, so that its silence is within the limit.
    let progress = Some(Nanos(10_000_000_000));
    let mut script = Script { jump_at_progress_ns: 1_000_000, progress, ..Script::default() }
        .host("a", &["never-done", "babble"]);
    run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    let first = reasons(&script.stored).remove(0);
    assert!(first.contains("host a") && first.contains("for the result of the trial"), "{first}");
}

#[test]
fn hanging_agent_is_abandoned_at_its_deadline() {
    let jump_at_progress_ns = 3_600_000_000_000;
    let mut script = Script { jump_at_progress_ns, ..Script::default() }.host("a", &["never-done"]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("did not answer in time") && text.contains("the result of the trial"), "{text}");
}

#[test]
fn interrupt_stops_the_trial_undoes_treatments_and_ends_the_run() {
    let mut script =
        Script { interrupt_at_start_of: Some(1), ..Script::default() }.host("a", &["never-done"]);
    let log = logged(&mut script);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::Interrupted);
    assert!(script.stored.is_empty(), "a trial that was stopped is no result");
    let log = lines(&log);
    assert!(log.contains(&"undo".to_owned()) && log.contains(&"abort".to_owned()), "{log:?}");
}

#[test]
fn full_store_stops_the_run_before_the_next_trial() {
    let mut script = Script { reserve_fails_at: Some(2), ..Script::default() };
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Store);
    let started = script.events.iter().filter(|event| matches!(event, Event::TrialStarted { .. })).count();
    assert_eq!((started, script.stored.len()), (2, 2));
}

#[test]
fn failed_store_ends_the_run() {
    let mut script = Script { store_fails_at: Some(1), ..Script::default() };
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap_err().kind(), RunErrorKind::Store);
    assert_eq!(script.stored.len(), 1);
}

#[test]
fn run_stops_at_its_precision_but_not_before_the_minimum_of_blocks() {
    let mut script = Script { stop_after: Some(1), ..Script::default() };
    let end = run(&plan("blocks_min = 3\nblocks_max = 9"), &mut script).unwrap();
    assert_eq!((end, script.stored.len()), (RunEnd::PrecisionReached, 6));
}

#[test]
fn no_block_starts_after_the_budget() {
    // A block takes more readings of the clock than that, and no stall takes so many that a step reaches its timeout.
    let mut script = Script { step_ns: 1_000_000, ..Script::default() };
    let end = run(&plan("blocks_min = 9\nblocks_max = 9\nbudget = \"10 ms\""), &mut script).unwrap();
    assert_eq!(end, RunEnd::BudgetReached);
    assert_eq!(script.stored.len() % 2, 0, "a block was cut");
    assert!(script.stored.len() < 18);
}

#[test]
fn resumed_run_counts_the_traffic_of_its_earlier_trials_against_the_budget() {
    let mut whole = Script::default();
    run(&plan(FOUR_TRIALS), &mut whole).unwrap();
    let more = plan("blocks_min = 3\nblocks_max = 3\nbudget = \"1 h\"");
    let used_ns = 4 * more.arms[0].workloads[0].timing.duration.0;
    for (budget_ns, end, trials) in
        [(used_ns, RunEnd::BudgetReached, 0), (used_ns + 1_000_000_000, RunEnd::BlockLimitReached, 2)]
    {
        let mut limited = more.clone();
        limited.design.budget = Some(Nanos(budget_ns));
        let mut script = Script { done_before: whole.stored.clone(), step_ns: 1, ..Script::default() };
        assert_eq!(run(&limited, &mut script).unwrap(), end);
        assert_eq!(script.stored.len(), trials);
    }
}

#[test]
fn numbers_of_a_changed_run_file_may_be_the_largest() {
    let mut endless = plan(FOUR_TRIALS);
    endless.design.blocks_max = u32::MAX;
    endless.design.budget = Some(Nanos(0));
    assert_eq!(run(&endless, &mut Script::default()).unwrap(), RunEnd::BudgetReached);

    let mut whole = Script::default();
    run(&plan(FOUR_TRIALS), &mut whole).unwrap();
    let mut interrupted = whole.stored[0].clone();
    interrupted.attempt = u32::MAX;
    let mut resumed = Script { done_before: vec![interrupted], ..Script::default() };
    let error = run(&plan(FOUR_TRIALS), &mut resumed).unwrap_err().to_string();
    assert!(error.contains("block 1 of the run file has attempt 4294967295"), "{error}");
    assert!(resumed.stored.is_empty());
}

#[test]
fn two_agents_that_die_in_one_trial_are_both_restarted() {
    let [one, other] = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
    let mut script =
        Script::default().host("a", &["die-abort", &once(&one)]).host("b", &["die-start", &once(&other)]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!((script.stored.len(), reasons(&script.stored).len()), (4, 1));
}

#[test]
fn failure_of_both_ends_stops_and_undoes_both_and_keeps_the_agents() {
    let mut script =
        Script::default().host("a", &["refuse-result"]).host("b", &["refuse-result", "done-at-once"]);
    let log = logged(&mut script);
    let mut few = plan("blocks_min = 2\nblocks_max = 2");
    few.arms.truncate(1);
    assert_eq!(run(&few, &mut script).unwrap(), RunEnd::BlockLimitReached);
    let reasons = reasons(&script.stored);
    assert_eq!(reasons.len(), 2);
    assert!(reasons.iter().all(|reason| reason.contains("refuses to result")), "{reasons:?}");
    let ready = script.events.iter().filter(|event| matches!(event, Event::HostReady { .. })).count();
    assert_eq!((ready, lines(&log).iter().filter(|line| *line == "apply").count()), (2, 4));
}

#[test]
fn death_of_an_agent_during_undo_keeps_the_results_and_undoes_the_other_end() {
    let marker = tempfile::NamedTempFile::new().unwrap();
    let mut script = Script::default().host("a", &["die-undo", &once(&marker)]);
    let log = logged(&mut script);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert!(script.stored.len() == 4 && script.stored.iter().all(Trial::is_valid));
    let log = lines(&log);
    let second_trial = log.iter().rposition(|line| line == "lock").unwrap();
    assert_eq!(log[..second_trial].iter().filter(|line| *line == "undo").count(), 2, "{log:?}");
}

#[test]
fn restarted_agent_locks_only_what_it_had_locked() {
    // Both hosts are one network stack: the lock is held by a, and b would be refused.
    let marker = tempfile::NamedTempFile::new().unwrap();
    let mut script = Script::default().host("b", &["die-start", "refuse-lock", &once(&marker)]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(reasons(&script.stored).len(), 1);
}

#[test]
fn agent_killed_in_a_trial_is_restarted_and_finished_trials_are_kept() {
    let marker = tempfile::NamedTempFile::new().unwrap();
    let mut script = Script::default().host("b", &["die-finish", "killed", &once(&marker)]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    let reasons = reasons(&script.stored);
    assert!(script.stored.len() == 4 && reasons.len() == 1, "{reasons:?}");
    assert!(reasons[0].contains("host b vanished") && reasons[0].contains("signal: 9"), "{reasons:?}");
}

#[test]
fn locked_host_is_refused_with_the_run_that_holds_the_lock() {
    let mut script = Script::default().host("a", &["busy"]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    assert!(error.to_string().contains("host a: this host is in use by run other-1"), "{error}");
}

#[test]
fn garbage_in_place_of_an_agent_is_quoted() {
    let chatter = "echo Welcome; echo This account is not available";
    let mut script = Script::default().host("b", &["sh", "-c", chatter]);
    let text = run(&plan(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(
        text.contains("failed to start the agent of host b")
            && text.contains("Welcome / This account is not available"),
        "{text}"
    );
    let mut script = Script::default().host("b", &["sh", "-c", "yes no"]);
    let text = run(&plan(FOUR_TRIALS), &mut script).unwrap_err().to_string();
    assert!(text.contains("more than 50 lines") && text.contains("`no`"), "{text}");
}

#[test]
fn hosts_describe_themselves_and_one_that_fails_keeps_no_other_from_it() {
    let mut script = Script::default().host("a", &["sh", "-c", "echo no such host >&2; exit 7"]);
    let log = logged(&mut script);
    let described = describe(&plan(FOUR_TRIALS), &mut script, true).unwrap();
    let answers: Vec<(&str, bool)> =
        described.iter().map(|(name, answer)| (name.as_str(), answer.is_ok())).collect();
    assert_eq!(answers, [("a", false), ("b", true)]);
    let reason = described.values().find_map(|answer| answer.as_ref().err()).unwrap().to_string();
    assert!(reason.contains("no such host"), "{reason}");
    // The only request was to describe the host: no lock, no treatment, no traffic. An agent stops and undoes at its end in any case.
    assert_eq!(lines(&log), ["describe", "abort", "undo"]);
    assert!(script.stored.is_empty() && script.events.is_empty());
}

#[test]
fn failed_description_is_reported_with_the_message_of_the_agent() {
    let mut script = Script::default().host("b", &["refuse-describe"]);
    let described = describe(&plan(FOUR_TRIALS), &mut script, false).unwrap();
    let reasons: Vec<String> =
        described.values().filter_map(|answer| Some(answer.as_ref().err()?.to_string())).collect();
    assert_eq!(reasons, ["host b: the script refuses to describe"]);
}

#[test]
fn failure_of_the_plan_and_of_its_lab_have_kinds_of_their_own() {
    let mut without_address = plan("blocks_min = 9\nblocks_max = 9");
    without_address.hosts.get_mut(&HostName::new("b").unwrap()).unwrap().addresses.clear();
    let error = run(&without_address, &mut Script::default()).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Usage);
    assert!(error.to_string().contains("host b has no IPv4 address in the plan; add one"), "{error}");

    let mut without_lab = plan("blocks_min = 9\nblocks_max = 9");
    for treatment in without_lab.arms.iter_mut().flat_map(|arm| &mut arm.treatments) {
        treatment.action = TreatmentAction::Path { path: LabPath::Accelerated };
    }
    let error = run(&without_lab, &mut Script::default()).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (RunErrorKind::Lab, "the script has no lab"));
}

/// Agents that greet, and answer a description with a failure after which their output ends. Both arrive before the coordinator
/// listens again.
#[derive(Default)]
struct FailingAgents(VecDeque<(AgentId, Arrival)>);

impl Agents for FailingAgents {
    fn start(&mut self, id: AgentId, _: &str, _: &[String]) -> Result<(), LaunchError> {
        let hello = encode(&FromAgent::Hello { protocol: PROTOCOL, program: "failing".to_owned() });
        self.0.push_back((id, Arrival::Bytes(hello.into_bytes())));
        Ok(())
    }

    fn send(&mut self, id: AgentId, line: &str) {
        let answer = match decode(line.trim_end().as_bytes()).unwrap() {
            ToAgent::Describe { .. } => {
                let message = "failed to list links: no such device".to_owned();
                FromAgent::Failed { kind: FailureKind::Environment, message }
            }
            ToAgent::Bye => FromAgent::Bye { problems: Vec::new() },
            _ => return,
        };
        let bytes = encode(&answer).into_bytes();
        self.0.extend([(id, Arrival::Bytes(bytes)), (id, Arrival::End)]);
    }

    fn next_arrival(&mut self, _: Duration) -> Option<(AgentId, Arrival)> {
        self.0.pop_front()
    }

    fn end(&mut self, _: AgentId, _: Duration) -> Ended {
        Ended { is_over: true, ..Ended::default() }
    }

    fn is_over(&mut self, _: AgentId, _: Duration) -> bool {
        true
    }
}

#[test]
fn failure_that_arrives_with_the_end_of_its_agent_is_the_reason() {
    let agents = Box::new(FailingAgents::default());
    let error = run_over(&plan(FOUR_TRIALS), &mut Script::default(), agents).unwrap_err().to_string();
    assert!(error.ends_with("; it reported: failed to list links: no such device"), "{error}");
}
