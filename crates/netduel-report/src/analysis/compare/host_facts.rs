//! Facts of a host and its interfaces for a comparison of runs. Each type of the snapshot is taken apart without `..`, so that a new field
//! is listed here or left out by its name. It compares nothing.
use netduel_model::snapshot::{
    Cloud, Coalescing, Device, Firewall, HostSnapshot, Interface, KernelSettings, NumaNode, PciFunction,
    Processor, QueueInterrupt, ReceiveSteering, Route, XdpFeature,
};

use super::bed_facts;
use super::facts::Aspect;
use crate::words;

/// Names of facts that a run has only with a testpmd that ran, and the second since a later version.
pub(super) const DPDK: &str = "DPDK";
pub(super) const RDMA_CORE: &str = "rdma-core";
/// Names of facts that snapshots of earlier versions lack.
const ROUTES: &str = "routes";
const NEXT_HOPS: &str = "next hops and MTUs of routes";
const ROUTE_ATTRIBUTES: &str = "attributes of routes";
const BOOT_PARAMETERS: &str = "kernel boot parameters";
const TRANSPARENT_HUGE_PAGES: &str = "transparent huge pages";
const SMT: &str = "SMT";
/// How the name of each fact about a vulnerability of the CPU begins.
const CPU_VULNERABILITY: &str = "CPU vulnerability";

/// Facts of a host that some runs lack together, among them those of earlier versions. A run without any of them does
/// not know them: what another run has is no difference then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Later {
    /// The routes of the main table.
    Routes,
    /// Their next hops and MTUs.
    NextHops,
    /// Their other attributes.
    RouteAttributes,
    /// The settings of the kernel beside sysctls.
    KernelSettings,
    /// The version of DPDK.
    Dpdk,
    /// The version of rdma-core that testpmd had loaded.
    RdmaCore,
    /// What the provider claims of a VM of a bed.
    Bed,
}

impl Later {
    /// The group of a fact of the whole host; absent for a fact that every version has.
    pub(super) fn of(aspect: Aspect, name: &str) -> Option<Self> {
        match name {
            DPDK if aspect == Aspect::Program => Some(Self::Dpdk),
            RDMA_CORE if aspect == Aspect::Program => Some(Self::RdmaCore),
            name if bed_facts::is_of_bed(name) => Some(Self::Bed),
            _ if aspect != Aspect::System => None,
            ROUTES => Some(Self::Routes),
            NEXT_HOPS => Some(Self::NextHops),
            ROUTE_ATTRIBUTES => Some(Self::RouteAttributes),
            BOOT_PARAMETERS | TRANSPARENT_HUGE_PAGES | SMT => Some(Self::KernelSettings),
            name => name.starts_with(CPU_VULNERABILITY).then_some(Self::KernelSettings),
        }
    }
}

/// Lists the facts of a host beside its interfaces and sysctls. `size`: that of the plan, which has precedence.
pub(super) fn of_host(
    host: &HostSnapshot,
    size: Option<String>,
    add: &mut impl FnMut(Aspect, &str, Option<String>),
) {
    let HostSnapshot {
        hostname,
        kernel,
        build,
        machine,
        os,
        platform,
        machine_uuid,
        cpu_model,
        cores,
        memory_bytes,
        processor,
        numa_nodes,
        kernel_settings,
        hypervisor,
        cloud,
        pci_functions,
        firewall,
        irqbalance,
        default_routes,
        routes,
        // Those that are not known are listed as none.
        routes_listed: _,
        // They are listed on their own.
        interfaces: _,
        sysctls: _,
        // Each start of a machine or a lab has others.
        boot_id: _,
        netns: _,
    } = host;
    add(Aspect::Program, "build of netduel", build.clone());
    add(Aspect::System, "kernel", kernel.clone());
    add(Aspect::System, "distribution", os.clone());
    add(Aspect::System, "irqbalance", irqbalance.map(on_or_off));
    add(Aspect::System, "default routes", Some(default_routes.join(", ")));
    add(Aspect::System, ROUTES, Some(routes.iter().map(route).collect::<Vec<_>>().join("; ")));
    add(Aspect::System, NEXT_HOPS, next_hops(routes));
    add(Aspect::System, ROUTE_ATTRIBUTES, attributes_of(routes));
    add(Aspect::Size, "size", size.or_else(|| cloud.as_ref()?.size.clone()));
    add(Aspect::Machine, "architecture", machine.clone());
    add(Aspect::Machine, "CPU model", cpu_model.clone());
    add(Aspect::Machine, "cores online", (*cores > 0).then(|| cores.to_string()));
    add(Aspect::Machine, "memory", memory_bytes.map(gibibytes));
    add(Aspect::Machine, "hypervisor", hypervisor.clone().or_else(|| platform.clone()));
    if let Some(processor) = processor {
        of_processor(processor, add);
    }
    let nodes: Vec<String> = numa_nodes.iter().map(node).collect();
    add(Aspect::Machine, "NUMA nodes", Some(nodes.join("; ")));
    // How many are free differs from start to start.
    add(Aspect::Machine, "huge pages", words::huge_pages(numa_nodes, false));
    add(Aspect::Machine, "PCI network functions", Some(functions(pci_functions)));
    if let Some(settings) = kernel_settings {
        of_kernel(settings, add);
    }
    add(Aspect::Placement, "host name", hostname.clone());
    add(Aspect::Placement, "machine UUID", machine_uuid.clone());
    if let Some(cloud) = cloud {
        of_cloud(cloud, add);
    }
    if let Some(firewall) = firewall {
        let Firewall { nft_rules, iptables, conntrack } = firewall;
        add(Aspect::Firewall, "nftables rules", nft_rules.map(|rules| rules.to_string()));
        add(Aspect::Firewall, "iptables tables", Some(iptables.join(", ")));
        add(Aspect::Firewall, "limit of tracked connections", conntrack.map(|(_, limit)| limit.to_string()));
    }
}

fn of_processor(processor: &Processor, add: &mut impl FnMut(Aspect, &str, Option<String>)) {
    let Processor {
        identity,
        sockets,
        physical_cores,
        max_khz,
        governor,
        // Their words read it.
        caches: _,
        allowed,
        isolated,
    } = processor;
    let threads: usize = physical_cores.iter().map(Vec::len).sum();
    let physical = || format!("{} for {threads} threads", physical_cores.len());
    add(Aspect::Machine, "CPU identity", identity.clone());
    add(Aspect::Machine, "sockets", sockets.map(|sockets| sockets.to_string()));
    add(Aspect::Machine, "physical cores", (threads > 0).then(physical));
    add(Aspect::Machine, "highest clock rate", max_khz.map(|khz| format!("{:.2} GHz", khz as f64 / 1e6)));
    add(Aspect::Machine, "clock rate governor", governor.clone());
    add(Aspect::Machine, "caches of the first core", words::caches(processor));
    add(Aspect::Machine, "allowed cores", allowed.as_deref().map(cores_of));
    add(Aspect::Machine, "isolated cores", Some(cores_of(isolated)));
}

/// `10.1.2.0/24 by eth1, metric 100`.
fn route(route: &Route) -> String {
    let Route {
        destination,
        prefix_length,
        interface,
        metric,
        // An address of the host, which can differ at each start of a machine.
        source: _,
        // They have a fact of their own.
        gateway: _,
        mtu: _,
        attributes: _,
    } = route;
    format!("{destination}/{prefix_length} by {interface}, metric {metric}")
}

/// `0.0.0.0/0 via 10.1.1.1, MTU 1400`, for each route that has one of both. Absent where no route has a next hop: earlier versions did not
/// read them, nor the MTU.
fn next_hops(routes: &[Route]) -> Option<String> {
    if routes.iter().all(|route| route.gateway.is_none()) {
        return None;
    }
    let of_route = |route: &Route| {
        let gateway = route.gateway.map(|gateway| format!("via {gateway}"));
        let mtu = route.mtu.map(|mtu| format!("MTU {mtu}"));
        let words: Vec<String> = gateway.into_iter().chain(mtu).collect();
        (!words.is_empty())
            .then(|| format!("{}/{} {}", route.destination, route.prefix_length, words.join(", ")))
    };
    Some(routes.iter().filter_map(of_route).collect::<Vec<_>>().join("; "))
}

/// `10.1.2.0/24 advmss 300, congctl reno`, for each route that has one. Absent where an earlier version did not read them.
fn attributes_of(routes: &[Route]) -> Option<String> {
    let of_route = |route: &Route| {
        let stated = route.attributes.as_ref()?.iter().map(|(name, value)| format!("{name} {value}"));
        let stated: Vec<String> = stated.collect();
        let text = format!("{}/{} {}", route.destination, route.prefix_length, stated.join(", "));
        (!stated.is_empty()).then_some(text)
    };
    let are_known = routes.iter().all(|route| route.attributes.is_some());
    are_known.then(|| routes.iter().filter_map(of_route).collect::<Vec<_>>().join("; "))
}

fn node(node: &NumaNode) -> String {
    let NumaNode {
        number,
        cores,
        memory_bytes,
        distances,
        // They have a fact of their own.
        huge_pages: _,
    } = node;
    let memory = memory_bytes.map(|bytes| format!(", {}", gibibytes(bytes))).unwrap_or_default();
    let distances =
        if distances.len() > 1 { format!(", distances {}", numbers(distances)) } else { String::new() };
    let cores = if cores.is_empty() { "no cores".to_owned() } else { format!("cores {}", cores_of(cores)) };
    format!("{number}: {cores}{memory}{distances}")
}

/// Network functions on the PCI bus, those without an interface too.
fn functions(functions: &[PciFunction]) -> String {
    let mut known: Vec<String> = functions
        .iter()
        .map(|function| {
            let PciFunction {
                vendor,
                device,
                driver,
                virtual_function,
                // Each start of a machine may have others.
                slot: _,
                interfaces: _,
            } = function;
            let kind = if *virtual_function == Some(true) { " virtual" } else { "" };
            let driver = driver.as_ref().map(|driver| format!(" {driver}")).unwrap_or_default();
            format!("{vendor:04x}:{device:04x}{kind}{driver}")
        })
        .collect();
    known.sort_unstable();
    known.join(", ")
}

fn of_kernel(settings: &KernelSettings, add: &mut impl FnMut(Aspect, &str, Option<String>)) {
    let KernelSettings { boot_options, transparent_huge_pages, smt, vulnerabilities } = settings;
    add(Aspect::System, BOOT_PARAMETERS, Some(boot_options.join(" ")));
    add(Aspect::System, TRANSPARENT_HUGE_PAGES, transparent_huge_pages.clone());
    add(Aspect::System, SMT, smt.clone());
    for (name, state) in vulnerabilities {
        add(Aspect::System, &format!("{CPU_VULNERABILITY} {name}"), Some(state.clone()));
    }
}

fn of_cloud(cloud: &Cloud, add: &mut impl FnMut(Aspect, &str, Option<String>)) {
    let Cloud {
        provider,
        instance,
        placement,
        physical_host,
        image,
        // The place has them, and the size of the host.
        region: _,
        zone: _,
        physical_zone: _,
        fault_domain: _,
        size: _,
        // How the facts were found is none.
        evidence: _,
        metadata_failure: _,
    } = cloud;
    add(Aspect::System, "image", image.clone());
    add(Aspect::Placement, "provider", Some(provider.to_string()));
    add(Aspect::Placement, "location", words::place(cloud));
    add(Aspect::Placement, "placement group", placement.clone());
    add(Aspect::Placement, "physical host", physical_host.clone());
    add(Aspect::Placement, "instance", instance.clone());
}

/// Facts of an interface that its name does not fix, without its offloads.
pub(super) fn of_interface(interface: &Interface) -> Vec<(&'static str, Option<String>)> {
    let Interface {
        kind,
        driver,
        mtu,
        up,
        carrier,
        master,
        tx_queues,
        rx_queues,
        qdisc,
        device,
        // It is the subject of the facts, and each offload is one.
        name: _,
        features_on: _,
        // Snapshots of earlier versions lack it.
        lower: _,
        // The speed of the line reads it.
        speed_mbps: _,
        // Each start of a machine or a lab has others, and packets are counted on.
        index: _,
        mac: _,
        addresses: _,
        prefix_lengths: _,
        packets: _,
    } = interface;
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let carried = |has_carrier: bool| String::from(if has_carrier { "yes" } else { "no" });
    let facts = vec![
        ("kind", kind.clone()),
        ("driver", driver.clone()),
        ("state", Some(String::from(if *up { "up" } else { "down" }))),
        ("carrier", carrier.map(carried)),
        ("MTU", number(*mtu)),
        ("speed", interface.line_speed_mbps().map(|speed| format!("{speed} Mbit/s"))),
        ("transmit queues", number(*tx_queues)),
        ("receive queues", number(*rx_queues)),
        ("qdisc", qdisc.clone()),
        ("interface above", master.clone()),
    ];
    facts.into_iter().chain(of_device(device)).collect()
}

fn of_device(device: &Device) -> Vec<(&'static str, Option<String>)> {
    let Device {
        pci,
        firmware,
        numa_node,
        channels,
        rings,
        coalescing,
        rss_entries,
        receive_steering,
        transmit_steering,
        interrupts,
        qdiscs,
        xdp,
        // Each start of a machine may have another, and packets are counted on.
        bus_address: _,
        counters: _,
    } = device;
    let model = |pci: &PciFunction| format!("{:04x}:{:04x}", pci.vendor, pci.device);
    let queues = channels.map(|now| format!("rx {}, tx {}, combined {}", now.rx.0, now.tx.0, now.combined.0));
    let received = receive_steering.iter().map(|ReceiveSteering { cores, flows }| match flows {
        0 => steered(cores),
        flows => format!("{} with {flows} flows", steered(cores)),
    });
    let served = interrupts.iter().map(|interrupt| {
        // Numbers and names belong to a start, and interrupts are counted on.
        let QueueInterrupt { cores, number: _, name: _, queue: _, count: _ } = interrupt;
        cores_of(cores)
    });
    let features = |features: &Vec<XdpFeature>| match features.as_slice() {
        [] => "none".to_owned(),
        features => features.iter().map(|feature| feature.word()).collect::<Vec<_>>().join(" "),
    };
    vec![
        ("NIC model", pci.as_ref().map(model)),
        ("firmware", firmware.clone()),
        ("NUMA node", numa_node.map(|node| node.to_string())),
        ("channels", queues),
        ("rings", rings.map(|now| format!("rx {}, tx {}", now.rx.0, now.tx.0))),
        ("interrupt coalescing", coalescing.as_ref().map(coalesced)),
        ("RSS entries by queue", by_queue(rss_entries.iter().map(u32::to_string))),
        ("RPS by queue", by_queue(received)),
        ("XPS by queue", by_queue(transmit_steering.iter().map(|cores| steered(cores)))),
        ("cores of the interrupts", by_queue(served)),
        ("qdiscs of the queues", Some(qdiscs.join(" "))),
        ("XDP features", xdp.as_ref().map(features)),
    ]
}

fn coalesced(one: &Coalescing) -> String {
    let Coalescing { rx_usecs, rx_frames, tx_usecs, tx_frames, adaptive_rx, adaptive_tx } = *one;
    format!(
        "rx {rx_usecs} us {rx_frames} frames adaptive {}, tx {tx_usecs} us {tx_frames} frames adaptive {}",
        on_or_off(adaptive_rx),
        on_or_off(adaptive_tx)
    )
}

/// The value of each queue in their order, with their number where all have the same.
fn by_queue(values: impl Iterator<Item = String>) -> Option<String> {
    let values: Vec<String> = values.collect();
    let first = values.first()?;
    Some(match values.len() {
        count if count > 1 && values.iter().all(|value| value == first) => format!("{count} x {first}"),
        _ => values.join("; "),
    })
}

/// The cores of a queue that steers packets.
fn steered(cores: &[u16]) -> String {
    if cores.is_empty() { "off".to_owned() } else { cores_of(cores) }
}

fn cores_of(cores: &[u16]) -> String {
    words::ranges(cores.iter().copied())
}

fn numbers(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
}

fn on_or_off(is_on: bool) -> String {
    String::from(if is_on { "on" } else { "off" })
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
