//! A trial whose ends follow a script: the agent takes them through it by their traits, and needs no tool and no traffic for that.
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use netduel_agent::AgentWork;
use netduel_agent::trial_end::{
    EndResult, Ends, Lingering, Notify, Prepared, PreparedEnd, Reading, RunningEnd, ServerAddress,
};
use netduel_control::agent::{Clock, FailureKind, Work as _, WorkError, serve};
use netduel_control::protocol::{FromAgent, Limits, PROTOCOL, ToAgent, decode, encode};
use netduel_host::queued_packets;
use netduel_model::data_ports::ListenAt;
use netduel_model::ids::Token;
use netduel_model::observation::Placement;
use netduel_model::plan::parse;
use netduel_model::sample::LiveFigures;
use netduel_model::units::Nanos;
use netduel_model::workload::Workload;
use netduel_test_support::{in_namespace, not_compared};

/// What the ends are to do, and what they did.
#[derive(Clone, Default)]
struct Script {
    steps: Arc<Mutex<Vec<&'static str>>>,
    /// What fails.
    fails: Option<&'static str>,
    /// Whether what fails has left the host changed.
    leaves: bool,
    lingers: bool,
}

impl Script {
    fn step(&self, name: &'static str) -> Result<(), WorkError> {
        self.steps.lock().unwrap().push(name);
        if self.fails == Some(name) {
            let kind = if self.leaves { FailureKind::NotRestored } else { FailureKind::Traffic };
            return Err(WorkError { kind, message: format!("{name} failed") });
        }
        Ok(())
    }

    fn steps(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.steps.lock().unwrap())
    }
}

struct Scripted {
    script: Script,
    notify: Option<Notify>,
    is_done: AtomicBool,
}

impl Ends for Script {
    fn server(&self, _: &Workload, _: ListenAt, _: Token) -> Result<Prepared, WorkError> {
        self.step("prepare")?;
        let end = Scripted { script: self.clone(), notify: None, is_done: AtomicBool::new(false) };
        let placement = Some(Placement { cores: vec![3], reason: "the script".to_owned() });
        Ok(Prepared { end: Box::new(end), ports: vec![7], placement })
    }

    fn client(&self, workload: &Workload, server: &ServerAddress<'_>) -> Result<Prepared, WorkError> {
        self.server(workload, server.peer.into(), server.token)
    }
}

impl PreparedEnd for Scripted {
    fn start(
        mut self: Box<Self>,
        reading: Reading<'_>,
        notify: Notify,
    ) -> Result<Box<dyn RunningEnd>, WorkError> {
        reading()?;
        self.script.step("start")?;
        self.notify = Some(notify);
        Ok(self)
    }
}

impl RunningEnd for Scripted {
    fn live(&self) -> LiveFigures {
        LiveFigures { sent_bytes: 7, ..LiveFigures::default() }
    }

    fn finish(&self) {
        self.script.step("finish").unwrap();
        self.is_done.store(true, Ordering::SeqCst);
        self.notify.as_ref().unwrap()();
    }

    fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    fn result(self: Box<Self>, reading: Reading<'_>) -> Result<EndResult, WorkError> {
        self.script.step("result")?;
        reading()?;
        let report = serde_json::json!({
            "role": "server", "sent": null, "received": null, "streams": [], "datagrams": null,
            "round_trips": null, "errors": [], "process_cpu_ns": [1, 2],
        });
        let lingering =
            self.script.lingers.then(|| Box::new(Left(self.script.clone())) as Box<dyn Lingering>);
        Ok(EndResult { report: serde_json::from_value(report).unwrap(), lingering })
    }

    fn abort(self: Box<Self>) -> Result<(), WorkError> {
        self.script.step("abort")
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.script.steps.lock().unwrap().push("gone");
    }
}

struct Left(Script);

impl Lingering for Left {
    fn end(self: Box<Self>) -> Result<(), WorkError> {
        self.0.step("end lingering")
    }
}

/// A clock that stands still: no limit is reached.
struct Still(Cell<u64>);

impl Clock for Still {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// A coordinator that talks to an agent with scripted ends.
struct Coordinator {
    stream: BufReader<UnixStream>,
    agent: std::thread::JoinHandle<()>,
}

impl Coordinator {
    fn new(script: Script) -> Self {
        let (own, its) = UnixStream::pair().unwrap();
        let agent = std::thread::spawn(move || {
            let mut work = AgentWork::with_ends(Box::new(script));
            serve(its.try_clone().unwrap(), its, &mut work, "agent 1", &Still(Cell::new(0))).unwrap();
        });
        let mut coordinator = Self { stream: BufReader::new(own), agent };
        let hour = Nanos(3_600_000_000_000);
        let limits = Limits { total: hour, idle: hour, progress: hour };
        coordinator.ask(&ToAgent::Hello { protocol: PROTOCOL, program: "test".to_owned(), limits });
        coordinator
    }

    fn say(&mut self, request: &ToAgent) {
        self.stream.get_mut().write_all(encode(request).as_bytes()).unwrap();
    }

    /// The next answer, figures left out.
    fn answer(&mut self) -> FromAgent {
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            match decode(line.as_bytes()).unwrap() {
                FromAgent::Progress { .. } => {}
                answer => return answer,
            }
        }
    }

    fn ask(&mut self, request: &ToAgent) -> FromAgent {
        self.say(request);
        self.answer()
    }

    fn prepare(&mut self) -> FromAgent {
        let workload = plan_workload();
        let bind = "127.0.0.1".parse().unwrap();
        self.ask(&ToAgent::PrepareServer { trial: 1, workload, bind, ports: None, token: Token([7; 16]) })
    }

    fn part(mut self) {
        assert!(matches!(self.ask(&ToAgent::Bye), FromAgent::Bye { problems } if problems.is_empty()));
        self.agent.join().unwrap();
    }
}

fn plan_workload() -> Workload {
    let plan = parse(include_str!("../../../../plans/demo.toml"), "plans/demo.toml").unwrap();
    plan.arms[0].workloads[0].clone()
}

/// Makes an interface that sends at this rate, and so many packets for it. Returns the socket that sent them.
fn fill_queue(rate: &str, packets: usize) -> UdpSocket {
    let run = |program: &str, words: &str| {
        assert!(Command::new(program).args(words.split(' ')).status().unwrap().success(), "{words}");
    };
    // The kernel would send neighbour discovery, too.
    std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    run("ip", "link add va type veth peer name vb");
    run("ip", "link set vb up");
    run("ip", "link set va up");
    run("ip", "address add 192.0.2.1/24 dev va");
    run("ip", "neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev va");
    run("tc", &format!("qdisc add dev va root tbf rate {rate} burst 2000 limit 1000000"));
    let sender = UdpSocket::bind("192.0.2.1:0").unwrap();
    for _ in 0..packets {
        sender.send_to(&[7; 1000], "192.0.2.2:9").unwrap();
    }
    sender
}

#[test]
fn trial_is_prepared_when_what_the_last_one_left_in_a_queue_has_been_sent() {
    in_namespace("scripted::trial_is_prepared_when_what_the_last_one_left_in_a_queue_has_been_sent", || {
        // Some 125 packets a second leave.
        let _sender = fill_queue("1mbit", 100);
        if !queued_packets().unwrap().contains_key("va") {
            not_compared("this thread waited for a core until the queue was empty");
        }
        let script = Script::default();
        let mut work = AgentWork::with_ends(Box::new(script.clone()));
        let workload = plan_workload();
        work.prepare_server(&workload, "192.0.2.1".parse::<IpAddr>().unwrap().into(), Token([7; 16]))
            .unwrap();
        assert_eq!(queued_packets().unwrap(), BTreeMap::new());
        assert_eq!(script.steps(), ["prepare"]);
    });
}

#[test]
fn trial_behind_a_queue_that_stays_full_fails_with_the_interface() {
    in_namespace("scripted::trial_behind_a_queue_that_stays_full_fails_with_the_interface", || {
        // A packet a second leaves: they take longer than an agent waits, and fit into the buffer of the socket.
        let _sender = fill_queue("8kbit", 50);
        let script = Script::default();
        let mut work = AgentWork::with_ends(Box::new(script.clone()));
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        let failed = work.prepare_server(&plan_workload(), address.into(), Token([7; 16])).unwrap_err();
        assert_eq!(failed.kind, FailureKind::Environment, "{}", failed.message);
        for part in ["packets of earlier traffic still wait to be sent", "(va "] {
            assert!(failed.message.contains(part), "{part:?} is not in {}", failed.message);
        }
        assert_eq!(script.steps(), [""; 0]);
    });
}

#[test]
fn an_end_goes_through_its_trial_without_the_agent_knowing_what_it_is() {
    let script = Script::default();
    let mut coordinator = Coordinator::new(script.clone());
    assert_eq!(coordinator.prepare(), FromAgent::Prepared { ports: vec![7] });
    assert_eq!(coordinator.ask(&ToAgent::Start), FromAgent::Started);
    let FromAgent::Done { end, .. } = coordinator.ask(&ToAgent::Finish) else { panic!("it did not end") };
    assert_eq!(end.report.process_cpu_ns, (1, 2));
    // The readings around the traffic are the agent's, and so is the placement that goes with them.
    assert!(end.observation.wall_ns > 0);
    assert_eq!(end.observation.placement.unwrap().cores, [3]);
    assert_eq!(script.steps(), ["prepare", "start", "finish", "result", "gone"]);
    coordinator.part();
}

#[test]
fn what_lingers_of_a_trial_ends_before_the_next_or_a_treatment_and_with_the_agent() {
    let script = Script { lingers: true, ..Script::default() };
    let mut coordinator = Coordinator::new(script.clone());
    let trial = ["prepare", "start", "finish", "result", "gone"];
    let mut expected = Vec::new();
    for _ in 0..2 {
        coordinator.prepare();
        coordinator.ask(&ToAgent::Start);
        coordinator.ask(&ToAgent::Finish);
        expected.extend(trial);
        expected.push("end lingering");
    }
    // The last one's stays until the next change.
    assert_eq!(script.steps(), expected[..expected.len() - 1]);
    assert_eq!(coordinator.ask(&ToAgent::Apply { treatments: Vec::new() }), FromAgent::Applied);
    assert_eq!(script.steps(), ["end lingering"]);
    coordinator.prepare();
    coordinator.ask(&ToAgent::Start);
    coordinator.ask(&ToAgent::Finish);
    assert_eq!(script.steps(), trial);
    coordinator.part();
    assert_eq!(script.steps(), ["end lingering"]);
}

#[test]
fn an_end_that_is_aborted_or_fails_is_gone_before_the_answer() {
    let abort = |before: &[ToAgent]| {
        let script = Script::default();
        let mut coordinator = Coordinator::new(script.clone());
        coordinator.prepare();
        for request in before {
            coordinator.ask(request);
        }
        assert_eq!(coordinator.ask(&ToAgent::Abort), FromAgent::Aborted);
        let steps = script.steps();
        coordinator.part();
        steps
    };
    assert_eq!(abort(&[]), ["prepare", "gone"]);
    assert_eq!(abort(&[ToAgent::Start]), ["prepare", "start", "abort", "gone"]);

    for (fails, steps) in [
        ("prepare", &["prepare"][..]),
        ("start", &["prepare", "start", "gone"]),
        ("result", &["prepare", "start", "finish", "result", "gone"]),
    ] {
        let script = Script { fails: Some(fails), ..Script::default() };
        let mut coordinator = Coordinator::new(script.clone());
        let mut answer = coordinator.prepare();
        for request in [ToAgent::Start, ToAgent::Finish] {
            if !matches!(answer, FromAgent::Failed { .. }) {
                answer = coordinator.ask(&request);
            }
        }
        let message = format!("{fails} failed");
        assert_eq!(answer, FromAgent::Failed { kind: FailureKind::Traffic, message });
        assert_eq!(script.steps(), steps);
        coordinator.part();
    }
}

#[test]
fn what_an_aborted_end_could_not_restore_is_reported_when_the_treatments_are_undone() {
    let script = Script { fails: Some("abort"), leaves: true, ..Script::default() };
    let mut coordinator = Coordinator::new(script);
    coordinator.prepare();
    coordinator.ask(&ToAgent::Start);
    assert_eq!(coordinator.ask(&ToAgent::Abort), FromAgent::Aborted);
    let problems = vec!["abort failed".to_owned()];
    assert_eq!(coordinator.ask(&ToAgent::Undo), FromAgent::Undone { problems });
    coordinator.part();
}

#[test]
fn what_an_end_could_not_restore_is_reported_again_when_the_treatments_are_undone() {
    let script = Script { fails: Some("result"), leaves: true, ..Script::default() };
    let mut coordinator = Coordinator::new(script);
    coordinator.prepare();
    coordinator.ask(&ToAgent::Start);
    let failed = coordinator.ask(&ToAgent::Finish);
    let message = "result failed".to_owned();
    assert_eq!(failed, FromAgent::Failed { kind: FailureKind::NotRestored, message: message.clone() });
    // A coordinator that has lost the other host sends this before it reads that answer, and passes over it.
    assert_eq!(coordinator.ask(&ToAgent::Abort), FromAgent::Aborted);
    assert_eq!(coordinator.ask(&ToAgent::Undo), FromAgent::Undone { problems: vec![message] });
    coordinator.part();
}

#[test]
fn what_lingers_and_could_not_be_restored_is_reported_again_when_the_treatments_are_undone() {
    let script = Script { lingers: true, fails: Some("end lingering"), leaves: true, ..Script::default() };
    let mut coordinator = Coordinator::new(script);
    coordinator.prepare();
    coordinator.ask(&ToAgent::Start);
    coordinator.ask(&ToAgent::Finish);
    let message = "end lingering failed".to_owned();
    let failed = FromAgent::Failed { kind: FailureKind::NotRestored, message: message.clone() };
    assert_eq!(coordinator.ask(&ToAgent::Apply { treatments: Vec::new() }), failed);
    assert_eq!(coordinator.ask(&ToAgent::Undo), FromAgent::Undone { problems: vec![message] });
    coordinator.part();
}
