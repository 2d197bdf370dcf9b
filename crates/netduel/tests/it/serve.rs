//! A standing server: authentication, information given to unpaired clients, stored data, and its end. On loopback, or in its own
//! namespace.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use netduel_control::protocol::PROTOCOL;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::tcp;
use netduel_test_support::skip;
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::support::{Bench, Finished, assert_fits, signal, signal_those_left, wait_gone};

/// Longer than any time limit of a server for unpaired clients.
const LIMIT: Duration = Duration::from_secs(60);
/// Connections of a flood, at least.
const FLOOD: usize = 1_000;

/// A server on loopback.
pub struct Server {
    pub bench: Bench,
    child: Child,
    lines: BufReader<ChildStdout>,
    pub address: SocketAddr,
    pub string: String,
}

impl Server {
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(Bench::new(), options)
    }

    pub fn start_in(bench: Bench, options: &[&str]) -> Self {
        let words = ["serve", "--json", "--bind", "127.0.0.1", "--port", "0"];
        let mut child = bench.netduel(words.iter().chain(options)).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let ready = next_event(&mut lines).expect("the server is ready");
        let address = ready["address"].as_str().unwrap().parse().unwrap();
        let string = ready["pairings"][0]["string"].as_str().unwrap().to_owned();
        Self { bench, child, lines, address, string }
    }

    pub fn client(&self, words: &[&str]) -> Finished {
        Finished::from(self.spawn(words).wait_with_output().unwrap())
    }

    pub fn spawn(&self, words: &[&str]) -> Child {
        let words = words.iter().map(|word| if *word == "STRING" { &self.string } else { *word });
        self.bench.netduel(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A client with running traffic, for up to a minute.
    fn running_client(&self) -> Child {
        let mut child = self.spawn(&["tcp", "STRING", "-b", "1M", "-t", "60", "-i", "0.1", "--json-stream"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        for event in ["start", "interval"] {
            assert_eq!(next_event(&mut lines).expect("traffic runs")["event"], event);
        }
        // Kept open; otherwise the client would write to a closed pipe.
        child.stdout = Some(lines.into_inner());
        child
    }

    fn event(&mut self) -> Value {
        next_event(&mut self.lines).expect("the server goes on")
    }

    pub fn end(mut self) -> Bench {
        signal(Pid::from_child(&self.child), Signal::TERM);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        self.bench.assert_nothing_left();
        self.bench
    }

    /// The response to an unpaired client that sends this and then nothing.
    fn answer_to(&self, words: &[u8], ends: bool) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(words).unwrap();
        if ends {
            // A server that has already closed the connection has responded.
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Closing with unread data causes a reset.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("not closed: {error}"),
            Ok(_) => {}
        }
        answer
    }
}

fn next_event(lines: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut line = String::new();
    if lines.read_line(&mut line).unwrap() == 0 {
        return None;
    }
    let event = serde_json::from_str(&line).unwrap();
    assert_fits(&event);
    Some(event)
}

#[test]
fn client_without_the_secret_gets_no_response() {
    let server = Server::start(&["--ephemeral"]);
    let inputs: [(&str, &[u8]); 6] = [
        ("nothing", b""),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("a record that is none", &[0x16, 3, 1, 0xff, 0xff, 1, 2, 3]),
        ("a greeting of data that is none", &[b'N'; 48]),
        ("zeros", &[0; 4096]),
    ];
    for (what, words) in inputs {
        assert_eq!(server.answer_to(words, true), b"", "{what}");
    }
    // Started and not continued, all at once: each is closed after its time limit.
    std::thread::scope(|scope| {
        for words in [&[0x16, 3, 1][..], b"N", b"G", &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]] {
            let server = &server;
            scope.spawn(move || assert_eq!(server.answer_to(words, false), b"", "{words:?}"));
        }
        server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    });
    server.end();
}

/// A TLS 1.3 client without pairing gets only the certificate; older versions get nothing.
#[test]
fn other_tls_clients_get_no_information() {
    let mut server = Server::start(&["--ephemeral"]);
    for (version, is_agreed) in [("-tls1_2", false), ("-tls1_3", true)] {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-connect", &server.address.to_string(), version]);
        server.bench.mark(&mut command);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let Ok(mut client) = spawned else {
            server.end();
            return skip("openssl is not installed");
        };
        // It may end before it reads its input.
        let _ = client.stdin.take().unwrap().write_all(&[b'x'; 32]);
        let client = Finished::from(client.wait_with_output().unwrap());
        assert_eq!(client.stdout, "", "{version}");
        let event = server.event();
        assert_eq!(event["event"], "refused", "{event}");
        let why = event["reason"].as_str().unwrap();
        assert_eq!(why.contains("does not know the secret"), is_agreed, "{version}: {why}");
    }
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    server.end();
}

#[test]
fn twenty_clients_are_served_concurrently() {
    let mut server = Server::start(&["--ephemeral"]);
    let words = ["udp", "STRING", "-b", "200K", "-t", "0.5", "-i", "0"];
    let clients: Vec<Child> = (0..20).map(|_| server.spawn(&words)).collect();
    for client in clients {
        Finished::from(client.wait_with_output().unwrap()).expect_code(0);
        assert_eq!(server.event()["event"], "test");
    }
    server.end();
}

#[test]
fn excess_client_is_rejected_and_a_killed_one_frees_its_place() {
    let mut server = Server::start(&["--ephemeral", "--max-clients", "1"]);
    let mut first = server.running_client();
    let error = server.client(&["rr", "STRING", "-t", "0.2"]).expect_code(4).stderr;
    assert!(error.contains("the limit of its") && error.contains("--max-clients"), "{error}");
    assert_eq!(server.event()["event"], "refused");
    let client = server.bench.find(&["tcp", "-t", "60"]);
    signal_those_left(client.iter().copied(), Signal::KILL);
    assert!(!client.is_empty() && client.into_iter().all(wait_gone));
    first.wait().unwrap();
    assert_eq!(server.event()["event"], "failed");
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    server.end();
}

#[test]
fn stopping_a_server_sends_the_reason_to_its_clients() {
    let mut server = Server::start(&["--ephemeral"]);
    let client = server.running_client();
    signal(Pid::from_child(&server.child), Signal::INT);
    let client = Finished::from(client.wait_with_output().unwrap()).expect_code(4);
    assert!(client.stderr.contains("the server was stopped on its host"), "{}", client.stderr);
    assert_eq!(server.event()["event"], "failed");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    server.bench.assert_nothing_left();
}

#[test]
fn suspended_server_is_reported_as_unresponsive() {
    let mut server = Server::start(&["--ephemeral"]);
    let client = server.running_client();
    signal(Pid::from_child(&server.child), Signal::STOP);
    // Long before the planned minute is over.
    let client = Finished::from(client.wait_with_output().unwrap()).expect_code(4);
    assert!(client.stderr.contains("has sent nothing for"), "{}", client.stderr);
    signal(Pid::from_child(&server.child), Signal::CONT);
    assert_eq!(server.event()["event"], "failed");
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    server.end();
}

#[test]
fn failed_test_has_the_exit_code_of_its_cause() {
    let server = Server::start(&["--max-streams", "16"]);
    for (words, code, cause) in [
        // The settings are wrong on this host, or on the server.
        (&["tcp", "STRING", "--pin-client", "8000"][..], 2, "core 8000"),
        (&["tcp", "STRING", "--pin-server", "8000"], 2, "core 8000"),
        // The rules of the server refuse a valid test.
        (&["tcp", "STRING", "-P", "17"], 4, "--max-streams"),
        // The environment lacks something: the loopback has no next hop.
        (&["pps", "STRING", "--generator", "xdp"], 3, "is on lo"),
    ] {
        let error = server.client(&[words, &["-t", "0.2"]].concat()).expect_code(code).stderr;
        assert!(error.contains(cause), "{words:?}: {error}");
    }
    server.end();
}

#[test]
fn stopped_quick_test_is_repeated_not_resumed() {
    let server = Server::start(&[]);
    let words = ["tcp", "STRING", "-b", "1M", "-t", "60", "-i", "0.1", "--json-stream", "--save"];
    let mut child = server.spawn(&words);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    for event in ["start", "interval"] {
        assert_eq!(next_event(&mut lines).expect("traffic runs")["event"], event);
    }
    signal(Pid::from_child(&child), Signal::INT);
    child.stdout = Some(lines.into_inner());
    Finished::from(child.wait_with_output().unwrap()).expect_code(130);
    let listed = server.bench.run(["runs"]).expect_code(0).stdout;
    let command = format!("netduel tcp {} -b 1M -t 60", server.address);
    assert!(listed.contains(&format!("Repeat with: {command}")), "{listed}");
    assert!(!listed.contains("--resume"), "{listed}");
    let refused = server.bench.run(["run", "--resume", "last"]).expect_code(2).stderr;
    assert!(refused.contains("a quick test has one trial; repeat it with `netduel tcp "), "{refused}");
    server.end();
}

#[test]
fn one_off_server_ends_after_a_test_but_not_after_a_rejected_one() {
    let mut server = Server::start(&["--ephemeral", "--one-off", "--max-rate", "10M"]);
    let error = server.client(&["rr", "STRING", "-t", "0.2"]).expect_code(4).stderr;
    assert!(error.contains("--max-rate") && error.contains("--rate"), "{error}");
    assert_eq!(server.event()["event"], "refused");
    server.client(&["rr", "STRING", "--rate", "100", "-t", "0.2", "-i", "0"]).expect_code(0);
    assert_eq!(server.event()["event"], "test");
    assert_eq!(next_event(&mut server.lines), None);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    server.bench.assert_nothing_left();
}

#[test]
fn greeting_keeps_the_pairing_string_out_of_the_command() {
    let bench = Bench::new();
    let words = ["serve", "--ephemeral", "--bind", "127.0.0.1", "--port", "0"];
    let mut server = bench.netduel(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map(Result::unwrap);
    let greeting: Vec<String> = lines.by_ref().take_while(|line| !line.starts_with("Ctrl-C")).collect();
    let trimmed: Vec<&str> = greeting.iter().map(|line| line.trim()).collect();
    assert!(trimmed.contains(&"netduel tcp -"), "{greeting:?}");
    let strings: Vec<&str> = trimmed.into_iter().filter(|line| line.contains("netduel1")).collect();
    assert!(matches!(strings[..], [string] if string.starts_with("netduel1") && !string.contains(' ')));
    signal(Pid::from_child(&server), Signal::TERM);
    assert_eq!(server.wait().unwrap().code(), Some(0));
    bench.assert_nothing_left();
}

#[test]
fn pairing_survives_restarts_until_a_new_identity() {
    let first = Server::start(&[]);
    let string = first.string.clone();
    first.client(&["rr", &string, "-t", "0.2", "-i", "0"]).expect_code(0);
    let second = Server::start_in(first.end(), &[]);
    let port = second.address.port().to_string();
    second.client(&["rr", &string, "-p", &port, "-t", "0.2", "-i", "0"]).expect_code(0);
    let third = Server::start_in(second.end(), &["--new-identity"]);
    let port = third.address.port().to_string();
    let error = third.client(&["rr", &string, "-p", &port, "-t", "0.2"]).expect_code(4).stderr;
    assert!(error.contains("not the one that was paired"), "{error}");
    third.end();
}

#[test]
fn identity_readable_by_others_is_rejected() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Server::start(&[]).end();
    let path = bench.path().join("state/netduel/serve/identity.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = bench.run(["serve", "--bind", "127.0.0.1", "--port", "0"]).expect_code(3).stderr;
    assert!(error.contains("identity.json") && error.contains("--new-identity"), "{error}");
    bench.assert_nothing_left();
}

/// Sends data to a server in place of a coordinator; returns the response and how the session ended.
pub fn conversation(server: &Server, lines: &[Value]) -> Finished {
    server.bench.run(["pair", &server.string]).expect_code(0);
    let mut link = server.bench.netduel(["link", &server.address.to_string()]);
    let mut link = link.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = link.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    // Kept open: the server must end it.
    let finished = Finished::from(link.wait_with_output().unwrap());
    drop(input);
    finished
}

/// What a coordinator sends before a trial with this traffic.
pub fn requests(traffic: &Value) -> [Value; 2] {
    let timing = json!({ "duration": "1 s", "warmup": "0 ms", "cooldown": "0 ms" });
    let workload = json!({
        "name": "w", "traffic": traffic, "timing": timing, "family": "ipv4", "pin_client": [], "pin_server": [], "metrics": [],
    });
    let limits = json!({ "total": "60 s", "idle": "60 s" });
    let hello = json!({ "type": "hello", "protocol": PROTOCOL, "program": "another", "limits": limits });
    let token = "0123456789abcdef0123456789abcdef";
    let prepare = json!({ "type": "prepare-server", "trial": 1, "workload": workload, "bind": "127.0.0.1", "token": token });
    [hello, prepare]
}

#[test]
fn client_of_another_version_gets_the_server_version() {
    let mut server = Server::start(&["--ephemeral"]);
    let hello = json!({ "type": "hello", "protocol": 99, "program": "netduel 9.9.9", "tongue": "another" });
    let session = conversation(&server, &[hello]);
    let answer: Value = serde_json::from_str(&session.stdout).unwrap();
    assert_eq!(answer["type"], "hello");
    assert!(answer["protocol"].is_u64() && answer["program"].is_string(), "{answer}");
    let why = server.event()["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("netduel 9.9.9") && why.contains("install the same version"), "{why}");
    server.end();
}

#[test]
fn silent_client_loses_its_place() {
    // A first request that arrives later is as good: the session ends for the same reason.
    let mut server = Server::start(&["--ephemeral", "--idle-timeout", "5"]);
    let day = "86400 s";
    let limits = json!({ "total": day, "idle": day });
    let hello = json!({ "type": "hello", "protocol": PROTOCOL, "program": "patient", "limits": limits });
    let session = conversation(&server, &[hello]).expect_code(4);
    assert!(session.stderr.contains("--idle-timeout"), "{}", session.stderr);
    let why = server.event()["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("ms for the next request"), "{why}");
    server.end();
}

/// The check of plans is the client's own. What may change the host is decided at the server.
#[test]
fn no_command_of_a_client_runs_on_the_host_of_a_server() {
    let server = Server::start(&["--ephemeral", "--idle-timeout", "5"]);
    let made = server.bench.path().join("made-by-a-client");
    let event = json!({
        "at": "1 ms", "kind": "command", "on": "server", "interface": "lo", "command": ["touch", made], "undo": ["true"],
    });
    let traffic = json!({
        "type": "failover", "streams": 0, "direction": "up", "block": "64 KiB", "engine": "lean", "congestion": null, "size": "64 B",
        "rate": "1000 /s", "events": [event],
    });
    let [hello, prepare] = requests(&traffic);
    let session = conversation(&server, &[hello, prepare, json!({ "type": "start" })]);
    assert!(session.stdout.contains("makes no changes to its host"), "{}", session.stdout);
    let bench = server.end();
    assert!(!made.exists());
    drop(bench);
}

/// A reader of the log learns of each refusal, by its line or by the number of those without one.
#[test]
fn refusals_without_a_line_are_counted_in_the_last_one() {
    let mut server = Server::start(&["--ephemeral"]);
    let refused: u64 = 100;
    for _ in 0..refused {
        // A record of TLS that is none.
        assert_eq!(server.answer_to(&[0x16, 3, 1, 0xff, 0xff, 1, 2, 3], true), b"");
    }
    signal(Pid::from_child(&server.child), Signal::TERM);
    let events: Vec<Value> = std::iter::from_fn(|| next_event(&mut server.lines)).collect();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    let printed = events.iter().filter(|event| event["event"] == "refused").count() as u64;
    let counts = events.iter().filter(|event| event["event"] == "not-printed");
    let unprinted: u64 = counts.filter_map(|event| event["refused"].as_u64()).sum();
    // The thread of a closed connection may not have come to its refusal yet.
    assert!(printed >= 30 && unprinted > 0 && printed + unprinted <= refused, "{printed} {unprinted}");
    assert_eq!(events.last().unwrap()["event"], "not-printed");
    server.bench.assert_nothing_left();
}

#[test]
fn server_works_on_a_host_with_ipv6_only() {
    let bench = Bench::new();
    let script = r#"
        set -e
        ip link set lo up
        ip addr del 127.0.0.1/8 dev lo
        exec {out}< <(exec "$0" serve --ephemeral --port 0 --json)
        server=$!
        read -r ready <&$out
        case "$ready" in *'"host":"::1"'*) ;; *) echo "$ready" >&2; exit 90;; esac
        string=${ready##*'"string":"'}
        string=${string%%'"'*}
        code=0
        "$0" tcp "$string" -t 0.2 -i 0 -J || code=$?
        "$0" udp "$string" -t 0.2 -i 0 -b 1M || code=$?
        kill $server
        exit $code
    "#;
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "bash", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_netduel"));
    bench.mark(&mut command);
    let Ok(output) = command.output() else { return skip("unshare is not installed") };
    let run = Finished::from(output);
    if run.stderr.contains("unshare failed") || run.stderr.contains("ip: command not found") {
        return skip("no namespaces for this user, or no `ip`");
    }
    let run = run.expect_code(0);
    assert!(run.stdout.contains("\"netduel.quick_test\""), "{}", run.stdout);
    bench.assert_nothing_left();
}

/// Opens connections from `source` that begin as TLS and say no more, as fast as the server accepts them, until `is_over`. Adds their
/// number to `opened`.
fn flood(server: SocketAddr, source: &str, is_over: &AtomicBool, opened: &AtomicUsize) {
    let bind: LocalBind = source.parse().unwrap();
    while !is_over.load(Ordering::Relaxed) {
        let batch: Vec<TcpStream> = (0..100)
            .map(|_| {
                let mut stream = tcp::connect(server, None, None, LIMIT, &bind).unwrap();
                // A server that has already closed it refuses the bytes.
                drop(stream.write_all(&[0x16, 3, 1]));
                stream
            })
            .collect();
        opened.fetch_add(batch.len(), Ordering::Relaxed);
        // It closes the first ones when it has accepted the last ones, so its accept queue has room for others.
        let mut first = &batch[0];
        first.set_read_timeout(Some(LIMIT)).unwrap();
        let is_closed = match first.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        assert!(is_closed, "an unpaired peer gets no response and no patience");
    }
}

#[test]
fn flood_from_one_address_keeps_no_client_of_another_address_out() {
    let server = Server::start(&[]);
    let (is_over, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let floods = [(); 2].map(|()| scope.spawn(|| flood(server.address, "127.0.0.2", &is_over, &opened)));
        // On a busy machine five clients may end before there is a flood, so there are more until it has its size.
        let mut ended: Vec<Finished> = Vec::new();
        while ended.len() < 5 || opened.load(Ordering::Relaxed) < FLOOD && ended.len() < 100 {
            ended.push(server.client(&["rr", "STRING", "-B", "127.0.0.1", "-t", "0.2", "-i", "0"]));
        }
        is_over.store(true, Ordering::Relaxed);
        for flood in floods {
            flood.join().unwrap();
        }
        let opened = opened.load(Ordering::Relaxed);
        assert!(opened >= FLOOD, "{opened} connections are no flood");
        for client in ended {
            client.expect_code(0);
        }
    });
    server.end();
}
