//! A standing server on its own: who gets in and who does not, what it tells, what it keeps, and how it ends. On loopback, or
//! in a namespace of its own.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::{Value, json};

use crate::support::{Bench, Finished, assert_fits, signal, skip, wait_gone};

/// Longer than any limit of a server for those whom it does not know.
const LIMIT: Duration = Duration::from_secs(60);

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

    fn start_in(bench: Bench, options: &[&str]) -> Self {
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

    /// A client whose traffic runs, for a minute when nothing comes between.
    fn running_client(&self) -> Child {
        let mut child = self.spawn(&["tcp", "STRING", "-b", "1M", "-t", "60", "-i", "0.1", "--json-stream"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        for event in ["start", "interval"] {
            assert_eq!(next_event(&mut lines).expect("traffic runs")["event"], event);
        }
        // Not closed, or the client would write to a pipe without a reader.
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

    /// What a stranger who says this, and then nothing more, is answered.
    fn answer_to(&self, words: &[u8], ends: bool) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(words).unwrap();
        if ends {
            // A server that has closed it already has answered.
            let _ = stream.shutdown(Shutdown::Write);
        }
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // Closed with something unread: the kernel says so by a reset.
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
fn who_does_not_know_the_secret_gets_no_byte_whatever_it_says() {
    let server = Server::start(&["--ephemeral"]);
    let said: [(&str, &[u8]); 6] = [
        ("nothing", b""),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n"),
        ("a record that is none", &[0x16, 3, 1, 0xff, 0xff, 1, 2, 3]),
        ("a greeting of data that is none", &[b'N'; 48]),
        ("zeros", &[0; 4096]),
    ];
    for (what, words) in said {
        assert_eq!(server.answer_to(words, true), b"", "{what}");
    }
    // Begun and not gone on with, all at a time: each is closed when its time is over.
    std::thread::scope(|scope| {
        for words in [&[0x16, 3, 1][..], b"N", b"G", &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]] {
            let server = &server;
            scope.spawn(move || assert_eq!(server.answer_to(words, false), b"", "{words:?}"));
        }
        server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    });
    server.end();
}

/// A certificate that is shown to whoever speaks TLS 1.3 is all that a stranger gets; of older versions not even that.
#[test]
fn other_programs_that_speak_tls_are_told_nothing() {
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
        // It may have gone before it reads what it is told to send.
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
fn twenty_clients_are_served_at_a_time() {
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
fn a_client_beyond_the_most_is_told_so_and_one_that_is_killed_frees_its_place() {
    let mut server = Server::start(&["--ephemeral", "--max-clients", "1"]);
    let mut first = server.running_client();
    let error = server.client(&["rr", "STRING", "-t", "0.2"]).expect_code(4).stderr;
    assert!(error.contains("the limit of its") && error.contains("--max-clients"), "{error}");
    assert_eq!(server.event()["event"], "refused");
    for pid in server.bench.find(&["tcp", "-t", "60"]) {
        signal(pid, Signal::KILL);
        assert!(wait_gone(pid));
    }
    first.wait().unwrap();
    assert_eq!(server.event()["event"], "failed");
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    server.end();
}

#[test]
fn clients_of_a_server_that_is_stopped_are_told_why_their_test_has_no_result() {
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
fn a_server_that_is_stopped_in_its_tracks_is_told_from_one_that_answers() {
    let mut server = Server::start(&["--ephemeral"]);
    let client = server.running_client();
    signal(Pid::from_child(&server.child), Signal::STOP);
    // Long before the minute that the test was to take is over.
    let client = Finished::from(client.wait_with_output().unwrap()).expect_code(4);
    assert!(client.stderr.contains("has sent nothing for"), "{}", client.stderr);
    signal(Pid::from_child(&server.child), Signal::CONT);
    assert_eq!(server.event()["event"], "failed");
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    server.end();
}

#[test]
fn a_server_for_one_test_ends_after_it_and_not_after_one_that_it_refused() {
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
fn a_pairing_outlives_its_server_until_a_new_identity_is_asked_for() {
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
fn an_identity_that_others_may_read_is_not_used() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Server::start(&[]).end();
    let path = bench.path().join("state/netduel/serve/identity.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = bench.run(["serve", "--bind", "127.0.0.1", "--port", "0"]).expect_code(3).stderr;
    assert!(error.contains("identity.json") && error.contains("--new-identity"), "{error}");
    bench.assert_nothing_left();
}

/// Says something to a server in place of a client's coordinator, and gives what is answered and how it ends.
fn conversation(server: &Server, lines: &[Value]) -> Finished {
    server.bench.run(["pair", &server.string]).expect_code(0);
    let mut link = server.bench.netduel(["link", &server.address.to_string()]);
    let mut link = link.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = link.stdin.take().unwrap();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    // Kept open: it is the server that ends.
    let finished = Finished::from(link.wait_with_output().unwrap());
    drop(input);
    finished
}

#[test]
fn a_client_of_another_version_hears_what_the_server_is() {
    let mut server = Server::start(&["--ephemeral"]);
    let hello = json!({ "type": "hello", "protocol": 99, "program": "netduel 9.9.9", "tongue": "another" });
    let told = conversation(&server, &[hello]);
    let answer: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(answer["type"], "hello");
    assert!(answer["protocol"].is_u64() && answer["program"].is_string(), "{answer}");
    let why = server.event()["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("netduel 9.9.9") && why.contains("install the same version"), "{why}");
    server.end();
}

#[test]
fn a_client_that_says_nothing_does_not_keep_its_place() {
    let mut server = Server::start(&["--ephemeral", "--idle-timeout", "1"]);
    let day = "86400 s";
    let limits = json!({ "total": day, "idle": day });
    let other = json!({ "type": "hello", "protocol": 99, "program": "asks for the version" });
    let answer: Value = serde_json::from_str(&conversation(&server, &[other]).stdout).unwrap();
    assert_eq!(server.event()["event"], "refused");
    let protocol = &answer["protocol"];
    let hello = json!({ "type": "hello", "protocol": protocol, "program": "patient", "limits": limits });
    let told = conversation(&server, &[hello]).expect_code(4);
    assert!(told.stderr.contains("--idle-timeout"), "{}", told.stderr);
    let why = server.event()["reason"].as_str().unwrap().to_owned();
    assert!(why.contains("the next request was awaited"), "{why}");
    server.end();
}

#[test]
fn a_host_that_has_ipv6_alone_serves_and_is_reached() {
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
