//! Quick tests: a standing server in one guest of a lab, clients in the other, and unpaired clients.
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};

use netduel_test_support::not_compared;
use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::support::{Bench, Finished, assert_fits, signal, signal_those_left, wait_gone};

/// A lab with a server in guest `b`.
pub struct Served {
    bench: Bench,
    lab: String,
    server: Child,
    lines: BufReader<std::process::ChildStdout>,
    strings: Vec<(String, String)>,
}

impl Served {
    pub fn start(name: &str, options: &[&str]) -> Self {
        let bench = Bench::new();
        let lab = format!("{name}-{}", std::process::id());
        bench.run(["lab", "up", &lab, "--rules", "0"]).expect_code(0);
        bench.run(["lab", "path", "--lab", &lab, "accelerated"]).expect_code(0);
        let (server, lines, strings) = serve(&bench, &lab, options);
        Self { bench, lab, server, lines, strings }
    }

    /// The pairing string of an address, for example the IPv4 one.
    pub fn string(&self, ipv6: bool) -> &str {
        let (_, string) = self.strings.iter().find(|(host, _)| host.contains(':') == ipv6).unwrap();
        string
    }

    /// The IPv4 address of the server.
    pub fn address(&self) -> &str {
        let (host, _) = self.strings.iter().find(|(host, _)| !host.contains(':')).unwrap();
        host
    }

    pub fn client(&self, words: &[&str]) -> Finished {
        Finished::from(self.client_command(words).output().unwrap())
    }

    fn client_command(&self, words: &[&str]) -> std::process::Command {
        let exec = ["lab", "exec", "--lab", &self.lab, "a", "--", env!("CARGO_BIN_EXE_netduel")];
        self.bench.netduel(exec.iter().chain(words))
    }

    /// Selects the path between both guests.
    pub fn select_path(&self, path: &str) {
        self.bench.run(["lab", "path", "--lab", &self.lab, path]).expect_code(0);
    }

    /// The next line of the server's log.
    fn event(&mut self) -> Value {
        next_event(&mut self.lines)
    }

    pub fn end(mut self) {
        stop(&self.bench, Signal::TERM);
        assert_eq!(self.server.wait().unwrap().code(), Some(0));
        self.bench.run(["lab", "down", &self.lab]).expect_code(0);
        self.bench.assert_nothing_left();
    }
}

/// Sends a signal to the server.
fn stop(bench: &Bench, how: Signal) {
    for pid in programs(bench, &["serve", "--json"]) {
        signal(pid, how);
    }
}

/// Processes with these words, except the `lab exec` that wait for them.
fn programs(bench: &Bench, words: &[&str]) -> Vec<Pid> {
    let waiting = bench.find(&["lab", "exec"]);
    bench.find(words).into_iter().filter(|pid| !waiting.contains(pid)).collect()
}

fn next_event(lines: &mut impl std::io::BufRead) -> Value {
    let mut line = String::new();
    assert!(lines.read_line(&mut line).unwrap() > 0, "the server ended");
    let event = serde_json::from_str(&line).unwrap();
    assert_fits(&event);
    event
}

type Server = (Child, BufReader<std::process::ChildStdout>, Vec<(String, String)>);

fn serve(bench: &Bench, lab: &str, options: &[&str]) -> Server {
    let exec = ["lab", "exec", "--lab", lab, "b", "--", env!("CARGO_BIN_EXE_netduel"), "serve", "--json"];
    let mut command = bench.netduel(exec.iter().chain(options));
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    let ready = next_event(&mut lines);
    assert_eq!(ready["event"], "ready");
    let strings = ready["pairings"].as_array().unwrap().iter().map(|pairing| {
        (pairing["host"].as_str().unwrap().to_owned(), pairing["string"].as_str().unwrap().to_owned())
    });
    let strings = strings.collect();
    (server, lines, strings)
}

pub fn metric(document: &Value, key: &str) -> f64 {
    let metrics = document["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["metric"] == key);
    found.and_then(|metric| metric["value"].as_f64()).unwrap_or_else(|| panic!("no {key} in {document}"))
}

/// What an end of a test counted.
pub fn end_of<'a>(document: &'a Value, role: &str) -> &'a Value {
    let ends = document["ends"].as_array().unwrap();
    ends.iter().find(|end| end["role"] == role).unwrap_or_else(|| panic!("no {role} in {document}"))
}

/// A workload setting with its unit.
pub fn setting(document: &Value, key: &str) -> u64 {
    let quantities = document["workload"]["quantities"].as_array().unwrap();
    let found = quantities.iter().find(|quantity| quantity["key"] == key);
    let value = found.and_then(|quantity| quantity["value"].as_f64());
    value.unwrap_or_else(|| panic!("no {key} in {document}")) as u64
}

#[test]
fn automatic_placement_prints_the_selected_cores() {
    let served = Served::start("cores", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let auto = ["tcp", &string, "-t", "0.3", "--pin-client", "auto", "--pin-server", "auto", "-J"];
    let document = served.client(&auto).expect_code(0).quick_test();
    for role in ["client", "server"] {
        let end = end_of(&document, role);
        let core = &end["streams"][0]["core"];
        assert!(core.is_number() && end["placement"]["cores"] == serde_json::json!([core]), "{end}");
    }
    let text = served.client(&auto[..auto.len() - 1]).expect_code(0).stdout;
    assert!(text.contains("cores        client: ") && text.contains("cores        server: "), "{text}");
    let wrong = served.client(&["tcp", &string, "--pin-client", "near"]).expect_code(2);
    assert!(wrong.stderr.contains("or auto"), "{}", wrong.stderr);
    served.end();
}

#[test]
fn every_quick_test_works_over_one_port() {
    let mut served = Served::start("quick", &["--port", "0"]);
    for ipv6 in [false, true] {
        let string = served.string(ipv6).to_owned();
        // Longer than a stall of the machine: a response may come after it, and requests over UDP time out.
        for (words, key) in [
            (vec!["tcp", &string, "-t", "1", "-P", "2", "-J"], "throughput"),
            (vec!["tcp", &string, "-t", "1", "-b", "200M", "-R", "-J"], "throughput"),
            (vec!["tcp", &string, "-t", "1", "-b", "200M", "--bidir", "-J"], "throughput"),
            (vec!["udp", &string, "-t", "1", "-b", "20M", "-J"], "datagram-rate"),
            (vec!["tcp", &string, "-u", "-t", "1", "-b", "20M", "-R", "-J"], "datagram-rate"),
            (vec!["rr", &string, "-t", "1", "-J"], "latency-p50"),
            (vec!["rr", &string, "-t", "1", "-u", "-J"], "latency-p50"),
            (vec!["crr", &string, "-t", "1", "-J"], "latency-p50"),
        ] {
            let document = served.client(&words).expect_code(0).quick_test();
            assert!(metric(&document, key) > 0.0, "{words:?}: {document}");
            assert!(document["bottleneck"]["cause"].is_string(), "{document}");
            let event = served.event();
            assert_eq!(event["event"], "test", "{event}");
        }
    }
    // Paired now: the address is enough, and the string is stored in a private file.
    let known = served.client(&["pair", "--list"]).expect_code(0).stdout;
    let known = known.lines().find(|name| !name.starts_with('[')).unwrap().to_owned();
    let text = served.client(&["tcp", &known, "-t", "60", "-i", "0.1", "-n", "1M"]).expect_code(0).stdout;
    assert!(text.contains("1.05 MB") && text.contains("bottleneck"), "{text}");
    for engine in ["zerocopy", "io-uring"] {
        let words = ["tcp", &known, "-t", "60", "-n", "1M", "--engine", engine];
        let text = served.client(&words).expect_code(0).stdout;
        // veth copies, and the output shows it.
        assert!(text.contains(&format!("{engine} engine")), "{text}");
        assert!(
            text.contains("zero copy    client: ") && text.contains("sends were copied by the kernel"),
            "{text}"
        );
    }
    let lines = served.client(&["rr", &known, "-t", "2", "-i", "0.1", "--json-stream"]).expect_code(0).stdout;
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    events.iter().for_each(assert_fits);
    assert_eq!((&events[0]["event"], &events[events.len() - 1]["event"]), (&"start".into(), &"end".into()));
    let counted: u64 = events.iter().filter_map(|event| event["interval"]["messages"].as_u64()).sum();
    let test = &events[events.len() - 1]["test"];
    let responses = &end_of(test, "client")["round_trips"]["responses"];
    assert_eq!(Some(counted), responses.as_u64(), "{lines}");
    // The warnings of standard error are in the document, too.
    let warnings = test["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["kind"] == "shared-machine"), "{lines}");
    let printed =
        events.iter().filter_map(|event| event["interval"]["round_trips"]["count"].as_u64()).sum::<u64>();
    // The figures may lack the last tenth of a second, which the result includes.
    assert!(printed > 0 && printed <= counted, "{lines}");
    let text = served
        .client(&["udp", &known, "-t", "60", "-n", "1M", "-b", "20M", "-i", "0.1"])
        .expect_code(0)
        .stdout;
    // Lines are wrapped at spaces.
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["lost", "1 MiB total", "the volume ended the test"] {
        assert!(words.contains(part), "no `{part}`: {text}");
    }
    // The lab's routes set cubic, which must not override the option.
    for command in ["tcp", "rr", "crr"] {
        let text =
            served.client(&[command, &known, "-t", "0.3", "-i", "0", "-C", "reno"]).expect_code(0).stdout;
        let row = text
            .lines()
            .map(str::trim_start)
            .find(|line| line.starts_with("congestion") || line.starts_with("TCP"));
        assert!(row.is_some_and(|row| row.ends_with("reno")), "{command}: {text}");
    }
    let text = served.client(&["rr", &known, "-t", "0.5", "-i", "0", "--timestamps"]).expect_code(0).stdout;
    assert!(text.contains("network, both ways"), "{text}");
    served.end();
}

#[test]
fn share_of_a_stated_limit_is_printed() {
    let served = Served::start("limit", &["--port", "0"]);
    let known = served.string(false).to_owned();
    // The summary shows the share of a stated limit. A quarter of the limit or less is not a reached cap.
    let words = ["tcp", &known, "-t", "0.3", "-i", "0", "-b", "100M", "--expect-mbps", "400"];
    let text = served.client(&words).expect_code(0).stdout;
    assert!(text.contains("limit share") && text.contains("of payload of 400 Mbit/s"), "{text}");
    let document = served.client(&[&words[..], &["-J"]].concat()).expect_code(0).quick_test();
    assert_eq!(document["expected"]["rate_bps"], 4e8, "{document}");
    served.client(&["tcp", &known, "--expect-mbps", "0"]).expect_code(2);
    served.end();
}

#[test]
fn unpaired_clients_get_nothing_and_block_no_other_client() {
    let mut served = Served::start("strangers", &["--port", "0"]);
    let string = served.string(false).to_owned();
    served.client(&["pair", &string]).expect_code(0);
    let known = served.client(&["pair", "--list"]).expect_code(0).stdout.trim().to_owned();
    let (host, port) = known.rsplit_once(':').unwrap();
    // Unpaired clients of all kinds, started first and left open, in the client's namespace.
    let script = format!(
        "for i in $(seq 80); do exec {{fd}}<>/dev/tcp/{host}/{port}; printf '\\x16\\x03' >&$fd; done; echo open; read line; \
         exec 3<>/dev/tcp/{host}/{port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3; echo end"
    );
    let mut strangers = served
        .bench
        .netduel(["lab", "exec", "--lab", &served.lab, "a", "--", "bash", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(strangers.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "open\n");
    served.client(&["tcp", &known, "-t", "0.2", "-i", "0"]).expect_code(0);
    strangers.stdin.take().unwrap().write_all(b"\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "end\n", "a stranger was answered");
    strangers.wait().unwrap();

    let cut = &string[..string.len() - 3];
    let error = served.client(&["tcp", cut]).expect_code(2).stderr;
    assert!(error.contains("incomplete") && !error.contains(cut), "{error}");
    // The same server with another identity: neither its certificate nor its secret is known.
    stop(&served.bench, Signal::TERM);
    served.server.wait().unwrap();
    let (server, lines, strings) = serve(&served.bench, &served.lab, &["--port", port, "--new-identity"]);
    (served.server, served.lines) = (server, lines);
    let error = served.client(&["tcp", &known, "-t", "0.2"]).expect_code(4).stderr;
    assert!(error.contains("not the one that was paired"), "{error}");
    served.strings = strings;
    let string = served.string(false).to_owned();
    served.client(&["tcp", &string, "-t", "0.2"]).expect_code(0);
    served.end();
}

#[test]
fn violated_server_rule_is_named() {
    let mut served = Served::start(
        "rules",
        &["--port", "0", "--max-rate", "10M", "--max-duration", "2", "--max-streams", "4"],
    );
    let string = served.string(false).to_owned();
    for (words, rule) in [
        (vec!["tcp", &string, "-t", "0.2"], "--max-rate"),
        (vec!["udp", &string, "-t", "0.2", "-b", "11M"], "--max-rate"),
        (vec!["rr", &string, "-t", "3"], "--max-duration"),
        (vec!["tcp", &string, "-t", "0.2", "-b", "1M", "-P", "5"], "--max-streams"),
    ] {
        let error = served.client(&words).stderr;
        assert!(error.contains(rule), "{words:?}: {error}");
        assert_eq!(served.event()["event"], "refused");
    }
    served.client(&["tcp", &string, "-t", "0.2", "-b", "5M"]).expect_code(0);
    served.end();
}

#[test]
fn killed_client_or_server_does_not_affect_the_other() {
    let served = Served::start("killed", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let start = || {
        let words = ["tcp", &string, "-t", "60", "-i", "0.1", "--json-stream"];
        let mut command = served.client_command(&words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while next_event(&mut lines)["interval"]["bytes"].as_u64().unwrap_or(0) == 0 {}
        (child, lines)
    };
    let (mut client, lines) = start();
    let victims = programs(&served.bench, &["tcp", "-t", "60"]);
    assert!(!victims.is_empty());
    signal_those_left(victims.iter().copied(), Signal::KILL);
    assert!(victims.into_iter().all(wait_gone));
    client.wait().unwrap();
    drop(lines);
    served.client(&["tcp", &string, "-t", "0.2"]).expect_code(0);

    let (mut client, mut lines) = start();
    // A client whose pipe is full waits for its reader.
    let rest = std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    stop(&served.bench, Signal::KILL);
    let mut error = String::new();
    client.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(4), "{error}");
    rest.join().unwrap().unwrap();
    let expected = ["failed after ", "had arrived at the server", "it was stopped or killed"];
    assert!(expected.iter().all(|words| error.contains(words)), "{error}");
    let internal = ["vanished", "agent", "exit status"];
    assert!(!internal.iter().any(|words| error.contains(words)), "{error}");
    let Served { bench, lab, mut server, .. } = served;
    server.wait().unwrap();
    bench.run(["lab", "down", &lab]).expect_code(0);
    bench.assert_nothing_left();
}

#[test]
fn interrupted_test_prints_its_measured_values() {
    let served = Served::start("stopped", &["--port", "0"]);
    let words = ["tcp", served.string(false), "-t", "60", "-i", "0.1", "--json-stream"];
    let mut client =
        served.client_command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(client.stdout.take().unwrap());
    assert_eq!(next_event(&mut lines)["event"], "start");
    // On a busy machine the first intervals may be empty.
    let mut intervals = std::iter::repeat_with(|| next_event(&mut lines));
    assert!(intervals.by_ref().take(400).skip(1).any(|line| line["interval"]["bytes"].as_u64() > Some(0)));
    for pid in programs(&served.bench, &["tcp", "-t", "60"]) {
        signal(pid, Signal::INT);
    }
    let end =
        std::iter::repeat_with(|| next_event(&mut lines)).find(|line| line["event"] != "interval").unwrap();
    assert_fits(&end);
    let error = &end["error"];
    assert_eq!((end["event"].as_str(), error["exit_code"].as_i64()), (Some("failed"), Some(130)), "{end}");
    assert!(error["message"].as_str().unwrap().contains("had arrived at the server"), "{end}");
    let mut error = String::new();
    client.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert_eq!(client.wait().unwrap().code(), Some(130), "{error}");
    assert!(error.contains("stopped by the user") && error.contains("on average"), "{error}");

    let document = served.client(&["tcp", "far.invalid", "-J"]).expect_code(10).json();
    let error = &document["error"];
    assert!(error["message"].as_str().unwrap().contains("no pairing"), "{document}");
    assert!(error["message"].as_str().unwrap().contains("netduel serve"), "{document}");
    // The excluded warm-up is added to the duration.
    let whole = served.client(&["tcp", served.string(false), "-t", "0.2", "-O", "0.1", "-i", "0", "-J"]);
    let document = whole.expect_code(0).quick_test();
    assert_eq!(document["workload"]["duration_ns"], 300_000_000, "{document}");
    assert_eq!(document["workload"]["warmup_ns"], 100_000_000, "{document}");
    served.end();
}

#[test]
fn concurrent_tests_are_served_and_reported() {
    let served = Served::start("many", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let words = ["udp", &string, "-t", "3", "-b", "1M", "-J"];
    let clients: Vec<Child> =
        (0..8).map(|_| served.client_command(&words).stdout(Stdio::piped()).spawn().unwrap()).collect();
    let documents: Vec<Value> = clients
        .into_iter()
        .map(|client| Finished::from(client.wait_with_output().unwrap()).expect_code(0).quick_test())
        .collect();
    for document in &documents {
        assert!(metric(document, "throughput") > 0.0);
    }
    let others = |document: &Value| end_of(document, "server")["concurrent_tests"].as_u64();
    assert!(documents.iter().filter_map(others).max() >= Some(1), "{documents:?}");
    served.end();
}

#[test]
fn port_in_use_and_missing_host_are_reported_with_the_remedy() {
    let bench = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error =
        bench.run(["serve", "--ephemeral", "--bind", "127.0.0.1", "--port", &port]).expect_code(3).stderr;
    assert!(error.contains("the port is in use") && error.contains("--port"), "{error}");
    let error = bench.run(["tcp", "far.invalid"]).expect_code(10).stderr;
    assert!(error.contains("no pairing") && error.contains("netduel serve"), "{error}");
    for words in [["tcp", "h", "-n", "9223372036854775808"], ["tcp", "h", "-t", "0"], ["udp", "h", "-l", "0"]]
    {
        bench.run(words).expect_code(2);
    }
}

#[track_caller]
fn assert_all_connected(document: &Value) {
    let client = end_of(document, "client");
    assert_eq!(client["connections"]["connect"]["count"], 2_000, "{}", client["connections"]);
    assert_eq!(client["fairness"]["count"], 2_000);
    let groups = client["streams"].as_array().unwrap();
    assert_eq!(groups.iter().map(|group| group["members"].as_u64().unwrap_or(1)).sum::<u64>(), 2_000);
}

#[test]
fn thousands_of_connections_work_and_missing_ports_or_descriptors_are_reported() {
    let served = Served::start("thousands", &["--port", "0"]);
    let string = served.string(false).to_owned();
    // More than the usual 1024 descriptors.
    let many = ["tcp", &string, "-P", "2000", "-t", "0.5", "-i", "0", "-J"];
    let finished = served.client(&many);
    if finished.code != Some(0) && finished.stderr.contains("no answer; a firewall") {
        not_compared("this machine did not make 2000 connections within the 10 s of a client");
    } else {
        assert_all_connected(&finished.expect_code(0).quick_test());
    }
    let inside = |script: &str| {
        let words = ["lab", "exec", "--lab", &served.lab, "a", "--", "sh", "-c", script];
        Finished::from(served.bench.netduel(words).output().unwrap())
    };
    let netduel = env!("CARGO_BIN_EXE_netduel");
    let test = format!("exec {netduel} tcp {string} -P 100 -t 0.2 -i 0");
    // 100 connections exhaust the descriptors, one does not.
    let error = inside(&format!("ulimit -n 90; {test}")).expect_code(3).stderr;
    assert!(error.contains("descriptors") && error.contains("LimitNOFILE"), "{error}");
    inside(&format!("ulimit -n 90; exec {netduel} rr {string} -t 0.2 -i 0")).expect_code(0);
    inside("echo 40000 40049 > /proc/sys/net/ipv4/ip_local_port_range").expect_code(0);
    let error = inside(&test).expect_code(3).stderr;
    assert!(error.contains("net.ipv4.ip_local_port_range of this host is 40000 to 40049"), "{error}");
    served.end();
}

#[test]
fn bit_rate_is_per_stream_and_saved_tests_have_tags_but_no_secret() {
    let served = Served::start("saved", &["--port", "0"]);
    let string = served.string(false).to_owned();
    let bulk = ["tcp", &string, "-t", "0.2", "-P", "2", "-b", "10M"];
    let saved = [&bulk[..], &["-J", "--save", "--title", "two streams", "--note", "kernel=6.8"]].concat();
    let document = served.client(&saved).expect_code(0).quick_test();
    assert_eq!(setting(&document, "rate"), 20_000_000, "{document}");
    let runs = served.bench.run(["runs", "--json"]).expect_code(0).json();
    let run = &runs["runs"][0];
    assert_eq!(document["run"], run["id"]);
    assert_eq!((&run["title"], &run["notes"][0]["value"]), (&"two streams".into(), &"6.8".into()));
    let listed = served.bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("two streams  kernel=6.8"), "{listed}");
    // Otherwise a reader of the stored run could run tests as this user.
    let file = std::fs::read_to_string(run["path"].as_str().unwrap()).unwrap();
    assert!(!file.contains(&string) && file.contains("# netduel tcp ") | file.contains("\"tcp\""), "{file}");

    // The report names the run, and repeats it by its own command: there is no plan to save.
    let report = served.bench.run(["report", "last"]).expect_code(0).stdout;
    assert!(report.contains("two streams, ") && report.contains(run["id"].as_str().unwrap()), "{report}");
    let page = served.bench.run(["report", "last", "--format", "md"]).expect_code(0).stdout;
    assert!(page.contains("-P 2 -b 10M") && !page.contains("netduel run "), "{page}");

    let text = served.client(&bulk).expect_code(0).stdout;
    assert!(
        text.lines().next().unwrap().contains("at 20 Mbit/s") && text.contains("(10 Mbit/s per stream)"),
        "{text}"
    );
    let quiet = served.client(&[&bulk[..], &["-i", "0.1", "-q"]].concat()).expect_code(0).stdout;
    assert!(
        !quiet.contains("interval") && quiet.starts_with("server 1") && quiet.contains("throughput"),
        "{quiet}"
    );
    let untagged = served.client(&[&bulk[..], &["--title", "x"]].concat()).expect_code(2);
    assert!(untagged.stderr.contains("--save"), "{}", untagged.stderr);
    served.end();
}
