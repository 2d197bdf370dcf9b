//! The server's end in a separate process, which can be stopped and can have its own clock.
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use netduel_load::{Running, prepare_client};
use netduel_model::sample::{EndReport, HistogramRecord, LiveFigures};
use netduel_model::stamps::{Clocks, Part};
use netduel_model::units::Nanos;
use netduel_model::workload::{Family, RoundTrip, Traffic, Wait, Workload};
use netduel_sys::clock;
use netduel_test_support::skip;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{LIMIT, TOKEN, loopback, messages, notification, turn, workload};

/// Payload of a request.
const SIZE: u64 = 64;
const RATE: u64 = 20_000;
/// Time between two requests of the schedule.
const PERIOD_NS: u64 = 1_000_000_000 / RATE;
/// The shortest stop of the server.
const STALL_NS: u64 = 50_000_000;
/// Duration of the traffic around a stall, which the test ends itself: the whole stall is within the schedule, however long this thread
/// waits for a core.
const STALLED_TRAFFIC_MS: u64 = 3_600_000;
/// Offset of the clock of a namespace, seconds.
const AHEAD_S: u64 = 4_000;

/// A server process. Dropping it ends it in any state.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts the example behind `prefix`, with the workload as an argument.
    fn start(prefix: &[String], workload: &Workload) -> Self {
        let (Traffic::TcpRr(settings) | Traffic::UdpRr(settings)) = &workload.traffic else {
            panic!("round trips only");
        };
        let this = std::env::current_exe().unwrap();
        let path = this.parent().unwrap().parent().unwrap().join("examples/server_end");
        assert!(path.exists(), "{} is missing: `cargo test -p netduel-load` builds it", path.display());
        let words = [
            path.to_str().unwrap().to_owned(),
            if matches!(workload.traffic, Traffic::UdpRr(_)) { "udp" } else { "tcp" }.to_owned(),
            settings.size.0.to_string(),
            if settings.wait == Wait::Spin { "spin" } else { "block" }.to_owned(),
            settings.rate.map_or("closed".to_owned(), |rate| rate.0.to_string()),
            (workload.timing.duration.0 / 1_000_000).to_string(),
            loopback(workload.family).to_string(),
            if settings.timestamps { "stamped" } else { "plain" }.to_owned(),
        ];
        let mut words = prefix.iter().chain(&words);
        let mut child = Command::new(words.next().unwrap())
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the server's port");
        Self { child, port }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether every thread is stopped: the kernel delivers the signal to one after the other.
    fn is_stopped(&self) -> bool {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten().all(|task| {
            // A thread that has gone does not run.
            let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { return true };
            // The state is after the name, which is in brackets.
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
        })
    }

    /// The peer has finished: ends the server.
    fn finish(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail if it has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start_client(server: &Server, workload: &Workload) -> (Running, Receiver<()>) {
    let address = loopback(workload.family);
    let client = prepare_client(workload, address, &[server.port], TOKEN, LIMIT).unwrap();
    let (notify, done) = notification();
    (client.start(notify), done)
}

/// Number of round trips longer than this.
fn longer(histogram: &HistogramRecord, than_ns: u64) -> u64 {
    histogram.pairs.iter().filter(|pair| pair.0 > than_ns).map(|pair| pair.1).sum()
}

/// Waits until the figures of the client suffice.
#[track_caller]
fn wait_for(client: &Running, what: &str, is_enough: impl Fn(&LiveFigures) -> bool) {
    let deadline_ns = clock::monotonic_ns() + LIMIT.as_nanos() as u64;
    while !is_enough(&client.live()) {
        assert!(!client.is_done() && clock::monotonic_ns() < deadline_ns, "never seen: {what}");
        std::thread::yield_now();
    }
}

/// Requests that the client has sent.
fn requests(live: &LiveFigures) -> u64 {
    live.sent_bytes / SIZE
}

/// Stops the server while traffic flows, and returns the duration of the stop. The client goes on until it has sent all requests that
/// were due in the stop.
fn stall(server: &Server, client: &Running) -> u64 {
    wait_for(client, "round trips", |live| live.messages >= 100);
    // Again until it has stopped: the kernel continues a whole process group when the shell behind it goes away (kill_orphaned_pgrp in
    // kernel/exit.c), and the group is that of all tests.
    while !server.is_stopped() {
        assert!(!client.is_done(), "the traffic ended before the stop");
        server.signal(Signal::STOP);
        std::thread::yield_now();
    }
    let before = requests(&client.live());
    // The first of these may have been on its way when the server stopped. The second was not, and is held from before the start.
    wait_for(client, "a request to the stopped server", |live| requests(live) >= before + 2);
    let start = clock::monotonic_ns();
    wait_for(client, "the end of the stop", |_| clock::monotonic_ns() >= start + STALL_NS);
    let length_ns = clock::monotonic_ns() - start;
    let due = client.live().elapsed_ns / PERIOD_NS + 1;
    server.signal(Signal::CONT);
    wait_for(client, "all requests that were due in the stop", |live| requests(live) >= due);
    length_ns
}

/// Runs a workload with a stall of the server; the report of the client, and the duration of the stall.
fn run_with_stall(workload: &Workload, what: &str) -> (EndReport, u64) {
    let server = Server::start(&[], workload);
    let (client, done) = start_client(&server, workload);
    let stalled_ns = stall(&server, &client);
    client.finish();
    done.recv_timeout(LIMIT).expect(what);
    server.finish();
    (client.join().unwrap(), stalled_ns)
}

#[test]
fn open_loop_at_20_000_per_second_keeps_its_schedule_and_shows_a_stall() {
    let _turn = turn();
    for wait in [Wait::Block, Wait::Spin] {
        for family in [Family::Ipv4, Family::Ipv6] {
            let settings = messages(SIZE, 1, wait, Some(RATE));
            for (protocol, traffic) in
                [("tcp", Traffic::TcpRr(settings.clone())), ("udp", Traffic::UdpRr(settings.clone()))]
            {
                let what = format!("{protocol} {wait:?} {family:?}");
                let workload = workload(traffic, family, STALLED_TRAFFIC_MS);
                let (report, stalled_ns) = run_with_stall(&workload, &what);
                check_stall(&report, stalled_ns, &what);
            }
        }
    }
}

/// No request left before it was due, and each is accounted for. Requests due in the stall waited for the rest of it: the tail is spread
/// evenly from zero to the whole stall. Over UDP, CPU contention may time out some after 0.5 s: those count as held, too.
fn check_stall(report: &EndReport, stalled_ns: u64, what: &str) {
    let trips = report.round_trips.as_ref().unwrap();
    let sent = trips.requests;
    let last_ns = report.sent.as_ref().and_then(|flow| flow.last_ns).unwrap();
    assert!((sent - 1) * PERIOD_NS <= last_ns, "{what}: {sent} requests, the last one after {last_ns} ns");
    assert_eq!(trips.responses + trips.timeouts, sent, "{what}");
    assert!(trips.timeouts == 0 || what.starts_with("udp"), "{what}");
    assert_eq!(trips.pacing_error.as_ref().unwrap().count, sent, "{what}");
    assert_eq!(trips.histogram.count, trips.responses, "{what}");
    assert!(trips.histogram.max >= stalled_ns, "{what}: {} of {stalled_ns}", trips.histogram.max);
    for quarter in 0..4 {
        let than_ns = stalled_ns * quarter / 4;
        let due = (stalled_ns - than_ns) * RATE / 1_000_000_000;
        let held = longer(&trips.histogram, than_ns) + trips.timeouts;
        assert!(held * 10 >= due * 9, "{what}: {held} of {due} waited longer than {than_ns} ns");
    }
}

fn stamped(rate: Option<u64>) -> RoundTrip {
    RoundTrip { timestamps: true, ..messages(64, 1, Wait::Block, rate) }
}

/// The prefix that gives a command a monotonic clock with an offset; absent, with a message, where that is not permitted.
fn clock_ahead() -> Option<Vec<String>> {
    let prefix: Vec<String> =
        ["unshare", "--time", "--monotonic", &AHEAD_S.to_string(), "--fork", "--kill-child"]
            .map(str::to_owned)
            .to_vec();
    let tried = Command::new(&prefix[0]).args(&prefix[1..]).arg("true").output();
    if tried.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(prefix);
    }
    skip(format!("no time namespace: {tried:?}"));
    None
}

#[test]
fn clock_offset_is_within_its_stated_error() {
    let _turn = turn();
    let Some(prefix) = clock_ahead() else { return };
    for family in [Family::Ipv4, Family::Ipv6] {
        for (protocol, traffic) in
            [("tcp", Traffic::TcpRr(stamped(None))), ("udp", Traffic::UdpRr(stamped(Some(2000))))]
        {
            let what = format!("{protocol} {family:?}");
            let mut workload = workload(traffic, family, 2_000);
            workload.timing.warmup = Nanos::from_millis(100);
            let server = Server::start(&prefix, &workload);
            let (client, done) = start_client(&server, &workload);
            done.recv_timeout(LIMIT).expect(&what);
            server.finish();
            let stamps = client.join().unwrap().stamps.unwrap();
            let one_way = stamps.one_way.expect(&what);
            assert_eq!(one_way.clocks, Clocks::Estimated, "{what}");
            // Both processes use the same oscillator, so the true offset is that of the namespace.
            let wrong = one_way.offset_ns.abs_diff((AHEAD_S * 1_000_000_000).cast_signed());
            assert!(wrong <= one_way.error_ns, "{what}: {wrong} of {}", one_way.error_ns);
            // The error is at most half of the shortest round trip, and a little for the drift.
            let network = stamps.parts.iter().find(|record| record.part == Part::Network).unwrap();
            assert!(one_way.error_ns >= network.histogram.min / 2, "{what}");
            assert_eq!((stamps.inconsistent, one_way.up.count), (0, stamps.complete), "{what}");
        }
    }
}
