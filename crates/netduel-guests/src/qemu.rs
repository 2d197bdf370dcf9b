//! The arguments of QEMU for a guest of a scene. It starts nothing.
use std::fs;

use crate::prepared::Prepared;
use crate::scene::{Device, Nic, Scene, management_mac};

/// Memory of a guest, MiB: its file system takes some 60, traffic some 100.
const MEMORY_MIB: u32 = 512;
/// Two, so that NICs have two queues.
const CORES: u32 = 2;
/// `thread=single`: with a thread per core, QEMU died of an assertion at PCI removal under traffic.
const ACCELERATOR: &str = "tcg,thread=single";
const MACHINE: &str = "q35,usb=off,vmport=off,hpet=off";
/// rdrand: without it the guest waits 20 s for entropy.
const PROCESSOR: &str = "Nehalem,+rdrand";

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
        add("-smp", CORES.to_string());
        add("-m", MEMORY_MIB.to_string());
        add("-display", "none".to_owned());
        add("-kernel", prepared.vmlinux().display().to_string());
        add("-initrd", prepared.initramfs().display().to_string());
        add("-append", self.kernel_command_line());
        add("-serial", "file:/dev/stderr".to_owned());
        add("-qmp", "stdio".to_owned());
        add("-netdev", "user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:0-:22".to_owned());
        add("-device", device("virtio-net-pci", "mgmt", &management_mac(self.number), ""));
        for (index, nic) in self.scene.nics.iter().enumerate() {
            let slot = index + 1;
            add("-device", format!("pcie-root-port,id={},chassis={slot},slot={slot}", port(slot)));
            add("-netdev", self.netdev(nic));
            if let Some(words) = self.device(nic, &port(slot)) {
                add("-device", words);
            }
        }
        words.extend(["-nodefaults", "-no-user-config", "-no-reboot"].map(str::to_owned));
        words
    }

    fn kernel_command_line(self) -> String {
        let modules: Vec<&str> = self.scene.modules().into_iter().collect();
        let mut words = vec![
            "console=ttyS0 quiet loglevel=4 nokaslr mitigations=off audit=0 panic=-1".to_owned(),
            format!("netduel.name={} netduel.key={}", self.name, self.key),
            format!("netduel.mac={} netduel.modules={}", management_mac(self.number), modules.join(",")),
        ];
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

    /// The device of a NIC; `None` for a free port.
    fn device(self, nic: &Nic, port: &str) -> Option<String> {
        let (model, extra) = match nic.device {
            Device::Virtio { queues: 1 } => ("virtio-net-pci", String::new()),
            // Two vectors for each pair of queues, one for configuration, one for control.
            Device::Virtio { queues } => ("virtio-net-pci", format!(",mq=on,vectors={}", 2 * queues + 2)),
            Device::Standby => ("virtio-net-pci", ",failover=on".to_owned()),
            Device::Igb { .. } => ("igb", String::new()),
            Device::E1000e { primary_of: None } => ("e1000e", String::new()),
            Device::E1000e { primary_of: Some(standby) } => {
                ("e1000e", format!(",failover_pair_id={standby}"))
            }
            Device::Vmxnet3 => ("vmxnet3", String::new()),
            Device::FreePort => return None,
        };
        let place = format!(",id={},bus={port}{extra}", nic.interface);
        Some(device(model, &netdev(nic), &self.scene.mac(self.number, nic), &place))
    }
}

/// The port of a NIC, from 1 up.
pub fn port(slot: usize) -> String {
    format!("port{slot}")
}

/// The id of a NIC's back end.
pub fn netdev(nic: &Nic) -> String {
    format!("net-{}", nic.interface)
}

/// `romfile=`: otherwise SeaBIOS tries to boot from the NIC.
fn device(model: &str, netdev: &str, mac: &str, extra: &str) -> String {
    format!("{model},netdev={netdev},mac={mac},romfile={extra}")
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
