//! Failover in a real lab: the virtual function is removed while probes and a stream run, every probe is accounted for, and the
//! path is restored after any process is killed.
use std::collections::BTreeSet;

use netduel_lab::Lab;
use netduel_model::failover::{LabEvents, PathEventKind};
use netduel_model::ids::LabName;
use netduel_model::metric::Metric;
use netduel_model::plan::spec::LabPath;
use netduel_model::run::Run;
use netduel_model::trial::{Trial, Validity};
use netduel_report::analysis::value_of;
use netduel_store::Store;
use netduel_test_support::not_compared;
use rustix::process::Signal;

use crate::path_proof::wait_for_bytes;
use crate::support::{Bench, UnderWay, short_plan, signal, signal_those_left, until};

const DURATION_NS: u64 = 5_000_000_000;

/// Two kinds of path loss, each with the return of the path.
const ARMS: &str = r#"
[[arms]]
name = "surprise"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[arms]]
name = "carrier"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
set = { events = [{ at = "500 ms", do = "carrier", on = "both" }, { at = "1 s", do = "return", on = "both" }] }
[[arms]]
name = "second-nic"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
set = { events = [{ at = "500 ms", do = "add-nic", on = "server" }, { at = "1 s", do = "graceful" }] }
"#;

const LOST: &str = r#"
[[workloads]]
name = "lost"
type = "failover"
duration = "5 s"
streams = 1
request_rate = "500 /s"
events = [{ at = "500 ms", do = "remove" }, { at = "1 s", do = "return" }]
"#;

fn last_run(bench: &Bench) -> Run {
    Store::open(bench.store()).unwrap().read("last").unwrap()
}

/// Probes sent and received without duplicates, sum of both directions, from the counters that both ends keep separately from the
/// arrivals.
fn sent_and_arrived(trial: &Trial) -> (u64, u64) {
    let ends = [trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap()];
    ends.iter().fold((0, 0), |sum, end| {
        let sent = end.report.failover.as_ref().unwrap().probes_sent;
        (sum.0 + sent, sum.1 + end.report.datagrams.as_ref().unwrap().unique)
    })
}

/// Checks a trial. Returns whether its last event ended early enough that the stream had to continue after it.
fn check(run: &Run, trial: &Trial) -> bool {
    let what = format!("{} of block {}", trial.slot.arm, trial.slot.block);
    assert!(trial.is_valid(), "{what}: {:?}", trial.validity);
    let client = trial.client.as_ref().unwrap().report.failover.as_ref().unwrap();
    let server = trial.server.as_ref().unwrap().report.failover.as_ref().unwrap();
    let LabEvents { events, .. } = trial.lab_events.as_ref().unwrap();
    assert_eq!(events.len(), 2, "{what}: {events:?}");
    let mut before_ns = client.started_ns;
    for event in events {
        assert!(event.error.is_none(), "{what}: {event:?}");
        assert!(before_ns < event.began_ns && event.began_ns <= event.ended_ns, "{what}: {event:?}");
        before_ns = event.ended_ns;
    }
    assert!(
        events[1].began_ns < client.started_ns + DURATION_NS,
        "{what}: the last mark lies behind the traffic"
    );

    let workload = run.header.plan.arm(&trial.slot.arm).unwrap().workload(&trial.slot.workload).unwrap();
    let value = |metric| value_of(metric, workload, trial, true);
    let (sent, arrived) = sent_and_arrived(trial);
    assert!(sent > 0 && arrived <= sent, "{what}: {arrived} of {sent}");
    assert_eq!(value(Metric::LostInOutage), Some((sent - arrived) as f64), "{what}");
    let outage = value(Metric::Outage).expect("an outage is known");
    assert!(outage < DURATION_NS as f64, "{what}: probes came again, but the outage is {outage} ns");

    // On a busy machine the kernel may perform the event only when the traffic has ended.
    let after = events[1].ended_ns - server.started_ns;
    if after >= DURATION_NS {
        return false;
    }
    let later: u64 =
        server.series.iter().filter(|sample| sample.end_ns > after).map(|sample| sample.bytes).sum();
    assert!(later > 0, "{what}: no data after the last event, which ended at {after} ns");
    true
}

#[test]
fn every_probe_is_accounted_for_and_the_path_is_restored() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(ARMS, LOST, "blocks_min = 2\nblocks_max = 2"));
    let out = bench.run(["run", plan.to_str().unwrap(), "--verbose", "--out", "report"]);
    let run = last_run(&bench);
    // Three arms, two blocks; each must start on the virtual function, otherwise its proof fails.
    assert_eq!(run.trials.len(), 6, "{}", out.stderr);
    // The machine may be too busy to perform an event during the traffic: then the trial has no values and a reason.
    let is_late = |trial: &&Trial| matches!(&trial.validity, Validity::Failed { reason } if reason.contains("the traffic had ended"));
    let (late, in_time): (Vec<&Trial>, Vec<&Trial>) = run.trials.iter().partition(is_late);
    let checked: BTreeSet<&str> =
        in_time.iter().filter(|trial| check(&run, trial)).map(|trial| trial.slot.arm.as_str()).collect();
    if checked.len() < 3 {
        not_compared(format!("events came in time for these arms only: {checked:?}; late: {}", late.len()));
    }
    let kinds: Vec<PathEventKind> =
        run.trials.iter().flat_map(|trial| &trial.lab_events).map(|events| events.events[0].kind).collect();
    for kind in [PathEventKind::Remove, PathEventKind::Carrier, PathEventKind::AddNic] {
        assert_eq!(kinds.iter().filter(|seen| **seen == kind).count(), 2, "{kinds:?}");
    }
    assert!(out.stdout.contains("remove at 500 ms"), "{}", out.stdout);
    assert!(out.stdout.contains("vf0, then syn0, then vf0"), "{}", out.stdout);
    let page = std::fs::read_to_string(bench.path().join("report/report.html")).unwrap();
    assert!(page.contains("figure class=\"chart timeline\""), "the page has no picture");
    let document = bench.run(["report", "last", "--json"]).json();
    let events = &document["workloads"][0]["arms"][0]["failover"]["events"];
    let of_surprise = in_time.iter().filter(|trial| trial.slot.arm.as_str() == "surprise").count();
    let outages = &events[0]["client_to_server"]["outage_ns"]["n"];
    assert_eq!(outages.as_u64().unwrap_or(0), of_surprise as u64, "{events}");
    bench.assert_nothing_left();
}

#[test]
fn path_change_without_an_event_is_not_a_failover() {
    let bench = Bench::new();
    // The path is changed as soon as bytes are counted, long before the event.
    // Probes alone, because the path is in question: a stream would take a core of the other tests for half a minute.
    let probes = LOST.replace("streams = 1", "streams = 0\nsize = \"1 KiB\"").replace("500 /s", "2 k/s");
    let long = probes.replace("5 s", "15 s").replace(
        r#"{ at = "500 ms", do = "remove" }, { at = "1 s", do = "return" }"#,
        r#"{ at = "10 s", do = "add-nic" }"#,
    );
    let arms = ARMS.split("[[arms]]").nth(1).map(|arm| format!("[[arms]]{arm}")).unwrap();
    let plan = bench.plan(&short_plan(&arms, &long, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let mut under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    assert!(wait_for_bytes(&bench, &lab), "no traffic was seen on the accelerated path");
    bench.run(["lab", "path", "--lab", &lab, "synthetic"]).expect_code(0);
    under_way.wait_for("trial   2/");
    signal(under_way.pid(), Signal::INT);
    under_way.finish().expect_code(130);
    let run = last_run(&bench);
    let Validity::WrongPath { reason } = &run.trials[0].validity else {
        panic!("{:?}", run.trials[0].validity)
    };
    assert!(reason.contains("in part 1 between events") && reason.contains("went through vf0"), "{reason}");
    assert!(
        run.trials[1].is_valid(),
        "the next trial has the path that it asks for: {:?}",
        run.trials[1].validity
    );
    bench.assert_nothing_left();
}

#[test]
fn coordinator_killed_during_an_event_leaves_nothing_behind() {
    let bench = Bench::new();
    let long = LOST.replace("5 s", "30 s").replace("\"1 s\"", "\"29 s\"");
    let arms = ARMS.split("[[arms]]").nth(1).map(|arm| format!("[[arms]]{arm}")).unwrap();
    let plan = bench.plan(&short_plan(&arms, &long, "aa = true\nblocks_min = 2\nblocks_max = 2"));
    let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    let lab = format!("run-short-{}", under_way.pid().as_raw_nonzero());
    let taken = until(|| {
        let status = bench.run(["lab", "exec", "--lab", &lab, "a", "--", "cat", "/proc/net/dev"]);
        status.code == Some(0) && !status.stdout.contains("vf0:")
    });
    assert!(taken, "the virtual function was never seen to be gone");
    signal(under_way.pid(), Signal::KILL);
    under_way.finish();
    bench.assert_nothing_left();
}

/// Hosts that are not lab guests for the plan, so that their agents set the interface down themselves.
fn real_hosts(lab: &str, events: &str, duration: &str) -> String {
    let program = env!("CARGO_BIN_EXE_netduel");
    let host = |name: &str, address: &str| {
        format!(
            "[hosts.{name}]\nlaunch = \"command\"\ncommand = [\"{program}\", \"lab\", \"exec\", \"--lab\", \"{lab}\", \"{name}\", \"--\"]\n\
             addresses = [\"{address}\"]\n"
        )
    };
    format!(
        "name = \"real\"\nquestion = \"What?\"\n{}{}[[arms]]\nname = \"down\"\nclient = \"a\"\nserver = \"b\"\n[[workloads]]\nname = \
         \"lost\"\ntype = \"failover\"\nduration = \"{duration}\"\nstreams = 0\nevents = [{events}]\n[design]\naa = true\nblocks_min = 2\nblocks_max = 2\n",
        host("a", "10.77.0.1"),
        host("b", "10.77.0.2"),
    )
}

/// A standing lab on its accelerated path, removed at the end.
struct Standing<'a>(&'a Bench, String);

impl<'a> Standing<'a> {
    fn up(bench: &'a Bench, purpose: &str) -> Self {
        let name = format!("{purpose}-{}", std::process::id());
        bench.run(["lab", "up", &name, "--rules", "20"]).expect_code(0);
        bench.run(["lab", "path", "--lab", &name, "accelerated"]).expect_code(0);
        Self(bench, name)
    }

    /// The path in use, read from the kernel; absent when the entries do not match one path.
    fn observed(&self) -> Option<LabPath> {
        let name = LabName::new(self.1.as_str()).unwrap();
        Lab::connect(&name).unwrap().status().unwrap().observed
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        self.0.run(["lab", "down", &self.1]);
    }
}

fn with_program_in_path(mut command: std::process::Command) -> std::process::Command {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path);
    command
}

#[test]
fn agent_sets_its_interface_down_and_restores_it() {
    let bench = Bench::new();
    let lab = Standing::up(&bench, "own");
    let events = r#"{ at = "500 ms", do = "down", interface = "vf0" }, { at = "1 s", do = "return", interface = "vf0" }"#;
    let plan = bench.plan(&real_hosts(&lab.1, events, "5 s"));
    let run = with_program_in_path(bench.netduel(["run", plan.to_str().unwrap()])).output().unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    let run = last_run(&bench);
    assert_eq!(run.trials.len(), 4, "{stderr}");
    for trial in &run.trials {
        assert!(trial.is_valid(), "{:?}", trial.validity);
        let client = trial.client.as_ref().unwrap().report.failover.as_ref().unwrap();
        let kinds: Vec<PathEventKind> = client.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [PathEventKind::Down, PathEventKind::Return]);
        assert!(client.events[0].began_ns > client.started_ns);
        assert!(trial.server.as_ref().unwrap().report.failover.as_ref().unwrap().events.is_empty());
    }
    assert_eq!(lab.observed(), Some(LabPath::Accelerated));
}

#[test]
fn interface_set_down_is_restored_when_its_agent_is_killed() {
    let bench = Bench::new();
    let lab = Standing::up(&bench, "killed");
    let plan =
        bench.plan(&real_hosts(&lab.1, r#"{ at = "300 ms", do = "down", interface = "vf0" }"#, "30 s"));
    let under_way = UnderWay::start(with_program_in_path(bench.netduel(["run", plan.to_str().unwrap()])));
    assert!(until(|| lab.observed().is_none()), "the interface was never seen down");
    signal_those_left(bench.find(&["agent"]), Signal::KILL);
    signal(under_way.pid(), Signal::KILL);
    under_way.finish();
    assert!(until(|| lab.observed() == Some(LabPath::Accelerated)), "the interface stayed down");
}
