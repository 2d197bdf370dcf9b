//! Which cores lie near the interface that carries a trial's data: physical cores, NUMA node, queue interrupts.
//!
//! What it reads is read by the same code as a snapshot; only what an end needs to choose its cores is kept.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::error::HostError;
use crate::file::{cores_in, number, whole};
use crate::interrupts;
use crate::link::{Link, addresses, links};
use crate::machine::physical_cores;
use crate::place::{place, queue_interrupts};
use crate::source::{DeviceSource, Sources};

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
        let told = devices.driver(&link.name).ok()?.bus;
        Some((link.name.clone(), place(root, &told)?.folder))
    })
}

/// A machine with one node says 0 or -1, a guest that is not told says -1.
fn node(root: &Path, device: &Path) -> Option<Node> {
    let number: u32 = number(&device.join("numa_node"))?;
    let cores = cores_in(&root.join(format!("sys/devices/system/node/node{number}/cpulist")))?;
    Some(Node { number, cores })
}

/// The first core of each queue, in the order of the queues. Where a queue has an interrupt for each direction, that of
/// the receiver comes first. Channels come in the order of their own numbers.
fn queue_cores(root: &Path, device: &Path) -> Vec<u16> {
    let table = whole(&root.join("proc/interrupts")).map(|text| interrupts::table(&text)).unwrap_or_default();
    let interrupts = queue_interrupts(root, device, &table);
    let is_channels = interrupts.iter().all(|interrupt| interrupt.name.is_empty());
    let mut queues = BTreeMap::new();
    for interrupt in interrupts {
        let order = if is_channels { Some(interrupt.number) } else { interrupt.queue };
        if let (Some(order), Some(core)) = (order, interrupt.cores.first()) {
            queues.entry(order).or_insert(*core);
        }
    }
    queues.into_values().collect()
}
