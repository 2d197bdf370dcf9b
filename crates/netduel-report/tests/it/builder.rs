//! Builds synthetic runs from a recipe and a seed, for tests and the example; nothing is measured here.
//!
//! Long because: the parts of a run refer to each other, and two files would separate them.
use std::collections::BTreeMap;

use netduel_model::metric::Metric;
use netduel_model::observation::{CoreTime, InterfaceDelta, Observation, ProcessUsage, Softnet};
use netduel_model::plan::spec::{LabPath, Side};
use netduel_model::plan::{Arm, Design, Host, Launch, Pair, ResolvedPlan, Treatment, TreatmentAction};
use netduel_model::run::{Annotations, Run, RunEnd, RunHeader};
use netduel_model::sample::{
    DatagramReport, EndReport, Flow, IntervalSample, RoundTripReport, RoundTripSample, StreamReport, TcpInfo,
    TransactionParts, UnderLoad,
};
use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::trial::{PathProof, Slot, Trial, TrialEnd, Validity};
use netduel_model::units::{Bytes, Nanos, PerSecond, Percent};
use netduel_model::warning::Warning;
use netduel_model::workload::{
    Direction, Family, FlowTuning, LoadedLatency, ProbeProtocol, Role, RoundTrip, SAMPLE_INTERVAL_NS,
    StreamTuning, TcpEngine, TcpStream, Timing, Traffic, Transaction, UdpOffload, UdpStream, Wait, Workload,
};
use netduel_stats::histogram::Histogram;
use netduel_stats::split_mix::SplitMix;

const DURATION_NS: u64 = 5_000_000_000;
/// Loaded latency: the idle phase.
const IDLE_NS: u64 = 2_000_000_000;

/// The properties of a synthetic run.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The question.
    pub question: String,
    /// Blocks.
    pub blocks: u32,
    /// Ratio of the second arm's rates to the first arm's.
    pub effect: f64,
    /// Spread of a figure from block to block, a fraction.
    pub noise: f64,
    /// Names of the workloads: any of `bulk`, `rr`, `open`, `udp`, `crr`, `load`.
    pub workloads: Vec<&'static str>,
    /// Share of datagrams lost, by arm.
    pub loss: [f64; 2],
    /// Block and arm of trials that fail.
    pub failed: Vec<(u32, usize)>,
    /// Block and arm of trials that use the wrong path.
    pub wrong_path: Vec<(u32, usize)>,
    /// Text put into every free text: interface names, reasons, commands.
    pub text: String,
    /// Seed of the noise.
    pub seed: u64,
    /// How it ended.
    pub end: Option<RunEnd>,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            question: "Is the accelerated path faster than the synthetic one?".to_owned(),
            blocks: 8,
            effect: 3.2,
            noise: 0.03,
            workloads: vec!["bulk", "rr", "udp"],
            loss: [0.004, 0.0],
            failed: Vec::new(),
            wrong_path: Vec::new(),
            text: String::new(),
            seed: 20_261_121,
            end: Some(RunEnd::PrecisionReached),
        }
    }
}

/// A small generator with a fixed sequence: the same seed gives the same run on every machine.
pub struct Noise(SplitMix);

impl Noise {
    fn uniform(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Around 1.
    fn factor(&mut self, spread: f64) -> f64 {
        (self.normal() * spread).exp()
    }
}

const ARMS: [&str; 2] = ["synthetic", "accelerated"];
const PATHS: [&str; 2] = ["syn0", "vf0"];

/// The run.
pub fn build(recipe: &Recipe) -> Run {
    let plan = plan(recipe);
    let mut noise = Noise(SplitMix::new(recipe.seed));
    let mut trials = Vec::new();
    for block in 0..recipe.blocks {
        let shared = noise.factor(recipe.noise);
        let mut order: Vec<(usize, &str)> =
            recipe.workloads.iter().flat_map(|name| [(0, *name), (1, *name)]).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, (noise.uniform() * (index + 1) as f64) as usize);
        }
        for (position, (arm, name)) in order.into_iter().enumerate() {
            let mut trial = trial(recipe, &plan, &mut noise, shared, arm, name);
            trial.slot.block = block;
            trial.slot.position = position as u32;
            trial.started_unix_ms = 1_795_239_000_000 + u64::from(block) * 40_000 + position as u64 * 5_200;
            if recipe.failed.contains(&(block, arm)) {
                let reason = format!("connect to 10.77.0.2: connection refused {}", recipe.text);
                trial = Trial {
                    validity: Validity::Failed { reason },
                    client: None,
                    server: None,
                    proofs: Vec::new(),
                    ..trial
                };
            }
            if recipe.wrong_path.contains(&(block, arm)) {
                swap_path(&mut trial, arm);
            }
            trials.push(trial);
        }
    }
    let warnings =
        vec![Warning::SharedMachine { client: "a".parse().unwrap(), server: "b".parse().unwrap() }];
    let header = RunHeader {
        id: "demo-20261121-103000-7f3a".parse().unwrap(),
        started_unix_ms: 1_795_239_000_000,
        program: "netduel 0.1.0".to_owned(),
        command: ["netduel", "run", "two paths.toml"]
            .iter()
            .map(|word| format!("{word}{}", recipe.text))
            .collect(),
        plan_text: format!("name = \"demo\"\nquestion = \"{}\"\n# {}\n", recipe.question, recipe.text),
        plan,
        seed: recipe.seed,
        hosts: ["a", "b"].iter().map(|name| (name.parse().unwrap(), host(name, recipe))).collect(),
        annotations: Annotations::default(),
        report: None,
        further_reports: Vec::new(),
        bed: None,
    };
    Run { header, trials, warnings, end: recipe.end.clone() }
}

fn host(name: &str, recipe: &Recipe) -> HostSnapshot {
    let interface = |name: &str, kind: Option<&str>, driver: &str| Interface {
        name: name.to_owned(),
        kind: kind.map(str::to_owned),
        driver: Some(format!("{driver}{}", recipe.text)),
        mtu: Some(1500),
        up: true,
        carrier: Some(true),
        ..Interface::default()
    };
    HostSnapshot {
        hostname: Some(format!("guest-{name}{}", recipe.text)),
        kernel: Some("6.18.5-cloud-amd64".to_owned()),
        machine: Some("x86_64".to_owned()),
        os: Some("Debian GNU/Linux 13 (trixie)".to_owned()),
        platform: Some("KVM".to_owned()),
        boot_id: Some("11d1b4d6-0f1e-4a5e-9a3c-6d8f6b5c9f10".to_owned()),
        netns: Some(if name == "a" { 4_026_532_281 } else { 4_026_532_344 }),
        cpu_model: Some("AMD EPYC 7763 64-Core Processor".to_owned()),
        cores: 4,
        memory_bytes: Some(16 << 30),
        interfaces: vec![
            interface("eth0", Some("bond"), "bonding"),
            interface("syn0", Some("veth"), "veth"),
            interface("vf0", Some("veth"), "veth"),
        ],
        sysctls: BTreeMap::from([
            ("net.core.rmem_max".to_owned(), "67108864".to_owned()),
            ("net.ipv4.tcp_congestion_control".to_owned(), "cubic".to_owned()),
        ]),
        ..HostSnapshot::default()
    }
}

fn workload(name: &str) -> Workload {
    let round_trip = |rate| RoundTrip {
        size: Bytes(64),
        outstanding: 1,
        wait: Wait::Block,
        rate,
        timestamps: false,
        congestion: None,
    };
    let traffic = match name {
        "rr" => Traffic::TcpRr(round_trip(None)),
        "open" => Traffic::UdpRr(round_trip(Some(PerSecond(20_000)))),
        "load" => Traffic::LoadedLatency(LoadedLatency {
            streams: 4,
            direction: Direction::Up,
            block: Bytes(1 << 20),
            engine: TcpEngine::Lean,
            congestion: Some("cubic".to_owned()),
            probe: ProbeProtocol::Udp,
            size: Bytes(64),
            rate: PerSecond(200),
            idle: Nanos(IDLE_NS),
        }),
        "crr" => Traffic::TcpCrr(Transaction {
            request: Bytes(64),
            response: Bytes(1024),
            outstanding: 2,
            wait: Wait::Block,
            rate: None,
            congestion: None,
        }),
        "udp" => Traffic::UdpStream(UdpStream {
            flows: 1,
            direction: Direction::Up,
            size: Bytes(1448),
            rate: None,
            offload: UdpOffload::None,
            tuning: FlowTuning::default(),
        }),
        _ => Traffic::TcpStream(TcpStream {
            streams: 1,
            direction: Direction::Up,
            block: Bytes(1 << 20),
            engine: TcpEngine::Lean,
            congestion: Some("cubic".to_owned()),
            rate: None,
            tuning: StreamTuning::default(),
        }),
    };
    Workload {
        name: name.parse().unwrap(),
        traffic,
        timing: Timing {
            duration: Nanos(DURATION_NS),
            warmup: Nanos::from_millis(500),
            cooldown: Nanos::from_millis(200),
        },
        family: Family::Ipv4,
        pin_client: vec![1],
        pin_server: vec![3],
        pin_auto: netduel_model::workload::PinAuto::default(),
        dscp: None,
        metrics: metrics(name),
    }
}

fn metrics(name: &str) -> Vec<Metric> {
    match name {
        "bulk" => vec![Metric::Throughput, Metric::CpuPerGigabyte],
        "udp" => vec![Metric::DatagramRate, Metric::Loss],
        "load" => vec![Metric::LatencyLoadedP50, Metric::Responsiveness],
        _ => vec![Metric::LatencyP50, Metric::LatencyP99],
    }
}

fn plan(recipe: &Recipe) -> ResolvedPlan {
    let arm = |index: usize| Arm {
        name: ARMS[index].parse().unwrap(),
        pair: Pair { client: "a".parse().unwrap(), server: "b".parse().unwrap() },
        treatments: vec![Treatment {
            action: TreatmentAction::Path {
                path: if index == 0 { LabPath::Synthetic } else { LabPath::Accelerated },
            },
            on: Side::Both,
        }],
        expect_client: Some(format!("{}{}", PATHS[index], recipe.text)),
        expect_server: Some(format!("{}{}", PATHS[index], recipe.text)),
        expect_path: None,
        network: None,
        server_addresses: Vec::new(),
        expect_mbps: None,
        workloads: recipe.workloads.iter().map(|name| workload(name)).collect(),
    };
    let guest = |name: &str| {
        (
            name.parse().unwrap(),
            Host {
                launch: Launch::Lab { guest: name.to_owned() },
                addresses: netduel_model::lab::addresses(name),
                data_ports: None,
                size: None,
                expect_mbps: None,
                vm: None,
                price_per_hour: None,
            },
        )
    };
    ResolvedPlan {
        published: None,
        bed_type: None,
        name: format!("demo{}", recipe.text),
        question: recipe.question.clone(),
        report: netduel_model::publication::Publication::default(),
        lab: None,
        hosts: BTreeMap::from([guest("a"), guest("b")]),
        arms: vec![arm(0), arm(1)],
        workloads: recipe.workloads.iter().map(|name| name.parse().unwrap()).collect(),
        design: Design {
            blocks_min: 8,
            blocks_max: 8,
            budget: None,
            precision: Percent(5.0),
            equivalence: Percent(5.0),
            confidence: Percent(95.0),
            seed: None,
            aa: false,
            crossover: false,
        },
    }
}

fn trial(
    recipe: &Recipe,
    plan: &ResolvedPlan,
    noise: &mut Noise,
    shared: f64,
    arm: usize,
    name: &str,
) -> Trial {
    let speed = if arm == 0 { 1.0 } else { recipe.effect } * shared * noise.factor(recipe.noise);
    let (client, server) = match name {
        "bulk" => bulk(noise, speed, arm, recipe),
        "udp" => udp(noise, speed.min(2.2), recipe.loss[arm]),
        "crr" => transactions(noise, speed),
        "load" => loaded(noise, speed, arm, recipe),
        _ => round_trips(noise, speed, name == "open"),
    };
    let [client, server] = [(Role::Client, client), (Role::Server, server)].map(|(role, report)| TrialEnd {
        observation: observation(noise, arm, name, &report, role, &recipe.text),
        report,
    });
    let expected = plan.arms[arm].expect_client.clone().unwrap();
    let proofs = [(Role::Client, &client), (Role::Server, &server)]
        .map(|(role, end)| PathProof::from_interfaces(role, &expected, &end.observation.interfaces, None))
        .to_vec();
    Trial {
        lab_events: None,
        search: None,
        slot: Slot {
            block: 0,
            position: 0,
            arm: ARMS[arm].parse().unwrap(),
            workload: name.parse().unwrap(),
        },
        attempt: 0,
        started_unix_ms: 0,
        validity: Validity::Valid,
        client: Some(client),
        server: Some(server),
        proofs,
    }
}

/// Moves the bytes of a trial to the other arm's interface.
fn swap_path(trial: &mut Trial, arm: usize) {
    for proof in &mut trial.proofs {
        for (name, _) in &mut proof.bytes {
            let (from, to) = if name.starts_with(PATHS[arm]) { (arm, 1 - arm) } else { (1 - arm, arm) };
            *name = name.replacen(PATHS[from], PATHS[to], 1);
        }
        proof.share = Some(0.0001);
    }
    if let Some(reason) = trial.proofs.iter().find_map(PathProof::failure) {
        trial.validity = Validity::WrongPath { reason: reason.reason().to_owned() };
    }
}

fn series(noise: &mut Noise, per_second: f64, bytes_each: f64) -> Flow {
    let steps = DURATION_NS / SAMPLE_INTERVAL_NS;
    let mut flow = Flow { first_ns: Some(40_000), last_ns: Some(DURATION_NS), ..Flow::default() };
    for step in 0..steps {
        let ramp = 1.0 - 0.75 * (-(step as f64) / 1.5).exp();
        let messages = (per_second * 0.1 * ramp * noise.factor(0.025)) as u64;
        let bytes = (messages as f64 * bytes_each) as u64;
        flow.series.push(IntervalSample {
            end_ns: (step + 1) * SAMPLE_INTERVAL_NS,
            length_ns: SAMPLE_INTERVAL_NS,
            bytes,
            messages,
        });
        flow.bytes += bytes;
        flow.messages += messages;
    }
    flow
}

fn report(role: Role, sent: Option<Flow>, received: Option<Flow>) -> EndReport {
    EndReport { sent, received, process_cpu_ns: (120_000_000, 900_000_000), ..EndReport::new(role) }
}

fn bulk(noise: &mut Noise, speed: f64, arm: usize, recipe: &Recipe) -> (EndReport, EndReport) {
    let mut flow = series(noise, 6.1e9 / 8.0 / 1000.0 * speed, 1000.0);
    flow.messages = 0;
    flow.series.iter_mut().for_each(|sample| sample.messages = 0);
    let same = (recipe.effect - 1.0).abs() < 0.1;
    let (limited, retransmits) = if arm == 1 && !same { (0.42, 3.0) } else { (0.03, 38.0) };
    let tcp = TcpInfo {
        congestion: Some("cubic".to_owned()),
        rtt_us: Some((310.0 / speed) as u32),
        retransmits: Some((retransmits * noise.factor(0.3)) as u32),
        dsack_dups: Some((retransmits * 0.2) as u32),
        busy_us: Some(5_000_000),
        rwnd_limited_us: Some((5e6 * limited * noise.factor(0.1)) as u64),
        sndbuf_limited_us: Some(0),
        ..TcpInfo::default()
    };
    let mut client = report(Role::Client, Some(flow.clone()), None);
    client.streams.push(StreamReport {
        sent_bytes: flow.bytes,
        core: Some(1),
        tcp: Some(tcp),
        ..StreamReport::default()
    });
    (client, report(Role::Server, None, Some(flow)))
}

fn udp(noise: &mut Noise, speed: f64, loss: f64) -> (EndReport, EndReport) {
    let sent = series(noise, 410_000.0 * speed, 1448.0);
    let mut received = sent.clone();
    let lost_share = (loss * noise.factor(0.15)).min(1.0);
    received.bytes = 0;
    received.messages = 0;
    for sample in &mut received.series {
        sample.messages -= (sample.messages as f64 * lost_share) as u64;
        sample.bytes = sample.messages * 1448;
        received.messages += sample.messages;
        received.bytes += sample.bytes;
    }
    let mut server = report(Role::Server, None, Some(received.clone()));
    server.datagrams = Some(DatagramReport {
        unique: received.messages,
        next_sequence: vec![sent.messages],
        jitter_ns: Some(5_400.0 / speed * noise.factor(0.05)),
        socket_drops: Some((sent.messages - received.messages) / 3),
        ..DatagramReport::default()
    });
    (report(Role::Client, Some(sent), None), server)
}

fn round_trips(noise: &mut Noise, speed: f64, open: bool) -> (EndReport, EndReport) {
    let mut histogram = Histogram::new();
    let mut late = Histogram::new();
    let median = 38_000.0 / speed;
    for _ in 0..12_000 {
        let tail = match noise.uniform() {
            u if u < 0.0008 => 14.0,
            u if u < 0.03 => 3.1,
            _ => 1.0,
        };
        histogram.record((median * tail * noise.factor(0.09)) as u64);
        if open {
            late.record((900.0 * noise.factor(1.6)) as u64);
        }
    }
    let samples = (DURATION_NS / SAMPLE_INTERVAL_NS) as u32;
    let series = (0..samples)
        .map(|step| RoundTripSample {
            end_ns: u64::from(step + 1) * SAMPLE_INTERVAL_NS,
            count: (1e8 / median) as u64,
            p50_ns: (median * (1.0 + 0.6 * (-f64::from(step) / 1.2).exp()) * noise.factor(0.02)) as u64,
            max_ns: (median * 15.0 * noise.factor(0.3)) as u64,
        })
        .collect();
    let responses = (5e9 / median) as u64;
    let mut flow = series_of(responses);
    flow.bytes = responses * 64;
    let mut client = report(Role::Client, Some(flow.clone()), Some(flow.clone()));
    client.round_trips = Some(RoundTripReport {
        requests: responses,
        responses,
        timeouts: 0,
        histogram: histogram.to_record(),
        pacing_error: open.then(|| late.to_record()),
        series,
        idle: None,
        parts: None,
    });
    (client, report(Role::Server, Some(flow.clone()), Some(flow)))
}

fn transactions(noise: &mut Noise, speed: f64) -> (EndReport, EndReport) {
    let (mut client, server) = round_trips(noise, speed / 3.0, false);
    let mut part = |median: f64| {
        let mut histogram = Histogram::new();
        for _ in 0..4_000 {
            histogram.record((median / speed * noise.factor(0.12)) as u64);
        }
        histogram.to_record()
    };
    let parts = TransactionParts {
        attempted: 4_000,
        failed: 0,
        connect: part(42_000.0),
        exchange: part(61_000.0),
        congestion: None,
    };
    if let Some(report) = &mut client.round_trips {
        report.parts = Some(parts);
    }
    (client, server)
}

/// Streams from the end of the idle phase on, and probes with longer round trips under load, most of all in the slower arm.
fn loaded(noise: &mut Noise, speed: f64, arm: usize, recipe: &Recipe) -> (EndReport, EndReport) {
    let (mut client, mut server) = bulk(noise, speed, arm, recipe);
    for flow in [&mut client.sent, &mut server.received].into_iter().flatten() {
        for sample in flow.series.iter_mut().filter(|sample| sample.end_ns <= IDLE_NS) {
            flow.bytes -= std::mem::take(&mut sample.bytes);
        }
        flow.first_ns = Some(IDLE_NS + 30_000);
    }
    let mut histogram = |median: f64, count: u32| {
        let mut histogram = Histogram::new();
        for _ in 0..count {
            histogram.record((median * noise.factor(0.15)) as u64);
        }
        histogram.to_record()
    };
    let queue = 24_000_000.0 / speed;
    let under_load = UnderLoad {
        foreign: TransactionParts {
            attempted: 120,
            failed: 0,
            connect: histogram(queue, 120),
            exchange: histogram(1.05 * queue, 120),
            congestion: None,
        },
        in_band_requests: 120,
        in_band: histogram(1.4 * queue, 120),
    };
    let (idle, busy) = (histogram(70_000.0, 300), histogram(queue, 540));
    let samples = (DURATION_NS / SAMPLE_INTERVAL_NS) as u32;
    let series = (1..=samples).map(|step| {
        let end_ns = u64::from(step) * SAMPLE_INTERVAL_NS;
        let median = if end_ns <= IDLE_NS { 70_000.0 } else { queue };
        let p50_ns = (median * noise.factor(0.05)) as u64;
        RoundTripSample { end_ns, count: 20, p50_ns, max_ns: 2 * p50_ns }
    });
    client.round_trips = Some(RoundTripReport {
        requests: 1000,
        responses: 998,
        timeouts: 2,
        histogram: busy,
        pacing_error: None,
        series: series.collect(),
        idle: Some(idle),
        parts: None,
    });
    client.under_load = Some(under_load);
    (client, server)
}

fn series_of(messages: u64) -> Flow {
    Flow { messages, first_ns: Some(40_000), last_ns: Some(DURATION_NS), ..Flow::default() }
}

/// The interface counters for what a program sent and received: packets and bytes with headers, by direction.
fn on_the_interface(name: &str, report: &EndReport) -> [(u64, u64); 2] {
    let headers = if matches!(name, "udp" | "open") { 42 } else { 66 };
    let dropped = report.datagrams.as_ref().and_then(|count| count.socket_drops).unwrap_or(0);
    [(&report.sent, 0), (&report.received, dropped)].map(|(flow, beyond)| {
        let (bytes, messages) = flow.as_ref().map_or((0, 0), |flow| (flow.bytes, flow.messages));
        let packets = beyond + if messages > 0 { messages } else { bytes / 1448 };
        (packets, bytes + beyond * 1448 + packets * headers)
    })
}

/// A bond and its two ports, one of which carried the packets.
fn interfaces(
    noise: &mut Noise,
    arm: usize,
    [(tx_packets, tx_bytes), (rx_packets, rx_bytes)]: [(u64, u64); 2],
    text: &str,
) -> Vec<InterfaceDelta> {
    let idle = |name: &str| InterfaceDelta {
        name: format!("{name}{text}"),
        is_master: name == "eth0",
        master: (name != "eth0").then(|| "eth0".to_owned()),
        ..InterfaceDelta::default()
    };
    let other = 2_000 + (noise.uniform() * 6_000.0) as u64;
    let carrier = |name: &str| InterfaceDelta { tx_bytes, tx_packets, rx_bytes, rx_packets, ..idle(name) };
    vec![
        InterfaceDelta { tx_bytes: tx_bytes + other, ..carrier("eth0") },
        carrier(PATHS[arm]),
        InterfaceDelta { tx_bytes: other, tx_packets: other / 100, ..idle(PATHS[1 - arm]) },
    ]
}

fn observation(
    noise: &mut Noise,
    arm: usize,
    name: &str,
    report: &EndReport,
    role: Role,
    text: &str,
) -> Observation {
    // Shares of four cores as user, system and soft interrupt.
    let load: [(f64, f64, f64); 4] = match (name, arm) {
        ("bulk", 0) => [(0.01, 0.02, 0.01), (0.02, 0.31, 0.04), (0.01, 0.03, 0.9), (0.02, 0.22, 0.05)],
        ("bulk", _) => [(0.01, 0.02, 0.01), (0.03, 0.79, 0.06), (0.01, 0.04, 0.41), (0.04, 0.48, 0.1)],
        ("udp", 0) => [(0.01, 0.02, 0.02), (0.08, 0.6, 0.05), (0.01, 0.02, 0.93), (0.05, 0.33, 0.06)],
        ("udp", _) => [(0.01, 0.02, 0.02), (0.11, 0.81, 0.04), (0.01, 0.03, 0.52), (0.07, 0.52, 0.05)],
        (_, 0) => [(0.01, 0.01, 0.01), (0.05, 0.21, 0.09), (0.01, 0.01, 0.31), (0.05, 0.2, 0.08)],
        _ => [(0.01, 0.01, 0.01), (0.07, 0.33, 0.1), (0.01, 0.01, 0.06), (0.07, 0.31, 0.09)],
    };
    // The server's reading begins before the client's and ends after it.
    let wall_ns = DURATION_NS + if role == Role::Server { 24_000_000 } else { 9_000_000 };
    let cores = (0..4_u16).zip(load).map(|(core, (user, system, softirq))| {
        let wall = wall_ns as f64;
        let [user, system, softirq] =
            [user, system, softirq].map(|share| (share * wall * noise.factor(0.02)) as u64);
        let (irq, steal) = (wall_ns / 500, wall_ns / 400);
        let idle_ns = wall_ns.saturating_sub(user + system + softirq + irq + steal);
        CoreTime {
            core,
            user_ns: user,
            system_ns: system,
            irq_ns: irq,
            softirq_ns: softirq,
            steal_ns: steal,
            idle_ns,
        }
    });
    let cores: Vec<CoreTime> = cores.collect();
    // Each of the two agents used half of the CPU time of the programs: the hosts have no other work.
    let half = |of: fn(&CoreTime) -> u64| cores.iter().map(of).sum::<u64>() / 2;
    let process = ProcessUsage {
        user_ns: half(|core| core.user_ns),
        system_ns: half(|core| core.system_ns),
        ..ProcessUsage::default()
    };
    let interfaces = interfaces(noise, arm, on_the_interface(name, report), text);
    let bytes = report.sent.iter().chain(&report.received).map(|flow| flow.bytes).sum::<u64>();
    let packets = bytes / if arm == 0 { 9_000 } else { 40_000 };
    Observation {
        wall_ns,
        clock_step_ns: 1_200,
        cores,
        process,
        interrupts: BTreeMap::from([("timer".to_owned(), 5_200), ("rescheduling".to_owned(), packets / 4)]),
        context_switches: Some(packets / 2 + 9_000),
        softnet: vec![Softnet {
            core: 2,
            processed: packets,
            time_squeeze: if arm == 0 { 160 } else { 12 },
            ..Softnet::default()
        }],
        interfaces,
        observer_cpu_ns: 1_100_000,
        ..Observation::default()
    }
}
