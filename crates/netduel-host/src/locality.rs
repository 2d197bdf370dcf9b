//! CPU locality of the interface that carries a trial's data: physical cores, NUMA node, queue interrupts.
//!
//! Uses the readers of a snapshot and keeps the facts for the choice of cores.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::bus_address::{bus_address, queue_interrupts};
use crate::error::HostError;
use crate::file::{cores_in, number, whole};
use crate::interrupts;
use crate::link::{Link, addresses, links};
use crate::machine::physical_cores;
use crate::source::{DeviceSource, Sources};

/// Cores, and their locality to an interface. Unknown parts are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Locality {
    /// Online and allowed cores: the threads of each physical core, by the number of its first one.
    pub physical: Vec<Vec<u16>>,
    /// The interface that has the local address of the data.
    pub interface: Option<String>,
    /// The interface whose device moves the packets: that one, or a virtual function beneath it. Absent without hardware.
    pub device: Option<String>,
    /// The NUMA node of the device.
    pub node: Option<Node>,
    /// The core that serves the interrupt of each queue, by queue number.
    pub queue_cores: Vec<u16>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kernel's number.
    pub number: u32,
    /// All of its cores, usable or not.
    pub cores: Vec<u16>,
}

impl Locality {
    /// Reads it for the interface of this name, or for the one that has the given address where no name is given or no interface has it, in the
    /// network namespace of the sources. `allowed`: the cores that this process may run on (`sched_getaffinity(2)`).
    ///
    /// # Errors
    /// When links or addresses cannot be listed. Other missing facts are absent.
    pub fn read(
        sources: &mut Sources,
        name: Option<&str>,
        address: IpAddr,
        allowed: &[u16],
    ) -> Result<Self, HostError> {
        let mut locality = Self { physical: physical_cores(&sources.root, allowed), ..Self::default() };
        let mut list = Vec::new();
        sources.links.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
        let all = links(&list);
        sources.links.addresses(&mut list).map_err(|cause| HostError::List { what: "addresses", cause })?;
        let index = addresses(&list).into_iter().find(|(_, ip)| *ip == address).map(|(index, _)| index);
        let named = name.and_then(|name| all.iter().find(|link| link.name == name));
        let by_address = || index.and_then(|index| all.iter().find(|link| link.index == index));
        let Some(link) = named.or_else(by_address) else { return Ok(locality) };
        locality.interface = Some(link.name.clone());
        let Some((device, folder)) = device(&sources.root, sources.devices.as_mut(), link, &all) else {
            return Ok(locality);
        };
        locality.device = Some(device);
        locality.node = node(&sources.root, &folder);
        locality.queue_cores = queue_cores(&sources.root, &folder);
        Ok(locality)
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
        let bus = devices.driver(&link.name).ok()?.bus;
        Some((link.name.clone(), bus_address(root, &bus)?.folder))
    })
}

/// A machine with one node reports 0 or -1; a guest without the information reports -1.
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
