//! Workloads and runs for the tests of this crate.
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpStream as Connection};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netduel_load::{LoadError, Notify, prepare_client, prepare_server};
use netduel_model::ids::{Token, WorkloadName};
use netduel_model::sample::{EndReport, LiveFigures};
use netduel_model::units::{BitRate, Bytes, Nanos, PerSecond};
use netduel_model::workload::{
    Direction, Family, RoundTrip, StreamTuning, TcpEngine, TcpStream, Timing, Traffic, Wait, Workload,
};
use netduel_sys::clock;
use netduel_test_support::skip;

pub const TOKEN: Token = Token(*b"a token of tests");
/// Long enough for a busy machine; only a hang reaches it.
pub const LIMIT: Duration = Duration::from_secs(60);
/// Poll interval of the client's figures.
const LOOK: Duration = Duration::from_millis(5);

pub fn workload(traffic: Traffic, family: Family, duration_ms: u64) -> Workload {
    Workload {
        name: WorkloadName::new("test").unwrap(),
        traffic,
        timing: Timing { duration: Nanos::from_millis(duration_ms), warmup: Nanos(0), cooldown: Nanos(0) },
        family,
        pin_client: Vec::new(),
        pin_server: Vec::new(),
        pin_auto: netduel_model::workload::PinAuto::default(),
        dscp: None,
        metrics: Vec::new(),
    }
}

pub fn tcp(streams: u32, direction: Direction, engine: TcpEngine) -> Traffic {
    Traffic::TcpStream(TcpStream {
        streams,
        direction,
        block: Bytes(1 << 20),
        engine,
        congestion: None,
        rate: None,
        tuning: StreamTuning::default(),
    })
}

pub fn messages(size: u64, outstanding: u32, wait: Wait, rate: Option<u64>) -> RoundTrip {
    RoundTrip {
        size: Bytes(size),
        outstanding,
        wait,
        rate: rate.map(PerSecond),
        timestamps: false,
        congestion: None,
    }
}

/// All wait modes that this user may use.
pub fn waits() -> Vec<Wait> {
    let mut waits = vec![Wait::Block, Wait::Spin];
    let socket = std::os::unix::net::UnixDatagram::unbound().unwrap();
    match netduel_sys::busy_poll::enable(&socket, Wait::BUSY_POLL) {
        Ok(_) => waits.push(Wait::BusyPoll),
        Err(error) => {
            skip(format!("busy polling is not allowed here: {error}"));
        }
    }
    waits
}

pub fn loopback(family: Family) -> IpAddr {
    match family {
        Family::Ipv4 => Ipv4Addr::LOCALHOST.into(),
        Family::Ipv6 => Ipv6Addr::LOCALHOST.into(),
    }
}

/// Traffic uses whole cores: one test at a time, or a short trial of one may end before its threads are scheduled.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the peer has closed or reset a connection without a byte. One that does neither is waited for until [`LIMIT`].
pub fn is_closed(mut connection: &Connection) -> bool {
    connection.set_read_timeout(Some(LIMIT)).unwrap();
    match connection.read(&mut [0; 64]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// A notification that a test can wait for.
pub fn notification() -> (Notify, Receiver<()>) {
    let (sender, receiver) = channel();
    (Box::new(move || sender.send(()).unwrap()), receiver)
}

/// Runs both ends as a coordinator does: the first to finish makes the other finish.
pub fn run_pair(workload: &Workload) -> Result<(EndReport, EndReport), LoadError> {
    run_through(workload, <[u16]>::to_vec)
}

/// As [`run_pair`], again when a stall of half a second timed out requests over UDP.
pub fn run_in_time(workload: &Workload) -> (EndReport, EndReport) {
    let mut trials = (0..10).map(|_| run_pair(workload).unwrap());
    trials
        .find(|(client, _)| client.round_trips.as_ref().is_none_or(|trips| trips.timeouts == 0))
        .expect("a trial without a stall")
}

/// As [`run_pair`], with `between` returning the ports that the client gets in place of the server's.
pub fn run_through(
    workload: &Workload,
    between: impl FnOnce(&[u16]) -> Vec<u16>,
) -> Result<(EndReport, EndReport), LoadError> {
    run_until(workload, between, |_| false)
}

/// As [`run_through`]. The client, whose duration may be long, is finished as soon as its figures suffice.
pub fn run_until(
    workload: &Workload,
    between: impl FnOnce(&[u16]) -> Vec<u16>,
    is_enough: impl Fn(&LiveFigures) -> bool,
) -> Result<(EndReport, EndReport), LoadError> {
    let _turn = turn();
    let address = loopback(workload.family);
    let server = prepare_server(workload, address, TOKEN)?;
    let ports = between(server.ports());
    let client = prepare_client(workload, address, &ports, TOKEN, LIMIT)?;
    let (sender, done) = channel();
    let from_server = sender.clone();
    let server = server.start(Box::new(move || from_server.send("server").unwrap()));
    let client = client.start(Box::new(move || sender.send("client").unwrap()));
    let deadline = clock::monotonic_ns() + LIMIT.as_nanos() as u64;
    let first = loop {
        match done.recv_timeout(LOOK) {
            Ok(first) => break first,
            Err(_) => assert!(clock::monotonic_ns() < deadline, "an end is done"),
        }
        if is_enough(&client.live()) {
            client.finish();
        }
    };
    match first {
        "server" => client.finish(),
        _ => server.finish(),
    }
    done.recv_timeout(LIMIT).expect("the other end is done");
    assert!(client.is_done() && server.is_done());
    Ok((client.join()?, server.join()?))
}

pub fn sent(report: &EndReport) -> u64 {
    report.sent.as_ref().map_or(0, |flow| flow.bytes)
}

pub fn received(report: &EndReport) -> u64 {
    report.received.as_ref().map_or(0, |flow| flow.bytes)
}

/// The series of a flow adds up to its total, and its times are in order.
pub fn check_flows(report: &EndReport) {
    for flow in [&report.sent, &report.received].into_iter().flatten() {
        let (bytes, messages) =
            flow.series.iter().fold((0, 0), |sum, next| (sum.0 + next.bytes, sum.1 + next.messages));
        assert_eq!((bytes, messages), (flow.bytes, flow.messages));
        assert!(flow.first_ns.is_some() && flow.first_ns <= flow.last_ns, "{flow:?}");
        let mut end = 0;
        for sample in &flow.series {
            assert_eq!(sample.end_ns, end + sample.length_ns);
            end = sample.end_ns;
        }
    }
}

/// The TCP traffic with a payload rate, bit/s.
pub fn paced(mut traffic: Traffic, bits_per_second: u64) -> Traffic {
    if let Traffic::TcpStream(TcpStream { rate, .. }) = &mut traffic {
        *rate = Some(BitRate(bits_per_second));
    }
    traffic
}
