//! A port whose process has no descriptor left continues when there are some again. The port is in a separate process with a
//! lower limit: this test, started again.
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};

use netduel_load::prepare_client;
use netduel_model::workload::{Direction, Family, TcpEngine, Workload};

use crate::harness::{LIMIT, loopback, notification, received, sent, tcp, turn, workload};
use crate::port::{datagrams, open, token};
use crate::port_unknown_peers::{confirm, hello};

const ROLE: &str = "NETDUEL_TEST_SHORTAGE";
const NAME: &str = "port_shortage::port_survives_descriptor_exhaustion";
/// More than the 400 descriptors that a trial keeps free for other uses.
const DESCRIPTORS: u32 = 450;

fn trials() -> [Workload; 3] {
    let flows = workload(datagrams(2, Direction::Up, 800_000), Family::Ipv4, 1000);
    [workload(tcp(2, Direction::Up, TcpEngine::Copy), Family::Ipv4, 1000), flows.clone(), flows]
}

/// The number of the trial that fails for lack of a descriptor.
const FAILS: usize = 2;

/// The server: opens a port, and takes and releases descriptors as instructed, one line at a time.
fn serve() {
    let (port, _control) = open(Ipv4Addr::LOCALHOST.into());
    let mut number = 0;
    let [stream, flows, fails] = trials().map(|workload| {
        let (notify, done) = notification();
        let end = port.prepare_server(&workload, token(number)).unwrap();
        number += 1;
        (end.start(notify), done)
    });
    let take = || std::iter::from_fn(|| File::open("/dev/null").ok());
    let order = || std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut taken: Vec<File> = take().collect();
    // Unknown peers come one at a time now.
    taken.pop();
    println!("port {}", port.address().port());
    order();
    taken.extend(take());
    println!("full {}", taken.len());
    order();
    fails.0.abort();
    fails.1.recv_timeout(LIMIT).unwrap();
    println!("failed {}", fails.0.join().unwrap_err());
    order();
    drop(taken);
    for (running, done) in [stream, flows] {
        done.recv_timeout(LIMIT).unwrap();
        println!("received {}", received(&running.join().unwrap()));
    }
}

struct Server {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\""))
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(ROLE, "server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Signals the next step.
    fn order(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// The text after the next `word` in its output, which includes that of the test harness.
    fn line_after(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended before it printed {word}");
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only a failed test finds it alive.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn port_survives_descriptor_exhaustion() {
    if std::env::var_os(ROLE).is_some() {
        return serve();
    }
    let _turn = turn();
    let mut server = Server::start();
    let port: u16 = server.line_after("port ").parse().unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    close_foreign_clients(address);
    server.order();
    server.line_after("full ");
    confirm_a_flow(address);
    server.order();
    let error = server.line_after("failed ");
    assert!(error.contains("open a socket for a flow"), "{error}");
    // The others connect before there are descriptors for them, or a little later.
    let clients: Vec<_> = trials()
        .into_iter()
        .take(FAILS)
        .enumerate()
        .map(|(number, workload)| std::thread::spawn(move || run_client(port, number, &workload)))
        .collect();
    server.order();
    for client in clients {
        let sent = client.join().unwrap();
        assert!(sent > 0);
        assert_eq!(server.line_after("received ").parse(), Ok(sent));
    }
    assert!(server.child.wait().unwrap().success());
}

fn run_client(port: u16, number: usize, workload: &Workload) -> u64 {
    let ports = if number == 0 { vec![port] } else { vec![port; 2] };
    let host = loopback(Family::Ipv4);
    let client = prepare_client(workload, host, &ports, token(number), LIMIT).unwrap();
    let (notify, done) = notification();
    let client = client.start(notify);
    done.recv_timeout(LIMIT).unwrap();
    sent(&client.join().unwrap())
}

/// Each peer starts a greeting and waits. One is accepted, the next one finds no descriptor, and the first is closed; that all
/// are closed shows that the port is still running.
fn close_foreign_clients(address: SocketAddr) {
    let mut foreign_clients: Vec<_> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    for foreign in &mut foreign_clients {
        foreign.write_all(b"NETDUEL1").unwrap();
        foreign.set_read_timeout(Some(LIMIT)).unwrap();
    }
    for foreign in &mut foreign_clients {
        match foreign.read(&mut [0; 64]) {
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            Ok(length) => assert_eq!(length, 0),
        }
    }
}

/// Performs the handshake for a flow of the failing trial up to the point at which the port needs a socket. Datagrams are
/// processed in order, so a reply to a later one shows that the port has tried and continues.
fn confirm_a_flow(address: SocketAddr) {
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client.connect(address).unwrap();
    client.set_read_timeout(Some(LIMIT)).unwrap();
    let mut bytes = [0; 48];
    client.send(&hello(1, token(FAILS))).unwrap();
    assert_eq!(client.recv(&mut bytes).unwrap(), 48);
    let nonce = *bytes.last_chunk().unwrap();
    client.send(&confirm(token(FAILS), nonce)).unwrap();
    client.send(&hello(1, token(1))).unwrap();
    assert_eq!(client.recv(&mut bytes).unwrap(), 48);
    assert_eq!(bytes[8], 2, "the next that is heard is a proof, so the flow was not opened");
}
