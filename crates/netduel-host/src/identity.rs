//! The identity of a host: boot, physical machine, cores, network cards. Few reads, because every trial needs it.
use std::fs;
use std::path::Path;

use netduel_model::observation::{HostIdentity, NicIdentity};
use netduel_model::snapshot::LOOPBACK;

use crate::key_value_pool;
use crate::link::Link;
use crate::processor::core_count;
use crate::source::DeviceSource;

/// The key of Hyper-V's pool for the machine on which the guest runs.
const PHYSICAL_HOST: &str = "PhysicalHostName";

/// The identity of the host of these links. `stat` is `/proc/stat`.
pub(crate) fn of(root: &Path, links: &[Link], stat: &[u8], devices: &mut dyn DeviceSource) -> HostIdentity {
    let others = || links.iter().filter(|link| link.name != LOOPBACK);
    // Before Linux 5.14 the bus is not reported. Bridges, tunnels and containers' interfaces have a kind, and hardware has none.
    let any_bus = others().any(|link| link.bus.is_some());
    let is_hardware = |link: &&Link| if any_bus { link.bus.is_some() } else { link.kind.is_none() };
    let any_hardware = others().any(|link| is_hardware(&link));
    let mut nics: Vec<NicIdentity> = others()
        // Virtual interfaces of containers change and do not identify the host.
        .filter(|link| !any_hardware || is_hardware(link))
        .filter_map(|link| nic(root, link, devices))
        .collect();
    nics.sort();
    HostIdentity {
        boot_id: line(&root.join("proc/sys/kernel/random/boot_id")),
        physical_host: key_value_pool::read(root).remove(PHYSICAL_HOST),
        cores: core_count(&String::from_utf8_lossy(stat)),
        nics,
    }
}

fn nic(root: &Path, link: &Link, devices: &mut dyn DeviceSource) -> Option<NicIdentity> {
    let driver = devices.driver(&link.name).ok()?.driver;
    let on_pci = link.device.as_deref().filter(|_| link.bus.as_deref() == Some("pci"));
    let model = on_pci.and_then(|place| {
        let id = |name: &str| {
            let text = line(&root.join("sys/bus/pci/devices").join(place).join(name))?;
            Some(text.trim_start_matches("0x").to_owned())
        };
        Some(format!("{}:{}", id("vendor")?, id("device")?))
    });
    Some(NicIdentity { driver, model, rx_queues: link.rx_queues, tx_queues: link.tx_queues })
}

fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
