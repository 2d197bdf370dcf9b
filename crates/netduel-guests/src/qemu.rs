//! The arguments of QEMU for a guest of a scene. It starts nothing.
use std::fs;

use crate::prepared::Prepared;
use crate::scene::{Device, Nic, Scene, management_mac};

/// Memory of a guest, MiB: its file system takes some 60, traffic some 100.
const MEMORY_MIB: u32 = 512;
/// That of a guest with testpmd: its libraries take some 30, its huge pages some 130.
const DPDK_MEMORY_MIB: u32 = 1024;
/// Two, so that NICs have two queues.
const CORES: u32 = 2;
/// `thread=single`: with a thread per core, QEMU died of an assertion at PCI removal under traffic.
const ACCELERATOR: &str = "tcg,thread=single";
const MACHINE: &str = "q35,usb=off,vmport=off,hpet=off";
/// The root bus of the second NUMA node, in scenes with nodes.
const NODE_BUS: &str = "node1";
/// rdrand: without it the guest waits 20 s for entropy.
const PROCESSOR: &str = "Nehalem,+rdrand";

/// Names and values of a device's properties.
pub type Properties = Vec<(&'static str, String)>;

/// A guest of a scene.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    pub scene: &'static Scene,
    /// `a` or `b`.
    pub name: &'a str,
    /// 1 or 2.
    pub number: u8,
    /// The public ssh key in base64.
    pub key: &'a str,
}

/// The tap of a NIC in the namespace of the bed.
pub fn tap(guest: &str, nic: &Nic) -> String {
    format!("{guest}{}", nic.interface)
}

impl Machine<'_> {
    /// All arguments. Its console goes to standard error, QMP to standard input and output: no socket and no file remains.
    pub fn arguments(self, prepared: &Prepared) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for folder in ["usr/share/qemu", "usr/share/seabios"] {
            add("-L", prepared.unpacked(folder).display().to_string());
        }
        add("-accel", ACCELERATOR.to_owned());
        add("-M", MACHINE.to_owned());
        add("-cpu", PROCESSOR.to_owned());
        add("-uuid", guest_uuid(self.number));
        let memory_mib = if self.scene.has_dpdk { DPDK_MEMORY_MIB } else { MEMORY_MIB };
        add("-m", memory_mib.to_string());
        if self.scene.has_nodes {
            // Cores of one socket share a cache, and so a node.
            add("-smp", format!("{CORES},sockets={CORES}"));
            let node_mib = memory_mib / CORES;
            for node in 0..CORES {
                add("-object", format!("memory-backend-ram,id=memory{node},size={node_mib}M"));
                add("-numa", format!("node,nodeid={node},cpus={node},memdev=memory{node}"));
            }
            add("-device", format!("pxb-pcie,id={NODE_BUS},bus=pcie.0,bus_nr=128,numa_node=1"));
        } else {
            add("-smp", CORES.to_string());
        }
        add("-display", "none".to_owned());
        add("-kernel", prepared.vmlinux(self.scene.kernel).display().to_string());
        let kernel = self.scene.kernel;
        let file_system =
            if self.scene.has_dpdk { prepared.dpdk_initramfs(kernel) } else { prepared.initramfs(kernel) };
        add("-initrd", file_system.display().to_string());
        add("-append", self.kernel_command_line());
        add("-serial", "file:/dev/stderr".to_owned());
        add("-qmp", "stdio".to_owned());
        if self.scene.has_dpdk {
            // Before the devices whose memory it translates. With 48 bits testpmd can use its own addresses.
            add("-device", "intel-iommu,aw-bits=48".to_owned());
        }
        add("-netdev", "user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:0-:22".to_owned());
        let mut management = nic_properties("virtio-net-pci", "mgmt", management_mac(self.number));
        // Named: with NUMA nodes QEMU would choose the bus of a node, which takes ports only.
        management.push(("bus", "pcie.0".to_owned()));
        add("-device", as_words(&management));
        let bus = if self.scene.has_nodes { NODE_BUS } else { "pcie.0" };
        for nic in self.scene.nics {
            let slot = self.scene.slot_of(nic);
            add("-device", format!("pcie-root-port,id={},chassis={slot},slot={slot},bus={bus}", port(slot)));
            add("-netdev", self.netdev(nic));
            if let Some(properties) = device(self.scene, self.number, nic, None) {
                add("-device", as_words(&properties));
            }
        }
        words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        words
    }

    fn kernel_command_line(self) -> String {
        let modules: Vec<&str> = self.scene.modules().into_iter().collect();
        let mut words = vec![
            // no_timer_check: on a busy host the check of the timer fails at times, and the kernel panics.
            "console=ttyS0 quiet loglevel=4 nokaslr mitigations=off audit=0 panic=-1 no_timer_check"
                .to_owned(),
            format!("netduel.name={} netduel.key={}", self.name, self.key),
            format!("netduel.mac={} netduel.modules={}", management_mac(self.number), modules.join(",")),
        ];
        if self.scene.has_dpdk {
            words.push("intel_iommu=on".to_owned());
        }
        // The guest's TSC is the host's. Its calibration fails on a busy host, with an error of up to factor 6.
        if let Some(khz) = tsc_khz(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()) {
            words.push(format!("tsc_early_khz={khz} tsc=reliable"));
        }
        words.join(" ")
    }

    fn netdev(self, nic: &Nic) -> String {
        let queues = match nic.device.tap_queues() {
            1 => String::new(),
            queues => format!(",queues={queues}"),
        };
        let tap = tap(self.name, nic);
        format!("tap,id={},ifname={tap},script=no,downscript=no{queues}", netdev(nic))
    }
}

/// The UUID of a guest in its firmware, which is the id of a VM. Without one the firmware has none.
pub fn guest_uuid(number: u8) -> String {
    format!("6e657464-7565-4c00-8000-0000000000{number:02x}")
}

/// The properties of a NIC's device, its driver first, with another model than that of the table if one is given. `None` for a free port
/// without a model.
pub fn device(scene: &Scene, number: u8, nic: &Nic, model: Option<&str>) -> Option<Properties> {
    let (of_table, extra) = match nic.device {
        Device::Virtio { queues: 1 } => (Some("virtio-net-pci"), Vec::new()),
        // Two vectors for each pair of queues, one for configuration, one for control.
        Device::Virtio { queues } => {
            (Some("virtio-net-pci"), vec![("mq", "on".to_owned()), ("vectors", (2 * queues + 2).to_string())])
        }
        Device::Standby => (Some("virtio-net-pci"), vec![("failover", "on".to_owned())]),
        Device::Igb { .. } => (Some("igb"), Vec::new()),
        Device::E1000e { primary_of: None } => (Some("e1000e"), Vec::new()),
        Device::E1000e { primary_of: Some(standby) } => {
            (Some("e1000e"), vec![("failover_pair_id", standby.to_owned())])
        }
        Device::Vmxnet3 => (Some("vmxnet3"), Vec::new()),
        Device::FreePort => (None, Vec::new()),
    };
    let mut properties = nic_properties(model.or(of_table)?, &netdev(nic), scene.mac(number, nic));
    properties.extend([("id", nic.interface.to_owned()), ("bus", port(scene.slot_of(nic)))]);
    properties.extend(extra);
    if scene.has_dpdk && matches!(nic.device, Device::Virtio { .. }) {
        // Without them its memory accesses pass the IOMMU by, and vfio-pci cannot translate them.
        properties.extend([("iommu_platform", "on".to_owned()), ("disable-legacy", "on".to_owned())]);
    }
    Some(properties)
}

/// `romfile`: otherwise SeaBIOS tries to boot from the NIC.
fn nic_properties(model: &str, netdev: &str, mac: String) -> Properties {
    vec![
        ("driver", model.to_owned()),
        ("netdev", netdev.to_owned()),
        ("mac", mac),
        ("romfile", String::new()),
    ]
}

fn as_words(properties: &[(&str, String)]) -> String {
    properties.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn port(slot: usize) -> String {
    format!("port{slot}")
}

/// The id of a NIC's back end.
fn netdev(nic: &Nic) -> String {
    format!("net-{}", nic.interface)
}

/// The clock rate of this machine's first core, kHz.
fn tsc_khz(cpuinfo: &str) -> Option<u64> {
    let value = cpuinfo.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1))?;
    let mhz: f64 = value.trim().parse().ok()?;
    Some((mhz * 1000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_rate_is_read_in_khz() {
        assert_eq!(tsc_khz("model name\t: x\ncpu MHz\t\t: 2595.124\ncache\t: 1\n"), Some(2_595_124));
        assert_eq!(tsc_khz("processor: 0\n"), None);
    }
}
