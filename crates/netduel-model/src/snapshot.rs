//! What a host is, as far as it bears on a network measurement. Raw facts; what they mean is decided elsewhere.
mod cloud;
mod device;
mod machine;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use cloud::{Cloud, Provider};
pub use device::{
    Channels, Coalescing, Device, PciFunction, QueueInterrupt, ReceiveSteering, Rings, XdpFeature,
};
pub use machine::{Cache, HugePages, KernelSettings, NumaNode, Processor};

/// Name of the loopback interface in every network namespace.
pub const LOOPBACK: &str = "lo";
/// The driver of the interface above a virtual function and a virtio NIC (Documentation/networking/net_failover.rst of the kernel).
pub const FAILOVER_DRIVER: &str = "net_failover";
/// Drivers of paravirtual interfaces that keep the address and can have a virtual function below them.
pub const SYNTHETIC_DRIVERS: [&str; 2] = ["hv_netvsc", FAILOVER_DRIVER];
/// The driver of the standby of net_failover.
pub const STANDBY_DRIVER: &str = "virtio_net";

/// Those of [`HostSnapshot::sysctls`] that are no settings: a list that grows when a module is loaded, and the number of connections that the
/// firewall tracks now.
pub const SYSCTLS_OF_STATE: [&str; 2] =
    ["net.ipv4.tcp_available_congestion_control", "net.netfilter.nf_conntrack_count"];

/// The facts of a host at the beginning of a run. Facts that the host does not expose are absent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostSnapshot {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// First 16 hexadecimal digits of the SHA-256 of the program file of netduel on this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Machine architecture.
    pub machine: Option<String>,
    /// Distribution (`PRETTY_NAME` of os-release).
    pub os: Option<String>,
    /// Hypervisor or cloud that DMI names.
    pub platform: Option<String>,
    /// UUID of the machine by its firmware (DMI), as the kernel writes it; only root can read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_uuid: Option<String>,
    /// `/proc/sys/kernel/random/boot_id`: two agents with the same one share a machine.
    pub boot_id: Option<String>,
    /// Inode of the network namespace: two agents with the same one and the same boot share a network stack.
    pub netns: Option<u64>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores: u32,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Interfaces.
    pub interfaces: Vec<Interface>,
    /// Sysctls that affect results, by name.
    pub sysctls: BTreeMap<String, String>,
    /// Sockets, physical cores, caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Processor>,
    /// NUMA nodes; one on a small machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numa_nodes: Vec<NumaNode>,
    /// Settings of the kernel beside sysctls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_settings: Option<KernelSettings>,
    /// Hypervisor and its build as far as the guest can know, for example `Hyper-V 10.0.20348.1-1-0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<String>,
    /// The provider of the machine, and the data of its metadata service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud: Option<Cloud>,
    /// Network functions on the PCI bus, those without a driver or an interface too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pci_functions: Vec<PciFunction>,
    /// Firewall and connection tracking; absent when they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<Firewall>,
    /// Whether irqbalance runs, which moves interrupts between cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<bool>,
    /// Interfaces of the default routes, of either family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_routes: Vec<String>,
    /// Unicast routes of the main table, without link-local destinations. Empty in runs of earlier versions, and where there are more than 256.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Whether `routes` has all of them; false where the kernel did not list them or there are too many. Absent in runs of earlier versions, whose
    /// routes lack next hop, source address and MTU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes_listed: Option<bool>,
}

/// A route to one interface. A route with several next hops is one of these for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Route {
    /// The first address of the destination; unspecified for a default route.
    pub destination: IpAddr,
    /// Prefix length of the destination; 0 for a default route.
    pub prefix_length: u8,
    /// Name of the interface that packets leave by.
    pub interface: String,
    /// Metric: of the routes to one destination the kernel uses that with the lowest metric.
    pub metric: u32,
    /// Address of the next hop; absent for a network that the interface is connected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// Source address that the route states; absent where the kernel takes one of the interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// MTU that the route states, bytes; absent where that of the interface applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The other attributes of its metrics (`RTA_METRICS`) with their names in `ip route`, for example `advmss` and `congctl`; absent in a
    /// description by an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributes: Option<BTreeMap<String, String>>,
}

/// Firewall and connection tracking of a network stack.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Firewall {
    /// nftables' rules; absent without the privilege to list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nft_rules: Option<u32>,
    /// Tables of the older iptables that are loaded (`/proc/net/ip_tables_names`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub iptables: Vec<String>,
    /// Tracked connections: now, and the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conntrack: Option<(u64, u64)>,
}

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// `IFLA_INFO_KIND`, for example `veth` or `bridge`; absent for hardware.
    pub kind: Option<String>,
    /// Driver (`ethtool -i`).
    pub driver: Option<String>,
    /// Link-layer address.
    pub mac: Option<String>,
    /// Bytes.
    pub mtu: Option<u32>,
    /// Whether it is up.
    pub up: bool,
    /// Whether it has carrier.
    pub carrier: Option<bool>,
    /// Link speed, Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Interface above.
    pub master: Option<String>,
    /// Interface below: that of a VLAN, macvlan or tunnel; absent when it is in another network namespace, and in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<String>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
    /// Prefix lengths of the addresses, in their order; empty in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefix_lengths: Vec<u8>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Kind of its root qdisc.
    pub qdisc: Option<String>,
    /// Packets that it received and sent since it was added; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Offload features that are on (`ethtool -k`).
    pub features_on: Vec<String>,
    /// The device behind it: place, queues, rings, interrupts. Empty for an interface that has none.
    #[serde(default, skip_serializing_if = "Device::is_empty")]
    pub device: Device,
}

/// Kinds of software interfaces whose speed is that of the hardware below them.
const KINDS_WITH_A_LINE: [&str; 4] = ["bond", "team", "vlan", "macvlan"];

impl Interface {
    /// Speed of the line, Mbit/s; absent when unknown. Other software interfaces have none: a veth reports 10 Gbit/s whatever it carries.
    pub fn line_speed_mbps(&self) -> Option<u32> {
        let has_line = self.kind.as_deref().is_none_or(|kind| KINDS_WITH_A_LINE.contains(&kind));
        self.speed_mbps.filter(|speed| has_line && *speed > 0)
    }
}

impl HostSnapshot {
    /// Whether a virtual function is beside the interface with a MAC address: a NIC and its virtual function share the address. The standby of
    /// net_failover has it as well, and is none. `None` when no interface has it.
    pub fn has_function_beside(&self, mac: &str) -> Option<bool> {
        let is_standby =
            |one: &Interface| one.master.is_some() && one.driver.as_deref() == Some(STANDBY_DRIVER);
        let has_mac = |one: &Interface| one.mac.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(mac));
        let own = self.interfaces.iter().filter(|one| has_mac(one) && !is_standby(one));
        match own.count() {
            0 => None,
            count => Some(count > 1),
        }
    }
    /// The routes that the kernel uses for an address: those with the longest prefix, of these those with the lowest metric. Empty without a
    /// route.
    pub fn routes_to(&self, address: IpAddr) -> Vec<&Route> {
        self.routes_to_by(address, |_| true)
    }
    /// The same among the routes by certain interfaces, for example for a socket that is bound to one of them.
    pub fn routes_to_by(&self, address: IpAddr, is_by: impl Fn(&str) -> bool) -> Vec<&Route> {
        let rank = |route: &Route| (route.prefix_length, Reverse(route.metric));
        let is_considered = |route: &&Route| {
            is_in_network(route.destination, route.prefix_length, address) && is_by(&route.interface)
        };
        let best = self.routes.iter().filter(is_considered).map(rank).max();
        self.routes.iter().filter(is_considered).filter(|route| Some(rank(route)) == best).collect()
    }
    /// Whether two agents run on one machine, so that CPU time must not be counted twice.
    pub fn same_machine(&self, other: &Self) -> bool {
        self.boot_id.is_some() && self.boot_id == other.boot_id
    }
    /// Whether two agents run in one network namespace of one machine.
    pub fn same_network(&self, other: &Self) -> bool {
        self.same_machine(other) && self.netns.is_some() && self.netns == other.netns
    }
}

/// Whether an address is in the network of another one with this prefix length.
pub fn is_in_network(own: IpAddr, prefix_length: u8, address: IpAddr) -> bool {
    let differs = match (own, address) {
        (IpAddr::V4(own), IpAddr::V4(address)) => u128::from(own.to_bits() ^ address.to_bits()) << 96,
        (IpAddr::V6(own), IpAddr::V6(address)) => own.to_bits() ^ address.to_bits(),
        _ => return false,
    };
    differs.leading_zeros() >= u32::from(prefix_length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_of_an_address_has_the_longest_prefix_then_the_lowest_metric() {
        let route = |destination: &str, prefix_length: u8, interface: &str, metric: u32| Route {
            destination: destination.parse().unwrap(),
            prefix_length,
            interface: interface.to_owned(),
            metric,
            gateway: None,
            source: None,
            mtu: None,
            attributes: None,
        };
        let host = HostSnapshot {
            routes: vec![
                route("0.0.0.0", 0, "eth1", 200),
                route("0.0.0.0", 0, "eth0", 100),
                route("10.77.1.0", 24, "eth1", 200),
                route("10.77.2.0", 24, "eth1", 0),
                route("10.77.2.0", 24, "eth2", 0),
                route("fd77::", 64, "eth1", 1024),
            ],
            ..HostSnapshot::default()
        };
        for (address, expected) in [
            ("192.0.2.1", vec!["eth0"]),
            ("10.77.1.9", vec!["eth1"]),
            ("10.77.2.9", vec!["eth1", "eth2"]),
            ("fd77::1", vec!["eth1"]),
            ("fd78::1", vec![]),
        ] {
            let found = host.routes_to(address.parse().unwrap());
            let names: Vec<&str> = found.iter().map(|route| route.interface.as_str()).collect();
            assert_eq!(names, expected, "{address}");
        }
        let address = "10.77.1.9".parse().unwrap();
        let found = host.routes_to_by(address, |interface| interface == "eth0");
        assert_eq!(found, [&host.routes[1]], "a longer prefix by another interface does not count");
    }

    #[test]
    fn standby_of_net_failover_is_no_function() {
        let interface = |name: &str, driver: &str, master: Option<&str>| Interface {
            name: name.to_owned(),
            driver: Some(driver.to_owned()),
            mac: Some("52:54:00:01:02:00".to_owned()),
            master: master.map(str::to_owned),
            ..Interface::default()
        };
        let netvsc = [interface("eth0", "hv_netvsc", None), interface("eth1", "mlx5_core", Some("eth0"))];
        let failover = [
            interface("fo0", FAILOVER_DRIVER, None),
            interface("fo0nsby", STANDBY_DRIVER, Some("fo0")),
            interface("vf0", "igbvf", Some("fo0")),
        ];
        let seen = |interfaces: &[Interface]| {
            let host = HostSnapshot { interfaces: interfaces.to_vec(), ..HostSnapshot::default() };
            ["52:54:00:01:02:00", "52:54:00:01:02:01"].map(|mac| host.has_function_beside(mac))
        };
        for (nic, function_less) in [(&netvsc[..], 1), (&failover[..], 2)] {
            assert_eq!(seen(nic), [Some(true), None], "{nic:?}");
            assert_eq!(seen(&nic[..function_less]), [Some(false), None], "{nic:?}");
        }
    }
}
