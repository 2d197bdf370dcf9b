//! The link itself: carrier, offloads, queueing disciplines, and memory for the speed.
use netduel_model::snapshot::{HostSnapshot, Interface, XdpFeature};
use netduel_model::units::{human_bit_rate, human_nanos};

use super::finding::{Finding, Severity};
use super::nic::{carriers, is_hardware, is_synthetic, partner};
use super::size;

/// Drivers whose devices segment and check sums on their own; of others nobody knows whether they could.
const CAN_OFFLOAD: [&str; 10] =
    ["hv_netvsc", "mlx4_en", "mlx5_core", "mana", "gve", "i40e", "iavf", "ice", "ixgbe", "vmxnet3"];
/// A buffer that holds less than this of the link's rate is the limit also within a data centre, seconds.
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
            Finding::new("no-carrier", Severity::Problem, format!("{name} is up and has no carrier"))
                .why("nothing is sent or received")
                .remedy("look at the cable, the switch port, or the hypervisor's end of the device")
                .command(format!("ethtool {name} | grep -i link"))
        }
        (false, _) => {
            Finding::new("link-down", Severity::Warning, format!("{name} has an address and is down"))
                .why("no traffic of its address can pass")
                .remedy("bring it up, or take its address away")
                .command(format!("ip link set {name} up"))
        }
        _ => return None,
    };
    let addresses: Vec<String> = interface.addresses.iter().map(ToString::to_string).collect();
    Some(finding.on(name).seen(match addresses.as_slice() {
        [] => "the default route goes over it".to_owned(),
        addresses => format!("addresses {}", addresses.join(", ")),
    }))
}

/// A packet that is queued above, on the paravirtual interface, is queued again beneath, on the virtual function.
fn queueing(host: &HostSnapshot, interface: &Interface) -> Option<Finding> {
    if !is_synthetic(interface) {
        return None;
    }
    let vf = partner(host, interface).filter(|vf| vf.up)?;
    let discipline = |interface: &Interface| {
        let told = interface.device.disciplines.join(", ");
        let told = if told.is_empty() { interface.qdisc.clone().unwrap_or_default() } else { told };
        (!told.is_empty() && told != "noqueue").then_some(told)
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
        .why("two disciplines cost CPU for each packet, and the upper one cannot see the queue of the lower")
        .remedy("leave one: Azure's guide keeps fq above and none beneath; compare both with netduel")
        .command(format!("tc qdisc replace dev {} root noqueue", vf.name)),
    )
}

/// A driver without XDP: what goes past the network stack passes a part of it all the same.
fn xdp(interface: &Interface) -> Option<Finding> {
    let has = interface.device.xdp.as_ref()?;
    if has.contains(&XdpFeature::Basic) || !is_hardware(interface) {
        return None;
    }
    let name = &interface.name;
    Some(
        Finding::new("xdp-generic", Severity::Note, format!("the driver of {name} has no XDP"))
            .on(name)
            .seen(format!("driver {}", interface.driver.as_deref().unwrap_or("unknown")))
            .why("XDP programs and AF_XDP sockets then run in generic mode: the kernel makes a socket buffer of each frame first")
            .remedy("read figures of the packet engines `xdp` and `count` as those of this kernel, or use a newer driver that has XDP")
            .command(format!("ethtool -i {name}")),
    )
}

/// An offload: its names as the kernel has them, any of which will do; the word of `ethtool -K`; and for people.
const OFFLOADS: [(&[&str], &str, &str); 4] = [
    (&["tx-tcp-segmentation"], "tso", "TCP segmentation (TSO)"),
    (&["tx-checksum-ipv4", "tx-checksum-ip-generic"], "tx", "transmit checksum"),
    (&["tx-generic-segmentation"], "gso", "generic segmentation (GSO)"),
    (&["rx-gro"], "gro", "generic receive offload (GRO)"),
];

fn offloads(interface: &Interface) -> Option<Finding> {
    // A device that tells of no feature at all was not asked.
    if interface.features_on.is_empty() {
        return None;
    }
    let can = interface.driver.as_deref().is_some_and(|driver| CAN_OFFLOAD.contains(&driver));
    let is_on = |names: &[&str]| interface.features_on.iter().any(|on| names.contains(&on.as_str()));
    let off: Vec<_> = OFFLOADS
        .iter()
        // The kernel itself can do the last two for every device.
        .filter(|(names, word, _)| !is_on(names) && (can || matches!(*word, "gso" | "gro")))
        .collect();
    let first = off.first()?;
    let name = &interface.name;
    let words: Vec<&str> = off.iter().map(|(_, _, words)| *words).collect();
    let keys: Vec<String> = off.iter().map(|(_, key, _)| format!("{key} on")).collect();
    // Segmentation and receive offload decide by a factor; our lab's veth lost four fifths without any of the first three.
    let severity = if off.len() == 1 && first.1 == "gro" { Severity::Note } else { Severity::Warning };
    Some(
        Finding::new("offload-off", severity, format!("{name} has offloads off: {}", words.join(", ")))
            .on(name)
            .seen(format!("driver {}", interface.driver.as_deref().unwrap_or("unknown")))
            .why("each packet then costs what else a burst of up to 64 kB costs: a fourth of the throughput in our lab")
            .remedy("turn them on, unless the measurement is about them")
            .command(format!("ethtool -K {name} {}", keys.join(" "))),
    )
}

/// Whether one connection's buffers hold what is under way at the speed of the fastest link.
fn buffers(host: &HostSnapshot) -> Option<Finding> {
    let interface = carriers(host).max_by_key(|interface| interface.speed_mbps)?;
    // A guest sees the speed of the physical link; its size lets less through.
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
        small.iter().map(|(name, bytes)| format!("{name} ends at {bytes} B")).collect();
    let commands: Vec<String> = small
        .iter()
        .map(|(name, _)| {
            let value = host.sysctls.get(*name).map(String::as_str).unwrap_or_default();
            let head: Vec<&str> = value.split_whitespace().take(2).collect();
            format!("sysctl -w {name}='{} {wanted}'", head.join(" "))
        })
        .collect();
    Some(
        Finding::new(
            "small-buffers",
            Severity::Warning,
            format!("TCP's buffers are small for {} of {}", human_bit_rate(speed), interface.name),
        )
        .on(&interface.name)
        .seen(evidence.join(", "))
        .seen(format!("the smaller is full after {covered} at that speed"))
        .why("a stream whose round trip is longer than that waits for its window and not for the path")
        .remedy("raise the last value of each on both hosts")
        .command(commands.join("; ")),
    )
}
