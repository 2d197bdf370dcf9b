//! testpmd's command line, as in DPDK's guides (EAL parameters, `testpmd_app_ug/run_app`). Pure: nothing is looked up.
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Minimum length of a packet with Ethernet, IPv4 and UDP headers, without the check sequence, bytes.
pub const FRAME_LEN_MIN: u32 = 42;
/// Cores from this number on need a smaller number in a default build (`RTE_MAX_LCORE`).
const LCORES: u16 = 128;
/// Assumed number of descriptors per queue for the size of the buffer pool: more than any driver's default.
const DESCRIPTORS_ASSUMED: u32 = 2048;
/// Maximum number of buffers held by a core, including those in flight (`mbcache` 250 and bursts).
const BUFFERS_PER_CORE: u32 = 1024;
/// Buffers for everything else; AF_XDP shares the whole pool with the kernel and fills its rings from it.
const BUFFERS_LEAST: u32 = 16_384;
/// Memory for a buffer of 2176 bytes with its headers, bytes, in huge pages and in ordinary ones: no buffer crosses a page
/// boundary.
const BUFFER_BYTES: [u64; 2] = [2432, 4352];
/// Memory besides the buffers, MiB.
const MEMORY_BESIDE_MIB: u64 = 64;
/// MiB.
const MIB: u64 = 1 << 20;

/// The forwarding mode of testpmd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Generates and sends packets.
    TransmitOnly,
    /// Receives and drops packets.
    ReceiveOnly,
}

impl Mode {
    /// The value of `--forward-mode`.
    pub fn word(self) -> &'static str {
        match self {
            Self::TransmitOnly => "txonly",
            Self::ReceiveOnly => "rxonly",
        }
    }
}

/// The device that becomes port 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// A packet socket on an interface, with memory shared with the kernel.
    AfPacket {
        /// The interface.
        interface: String,
    },
    /// AF_XDP on an interface.
    AfXdp {
        /// The interface.
        interface: String,
    },
    /// Memory shared with another process.
    Memif {
        /// The file of its control socket.
        socket: PathBuf,
        /// Whether this process creates it; the other one connects.
        serves: bool,
    },
    /// No network: sent packets are discarded, and received packets were never sent.
    Null,
    /// Azure's MANA, by its PCI function and the address of the vNIC, whose interface must be unbound from the kernel.
    Mana {
        /// PCI address.
        slot: String,
        /// Hardware address of the vNIC.
        mac: [u8; 6],
    },
    /// Hyper-V's synthetic NIC, driven by DPDK, with the virtual function below it, if there is one.
    Netvsc {
        /// Its instance on the VMBus.
        instance: String,
        /// PCI address of the virtual function.
        function: Option<String>,
    },
    /// Hyper-V's synthetic NIC, driven by the kernel, and the virtual function below it: the older method on Azure.
    Failsafe {
        /// The synthetic interface.
        interface: String,
        /// PCI address of the virtual function.
        function: Option<String>,
    },
    /// A PCI function bound to a user-space driver, or with a driver that shares it with the kernel (Mellanox).
    Pci {
        /// PCI address: `0000:00:05.0`.
        slot: String,
    },
}

impl Device {
    /// Whether it is a virtual device of DPDK, for which DPDK does not probe the PCI bus.
    fn is_virtual(&self) -> bool {
        matches!(self, Self::AfPacket { .. } | Self::AfXdp { .. } | Self::Memif { .. } | Self::Null)
    }

    /// Whether hardware accesses its memory, which requires huge pages.
    pub fn needs_huge_pages(&self) -> bool {
        !self.is_virtual()
    }

    fn words(&self, queues: u32, descriptors: Option<u32>, frame_len: u32) -> Vec<String> {
        let allow = |slot: &String| vec!["-a".to_owned(), slot.clone()];
        match self {
            Self::AfPacket { interface } => {
                let mut words =
                    format!("--vdev=net_af_packet0,iface={interface},qpairs={queues},qdisc_bypass=1");
                if let Some(descriptors) = descriptors {
                    let _ = write!(words, ",framecnt={descriptors}");
                }
                vec![words]
            }
            Self::AfXdp { interface } => {
                vec![format!("--vdev=net_af_xdp0,iface={interface},start_queue=0,queue_count={queues}")]
            }
            Self::Memif { socket, serves } => {
                let (role, socket) = (if *serves { "server" } else { "client" }, socket.display());
                let mut words =
                    format!("--vdev=net_memif0,role={role},id=0,socket-abstract=no,socket={socket}");
                if let Some(descriptors) = descriptors {
                    let _ = write!(words, ",rsize={}", descriptors.max(2).ilog2());
                }
                vec![words]
            }
            Self::Null => vec![format!("--vdev=net_null0,size={frame_len}")],
            Self::Mana { slot, mac } => vec![format!("--vdev={slot},mac={}", colons(*mac))],
            Self::Netvsc { instance, function } => {
                allow(instance).into_iter().chain(function.iter().flat_map(allow)).collect()
            }
            Self::Failsafe { interface, function } => {
                let device = format!("--vdev=net_vdev_netvsc0,iface={interface}");
                std::iter::once(device).chain(function.iter().flat_map(allow)).collect()
            }
            Self::Pci { slot } => allow(slot),
        }
    }
}

/// The cores of its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// The core of the prompt.
    pub main: u16,
    /// The forwarding cores.
    pub forwarding: Vec<u16>,
}

impl Cores {
    /// Whether DPDK uses the host's core numbers.
    fn is_plain(&self) -> bool {
        let Self { main, forwarding } = self;
        !forwarding.contains(main) && forwarding.iter().chain([main]).all(|core| *core < LCORES)
    }

    /// The host's number of a DPDK logical core.
    pub(super) fn of_host(&self, own: u16) -> u16 {
        if self.is_plain() {
            return own;
        }
        let all = std::iter::once(self.main).chain(self.forwarding.iter().copied());
        all.into_iter().nth(own.into()).unwrap_or(own)
    }

    fn words(&self) -> Vec<String> {
        let Self { main, forwarding } = self;
        if self.is_plain() {
            let mut list: Vec<u16> = forwarding.iter().copied().chain([*main]).collect();
            list.sort_unstable();
            let list: Vec<String> = list.iter().map(u16::to_string).collect();
            return vec!["-l".to_owned(), list.join(","), "--main-lcore".to_owned(), main.to_string()];
        }
        // With DPDK's own numbers, each mapped to its core: the main one may share a core, and a core's number may be too large.
        let map: Vec<String> = [main]
            .into_iter()
            .chain(forwarding)
            .enumerate()
            .map(|(own, core)| format!("{own}@{core}"))
            .collect();
        vec!["--lcores".to_owned(), map.join(","), "--main-lcore".to_owned(), "0".to_owned()]
    }
}

/// The memory of its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Huge pages, which the kernel frees when the process ends.
    Huge,
    /// Ordinary pages: for devices without hardware access to memory.
    Ordinary,
}

/// The whole command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program: a name in PATH, or a path.
    pub program: String,
    /// Its forwarding mode.
    pub mode: Mode,
    /// Its device.
    pub device: Device,
    /// Its cores.
    pub cores: Cores,
    /// Its memory.
    pub memory: Memory,
    /// Prefix of its files and its socket: unique on the machine.
    pub prefix: String,
    /// Number of queues in each direction.
    pub queues: u32,
    /// Descriptors of each queue; absent: the driver's default.
    pub descriptors: Option<u32>,
    /// Length of a packet without its check sequence, bytes: [`FRAME_LEN_MIN`] at least.
    pub frame_len: u32,
    /// Whether packets belong to many flows. The varying field depends on the version.
    pub many_flows: bool,
    /// Destination MAC address; absent: an address that no host has.
    pub peer_mac: Option<[u8; 6]>,
    /// Source and destination addresses of its packets; absent: from the benchmark range (RFC 2544: 198.18.0.0/15).
    pub addresses: Option<(Ipv4Addr, Ipv4Addr)>,
    /// Further arguments for testpmd, appended.
    pub further: Vec<String>,
}

impl Command {
    /// Its arguments.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.environment();
        words.push("--".to_owned());
        words.extend(self.application());
        words.extend(self.further.iter().cloned());
        words
    }

    /// The arguments for the environment abstraction layer (EAL).
    fn environment(&self) -> Vec<String> {
        let mut words = self.cores.words();
        words.extend(["-n".to_owned(), "4".to_owned(), format!("--file-prefix={}", self.prefix)]);
        match self.memory {
            Memory::Huge => words.push("--in-memory".to_owned()),
            Memory::Ordinary => {
                words.extend(["--no-huge".to_owned(), "-m".to_owned(), self.memory_mib().to_string()]);
            }
        }
        if self.device.is_virtual() {
            words.push("--no-pci".to_owned());
        }
        words.extend(self.device.words(self.queues, self.descriptors, self.frame_len));
        words
    }

    fn application(&self) -> Vec<String> {
        let mut words = vec![
            "--interactive".to_owned(),
            format!("--forward-mode={}", self.mode.word()),
            format!("--nb-cores={}", self.cores.forwarding.len()),
            format!("--txq={}", self.queues),
            format!("--rxq={}", self.queues),
        ];
        if let Some(descriptors) = self.descriptors {
            words.extend([format!("--txd={descriptors}"), format!("--rxd={descriptors}")]);
        }
        words.push(format!("--total-num-mbufs={}", self.buffers()));
        words.extend(["--no-lsc-interrupt".to_owned(), "--stats-period=0".to_owned()]);
        if matches!(self.device, Device::Memif { .. }) {
            // Without this it would wait 9 s for the other end, which may start later.
            words.push("--disable-link-check".to_owned());
        }
        match self.mode {
            Mode::TransmitOnly => {
                words.push(format!("--txpkts={}", self.frame_len));
                if let Some((from, to)) = self.addresses {
                    words.push(format!("--tx-ip={from},{to}"));
                }
                if let Some(mac) = self.peer_mac {
                    words.push(format!("--eth-peer=0,{}", colons(mac)));
                }
                if self.many_flows {
                    words.push("--txonly-multi-flow".to_owned());
                }
            }
            // Source ports vary, but testpmd distributes by addresses only by default.
            Mode::ReceiveOnly if self.queues > 1 && !self.device.is_virtual() => {
                words.push("--rss-udp".to_owned());
            }
            Mode::ReceiveOnly => {}
        }
        words
    }

    /// Number of buffers: for full rings and every core.
    pub fn buffers(&self) -> u32 {
        let descriptors = self.descriptors.unwrap_or(DESCRIPTORS_ASSUMED);
        let rings = self.queues.saturating_mul(descriptors).saturating_mul(2);
        let cores = (self.cores.forwarding.len() as u32 + 1).saturating_mul(BUFFERS_PER_CORE);
        rings.saturating_add(cores).max(BUFFERS_LEAST)
    }

    /// Required memory, MiB.
    pub fn memory_mib(&self) -> u64 {
        u64::from(self.buffers()) * BUFFER_BYTES[self.memory as usize] / MIB + MEMORY_BESIDE_MIB
    }
}

fn colons(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender() -> Command {
        Command {
            program: "dpdk-testpmd".to_owned(),
            mode: Mode::TransmitOnly,
            device: Device::AfPacket { interface: "va".to_owned() },
            cores: Cores { main: 1, forwarding: vec![0] },
            memory: Memory::Ordinary,
            prefix: "netduel-1".to_owned(),
            queues: 1,
            descriptors: None,
            frame_len: 60,
            many_flows: true,
            peer_mac: Some([2, 0, 0, 0, 0, 0xab]),
            addresses: Some((Ipv4Addr::new(10, 0, 1, 4), Ipv4Addr::new(10, 0, 1, 5))),
            further: vec!["--burst=64".to_owned()],
        }
    }

    #[test]
    fn sender_over_a_packet_socket_has_the_complete_command_line() {
        assert_eq!(
            sender().words().join(" "),
            "-l 0,1 --main-lcore 1 -n 4 --file-prefix=netduel-1 --no-huge -m 132 --no-pci \
             --vdev=net_af_packet0,iface=va,qpairs=1,qdisc_bypass=1 -- --interactive --forward-mode=txonly --nb-cores=1 --txq=1 --rxq=1 \
             --total-num-mbufs=16384 --no-lsc-interrupt --stats-period=0 --txpkts=60 --tx-ip=10.0.1.4,10.0.1.5 \
             --eth-peer=0,02:00:00:00:00:ab --txonly-multi-flow --burst=64"
        );
    }

    #[test]
    fn receiver_command_line_matches_the_azure_report() {
        let receiver = Command {
            mode: Mode::ReceiveOnly,
            device: Device::Mana {
                slot: "7870:00:00.0".to_owned(),
                mac: [0x7c, 0x1e, 0x52, 0x0f, 0xc6, 0x95],
            },
            cores: Cores { main: 3, forwarding: (0..8).map(|core| 5 + 2 * core).collect() },
            memory: Memory::Huge,
            queues: 8,
            descriptors: Some(2048),
            ..sender()
        };
        let words = receiver.words().join(" ");
        for expected in [
            "-l 3,5,7,9,11,13,15,17,19 --main-lcore 3 ",
            "--vdev=7870:00:00.0,mac=7c:1e:52:0f:c6:95 -- ",
            "--forward-mode=rxonly --nb-cores=8 --txq=8 --rxq=8 --txd=2048 --rxd=2048 ",
            "--in-memory",
        ] {
            assert!(words.contains(expected), "{expected}: {words}");
        }
        assert!(!words.contains("--no-pci") && !words.contains("txpkts"), "{words}");
        assert_eq!(receiver.buffers(), 8 * 2048 * 2 + 9 * 1024);
    }

    #[test]
    fn shared_main_core_and_large_core_numbers_are_mapped() {
        let words =
            |main, forwarding: &[u16]| Cores { main, forwarding: forwarding.to_vec() }.words().join(" ");
        assert_eq!(words(0, &[0]), "--lcores 0@0,1@0 --main-lcore 0");
        assert_eq!(words(0, &[144, 146]), "--lcores 0@0,1@144,2@146 --main-lcore 0");
        assert_eq!(words(2, &[1, 3]), "-l 1,2,3 --main-lcore 2");
    }

    #[test]
    fn devices_have_the_syntax_of_their_drivers() {
        let words = |device: Device| device.words(2, Some(1024), 60).join(" ");
        let memif = Device::Memif { socket: "/tmp/m".into(), serves: false };
        assert_eq!(
            words(memif),
            "--vdev=net_memif0,role=client,id=0,socket-abstract=no,socket=/tmp/m,rsize=10"
        );
        let failsafe =
            Device::Failsafe { interface: "eth1".to_owned(), function: Some("0002:00:02.0".to_owned()) };
        assert_eq!(words(failsafe), "--vdev=net_vdev_netvsc0,iface=eth1 -a 0002:00:02.0");
        assert_eq!(words(Device::Pci { slot: "0000:00:05.0".to_owned() }), "-a 0000:00:05.0");
        assert_eq!(
            words(Device::AfXdp { interface: "vb".to_owned() }),
            "--vdev=net_af_xdp0,iface=vb,start_queue=0,queue_count=2"
        );
    }
}
