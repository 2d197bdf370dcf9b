//! The device behind an interface: driver, bus and queues.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netduel_model::snapshot::{Channels, Coalescing, Device, ReceiveSteering, Rings, XdpFeature};
use netduel_sys::ethtool::{Coalesce, CoalesceParameter, DriverInfo};

use crate::bus_address::{bus_address, queue_interrupts};
use crate::counter::is_reported;
use crate::file::{cores_of_mask, line, number, numbers_in, whole};
use crate::interrupts::Table;
use crate::link::Link;
use crate::source::DeviceSource;

/// Limit of queues, far more than devices have.
const QUEUES_MAX: u32 = 1 << 16;

/// Facts that are read once for all interfaces.
pub(crate) struct Surroundings {
    pub root: PathBuf,
    pub interrupts: Table,
    /// Kinds of queueing disciplines by the index of the interface.
    pub disciplines: BTreeMap<u32, Vec<String>>,
    /// XDP features of drivers by the index of the interface; empty when the kernel does not report them.
    pub xdp: BTreeMap<u32, Vec<XdpFeature>>,
    /// Whether `/sys/class/net` shows the network namespace of the links.
    pub sees_own_queues: bool,
}

/// The facts of the device of an interface. `driver`: from `ethtool -i`, when there is one.
pub(crate) fn device(
    link: &Link,
    driver: Option<&DriverInfo>,
    around: &Surroundings,
    source: &mut dyn DeviceSource,
) -> Device {
    let place = driver.and_then(|info| bus_address(&around.root, &info.bus));
    let folder = place.as_ref().map(|place| place.folder.as_path());
    let channels = channels(&link.name, source);
    let queues =
        around.sees_own_queues.then(|| around.root.join("sys/class/net").join(&link.name).join("queues"));
    Device {
        bus_address: place.as_ref().map(|place| place.name.clone()),
        // Set by the caller, which has all interfaces of the function.
        pci: None,
        // Drivers report missing firmware in three ways.
        firmware: driver
            .map(|info| info.firmware.trim().to_owned())
            .filter(|version| !version.is_empty() && version != "N/A"),
        numa_node: folder.and_then(|folder| number(&folder.join("numa_node"))),
        channels,
        rings: rings(&link.name, source),
        coalescing: source.coalesce(&link.name).ok().map(|coalesce| coalescing(&coalesce)),
        rss_entries: rss_entries(&link.name, channels, source),
        receive_steering: queues.as_deref().map(receive_steering).unwrap_or_default(),
        transmit_steering: queues.as_deref().map(transmit_steering).unwrap_or_default(),
        interrupts: folder
            .map(|folder| queue_interrupts(&around.root, folder, &around.interrupts))
            .unwrap_or_default(),
        qdiscs: around.disciplines.get(&link.index).cloned().unwrap_or_default(),
        xdp: around.xdp.get(&link.index).cloned(),
        counters: counters(&link.name, source),
    }
}

fn channels(interface: &str, source: &mut dyn DeviceSource) -> Option<Channels> {
    let counts = source.channels(interface).ok()?;
    Some(Channels {
        rx: (counts.rx, counts.max_rx),
        tx: (counts.tx, counts.max_tx),
        combined: (counts.combined, counts.max_combined),
    })
}

fn rings(interface: &str, source: &mut dyn DeviceSource) -> Option<Rings> {
    let sizes = source.rings(interface).ok()?;
    Some(Rings { rx: (sizes.rx, sizes.max_rx), tx: (sizes.tx, sizes.max_tx) })
}

fn coalescing(settings: &Coalesce) -> Coalescing {
    Coalescing {
        rx_usecs: settings.value(CoalesceParameter::RxUsecs),
        rx_frames: settings.value(CoalesceParameter::RxFrames),
        tx_usecs: settings.value(CoalesceParameter::TxUsecs),
        tx_frames: settings.value(CoalesceParameter::TxFrames),
        adaptive_rx: settings.value(CoalesceParameter::AdaptiveRx) != 0,
        adaptive_tx: settings.value(CoalesceParameter::AdaptiveTx) != 0,
    }
}

/// Entries of the indirection table for each queue; 0 for a queue without entries.
fn rss_entries(interface: &str, channels: Option<Channels>, source: &mut dyn DeviceSource) -> Vec<u32> {
    let Ok(rss) = source.rss(interface) else { return Vec::new() };
    let Some(highest) = rss.indirection.iter().max() else { return Vec::new() };
    let queues = channels.map_or(0, |channels| channels.rx.0.saturating_add(channels.combined.0));
    // More queues than any device has are an error of the driver; do not allocate memory for them.
    if queues.max(*highest) >= QUEUES_MAX {
        return Vec::new();
    }
    let mut entries = vec![0; queues.max(highest + 1) as usize];
    for queue in rss.indirection {
        entries[queue as usize] += 1;
    }
    entries
}

/// RPS and RFS of each receive queue (Documentation/networking/scaling.rst).
fn receive_steering(queues: &Path) -> Vec<ReceiveSteering> {
    let of = |queue: u32| {
        let folder = queues.join(format!("rx-{queue}"));
        ReceiveSteering {
            cores: whole(&folder.join("rps_cpus")).map(|mask| cores_of_mask(&mask)).unwrap_or_default(),
            flows: number(&folder.join("rps_flow_cnt")).unwrap_or(0),
        }
    };
    numbers_in(queues, "rx-").into_iter().map(of).collect()
}

/// XPS of each transmit queue. A device with one queue has none to choose from, and the kernel refuses to read its mask.
fn transmit_steering(queues: &Path) -> Vec<Vec<u16>> {
    let of = |queue: u32| {
        let mask = whole(&queues.join(format!("tx-{queue}/xps_cpus")));
        mask.map(|mask| cores_of_mask(&mask)).unwrap_or_default()
    };
    numbers_in(queues, "tx-").into_iter().map(of).collect()
}

/// The selected counters of a driver. Some drivers use one name for every queue: these are summed.
fn counters(interface: &str, source: &mut dyn DeviceSource) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let names = source.statistic_names(interface).unwrap_or_default();
    if !names.iter().any(|name| is_reported(name)) {
        return found;
    }
    let mut values = Vec::new();
    // When the number of counters changed during the call, there are no counters.
    if source.statistics(interface, names.len(), &mut values).is_err() {
        return found;
    }
    for (name, value) in names.iter().zip(&values).filter(|(name, _)| is_reported(name)) {
        let sum: &mut u64 = found.entry(name.trim().to_owned()).or_insert(0);
        *sum = sum.saturating_add(*value);
    }
    found
}

/// Whether `/sys/class/net` shows these links and no others. It shows the network namespace of the process that mounted it, so names
/// are not sufficient: index and address must match, too.
pub(crate) fn shows_own_links(root: &Path, links: &[Link]) -> bool {
    let folder = root.join("sys/class/net");
    // Files such as `bonding_masters` lie beside the links.
    let shown = crate::file::names_in(&folder);
    let shown = shown.iter().filter(|name| folder.join(name).is_dir()).count();
    let is_shown = |link: &Link| {
        let of = folder.join(&link.name);
        let mac =
            line(&of.join("address")).filter(|mac| mac.bytes().any(|byte| !matches!(byte, b'0' | b':')));
        number(&of.join("ifindex")) == Some(link.index) && (mac == link.mac || link.mac.is_none())
    };
    shown == links.len() && links.iter().all(is_shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver with one name for the counters of two queues.
    fn answer(bytes: &mut [u8]) -> std::io::Result<()> {
        match u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) {
            // ETHTOOL_GSSET_INFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS
            0x37 => bytes[16] = 2,
            0x1b => {
                bytes[8] = 2;
                for name in bytes[12..76].chunks_exact_mut(32) {
                    name[..10].copy_from_slice(b"rx_dropped");
                }
            }
            0x1d => {
                bytes[4] = 2;
                bytes[8..24].fill(0xff);
            }
            _ => return Err(std::io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }

    #[test]
    fn sum_of_counters_beyond_the_range_of_a_number_is_the_largest() {
        let mut driver = netduel_sys::ethtool::Ethtool::answered_by(Box::new(answer)).unwrap();
        assert_eq!(counters("eth0", &mut driver), BTreeMap::from([("rx_dropped".to_owned(), u64::MAX)]));
    }
}
