//! The link itself: carrier, offloads, queueing disciplines, and memory for the speed.
use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Interface, XdpFeature};
use netduel_model::units::{human_bit_rate, human_nanos};

use super::finding::{Finding, Severity};
use super::nic::{carriers, is_hardware, is_synthetic, partner};
use super::size;

/// Drivers whose devices support segmentation and checksum offload; of other drivers this is unknown.
const CAN_OFFLOAD: [&str; 10] =
    ["hv_netvsc", "mlx4_en", "mlx5_core", "mana", "gve", "i40e", "iavf", "ice", "ixgbe", "vmxnet3"];
/// A buffer that holds less than this time at link speed is the limit even within a data centre, seconds.
const ROUND_TRIP: f64 = 0.001;

pub(super) fn find(host: &HostSnapshot) -> Vec<Finding> {
    let mut found: Vec<Finding> =
        host.interfaces.iter().filter_map(|interface| carrier(host, interface)).collect();
    found.extend(host.interfaces.iter().filter_map(|interface| queueing(host, interface)));
    for interface in carriers(host) {
        found.extend(offloads(interface));
        found.extend(xdp(interface));
    }
    found.extend(buffers(host));
    found
}

fn carrier(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    let name = &interface.name;
    let is_used = !interface.addresses.is_empty() || host.default_routes.contains(name);
    if !is_hardware(interface) || !is_used {
        return None;
    }
    let finding = match (interface.up, interface.carrier) {
        (true, Some(false)) => {
            Finding::new("no-carrier", Severity::Problem, format!("{name} is up without carrier"))
                .why("the interface sends and receives no packets")
                .remedy("check the cable, the switch port, or the hypervisor's end of the device")
                .command(format!("ethtool {name} | grep -i link", name = shell::word(name)))
        }
        (false, _) => {
            Finding::new("link-down", Severity::Warning, format!("{name} has an address and is down"))
                .why("traffic to and from its address fails")
                .remedy("bring it up, or remove its address")
                .command(format!("ip link set {name} up", name = shell::word(name)))
        }
        _ => return None,
    };
    let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
    Some(finding.on(name).seen(match addresses.as_slice() {
        [] => "default route".to_owned(),
        addresses => format!("addresses {}", addresses.join(", ")),
    }))
}

/// A packet that is queued on the paravirtual interface is queued again on the virtual function below.
fn queueing(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    if !is_synthetic(interface) {
        return None;
    }
    let vf = partner(host, interface).filter(|vf| vf.up)?;
    let discipline = |interface: &Interface| {
        let all = interface.device.qdiscs.join(", ");
        let all = if all.is_empty() { interface.qdisc.clone().unwrap_or_default() } else { all };
        (!all.is_empty() && all != "noqueue").then_some(all)
    };
    let (above, beneath) = (discipline(interface)?, discipline(vf)?);
    Some(
        Finding::new(
            "double-queueing",
            Severity::Note,
            format!("packets are queued twice: on {} and on {}", interface.name, vf.name),
        )
        .on(&interface.name)
        .seen(format!("{}: {above}; {}: {beneath}", interface.name, vf.name))
        .why("two qdiscs cost CPU time per packet, and the upper one does not see the queue of the lower one")
        .remedy("remove one: Azure's guide keeps fq on the paravirtual interface and none on the virtual function")
        .command(format!("tc qdisc replace dev {} root noqueue", shell::word(&vf.name))),
    )
}

/// A driver without XDP: kernel bypass then still passes a part of the network stack.
fn xdp(interface: &Interface) -> Option<Finding> {
    let has = interface.device.xdp.as_ref()?;
    if has.contains(&XdpFeature::Basic) || !is_hardware(interface) {
        return None;
    }
    let name = &interface.name;
    Some(
        Finding::new("xdp-generic", Severity::Note, format!("the driver of {name} has no XDP support"))
            .on(name)
            .seen(format!("driver {}", interface.driver.as_deref().unwrap_or("unknown")))
            .why("XDP programs and AF_XDP sockets run in generic mode: the kernel allocates a socket buffer for each frame first")
            .remedy("use a driver with XDP support; without one, results of the generators and receivers `xdp` and `count` include this cost")
            .command(format!("ethtool -i {name}", name = shell::word(name))),
    )
}

/// An offload: the kernel's names of its features, one of which suffices; the keyword of `ethtool -K`; the words for people.
const OFFLOADS: [(&[&str], &str, &str); 4] = [
    (&["tx-tcp-segmentation"], "tso", "TCP segmentation (TSO)"),
    (&["tx-checksum-ipv4", "tx-checksum-ip-generic"], "tx", "transmit checksum"),
    (&["tx-generic-segmentation"], "gso", "generic segmentation (GSO)"),
    (&["rx-gro"], "gro", "generic receive offload (GRO)"),
];

/// The kernel turns GSO off for a device without it (`netdev_fix_features` in net/core/dev.c).
const NEEDED_BY_GSO: &[&str] = &["tx-scatter-gather"];

fn offloads(interface: &Interface) -> Option<Finding> {
    // An empty list means that features were not read.
    if interface.features_on.is_empty() {
        return None;
    }
    let can = interface.driver.as_deref().is_some_and(|driver| CAN_OFFLOAD.contains(&driver));
    let is_on = |names: &[&str]| interface.features_on.iter().any(|on| names.contains(&on.as_str()));
    let off: Vec<_> = OFFLOADS
        .iter()
        // The kernel itself can do the last two; without scatter-gather of the device it refuses GSO.
        .filter(|(names, word, _)| {
            !is_on(names) && (can || *word == "gro" || *word == "gso" && is_on(NEEDED_BY_GSO))
        })
        .collect();
    let first = off.first()?;
    let name = &interface.name;
    let words: Vec<&str> = off.iter().map(|(_, _, words)| *words).collect();
    let keys: Vec<String> = off.iter().map(|(_, key, _)| format!("{key} on")).collect();
    let per_packet = "the kernel then processes each packet instead of segments of up to 64 kB";
    // Measured without any one of the first three; GRO alone was not.
    let (severity, why) = if off.len() == 1 && first.1 == "gro" {
        (Severity::Note, per_packet.to_owned())
    } else {
        let measured = "a veth in netduel's lab lost four fifths of its throughput";
        (Severity::Warning, format!("{per_packet}: {measured}"))
    };
    Some(
        Finding::new("offload-off", severity, format!("offloads of {name} are off: {}", words.join(", ")))
            .on(name)
            .seen(format!("driver {}", interface.driver.as_deref().unwrap_or("unknown")))
            .why(why)
            .remedy("turn them on, unless they are the subject of the measurement")
            .command(format!("ethtool -K {name} {}", keys.join(" "), name = shell::word(name))),
    )
}

/// Whether the buffers of one connection hold the data in flight at the speed of the fastest link.
fn buffers(host: &HostSnapshot) -> Option<Finding> {
    let interface = carriers(host).max_by_key(|interface| interface.speed_mbps)?;
    // A guest sees the speed of the physical link; the limit of its size is lower.
    let link_mbps = interface.speed_mbps?;
    let mbps = size::known(host).map_or(link_mbps, |size| link_mbps.min(size.mbps));
    let speed = f64::from(mbps) * 1e6;
    let most = |name: &str| host.sysctls.get(name)?.split_whitespace().last()?.parse::<u64>().ok();
    let names = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
    let small: Vec<(&str, u64)> = names
        .into_iter()
        .filter_map(|name| Some((name, most(name)?)))
        .filter(|(_, bytes)| *bytes as f64 * 8.0 / speed < ROUND_TRIP)
        .collect();
    let wanted = (speed * ROUND_TRIP * 4.0 / 8.0) as u64;
    let smallest = small.iter().map(|(_, bytes)| *bytes).min()?;
    let covered = human_nanos(smallest as f64 * 8e9 / speed);
    let evidence: Vec<String> =
        small.iter().map(|(name, bytes)| format!("{name} is at most {bytes} B")).collect();
    let commands: Vec<String> = small
        .iter()
        .map(|(name, _)| {
            let value = host.sysctls.get(*name).map(String::as_str).unwrap_or_default();
            let head: Vec<&str> = value.split_whitespace().take(2).collect();
            format!("sysctl -w {}", shell::word(&format!("{name}={} {wanted}", head.join(" "))))
        })
        .collect();
    Some(
        Finding::new(
            "small-buffers",
            Severity::Warning,
            format!("TCP buffers are small for the {} of {}", human_bit_rate(speed), interface.name),
        )
        .on(&interface.name)
        .seen(evidence.join(", "))
        .seen(format!("the smaller one holds {covered} at that speed"))
        .why("a stream with a longer round-trip time is limited by its window, not by the path")
        .remedy("raise the last value (maximum) on both hosts")
        .command(commands.join("; ")),
    )
}
