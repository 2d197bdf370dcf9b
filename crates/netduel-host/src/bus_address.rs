//! The bus address of a device, and the interrupts or channels of its queues.
//!
//! The device is found by the bus info of its driver, because `/sys/class/net` may show another network namespace; `/sys/bus` is
//! the same in all of them.
use std::path::{Path, PathBuf};

use netduel_model::snapshot::QueueInterrupt;

use crate::file::{cores_in, line, names_in, number, numbers_in};
use crate::interrupts::Table;
use crate::link::Link;

/// Buses with network devices.
const BUSES: [&str; 4] = ["pci", "vmbus", "virtio", "platform"];
/// Longest bus info of `ethtool -i` (`ETHTOOL_BUSINFO_LEN` - 1). A vmbus GUID has 36 characters and is truncated.
const BUS_INFO_LEN_MAX: usize = 31;
/// Words in the names of interrupts that are numbered but belong to no queue.
const NOT_OF_A_QUEUE: [&str; 9] =
    ["admin", "async", "config", "control", "event", "hwc", "mgm", "misc", "ptp"];

/// The bus and the full name of a device there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BusAddress {
    pub bus: &'static str,
    pub name: String,
    pub folder: PathBuf,
}

/// The device with this bus info.
pub(crate) fn bus_address(root: &Path, bus_info: &str) -> Option<BusAddress> {
    // Empty bus info would name the folder of all devices.
    if bus_info.is_empty() || bus_info.contains('/') || bus_info.starts_with('.') {
        return None;
    }
    let of = |bus: &'static str, name: &str| {
        let folder = root.join("sys/bus").join(bus).join("devices").join(name);
        folder.is_dir().then(|| BusAddress { bus, name: name.to_owned(), folder })
    };
    BUSES.into_iter().find_map(|bus| of(bus, bus_info)).or_else(|| {
        let cut = names_in(&root.join("sys/bus/vmbus/devices"));
        let mut found = cut.iter().filter(|name| name.starts_with(bus_info));
        let name = found.next().filter(|_| bus_info.len() == BUS_INFO_LEN_MAX)?;
        // With two matches the truncated name is ambiguous.
        found.next().is_none().then(|| of("vmbus", name)).flatten()
    })
}

/// Bus and name of the device behind a link by `/sys/class/net`, when that shows this very link.
pub(crate) fn bus_address_in_class(root: &Path, link: &Link) -> Option<(String, String)> {
    let of = root.join("sys/class/net").join(&link.name);
    if number(&of.join("ifindex")) != Some(link.index) || line(&of.join("address")) != link.mac {
        return None;
    }
    let device = of.join("device");
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let bus = last(&std::fs::read_link(device.join("subsystem")).ok()?)?;
    Some((bus, last(&std::fs::canonicalize(device).ok()?)?))
}

/// Message-signalled interrupts of a PCI function's queues, else the channels of a Hyper-V device.
pub(crate) fn queue_interrupts(root: &Path, device: &Path, table: &Table) -> Vec<QueueInterrupt> {
    let rows: Vec<_> = numbers_in(&device.join("msi_irqs"), "")
        .into_iter()
        .filter_map(|number| Some((number, table.get(&number)?)))
        .collect();
    let queues = interrupt_queues(&rows.iter().map(|(_, row)| row.name.as_str()).collect::<Vec<_>>());
    let signalled: Vec<QueueInterrupt> = rows
        .into_iter()
        .zip(queues)
        .filter_map(|((number, row), queue)| {
            let queue = queue?;
            let folder = root.join(format!("proc/irq/{number}"));
            let cores = cores_in(&folder.join("effective_affinity_list"))
                .or_else(|| cores_in(&folder.join("smp_affinity_list")));
            let (name, count) = (row.name.clone(), Some(row.total));
            Some(QueueInterrupt { number, name, queue: Some(queue), cores: cores.unwrap_or_default(), count })
        })
        .collect();
    if signalled.is_empty() { channels(&device.join("channels")) } else { signalled }
}

/// Channels of vmbus (Documentation/ABI/stable/sysfs-bus-vmbus): each has a ring, a core and a count of its interrupts.
fn channels(folder: &Path) -> Vec<QueueInterrupt> {
    let channel = |channel: u32| {
        let of = folder.join(channel.to_string());
        QueueInterrupt {
            number: channel,
            name: String::new(),
            queue: number(&of.join("subchannel_id")),
            cores: number(&of.join("cpu")).into_iter().collect(),
            count: line(&of.join("interrupts")).and_then(|text| text.parse().ok()),
        }
    };
    numbers_in(folder, "").into_iter().map(channel).collect()
}

/// Which queue each interrupt of a device serves, by their names; none for those of the link's state and of commands.
pub fn interrupt_queues(names: &[&str]) -> Vec<Option<u32>> {
    // An interrupt `eth0` alone serves all queues. Beside `eth0-TxRx-0` it is for the link state, and its number is that of the interface.
    let is_plain = |name: &str| name.chars().all(char::is_alphanumeric);
    let has_parts = names.iter().any(|name| !is_plain(name) && queue_number(name).is_some());
    names.iter().map(|name| queue_number(name).filter(|_| !has_parts || !is_plain(name))).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_numbered_by_their_interrupts_only() {
        let named = [
            ("virtio0-input.3", Some(3)),
            ("eth0-TxRx-12", Some(12)),
            ("mlx5_comp7@pci:0000:00:02.0", Some(7)),
            ("mana_q1@pci:7870:00:00.0", Some(1)),
            ("gve-ntfy-blk4@pci:0000:00:04.0", Some(4)),
            ("mlx5_async0@pci:0000:00:02.0", None),
            ("ena-mgmnt@pci:0000:00:05.0", None),
            ("eth0-event-8", None),
            ("virtio0-config", None),
        ];
        for (name, queue) in named {
            assert_eq!(queue_number(name), queue, "{name}");
        }
        assert_eq!(interrupt_queues(&["eth0", "eth0-TxRx-0", "eth0-TxRx-1"]), [None, Some(0), Some(1)]);
        assert_eq!(interrupt_queues(&["eth0"]), [Some(0)]);
    }

    #[test]
    fn device_is_found_in_sysfs_when_that_shows_this_link() {
        let root = tempfile::tempdir().unwrap();
        let (device, of) = (root.path().join("sys/devices/abc"), root.path().join("sys/class/net/eth0"));
        std::fs::create_dir_all(&device).unwrap();
        std::fs::create_dir_all(&of).unwrap();
        std::os::unix::fs::symlink("../../bus/vmbus", device.join("subsystem")).unwrap();
        std::os::unix::fs::symlink("../../../devices/abc", of.join("device")).unwrap();
        std::fs::write(of.join("ifindex"), "2\n").unwrap();
        std::fs::write(of.join("address"), "00:0d:3a:00:00:01\n").unwrap();
        let link = |index: u32| Link {
            index,
            name: "eth0".to_owned(),
            mac: Some("00:0d:3a:00:00:01".to_owned()),
            ..Link::default()
        };
        let found = bus_address_in_class(root.path(), &link(2));
        assert_eq!(found, Some(("vmbus".to_owned(), "abc".to_owned())));
        assert_eq!(bus_address_in_class(root.path(), &link(3)), None, "another namespace's eth0");
    }

    #[test]
    fn truncated_bus_info_is_found_when_it_is_unique() {
        let root = tempfile::tempdir().unwrap();
        let devices = root.path().join("sys/bus/vmbus/devices");
        let guid = "00155d32-01b9-0015-5d32-01b900155d32";
        std::fs::create_dir_all(devices.join(guid)).unwrap();
        let found = bus_address(root.path(), &guid[..31]).unwrap();
        assert_eq!((found.bus, found.name.as_str()), ("vmbus", guid));
        assert_eq!(bus_address(root.path(), &guid[..30]), None, "no driver tells so short a part");
        std::fs::create_dir_all(devices.join(format!("{}fffff", &guid[..31]))).unwrap();
        assert_eq!(bus_address(root.path(), &guid[..31]), None, "two of them");
        for none in ["", ".", "..", "../../bus"] {
            assert_eq!(bus_address(root.path(), none), None, "{none:?}");
        }
    }
}
