//! The facts of a host in words. All formats take them from here.
use netduel_model::snapshot::{Cloud, HostSnapshot, HugePages, Interface, NumaNode, Processor};
use netduel_model::units::{human_bit_rate, plural};

use super::text::ranges;
use crate::findings::{accelerations, queue_count};
use crate::topology::queues_by_core;

/// A fact: title and value.
pub type Fact = (&'static str, String);

/// Bytes for people, in powers of 1024.
pub(super) fn bytes(count: u64) -> String {
    let count = count as f64;
    match count {
        count if count >= f64::from(1 << 30) => format!("{:.1} GiB", count / f64::from(1 << 30)),
        count if count >= f64::from(1 << 20) => format!("{:.0} MiB", count / f64::from(1 << 20)),
        count => format!("{:.0} KiB", count / 1024.0),
    }
}

fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The facts of the machine and its network stack; unknown facts are omitted.
pub fn machine_facts(host: &HostSnapshot) -> Vec<Fact> {
    let facts = [
        ("machine", machine(host)),
        (
            "system",
            joined([
                host.os.clone(),
                host.kernel.as_ref().map(|kernel| format!("kernel {kernel}")),
                host.machine.clone(),
                host.build.as_ref().map(|build| format!("netduel build {build}")),
            ]),
        ),
        ("CPU", cpu(host)),
        ("memory", memory(host)),
        ("TCP", tcp(host)),
        ("firewall", firewall(host)),
    ];
    facts.into_iter().filter_map(|(title, text)| Some((title, text?))).collect()
}

fn machine(host: &HostSnapshot) -> Option<String> {
    let Some(cloud) = &host.cloud else { return joined([host.platform.clone(), host.hypervisor.clone()]) };
    joined([
        Some(match &cloud.size {
            Some(size) => format!("{} {size}", cloud.provider),
            None => cloud.provider.to_string(),
        }),
        place(cloud),
        cloud.placement.as_ref().map(|group| format!("placement {group}")),
        cloud.physical_host.as_ref().map(|physical| format!("physical host {physical}")),
        host.hypervisor.clone().filter(|hypervisor| *hypervisor != cloud.provider.words()),
        cloud.metadata_failure.as_ref().map(|failure| format!("no metadata: {failure}")),
    ])
}

/// Region, zone and fault domain: `westeurope zone 1 (westeurope-az2)`.
pub fn place(cloud: &Cloud) -> Option<String> {
    let zone = cloud.zone.as_ref().map(|zone| format!("zone {zone}"));
    let physical = cloud.physical_zone.as_ref().map(|zone| format!("({zone})"));
    let domain = cloud.fault_domain.as_ref().map(|domain| format!("fault domain {domain}"));
    let words: Vec<String> = [cloud.region.clone(), zone, physical, domain].into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn cpu(host: &HostSnapshot) -> Option<String> {
    let processor = host.processor.as_ref();
    let physical = processor.map(|processor| processor.physical_cores.len()).filter(|count| *count > 0);
    let sockets = processor.and_then(|processor| processor.sockets);
    let kept = match (physical, sockets) {
        (Some(physical), Some(sockets)) => {
            format!(" ({physical} physical, {})", plural(sockets, "socket"))
        }
        (Some(physical), None) => format!(" ({physical} physical)"),
        _ => String::new(),
    };
    let cache = processor.and_then(|processor| processor.caches.last());
    joined([
        (host.cores > 0).then(|| format!("{}{kept}", plural(host.cores, "core"))),
        host.cpu_model.clone(),
        cache.map(|cache| format!("L{} {}", cache.level, bytes(cache.bytes))),
        processor
            .and_then(|processor| processor.max_khz)
            .map(|khz| format!("up to {:.2} GHz", khz as f64 / 1e6)),
        processor
            .and_then(|processor| processor.governor.as_ref())
            .map(|governor| format!("governor {governor}")),
        processor
            .and_then(|processor| processor.allowed.as_ref())
            .map(|cores| format!("allowed cores {}", ranges(cores.iter().copied()))),
        processor
            .filter(|processor| !processor.isolated.is_empty())
            .map(|processor| format!("isolated cores {}", ranges(processor.isolated.iter().copied()))),
    ])
}

/// The caches of the first core with the cores that share each.
pub fn caches(processor: &Processor) -> Option<String> {
    let known: Vec<String> = processor
        .caches
        .iter()
        .map(|cache| {
            let kind = match cache.kind.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            let shared = match cache.cores.as_slice() {
                [] | [_] => String::new(),
                cores => format!(" (cores {})", ranges(cores.iter().copied())),
            };
            format!("L{}{kind} {}{shared}", cache.level, bytes(cache.bytes))
        })
        .collect();
    (!known.is_empty()).then(|| known.join(", "))
}

/// A node in one short text: `node 0, 32.0 GiB`. The memory of an only node is that of the machine, which its facts have.
pub fn node_title(node: &NumaNode, is_only: bool) -> String {
    match node.memory_bytes.filter(|_| !is_only) {
        Some(memory) => format!("node {}, {}", node.number, bytes(memory)),
        None => format!("node {}", node.number),
    }
}

/// One node: `node 0: cores 0-3, 32.0 GiB, 512 huge pages of 2 MiB (510 free)`.
pub fn node(node: &NumaNode) -> String {
    let pages = node.huge_pages.iter().filter(|pages| pages.total > 0).map(|pages| {
        Some(format!(
            "{} huge pages of {} ({} free)",
            pages.total,
            bytes(pages.size_kib.saturating_mul(1024)),
            pages.free
        ))
    });
    let facts = [
        (!node.cores.is_empty()).then(|| format!("cores {}", ranges(node.cores.iter().copied()))),
        node.memory_bytes.map(bytes),
    ];
    let facts = joined(facts.into_iter().chain(pages)).unwrap_or_else(|| "unknown".to_owned());
    format!("node {}: {facts}", node.number)
}

/// The huge pages that are set aside, by node, and on request how many are free; `none` where the kernel has them and none is.
pub fn huge_pages(nodes: &[NumaNode], with_free: bool) -> Option<String> {
    let all = || nodes.iter().flat_map(|node| node.huge_pages.iter().map(move |pages| (node, pages)));
    all().next()?;
    let known: Vec<String> = all()
        .filter(|(_, pages)| pages.total > 0)
        .map(|(node, pages)| {
            let HugePages { size_kib, total, free } = pages;
            let size = bytes(size_kib.saturating_mul(1024));
            let free = if with_free { format!(" ({free} free)") } else { String::new() };
            format!("node {}: {total} of {size}{free}", node.number)
        })
        .collect();
    Some(if known.is_empty() { "none".to_owned() } else { known.join("; ") })
}

fn memory(host: &HostSnapshot) -> Option<String> {
    let whole = host.memory_bytes.map(bytes);
    // A single node is the machine; only its huge pages are shown.
    let nodes = match host.numa_nodes.as_slice() {
        [one] if one.huge_pages.iter().all(|pages| pages.total == 0) => Vec::new(),
        nodes => nodes.iter().map(node).collect(),
    };
    let words: Vec<String> = whole.into_iter().chain(nodes).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn tcp(host: &HostSnapshot) -> Option<String> {
    let sysctl = |name: &str| host.sysctls.get(name);
    let max = |name: &str| sysctl(name)?.split_whitespace().last()?.parse().ok().map(bytes);
    joined([
        sysctl("net.ipv4.tcp_congestion_control").map(|name| format!("default congestion control {name}")),
        max("net.ipv4.tcp_rmem").map(|max| format!("receive buffer up to {max}")),
        max("net.ipv4.tcp_wmem").map(|max| format!("send buffer up to {max}")),
        sysctl("net.core.default_qdisc").map(|name| format!("default qdisc {name}")),
    ])
}

fn firewall(host: &HostSnapshot) -> Option<String> {
    let filter = host.firewall.as_ref()?;
    joined([
        filter.nft_rules.map(|rules| format!("{rules} nftables rules")),
        (!filter.iptables.is_empty()).then(|| format!("iptables {}", filter.iptables.join(" "))),
        filter.conntrack.map(|(now, most)| format!("{now} of {most} connections tracked")),
    ])
}

/// An interface in one line: `mlx5_core, up, 50.0 Gbit/s, MTU 1500, 10.0.0.4`.
pub fn interface(interface: &Interface) -> String {
    let state = match (interface.up, interface.carrier) {
        (false, _) => "down",
        (true, Some(false)) => "up, no carrier",
        (true, _) => "up",
    };
    let driver = interface.driver.clone().or_else(|| interface.kind.clone());
    let addresses = interface.addresses.iter().map(|address| Some(address.to_string()));
    let head = [
        driver,
        Some(state.to_owned()),
        interface.line_speed_mbps().map(|speed| human_bit_rate(f64::from(speed) * 1e6)),
        interface.mtu.map(|mtu| format!("MTU {mtu}")),
    ];
    joined(head.into_iter().chain(addresses)).unwrap_or_default()
}

/// The facts of an interface: device, acceleration, queues, rings, offloads, qdiscs, steering, counters.
pub fn interface_facts(host: &HostSnapshot, interface: &Interface) -> Vec<Fact> {
    let state = accelerations(host).into_iter().find(|(own, _)| own.name == interface.name);
    let facts = [
        ("device", device(interface)),
        ("acceleration", state.map(|(_, state)| state.words())),
        ("queues", queues(interface)),
        ("distribution", distribution(interface)),
        ("rings", rings(interface)),
        ("offloads", offloads(interface)),
        ("XDP", xdp(interface)),
        ("qdisc", qdisc(interface)),
        ("coalescing", coalescing(interface)),
        ("counters", counters(interface)),
    ];
    facts.into_iter().filter_map(|(title, text)| Some((title, text?))).collect()
}

fn device(interface: &Interface) -> Option<String> {
    let device = &interface.device;
    let pci = device.pci.as_ref().map(|pci| {
        let function = if pci.virtual_function == Some(true) { ", virtual function" } else { "" };
        format!("{:04x}:{:04x} at {}{function}", pci.vendor, pci.device, pci.slot)
    });
    joined([
        pci.or_else(|| device.bus_address.as_ref().map(|bus| format!("at {bus}"))),
        device.numa_node.map(|node| format!("node {node}")),
        device.firmware.as_ref().map(|firmware| format!("firmware {firmware}")),
    ])
}

/// The number of queues, and the cores that serve them.
fn queues(interface: &Interface) -> Option<String> {
    let (now, most) = queue_count(interface)?;
    let count = match most {
        Some(most) => format!("{now} of at most {most}"),
        None => now.to_string(),
    };
    let by_core = queues_by_core(interface);
    let cores = ranges(by_core.iter().map(|(core, _)| *core));
    let served = match by_core.as_slice() {
        [] => String::new(),
        [(core, _)] => format!(", served by core {core}"),
        many if many.iter().all(|(_, queues)| queues.len() == 1) && many.len() == now as usize => {
            format!(", one each on cores {cores}")
        }
        // One interrupt for each direction, or one that several cores may serve.
        _ if now == 1 => format!(", its interrupts on cores {cores}"),
        many => {
            let each: Vec<String> =
                many.iter().map(|(core, queues)| format!("core {core}: {}", queues.len())).collect();
            format!(", served by {} cores ({})", many.len(), each.join(", "))
        }
    };
    Some(format!("{count}{served}"))
}

fn distribution(interface: &Interface) -> Option<String> {
    let device = &interface.device;
    let entries = &device.rss_entries;
    let even = entries.iter().max().zip(entries.iter().min()).map(|(most, least)| most - least <= 1);
    let rss = even.map(|even| {
        if even {
            format!("RSS: even over {} queues", entries.len())
        } else {
            format!(
                "RSS: entries by queue {}",
                entries.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
            )
        }
    });
    let steered: Vec<u16> =
        device.receive_steering.iter().flat_map(|steering| steering.cores.iter().copied()).collect();
    let flows = device.receive_steering.iter().any(|steering| steering.flows > 0);
    let sent = device.transmit_steering.iter().filter(|cores| !cores.is_empty()).count();
    joined([
        rss,
        (!steered.is_empty()).then(|| format!("RPS to cores {}", ranges(steered))),
        flows.then(|| "RFS on".to_owned()),
        (sent > 0).then(|| format!("XPS on {sent} queues")),
    ])
}

fn rings(interface: &Interface) -> Option<String> {
    let rings = interface.device.rings?;
    Some(format!("receive {} of {}, transmit {} of {}", rings.rx.0, rings.rx.1, rings.tx.0, rings.tx.1))
}

fn offloads(interface: &Interface) -> Option<String> {
    if interface.features_on.is_empty() {
        return None;
    }
    let is_on = |names: &[&str]| interface.features_on.iter().any(|on| names.contains(&on.as_str()));
    let known: [(&[&str], &str); 5] = [
        (&["tx-tcp-segmentation"], "TSO"),
        (&["tx-generic-segmentation"], "GSO"),
        (&["rx-gro"], "GRO"),
        (&["tx-checksum-ipv4", "tx-checksum-ip-generic"], "transmit checksum"),
        (&["rx-checksum"], "receive checksum"),
    ];
    let (on, off): (Vec<_>, Vec<_>) = known.into_iter().partition(|(names, _)| is_on(names));
    let words = |list: &[(&[&str], &str)]| list.iter().map(|(_, word)| *word).collect::<Vec<_>>().join(" ");
    joined([
        (!on.is_empty()).then(|| format!("on: {}", words(&on))),
        (!off.is_empty()).then(|| format!("off: {}", words(&off))),
    ])
}

/// XDP features of the driver. Without driver support the kernel runs programs in generic mode.
fn xdp(interface: &Interface) -> Option<String> {
    let has = interface.device.xdp.as_ref()?;
    if has.is_empty() {
        return Some("no driver support: programs run in generic mode".to_owned());
    }
    Some(has.iter().map(|feature| feature.word()).collect::<Vec<_>>().join(" "))
}

fn qdisc(interface: &Interface) -> Option<String> {
    match interface.device.qdiscs.as_slice() {
        [] => interface.qdisc.clone(),
        [root] => Some(root.clone()),
        [root, children @ ..] => {
            let mut kinds: Vec<&String> = children.iter().collect();
            kinds.dedup();
            Some(format!(
                "{root} over {}",
                kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ")
            ))
        }
    }
}

/// Drivers whose values 1 and 3 are modes and no times (`igb_set_coalesce`, `e1000_set_coalesce` and `igbvf_set_coalesce` in Linux).
const DRIVERS_WITH_MODES: [&str; 4] = ["igb", "igbvf", "e1000", "e1000e"];

fn coalescing(interface: &Interface) -> Option<String> {
    let values = interface.device.coalescing?;
    let has_modes = interface.driver.as_deref().is_some_and(|driver| DRIVERS_WITH_MODES.contains(&driver));
    let direction = |usecs: u32, frames: u32, is_adaptive: bool| {
        let time = match usecs {
            1 if has_modes => "adaptive, lowest latency (mode 1)".to_owned(),
            3 if has_modes => "adaptive, conservative (mode 3)".to_owned(),
            usecs => format!("{usecs} us"),
        };
        // 0: the device does not count them.
        let count = if frames > 0 { format!(" or {frames} frames") } else { String::new() };
        format!("{time}{count}{}", if is_adaptive { ", adaptive" } else { "" })
    };
    let receive = direction(values.rx_usecs, values.rx_frames, values.adaptive_rx);
    let transmit = direction(values.tx_usecs, values.tx_frames, values.adaptive_tx);
    Some(format!("receive {receive}, transmit {transmit}"))
}

/// Counters that are not 0; most never rise.
fn counters(interface: &Interface) -> Option<String> {
    let counted = interface.device.counters.iter().filter(|(_, count)| **count > 0);
    joined(counted.map(|(name, count)| Some(format!("{name} {count}"))))
}
