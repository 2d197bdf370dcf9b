//! The facts of a host at the start of a run. Raw; unreported facts are absent.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::thread;

use netduel_model::snapshot::{HostSnapshot, Interface, Route};

use crate::device::{Surroundings, device, shows_own_links};
use crate::error::HostError;
use crate::file::{line, whole};
use crate::irqbalance::IrqbalanceSearch;
use crate::kernel_settings::kernel_settings;
use crate::link::{Link, MtuRange, StackedLink, addresses, links, networks};
use crate::machine::{cpu_model, memory, nodes, processor};
use crate::netlink::RouteSocket;
use crate::platform::Identity;
use crate::processor::core_count;
use crate::queueing::disciplines;
use crate::route::{Hop, ListedRoute, links_of_any_default, links_of_default, routes_of_main_table};
use crate::source::{DeviceSource, LinkSource, Sources};
use crate::{filter, interrupts, metadata, pci, platform, xdp};

/// Sysctls that affect a network measurement. Those that a kernel or a namespace lacks are omitted.
const SYSCTLS: &[&str] = &[
    "kernel.numa_balancing",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_low_latency",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
];

/// Kinds of links of which two are the ends of one wire.
const PAIR_KINDS: [&str; 2] = ["veth", "netkit"];

/// The facts of this host and of the calling thread's network namespace. Takes some milliseconds, and up to 700 ms on a
/// cloud whose metadata service does not answer.
///
/// # Errors
/// When links or addresses cannot be listed. Other missing facts are absent.
pub fn snapshot() -> Result<HostSnapshot, HostError> {
    snapshot_of(&mut Sources::live()?)
}

/// As [`snapshot`], from other sources.
///
/// # Errors
/// As there.
pub fn snapshot_of(sources: &mut Sources) -> Result<HostSnapshot, HostError> {
    snapshot_again(sources, &mut IrqbalanceSearch::default())
}

/// As [`snapshot_of`], by a process that describes this host more than once. `search` keeps what need not be searched for each time.
///
/// # Errors
/// As there.
pub fn snapshot_again(
    sources: &mut Sources,
    search: &mut IrqbalanceSearch,
) -> Result<HostSnapshot, HostError> {
    let root = sources.root.clone();
    let cpuinfo = whole(&root.join("proc/cpuinfo")).unwrap_or_default();
    let identity = Identity::read(&root, &cpuinfo);
    let (cloud, hypervisor) = platform::cloud(&root, &identity);
    let service = sources.metadata.zip(cloud.as_ref().map(|cloud| cloud.provider));
    // The metadata service is queried in parallel. The thread is in the caller's network namespace.
    let (read, answer) = thread::scope(|scope| {
        // Without a thread for it the facts of the service are absent.
        let query = service.and_then(|(address, provider)| {
            let thread = thread::Builder::new().name("metadata".to_owned());
            thread.spawn_scoped(scope, move || metadata::query(provider, address)).ok()
        });
        let read = facts(sources, &root, &cpuinfo, &identity, search);
        (read, query.and_then(|query| query.join().ok()).flatten())
    });
    let cloud = cloud.map(|mut cloud| {
        if let Some(answer) = answer {
            answer.complete(&mut cloud);
        }
        cloud
    });
    Ok(HostSnapshot { cloud, hypervisor, ..read? })
}

/// The facts from the host itself.
fn facts(
    sources: &mut Sources,
    root: &Path,
    cpuinfo: &str,
    identity: &Identity,
    search: &mut IrqbalanceSearch,
) -> Result<HostSnapshot, HostError> {
    let value = |below: &str| line(&root.join(below));
    let links = listed_links(sources)?;
    let mut functions = pci::functions(root);
    let mut interfaces = interfaces(sources, &links)?;
    let (default_routes, routes) = routes(sources, &links);
    let routes_listed = Some(routes.is_some());
    for function in &mut functions {
        let is_of_it =
            |interface: &&mut Interface| interface.device.bus_address.as_ref() == Some(&function.slot);
        let of_it: Vec<&mut Interface> = interfaces.iter_mut().filter(is_of_it).collect();
        function.interfaces = of_it.iter().map(|interface| interface.name.clone()).collect();
        for interface in of_it {
            interface.device.pci = Some(function.clone());
        }
    }
    let kernel = value("proc/sys/kernel/osrelease");
    let sysctls = sysctls(root);
    let firewall = filter::filter(root, kernel.as_deref(), &sysctls, sources.filter.as_mut());
    let irqbalance = search.runs(root, &interfaces);
    Ok(HostSnapshot {
        hostname: value("proc/sys/kernel/hostname"),
        kernel,
        machine: value("proc/sys/kernel/arch").or_else(machine),
        os: distribution(root),
        platform: platform::platform(root, identity),
        machine_uuid: Some(identity.machine_uuid.clone()).filter(|uuid| !uuid.is_empty()),
        boot_id: value("proc/sys/kernel/random/boot_id"),
        netns: namespace(root),
        cpu_model: cpu_model(cpuinfo),
        cores: cores(root),
        memory_bytes: memory(&root.join("proc/meminfo"), "MemTotal"),
        interfaces,
        sysctls,
        processor: processor(root, cpuinfo, sources.allowed.as_deref()),
        numa_nodes: nodes(root),
        kernel_settings: kernel_settings(root),
        pci_functions: functions,
        firewall,
        irqbalance,
        default_routes,
        routes: routes.unwrap_or_default(),
        routes_listed,
        ..HostSnapshot::default()
    })
}

/// The names of the interfaces of the calling thread's network namespace.
///
/// # Errors
/// When links cannot be listed.
pub fn interface_names() -> Result<Vec<String>, HostError> {
    Ok(live_links()?.into_iter().map(|link| link.name).collect())
}

/// The MTU limits of the driver of an interface; `None` without such an interface.
///
/// # Errors
/// When links cannot be listed.
pub fn mtu_range(interface: &str) -> Result<Option<MtuRange>, HostError> {
    let link = live_links()?.into_iter().find(|link| link.name == interface);
    Ok(link.map(|link| MtuRange { min: link.mtu_min, max: link.mtu_max }))
}

/// The links of this network namespace on the link of this index (`IFLA_LINK`).
///
/// # Errors
/// When links cannot be listed.
pub fn stacked_links(lower: u32) -> Result<Vec<StackedLink>, HostError> {
    let stacked = |link: Link| Some(StackedLink { name: link.name, kind: link.kind?, mtu: link.mtu? });
    Ok(live_links()?.into_iter().filter(|link| link.lower == Some(lower)).filter_map(stacked).collect())
}

/// The addresses of an interface; empty without such an interface.
///
/// # Errors
/// When links or addresses cannot be listed.
pub fn addresses_of(interface: &str) -> Result<Vec<IpAddr>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
    let mut list = Vec::new();
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    let Some(link) = links(&list).into_iter().find(|link| link.name == interface) else {
        return Ok(Vec::new());
    };
    socket.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
    Ok(of_link(&link, &addresses(&list)))
}

/// The destinations of the routes through the link of this index that the kernel did not add with an address of it: IPv4 and IPv6, of every
/// table but that of the host's own addresses.
///
/// # Errors
/// When routes cannot be listed.
pub fn added_routes(link: u32) -> Result<Vec<String>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
    socket.added_routes(link).map_err(|cause| HostError::List { what: "routes", cause })
}

/// The indexes of the links by which default routes leave, those of every table.
///
/// # Errors
/// When routes cannot be listed.
pub fn default_route_links() -> Result<BTreeSet<u32>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
    let mut list = Vec::new();
    socket.routes(&mut list).map_err(|cause| HostError::List { what: "routes", cause })?;
    Ok(links_of_any_default(&list))
}

fn live_links() -> Result<Vec<Link>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
    let mut list = Vec::new();
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    Ok(links(&list))
}

fn machine() -> Option<String> {
    rustix::system::uname().machine().to_str().ok().map(str::to_owned)
}

fn distribution(root: &Path) -> Option<String> {
    let text = whole(&root.join("etc/os-release")).or_else(|| whole(&root.join("usr/lib/os-release")))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    Some(name.trim_matches(['"', '\'']).to_owned())
}

/// The number in `net:[4026531840]`.
fn namespace(root: &Path) -> Option<u64> {
    let link = fs::read_link(root.join("proc/thread-self/ns/net")).ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// Cores online. `/proc/stat` has a line for each.
fn cores(root: &Path) -> u32 {
    whole(&root.join("proc/stat")).map_or(0, |text| core_count(&text))
}

fn sysctls(root: &Path) -> BTreeMap<String, String> {
    SYSCTLS
        .iter()
        .filter_map(|name| {
            let value = line(&root.join("proc/sys").join(name.replace('.', "/")))?;
            // The kernel separates the numbers of `tcp_rmem` by tabs.
            Some(((*name).to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

fn listed_links(sources: &mut Sources) -> Result<Vec<Link>, HostError> {
    let mut list = Vec::new();
    sources.links.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    Ok(links(&list))
}

/// The links that default routes leave by, in the order of their indexes, and the routes of the main table; `None` where the kernel does not
/// list them, or there are too many.
fn routes(sources: &mut Sources, links: &[Link]) -> (Vec<String>, Option<Vec<Route>>) {
    let mut list = Vec::new();
    if sources.links.routes(&mut list).is_err() {
        return (Vec::new(), None);
    }
    let name = |index: &u32| Some(links.iter().find(|link| link.index == *index)?.name.clone());
    let hops_of = |route: &ListedRoute| -> Vec<Route> {
        let of = |hop: &Hop| {
            Some(Route {
                destination: route.destination,
                prefix_length: route.prefix_length,
                interface: name(&hop.link)?,
                metric: route.metric,
                gateway: hop.gateway,
                source: route.source,
                mtu: route.mtu,
                attributes: Some(route.attributes.clone()),
            })
        };
        route.hops.iter().filter_map(of).collect()
    };
    let routes = routes_of_main_table(&list).map(|listed| listed.iter().flat_map(hops_of).collect());
    (links_of_default(&list).iter().filter_map(name).collect(), routes)
}

fn interfaces(sources: &mut Sources, links: &[Link]) -> Result<Vec<Interface>, HostError> {
    let mut list = Vec::new();
    sources.links.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
    let networks = networks(&list);
    // A kernel without queueing disciplines has none.
    let disciplines = sources.links.queueing(&mut list).map(|()| disciplines(&list)).unwrap_or_default();
    let xdp = sources.links.xdp(&mut list).map(|()| xdp::features(&list)).unwrap_or_default();
    let around = Surroundings {
        xdp,
        interrupts: whole(&sources.root.join("proc/interrupts"))
            .map(|text| interrupts::table(&text))
            .unwrap_or_default(),
        disciplines,
        sees_own_queues: shows_own_links(&sources.root, links),
        root: sources.root.clone(),
    };
    let devices = sources.devices.as_mut();
    Ok(links.iter().map(|link| interface(link, links, &networks, &around, devices)).collect())
}

fn of_link(link: &Link, addresses: &[(u32, IpAddr)]) -> Vec<IpAddr> {
    addresses.iter().filter(|(index, _)| *index == link.index).map(|(_, ip)| *ip).collect()
}

fn interface(
    link: &Link,
    all: &[Link],
    networks: &[(u32, IpAddr, u8)],
    around: &Surroundings,
    devices: &mut dyn DeviceSource,
) -> Interface {
    let above = link.master.and_then(|index| all.iter().find(|link| link.index == index));
    // That of a veth is its peer, which is not below it.
    let lower = link.lower.filter(|_| link.kind.as_deref().is_none_or(|kind| !PAIR_KINDS.contains(&kind)));
    let below = lower.and_then(|index| all.iter().find(|link| link.index == index));
    let driver = devices.driver(&link.name).ok();
    let own = || networks.iter().filter(|(index, ..)| *index == link.index);
    // They are absent when the device has no features or speed, or is removed while it is read.
    let features = devices.features(&link.name).unwrap_or_default();
    Interface {
        name: link.name.clone(),
        index: link.index,
        kind: link.kind.clone(),
        driver: driver.as_ref().map(|info| info.driver.clone()).filter(|driver| !driver.is_empty()),
        mac: link.mac.clone(),
        mtu: link.mtu,
        up: link.up,
        carrier: link.carrier,
        speed_mbps: devices.speed(&link.name).ok().flatten(),
        master: above.map(|above| above.name.clone()),
        lower: below.map(|below| below.name.clone()),
        addresses: own().map(|(_, address, _)| *address).collect(),
        prefix_lengths: own().map(|(.., length)| *length).collect(),
        tx_queues: link.tx_queues,
        rx_queues: link.rx_queues,
        qdisc: link.qdisc.clone(),
        packets: link.counters.map(|counters| counters.rx_packets.saturating_add(counters.tx_packets)),
        features_on: features
            .into_iter()
            .filter(|feature| feature.active)
            .map(|feature| feature.name)
            .collect(),
        device: device(link, driver.as_ref(), around, devices),
    }
}
