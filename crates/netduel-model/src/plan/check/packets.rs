//! Settings of `pps`: who makes and takes packets of which size, and what goes together.
use super::dpdk;
use crate::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, key_path};
use crate::plan::spec::{ArmSpec, SettingsSpec, WorkloadSpec, WorkloadType};
use crate::units::{BitRate, Bytes};
use crate::workload::{Direction, Family, FlowTuning, Pps, Traffic, UdpOffload, UdpStream, Wait, Workload};

use super::search;

/// Enough for the hashes of a NIC to reach all of some queues, and few enough for the flow tables of a cloud.
const FLOWS: u32 = 16;

/// A workload, once for each of its sizes of frames.
pub(super) fn by_frames(workload: &WorkloadSpec) -> Vec<WorkloadSpec> {
    let Some(frames) = workload.frames.as_ref().filter(|_| workload.kind == Some(WorkloadType::Pps)) else {
        return vec![workload.clone()];
    };
    let of = |frame: &u32| {
        let mut one = workload.clone();
        one.frames = None;
        one.settings.frame = Some(*frame);
        // A name that grows too long is left as it is, and then noted as one that is there twice.
        let name = one.name.as_ref().and_then(|name| format!("{name}-{frame}").parse().ok());
        one.name = name.or(one.name);
        one
    };
    let is_first = |(index, frame): &(usize, &u32)| !frames[..*index].contains(frame);
    frames.iter().enumerate().filter(is_first).map(|(_, frame)| of(frame)).collect()
}

/// Notes a list of sizes that is none, and one beside the single size.
pub(super) fn check_frames(workload: &WorkloadSpec, path: &str, problems: &mut Problems<'_>) {
    let Some(frames) = &workload.frames else { return };
    let path = key_path(path, "frames");
    if workload.kind.is_some_and(|kind| kind != WorkloadType::Pps) {
        problems.add(&path, "is a key of another type", "only pps has sizes of frames");
    } else if workload.settings.frame.is_some() {
        problems.add(&path, "stands beside `frame`", "set one of frame, frames");
    } else if frames.is_empty() {
        problems.add(&path, "is empty", "name at least one size, for example [64, 512, 1518]");
    }
    for (index, frame) in frames.iter().enumerate() {
        if frames[..index].contains(frame) {
            problems.add(&path, format!("has {frame} twice"), "name each size once");
        }
    }
}

/// Notes what does not go together in an arm's packets. `path`: the workload's, where the arm does not set it.
pub(super) fn check_arm(
    workload: &Workload,
    (written, path): (&WorkloadSpec, &str),
    (arm, arm_path): (&ArmSpec, &str),
    problems: &mut Problems<'_>,
) {
    let Traffic::Pps(Pps { udp: UdpStream { direction, rate, flows, .. }, packets }) = &workload.traffic
    else {
        return;
    };
    let set = arm.set.clone().unwrap_or_default();
    let at = |key: &str| {
        let path = if set.given().contains(&key) { key_path(arm_path, "set") } else { path.to_owned() };
        if key == "frame" && written.frames.is_some() {
            key_path(&path, "frames")
        } else {
            key_path(&path, key)
        }
    };
    if *direction != Direction::Up && packets.is_any_raw() {
        let wrong = format!("is \"{}\" for packets past the network stack", direction.word());
        let allowed = "only `up` is there: the client sends; exchange `client` and `server` of the arm";
        problems.add(&at("direction"), wrong, allowed);
    }
    if rate.is_some() && !packets.engine.keeps_a_rate() {
        let wrong = format!("is asked of the generator `{}`, which cannot be paced", packets.engine.word());
        let allowed =
            "leave it out to find the most, or use the generator `xdp` or `socket`, which keep a rate";
        problems.add(&at("packet_rate"), wrong, allowed);
    }
    if packets.queues.is_some()
        && packets.engine != PacketEngine::Xdp
        && packets.receiver != PacketReceiver::Xdp
    {
        let wrong = "is given where neither end opens queues itself";
        let allowed = "the treatment `queues` changes how many an interface has; this setting is for `xdp`";
        problems.add(&at("queues"), wrong, allowed);
    }
    if let Some(queues) =
        packets.queues.filter(|queues| packets.engine == PacketEngine::Xdp && queues > flows)
    {
        let wrong = format!("is {queues}, more than the {flows} flows that are to fill them");
        problems.add(&at("queues"), wrong, "give it more `flows`, a multiple of the queues");
    }
    let wait = set.wait.or(written.settings.wait);
    if let Some(wait) = wait.filter(|wait| *wait == Wait::Block || packets.receiver != PacketReceiver::Xdp) {
        let word = if wait == Wait::Block { "block" } else { "set" };
        let wrong = format!("is {word} for the receiver `{}`", packets.receiver.word());
        let allowed = "only the receiver `xdp` has it: `spin` (its default) or `busy-poll`";
        problems.add(&at("wait"), wrong, allowed);
    }
    if workload.family == Family::Ipv6 && packets.engine == PacketEngine::Kernel {
        let wrong = "is IPv6, whose datagrams need a sum that the generator `kernel` does not write";
        problems.add(&at("family"), wrong, "use IPv4, or the generator `xdp` or `socket`");
    }
    search::check_arm(packets, (*direction, rate.is_some()), &at, problems);
    dpdk::check_arm(packets, workload.family, &at, problems);
}

/// The traffic with every default.
pub(super) fn resolve(settings: &SettingsSpec) -> Traffic {
    let family = settings.family.unwrap_or_default();
    let engine = settings.generator.unwrap_or_default();
    let receiver = settings.receiver.unwrap_or(engine.receiver());
    let frame = settings.frame.unwrap_or(PacketPath::frame_least(family));
    // A frame without room for a payload is noted by `check_arm`.
    let size = PacketPath::payload(frame, family).unwrap_or(Bytes(1));
    let dpdk = dpdk::resolve(settings, engine, receiver);
    let receive_queues = dpdk.as_ref().map_or(1, |dpdk| dpdk.receive_queues);
    let flows = match engine {
        PacketEngine::Kernel => 1,
        // What it makes of more, depends on its version: see `DpdkFlows`.
        PacketEngine::Dpdk if receive_queues == 1 => 1,
        _ => FLOWS,
    };
    let udp = UdpStream {
        flows: settings.flows.unwrap_or(flows),
        direction: settings.direction.unwrap_or_default(),
        size,
        rate: settings.packet_rate.map(|rate| BitRate(rate.0.saturating_mul(size.0).saturating_mul(8))),
        // A sender joins datagrams only where its interface is seen to cut them.
        offload: if engine == PacketEngine::Socket || receiver == PacketReceiver::Socket {
            UdpOffload::GsoGro
        } else {
            UdpOffload::None
        },
        tuning: FlowTuning { volume: None, window: settings.window },
    };
    let packets = PacketPath {
        engine,
        receiver,
        frame,
        queues: settings.queues,
        busy_poll: settings.wait == Some(Wait::BusyPoll),
        search: None,
        client_interface: None,
        server_interface: None,
        dpdk,
    };
    Traffic::Pps(Pps { udp, packets })
}

/// Has the packets of an arm go over the interfaces that are expected to carry its bytes.
pub(super) fn over(workload: &mut Workload, client: Option<&String>, server: Option<&String>) {
    if let Traffic::Pps(Pps { packets, .. }) = &mut workload.traffic {
        packets.client_interface = client.cloned();
        packets.server_interface = server.cloned();
    }
}
