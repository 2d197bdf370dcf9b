//! Devices and memory handed to another program are restored, whatever that program did and whichever process was killed.
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use netduel_agent::treatment::{HostResource, Treatments};
use netduel_interop::testpmd::{self, Cores, Device, Memory, Mode, Testpmd};
use netduel_sys::ethtool::Ethtool;
use netduel_sys::link;
use netduel_sys::xdp::attachment;
use netduel_test_support::skip;
use rustix::fs::{CWD, FileType, mknodat};

use super::{LENDER, guard, in_namespace, must};

const MAC: &str = "02:00:00:00:00:e1";

/// The process that hands over `va` and is killed.
pub(super) fn hold_interface() {
    let mut treatments = Treatments::new(guard());
    treatments.hand_over(&[HostResource::Interface { interface: "va".to_owned() }]).unwrap();
    println!("agent: handed over");
    for line in std::io::stdin().lines() {
        drop(line.unwrap());
    }
}

fn index(interface: &str) -> u32 {
    let links = netduel_host::link_states().unwrap();
    links.iter().find(|link| link.name == interface).unwrap().index
}

/// The state that a killed testpmd leaves on an interface. Whether there was one.
fn borrow() -> bool {
    let command = testpmd::Command {
        program: "dpdk-testpmd".to_owned(),
        mode: Mode::ReceiveOnly,
        device: Device::AfXdp { interface: "va".to_owned() },
        cores: Cores { main: 0, forwarding: vec![0] },
        memory: Memory::Ordinary,
        prefix: format!("resources-{}", std::process::id()),
        queues: 1,
        descriptors: None,
        frame_len: 60,
        many_flows: false,
        peer_mac: None,
        addresses: None,
        further: Vec::new(),
    };
    match Testpmd::start(&command, Duration::from_secs(60)) {
        Ok(testpmd) => drop(testpmd),
        Err(error) => {
            // The rest of the test then judges a change that testpmd would have made.
            skip(format!("no testpmd: {error}"));
            link::set_promiscuous("va", true).unwrap();
            return false;
        }
    }
    true
}

#[test]
fn interface_is_restored_when_its_agent_is_killed() {
    in_namespace("resources::interface_is_restored_when_its_agent_is_killed", || {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "treatment::agent_process_of_the_tests", "--nocapture"])
            .env(LENDER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        assert!(lines.by_ref().any(|line| line.unwrap().contains("agent: handed over")));
        let has_program = borrow();
        assert!(link::is_promiscuous("va").unwrap());
        assert_eq!(attachment::program(index("va")).unwrap().is_some(), has_program);
        if has_program {
            let resource = HostResource::Interface { interface: "va".to_owned() };
            let refused = Treatments::new(guard()).hand_over(&[resource]).unwrap_err().to_string();
            assert!(refused.contains("XDP program is on it"), "{refused}");
        }
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(log.contains("with 1 changes in force: 1 are undone now"), "{log}");
        assert!(!link::is_promiscuous("va").unwrap());
        assert_eq!(attachment::program(index("va")).unwrap(), None);
    });
}

/// A bus with two drivers, and a thread that acts as the kernel and moves a device between them.
struct Bus {
    folder: tempfile::TempDir,
}

impl Bus {
    fn new() -> Self {
        let bus = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(bus.device()).unwrap();
        fs::write(bus.device().join("driver_override"), "").unwrap();
        for driver in ["hv_netvsc", "uio_hv_generic"] {
            let folder = bus.root().join("drivers").join(driver);
            fs::create_dir_all(&folder).unwrap();
            for door in ["bind", "unbind"] {
                mknodat(
                    CWD,
                    folder.join(door),
                    FileType::Fifo,
                    rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                    0,
                )
                .unwrap();
            }
        }
        bus.drive("hv_netvsc");
        bus
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("vmbus")
    }

    fn device(&self) -> PathBuf {
        self.root().join("devices/6045bdc0-eba3")
    }

    fn drive(&self, driver: &str) {
        symlink(self.root().join("drivers").join(driver), self.device().join("driver")).unwrap();
    }

    fn driver(&self) -> PathBuf {
        fs::read_link(self.device().join("driver")).unwrap()
    }

    /// Waits for a write to a bind file of a driver, as the kernel does.
    fn heard(&self, driver: &str, door: &str) {
        let instance = fs::read_to_string(self.root().join("drivers").join(driver).join(door)).unwrap();
        assert_eq!(Path::new(&instance), self.device().file_name().unwrap());
    }

    fn undrive(&self) {
        fs::remove_file(self.device().join("driver")).unwrap();
    }
}

fn add_nic(name: &str) {
    let peer = format!("{name}-peer");
    must("ip", &["link", "add", name, "address", MAC, "type", "veth", "peer", "name", &peer]);
}

/// An offload that a new veth has on.
const OFFLOAD: &str = "tx-tcp-segmentation";

fn has_offload(interface: &str) -> bool {
    let features = Ethtool::open().unwrap().features(interface).unwrap();
    features.iter().find(|feature| feature.name == OFFLOAD).unwrap().active
}

#[test]
fn device_is_rebound_with_its_interface_addresses_and_settings() {
    in_namespace("resources::device_is_rebound_with_its_interface_addresses_and_settings", || {
        let bus = Bus::new();
        add_nic("eth9");
        must("ip", &["link", "set", "eth9", "up"]);
        must("ip", &["address", "add", "10.9.1.5/24", "dev", "eth9"]);
        must("ip", &["link", "set", "eth9", "mtu", "1400"]);
        assert!(has_offload("eth9"));
        Ethtool::open().unwrap().request_features("eth9", &[(OFFLOAD.to_owned(), false)]).unwrap();
        must("ip", &["route", "add", "10.9.2.0/24", "via", "10.9.1.1", "dev", "eth9", "metric", "7"]);
        let mut treatments = Treatments::new(guard());
        let resource = HostResource::Device {
            device: bus.device(),
            bus: bus.root(),
            driver: "uio_hv_generic",
            interface: "eth9".to_owned(),
        };
        std::thread::scope(|scope| {
            let kernel = scope.spawn(|| {
                bus.heard("hv_netvsc", "unbind");
                must("ip", &["link", "delete", "eth9"]);
                bus.undrive();
                bus.heard("uio_hv_generic", "bind");
                bus.drive("uio_hv_generic");
            });
            treatments.hand_over(&[resource]).unwrap();
            kernel.join().unwrap();
        });
        assert!(bus.driver().ends_with("uio_hv_generic"));
        assert_eq!(fs::read_to_string(bus.device().join("driver_override")).unwrap(), "uio_hv_generic");
        std::thread::scope(|scope| {
            let kernel = scope.spawn(|| {
                bus.heard("uio_hv_generic", "unbind");
                bus.undrive();
                bus.heard("hv_netvsc", "bind");
                bus.drive("hv_netvsc");
                // Where no program names it, it has a name of the kernel.
                add_nic("eth3");
            });
            treatments.undo_all().unwrap();
            kernel.join().unwrap();
        });
        assert!(bus.driver().ends_with("hv_netvsc"));
        assert!(link::is_up("eth9").unwrap());
        assert_eq!(netduel_host::addresses_of("eth9").unwrap()[0].to_string(), "10.9.1.5");
        assert_eq!(link::mtu("eth9").unwrap(), 1400);
        assert!(!has_offload("eth9"));
        let routes = Command::new("ip").args(["route", "show", "dev", "eth9"]).output().unwrap().stdout;
        let routes = String::from_utf8(routes).unwrap();
        assert!(routes.contains("10.9.2.0/24 via 10.9.1.1 metric 7"), "{routes}");
    });
}

#[test]
fn device_that_could_not_be_handed_over_keeps_the_wish_of_the_user_for_its_driver() {
    let name = "resources::device_that_could_not_be_handed_over_keeps_the_wish_of_the_user_for_its_driver";
    in_namespace(name, || {
        for wish in ["", "hv_netvsc"] {
            let bus = Bus::new();
            let file = bus.device().join("driver_override");
            fs::write(&file, format!("{wish}\n")).unwrap();
            add_nic("eth9");
            // The new wish is written, and the device is not taken from its driver.
            fs::remove_file(bus.root().join("drivers/hv_netvsc/unbind")).unwrap();
            let resource = HostResource::Device {
                device: bus.device(),
                bus: bus.root(),
                driver: "uio_hv_generic",
                interface: "eth9".to_owned(),
            };
            let refused = Treatments::new(guard()).hand_over(&[resource]).unwrap_err();
            assert!(!refused.is_left_behind() && refused.to_string().contains("unbind"), "{refused}");
            assert_eq!(fs::read_to_string(&file).unwrap().trim(), wish);
            must("ip", &["link", "delete", "eth9"]);
        }
    });
}

#[test]
fn huge_pages_are_released() {
    in_namespace("resources::huge_pages_are_released", || {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("nr_hugepages");
        fs::write(&file, "12\n").unwrap();
        let mut treatments = Treatments::new(guard());
        fs::write(folder.path().join("free_hugepages"), "2\n").unwrap();
        treatments.hand_over(&[HostResource::HugePages { file: file.clone(), free: 70 }]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "80");
        drop(treatments);
        assert_eq!(fs::read_to_string(&file).unwrap(), "12");
    });
}
