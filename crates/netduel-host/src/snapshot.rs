//! What a host is at the beginning of a run. Raw facts; what it does not tell is absent.
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use netduel_model::snapshot::{Device, HostSnapshot, Interface};

use crate::error::HostError;
use crate::link::{Link, MtuRange, addresses, links};
use crate::netlink::RouteSocket;
use crate::processor::core_count;
use crate::source::{DeviceSource, LinkSource, Sources};

/// Sysctls that bear on a network measurement. One that a kernel or a namespace does not have is left out.
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

/// The facts of this host and of the calling thread's network namespace.
///
/// # Errors
/// When links or addresses cannot be listed. Everything else that is missing is absent.
pub fn snapshot() -> Result<HostSnapshot, HostError> {
    snapshot_of(&mut Sources::live()?)
}

/// As [`snapshot`], from other sources.
///
/// # Errors
/// As there.
pub fn snapshot_of(sources: &mut Sources) -> Result<HostSnapshot, HostError> {
    let root = sources.root.clone();
    let file = |below: &str| line(&root.join(below));
    let cpu = whole(&root.join("proc/cpuinfo"));
    Ok(HostSnapshot {
        hostname: file("proc/sys/kernel/hostname"),
        kernel: file("proc/sys/kernel/osrelease"),
        machine: file("proc/sys/kernel/arch").or_else(machine),
        os: distribution(&root),
        platform: platform(&root),
        boot_id: file("proc/sys/kernel/random/boot_id"),
        netns: namespace(&root),
        cpu_model: cpu.as_deref().and_then(|text| field(text, "model name")).map(str::to_owned),
        cores: cores(&root),
        memory_bytes: memory(&root),
        interfaces: interfaces(sources)?,
        sysctls: sysctls(&root),
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

/// The limits of an interface's MTU as its driver names them; `None` without such an interface.
///
/// # Errors
/// When links cannot be listed.
pub fn mtu_range(interface: &str) -> Result<Option<MtuRange>, HostError> {
    let link = live_links()?.into_iter().find(|link| link.name == interface);
    Ok(link.map(|link| MtuRange { min: link.mtu_min, max: link.mtu_max }))
}

/// The addresses of an interface; empty without such an interface.
///
/// # Errors
/// When links or addresses cannot be listed.
pub fn addresses_of(interface: &str) -> Result<Vec<IpAddr>, HostError> {
    let found = interfaces(&mut Sources::live()?)?;
    Ok(found
        .into_iter()
        .find(|found| found.name == interface)
        .map(|found| found.addresses)
        .unwrap_or_default())
}

fn live_links() -> Result<Vec<Link>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "route netlink", cause })?;
    let mut list = Vec::new();
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    Ok(links(&list))
}

fn whole(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// A file of one value; an empty one is absent.
fn line(path: &Path) -> Option<String> {
    let text = whole(path)?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// `name   : value` in `/proc/cpuinfo` and `/proc/meminfo`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn machine() -> Option<String> {
    rustix::system::uname().machine().to_str().ok().map(str::to_owned)
}

fn distribution(root: &Path) -> Option<String> {
    let text = whole(&root.join("etc/os-release")).or_else(|| whole(&root.join("usr/lib/os-release")))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    Some(name.trim_matches(['"', '\'']).to_owned())
}

/// Vendor, product and chassis tag of DMI as they stand there, for example `Microsoft Corporation / Virtual Machine /
/// 7783-7084-3265-9085-8269-3286-77`. Machines without DMI name themselves in the device tree.
fn platform(root: &Path) -> Option<String> {
    let table = root.join("sys/class/dmi/id");
    let parts: Vec<String> = ["sys_vendor", "product_name", "chassis_asset_tag"]
        .iter()
        .filter_map(|name| line(&table.join(name)))
        .collect();
    if !parts.is_empty() {
        return Some(parts.join(" / "));
    }
    let model = line(&root.join("proc/device-tree/model"))?;
    Some(model.trim_end_matches('\0').to_owned())
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

fn memory(root: &Path) -> Option<u64> {
    let text = whole(&root.join("proc/meminfo"))?;
    let kib: u64 = field(&text, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn sysctls(root: &Path) -> BTreeMap<String, String> {
    SYSCTLS
        .iter()
        .filter_map(|name| {
            let value = line(&root.join("proc/sys").join(name.replace('.', "/")))?;
            // The kernel parts the numbers of `tcp_rmem` by tabs.
            Some(((*name).to_owned(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
        })
        .collect()
}

fn interfaces(sources: &mut Sources) -> Result<Vec<Interface>, HostError> {
    let mut list = Vec::new();
    sources.links.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    let found = links(&list);
    sources.links.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
    let addresses = addresses(&list);
    let devices = sources.devices.as_mut();
    Ok(found.iter().map(|link| interface(link, &found, &addresses, devices)).collect())
}

fn interface(
    link: &Link,
    all: &[Link],
    addresses: &[(u32, IpAddr)],
    devices: &mut dyn DeviceSource,
) -> Interface {
    let above = link.master.and_then(|index| all.iter().find(|link| link.index == index));
    let driver = devices.driver(&link.name).ok().map(|info| info.driver).filter(|driver| !driver.is_empty());
    // Not every device has features or a speed, and one may go while it is asked: then they are absent.
    let features = devices.features(&link.name).unwrap_or_default();
    Interface {
        name: link.name.clone(),
        index: link.index,
        kind: link.kind.clone(),
        driver,
        mac: link.mac.clone(),
        mtu: link.mtu,
        up: link.up,
        carrier: link.carrier,
        speed_mbps: devices.speed(&link.name).ok().flatten(),
        master: above.map(|above| above.name.clone()),
        addresses: addresses.iter().filter(|(index, _)| *index == link.index).map(|(_, ip)| *ip).collect(),
        tx_queues: link.tx_queues,
        rx_queues: link.rx_queues,
        qdisc: link.qdisc.clone(),
        features_on: features
            .into_iter()
            .filter(|feature| feature.active)
            .map(|feature| feature.name)
            .collect(),
        device: Device::default(),
    }
}
