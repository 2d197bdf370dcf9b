//! Quick tests against a server under siege: `cargo xtask bench siege`. Pairs of a test without and a test with strangers at the port of
//! `netduel serve`: connections of TLS garbage, half-open handshakes, immediate closes, and garbage datagrams, from other addresses.
//! How far the figures move, and whether the server survives without a leak. Loopback in a network namespace of its own.
//!
//! Strangers and both ends share the cores of this machine, so an unpaced test loses what the strangers themselves use.
#[path = "support/stage.rs"]
mod stage;

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser as _;
use netduel_sys::clock::{monotonic_ns, sleep_until};
use netduel_sys::local_bind::LocalBind;
use netduel_sys::tcp;

/// Threads of strangers, each with its own part of the connections.
const STRANGERS: u64 = 2;
/// Half-open handshakes that a thread keeps open at a time.
const HALF_OPEN_MAX: usize = 200;
/// Time limit of a stranger's connection, and for the server to free the memory and descriptors of strangers.
const LIMIT: Duration = Duration::from_secs(60);
/// The server's address.
const SERVER: &str = "127.0.0.1";
/// Name and options of the tests.
const TESTS: [(&str, &[&str]); 2] = [("paced", &["-b", "200M"]), ("unpaced", &[])];

/// Quick tests with and without strangers at the server's port.
#[derive(Debug, clap::Parser)]
#[command(name = "siege", args_override_self = true)]
struct Arguments {
    /// Pairs of each test.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..1000))]
    pairs: u64,
    /// Seconds of each test.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..600))]
    seconds: u64,
    /// Connections of strangers in each test under siege, and as many datagrams.
    #[arg(long, default_value_t = 10_000)]
    connections: u64,
    /// Addresses of strangers, from 127.0.1.1.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=250))]
    addresses: u64,
    #[command(flatten)]
    start: stage::Start,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    stage::run(&arguments.start, || bench(&arguments))
}

fn bench(arguments: &Arguments) -> Result<bool> {
    let mut server = Server::start()?;
    // What the first client makes the server keep is no leak.
    server.test(1, &[])?;
    let before = server.resources()?;
    let mut refused = 0;
    for (name, options) in TESTS {
        let (mut quiet, mut besieged) = (Vec::new(), Vec::new());
        for pair in 0..arguments.pairs {
            // The order alternates, so that a trend of the machine cancels out.
            for with_siege in if pair % 2 == 0 { [false, true] } else { [true, false] } {
                if with_siege {
                    let (rate, count) = server.besieged_test(arguments, options)?;
                    besieged.push(rate);
                    refused += count;
                } else {
                    quiet.push(server.test(arguments.seconds, options)?);
                }
            }
            let at = pair as usize;
            println!(
                "siege: {name}, pair {}: {:.1} Mbit/s without, {:.1} Mbit/s under siege, ratio {:.3}",
                pair + 1,
                quiet[at] / 1e6,
                besieged[at] / 1e6,
                besieged[at] / quiet[at]
            );
        }
        let mut ratios: Vec<f64> =
            besieged.iter().zip(&quiet).map(|(with, without)| with / without).collect();
        ratios.sort_by(f64::total_cmp);
        println!("figure {name}-ratio-of-medians {:.4} ratio", median(&mut besieged) / median(&mut quiet));
        println!("figure {name}-ratio-min {:.4} ratio", ratios[0]);
        println!("figure {name}-ratio-max {:.4} ratio", ratios[ratios.len() - 1]);
        println!("figure {name}-without-siege {:.1} Mbit/s", median(&mut quiet) / 1e6);
        println!("figure {name}-under-siege {:.1} Mbit/s", median(&mut besieged) / 1e6);
    }
    let after = server.settled(before)?;
    println!("siege: the server has {before:?} before and {after:?} after");
    println!(
        "figure connections-of-strangers {} connections",
        arguments.connections * arguments.pairs * TESTS.len() as u64
    );
    println!("figure connections-that-failed {refused} connections");
    println!(
        "figure descriptors-leaked {} descriptors",
        after.descriptors.saturating_sub(before.descriptors)
    );
    println!("figure threads-leaked {} threads", after.threads.saturating_sub(before.threads));
    server.test(1, &[]).context("the server is besieged no more, and serves no client")?;
    server.end()?;
    Ok(after.descriptors <= before.descriptors && after.threads <= before.threads)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

/// What a process holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resources {
    descriptors: usize,
    threads: usize,
}

/// A standing server, and a client that is paired with it.
struct Server {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Server {
    fn start() -> Result<Self> {
        let folder = stage::folder("siege")?;
        let words = ["serve", "--json", "--ephemeral", "--bind", SERVER, "--port", "0"];
        // One line for each stranger that it turns away: they go to a file.
        let output = folder.join("serve.jsonl");
        let log = std::fs::File::create(&output).context("failed to make the log of the server")?;
        let child = command(&folder, &words).stdout(log).stderr(Stdio::null()).spawn();
        let child = child.context("failed to start the server")?;
        let ready = first_line(&output)?;
        let ready: serde_json::Value =
            serde_json::from_str(&ready).context("failed to read `serve --json`")?;
        let address = ready["address"].as_str().context("the server has no address")?.parse()?;
        let string = ready["pairings"][0]["string"].as_str().context("the server has no pairing string")?;
        let mut pair =
            command(&folder, &["pair", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        writeln!(pair.stdin.take().context("stdin is a pipe")?, "{string}")?;
        ensure!(pair.wait()?.success(), "failed to pair with the server");
        Ok(Self { child, folder, address })
    }

    /// The rate of one test, bit/s.
    fn test(&self, seconds: u64, options: &[&str]) -> Result<f64> {
        let (port, seconds) = (self.address.port().to_string(), seconds.to_string());
        let words = ["tcp", SERVER, "-p", &port, "-B", SERVER, "-i", "0", "-J", "-t", &seconds];
        let output = command(&self.folder, &[&words, options].concat()).output();
        let output = output.context("failed to start the client")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the paired client ended with {}: {errors}", output.status);
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).context("failed to read the result of the client")?;
        let metrics = document["tests"][0]["metrics"].as_array().context("the result has no metrics")?;
        let throughput = metrics.iter().find(|metric| metric["metric"] == "throughput");
        throughput.and_then(|metric| metric["value"].as_f64()).context("the result has no throughput")
    }

    /// As above under siege; also the number of connections of strangers that could not be made.
    fn besieged_test(&mut self, arguments: &Arguments, options: &[&str]) -> Result<(f64, u64)> {
        let (failed, address) = (AtomicU64::new(0), self.address);
        let addresses = arguments.addresses;
        let count = arguments.connections / STRANGERS;
        let pause_ns = arguments.seconds * 1_000_000_000 / count.max(1);
        let rate = std::thread::scope(|scope| {
            for stranger in 0..STRANGERS {
                let failed = &failed;
                scope.spawn(move || besiege(address, (stranger, addresses), count, pause_ns, failed));
            }
            self.test(arguments.seconds, options)
        });
        let rate = rate.context("under siege")?;
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended under siege: {status}");
        }
        Ok((rate, failed.into_inner()))
    }

    fn resources(&self) -> Result<Resources> {
        let count = |kind: &str| -> Result<usize> {
            let path = format!("/proc/{}/{kind}", self.child.id());
            Ok(std::fs::read_dir(&path).with_context(|| format!("failed to read {path}"))?.count())
        };
        Ok(Resources { descriptors: count("fd")?, threads: count("task")? })
    }

    /// What it holds when it has dropped the strangers, or at the time limit.
    fn settled(&self, before: Resources) -> Result<Resources> {
        let deadline_ns = monotonic_ns() + LIMIT.as_nanos() as u64;
        loop {
            let now = self.resources()?;
            let is_settled = now.descriptors <= before.descriptors && now.threads <= before.threads;
            if is_settled || monotonic_ns() > deadline_ns {
                return Ok(now);
            }
            sleep_until(monotonic_ns() + 10_000_000);
        }
    }

    fn end(mut self) -> Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netduel"));
    command.args(words).stdin(Stdio::null()).env("XDG_STATE_HOME", folder.join("state"));
    command
}

/// Waits for the first line of a file that another process writes.
fn first_line(path: &Path) -> Result<String> {
    let deadline_ns = monotonic_ns() + LIMIT.as_nanos() as u64;
    while monotonic_ns() < deadline_ns {
        let mut line = String::new();
        BufReader::new(std::fs::File::open(path)?).read_line(&mut line)?;
        if line.ends_with('\n') {
            return Ok(line);
        }
        sleep_until(monotonic_ns() + 2_000_000);
    }
    bail!("the server is not ready")
}

/// Opens connections to the server in even spacing from addresses in turn, a third of each kind, and sends it as many datagrams.
fn besiege(
    server: SocketAddr,
    (stranger, addresses): (u64, u64),
    count: u64,
    pause_ns: u64,
    failed: &AtomicU64,
) {
    let start = monotonic_ns();
    let garbage: Vec<u8> =
        (0..1200_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut half_open: VecDeque<TcpStream> = VecDeque::new();
    let datagrams = UdpSocket::bind("127.0.1.1:0");
    for number in 0..count {
        sleep_until(start + number * pause_ns);
        let address = format!("127.0.1.{}", 1 + (number * STRANGERS + stranger) % addresses);
        let stream = address
            .parse::<LocalBind>()
            .ok()
            .and_then(|bind| tcp::connect(server, None, None, LIMIT, &bind).ok());
        let length = 1 + (number as usize * 7) % garbage.len();
        if let Ok(socket) = &datagrams {
            // A refused datagram is no matter of the siege.
            let _ = socket.send_to(&garbage[..length], server);
        }
        let Some(mut stream) = stream else {
            failed.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        // A server that has closed the connection already refuses the bytes.
        match number % 3 {
            0 => drop(stream.write_all(&[&[0x16, 3, 1, 2, 0][..], &garbage[..512]].concat())),
            1 => {
                let _ = stream.write_all(&[0x16, 3, 1]);
                half_open.push_back(stream);
                if half_open.len() > HALF_OPEN_MAX {
                    half_open.pop_front();
                }
            }
            _ => drop(stream),
        }
    }
}
