//! Hosts that could not be restored, or that another program changed: no trial runs there.
use std::time::Duration;

use netduel_control::coordinator::RunErrorKind;
use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError, Processes};
use netduel_control::protocol::{ToAgent, decode};
use netduel_model::event::Event;
use netduel_model::ids::ArmName;
use netduel_model::plan::{ResolvedPlan, TreatmentAction};
use netduel_model::run::RunEnd;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;

use crate::blocks::with_far_arm;
use crate::coordinator::{FOUR_TRIALS, lines, logged, reasons};
use crate::restarting::deaths;
use crate::surroundings::{Script, plan, run, run_over};

/// How many warnings say that this host has a change that could not be undone.
fn undo_warnings(script: &Script, name: &str) -> usize {
    let warned = |event: &&Event| matches!(event, Event::Warned { warning: Warning::UndoFailed { host, .. } } if host.as_str() == name);
    script.events.iter().filter(warned).count()
}

#[test]
fn run_ends_after_the_trial_whose_treatment_could_not_be_undone() {
    let mut script = Script::default().host("b", &["refuse-undo"]);
    let log = logged(&mut script);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b is not restored") && text.contains("the script refuses to undo"), "{text}");
    // That trial ran before the undo failed.
    assert!(script.stored.len() == 1 && script.stored[0].is_valid(), "{:?}", reasons(&script.stored));
    assert_eq!(lines(&log).iter().filter(|line| *line == "start").count(), 2);
    // The agent tries again at its end.
    assert_eq!(undo_warnings(&script, "b"), 1);
}

/// Processes. The agent of host a is lost once: when host b is requested to undo its changes, and before it answers.
#[derive(Default)]
pub struct LostDuringUndo {
    processes: Processes,
    /// The agents of both hosts, until the loss.
    of_a: Option<AgentId>,
    of_b: Option<AgentId>,
    lost: Option<AgentId>,
}

impl Agents for LostDuringUndo {
    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError> {
        match host {
            "a" => self.of_a.get_or_insert(id),
            _ => self.of_b.get_or_insert(id),
        };
        self.processes.start(id, host, argv)
    }

    fn send(&mut self, id: AgentId, line: &str) {
        self.processes.send(id, line);
        let request: ToAgent = decode(line.trim_end().as_bytes()).unwrap();
        if request == ToAgent::Undo && self.of_b == Some(id) {
            (self.of_b, self.lost) = (None, self.of_a);
        }
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        match self.lost.take() {
            Some(id) => Some((id, Arrival::End)),
            None => self.processes.next_arrival(timeout),
        }
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        self.processes.end(id, patience)
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.processes.is_over(id, patience)
    }
}

#[test]
fn treatment_that_could_not_be_undone_counts_although_another_host_is_lost_meanwhile() {
    let mut script = Script::default().host("b", &["refuse-undo"]);
    let error = run_over(&plan(FOUR_TRIALS), &mut script, Box::new(LostDuringUndo::default())).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b is not restored") && text.contains("the script refuses to undo"), "{text}");
    assert_eq!((script.stored.len(), undo_warnings(&script, "b")), (1, 1), "{:?}", reasons(&script.stored));
    let restarted =
        |event: &Event| matches!(event, Event::AgentRestarting { host, .. } if host.as_str() == "a");
    assert!(script.events.iter().any(restarted), "no agent was lost");
}

#[test]
fn run_does_not_begin_on_a_host_that_an_earlier_run_left_changed() {
    let mut script = Script::default().host("b", &["left-behind"]);
    let log = logged(&mut script);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    assert!(error.to_string().contains("host b is not restored"), "{error}");
    assert!(script.stored.is_empty() && !lines(&log).contains(&"apply".to_owned()), "{:?}", lines(&log));
    assert_eq!(undo_warnings(&script, "b"), 1);
}

#[test]
fn treatment_that_could_not_be_undone_after_the_last_trial_fails_the_run() {
    let mut script = Script::default().host("b", &["refuse-undo"]);
    let mut one = plan(FOUR_TRIALS);
    one.arms.truncate(1);
    (one.design.blocks_min, one.design.blocks_max) = (1, 1);
    let error = run(&one, &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    assert!(script.stored.len() == 1 && script.stored[0].is_valid());
    // The run itself is complete.
    assert!(matches!(script.events.last(), Some(Event::RunFinished { end: RunEnd::BlockLimitReached })));
}

#[test]
fn arms_on_other_machines_go_on_after_a_failed_undo() {
    let three = with_far_arm(FOUR_TRIALS);
    let mut script = Script::default().host("c", &["refuse-undo", "own-machine"]);
    let error = run(&three, &mut script).unwrap_err();
    assert!(error.kind() == RunErrorKind::Host && error.to_string().contains("host c"), "{error}");
    let of = |far: bool| script.stored.iter().filter(move |trial| (trial.slot.arm.as_str() == "far") == far);
    assert!(of(false).count() == 4 && of(false).all(Trial::is_valid), "{:?}", reasons(&script.stored));
    assert_eq!(of(true).map(Trial::is_valid).collect::<Vec<_>>(), [true, false]);
    assert!(reasons(&script.stored)[0].contains("host c is not restored"), "{:?}", reasons(&script.stored));
    assert_eq!(undo_warnings(&script, "c"), 1);
    assert_eq!(script.dropped, [ArmName::new("far").unwrap()]);

    // The same failure on the machine of the others ends the run.
    let mut script = Script::default().host("c", &["refuse-undo"]);
    run(&three, &mut script).unwrap_err();
    assert!(script.stored.iter().all(Trial::is_valid) && script.stored.len() <= 3);
}

/// The plan with a command in place of each treatment.
fn with_commands(design: &str) -> ResolvedPlan {
    let words = |word: &str| vec!["switch".to_owned(), word.to_owned()];
    let mut plan = plan(design);
    for treatment in plan.arms.iter_mut().flat_map(|arm| &mut arm.treatments) {
        treatment.action = TreatmentAction::Command { command: words("on"), undo: words("off") };
    }
    plan
}

#[test]
fn no_trial_follows_on_a_host_that_rebooted_while_a_command_was_in_force() {
    let (_left, word) = deaths(&["start"]);
    let mut script = Script::default().host("b", &[word.as_str(), "reboots"]);
    let error = run(&with_commands(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    let words = "host b is not restored, so no later trial there is valid: `switch on` was in force when the host rebooted";
    assert!(text.starts_with(words) && text.ends_with("; by hand: `switch off`"), "{text}");
    assert_eq!((script.stored.len(), undo_warnings(&script, "b")), (1, 1));
    assert!(!script.stored[0].is_valid());
    assert_eq!(undo_warnings(&script, "a"), 0, "its agent has undone the command");
}

#[test]
fn run_goes_on_where_a_reboot_or_the_guard_has_undone_everything() {
    for (plan, words) in [(plan(FOUR_TRIALS), &["reboots"][..]), (with_commands(FOUR_TRIALS), &[][..])] {
        let (_left, word) = deaths(&["start"]);
        let mut script = Script::default().host("b", &[&[word.as_str()][..], words].concat());
        assert_eq!(run(&plan, &mut script).unwrap(), RunEnd::BlockLimitReached);
        assert_eq!((script.stored.len(), undo_warnings(&script, "b")), (4, 0));
    }
}

#[test]
fn command_of_a_host_that_is_lost_for_good_is_named_with_its_undo() {
    let (_left, word) = deaths(&["start", "describe", "describe", "describe"]);
    let mut script = Script::default().host("b", &[word.as_str()]);
    let error = run(&with_commands(FOUR_TRIALS), &mut script).unwrap_err();
    assert!(error.to_string().contains("host b lost its agent 4 times"), "{error}");
    let found = script.events.iter().filter_map(|event| match event {
        Event::ProblemFound { text } => Some(text.as_str()),
        _ => None,
    });
    let [text] = found.collect::<Vec<_>>()[..] else { panic!("{:?}", script.events) };
    assert!(text.starts_with("host b: `switch on` was in force when the agent was lost"), "{text}");
    assert!(text.ends_with("; by hand: `switch off`"), "{text}");
}

#[test]
fn run_is_not_resumed_on_a_host_with_other_settings() {
    let mut first = Script::default();
    run(&plan(FOUR_TRIALS), &mut first).unwrap();
    let resumed = |words: &[&str]| {
        Script {
            done_before: first.stored[..2].to_vec(),
            described_before: first.described.clone(),
            ..Script::default()
        }
        .host("b", words)
    };
    let mut changed = resumed(&["sack-off"]);
    let log = logged(&mut changed);
    let error = run(&plan(FOUR_TRIALS), &mut changed).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    assert!(text.contains("host b") && text.contains("net.ipv4.tcp_sack is 0 instead of 1"), "{text}");
    assert!(changed.stored.is_empty() && !lines(&log).contains(&"apply".to_owned()), "{:?}", lines(&log));

    for words in [&[][..], &["sack-off-at-first"]] {
        let mut same = resumed(words);
        assert_eq!(run(&plan(FOUR_TRIALS), &mut same).unwrap(), RunEnd::BlockLimitReached);
        assert_eq!(same.stored.len(), 2);
    }
}
