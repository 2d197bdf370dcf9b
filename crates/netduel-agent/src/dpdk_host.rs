//! The device and the host resources that testpmd gets. Refuses before a run what would fail in it, and what would cut off access to
//! the host.
use std::fs;
use std::path::{Path, PathBuf};

use netduel_control::agent::{FailureKind, WorkError};
use netduel_host::{DataPath, LinkState};
use netduel_interop::dpdk_host::{Binding, BindingError, Drivers, HugePages, Hyperv, package};
use netduel_interop::testpmd::Device;
use netduel_model::dpdk::{DpdkDevice, DpdkSettings};
use netduel_model::ids::Token;
use netduel_model::workload::Role;

use crate::failure::{environment, usage};
use crate::management_interfaces::ManagementInterfaces;
use crate::treatment::HostResource;

/// Drivers of the kernel that share a NIC with a program, so that nothing has to be bound: Mellanox' and MANA's.
const SHARING: [&str; 3] = ["mlx4_core", "mlx5_core", "mana"];
/// The driver that hands a function of the PCI bus to a program.
const VFIO: &str = "vfio-pci";

/// What testpmd is given.
pub struct Given {
    /// Its device.
    pub device: Device,
    /// Host resources that it needs.
    pub resources: Vec<HostResource>,
}

impl Given {
    /// No network.
    pub fn null() -> Self {
        Self { device: Device::Null, resources: Vec::new() }
    }

    /// Memory that both ends of a trial share: the receiver makes it.
    pub fn memif(token: Token, role: Role) -> Self {
        // The token itself is a secret, and the names of files are none.
        let digest = ring::digest::digest(&ring::digest::SHA256, &token.0);
        let number = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let socket = std::env::temp_dir().join(format!("netduel-memif-{number:016x}"));
        Self { device: Device::Memif { socket, serves: role == Role::Server }, resources: Vec::new() }
    }

    /// A device that has to do with an interface. `sys` is `/sys`.
    pub fn on(device: &DpdkDevice, path: &DataPath, sys: &Path) -> Result<Self, WorkError> {
        let interface = path.interface.clone();
        let links = netduel_host::link_states().map_err(environment)?;
        let refused = |error: BindingError| environment(error);
        if *device != DpdkDevice::AfPacket
            && let Some(why) = ManagementInterfaces::read(&links)?.refusal(&family(&links, &interface))
        {
            return Err(usage(format!(
                "{interface} cannot be given to testpmd (device `{device}`), because {why}, and the host would become unreachable; add a \
                 second NIC for the data, or use the device `net_af_packet`, which leaves the interface to the kernel"
            )));
        }
        let lower =
            links.iter().find(|link| is_beneath(link, &links, &interface)).map(|link| link.name.as_str());
        let shared = || vec![HostResource::Interface { interface: interface.clone() }];
        let (device, resources) = match device {
            DpdkDevice::AfPacket => (Device::AfPacket { interface: interface.clone() }, shared()),
            DpdkDevice::AfXdp => (Device::AfXdp { interface: interface.clone() }, shared()),
            DpdkDevice::Failsafe => {
                let Hyperv { function, .. } = Hyperv::of(sys, &interface, lower).map_err(refused)?;
                (Device::Failsafe { interface: interface.clone(), function }, shared())
            }
            DpdkDevice::Netvsc | DpdkDevice::Mana => {
                Hyperv::check_module(sys, &interface, Binding::TO_PROGRAMS).map_err(refused)?;
                let Hyperv { binding, function } = Hyperv::of(sys, &interface, lower).map_err(refused)?;
                let given = if *device == DpdkDevice::Mana {
                    Hyperv::check_module(sys, &interface, "mana_ib").map_err(refused)?;
                    let slot = Hyperv::function(&interface, function).map_err(refused)?;
                    Device::Mana { slot, mac: path.own_mac }
                } else {
                    Device::Netvsc { instance: binding.instance.clone(), function }
                };
                (
                    given,
                    vec![rebound(binding.device, sys.join("bus/vmbus"), Binding::TO_PROGRAMS, &interface)],
                )
            }
            DpdkDevice::Pci(slot) => (Device::Pci { slot: slot.clone() }, on_pci(sys, slot, &interface)?),
            DpdkDevice::Memif | DpdkDevice::Null => return Ok(Self::null()),
        };
        Ok(Self { device, resources })
    }
}

fn rebound(device: PathBuf, bus: PathBuf, driver: &'static str, interface: &str) -> HostResource {
    HostResource::Device { device, bus, driver, interface: interface.to_owned() }
}

/// Resources for a function of the PCI bus: nothing when its driver shares it.
fn on_pci(sys: &Path, slot: &str, interface: &str) -> Result<Vec<HostResource>, WorkError> {
    let device = sys.join("bus/pci/devices").join(slot);
    let of_interface = function_of(sys, interface);
    if of_interface.as_deref() != Some(slot) {
        let is = of_interface.unwrap_or_else(|| "none".to_owned());
        return Err(usage(format!(
            "the device `{slot}` is not that of {interface}, which carries the data ({is}); name the interface by `expect_interface` of the arm, \
             or another device"
        )));
    }
    let driver = fs::canonicalize(device.join("driver")).ok();
    let driver = driver.and_then(|driver| name(&driver)).unwrap_or_default();
    if SHARING.contains(&driver.as_str()) {
        return Ok(Vec::new());
    }
    if !sys.join("module/vfio_pci").exists() {
        return Err(lacks(format!(
            "{interface} ({slot}) has the driver {driver}, and {VFIO} is not loaded: run `modprobe vfio-pci`, in a virtual machine without an \
             IOMMU with enable_unsafe_noiommu_mode=1"
        )));
    }
    Ok(vec![rebound(device, sys.join("bus/pci"), VFIO, interface)])
}

/// The function of the PCI bus that an interface is of. virtio-net is on a bus of its own below the function.
fn function_of(sys: &Path, interface: &str) -> Option<String> {
    let device = fs::canonicalize(sys.join("class/net").join(interface).join("device")).ok()?;
    let own = name(&device)?;
    if own.starts_with("virtio") { name(device.parent()?) } else { Some(own) }
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// The huge pages for so much memory, on the node of an interface. How many of them lack is seen when they are lent: the other end's
/// testpmd may be on this machine, too.
pub fn pages(sys: &Path, interface: Option<&str>, mib: u64) -> Result<HostResource, WorkError> {
    let node = interface
        .and_then(|name| fs::read_to_string(sys.join("class/net").join(name).join("device/numa_node")).ok())
        .and_then(|text| text.trim().parse().ok());
    let pages = HugePages::read(sys, node).map_err(|error| {
        lacks(format!("this host's huge pages of 2 MiB cannot be read ({error}): testpmd needs {mib} MiB of them for its buffers"))
    })?;
    Ok(HostResource::HugePages { file: pages.file, free: HugePages::needed(mib) })
}

/// Refuses a device for which the installed DPDK has no driver. `root` is `/`. A program of the user's own build reports its drivers
/// itself.
pub fn check_driver(device: &DpdkDevice, program: &str, root: &Path) -> Result<(), WorkError> {
    if program != DpdkSettings::PROGRAM {
        return Ok(());
    }
    let driver = match device {
        DpdkDevice::AfPacket => "af_packet",
        DpdkDevice::AfXdp => "af_xdp",
        DpdkDevice::Memif => "memif",
        DpdkDevice::Null => "null",
        DpdkDevice::Netvsc => "netvsc",
        DpdkDevice::Mana => "mana",
        DpdkDevice::Failsafe => "failsafe",
        // Which one it takes, is its own matter.
        DpdkDevice::Pci(_) => return Ok(()),
    };
    match Drivers::find(root) {
        Some(drivers) if !drivers.has(driver) => Err(lacks(format!(
            "the DPDK of this host has no driver for `{device}` (librte_net_{driver}); it has {}. {}",
            drivers.list(),
            package(driver)
        ))),
        _ => Ok(()),
    }
}

fn lacks(message: String) -> WorkError {
    WorkError { kind: FailureKind::Environment, message }
}

/// An interface with those that go with it: all that are reached from it upwards (bond, bridge, synthetic NIC) and downwards (VLAN's
/// and macvlan's own, functions), again and again.
fn family(links: &[LinkState], interface: &str) -> Vec<String> {
    let mut found: Vec<&LinkState> = links.iter().filter(|link| link.name == interface).collect();
    let mut seen = 0;
    while let Some(of) = found.get(seen).copied() {
        seen += 1;
        let is_next = |link: &&LinkState| {
            let ways = [
                (link.master, of.index),
                (link.lower, of.index),
                (of.master, link.index),
                (of.lower, link.index),
            ];
            ways.iter().any(|(from, to)| *from == Some(*to))
        };
        for link in links.iter().filter(is_next) {
            if !found.iter().any(|known| known.index == link.index) {
                found.push(link);
            }
        }
    }
    found.into_iter().map(|link| link.name.clone()).collect()
}

fn is_beneath(link: &LinkState, links: &[LinkState], interface: &str) -> bool {
    links.iter().any(|above| above.name == interface && link.master == Some(above.index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_above_and_beneath_an_interface_goes_with_it_at_any_depth() {
        let link = |index, name: &str, master, lower| LinkState {
            index,
            name: name.to_owned(),
            master,
            lower,
            ..LinkState::default()
        };
        let links = [
            link(2, "eth0", Some(5), None),
            link(3, "enP1s1", Some(2), None),
            link(4, "eth1", None, None),
            link(5, "bond0", Some(6), None),
            link(6, "br0", None, None),
            link(7, "br0.7", None, Some(6)),
        ];
        let mut all = family(&links, "enP1s1");
        all.sort_unstable();
        assert_eq!(all, ["bond0", "br0", "br0.7", "enP1s1", "eth0"]);
        assert_eq!(family(&links, "eth1"), ["eth1"]);
    }

    #[test]
    fn a_driver_that_is_not_installed_is_named_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        check_driver(&DpdkDevice::Mana, DpdkSettings::PROGRAM, root.path()).unwrap();
        let folder = root.path().join("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("librte_net_af_xdp.so.23"), "").unwrap();
        check_driver(&DpdkDevice::AfXdp, DpdkSettings::PROGRAM, root.path()).unwrap();
        let message =
            check_driver(&DpdkDevice::Mana, DpdkSettings::PROGRAM, root.path()).unwrap_err().message;
        assert!(message.contains("librte_net_mana") && message.contains("it has af_xdp"), "{message}");
        assert!(message.contains("build DPDK 23.11"), "{message}");
        check_driver(&DpdkDevice::Mana, "/opt/dpdk/bin/dpdk-testpmd", root.path()).unwrap();
    }

    #[test]
    fn a_function_of_the_bus_is_bound_only_when_its_driver_does_not_share_it() {
        let sys = tempfile::tempdir().unwrap();
        let slot = "0000:00:05.0";
        let device = sys.path().join("devices/pci0000:00").join(slot);
        let at = |path: &str| sys.path().join(path);
        for folder in
            ["bus/pci/devices", "bus/pci/drivers/ena", "bus/pci/drivers/mlx5_core", "class/net/ens5"]
        {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::create_dir_all(&device).unwrap();
        let link = |to: &Path, from: &Path| {
            let _ = fs::remove_file(from);
            std::os::unix::fs::symlink(to, from).unwrap();
        };
        link(&device, &at("bus/pci/devices").join(slot));
        link(&device, &at("class/net/ens5/device"));
        link(&at("bus/pci/drivers/mlx5_core"), &device.join("driver"));
        assert_eq!(on_pci(sys.path(), slot, "ens5").unwrap(), []);
        link(&at("bus/pci/drivers/ena"), &device.join("driver"));
        assert!(on_pci(sys.path(), slot, "ens5").unwrap_err().message.contains("modprobe vfio-pci"));
        fs::create_dir_all(at("module/vfio_pci")).unwrap();
        let resources = on_pci(sys.path(), slot, "ens5").unwrap();
        assert!(matches!(&resources[..], [HostResource::Device { driver: VFIO, .. }]), "{resources:?}");
        let other = on_pci(sys.path(), "0000:00:06.0", "ens5").unwrap_err().message;
        assert!(other.contains("not that of ens5") && other.contains(slot), "{other}");

        // virtio-net has a device of its own below that of the function.
        let virtio = device.join("virtio1");
        fs::create_dir(&virtio).unwrap();
        link(&virtio, &at("class/net/ens5/device"));
        let resources = on_pci(sys.path(), slot, "ens5").unwrap();
        assert!(matches!(&resources[..], [HostResource::Device { driver: VFIO, .. }]), "{resources:?}");
    }
}
