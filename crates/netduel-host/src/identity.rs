//! On what a host runs: boot, physical machine, cores, network cards. Few reads, since it is asked with every trial.
use std::fs;
use std::path::Path;

use netduel_model::observation::{HostIdentity, NicIdentity};

use crate::link::Link;
use crate::processor::core_count;
use crate::source::DeviceSource;

/// What Hyper-V tells its guests: records of a key and a value, each padded with zeros (tools/hv/hv_kvp_daemon.c).
const HYPERV_POOL: &str = "var/lib/hyperv/.kvp_pool_3";
const KEY_LEN: usize = 512;
const VALUE_LEN: usize = 2048;
/// The key of the machine on which the guest runs.
const PHYSICAL_HOST: &str = "PhysicalHostName";
/// The interface of a host's talk with itself.
const LOOPBACK: &str = "lo";

/// The identity of the host of these links. `stat` is `/proc/stat`.
pub(crate) fn of(root: &Path, links: &[Link], stat: &[u8], devices: &mut dyn DeviceSource) -> HostIdentity {
    let others = || links.iter().filter(|link| link.name != LOOPBACK);
    let is_hardware = |link: &&Link| link.bus.is_some();
    let any_hardware = others().any(|link| is_hardware(&link));
    let mut nics: Vec<NicIdentity> = others()
        // Containers' interfaces come and go beside hardware, and say nothing of where the host is.
        .filter(|link| !any_hardware || is_hardware(link))
        .filter_map(|link| nic(root, link, devices))
        .collect();
    nics.sort();
    HostIdentity {
        boot_id: line(&root.join("proc/sys/kernel/random/boot_id")),
        physical_host: fs::read(root.join(HYPERV_POOL)).ok().and_then(|pool| value(&pool, PHYSICAL_HOST)),
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

/// The value of a key in a pool.
fn value(pool: &[u8], key: &str) -> Option<String> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
    };
    let record = pool.chunks_exact(KEY_LEN + VALUE_LEN).find(|record| text(record) == key)?;
    record.get(KEY_LEN..).map(text).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in entries {
            for (text, length) in [(key, KEY_LEN), (value, VALUE_LEN)] {
                let end = bytes.len() + length;
                bytes.extend_from_slice(text.as_bytes());
                bytes.resize(end, 0);
            }
        }
        bytes
    }

    #[test]
    fn the_physical_host_is_found_among_the_keys_of_the_pool() {
        let bytes = pool(&[("HostName", "other"), (PHYSICAL_HOST, "AMS07PRDAPP123"), ("x", "")]);
        assert_eq!(value(&bytes, PHYSICAL_HOST).as_deref(), Some("AMS07PRDAPP123"));
        assert_eq!((value(&bytes, "x"), value(&bytes, "nothing")), (None, None));
        assert_eq!(value(&bytes[..bytes.len() - 3000], PHYSICAL_HOST), None, "a record that is cut off");
    }
}
