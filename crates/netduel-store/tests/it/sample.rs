//! Runs and trials for tests: small ones, long ones, and one with every field.
use std::collections::BTreeMap;

use netduel_model::ids::{ArmName, HostName, RunId, WorkloadName};
use netduel_model::observation::{CoreTime, InterfaceDelta, Observation, Presence, ProcessUsage, Softnet};
use netduel_model::plan::{ResolvedPlan, parse};
use netduel_model::run::{Annotations, RunHeader};
use netduel_model::sample::{
    DatagramReport, EndReport, ErrorCount, Flow, HistogramRecord, IntervalSample, RoundTripReport,
    RoundTripSample, StreamReport, TcpInfo,
};
use netduel_model::snapshot::{HostSnapshot, Interface};
use netduel_model::trial::{PathProof, Slot, Trial, TrialEnd, Validity};
use netduel_model::workload::Role;

/// A plan with every launcher, every treatment and every type of workload.
pub const PLAN: &str = r#"name = "golden"
question = "Does a run survive the disk?"
[lab]
rules = 10
cap = "5 Gbit/s"
mtu = 1400
[hosts.a]
launch = "lab"
[hosts.b]
launch = "lab"
[hosts.near]
launch = "local"
[hosts.far]
launch = "netns"
netns = "far"
addresses = ["192.0.2.1", "2001:db8::1"]
[hosts.farther]
launch = "command"
command = ["ssh", "farther"]
addresses = ["192.0.2.2"]
[[arms]]
name = "synthetic"
client = "a"
server = "b"
treatments = [{ path = "synthetic" }]
[[arms]]
name = "accelerated"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
set = { family = "ipv6", engine = "lean", direction = "up" }
[[arms]]
name = "near"
client = "near"
server = "far"
expect_interface = { client = "eth0" }
treatments = [
  { mtu = 1300, interface = "eth0", on = "client" },
  { offload = "rx-gro", interface = "eth0", value = "off", on = "server" },
  { sysctl = "net.ipv4.tcp_sack", value = "0" },
  { command = ["/opt/change"], undo = ["/opt/undo"] },
]
[[arms]]
name = "far"
client = "near"
server = "farther"
set = { family = "ipv4" }
[[workloads]]
name = "bulk"
type = "tcp-stream"
duration = "1 s"
streams = 2
engine = "copy"
direction = "both"
congestion = "cubic"
metrics = ["throughput", "cpu-per-gigabyte", "retransmits-per-gigabyte"]
pin_client = [0, 1]
pin_server = [1]
[[workloads]]
name = "datagrams"
type = "udp-stream"
duration = "1 s"
rate = "1 Gbit/s"
direction = "down"
metrics = ["jitter", "datagram-rate", "loss", "cpu-per-datagram"]
[[workloads]]
name = "latency"
type = "tcp-rr"
duration = "1 s"
wait = "spin"
[[workloads]]
name = "open"
type = "udp-rr"
duration = "1 s"
request_rate = "10 k/s"
metrics = ["latency-p999", "round-trip-rate", "cpu-per-round-trip"]
[design]
blocks_min = 2
blocks_max = 4
budget = "1 h"
precision = "2.5 %"
equivalence = "3 %"
confidence = "99 %"
seed = 18446744073709551615
"#;

/// A start in the future.
pub const YEAR_2100_UNIX_MS: u64 = 4_102_444_800_000;

pub fn host(name: &str) -> HostName {
    HostName::new(name).expect("a name")
}

pub fn arm(name: &str) -> ArmName {
    ArmName::new(name).expect("a name")
}

pub fn workload(name: &str) -> WorkloadName {
    WorkloadName::new(name).expect("a name")
}

/// The whole plan.
pub fn plan() -> ResolvedPlan {
    parse(PLAN, "golden.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// The plan with one trial in a block, that of [`trial`], and more blocks than any test writes.
fn plan_of_many_blocks() -> ResolvedPlan {
    let mut plan = plan();
    plan.arms.retain(|own| own.name == arm("synthetic"));
    plan.workloads.retain(|own| *own == workload("bulk"));
    plan.design.blocks_max = 1_000_000;
    plan
}

/// A header whose run is named after `name`.
pub fn header(name: &str) -> RunHeader {
    RunHeader {
        id: RunId::new(format!("{name}-20261121-104501-7f3a")).expect("a name"),
        started_unix_ms: 1_795_257_901_234,
        program: "netduel 0.1.0".to_owned(),
        command: vec!["netduel".to_owned(), "run".to_owned(), "plans/golden.toml".to_owned()],
        plan: plan_of_many_blocks(),
        plan_text: PLAN.to_owned(),
        seed: u64::MAX,
        hosts: BTreeMap::from([(host("a"), snapshot())]),
        annotations: Annotations::default(),
        report: None,
        further_reports: Vec::new(),
        bed: None,
    }
}

fn snapshot() -> HostSnapshot {
    HostSnapshot {
        hostname: Some("a.example".to_owned()),
        kernel: Some("6.12.0".to_owned()),
        machine: Some("x86_64".to_owned()),
        os: Some("Debian GNU/Linux 13".to_owned()),
        platform: Some("QEMU".to_owned()),
        boot_id: Some("6a1e9a5e-0000-4000-8000-000000000001".to_owned()),
        netns: Some(4_026_531_840),
        cpu_model: Some("Some CPU @ 2.50GHz".to_owned()),
        cores: 2,
        memory_bytes: Some(8 << 30),
        interfaces: vec![Interface {
            name: "eth0".to_owned(),
            index: 2,
            kind: Some("veth".to_owned()),
            driver: Some("veth".to_owned()),
            mac: Some("02:00:00:00:00:01".to_owned()),
            mtu: Some(1500),
            up: true,
            carrier: Some(true),
            speed_mbps: Some(10_000),
            master: Some("bond0".to_owned()),
            addresses: vec!["10.77.0.1".parse().expect("an address"), "fd77::1".parse().expect("an address")],
            tx_queues: Some(2),
            rx_queues: Some(2),
            qdisc: Some("fq_codel".to_owned()),
            features_on: vec!["tx-tcp-segmentation".to_owned()],
            ..Interface::default()
        }],
        sysctls: BTreeMap::from([("net.ipv4.tcp_congestion_control".to_owned(), "cubic".to_owned())]),
        ..HostSnapshot::default()
    }
}

/// A valid trial with every field.
pub fn trial(block: u32) -> Trial {
    Trial {
        lab_events: None,
        search: None,
        slot: Slot { block, position: 3, arm: arm("synthetic"), workload: workload("bulk") },
        attempt: 1,
        started_unix_ms: 1_795_257_902_000 + u64::from(block),
        validity: Validity::Valid,
        client: Some(TrialEnd { report: report(Role::Client), observation: observation() }),
        server: Some(TrialEnd { report: report(Role::Server), observation: observation() }),
        proofs: vec![PathProof {
            own_packets: None,
            other_traffic: None,
            kind: None,
            role: Role::Client,
            expected: "syn0".to_owned(),
            bytes: vec![("syn0".to_owned(), 999), ("lo".to_owned(), 1)],
            share: Some(0.999),
            changed: vec!["vf0".to_owned()],
        }],
    }
}

/// A trial with a series of `samples` intervals, about 75 bytes each.
pub fn long_trial(block: u32, samples: u64) -> Trial {
    let mut trial = trial(block);
    let series = (1..=samples).map(|index| IntervalSample {
        end_ns: index * 100_000_000,
        length_ns: 100_000_000,
        bytes: index * 1_234_567,
        messages: u64::from(block),
    });
    let end = trial.client.as_mut().expect("the client's end is there");
    end.report.sent = Some(Flow { series: series.collect(), ..flow() });
    trial
}

fn flow() -> Flow {
    let sample = IntervalSample { end_ns: 100_000_123, length_ns: 100_000_001, bytes: 65_536, messages: 64 };
    Flow { bytes: 65_536, messages: 64, first_ns: Some(12), last_ns: Some(99_999_999), series: vec![sample] }
}

fn report(role: Role) -> EndReport {
    EndReport {
        packets: None,
        dpdk: None,
        failover: None,
        fairness: None,
        connections: None,
        role,
        sent: Some(flow()),
        received: Some(flow()),
        streams: vec![StreamReport {
            index: 0,
            sent_bytes: 65_536,
            received_bytes: 65_536,
            core: Some(1),
            tcp: Some(tcp_info()),
            ..StreamReport::default()
        }],
        datagrams: Some(DatagramReport {
            unique: 63,
            duplicates: 1,
            reordered: 2,
            outside_window: 3,
            unexpected: 4,
            next_sequence: vec![64],
            // Such numbers change when they are read without float_roundtrip.
            jitter_ns: Some(1_234.567_890_123_456_7),
            socket_drops: Some(5),
            buffers: None,
            flows: Vec::new(),
        }),
        datagrams_sent: None,
        round_trips: Some(RoundTripReport {
            requests: 10,
            responses: 9,
            timeouts: 1,
            histogram: histogram(),
            pacing_error: Some(histogram()),
            series: vec![RoundTripSample { end_ns: 100_000_123, count: 9, p50_ns: 9_001, max_ns: 90_001 }],
            idle: None,
            parts: None,
        }),
        under_load: None,
        stamps: None,
        zero_copy: None,
        errors: vec![ErrorCount {
            call: "sendmmsg".to_owned(),
            error: "ENOBUFS: no buffer space available".to_owned(),
            count: 7,
        }],
        process_cpu_ns: (11, 12),
        thread_use: None,
    }
}

pub fn histogram() -> HistogramRecord {
    HistogramRecord { count: 9, min: 8_765, max: 90_001, pairs: vec![(9_001, 8), (90_111, 1)] }
}

fn tcp_info() -> TcpInfo {
    TcpInfo {
        rcv_wnd: None,
        sndbuf: None,
        congestion: Some("cubic".to_owned()),
        snd_mss: Some(1448),
        pmtu: Some(1500),
        rtt_us: Some(50),
        rttvar_us: Some(5),
        min_rtt_us: Some(40),
        snd_cwnd: Some(100),
        retransmits: Some(1),
        dsack_dups: Some(2),
        lost: Some(3),
        reord_seen: Some(4),
        segs_out: Some(5),
        segs_in: Some(6),
        bytes_acked: Some(7),
        bytes_received: Some(8),
        busy_us: Some(9),
        rwnd_limited_us: Some(10),
        sndbuf_limited_us: Some(11),
    }
}

fn observation() -> Observation {
    Observation {
        link_events: None,
        identity: None,
        control: None,
        concurrent_tests: 0,
        placement: None,
        wall_ns: 1_000_100_000,
        clock_step_ns: -5,
        cores: vec![CoreTime {
            core: 1,
            user_ns: 1,
            system_ns: 2,
            irq_ns: 3,
            softirq_ns: 4,
            steal_ns: 5,
            idle_ns: 6,
        }],
        process: ProcessUsage { user_ns: 1, system_ns: 2, voluntary_switches: 3, involuntary_switches: 4 },
        interrupts: BTreeMap::from([("virtio0-input.0".to_owned(), 42)]),
        interrupts_by_core: vec![40, 2],
        context_switches: Some(1000),
        softnet: vec![Softnet { core: 0, processed: 1, dropped: 2, time_squeeze: 3, received_rps: 4 }],
        interfaces: [Presence::Unchanged, Presence::Added, Presence::Removed].map(interface).into(),
        driver: BTreeMap::from([("syn0".to_owned(), BTreeMap::from([("peer_ifindex".to_owned(), -1)]))]),
        protocol: BTreeMap::from([("Tcp.RetransSegs".to_owned(), 1)]),
        observer_cpu_ns: 500_000,
    }
}

fn interface(presence: Presence) -> InterfaceDelta {
    InterfaceDelta {
        bus: None,
        qdisc_overlimits: None,
        name: "syn0".to_owned(),
        index: 3,
        is_master: true,
        master: Some("eth0".to_owned()),
        presence,
        rx_bytes: 1,
        tx_bytes: 2,
        rx_packets: 3,
        tx_packets: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        qdisc_dropped: None,
        ingress_dropped: None,
    }
}

/// A line with the checksum of its record, in place of the one that it has.
pub fn with_checksum(line: &str) -> String {
    let record = match line.split_once(",\"crc32\":") {
        Some((record, _)) => record,
        None => line.strip_suffix('}').expect("an object"),
    };
    format!("{record},\"crc32\":\"{:08x}\"}}", crc32fast::hash(record.as_bytes()))
}
