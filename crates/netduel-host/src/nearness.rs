//! Which cores lie near the interface that carries a trial's data: physical cores, NUMA node, queue interrupts.
//!
//! The device is found by what the driver tells of its place on the bus, since `/sys/class/net` may show another network
//! namespace; `/sys/bus` is the same in all of them.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::interrupts;
use crate::link::{Link, addresses, links};
use crate::source::{DeviceSource, Sources};

/// Words in the names of interrupts that are numbered but belong to no queue.
const NOT_OF_A_QUEUE: [&str; 8] = ["admin", "async", "config", "control", "hwc", "mgm", "misc", "ptp"];

/// Cores, and how near they are to an interface. What the host does not tell is absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nearness {
    /// Cores that are online and may be used: the threads of each physical core, by the number of its first one.
    pub physical: Vec<Vec<u16>>,
    /// The interface that has the local address of the data.
    pub interface: Option<String>,
    /// The interface whose device moves the packets: that one, or a virtual function beneath it. Absent without hardware.
    pub device: Option<String>,
    /// The NUMA node of the device.
    pub node: Option<Node>,
    /// On which core the interrupt of each queue is served, by the number of the queue.
    pub queue_cores: Vec<u16>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// As the kernel numbers it.
    pub number: u32,
    /// All of its cores, usable or not.
    pub cores: Vec<u16>,
}

impl Nearness {
    /// Reads it for the interface that has the given address, in the network namespace of the sources. `allowed`: the cores
    /// that this process may run on (`sched_getaffinity(2)`).
    ///
    /// # Errors
    /// When links or addresses cannot be listed. Everything else that is missing is absent.
    pub fn read(sources: &mut Sources, address: IpAddr, allowed: &[u16]) -> Result<Self, HostError> {
        let mut nearness = Self { physical: physical_cores(&sources.root, allowed), ..Self::default() };
        let mut list = Vec::new();
        sources.links.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
        let all = links(&list);
        sources.links.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
        let index = addresses(&list).into_iter().find(|(_, ip)| *ip == address).map(|(index, _)| index);
        let Some(link) = index.and_then(|index| all.iter().find(|link| link.index == index)) else {
            return Ok(nearness);
        };
        nearness.interface = Some(link.name.clone());
        let Some((device, folder)) = device(&sources.root, sources.devices.as_mut(), link, &all) else {
            return Ok(nearness);
        };
        nearness.device = Some(device);
        nearness.node = node(&sources.root, &folder);
        nearness.queue_cores = queue_cores(&sources.root, &folder);
        Ok(nearness)
    }
}

/// The device that moves an interface's packets, and its folder: that of a virtual function (or another port) beneath it
/// that is up, before its own.
fn device(
    root: &Path,
    devices: &mut dyn DeviceSource,
    link: &Link,
    all: &[Link],
) -> Option<(String, PathBuf)> {
    let beneath = all.iter().filter(|lower| lower.master == Some(link.index) && lower.up);
    beneath.chain([link]).find_map(|link| {
        let place = devices.driver(&link.name).ok()?.bus;
        // An empty place would name the folder of all devices.
        let is_name = !place.is_empty() && !place.contains('/') && !place.starts_with('.');
        let folders = ["pci", "vmbus", "virtio", "platform"]
            .map(|bus| root.join("sys/bus").join(bus).join("devices").join(&place));
        let folder = folders.into_iter().filter(|_| is_name).find(|folder| folder.is_dir())?;
        Some((link.name.clone(), folder))
    })
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The kernel's list format: `0-3,8,10-11`.
fn cores_of(list: &str) -> Vec<u16> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u16>().ok()?..=last.trim().parse::<u16>().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

fn cores_in(path: &Path) -> Option<Vec<u16>> {
    text(path).map(|list| cores_of(&list)).filter(|cores| !cores.is_empty())
}

fn physical_cores(root: &Path, allowed: &[u16]) -> Vec<Vec<u16>> {
    let folder = root.join("sys/devices/system/cpu");
    let online = cores_in(&folder.join("online"));
    let usable: BTreeSet<u16> = allowed
        .iter()
        .copied()
        .filter(|core| online.as_ref().is_none_or(|online| online.contains(core)))
        .collect();
    let mut grouped: BTreeSet<u16> = BTreeSet::new();
    let mut physical = Vec::new();
    for core in &usable {
        if grouped.contains(core) {
            continue;
        }
        let siblings = cores_in(&folder.join(format!("cpu{core}/topology/thread_siblings_list")));
        let mut group: BTreeSet<u16> =
            siblings.unwrap_or_default().into_iter().filter(|sibling| usable.contains(sibling)).collect();
        group.insert(*core);
        grouped.extend(&group);
        physical.push(group.into_iter().collect());
    }
    physical
}

/// A machine with one node says 0 or -1, a guest that is not told says -1.
fn node(root: &Path, device: &Path) -> Option<Node> {
    let number: u32 = text(&device.join("numa_node"))?.parse().ok()?;
    let cores = cores_in(&root.join(format!("sys/devices/system/node/node{number}/cpulist")))?;
    Some(Node { number, cores })
}

/// Message-signalled interrupts of a PCI function, else the channels of a Hyper-V device.
fn queue_cores(root: &Path, device: &Path) -> Vec<u16> {
    let names = text(&root.join("proc/interrupts")).map(|text| interrupts::names(&text)).unwrap_or_default();
    let mut queues = BTreeMap::new();
    for number in numbers_in(&device.join("msi_irqs")) {
        let Some(queue) = names.get(&number).and_then(|name| queue_number(name)) else { continue };
        let folder = root.join(format!("proc/irq/{number}"));
        let cores = cores_in(&folder.join("effective_affinity_list"))
            .or_else(|| cores_in(&folder.join("smp_affinity_list")));
        // Where a queue has an interrupt for each direction, that of the receiver comes first.
        if let Some(core) = cores.and_then(|cores| cores.first().copied()) {
            queues.entry(queue).or_insert(core);
        }
    }
    if !queues.is_empty() {
        return queues.into_values().collect();
    }
    let channels = device.join("channels");
    numbers_in(&channels)
        .into_iter()
        .filter_map(|channel| text(&channels.join(format!("{channel}/cpu")))?.parse().ok())
        .collect()
}

/// The names in a folder that are numbers.
fn numbers_in(folder: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The 3 of `virtio0-input.3`, `eth0-TxRx-3`, `mlx5_comp3@pci:0000:00:02.0`.
fn queue_number(name: &str) -> Option<u32> {
    let name = name.split('@').next().unwrap_or(name).to_ascii_lowercase();
    if NOT_OF_A_QUEUE.iter().any(|word| name.contains(word)) {
        return None;
    }
    let digits = name.len() - name.trim_end_matches(|last: char| last.is_ascii_digit()).len();
    name[name.len() - digits..].parse().ok()
}
