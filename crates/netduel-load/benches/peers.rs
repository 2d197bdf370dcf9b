//! Our engines against iperf3 and sockperf: two namespaces with one veth between them, interleaved pairs, ratios.
//! `cargo bench -p netduel-load [-- PAIRS]`. Needs root, `ip`, iperf3 and sockperf; absolute figures hold for one machine
//! and moment only, so none is printed without its peer's.
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use netduel_load::{prepare_client, prepare_server};
use netduel_model::ids::{Token, WorkloadName};
use netduel_model::sample::EndReport;
use netduel_model::units::{Bytes, Nanos};
use netduel_model::workload::{
    Direction, Family, RoundTrip, TcpEngine, Timing, Traffic, UdpOffload, Wait, Workload,
};
use netduel_sys::clock;

type Failure = Box<dyn std::error::Error>;

const TOKEN: Token = Token(*b"peers bench 0001");
const SECONDS: u64 = 2;
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 78, 0, 2));

fn workload(kind: &str) -> Workload {
    let stream = |streams, engine, kib: u64| Traffic::TcpStream {
        streams,
        direction: Direction::Up,
        block: Bytes(kib * 1024),
        engine,
        congestion: Some("cubic".to_owned()),
    };
    let messages = |wait| RoundTrip { size: Bytes(14), outstanding: 1, wait, rate: None };
    let traffic = match kind {
        "lean-1" => stream(1, TcpEngine::Lean, 1024),
        "lean-8" => stream(8, TcpEngine::Lean, 1024),
        "copy-1" => stream(1, TcpEngine::Copy, 256),
        "rr-block" => Traffic::TcpRr(messages(Wait::Block)),
        "rr-spin" => Traffic::TcpRr(messages(Wait::Spin)),
        "udp-64" => Traffic::UdpStream {
            flows: 1,
            direction: Direction::Up,
            size: Bytes(64),
            rate: None,
            offload: UdpOffload::None,
        },
        _ => panic!("no workload is named {kind}"),
    };
    let timing = Timing {
        duration: Nanos::from_millis(SECONDS * 1000),
        warmup: Nanos::from_millis(200),
        cooldown: Nanos(0),
    };
    Workload {
        name: WorkloadName::new(kind).expect("a constant name"),
        traffic,
        timing,
        family: Family::Ipv4,
        pin_client: Vec::new(),
        pin_server: Vec::new(),
        metrics: Vec::new(),
    }
}

/// One end in a process of its own: ports go out and `finish` comes in on stdio, then three figures go out.
fn run_end(role: &str, kind: &str, ports: &[u16]) -> Result<(), Failure> {
    let workload = workload(kind);
    let running = if role == "server" {
        let end = prepare_server(&workload, SERVER, TOKEN)?;
        println!("{}", end.ports().iter().map(u16::to_string).collect::<Vec<_>>().join(" "));
        end.start(Box::new(|| ()))
    } else {
        let end = prepare_client(&workload, SERVER, ports, TOKEN, Duration::from_secs(5))?;
        end.start(Box::new(|| ()))
    };
    if role == "server" {
        std::io::stdin().lock().read_line(&mut String::new())?;
        running.finish();
    }
    let report = running.join()?;
    let flow = if role == "server" { report.received.clone() } else { report.sent.clone() };
    let bytes = flow.as_ref().map_or(0, |flow| flow.bytes);
    println!("{bytes} {} {}", report.process_cpu_ns.0 + report.process_cpu_ns.1, median_ns(&report));
    Ok(())
}

fn median_ns(report: &EndReport) -> u64 {
    let Some(trips) = &report.round_trips else { return 0 };
    let mut below = 0;
    for (value, count) in &trips.histogram.pairs {
        below += count;
        if below * 2 >= trips.histogram.count {
            return *value;
        }
    }
    0
}

/// Two namespaces, gone when dropped.
struct Spaces([String; 2]);

impl Spaces {
    fn new() -> Result<Self, Failure> {
        let names = ["a", "b"].map(|side| format!("netduel-bench-{}-{side}", std::process::id()));
        let spaces = Self(names);
        let [a, b] = &spaces.0;
        let lines = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("link add veth0 netns {a} type veth peer name veth0 netns {b}"),
            format!("-n {a} address add 10.78.0.1/24 dev veth0"),
            format!("-n {b} address add 10.78.0.2/24 dev veth0"),
            format!("-n {a} link set veth0 up"),
            format!("-n {b} link set veth0 up"),
            format!("-n {b} link set lo up"),
        ];
        for line in lines {
            let status = Command::new("ip").args(line.split(' ')).status()?;
            if !status.success() {
                return Err(format!("failed to run `ip {line}`; root is needed").into());
            }
        }
        Ok(spaces)
    }

    fn command(&self, side: usize, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[side], program]).args(arguments);
        command
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Figures of one run: what was received in bit/s, CPU seconds of both ends per gigabyte, median round trip.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    rate_bps: f64,
    cpu_per_gigabyte: f64,
    median_ns: f64,
}

fn figures_line(child: &mut Child, reader: &mut impl BufRead) -> Result<Vec<f64>, Failure> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let numbers = line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    child.wait()?;
    if numbers.len() == 3 { Ok(numbers) } else { Err("an end gave no figures".into()) }
}

fn ours(spaces: &Spaces, kind: &str) -> Result<Figures, Failure> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program is not Unicode")?;
    let mut server = spaces
        .command(1, program, &["--end", "server", kind])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut from_server = BufReader::new(server.stdout.take().ok_or("stdout was piped")?);
    let mut ports = String::new();
    from_server.read_line(&mut ports)?;
    let mut arguments = vec!["--end", "client", kind];
    arguments.extend(ports.split_whitespace());
    let mut client = spaces.command(0, program, &arguments).stdout(Stdio::piped()).spawn()?;
    let mut from_client = BufReader::new(client.stdout.take().ok_or("stdout was piped")?);
    let client = figures_line(&mut client, &mut from_client)?;
    server.stdin.take().ok_or("stdin was piped")?.write_all(b"finish\n")?;
    let server = figures_line(&mut server, &mut from_server)?;
    Ok(Figures {
        rate_bps: server[0] * 8.0 / SECONDS as f64,
        cpu_per_gigabyte: (server[1] + client[1]) / 1e9 / (server[0] / 1e9),
        median_ns: client[2],
    })
}

fn iperf3(spaces: &Spaces, options: &[&str]) -> Result<Figures, Failure> {
    let mut server = spaces.command(1, "iperf3", &["-s", "-1"]).stdout(Stdio::null()).spawn()?;
    wait_for_listener(&server, 5201)?;
    let seconds = SECONDS.to_string();
    let mut arguments = vec!["-c", "10.78.0.2", "-J", "-t", &seconds];
    arguments.extend(options);
    let output = spaces.command(0, "iperf3", &arguments).output()?;
    server.wait()?;
    let text = String::from_utf8(output.stdout)?;
    let end = text.rfind("\"end\":\t{").map(|at| &text[at..]).ok_or("iperf3 gave no result")?;
    let received = end
        .rfind("\"sum_received\"")
        .or_else(|| end.rfind("\"sum\""))
        .ok_or_else(|| format!("iperf3 gave no sum: {end}"))?;
    let bytes = number_after(&end[received..], "\"bytes\"")?;
    let busy = number_after(end, "\"host_total\"")? + number_after(end, "\"remote_total\"")?;
    Ok(Figures {
        rate_bps: number_after(&end[received..], "\"bits_per_second\"")?,
        cpu_per_gigabyte: busy / 100.0 * SECONDS as f64 / (bytes / 1e9),
        median_ns: 0.0,
    })
}

fn sockperf(spaces: &Spaces, options: &[&str]) -> Result<Figures, Failure> {
    let arguments = ["server", "--tcp", "-i", "10.78.0.2"];
    let arguments: Vec<&str> = arguments.iter().chain(options).copied().collect();
    let mut server = spaces.command(1, "sockperf", &arguments).stdout(Stdio::null()).spawn()?;
    wait_for_listener(&server, 11_111)?;
    let seconds = SECONDS.to_string();
    let mut arguments =
        vec!["ping-pong", "--tcp", "-i", "10.78.0.2", "-m", "14", "-t", &seconds, "--full-rtt"];
    arguments.extend(options);
    let output = spaces.command(0, "sockperf", &arguments).output()?;
    server.kill()?;
    server.wait()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line =
        text.lines().find(|line| line.contains("percentile 50.000")).ok_or("sockperf gave no median")?;
    let micros: f64 = line.rsplit('=').next().unwrap_or_default().replace("\u{1b}[0m", "").trim().parse()?;
    Ok(Figures { median_ns: micros * 1000.0, ..Figures::default() })
}

/// Waits until a port listens in the server's namespace: the peers do not say so in time when their output is a pipe.
fn wait_for_listener(server: &Child, port: u16) -> Result<(), Failure> {
    // State 0A is LISTEN (include/net/tcp_states.h); `ip netns exec` becomes the program, so its view is the namespace's.
    let local = format!(":{port:04X} ");
    let deadline = clock::monotonic_ns() + 10_000_000_000;
    while clock::monotonic_ns() < deadline {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", server.id()))?;
        for table in if name.trim() == "ip" { &[][..] } else { &["tcp", "tcp6"][..] } {
            let text = std::fs::read_to_string(format!("/proc/{}/net/{table}", server.id()))?;
            if text.lines().any(|line| line.contains(&local) && line.contains(" 0A ")) {
                return Ok(());
            }
        }
        clock::sleep_until(clock::monotonic_ns() + 2_000_000);
    }
    Err(format!("nothing listens on port {port}").into())
}

fn number_after(text: &str, key: &str) -> Result<f64, Failure> {
    let at = text.find(key).ok_or_else(|| format!("no {key}"))?;
    let rest = text[at + key.len()..].trim_start_matches([':', ' ', '\t']);
    let end = rest.find([',', '\n', '}']).unwrap_or(rest.len());
    Ok(rest[..end].trim().parse()?)
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:.2} [{first:.2}-{last:.2}]", values[values.len() / 2])
}

fn compare(
    name: &str,
    pairs: usize,
    mut mine: impl FnMut() -> Result<Figures, Failure>,
    mut peer: impl FnMut() -> Result<Figures, Failure>,
) -> Result<(), Failure> {
    let (mut rates, mut costs, mut medians) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        // The order alternates, so that neither is always the one after a pause.
        let (left, right) = if pair % 2 == 0 {
            (mine()?, peer()?)
        } else {
            let other = peer()?;
            (mine()?, other)
        };
        rates.push(left.rate_bps / right.rate_bps);
        costs.push(left.cpu_per_gigabyte / right.cpu_per_gigabyte);
        medians.push(left.median_ns / right.median_ns);
    }
    if name.starts_with("rr") {
        println!("{name}: p50 x {}", spread(medians));
    } else {
        println!("{name}: bit/s x {}, CPU/GB x {}", spread(rates), spread(costs));
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, role, kind, ports @ ..] = arguments.as_slice()
        && flag == "--end"
    {
        let ports = ports.iter().map(|port| port.parse()).collect::<Result<Vec<u16>, _>>()?;
        return run_end(role, kind, &ports);
    }
    let pairs = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(5);
    let spaces = Spaces::new()?;
    let streams = |options: &'static [&'static str]| {
        let spaces = &spaces;
        move || iperf3(spaces, options)
    };
    let run = |kind: &'static str| {
        let spaces = &spaces;
        move || ours(spaces, kind)
    };
    compare("lean, 1 stream, to iperf3", pairs, run("lean-1"), streams(&["-C", "cubic"]))?;
    compare("lean, 1 stream, to iperf3 -Z", pairs, run("lean-1"), streams(&["-C", "cubic", "-Z"]))?;
    compare("lean, 8 streams, to iperf3 -P 8", pairs, run("lean-8"), streams(&["-C", "cubic", "-P", "8"]))?;
    compare("copy, 1 stream, to iperf3", pairs, run("copy-1"), streams(&["-C", "cubic"]))?;
    compare("udp, 64 B, to iperf3 -u", pairs, run("udp-64"), streams(&["-u", "-b", "0", "-l", "64"]))?;
    compare("rr, blocking, to sockperf", pairs, run("rr-block"), || sockperf(&spaces, &[]))?;
    compare("rr, spinning, to sockperf --nonblocked", pairs, run("rr-spin"), || {
        sockperf(&spaces, &["--nonblocked"])
    })?;
    Ok(())
}
