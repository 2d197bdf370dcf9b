//! Azure virtual machines in each state of accelerated networking. Driver names, PCI numbers, counters and pairing are those
//! of the table of Linux guests; counts, addresses and ids are invented.
use super::tree::{Cpu, Nic, OFFLOADS, Tree};
use crate::fixture::Host;
use crate::service::{Answer, Request, ok, status};

pub const GUID: &str = "000d3a10-2007-000d-3a10-2007000d3a10";
const TAG: &str = "7783-7084-3265-9085-8269-3286-77";
const MLX5: &str = "b0f0:00:02.0";
const MANA: &str = "7870:00:00.0";

/// State of the virtual function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Active,
    /// Present, paired, and without traffic.
    Idle,
    /// Present, and not paired.
    Unpaired,
}

fn tree(name: &str, cores: u16) -> Tree {
    let cpu = Cpu::guest("Intel(R) Xeon(R) Platinum 8171M CPU @ 2.60GHz", cores, 1, 28);
    let tree = Tree::new(name, "6.8.0-1015-azure", "Ubuntu 24.04.1 LTS", &cpu);
    tree.dmi("Microsoft Corporation", "Virtual Machine", TAG);
    tree.log(&["Hypervisor detected: Microsoft Hyper-V", "Hyper-V: Host Build 10.0.20348.1-1-0"]);
    tree.key_values(&[
        ("HostName", "AMS21PRDAPP0815"),
        ("PhysicalHostName", "AMS21PRDAPP0815"),
        ("VirtualMachineName", "a2f1d6f4-01b3-4c76-8f5d-000d3a102007"),
    ]);
    let channels: Vec<(u16, u32)> = (0..cores.min(8)).map(|core| (core, 10_000 + u32::from(core))).collect();
    tree.vmbus(GUID, &channels);
    tree
}

/// The synthetic interface, with packets and bytes that the virtual function received and sent.
fn netvsc(cores: u32, vf: [u64; 4]) -> Nic {
    let [rx_packets, rx_bytes, tx_packets, tx_bytes] = vf;
    Nic {
        index: 2,
        name: "eth0",
        mac: 7,
        mtu: 1500,
        disciplines: &["mq", "fq_codel"],
        addresses: &["10.1.0.4", "fe80::20d:3aff:fe10:2007"],
        driver: "hv_netvsc",
        bus: GUID,
        firmware: "N/A",
        speed: Some(50_000),
        features: OFFLOADS,
        combined: Some((cores.min(8), cores.min(64))),
        rings: Some([9709, 18811, 170, 2560]),
        indirection: 128,
        xps: true,
        counters: vec![
            ("tx_scattered", 0),
            ("tx_no_memory", 0),
            ("tx_no_space", 0),
            ("tx_too_big", 0),
            ("tx_busy", 3),
            ("tx_send_full", 11),
            ("rx_comp_busy", 0),
            ("rx_no_memory", 0),
            ("stop_queue", 2),
            ("wake_queue", 2),
            ("vf_rx_packets", rx_packets),
            ("vf_rx_bytes", rx_bytes),
            ("vf_tx_packets", tx_packets),
            ("vf_tx_bytes", tx_bytes),
            ("vf_tx_dropped", 0),
            ("cpu0_rx_packets", 812),
            ("cpu0_vf_rx_packets", rx_packets / 8),
        ],
        ..Nic::default()
    }
}

/// A virtual machine of 8 cores with a ConnectX-4 Lx.
pub fn mlx5(state: State) -> Host {
    let mut tree = tree("azure-mlx5", 8);
    let traffic = [412_345_678, 598_765_432_109, 698_765_432, 986_543_210_987];
    tree.nic(&netvsc(8, if state == State::Active { traffic } else { [0; 4] }));
    tree.function(MLX5, 0x15b3, 0x1016, Some("mlx5_core"), 0);
    let queue = |core: u16| (format!("mlx5_comp{core}@pci:{MLX5}"), core, 4_000_000 + u32::from(core) * 1000);
    let events = (format!("mlx5_async0@pci:{MLX5}"), 0, 12);
    tree.interrupts(MLX5, [events].into_iter().chain((0..8).map(queue)));
    tree.nic(&Nic {
        index: 3,
        name: "enP45296s1",
        master: if state == State::Unpaired { 0 } else { 2 },
        mac: 7,
        mtu: 1500,
        disciplines: &["mq", "fq_codel"],
        driver: "mlx5_core",
        bus: MLX5,
        firmware: "14.25.8362 (MSF0010110035)",
        speed: Some(50_000),
        features: OFFLOADS,
        combined: Some((8, 8)),
        rings: Some([1024, 8192, 1024, 8192]),
        coalesce: Some([8, 128, 8, 128, 1, 1]),
        indirection: 128,
        xps: true,
        counters: vec![("rx_packets", 412_345_678), ("rx_out_of_buffer", 40), ("tx_queue_stopped", 5)],
        ..Nic::default()
    });
    tree.finish(2)
}

/// Without a virtual function: accelerated networking is off, or the function was removed.
pub fn synthetic() -> Host {
    let mut tree = tree("azure-synthetic", 8);
    tree.nic(&netvsc(8, [0; 4]));
    tree.finish(2)
}

/// With a Microsoft Azure Network Adapter, and with or without its driver.
pub fn mana(has_driver: bool) -> Host {
    let mut tree = tree("azure-mana", 4);
    tree.nic(&netvsc(
        4,
        if has_driver { [91_000_000, 120_000_000_000, 88_000_000, 119_000_000_000] } else { [0; 4] },
    ));
    tree.function(MANA, 0x1414, 0x00ba, has_driver.then_some("mana"), 0);
    if has_driver {
        let queue = |core: u16| (format!("mana_q{core}@pci:{MANA}"), core, 900_000 + u32::from(core));
        let control = (format!("mana_hwc@pci:{MANA}"), 0, 77);
        tree.interrupts(MANA, [control].into_iter().chain((0..4).map(queue)));
        tree.nic(&Nic {
            index: 3,
            name: "enP30832s1",
            master: 2,
            mac: 7,
            mtu: 1500,
            disciplines: &["mq", "fq_codel"],
            driver: "mana",
            bus: MANA,
            speed: Some(200_000),
            features: OFFLOADS,
            combined: Some((4, 4)),
            rings: Some([1024, 8192, 1024, 8192]),
            indirection: 64,
            xps: true,
            counters: vec![("stop_queue", 0), ("wake_queue", 0), ("rx_0_packets", 22_000_000)],
            ..Nic::default()
        });
    }
    tree.finish(2)
}

/// The document of the size that the first of the articles was measured with.
pub fn metadata(request: &Request) -> Answer {
    if !request.has("Metadata: true") {
        return status("400 Bad Request");
    }
    match request.line.as_str() {
        "GET /metadata/instance/compute?api-version=2025-04-07&format=json" => ok(DOCUMENT),
        _ => status("404 Not Found"),
    }
}

const DOCUMENT: &str = r#"{
  "azEnvironment": "AzurePublicCloud", "host": {"id": ""}, "location": "westeurope", "name": "client",
  "offer": "ubuntu-24_04-lts", "osType": "Linux", "placementGroupId": "f67c14ab-e92c-408c-ae2d-da15866ec79a",
  "platformFaultDomain": "1", "platformSubFaultDomain": "", "platformUpdateDomain": "2", "physicalZone": "westeurope-az3",
  "priority": "", "publisher": "Canonical", "sku": "server", "tagsList": [{"name": "team", "value": "net"}],
  "version": "24.04.202411030", "vmId": "02aab8a4-74ef-476e-8182-f6d2ba4166a6", "vmScaleSetName": "",
  "vmSize": "Standard_DS4_v2", "zone": "2"
}"#;
