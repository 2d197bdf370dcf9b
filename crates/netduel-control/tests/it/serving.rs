//! The agent's loop in this process: how it ends, and that it stops traffic and undoes changes.
use std::cell::Cell;
use std::io::{PipeWriter, Write as _};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netduel_control::agent::{AgentError, Clock, FailureKind, Waker, Work, WorkError, serve};
use netduel_control::peer::PeerError;
use netduel_control::protocol::{FromAgent, Limits, PROTOCOL, ToAgent, decode, encode};
use netduel_model::data_ports::{ListenAt, PortNeeds, ProbeSource, ProbedPort};
use netduel_model::ids::{RunId, Token};
use netduel_model::observation::{ControlTraffic, Observation};
use netduel_model::plan::TreatmentAction;
use netduel_model::sample::{EndReport, LiveFigures};
use netduel_model::snapshot::HostSnapshot;
use netduel_model::trial::TrialEnd;
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Workload};

use crate::messages::{limits, requests};

/// Work that records its requests, and whose traffic ends at once or never.
#[derive(Default)]
struct Noted {
    notes: Arc<Mutex<Vec<&'static str>>>,
    panics: bool,
    ends: bool,
}

impl Noted {
    fn note(&self, what: &'static str) {
        self.notes.lock().unwrap().push(what);
    }
}

impl Work for Noted {
    fn snapshot(&mut self, _metadata: bool) -> Result<HostSnapshot, WorkError> {
        Ok(HostSnapshot::default())
    }
    fn lock(&mut self, _: &RunId) -> Result<(), WorkError> {
        Err(WorkError { kind: FailureKind::Busy, message: "in use by run other-1".to_owned() })
    }
    fn apply(&mut self, _: &[TreatmentAction]) -> Result<(), WorkError> {
        self.note("apply");
        assert!(!self.panics, "this work has a bug");
        Ok(())
    }
    fn undo(&mut self) -> Vec<String> {
        self.note("undo");
        vec!["eth0 is left as it is".to_owned()]
    }
    fn open_ports(&mut self, _: ListenAt, _: PortNeeds, _: Token) -> Result<[Vec<u16>; 2], WorkError> {
        Ok([vec![1], vec![1]])
    }
    fn probe_ports(
        &mut self,
        _: IpAddr,
        _: [&[u16]; 2],
        _: Token,
        _: Duration,
    ) -> Result<Vec<ProbedPort>, WorkError> {
        Ok(Vec::new())
    }
    fn close_ports(&mut self) -> Vec<ProbeSource> {
        Vec::new()
    }
    fn prepare_server(&mut self, _: &Workload, _: ListenAt, _: Token) -> Result<Vec<u16>, WorkError> {
        Ok(vec![1])
    }
    fn prepare_client(
        &mut self,
        _: &Workload,
        _: IpAddr,
        _: &[u16],
        _: Token,
        _: Duration,
    ) -> Result<(), WorkError> {
        Ok(())
    }
    fn start(&mut self, _: Waker) -> Result<(), WorkError> {
        self.note("start");
        Ok(())
    }
    fn live(&self) -> LiveFigures {
        LiveFigures { sent_bytes: 7, ..LiveFigures::default() }
    }
    fn finish(&mut self) {}
    fn is_done(&self) -> bool {
        self.ends
    }
    fn take_result(&mut self) -> Result<TrialEnd, WorkError> {
        self.ends = false;
        Ok(TrialEnd { report: EndReport::new(Role::Server), observation: Observation::default() })
    }
    fn abort(&mut self) {
        self.note("abort");
    }
}

/// A clock that advances by a fixed step at each reading.
struct Stepping(Cell<u64>, u64);

impl Clock for Stepping {
    fn now_ns(&self) -> u64 {
        self.0.set(self.0.get() + self.1);
        self.0.get()
    }
}

fn hello(limits: Limits) -> ToAgent {
    ToAgent::Hello { protocol: PROTOCOL, program: "test".into(), limits }
}

/// Serves requests; when `stays` is true, the input then stays open and silent. Returns the end, the answers and the recorded requests.
fn served(
    lines: &[String],
    stays: bool,
    step_ns: u64,
) -> (Result<(), AgentError>, Vec<FromAgent>, Vec<&'static str>) {
    let (input, mut writer) = std::io::pipe().unwrap();
    writer.write_all(lines.concat().as_bytes()).unwrap();
    let _open: Option<PipeWriter> = stays.then_some(writer);
    let (mut output, mut work) = (Vec::new(), Noted::default());
    let result = serve(input, &mut output, &mut work, "agent 1", &Stepping(Cell::new(0), step_ns));
    let answers = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers = answers.map(|line| decode(line).unwrap()).collect();
    let notes = work.notes.lock().unwrap().clone();
    (result, answers, notes)
}

fn up_to_start() -> Vec<String> {
    let in_trial = |request: &&ToAgent| {
        matches!(request, ToAgent::Apply { .. } | ToAgent::PrepareServer { .. } | ToAgent::Start)
    };
    std::iter::once(encode(&hello(limits()))).chain(requests().iter().filter(in_trial).map(encode)).collect()
}

#[test]
fn end_of_input_in_a_trial_stops_traffic_and_undoes_treatments() {
    let (result, answers, notes) = served(&up_to_start(), false, 0);
    assert!(result.is_ok(), "{result:?}");
    assert!(matches!(answers.last(), Some(FromAgent::Started)), "{answers:?}");
    assert_eq!(notes, ["apply", "start", "abort", "undo"]);
}

#[test]
fn end_of_traffic_reports_what_the_connection_carried_since_the_start() {
    let mut output = Vec::new();
    let mut work = Noted { ends: true, ..Noted::default() };
    let input = std::io::Cursor::new(up_to_start().concat().into_bytes());
    serve(input, &mut output, &mut work, "agent 1", &Stepping(Cell::new(0), 0)).unwrap();
    let lines: Vec<&[u8]> = output.split_inclusive(|byte| *byte == b'\n').collect();
    let answers: Vec<FromAgent> = lines.iter().map(|line| decode(line.trim_ascii_end()).unwrap()).collect();
    let started = answers.iter().position(|answer| matches!(answer, FromAgent::Started)).unwrap();
    let done = answers.iter().position(|answer| matches!(answer, FromAgent::Done { .. })).unwrap();
    let sent = &lines[started..done];
    let control = ControlTraffic {
        bytes: sent.iter().map(|line| line.len() as u64).sum(),
        messages: sent.len() as u64,
    };
    let FromAgent::Done { end, .. } = &answers[done] else { unreachable!("its position is this") };
    assert_eq!(end.observation.control, Some(control));
}

#[test]
fn bye_is_answered_with_remaining_changes_and_undoes_once() {
    let lines: Vec<String> = up_to_start().into_iter().chain([encode(&ToAgent::Bye)]).collect();
    let (result, answers, notes) = served(&lines, true, 0);
    assert!(result.is_ok(), "{result:?}");
    let problems = vec!["eth0 is left as it is".to_owned()];
    assert_eq!(answers.last(), Some(&FromAgent::Bye { problems }));
    assert_eq!(notes, ["apply", "start", "abort", "undo"]);
}

#[test]
fn garbage_ends_the_agent_and_is_quoted() {
    let lines: Vec<String> = up_to_start().into_iter().chain(["rm -rf /\n".to_owned()]).collect();
    let (result, _, notes) = served(&lines, true, 0);
    let text = result.unwrap_err().to_string();
    assert!(text.contains("`rm -rf /`") && text.contains("started by a run"), "{text}");
    assert_eq!(notes, ["apply", "start", "abort", "undo"]);
}

#[test]
fn coordinator_of_another_version_receives_the_version_of_the_agent() {
    let line = r#"{"type":"hello","protocol":9,"program":"netduel 9.9.9","limits":"of another form"}"#;
    let (result, answers, _) = served(&[format!("{line}\n")], true, 0);
    let text = result.unwrap_err().to_string();
    assert!(
        text.contains("protocol 9 (netduel 9.9.9)")
            && text.contains(&format!("protocol {PROTOCOL} (agent 1)")),
        "{text}"
    );
    assert_eq!(answers, [FromAgent::Hello { protocol: PROTOCOL, program: "agent 1".into() }]);
}

#[test]
fn silent_coordinator_is_abandoned() {
    let none = Nanos(0);
    for (limits, awaited) in [
        (Limits { idle: none, ..limits() }, "the next request"),
        (Limits { total: none, ..limits() }, "the end of the run"),
    ] {
        let (result, _, notes) = served(&[encode(&hello(limits))], true, 0);
        match result {
            Err(AgentError::Coordinator(PeerError::Silent { awaited: named, .. })) => {
                assert_eq!(named, awaited);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(notes, ["abort", "undo"]);
    }
}

#[test]
fn figures_are_sent_while_traffic_runs_and_traffic_that_does_not_end_is_stopped() {
    let (result, answers, notes) = served(&up_to_start(), true, 1_000_000_000);
    let text = result.unwrap_err().to_string();
    assert!(text.contains("the end of traffic"), "{text}");
    let figures = LiveFigures { sent_bytes: 7, ..LiveFigures::default() };
    assert!(answers.contains(&FromAgent::Progress { trial: 1, figures }), "{answers:?}");
    assert_eq!(notes, ["apply", "start", "abort", "undo"]);
}

#[test]
fn error_of_a_locked_host_names_the_other_run() {
    let lock = requests().into_iter().find(|request| matches!(request, ToAgent::LockHost { .. })).unwrap();
    let (_, answers, _) = served(&[encode(&hello(limits())), encode(&lock)], false, 0);
    assert_eq!(answers.last(), Some(&FromAgent::HostBusy { by: "in use by run other-1".into() }));
}

#[test]
fn work_that_panics_is_undone() {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let own = notes.clone();
    let (input, mut writer) = std::io::pipe().unwrap();
    writer.write_all(up_to_start().concat().as_bytes()).unwrap();
    let served = std::thread::spawn(move || {
        let mut work = Noted { notes: own, panics: true, ends: false };
        serve(input, std::io::sink(), &mut work, "agent 1", &Stepping(Cell::new(0), 0)).is_ok()
    });
    assert!(served.join().is_err());
    assert_eq!(*notes.lock().unwrap(), ["apply", "abort", "undo"]);
}
