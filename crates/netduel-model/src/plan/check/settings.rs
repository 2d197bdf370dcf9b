//! Settings of workloads: which type has which, their ranges and defaults, and what an arm may override.
use std::fmt::Display;

use crate::plan::problem::{Problems, key_path, one_of};
use crate::plan::spec::{SettingsSpec, WorkloadType};
use crate::units::{Bytes, Nanos, PerSecond, Percent};
use crate::workload::{
    Direction, Family, FlowTuning, LoadedLatency, OutOfRange, RoundTrip, Setting, StreamTuning, TcpEngine,
    TcpStream, Traffic, Transaction, UdpOffload, UdpStream, Wait, Workload,
};

use super::{dpdk, failover, packets};

/// `splice` of 1 MiB and `write` of 128 KiB were the fastest sizes in measurements.
const BLOCK_LEAN: Bytes = Bytes(1 << 20);
const BLOCK_COPY: Bytes = Bytes(128 << 10);
/// Bytes a call of the engines that the kernel tells when it is done with their memory: each call costs such a message.
const BLOCK_UNCOPIED: Bytes = Bytes(256 << 10);
/// Fits an MTU of 1500 with the headers of a tunnel.
const DATAGRAM_IPV4: Bytes = Bytes(1448);
const DATAGRAM_IPV6: Bytes = Bytes(1428);
const REQUEST: Bytes = Bytes(64);
/// Transactions of an open loop that may be under way when the plan does not say: beyond it the schedule is missed, and the
/// report says so.
const TRANSACTIONS_OPEN: u32 = 64;

/// As many as draft-ietf-ippm-responsiveness has at most (MNP): together they fill a queue whichever of them backs off.
const LOAD_STREAMS: u32 = 16;
/// Enough for a 99th percentile in some seconds, and 0.2 Mbit/s of load.
const PROBE_RATE: PerSecond = PerSecond(200);
const IDLE_SHARE: Percent = Percent(25.0);

/// The settings that a type of workload has.
pub(super) fn of(kind: WorkloadType) -> Vec<&'static str> {
    kind.settings().iter().map(|setting| setting.key).collect()
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
        let mut settings: Vec<&str> = kinds.iter().flat_map(|kind| of(*kind)).collect();
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
    for setting in kind.settings() {
        let (Some(range), Some(value)) = (setting.range, settings.number(setting.key)) else { continue };
        if !range.contains(value) {
            let out = OutOfRange { key: setting.key, value, range, beside: "" };
            note(setting, out, kind, &key_path(path, setting.key), problems);
        }
    }
    check_wait(settings, kind, path, problems);
    dpdk::check_ranges(settings, kind, path, problems);
    if of(kind).contains(&"congestion")
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

/// Notes a value that is out of its range.
fn note(setting: &Setting, out: OutOfRange, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    let OutOfRange { value, range, beside, .. } = out;
    let [value, least, most] = [value, range.least, range.most].map(|value| range.unit.toml(value));
    let advice = if setting.advice.is_empty() { String::new() } else { format!("; {}", setting.advice) };
    let allowed = format!("{least} to {most} is allowed for {}{beside}{advice}", kind.word());
    problems.add(path, format!("is {value}"), allowed);
}

/// Notes what is in the range of its setting, but not beside the other settings of an arm. `at`: where a key is written.
pub(super) fn check_together(workload: &Workload, at: &dyn Fn(&str) -> String, problems: &mut Problems<'_>) {
    let Some(out) = workload.out_of_range() else { return };
    let kind = workload.traffic.kind();
    let setting = kind.settings().iter().find(|setting| setting.key == out.key);
    let Some(setting) = setting.filter(|setting| setting.range.is_some_and(|all| all.contains(out.value)))
    else {
        return;
    };
    note(setting, out, kind, &at(out.key), problems);
}

/// Notes ways to wait that a type does not have.
fn check_wait(settings: &SettingsSpec, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    if kind == WorkloadType::TcpCrr && settings.wait == Some(Wait::BusyPoll) {
        let allowed = "allowed: `block` or `spin`; a connection is gone before polling for it would pay";
        problems.add(&key_path(path, "wait"), "is \"busy-poll\", which tcp-crr does not have", allowed);
    }
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

pub(super) fn block(engine: TcpEngine) -> Bytes {
    match engine {
        TcpEngine::Lean => BLOCK_LEAN,
        TcpEngine::Copy => BLOCK_COPY,
        TcpEngine::Zerocopy | TcpEngine::IoUring => BLOCK_UNCOPIED,
    }
}

/// The traffic of a type with these settings and every default, for a workload of this duration.
pub fn traffic(settings: &SettingsSpec, kind: WorkloadType, duration: Nanos) -> Traffic {
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
