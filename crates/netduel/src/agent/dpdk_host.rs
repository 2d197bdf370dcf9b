//! What testpmd is given of this host: a device, and what is lent for it. Refuses before a run what would fail in it, and whatever would
//! cut the host off.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use netduel_control::agent::{FailureKind, WorkError};
use netduel_host::{DataPath, LinkState};
use netduel_interop::dpdk_host::{Binding, BindingError, Drivers, HugePages, Hyperv, package};
use netduel_interop::testpmd::Device;
use netduel_model::dpdk::DpdkDevice;
use netduel_model::ids::Token;
use netduel_model::workload::Role;

use super::dpdk::usage;
use super::environment;
use crate::treatment::Loan;

/// Drivers of the kernel that share a NIC with a program, so that nothing has to be bound: Mellanox' and MANA's.
const SHARING: [&str; 3] = ["mlx4_core", "mlx5_core", "mana"];
/// The driver that hands a function of the PCI bus to a program.
const VFIO: &str = "vfio-pci";

/// What testpmd is given.
pub struct Given {
    /// Its device.
    pub device: Device,
    /// What is lent for it.
    pub loans: Vec<Loan>,
}

impl Given {
    /// No network.
    pub fn null() -> Self {
        Self { device: Device::Null, loans: Vec::new() }
    }

    /// Memory that both ends of a trial share: the receiver makes it.
    pub fn memif(token: Token, role: Role) -> Self {
        // The token itself is a secret, and the names of files are none.
        let digest = ring::digest::digest(&ring::digest::SHA256, &token.0);
        let number = digest.as_ref().first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let socket = std::env::temp_dir().join(format!("netduel-memif-{number:016x}"));
        Self { device: Device::Memif { socket, serves: role == Role::Server }, loans: Vec::new() }
    }

    /// A device that has to do with an interface. `sys` is `/sys`.
    pub fn on(device: &DpdkDevice, path: &DataPath, ways: &Ways, sys: &Path) -> Result<Self, WorkError> {
        let interface = path.interface.clone();
        let links = netduel_host::link_states().map_err(environment)?;
        let refused = |error: BindingError| environment(error);
        if *device != DpdkDevice::AfPacket
            && let Some(why) = ways.refusal(&family(&links, &interface))
        {
            return Err(usage(format!(
                "{interface} is not given to testpmd (device `{device}`), because {why}: this host could not be reached any more; give it \
                 a second NIC for the data, or use the device `net_af_packet`, which leaves the kernel its own"
            )));
        }
        let lower =
            links.iter().find(|link| is_beneath(link, &links, &interface)).map(|link| link.name.as_str());
        let shared = || vec![Loan::Interface { interface: interface.clone() }];
        let (device, loans) = match device {
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
        Ok(Self { device, loans })
    }
}

fn rebound(device: PathBuf, bus: PathBuf, driver: &'static str, interface: &str) -> Loan {
    Loan::Device { device, bus, driver, interface: interface.to_owned() }
}

/// What is lent for a function of the PCI bus: nothing when its driver shares it.
fn on_pci(sys: &Path, slot: &str, interface: &str) -> Result<Vec<Loan>, WorkError> {
    let device = sys.join("bus/pci/devices").join(slot);
    let name = |link: &Path| Some(fs::canonicalize(link).ok()?.file_name()?.to_string_lossy().into_owned());
    let of_interface = name(&sys.join("class/net").join(interface).join("device"));
    if of_interface.as_deref() != Some(slot) {
        let is = of_interface.unwrap_or_else(|| "none".to_owned());
        return Err(usage(format!(
            "the device `{slot}` is not that of {interface}, which carries the data ({is}); name the interface by `expect_interface` of the arm, \
             or another device"
        )));
    }
    let driver = name(&device.join("driver")).unwrap_or_default();
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

/// The huge pages that lack for so much memory, on the node of an interface.
pub fn pages(sys: &Path, interface: Option<&str>, mib: u64) -> Result<Option<Loan>, WorkError> {
    let node = interface
        .and_then(|name| fs::read_to_string(sys.join("class/net").join(name).join("device/numa_node")).ok())
        .and_then(|text| text.trim().parse().ok());
    let pages = HugePages::read(sys, node).map_err(|error| {
        lacks(format!("this host's huge pages of 2 MiB cannot be read ({error}): testpmd needs {mib} MiB of them for its buffers"))
    })?;
    Ok(pages.wanted(mib).map(|wanted| Loan::HugePages { file: pages.file, pages: wanted }))
}

/// Refuses a device for which the installed DPDK has no driver. `root` is `/`.
pub fn check_driver(device: &DpdkDevice, root: &Path) -> Result<(), WorkError> {
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

/// By what this host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ways {
    /// Whether the agent is in the network namespace of the host itself, and not in one that stands for a host.
    is_hosts: bool,
    /// The interface by which the agent's own ssh connection comes in.
    ssh: Option<String>,
    /// Those of default routes.
    default: BTreeSet<String>,
    /// Those with an address, the loopback left out.
    addressed: BTreeSet<String>,
}

impl Ways {
    /// Reads them. What cannot be read counts as a way.
    pub fn read() -> Self {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
        let is_hosts = match (namespace("1"), namespace("self")) {
            (Some(first), Some(own)) => first == own,
            _ => true,
        };
        let mut ways = Self { is_hosts, ..Self::default() };
        let ssh = std::env::var("SSH_CONNECTION").ok();
        let ssh = ssh.as_deref().and_then(|words| words.split(' ').nth(2)).and_then(|word| word.parse().ok());
        for link in netduel_host::link_states().unwrap_or_default().iter().filter(|link| link.name != "lo") {
            let addresses = netduel_host::addresses_of(&link.name).unwrap_or_default();
            let is_local = |address: &std::net::IpAddr| matches!(address, std::net::IpAddr::V6(six) if six.is_unicast_link_local());
            if addresses.iter().any(|address| !is_local(address)) {
                ways.addressed.insert(link.name.clone());
            }
            if ssh.is_some_and(|ssh| addresses.contains(&ssh)) {
                ways.ssh = Some(link.name.clone());
            }
        }
        let file = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        ways.default.extend(default_routes(&file("route")));
        ways.default.extend(default_routes_of_six(&file("ipv6_route")));
        ways
    }

    /// Why an interface, or one that goes with it, must stay the kernel's.
    fn refusal(&self, names: &[String]) -> Option<String> {
        if !self.is_hosts {
            return None;
        }
        let of = |names_of: &BTreeSet<String>| names.iter().find(|name| names_of.contains(*name)).cloned();
        if let Some(ssh) = self.ssh.as_ref().filter(|ssh| names.contains(ssh)) {
            return Some(format!("the ssh connection of this agent comes in by {ssh}"));
        }
        if let Some(name) = of(&self.default) {
            return Some(format!("a default route leads through {name}"));
        }
        let is_only = !self.addressed.is_empty() && self.addressed.iter().all(|name| names.contains(name));
        is_only.then(|| "no other interface has an address".to_owned())
    }
}

/// An interface with those that go with it: above and beneath.
fn family(links: &[LinkState], interface: &str) -> Vec<String> {
    let own = links.iter().find(|link| link.name == interface);
    let goes_with = |link: &&LinkState| {
        own.is_some_and(|own| {
            link.index == own.index || link.master == Some(own.index) || own.master == Some(link.index)
        })
    };
    links.iter().filter(goes_with).map(|link| link.name.clone()).collect()
}

fn is_beneath(link: &LinkState, links: &[LinkState], interface: &str) -> bool {
    links.iter().any(|above| above.name == interface && link.master == Some(above.index))
}

/// The interfaces of default routes in `/proc/net/route`: destination and mask are zero.
fn default_routes(text: &str) -> Vec<String> {
    let default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        (fields.len() > 7 && fields[1] == "00000000" && fields[7] == "00000000").then(|| fields[0].to_owned())
    };
    text.lines().skip(1).filter_map(default).collect()
}

/// Those in `/proc/net/ipv6_route`; the kernel's own, which leads nowhere, is the loopback's.
fn default_routes_of_six(text: &str) -> Vec<String> {
    let default = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, length, .., name] = fields[..] else { return None };
        let is_default = destination.bytes().all(|digit| digit == b'0') && length == "00" && name != "lo";
        is_default.then(|| name.to_owned())
    };
    text.lines().filter_map(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways() -> Ways {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Ways {
            is_hosts: true,
            ssh: Some("eth0".into()),
            default: set(&["eth1"]),
            addressed: set(&["eth0", "eth1", "eth2"]),
        }
    }

    fn refusal(ways: &Ways, names: &[&str]) -> Option<String> {
        ways.refusal(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_nic_that_leads_to_the_host_is_never_given_away() {
        let ways = ways();
        assert!(refusal(&ways, &["eth0"]).unwrap().contains("ssh connection"));
        assert!(
            refusal(&ways, &["enP1s1", "eth0"]).unwrap().contains("by eth0"),
            "a function beneath it is the same NIC"
        );
        assert!(refusal(&ways, &["eth1"]).unwrap().contains("default route"));
        assert_eq!(refusal(&ways, &["eth2"]), None);
        let only =
            Ways { ssh: None, default: BTreeSet::new(), addressed: ["eth2".to_owned()].into(), ..ways };
        assert!(refusal(&only, &["eth2"]).unwrap().contains("no other interface has an address"));
        assert_eq!(refusal(&only, &["eth3"]), None);
        assert_eq!(
            refusal(&Ways { is_hosts: false, ..only }, &["eth2"]),
            None,
            "a namespace is reached from its host"
        );
    }

    #[test]
    fn default_routes_are_read_from_the_kernels_tables() {
        let four = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                    eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                    eth1\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(default_routes(four), ["eth0"]);
        let zeros = "0".repeat(32);
        let six = format!(
            "{zeros} 00 {zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n\
             fd770000000000000000000000000000 40 {zeros} 00 {zeros} 00000100 00000001 00000000 00000001     eth1\n"
        );
        assert_eq!(default_routes_of_six(&six), ["eth0"]);
    }

    #[test]
    fn a_driver_that_is_not_installed_is_named_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        check_driver(&DpdkDevice::Mana, root.path()).unwrap();
        let folder = root.path().join("usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("librte_net_af_xdp.so.23"), "").unwrap();
        check_driver(&DpdkDevice::AfXdp, root.path()).unwrap();
        let message = check_driver(&DpdkDevice::Mana, root.path()).unwrap_err().message;
        assert!(message.contains("librte_net_mana") && message.contains("it has af_xdp"), "{message}");
        assert!(message.contains("build DPDK 23.11"), "{message}");
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
        let loans = on_pci(sys.path(), slot, "ens5").unwrap();
        assert!(matches!(&loans[..], [Loan::Device { driver: VFIO, .. }]), "{loans:?}");
        let other = on_pci(sys.path(), "0000:00:06.0", "ens5").unwrap_err().message;
        assert!(other.contains("not that of ens5") && other.contains(slot), "{other}");
    }
}
