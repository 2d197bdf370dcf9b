//! Agents that are lost again, in their restart or soon after it: how often another one is started, and what the user learns.
use std::cell::RefCell;
use std::io::Write as _;
use std::rc::Rc;
use std::time::Duration;

use netduel_control::coordinator::{RESTARTS_MAX, RunErrorKind};
use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError, Processes};
use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::plan::Host;
use netduel_model::run::RunEnd;
use netduel_model::trial::Trial;

use crate::coordinator::{FOUR_TRIALS, lines, logged, reasons};
use crate::surroundings::{Script, plan, run, run_over};

/// A file with the requests at which the agents of a host die, and the word of their script.
pub fn deaths(requests: &[&str]) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for request in requests {
        writeln!(file, "{request}").unwrap();
    }
    let word = format!("deaths={}", file.path().display());
    (file, word)
}

/// The restarts that the user saw: host, reason and number of each.
fn restarts(script: &Script) -> Vec<(&str, &str, u32)> {
    let events = script.events.iter();
    events
        .filter_map(|event| match event {
            Event::AgentRestarting { host, reason, number, number_max: RESTARTS_MAX } => {
                Some((host.as_str(), reason.as_str(), *number))
            }
            _ => None,
        })
        .collect()
}

/// Hosts that were ready, at the start and after each restart.
fn ready(script: &Script) -> usize {
    script.events.iter().filter(|event| matches!(event, Event::HostReady { .. })).count()
}

#[test]
fn agent_that_dies_again_while_it_is_restarted_is_restarted_again() {
    // Host a holds the lock of the network stack of both.
    let (left, word) = deaths(&["start", "describe", "lock"]);
    let mut script = Script::default().host("a", &[word.as_str()]);
    let log = logged(&mut script);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(std::fs::read_to_string(left.path()).unwrap(), "", "deaths that did not happen");
    let reasons = reasons(&script.stored);
    assert_eq!((script.stored.len(), reasons.len()), (4, 1), "{reasons:?}");
    let restarts = restarts(&script);
    let numbers: Vec<(&str, u32)> = restarts.iter().map(|(host, _, number)| (*host, *number)).collect();
    assert_eq!(numbers, [("a", 1), ("a", 2), ("a", 3)]);
    for ((_, reason, _), request) in restarts.iter().zip(["start", "describe", "lock"]) {
        assert!(reason.starts_with("host a vanished"), "{reason}");
        assert!(reason.ends_with(&format!("the script dies at {request}")), "{reason}");
    }
    // At the start, by the agent that dies of it, and by the last one.
    assert_eq!(lines(&log).iter().filter(|line| *line == "lock").count(), 3);
    // The lock comes after the description.
    assert_eq!(ready(&script), 4);
}

#[test]
fn restarts_are_counted_anew_after_a_valid_trial() {
    // Two of the three losses in each row are in the restart, and the trial between the rows is valid.
    let (left, word) = deaths(&["start", "describe", "lock", "=start", "start", "describe", "lock"]);
    let mut script = Script::default().host("a", &[word.as_str()]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    assert_eq!(std::fs::read_to_string(left.path()).unwrap(), "", "deaths that did not happen");
    let valid: Vec<bool> = script.stored.iter().map(Trial::is_valid).collect();
    assert_eq!(valid, [false, true, false, true]);
    let numbers: Vec<u32> = restarts(&script).into_iter().map(|(_, _, number)| number).collect();
    assert_eq!(numbers, [1, 2, 3, 1, 2, 3]);
}

#[test]
fn losses_in_a_row_end_the_run_with_the_reason_of_each() {
    let (_left, word) = deaths(&["start", "describe", "describe", "lock"]);
    let mut script = Script::default().host("a", &[word.as_str()]);
    let error = run(&plan(FOUR_TRIALS), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    let text = error.to_string();
    let start = "host a lost its agent 4 times without a valid trial between: (1) host a vanished";
    assert!(text.starts_with(start), "{text}");
    for part in ["the script dies at start; (2 to 3) host", "dies at describe; (4) host", "dies at lock"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!((script.stored.len(), restarts(&script).len()), (1, 3));
    let Some(Event::RunFinished { end: RunEnd::Failed { detail } }) = script.events.last() else {
        panic!("{:?}", script.events.last())
    };
    assert_eq!(*detail, text);
}

#[test]
fn agent_that_is_lost_in_every_trial_ends_the_run_and_finished_trials_are_kept() {
    let mut script = Script::default().host("b", &["always-die-result"]);
    let error = run(&plan("blocks_min = 9\nblocks_max = 9"), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Host);
    assert_eq!(script.stored.len(), 4, "the trial of each death is stored as failed");
    assert!(error.to_string().contains("(1 to 4) host b vanished"), "{error}");
    assert!(matches!(script.events.last(), Some(Event::RunFinished { end: RunEnd::Failed { .. } })));
}

#[test]
fn host_is_ready_although_another_one_is_lost_again_in_the_same_restart() {
    let (left_of_a, word_of_a) = deaths(&["start", "describe"]);
    let (left_of_b, word_of_b) = deaths(&["abort"]);
    let mut script = Script::default().host("a", &[word_of_a.as_str()]).host("b", &[word_of_b.as_str()]);
    assert_eq!(run(&plan(FOUR_TRIALS), &mut script).unwrap(), RunEnd::BlockLimitReached);
    for left in [left_of_a, left_of_b] {
        assert_eq!(std::fs::read_to_string(left.path()).unwrap(), "", "deaths that did not happen");
    }
    assert_eq!((script.stored.len(), reasons(&script.stored).len()), (4, 1));
    let restarts = restarts(&script);
    let numbers: Vec<(&str, u32)> = restarts.iter().map(|(host, _, number)| (*host, *number)).collect();
    assert_eq!(numbers, [("a", 1), ("b", 1), ("a", 2)]);
    // Each has its own reason, although the trial has one.
    let [(_, of_a, _), (_, of_b, _), ..] = restarts[..] else { panic!("{restarts:?}") };
    assert!(of_a.ends_with("dies at start") && of_b.ends_with("dies at abort"), "{restarts:?}");
    assert_eq!(ready(&script), 4);
}

/// Processes, and the calls that prepare and start them.
struct NotedCalls {
    processes: Processes,
    calls: Rc<RefCell<Vec<String>>>,
}

impl Agents for NotedCalls {
    fn prepare(&mut self, hosts: &[(&HostName, &Host)]) {
        let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
        self.calls.borrow_mut().push(format!("prepare {}", names.join(" ")));
    }

    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError> {
        self.calls.borrow_mut().push(format!("start {host}"));
        self.processes.start(id, host, argv)
    }

    fn send(&mut self, id: AgentId, line: &str) {
        self.processes.send(id, line);
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        self.processes.next_arrival(timeout)
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        self.processes.end(id, patience)
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.processes.is_over(id, patience)
    }
}

#[test]
fn hosts_that_are_lost_in_one_trial_are_prepared_together_before_their_agents_start() {
    let (_left_of_a, word_of_a) = deaths(&["start"]);
    let (_left_of_b, word_of_b) = deaths(&["abort"]);
    let mut script = Script::default().host("a", &[word_of_a.as_str()]).host("b", &[word_of_b.as_str()]);
    let calls = Rc::new(RefCell::new(Vec::new()));
    let agents = NotedCalls { processes: Processes::new(), calls: Rc::clone(&calls) };
    let end = run_over(&plan(FOUR_TRIALS), &mut script, Box::new(agents)).unwrap();
    assert_eq!(end, RunEnd::BlockLimitReached);
    assert_eq!(*calls.borrow(), ["start a", "start b", "prepare a b", "start a", "start b"]);
}
