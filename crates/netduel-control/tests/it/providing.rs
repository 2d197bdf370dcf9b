//! Changes of the provider's resources: verified in the guest, made again with the machine stopped, and always restored.
use std::collections::VecDeque;
use std::time::Duration;

use netduel_control::coordinator::{GuestCheck, RunErrorKind};
use netduel_control::launcher::{AgentId, Agents, Arrival, Ended, LaunchError, Processes};
use netduel_control::protocol::{ToAgent, decode};
use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::plan::spec::Side;
use netduel_model::plan::{ResolvedPlan, Treatment, TreatmentAction, parse};
use netduel_model::run::RunEnd;
use netduel_model::trial::Validity;

use crate::coordinator::reasons;
use crate::restoring::LostDuringUndo;
use crate::surroundings::{Script, run, run_over};

/// What the errors of Azure are.
const PAGE: &str = include_str!("../../../../docs/azure-errors.md");

/// The page has the end of an error, from these words on.
#[track_caller]
fn assert_on_page(error: &str, start: &str) {
    let end = error.find(start).and_then(|at| error.get(at..)).unwrap_or(error);
    assert!(PAGE.contains(end), "docs/azure-errors.md lacks this text: {end}");
}

fn host(name: &str, last: u8) -> String {
    format!("[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"script\"]\naddresses = [\"10.0.0.{last}\"]\n")
}

/// Two arms with and without accelerated networking at the client, each with two workloads.
fn plan() -> ResolvedPlan {
    let arm = |name: &str, on: bool| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\n\
             treatments = [{{ azure-nic = \"n\", resource-group = \"g\", accelerated = {on}, on = \"client\" }}]\n"
        )
    };
    let workload =
        |name: &str| format!("[[workloads]]\nname = \"{name}\"\ntype = \"tcp-rr\"\nduration = \"200 ms\"\n");
    let text = format!(
        "name = \"p\"\nquestion = \"?\"\n{}{}{}{}{}{}[design]\nseed = 5\nblocks_min = 2\nblocks_max = 2\n",
        host("a", 1),
        host("b", 2),
        arm("off", false),
        arm("on", true),
        workload("one"),
        workload("two"),
    );
    parse(&text, "p").unwrap()
}

/// A NIC of the scripted agent, by the last digit of its MAC address: that with 2 has a virtual function.
fn check(last: u8, has_vf: bool) -> GuestCheck {
    GuestCheck { nic: "n".to_owned(), mac: format!("00:0d:3a:00:00:0{last}"), has_vf }
}

fn script() -> Script {
    // A guest that never shows a change is given up.
    Script { waits: true, ..Script::default() }
}

#[test]
fn resource_is_switched_once_for_the_trials_of_an_arm_and_restored_at_the_end() {
    let mut script = script();
    script.required[0] = vec![check(2, true)];
    assert_eq!(run(&plan(), &mut script).unwrap(), RunEnd::BlockLimitReached);
    // Two blocks with the trials of each arm together: at most a switch for each arm and block.
    let switches = script.provided.iter().filter(|one| one.starts_with("live: ")).count();
    assert!((2..=4).contains(&switches), "{:?}", script.provided);
    assert_eq!(script.provided.iter().filter(|one| *one == "restore").count(), 1);
    assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
    assert_eq!(script.stored.len(), 8);
    for block in script.stored.chunks(4) {
        assert_eq!(block[0].slot.arm, block[1].slot.arm);
        assert_eq!(block[2].slot.arm, block[3].slot.arm);
    }
    assert!(script.events.iter().any(|event| matches!(event, Event::ResourcesChanging { .. })));
}

#[test]
fn change_that_the_guest_does_not_show_is_made_with_the_machine_stopped_when_permitted() {
    let mut script = script();
    script.required = [vec![check(1, true)], vec![check(2, true)]];
    script.may_stop = true;
    assert_eq!(run(&plan(), &mut script).unwrap(), RunEnd::BlockLimitReached);
    let calls: Vec<&str> = script.provided.iter().map(String::as_str).collect();
    // The first change is tried while the machine runs; after that the host is known to need the stop.
    assert!(calls[0].starts_with("live: ") && calls[1].starts_with("stopped: "), "{calls:?}");
    assert_eq!(calls.iter().filter(|one| one.starts_with("live: ")).count(), 1, "{calls:?}");
    // The agent is started again after each stop.
    let stops = calls.iter().filter(|one| one.starts_with("stopped: ")).count();
    let ready = |event: &&Event| matches!(event, Event::HostReady { host } if host.as_str() == "a");
    assert_eq!(script.events.iter().filter(ready).count(), 1 + stops);
}

#[test]
fn machine_is_not_stopped_without_permission() {
    for refuses_live in [false, true] {
        let mut script = script();
        script.required[0] = vec![check(1, true)];
        script.refuses[0] = refuses_live;
        let error = run(&plan(), &mut script).unwrap_err();
        assert_eq!(error.kind(), RunErrorKind::Provider);
        let text = error.to_string();
        assert!(text.contains("--allow-deallocate"), "{text}");
        let why = if refuses_live { "not while it runs" } else { "the guest shows no virtual function" };
        assert!(text.contains(why), "{text}");
        if !refuses_live {
            assert_on_page(&text, "accelerated networking of n is on");
        }
        assert!(script.provided.iter().all(|one| !one.starts_with("stopped: ")), "{:?}", script.provided);
        assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
    }
}

#[test]
fn change_that_is_refused_with_the_machine_stopped_names_the_stop() {
    let mut script = script();
    script.refuses = [true, true];
    script.may_stop = true;
    let error = run(&plan(), &mut script).unwrap_err();
    assert_eq!(error.kind(), RunErrorKind::Provider);
    let text = error.to_string();
    assert!(
        text.ends_with("although its machine was stopped for the change: not when it is stopped"),
        "{text}"
    );
    assert_eq!(script.provided.last().map(String::as_str), Some("restore"));
}

#[test]
fn guest_without_the_nic_is_named() {
    let mut script = script();
    script.required = [vec![check(7, false)], vec![check(7, false)]];
    script.may_stop = true;
    let text = run(&plan(), &mut script).unwrap_err().to_string();
    assert!(text.contains("no interface with the MAC address 00:0d:3a:00:00:07 of n"), "{text}");
    assert!(text.contains("although its machine was stopped"), "{text}");
    assert_on_page(&text, "although its machine was stopped");
}

#[test]
fn trial_whose_guest_shows_another_state_afterwards_does_not_count() {
    let (a, elsewhere) = (HostName::new("a").unwrap(), HostName::new("c").unwrap());
    for (last, is_kept) in [(2, true), (1, false)] {
        let mut script = script();
        script.required[0] = vec![check(2, true)];
        // A host that is not one of the arm is not asked.
        script.present = vec![(a.clone(), check(last, true)), (elsewhere.clone(), check(1, true))];
        // Without a valid trial the run may end before its last block.
        drop(run(&plan(), &mut script));
        assert!(script.stored.len() >= 4, "{:?}", script.stored);
        let lost = "host a: the treatment was not in force until the end of the trial: accelerated networking of n is on, \
                    and the guest shows no virtual function of it";
        for trial in &script.stored {
            let expected =
                if is_kept { Validity::Valid } else { Validity::Failed { reason: lost.to_owned() } };
            assert_eq!(trial.validity, expected);
        }
    }
}

#[test]
fn trial_whose_guest_cannot_be_read_afterwards_does_not_count() {
    let mut plan = plan();
    for arm in &mut plan.arms {
        // Something that the agents undo.
        let action = TreatmentAction::Sysctl { name: "net.ipv4.tcp_sack".to_owned(), value: "1".to_owned() };
        arm.treatments.push(Treatment { action, on: Side::Both });
    }
    let mut script = script();
    script.required[0] = vec![check(2, true)];
    script.present = vec![(HostName::new("a").unwrap(), check(2, true))];
    let agents = Box::new(LostDuringUndo::default());
    assert_eq!(run_over(&plan, &mut script, agents).unwrap(), RunEnd::BlockLimitReached);
    let reasons = reasons(&script.stored);
    assert_eq!((script.stored.len(), reasons.len()), (8, 1), "{reasons:?}");
    assert!(!script.stored[0].is_valid() && reasons[0].starts_with("host a vanished"), "{reasons:?}");
}

#[test]
fn resource_that_could_not_be_restored_ends_the_run_with_an_error() {
    let mut script = script();
    script.required[0] = vec![check(2, true)];
    script.unrestored = vec![(HostName::new("a").unwrap(), "failed to undo it".to_owned())];
    let error = run(&plan(), &mut script).unwrap_err().to_string();
    assert!(error.contains("failed to undo it"), "{error}");
}

/// Two arms on pairs of their own, which they exchange after the first block.
fn crossover() -> ResolvedPlan {
    let arm = |name: &str, [client, server]: [&str; 2], on: bool| {
        format!(
            "[[arms]]\nname = \"{name}\"\nclient = \"{client}\"\nserver = \"{server}\"\n\
             treatments = [{{ azure-nic = \"{client}-n\", resource-group = \"g\", accelerated = {on}, on = \"client\" }}]\n"
        )
    };
    let text = format!(
        "name = \"p\"\nquestion = \"?\"\n{}{}{}{}{}{}[[workloads]]\nname = \"one\"\ntype = \"tcp-rr\"\nduration = \"200 ms\"\n\
         [design]\nseed = 5\ncrossover = true\nblocks_max = 2\n",
        host("a", 1),
        host("b", 2),
        host("c", 3),
        host("d", 4),
        arm("off", ["a", "b"], false),
        arm("on", ["c", "d"], true),
    );
    parse(&text, "p").unwrap()
}

/// Descriptions without metadata until the second guest of a crossover of two pairs is awaited: those of the locked hosts, that of the client of
/// the first trial, and that of the other client.
const UNTIL_SECOND_GUEST: usize = 6;

/// Processes, of which the client of the first trial is lost while the other client is described. The description arrives when the coordinator
/// goes on to listen. Where it sends another line instead, the description arrives after the next request to its host.
#[derive(Default)]
struct LosesFirstClient {
    processes: Processes,
    /// The agents that were described without metadata, in order.
    described: Vec<AgentId>,
    /// The agent whose end arrives next.
    lost: Option<AgentId>,
    /// The agent whose output is held back, and this output.
    held: Option<AgentId>,
    output: VecDeque<(AgentId, Arrival)>,
    /// Whether a line was sent since the end of the lost agent.
    is_line_sent: bool,
}

impl Agents for LosesFirstClient {
    fn start(&mut self, id: AgentId, host: &str, argv: &[String]) -> Result<(), LaunchError> {
        self.processes.start(id, host, argv)
    }

    fn send(&mut self, id: AgentId, line: &str) {
        self.is_line_sent = true;
        self.held = self.held.filter(|held| *held != id);
        self.processes.send(id, line);
        let message: ToAgent = decode(line.trim_end().as_bytes()).unwrap();
        if !matches!(message, ToAgent::Describe { without_metadata: true }) {
            return;
        }
        self.described.push(id);
        if self.described.len() == UNTIL_SECOND_GUEST {
            self.lost = Some(self.described[UNTIL_SECOND_GUEST - 2]);
            self.held = Some(id);
        }
    }

    fn next_arrival(&mut self, timeout: Duration) -> Option<(AgentId, Arrival)> {
        if let Some(id) = self.lost.take() {
            self.is_line_sent = false;
            return Some((id, Arrival::End));
        }
        if !self.is_line_sent {
            self.held = None;
        }
        if self.held.is_none() && !self.output.is_empty() {
            return self.output.pop_front();
        }
        let (id, arrival) = self.processes.next_arrival(timeout)?;
        if self.held == Some(id) {
            self.output.push_back((id, arrival));
            return None;
        }
        Some((id, arrival))
    }

    fn end(&mut self, id: AgentId, patience: Duration) -> Ended {
        self.processes.end(id, patience)
    }

    fn is_over(&mut self, id: AgentId, patience: Duration) -> bool {
        self.processes.is_over(id, patience)
    }
}

#[test]
fn guest_of_another_arm_is_not_lost_with_the_host_that_is_lost_while_it_is_awaited() {
    let mut script = script();
    let agents = Box::new(LosesFirstClient::default());
    assert_eq!(run_over(&crossover(), &mut script, agents).unwrap(), RunEnd::BlockLimitReached);
    let is_switch = |event: &&Event| matches!(event, Event::ResourcesChanging { .. });
    let switched = script.events.iter().filter(is_switch).count();
    assert_eq!(switched, 4, "each client in each half");
    let restarted = script.events.iter().filter_map(|event| match event {
        Event::AgentRestarting { host, .. } => Some(host.as_str()),
        _ => None,
    });
    let restarted: Vec<&str> = restarted.collect();
    let reasons = reasons(&script.stored);
    assert_eq!((script.stored.len(), reasons.len(), restarted.len()), (4, 1, 1), "{restarted:?} {reasons:?}");
    assert!(reasons[0].starts_with(&format!("host {} vanished", restarted[0])), "{reasons:?}");
}
