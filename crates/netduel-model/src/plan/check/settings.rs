//! Settings of workloads: which type has which, their ranges and defaults, and what an arm may override.
use std::fmt::Display;

use crate::plan::problem::{Problems, key_path, one_of};
use crate::plan::spec::{SettingsSpec, WorkloadType};
use crate::units::{BitRate, Bytes, Nanos, PerSecond, Percent};
use crate::workload::{
    Direction, Family, FlowTuning, LoadedLatency, RoundTrip, StreamTuning, TcpEngine, TcpStream, Traffic,
    Transaction, UdpOffload, UdpStream, Wait,
};

use super::{dpdk, failover, packets};

/// `splice` of 1 MiB and `write` of 128 KiB were the fastest sizes in measurements.
const BLOCK_LEAN: Bytes = Bytes(1 << 20);
const BLOCK_COPY: Bytes = Bytes(128 << 10);
/// Bytes a call of the engines that the kernel tells when it is done with their memory: each call costs such a message.
const BLOCK_UNCOPIED: Bytes = Bytes(256 << 10);
const BLOCK_MOST: Bytes = Bytes(64 << 20);
/// The kernel takes less and gives this (SOCK_MIN_RCVBUF in include/net/sock.h).
const WINDOW_LEAST: Bytes = Bytes(4096);
/// setsockopt(2) takes an int, and the kernel doubles it.
const WINDOW_MOST: Bytes = Bytes(1 << 30);
/// Six bits (RFC 2474, section 3).
const DSCP_MOST: u64 = 63;
/// TCP_MIN_MSS and MAX_TCP_WINDOW in include/net/tcp.h.
const MSS_LEAST: u64 = 88;
const MSS_MOST: u64 = 32_767;
/// Fits an MTU of 1500 with the headers of a tunnel.
const DATAGRAM_IPV4: Bytes = Bytes(1448);
const DATAGRAM_IPV6: Bytes = Bytes(1428);
/// Every datagram carries a header of this size: sequence number, times, and whose it is.
const DATAGRAM_LEAST: Bytes = Bytes(32);
/// 65535 less the headers of IPv4 (20) and UDP (8).
const DATAGRAM_MOST: Bytes = Bytes(65_507);
/// More than any interface has. A schedule beyond it would be as good as none, and look like one.
const DATAGRAM_RATE_MOST: BitRate = BitRate(10_000_000_000_000);
const REQUEST: Bytes = Bytes(64);
const REQUEST_TCP_MOST: Bytes = Bytes(1 << 20);
/// A request on a connection of its own begins with what proves that it is the trial's.
const TRANSACTION_REQUEST_LEAST: Bytes = Bytes(48);
/// Its response begins with what tells it from any other program's.
const TRANSACTION_RESPONSE_LEAST: Bytes = Bytes(16);
/// Transactions of an open loop that may be under way when the plan does not say: beyond it the schedule is missed, and the
/// report says so.
const TRANSACTIONS_OPEN: u32 = 64;

/// As many as draft-ietf-ippm-responsiveness has at most (MNP): together they fill a queue whichever of them backs off.
const LOAD_STREAMS: u32 = 16;
/// A probe fits an MTU of 1500.
const PROBE_MOST: Bytes = Bytes(1472);
/// Enough for a 99th percentile in some seconds, and 0.2 Mbit/s of load.
const PROBE_RATE: PerSecond = PerSecond(200);
const PROBE_RATE_MOST: PerSecond = PerSecond(10_000);
const IDLE_SHARE: Percent = Percent(25.0);
const IDLE_SHARE_RANGE: (Percent, Percent) = (Percent(5.0), Percent(90.0));

/// The settings of each type of workload.
const TCP_STREAM: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "streams",
    "direction",
    "block",
    "engine",
    "congestion",
    "rate",
    "volume",
    "window",
    "mss",
];
const UDP_STREAM: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "flows",
    "direction",
    "size",
    "rate",
    "offload",
    "volume",
    "window",
];
const TCP_RR: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "size",
    "outstanding",
    "wait",
    "request_rate",
    "timestamps",
    "congestion",
];
const UDP_RR: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "size",
    "outstanding",
    "wait",
    "request_rate",
    "timestamps",
];
const LOADED_LATENCY: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "streams",
    "direction",
    "block",
    "engine",
    "congestion",
    "probe",
    "size",
    "request_rate",
    "idle_share",
];
const FAILOVER: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "streams",
    "direction",
    "block",
    "engine",
    "congestion",
    "size",
    "request_rate",
    "events",
];
const PPS: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "flows",
    "direction",
    "window",
    "wait",
    "generator",
    "receiver",
    "frame",
    "packet_rate",
    "queues",
    "dpdk",
];
const TCP_CRR: &[&str] = &[
    "family",
    "pin_client",
    "pin_server",
    "dscp",
    "size",
    "response_size",
    "outstanding",
    "wait",
    "request_rate",
    "congestion",
];

/// The settings that a type of workload has.
pub(super) const fn of(kind: WorkloadType) -> &'static [&'static str] {
    match kind {
        WorkloadType::TcpStream => TCP_STREAM,
        WorkloadType::UdpStream => UDP_STREAM,
        WorkloadType::TcpRr => TCP_RR,
        WorkloadType::UdpRr => UDP_RR,
        WorkloadType::LoadedLatency => LOADED_LATENCY,
        WorkloadType::TcpCrr => TCP_CRR,
        WorkloadType::Failover => FAILOVER,
        WorkloadType::Pps => PPS,
    }
}

/// Notes settings of a workload that its type does not have.
pub(super) fn check_belong(
    settings: &SettingsSpec,
    kind: WorkloadType,
    path: &str,
    problems: &mut Problems<'_>,
) {
    for key in settings.given() {
        if !of(kind).contains(&key) {
            let wrong = format!("is not a setting of {}", kind.word());
            problems.add(&key_path(path, key), wrong, format!("it has {}", of(kind).join(", ")));
        }
    }
}

/// Notes settings of an arm that no workload of the plan has.
pub(super) fn check_override(
    set: &SettingsSpec,
    kinds: &[WorkloadType],
    path: &str,
    problems: &mut Problems<'_>,
) {
    for key in set.given() {
        if kinds.is_empty() || kinds.iter().any(|kind| of(*kind).contains(&key)) {
            continue;
        }
        let mut settings: Vec<&str> = kinds.iter().flat_map(|kind| of(*kind)).copied().collect();
        settings.sort_unstable();
        settings.dedup();
        let wrong = "overrides a setting that no workload of this plan has";
        problems.add(&key_path(path, key), wrong, format!("its workloads have {}", settings.join(", ")));
    }
}

/// Notes values that are out of range for this type. Settings that the type does not have are passed over.
pub(super) fn check_ranges(
    settings: &SettingsSpec,
    kind: WorkloadType,
    path: &str,
    problems: &mut Problems<'_>,
) {
    use WorkloadType::{Failover, LoadedLatency, Pps, TcpCrr, TcpRr, TcpStream, UdpRr, UdpStream};
    let mut within = |key: &str, value: Option<u64>, least: u64, most: u64, show: fn(u64) -> String| {
        let Some(value) = value.filter(|_| of(kind).contains(&key)) else { return };
        if value < least || value > most {
            let wrong = format!("is {}", show(value));
            let allowed = format!("{} to {} is allowed for {}", show(least), show(most), kind.word());
            problems.add(&key_path(path, key), wrong, allowed);
        }
    };
    let count = |value: Option<u32>| value.map(u64::from);
    let streams_least = u64::from(kind != Failover);
    within("streams", count(settings.streams), streams_least, streams_most(settings, kind), plain);
    within("flows", count(settings.flows), 1, 1024, plain);
    within("outstanding", count(settings.outstanding), 1, 1024, plain);
    within("volume", settings.volume.map(|volume| volume.0), 1, i64::MAX as u64, bytes);
    within("window", settings.window.map(|window| window.0), WINDOW_LEAST.0, WINDOW_MOST.0, bytes);
    within("dscp", count(settings.dscp), 0, DSCP_MOST, plain);
    within("mss", count(settings.mss), MSS_LEAST, MSS_MOST, plain);
    within("block", settings.block.map(|block| block.0), 1, BLOCK_MOST.0, bytes);
    let (least, most) = match kind {
        TcpStream | TcpRr => (Bytes(1), REQUEST_TCP_MOST),
        UdpStream | UdpRr | Pps => (DATAGRAM_LEAST, DATAGRAM_MOST),
        TcpCrr => (TRANSACTION_REQUEST_LEAST, REQUEST_TCP_MOST),
        LoadedLatency | Failover => (DATAGRAM_LEAST, PROBE_MOST),
    };
    let is_datagram = matches!(kind, UdpStream | UdpRr);
    if !(is_datagram && settings.size.is_some_and(|size| size < DATAGRAM_LEAST)) {
        within("size", settings.size.map(|size| size.0), least.0, most.0, bytes);
    }
    let response = settings.response_size.map(|size| size.0);
    within("response_size", response, TRANSACTION_RESPONSE_LEAST.0, REQUEST_TCP_MOST.0, bytes);
    if is_datagram {
        check_datagrams(settings, kind, path, problems);
    }
    if matches!(kind, TcpStream | UdpStream) && settings.rate.is_some_and(|rate| rate.0 == 0) {
        let allowed = "1 bit/s at least; leave `rate` out to send as fast as it can";
        problems.add(&key_path(path, "rate"), "is 0", allowed);
    }
    check_wait(settings, kind, path, problems);
    if matches!(kind, TcpRr | UdpRr | TcpCrr) && settings.request_rate.is_some_and(|rate| rate.0 == 0) {
        let allowed = "1 /s at least; leave `request_rate` out for a closed loop";
        problems.add(&key_path(path, "request_rate"), "is 0", allowed);
    }
    check_probes(settings, kind, path, problems);
    packets::check_ranges(settings, kind, path, problems);
    dpdk::check_ranges(settings, kind, path, problems);
    if matches!(kind, TcpStream | TcpRr | TcpCrr | LoadedLatency | Failover)
        && let Some(name) = &settings.congestion
    {
        // TCP_CA_NAME_MAX in include/net/tcp.h is 16 with the final zero byte.
        let good = (1..=15).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !good {
            let allowed =
                "name it as /proc/sys/net/ipv4/tcp_available_congestion_control does, for example \"cubic\"";
            problems.add(
                &key_path(path, "congestion"),
                format!("{name:?} is not a congestion control"),
                allowed,
            );
        }
    }
}

/// Notes datagrams without room for their header, and a rate beyond any interface.
fn check_datagrams(settings: &SettingsSpec, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    if let Some(size) = settings.size.filter(|size| *size < DATAGRAM_LEAST) {
        let allowed = format!(
            "\"{DATAGRAM_LEAST}\" to \"{DATAGRAM_MOST}\" is allowed for {}; a datagram begins with whose it is, its number and \
             the time it was sent",
            kind.word()
        );
        problems.add(&key_path(path, "size"), format!("is \"{size}\""), allowed);
    }
    if kind == WorkloadType::UdpStream
        && let Some(rate) = settings.rate.filter(|rate| *rate > DATAGRAM_RATE_MOST)
    {
        let allowed = format!(
            "\"{DATAGRAM_RATE_MOST}\" is the most for udp-stream; leave `rate` out to send as fast as it can"
        );
        problems.add(&key_path(path, "rate"), format!("is \"{rate}\""), allowed);
    }
}

fn check_probes(settings: &SettingsSpec, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    let least = match kind {
        WorkloadType::LoadedLatency => PerSecond(1),
        WorkloadType::Failover => PerSecond(10),
        _ => return,
    };
    if let Some(rate) = settings.request_rate.filter(|rate| *rate < least || *rate > PROBE_RATE_MOST) {
        let allowed = format!("\"{least}\" to \"{PROBE_RATE_MOST}\" is allowed for {}", kind.word());
        problems.add(&key_path(path, "request_rate"), format!("is \"{rate}\""), allowed);
    }
    let (least, most) = IDLE_SHARE_RANGE;
    let share = settings.idle_share.filter(|_| kind == WorkloadType::LoadedLatency);
    if let Some(share) = share.filter(|share| !(least.0..=most.0).contains(&share.0)) {
        let allowed = format!("{least} to {most} is allowed");
        problems.add(&key_path(path, "idle_share"), format!("is {share}"), allowed);
    }
}

/// Notes ways to wait that a type does not have.
fn check_wait(settings: &SettingsSpec, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    if kind == WorkloadType::TcpCrr && settings.wait == Some(Wait::BusyPoll) {
        let allowed = "allowed: `block` or `spin`; a connection is gone before polling for it would pay";
        problems.add(&key_path(path, "wait"), "is \"busy-poll\", which tcp-crr does not have", allowed);
    }
}

fn plain(value: u64) -> String {
    value.to_string()
}

fn bytes(value: u64) -> String {
    format!("\"{}\"", Bytes(value))
}

/// Notes a workload that is an open and a closed loop at once. `written` are the tables that the settings come from, the
/// one that overrides first.
pub(super) fn check_loop<P: Display + AsRef<str>>(
    effective: &SettingsSpec,
    kind: WorkloadType,
    written: &[(&SettingsSpec, P)],
    problems: &mut Problems<'_>,
) {
    let is_round_trip = matches!(kind, WorkloadType::TcpRr | WorkloadType::UdpRr);
    if !is_round_trip || effective.outstanding.is_none() || effective.request_rate.is_none() {
        return;
    }
    let blamed = written.iter().find_map(|(settings, path)| {
        let key = if settings.outstanding.is_some() { Some("outstanding") } else { None };
        let key = key.or(settings.request_rate.is_some().then_some("request_rate"))?;
        Some(key_path(path.as_ref(), key))
    });
    let wrong = "makes a closed loop (`outstanding`) and an open one (`request_rate`) of one workload";
    let allowed = format!("set one of {}", one_of(["outstanding", "request_rate"]));
    problems.add(&blamed.unwrap_or_default(), wrong, allowed);
}

/// The settings of a workload with those of an arm laid over them.
pub(super) fn overlaid(workload: &SettingsSpec, arm: &SettingsSpec) -> SettingsSpec {
    SettingsSpec {
        family: arm.family.or(workload.family),
        pin_client: arm.pin_client.clone().or_else(|| workload.pin_client.clone()),
        pin_server: arm.pin_server.clone().or_else(|| workload.pin_server.clone()),
        dscp: arm.dscp.or(workload.dscp),
        streams: arm.streams.or(workload.streams),
        direction: arm.direction.or(workload.direction),
        block: arm.block.or(workload.block),
        engine: arm.engine.or(workload.engine),
        congestion: arm.congestion.clone().or_else(|| workload.congestion.clone()),
        size: arm.size.or(workload.size),
        response_size: arm.response_size.or(workload.response_size),
        rate: arm.rate.or(workload.rate),
        volume: arm.volume.or(workload.volume),
        window: arm.window.or(workload.window),
        mss: arm.mss.or(workload.mss),
        flows: arm.flows.or(workload.flows),
        offload: arm.offload.or(workload.offload),
        outstanding: arm.outstanding.or(workload.outstanding),
        wait: arm.wait.or(workload.wait),
        request_rate: arm.request_rate.or(workload.request_rate),
        probe: arm.probe.or(workload.probe),
        idle_share: arm.idle_share.or(workload.idle_share),
        timestamps: arm.timestamps.or(workload.timestamps),
        generator: arm.generator.or(workload.generator),
        receiver: arm.receiver.or(workload.receiver),
        frame: arm.frame.or(workload.frame),
        packet_rate: arm.packet_rate.or(workload.packet_rate),
        queues: arm.queues.or(workload.queues),
        dpdk: dpdk::overlaid(workload.dpdk.as_ref(), arm.dpdk.as_ref()),
        events: arm.events.clone().or_else(|| workload.events.clone()),
    }
}

/// How long the path is idle in a workload of this duration.
pub(super) fn idle(settings: &SettingsSpec, duration: Nanos) -> Nanos {
    Nanos((duration.0 as f64 * settings.idle_share.unwrap_or(IDLE_SHARE).fraction()) as u64)
}

fn loaded_latency(settings: &SettingsSpec, duration: Nanos) -> LoadedLatency {
    let engine = settings.engine.unwrap_or_default();
    LoadedLatency {
        streams: settings.streams.unwrap_or(LOAD_STREAMS),
        direction: settings.direction.unwrap_or(Direction::Both),
        block: settings.block.unwrap_or(block(engine)),
        engine,
        congestion: settings.congestion.clone(),
        probe: settings.probe.unwrap_or_default(),
        size: settings.size.unwrap_or(REQUEST),
        rate: settings.request_rate.unwrap_or(PROBE_RATE),
        idle: idle(settings, duration),
    }
}

/// Most streams.
fn streams_most(settings: &SettingsSpec, kind: WorkloadType) -> u64 {
    if kind == WorkloadType::Failover {
        return 64;
    }
    let has_thread_each = settings.engine.is_some_and(TcpEngine::has_thread_each);
    if kind == WorkloadType::TcpStream && !has_thread_each { 20_000 } else { 1024 }
}

pub(super) fn block(engine: TcpEngine) -> Bytes {
    match engine {
        TcpEngine::Lean => BLOCK_LEAN,
        TcpEngine::Copy => BLOCK_COPY,
        TcpEngine::Zerocopy | TcpEngine::IoUring => BLOCK_UNCOPIED,
    }
}

/// The traffic of a type with these settings and every default, for a workload of this duration.
pub(super) fn traffic(settings: &SettingsSpec, kind: WorkloadType, duration: Nanos) -> Traffic {
    let direction = settings.direction.unwrap_or_default();
    let round_trip = || RoundTrip {
        size: settings.size.unwrap_or(REQUEST),
        outstanding: settings.outstanding.unwrap_or(1),
        wait: settings.wait.unwrap_or_default(),
        rate: settings.request_rate,
        timestamps: settings.timestamps.unwrap_or_default(),
        congestion: settings.congestion.clone(),
    };
    match kind {
        WorkloadType::TcpStream => {
            let engine = settings.engine.unwrap_or_default();
            Traffic::TcpStream(TcpStream {
                streams: settings.streams.unwrap_or(1),
                direction,
                block: settings.block.unwrap_or(block(engine)),
                engine,
                congestion: settings.congestion.clone(),
                rate: settings.rate,
                tuning: StreamTuning { volume: settings.volume, window: settings.window, mss: settings.mss },
            })
        }
        WorkloadType::UdpStream => {
            let default = match settings.family.unwrap_or_default() {
                Family::Ipv4 => DATAGRAM_IPV4,
                Family::Ipv6 => DATAGRAM_IPV6,
            };
            let size = settings.size.unwrap_or(default);
            Traffic::UdpStream(UdpStream {
                flows: settings.flows.unwrap_or(1),
                direction,
                size,
                rate: settings.rate,
                offload: settings.offload.unwrap_or(if settings.rate.is_none() && size <= default {
                    UdpOffload::Gso
                } else {
                    UdpOffload::None
                }),
                tuning: FlowTuning { volume: settings.volume, window: settings.window },
            })
        }
        WorkloadType::TcpRr => Traffic::TcpRr(round_trip()),
        WorkloadType::UdpRr => Traffic::UdpRr(round_trip()),
        WorkloadType::LoadedLatency => Traffic::LoadedLatency(loaded_latency(settings, duration)),
        WorkloadType::Failover => Traffic::Failover(failover::resolve(settings)),
        WorkloadType::Pps => packets::resolve(settings),
        WorkloadType::TcpCrr => {
            let request = settings.size.unwrap_or(REQUEST);
            let outstanding = if settings.request_rate.is_some() { TRANSACTIONS_OPEN } else { 1 };
            Traffic::TcpCrr(Transaction {
                request,
                response: settings.response_size.unwrap_or(request),
                outstanding: settings.outstanding.unwrap_or(outstanding),
                wait: settings.wait.unwrap_or_default(),
                rate: settings.request_rate,
                congestion: settings.congestion.clone(),
            })
        }
    }
}
