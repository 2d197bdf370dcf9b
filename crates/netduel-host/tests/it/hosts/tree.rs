//! Writes the files, links and drivers of a host from a short description, in place of hundreds of stored files.
use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::symlink;

use netduel_sys::ethtool::{Channels, Coalesce, CoalesceParameter, Feature, Rings, Rss};
use netduel_sys::netlink::{RTM_NEWADDR, RTM_NEWQDISC, RTM_NEWROUTE, Request};

use crate::fixture::{Host, Link};

/// Features that every driver of current kernels enables.
pub const OFFLOADS: &[&str] = &[
    "tx-scatter-gather",
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "rx-gro",
    "rx-checksum",
];

/// A network interface. Omitted properties have no file.
#[derive(Default)]
pub struct Nic {
    pub index: u32,
    pub name: &'static str,
    /// Index of the interface above.
    pub master: u32,
    pub is_down: bool,
    /// Last byte of a MAC that begins with Azure's `00:0d:3a`, and is the same for a VF and its synthetic interface.
    pub mac: u8,
    pub mtu: u32,
    pub disciplines: &'static [&'static str],
    pub addresses: &'static [&'static str],
    pub driver: &'static str,
    pub bus: &'static str,
    pub firmware: &'static str,
    pub speed: Option<u32>,
    pub features: &'static [&'static str],
    /// Combined queues, and their maximum.
    pub combined: Option<(u32, u32)>,
    /// Receive descriptors and their maximum, transmit descriptors and their maximum.
    pub rings: Option<[u32; 4]>,
    /// `rx-usecs`, `rx-frames`, `tx-usecs`, `tx-frames`, `adaptive-rx`, `adaptive-tx`.
    pub coalesce: Option<[u32; 6]>,
    /// Entries of the indirection table, distributed round robin over the queues.
    pub indirection: u32,
    /// Mask of RPS for each receive queue; none when empty.
    pub rps: &'static str,
    /// Whether XPS maps each core to the transmit queue of its number.
    pub xps: bool,
    pub counters: Vec<(&'static str, u64)>,
}

/// A processor.
pub struct Cpu {
    pub model: &'static str,
    pub sockets: u16,
    pub cores_of_socket: u16,
    pub threads: u16,
    pub memory_gib: u64,
    /// Whether the processor reports a hypervisor.
    pub is_guest: bool,
    /// Clock rate, kHz, and governor.
    pub frequency: Option<(u64, &'static str)>,
    /// Huge pages of 2 MiB of each node.
    pub huge_pages: u64,
}

impl Cpu {
    pub fn guest(model: &'static str, cores_of_socket: u16, threads: u16, memory_gib: u64) -> Self {
        let frequency = None;
        Self {
            model,
            sockets: 1,
            cores_of_socket,
            threads,
            memory_gib,
            is_guest: true,
            frequency,
            huge_pages: 0,
        }
    }

    fn count(&self) -> u16 {
        self.sockets * self.cores_of_socket * self.threads
    }
}

/// A host under construction.
pub struct Tree {
    pub host: Host,
    cores: u16,
    links: Vec<Link>,
    addresses: Vec<u8>,
    interrupts: String,
    next_interrupt: u32,
}

impl Tree {
    pub fn new(name: &str, kernel: &str, os: &str, cpu: &Cpu) -> Self {
        let host = Host::new();
        let value = |below: &str, text: &str| host.write(&format!("proc/sys/{below}"), &format!("{text}\n"));
        value("kernel/hostname", name);
        value("kernel/osrelease", kernel);
        value("kernel/arch", "x86_64");
        value("kernel/random/boot_id", "00000000-1111-2222-3333-444444444444");
        for (name, text) in SYSCTLS {
            value(name, text);
        }
        host.write("etc/os-release", &format!("ID=linux\nPRETTY_NAME=\"{os}\"\n"));
        host.write("proc/1/comm", "systemd\n");
        link(&host, "proc/self/ns/pid", "pid:[4026531836]");
        link(&host, "proc/thread-self/ns/net", "net:[4026531840]");
        host.write("proc/modules", "nf_tables 352256 0 - Live 0x0000000000000000\n");
        host.kernel.lock().unwrap().rules = Some(0);
        let mut interrupts = "     ".to_owned();
        for core in 0..cpu.count() {
            write!(interrupts, "       CPU{core}").unwrap();
        }
        interrupts.push('\n');
        let cores = cpu.count();
        let tree =
            Self { host, cores, links: Vec::new(), addresses: Vec::new(), interrupts, next_interrupt: 24 };
        tree.cpu(cpu);
        tree
    }

    fn cpu(&self, cpu: &Cpu) {
        let (host, count) = (&self.host, cpu.count());
        let flags = if cpu.is_guest { "fpu sse2 avx2 hypervisor" } else { "fpu sse2 avx2" };
        let core = |core| format!("processor\t: {core}\nmodel name\t: {}\nflags\t\t: {flags}\n\n", cpu.model);
        host.write("proc/cpuinfo", &(0..count).map(core).collect::<String>());
        let ticks = |core| format!("cpu{core} 1 0 1 9 0 0 0 0 0 0\n");
        host.write("proc/stat", &(0..count).map(ticks).collect::<String>());
        let kib = cpu.memory_gib << 20;
        host.write("proc/meminfo", &format!("MemTotal:       {kib} kB\n"));
        host.write("sys/devices/system/cpu/online", &format!("0-{}\n", count - 1));
        let of_socket = cpu.cores_of_socket * cpu.threads;
        for core in 0..count {
            let folder = format!("sys/devices/system/cpu/cpu{core}");
            let (socket, first) = (core / of_socket, core - core % cpu.threads);
            host.write(&format!("{folder}/topology/physical_package_id"), &format!("{socket}\n"));
            host.write(&format!("{folder}/topology/thread_siblings_list"), &range(first, cpu.threads));
            if let Some((khz, governor)) = cpu.frequency {
                host.write(&format!("{folder}/cpufreq/cpuinfo_max_freq"), &format!("{khz}\n"));
                host.write(&format!("{folder}/cpufreq/scaling_governor"), &format!("{governor}\n"));
            }
        }
        let caches = [
            (1, "Data", "32K", cpu.threads),
            (2, "Unified", "1024K", cpu.threads),
            (3, "Unified", "32768K", of_socket),
        ];
        for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
            host.write(&format!("{folder}/level"), &format!("{level}\n"));
            host.write(&format!("{folder}/type"), &format!("{kind}\n"));
            host.write(&format!("{folder}/size"), &format!("{size}\n"));
            host.write(&format!("{folder}/shared_cpu_list"), &range(0, shared));
        }
        for node in 0..cpu.sockets {
            let folder = format!("sys/devices/system/node/node{node}");
            host.write(&format!("{folder}/cpulist"), &range(node * of_socket, of_socket));
            let kib = kib / u64::from(cpu.sockets);
            host.write(&format!("{folder}/meminfo"), &format!("Node {node} MemTotal:       {kib} kB\n"));
            let distance = |other| if other == node { "10" } else { "21" };
            let distances: Vec<&str> = (0..cpu.sockets).map(distance).collect();
            host.write(&format!("{folder}/distance"), &format!("{}\n", distances.join(" ")));
            for file in ["nr_hugepages", "free_hugepages"] {
                let below = format!("{folder}/hugepages/hugepages-2048kB/{file}");
                host.write(&below, &format!("{}\n", cpu.huge_pages));
            }
        }
    }

    pub fn dmi(&self, vendor: &str, product: &str, tag: &str) {
        for (name, value) in [("sys_vendor", vendor), ("product_name", product), ("chassis_asset_tag", tag)] {
            self.host.write(&format!("sys/class/dmi/id/{name}"), &format!("{value}\n"));
        }
    }

    /// The kernel log of the boot.
    pub fn log(&self, lines: &[&str]) {
        let record = |(number, line): (usize, &&str)| format!("6,{number},{number},-;{line}\n");
        self.host.write("dev/kmsg", &lines.iter().enumerate().map(record).collect::<String>());
    }

    /// Values of the key-value exchange of a Hyper-V host.
    pub fn key_values(&self, pairs: &[(&str, &str)]) {
        let padded = |text: &str, length| format!("{text}{}", "\0".repeat(length - text.len()));
        let record = |(key, value): &(&str, &str)| padded(key, 512) + &padded(value, 2048);
        self.host.write("var/lib/hyperv/.kvp_pool_3", &pairs.iter().map(record).collect::<String>());
    }

    /// A network function on the PCI bus; `node` -1 when the machine reports none.
    pub fn function(&self, slot: &str, vendor: u16, device: u16, driver: Option<&str>, node: i32) {
        let folder = format!("sys/bus/pci/devices/{slot}");
        self.host.write(&format!("{folder}/class"), "0x020000\n");
        self.host.write(&format!("{folder}/vendor"), &format!("0x{vendor:04x}\n"));
        self.host.write(&format!("{folder}/device"), &format!("0x{device:04x}\n"));
        self.host.write(&format!("{folder}/numa_node"), &format!("{node}\n"));
        if let Some(driver) = driver {
            link(&self.host, &format!("{folder}/driver"), &format!("../../../bus/pci/drivers/{driver}"));
        }
    }

    /// Message-signalled interrupts of a function: name, core, count.
    pub fn interrupts(&mut self, slot: &str, interrupts: impl IntoIterator<Item = (String, u16, u32)>) {
        for (name, core, count) in interrupts {
            let number = self.next_interrupt;
            self.next_interrupt += 1;
            self.host.write(&format!("sys/bus/pci/devices/{slot}/msi_irqs/{number}"), "msix\n");
            self.host.write(&format!("proc/irq/{number}/effective_affinity_list"), &format!("{core}\n"));
            write!(self.interrupts, " {number}:").unwrap();
            for other in 0..self.cores {
                write!(self.interrupts, " {:>10}", if other == core { count } else { 0 }).unwrap();
            }
            writeln!(self.interrupts, "   PCI-MSIX-{slot}   {number}-edge      {name}").unwrap();
        }
    }

    /// The channels of a Hyper-V network device: the core and the count of each.
    pub fn vmbus(&self, guid: &str, channels: &[(u16, u32)]) {
        for (queue, (core, count)) in channels.iter().enumerate() {
            let folder = format!("sys/bus/vmbus/devices/{guid}/channels/{}", 14 + queue);
            self.host.write(&format!("{folder}/cpu"), &format!("{core}\n"));
            self.host.write(&format!("{folder}/subchannel_id"), &format!("{queue}\n"));
            self.host.write(&format!("{folder}/interrupts"), &format!("{count}\n"));
        }
        self.host.write(&format!("sys/bus/vmbus/devices/{guid}/numa_node"), "0\n");
    }

    pub fn nic(&mut self, nic: &Nic) {
        let mac = (nic.mac > 0).then_some([0, 0x0d, 0x3a, 0x10, 0x20, nic.mac]);
        let queues = nic.combined.map_or(1, |(now, _)| now);
        self.links.push(Link {
            kind: None,
            lower: 0,
            index: nic.index,
            name: nic.name,
            master: nic.master,
            mac,
            mtu: Some(nic.mtu),
            qdisc: nic.disciplines.first().copied(),
            queues: Some((queues, queues)),
            is_down: nic.is_down,
            counters: [0; 8],
        });
        for address in nic.addresses {
            self.address(nic.index, address.parse().unwrap());
        }
        self.class_net(nic, mac, queues);
        self.kernel(nic, queues);
    }

    fn address(&mut self, index: u32, address: IpAddr) {
        let (family, octets) = match address {
            IpAddr::V4(four) => (2, four.octets().to_vec()),
            IpAddr::V6(six) => (10, six.octets().to_vec()),
        };
        let mut body = [family, 24, 0, 0, 0, 0, 0, 0];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        self.addresses.extend(Request::new(RTM_NEWADDR, 0, &body).bytes(2, &octets).finish(0));
    }

    /// The folder of an interface with the RPS and XPS settings of its queues.
    fn class_net(&self, nic: &Nic, mac: Option<[u8; 6]>, queues: u32) {
        let folder = format!("sys/class/net/{}", nic.name);
        let mac = mac.unwrap_or_default().map(|byte| format!("{byte:02x}")).join(":");
        self.host.write(&format!("{folder}/address"), &format!("{mac}\n"));
        self.host.write(&format!("{folder}/ifindex"), &format!("{}\n", nic.index));
        for queue in 0..queues {
            let rps = if nic.rps.is_empty() { "0" } else { nic.rps };
            self.host.write(&format!("{folder}/queues/rx-{queue}/rps_cpus"), &format!("{rps}\n"));
            self.host.write(&format!("{folder}/queues/rx-{queue}/rps_flow_cnt"), "0\n");
            let xps = if nic.xps { 1u64 << queue } else { 0 };
            self.host.write(&format!("{folder}/queues/tx-{queue}/xps_cpus"), &format!("{xps:x}\n"));
        }
    }

    /// The answers of netlink and ethtool about an interface.
    fn kernel(&self, nic: &Nic, queues: u32) {
        let mut kernel = self.host.kernel.lock().unwrap();
        let name = || nic.name.to_owned();
        for (place, kind) in nic.disciplines.iter().enumerate() {
            let parent = if place == 0 { u32::MAX } else { place as u32 };
            let body = [0, nic.index, 0, parent, 1].map(u32::to_ne_bytes).concat();
            kernel.queueing.extend(Request::new(RTM_NEWQDISC, 0, &body).text(1, kind).finish(0));
        }
        if nic.driver.is_empty() {
            return;
        }
        kernel.driver.insert(name(), nic.driver.to_owned());
        // `ethtool -i` has 31 characters, so the GUID of a vmbus device is truncated.
        kernel.bus.insert(name(), nic.bus.chars().take(31).collect());
        kernel.firmware.insert(name(), nic.firmware.to_owned());
        let feature =
            |name: &&str| Feature { name: (*name).to_owned(), fixed: false, requested: true, active: true };
        kernel.features.insert(name(), nic.features.iter().map(feature).collect());
        let counters = nic.counters.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        kernel.statistics.insert(name(), counters);
        if let Some(speed) = nic.speed {
            kernel.speed.insert(name(), speed);
        }
        if let Some((combined, max_combined)) = nic.combined {
            kernel.channels.insert(name(), Channels { combined, max_combined, ..Channels::default() });
        }
        if let Some([rx, max_rx, tx, max_tx]) = nic.rings {
            kernel.rings.insert(name(), Rings { rx, max_rx, tx, max_tx, ..Rings::default() });
        }
        if let Some(values) = nic.coalesce {
            use CoalesceParameter::{AdaptiveRx, AdaptiveTx, RxFrames, RxUsecs, TxFrames, TxUsecs};
            let mut coalesce = Coalesce::default();
            let parameters = [RxUsecs, RxFrames, TxUsecs, TxFrames, AdaptiveRx, AdaptiveTx];
            for (parameter, value) in parameters.into_iter().zip(values) {
                coalesce.set_value(parameter, value);
            }
            kernel.coalesce.insert(name(), coalesce);
        }
        if nic.indirection > 0 {
            let indirection = (0..nic.indirection).map(|entry| entry % queues).collect();
            kernel.rss.insert(name(), Rss { indirection, key: Vec::new(), function: None });
        }
    }

    /// The host, with a default route by the link of this index.
    pub fn finish(mut self, default_link: u32) -> Host {
        self.nic(&Nic {
            index: 1,
            name: "lo",
            mtu: 65536,
            addresses: &["127.0.0.1", "::1"],
            ..Nic::default()
        });
        self.links.sort_by_key(|link| link.index);
        self.host.set_links(&self.links);
        self.host.write("proc/interrupts", &self.interrupts);
        {
            let mut kernel = self.host.kernel.lock().unwrap();
            kernel.addresses = self.addresses;
            // `struct rtmsg` of the main table, and the link.
            let body = [2, 0, 0, 0, 254, 16, 0, 1, 0, 0, 0, 0];
            kernel.routes = Request::new(RTM_NEWROUTE, 0, &body).u32(4, default_link).finish(0);
        }
        self.host
    }
}

/// Sysctls with the kernel's defaults.
const SYSCTLS: &[(&str, &str)] = &[
    ("net/core/busy_poll", "0"),
    ("net/core/default_qdisc", "fq_codel"),
    ("net/core/rmem_max", "212992"),
    ("net/core/wmem_max", "212992"),
    ("net/ipv4/tcp_congestion_control", "cubic"),
    ("net/ipv4/tcp_rmem", "4096\t131072\t6291456"),
    ("net/ipv4/tcp_wmem", "4096\t16384\t4194304"),
];

fn range(first: u16, count: u16) -> String {
    if count == 1 { format!("{first}\n") } else { format!("{first}-{}\n", first + count - 1) }
}

fn link(host: &Host, below: &str, target: &str) {
    let path = host.folder.path().join(below);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}
