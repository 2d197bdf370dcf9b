//! The facts of a host in JSON. These types are not the stored snapshot: units are in the names, and pairs of numbers have names.
//!
//! Long because: each fact has its key with a comment, and its conversion.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::snapshot::{self, HostSnapshot, Provider, XdpFeature};
use netduel_model::units::BITS_PER_MEGABIT;
use schemars::JsonSchema;
use serde::Serialize;

/// The facts of a host. A fact that the host does not reveal is null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostFacts {
    /// Host name.
    pub hostname: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Machine architecture.
    pub architecture: Option<String>,
    /// First 16 hexadecimal digits of the SHA-256 of the program file of netduel on this host.
    pub build: Option<String>,
    /// Distribution.
    pub os: Option<String>,
    /// Hypervisor or cloud that DMI names.
    pub platform: Option<String>,
    /// Boot id of the kernel: two hosts with the same one are one machine.
    pub boot_id: Option<String>,
    /// Inode of the network namespace.
    pub network_namespace: Option<u64>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online.
    pub cores: u32,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Hypervisor and its build.
    pub hypervisor: Option<String>,
    /// Whether irqbalance runs.
    pub irqbalance: Option<bool>,
    /// Interfaces of the default routes.
    pub default_routes: Vec<String>,
    /// Sysctls that affect results.
    pub sysctls: Vec<Sysctl>,
    /// Processors.
    pub processor: Option<Processor>,
    /// NUMA nodes; one on a small machine.
    pub numa_nodes: Vec<Node>,
    /// Settings of the kernel beside sysctls; null in runs of earlier versions.
    pub kernel_settings: Option<KernelSettings>,
    /// Cloud provider and machine.
    pub cloud: Option<Cloud>,
    /// Firewall and connection tracking; null when they cannot be read.
    pub firewall: Option<Firewall>,
    /// Network functions on the PCI bus, also those without a driver or interface.
    pub pci_functions: Vec<PciFunction>,
    /// Network interfaces.
    pub interfaces: Vec<Interface>,
}

/// A sysctl.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sysctl {
    /// Dotted name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// Processors of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Processor {
    /// What tells processors of one model name apart, of the first one: family, model, stepping and microcode; null where the kernel names none.
    pub identity: Option<String>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Threads of each physical core.
    pub physical_cores: Vec<Vec<u16>>,
    /// Highest clock rate.
    pub max_hz: Option<u64>,
    /// Governor of the clock rate.
    pub governor: Option<String>,
    /// Caches of the first core, smallest level first.
    pub caches: Vec<Cache>,
    /// Cores that netduel may run on; null for all.
    pub allowed: Option<Vec<u16>>,
    /// Cores that are isolated from the scheduler.
    pub isolated: Vec<u16>,
}

/// A cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cache {
    /// Level.
    pub level: u8,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size.
    pub size_bytes: u64,
    /// Cores that share it.
    pub cores: Vec<u16>,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Node {
    /// Number of the node.
    pub node: u32,
    /// Its cores.
    pub cores: Vec<u16>,
    /// Its memory.
    pub memory_bytes: Option<u64>,
    /// Distance to each node, in the order of their numbers; 10 is the node itself.
    pub distances: Vec<u32>,
    /// Its huge pages.
    pub huge_pages: Vec<HugePages>,
}

/// Huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HugePages {
    /// Size of a page.
    pub page_bytes: u64,
    /// Reserved pages.
    pub total: u64,
    /// Free pages.
    pub free: u64,
}

/// Settings of the kernel beside sysctls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelSettings {
    /// Kernel boot parameters that affect results, in their order; others are not recorded.
    pub boot_options: Vec<String>,
    /// Huge pages that programs get without asking: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Threads of a core: `on`, `off`, `forceoff`, `notsupported` or `notimplemented`.
    pub smt: Option<String>,
    /// Vulnerabilities of the CPU that affect it.
    pub vulnerabilities: Vec<Vulnerability>,
}

/// A vulnerability of the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Vulnerability {
    /// Name, as the kernel calls it.
    pub name: String,
    /// What the kernel does against it, in its words.
    pub state: String,
}

/// Provider of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cloud {
    /// Provider.
    pub provider: Provider,
    /// What the provider was recognized by.
    pub evidence: String,
    /// Size or machine type.
    pub size: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Zone as the subscription numbers it.
    pub zone: Option<String>,
    /// Zone as the provider numbers it.
    pub physical_zone: Option<String>,
    /// Id of the machine.
    pub instance: Option<String>,
    /// Placement group, availability set or scale set.
    pub placement: Option<String>,
    /// Fault domain.
    pub fault_domain: Option<String>,
    /// Physical host.
    pub physical_host: Option<String>,
    /// Image.
    pub image: Option<String>,
    /// Why the metadata service gave no facts; null when it did or was not queried.
    pub metadata_failure: Option<String>,
}

/// Firewall and connection tracking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Firewall {
    /// Rules of nftables; null without the privilege to list them.
    pub nft_rules: Option<u32>,
    /// Loaded tables of iptables.
    pub iptables: Vec<String>,
    /// Tracked connections.
    pub tracked_connections: Option<u64>,
    /// Limit of tracked connections.
    pub tracked_connections_max: Option<u64>,
}

/// A PCI function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PciFunction {
    /// Domain, bus, device and function.
    pub slot: String,
    /// Vendor id, for example 5555 (0x15b3).
    pub vendor: u16,
    /// Device id.
    pub device: u16,
    /// Driver.
    pub driver: Option<String>,
    /// Whether it is a virtual function.
    pub virtual_function: Option<bool>,
    /// Its interfaces.
    pub interfaces: Vec<String>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Interface {
    /// Name.
    pub name: String,
    /// Index.
    pub index: u32,
    /// Kind of a virtual interface, for example `veth`; null for hardware.
    pub kind: Option<String>,
    /// Driver.
    pub driver: Option<String>,
    /// MAC address.
    pub mac: Option<String>,
    /// MTU.
    pub mtu_bytes: Option<u32>,
    /// Whether it is up.
    pub up: bool,
    /// Whether it has carrier.
    pub carrier: Option<bool>,
    /// Link speed.
    pub speed_bps: Option<u64>,
    /// Interface above it.
    pub master: Option<String>,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// Transmit queues.
    pub tx_queues: Option<u32>,
    /// Receive queues.
    pub rx_queues: Option<u32>,
    /// Qdisc at the root.
    pub qdisc: Option<String>,
    /// Kinds of qdiscs, the root's first.
    pub qdiscs: Vec<String>,
    /// Offload features that are on.
    pub features_on: Vec<String>,
    /// Place on the bus.
    pub bus_address: Option<String>,
    /// PCI function at that place.
    pub pci: Option<PciFunction>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// NUMA node.
    pub numa_node: Option<u32>,
    /// Queues of the device; null when the driver does not reveal them.
    pub channels: Option<Channels>,
    /// Descriptor rings.
    pub rings: Option<Rings>,
    /// Interrupt coalescing.
    pub coalescing: Option<Coalescing>,
    /// Entries of the RSS table that point to each queue, by queue.
    pub rss_entries: Vec<u32>,
    /// Receive packet steering of each receive queue.
    pub receive_steering: Vec<ReceiveSteering>,
    /// Cores whose packets each transmit queue takes (XPS).
    pub transmit_steering: Vec<Vec<u16>>,
    /// Interrupts of the queues.
    pub interrupts: Vec<Interrupt>,
    /// XDP features of the driver; null where the kernel does not reveal them.
    pub xdp_features: Option<Vec<XdpFeature>>,
    /// Counters of the driver since it was loaded that concern a virtual function or a limit of the provider.
    pub counters: Vec<DriverCounter>,
}

/// Now and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NowAndMax {
    /// Now.
    pub now: u32,
    /// Maximum.
    pub max: u32,
}

/// Queues of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Channels {
    /// For receiving only.
    pub rx: NowAndMax,
    /// For sending only.
    pub tx: NowAndMax,
    /// For both.
    pub combined: NowAndMax,
}

/// Descriptors of rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Rings {
    /// Receive.
    pub rx: NowAndMax,
    /// Transmit.
    pub tx: NowAndMax,
}

/// Interrupt coalescing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Coalescing {
    /// Delay of receive interrupts.
    pub rx_ns: u64,
    /// Frames that trigger a receive interrupt; 0 for no such limit.
    pub rx_frames: u32,
    /// Delay of transmit interrupts.
    pub tx_ns: u64,
    /// Frames that trigger a transmit interrupt.
    pub tx_frames: u32,
    /// Whether receive values adapt to the load.
    pub adaptive_rx: bool,
    /// Whether transmit values adapt to the load.
    pub adaptive_tx: bool,
}

/// Receive packet steering of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReceiveSteering {
    /// Cores (RPS); empty when it is off.
    pub cores: Vec<u16>,
    /// Size of the flow table (RFS); 0 when it is off.
    pub flows: u32,
}

/// An interrupt of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Interrupt {
    /// Number of the interrupt or vmbus channel.
    pub number: u32,
    /// Name in /proc/interrupts; empty for a vmbus channel.
    pub name: String,
    /// Queue that it serves.
    pub queue: Option<u32>,
    /// Cores that serve it.
    pub cores: Vec<u16>,
    /// Times since boot.
    pub count: Option<u64>,
}

/// A counter of a driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DriverCounter {
    /// Name, as the driver calls it.
    pub name: String,
    /// Value.
    pub value: u64,
}

impl HostFacts {
    /// Of a snapshot.
    pub fn of(host: &HostSnapshot) -> Self {
        let sysctl = |(name, value): (&String, &String)| Sysctl { name: name.clone(), value: value.clone() };
        Self {
            hostname: host.hostname.clone(),
            kernel: host.kernel.clone(),
            architecture: host.machine.clone(),
            build: host.build.clone(),
            os: host.os.clone(),
            platform: host.platform.clone(),
            boot_id: host.boot_id.clone(),
            network_namespace: host.netns,
            cpu_model: host.cpu_model.clone(),
            cores: host.cores,
            memory_bytes: host.memory_bytes,
            hypervisor: host.hypervisor.clone(),
            irqbalance: host.irqbalance,
            default_routes: host.default_routes.clone(),
            sysctls: host.sysctls.iter().map(sysctl).collect(),
            processor: host.processor.as_ref().map(Processor::of),
            numa_nodes: host.numa_nodes.iter().map(Node::of).collect(),
            kernel_settings: host.kernel_settings.as_ref().map(KernelSettings::of),
            cloud: host.cloud.as_ref().map(Cloud::of),
            firewall: host.firewall.as_ref().map(Firewall::of),
            pci_functions: host.pci_functions.iter().map(PciFunction::of).collect(),
            interfaces: host.interfaces.iter().map(Interface::of).collect(),
        }
    }
}

impl Processor {
    fn of(processor: &snapshot::Processor) -> Self {
        let cache = |cache: &snapshot::Cache| Cache {
            level: cache.level,
            kind: cache.kind.clone(),
            size_bytes: cache.bytes,
            cores: cache.cores.clone(),
        };
        Self {
            identity: processor.identity.clone(),
            sockets: processor.sockets,
            physical_cores: processor.physical_cores.clone(),
            max_hz: processor.max_khz.map(|khz| khz.saturating_mul(1000)),
            governor: processor.governor.clone(),
            caches: processor.caches.iter().map(cache).collect(),
            allowed: processor.allowed.clone(),
            isolated: processor.isolated.clone(),
        }
    }
}

impl Node {
    fn of(node: &snapshot::NumaNode) -> Self {
        let pages = |pages: &snapshot::HugePages| HugePages {
            page_bytes: pages.size_kib.saturating_mul(1024),
            total: pages.total,
            free: pages.free,
        };
        Self {
            node: node.number,
            cores: node.cores.clone(),
            memory_bytes: node.memory_bytes,
            distances: node.distances.clone(),
            huge_pages: node.huge_pages.iter().map(pages).collect(),
        }
    }
}

impl KernelSettings {
    fn of(settings: &snapshot::KernelSettings) -> Self {
        let vulnerability =
            |(name, state): (&String, &String)| Vulnerability { name: name.clone(), state: state.clone() };
        Self {
            boot_options: settings.boot_options.clone(),
            transparent_huge_pages: settings.transparent_huge_pages.clone(),
            smt: settings.smt.clone(),
            vulnerabilities: settings.vulnerabilities.iter().map(vulnerability).collect(),
        }
    }
}

impl Cloud {
    fn of(cloud: &snapshot::Cloud) -> Self {
        Self {
            provider: cloud.provider,
            evidence: cloud.evidence.clone(),
            size: cloud.size.clone(),
            region: cloud.region.clone(),
            zone: cloud.zone.clone(),
            physical_zone: cloud.physical_zone.clone(),
            instance: cloud.instance.clone(),
            placement: cloud.placement.clone(),
            fault_domain: cloud.fault_domain.clone(),
            physical_host: cloud.physical_host.clone(),
            image: cloud.image.clone(),
            metadata_failure: cloud.metadata_failure.clone(),
        }
    }
}

impl Firewall {
    fn of(firewall: &snapshot::Firewall) -> Self {
        Self {
            nft_rules: firewall.nft_rules,
            iptables: firewall.iptables.clone(),
            tracked_connections: firewall.conntrack.map(|(now, _)| now),
            tracked_connections_max: firewall.conntrack.map(|(_, max)| max),
        }
    }
}

impl PciFunction {
    fn of(function: &snapshot::PciFunction) -> Self {
        Self {
            slot: function.slot.clone(),
            vendor: function.vendor,
            device: function.device,
            driver: function.driver.clone(),
            virtual_function: function.virtual_function,
            interfaces: function.interfaces.clone(),
        }
    }
}

impl Interface {
    fn of(interface: &snapshot::Interface) -> Self {
        let device = &interface.device;
        Self {
            name: interface.name.clone(),
            index: interface.index,
            kind: interface.kind.clone(),
            driver: interface.driver.clone(),
            mac: interface.mac.clone(),
            mtu_bytes: interface.mtu,
            up: interface.up,
            carrier: interface.carrier,
            speed_bps: interface.line_speed_mbps().map(|mbps| u64::from(mbps) * BITS_PER_MEGABIT),
            master: interface.master.clone(),
            addresses: interface.addresses.clone(),
            tx_queues: interface.tx_queues,
            rx_queues: interface.rx_queues,
            qdisc: interface.qdisc.clone(),
            qdiscs: device.qdiscs.clone(),
            features_on: interface.features_on.clone(),
            bus_address: device.bus_address.clone(),
            pci: device.pci.as_ref().map(PciFunction::of),
            firmware: device.firmware.clone(),
            numa_node: device.numa_node,
            channels: device.channels.map(Channels::of),
            rings: device.rings.map(|rings| Rings { rx: rings.rx.into(), tx: rings.tx.into() }),
            coalescing: device.coalescing.map(Coalescing::of),
            rss_entries: device.rss_entries.clone(),
            receive_steering: device.receive_steering.iter().map(ReceiveSteering::of).collect(),
            transmit_steering: device.transmit_steering.clone(),
            interrupts: device.interrupts.iter().map(Interrupt::of).collect(),
            xdp_features: device.xdp.clone(),
            counters: counters(&device.counters),
        }
    }
}

fn counters(counters: &BTreeMap<String, u64>) -> Vec<DriverCounter> {
    counters.iter().map(|(name, value)| DriverCounter { name: name.clone(), value: *value }).collect()
}

impl From<(u32, u32)> for NowAndMax {
    fn from((now, max): (u32, u32)) -> Self {
        Self { now, max }
    }
}

impl Channels {
    fn of(channels: snapshot::Channels) -> Self {
        Self { rx: channels.rx.into(), tx: channels.tx.into(), combined: channels.combined.into() }
    }
}

impl Coalescing {
    fn of(coalescing: snapshot::Coalescing) -> Self {
        let ns = |microseconds: u32| u64::from(microseconds) * 1000;
        Self {
            rx_ns: ns(coalescing.rx_usecs),
            rx_frames: coalescing.rx_frames,
            tx_ns: ns(coalescing.tx_usecs),
            tx_frames: coalescing.tx_frames,
            adaptive_rx: coalescing.adaptive_rx,
            adaptive_tx: coalescing.adaptive_tx,
        }
    }
}

impl ReceiveSteering {
    fn of(steering: &snapshot::ReceiveSteering) -> Self {
        Self { cores: steering.cores.clone(), flows: steering.flows }
    }
}

impl Interrupt {
    fn of(interrupt: &snapshot::QueueInterrupt) -> Self {
        Self {
            number: interrupt.number,
            name: interrupt.name.clone(),
            queue: interrupt.queue,
            cores: interrupt.cores.clone(),
            count: interrupt.count,
        }
    }
}
