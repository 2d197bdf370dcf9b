//! Hosts of each cloud and state, written from tables and not captured: see `README.md` beside this file. The snapshots that the readers
//! return are kept as JSON for the tests of the report.
mod azure;
mod elsewhere;
mod tree;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use netduel_host::snapshot_of;
use netduel_model::snapshot::{HostSnapshot, Interface, Provider};

use crate::fixture::Host;
use crate::service::{Answer, Request, Service};

/// The function that writes a host, and the answers of its metadata service.
struct Written {
    name: &'static str,
    write: fn() -> Host,
    service: Option<fn(&Request) -> Answer>,
}

const ALL: &[Written] = &[
    azure("azure-mlx5-active", || azure::mlx5(azure::State::Active)),
    azure("azure-mlx5-idle", || azure::mlx5(azure::State::Idle)),
    azure("azure-mlx5-unpaired", || azure::mlx5(azure::State::Unpaired)),
    azure("azure-synthetic-only", azure::synthetic),
    azure("azure-mana-active", || azure::mana(true)),
    azure("azure-mana-no-driver", || azure::mana(false)),
    Written { name: "aws-ena", write: elsewhere::ena, service: Some(elsewhere::aws_metadata) },
    Written { name: "gcp-gve", write: elsewhere::gve, service: Some(elsewhere::gcp_metadata) },
    Written { name: "kvm-virtio-2-nodes", write: elsewhere::virtio, service: None },
    Written { name: "vmware-vmxnet3", write: elsewhere::vmxnet3, service: None },
    Written { name: "hyper-v-on-premises", write: elsewhere::hyper_v, service: None },
    Written { name: "bare-metal-2-sockets", write: elsewhere::bare_metal, service: None },
];

const fn azure(name: &'static str, write: fn() -> Host) -> Written {
    Written { name, write, service: Some(azure::metadata) }
}

fn read(host: &Host, service: Option<fn(&Request) -> Answer>) -> HostSnapshot {
    let mut sources = host.sources();
    let service = service.map(Service::start);
    sources.metadata = service.as_ref().map(Service::patiently);
    snapshot_of(&mut sources).unwrap()
}

/// The snapshot of each host, read once: writing some hundred files takes far longer than reading them.
static READ: [OnceLock<HostSnapshot>; ALL.len()] = [const { OnceLock::new() }; ALL.len()];

fn of(name: &str) -> HostSnapshot {
    let (written, once) = ALL.iter().zip(&READ).find(|(written, _)| written.name == name).unwrap();
    once.get_or_init(|| read(&(written.write)(), written.service)).clone()
}

fn nic<'a>(snapshot: &'a HostSnapshot, name: &str) -> &'a Interface {
    snapshot.interfaces.iter().find(|interface| interface.name == name).unwrap()
}

#[test]
fn snapshots_of_the_report_tests_are_those_of_the_readers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../netduel-report/tests/hosts");
    for written in ALL {
        let seen = of(written.name);
        let text = serde_json::to_string_pretty(&seen).unwrap() + "\n";
        let file = folder.join(format!("{}.json", written.name));
        if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let words = "is not current: run `cargo xtask bless` and commit it";
        assert!(kept == text, "{} {words}", file.display());
        assert_eq!(serde_json::from_str::<HostSnapshot>(&kept).unwrap(), seen);
    }
}

#[test]
fn azure_vf_with_traffic_is_paired_and_has_its_counters() {
    let seen = of("azure-mlx5-active");
    let (synthetic, function) = (nic(&seen, "eth0"), nic(&seen, "enP45296s1"));
    assert_eq!(
        (synthetic.driver.as_deref(), function.driver.as_deref()),
        (Some("hv_netvsc"), Some("mlx5_core"))
    );
    assert_eq!((function.master.as_deref(), &function.mac), (Some("eth0"), &synthetic.mac));
    assert_eq!(
        synthetic.device.bus_address.as_deref(),
        Some(azure::GUID),
        "the whole GUID, though ethtool cuts it"
    );
    assert_eq!(synthetic.device.counters["vf_tx_bytes"], 986_543_210_987);
    assert!(!synthetic.device.counters.contains_key("cpu0_vf_rx_packets"));
    assert_eq!(synthetic.device.interrupts.len(), 8);
    let channel = &synthetic.device.interrupts[3];
    assert_eq!(
        (channel.number, channel.queue, &channel.cores[..], channel.count),
        (17, Some(3), &[3][..], Some(10_003))
    );
    let pci = function.device.pci.as_ref().unwrap();
    assert_eq!((pci.vendor, pci.device, pci.virtual_function), (0x15b3, 0x1016, Some(true)));
    assert_eq!(
        (&pci.interfaces[..], pci.driver.as_deref()),
        (&["enP45296s1".to_owned()][..], Some("mlx5_core"))
    );
    // The interrupt of asynchronous events belongs to no queue.
    assert_eq!(function.device.interrupts.len(), 8);
    assert_eq!(function.device.rss_entries, [16; 8]);
    assert_eq!(function.device.qdiscs, ["mq", "fq_codel"]);
    let cloud = seen.cloud.unwrap();
    assert_eq!((cloud.provider, cloud.size.as_deref()), (Provider::Azure, Some("Standard_DS4_v2")));
    assert_eq!((cloud.zone.as_deref(), cloud.physical_zone.as_deref()), (Some("2"), Some("westeurope-az3")));
    assert_eq!(cloud.physical_host.as_deref(), Some("AMS21PRDAPP0815"), "of the key-value pool");
    assert_eq!(
        (cloud.metadata_failure, seen.hypervisor.as_deref()),
        (None, Some("Hyper-V 10.0.20348.1-1-0"))
    );
    assert_eq!(seen.default_routes, ["eth0"]);
    assert_eq!(seen.routes_listed, Some(true));
}

#[test]
fn each_state_of_an_accelerated_interface_differs_in_what_is_read() {
    let idle = of("azure-mlx5-idle");
    assert_eq!(nic(&idle, "eth0").device.counters["vf_rx_packets"], 0);
    assert_eq!(nic(&idle, "enP45296s1").master.as_deref(), Some("eth0"));
    let unpaired = of("azure-mlx5-unpaired");
    assert_eq!(nic(&unpaired, "enP45296s1").master, None);
    assert_eq!(nic(&unpaired, "enP45296s1").mac, nic(&unpaired, "eth0").mac);
    let synthetic = of("azure-synthetic-only");
    assert_eq!((synthetic.pci_functions.len(), synthetic.interfaces.len()), (0, 2));
    let without = of("azure-mana-no-driver");
    let function = &without.pci_functions[0];
    assert_eq!((function.vendor, function.device, function.driver.as_deref()), (0x1414, 0x00ba, None));
    assert!(function.interfaces.is_empty() && without.interfaces.len() == 2);
    let mana = of("azure-mana-active");
    assert_eq!(nic(&mana, "enP30832s1").driver.as_deref(), Some("mana"));
    assert_eq!(mana.pci_functions[0].interfaces, ["enP30832s1"]);
    // The hardware channel's interrupt is no queue's.
    assert_eq!(nic(&mana, "enP30832s1").device.interrupts.len(), 4);
}

#[test]
fn limit_counters_are_reported_by_the_names_of_each_driver() {
    let aws = of("aws-ena");
    let counters = &nic(&aws, "ens5").device.counters;
    assert_eq!((counters["bw_out_allowance_exceeded"], counters["pps_allowance_exceeded"]), (48_211, 0));
    assert_eq!(counters["queue_1_tx_queue_stop"], 7);
    let cloud = aws.cloud.as_ref().unwrap();
    assert_eq!((cloud.provider, cloud.size.as_deref()), (Provider::Aws, Some("m7i.2xlarge")));
    assert_eq!(
        (cloud.physical_zone.as_deref(), cloud.placement.as_deref()),
        (Some("euc1-az2"), Some("near"))
    );
    assert_eq!((&cloud.physical_host, &cloud.metadata_failure), (&None, &None));

    let gcp = of("gcp-gve");
    assert_eq!(nic(&gcp, "ens4").device.counters["rx_queue_drop_cnt[1]"], 12);
    let cloud = gcp.cloud.as_ref().unwrap();
    assert_eq!(
        (cloud.size.as_deref(), cloud.region.as_deref()),
        (Some("c3-standard-8"), Some("europe-west4"))
    );
    assert_eq!(cloud.physical_host.as_deref(), Some("/5f1a/b2/0c77"));

    let virtio = of("kvm-virtio-2-nodes");
    assert_eq!(nic(&virtio, "eth0").device.counters["tx_hw_ratelimit_bytes"], 7_864_320);
    // Each queue has one; the driver uses one name for all.
    assert_eq!(nic(&of("vmware-vmxnet3"), "ens192").device.counters["pkts rx OOB"], 3 + 4);
}

#[test]
fn machine_with_two_sockets_has_its_nodes_and_the_node_of_the_nic() {
    let seen = of("bare-metal-2-sockets");
    let processor = seen.processor.as_ref().unwrap();
    assert_eq!((processor.sockets, processor.physical_cores.len()), (Some(2), 16));
    assert_eq!(processor.physical_cores[1], [2, 3]);
    assert_eq!((processor.governor.as_deref(), processor.max_khz), (Some("powersave"), Some(3_500_000)));
    assert_eq!(processor.caches.iter().map(|cache| cache.bytes >> 10).collect::<Vec<_>>(), [32, 1024, 32768]);
    assert_eq!((seen.numa_nodes.len(), &seen.numa_nodes[1].distances[..]), (2, &[21, 10][..]));
    assert_eq!(
        (seen.numa_nodes[1].memory_bytes, seen.numa_nodes[0].huge_pages[0].total),
        (Some(128 << 30), 512)
    );
    let port = nic(&seen, "ens3f0np0");
    assert_eq!((port.device.numa_node, port.speed_mbps), (Some(1), Some(100_000)));
    assert_eq!(port.device.firmware.as_deref(), Some("22.39.2048 (MT_0000000359)"));
    assert_eq!(port.device.pci.as_ref().unwrap().virtual_function, Some(false));
    assert_eq!(port.device.coalescing.unwrap().rx_usecs, 8);
    assert_eq!(seen.irqbalance, Some(true));
    assert_eq!(seen.firewall.as_ref().unwrap().nft_rules, Some(37));
    let cloud = seen.cloud.unwrap();
    assert_eq!((cloud.provider, seen.hypervisor), (Provider::BareMetal, None));
}

#[test]
fn queues_and_steering_of_a_guest_with_two_nodes_are_read() {
    let seen = of("kvm-virtio-2-nodes");
    let device = &nic(&seen, "eth0").device;
    assert_eq!((device.channels.unwrap().combined, device.rings.unwrap().rx), ((4, 8), (256, 256)));
    let cores: Vec<_> =
        device.interrupts.iter().map(|interrupt| (interrupt.queue, interrupt.cores[0])).collect();
    assert_eq!(cores.len(), 8);
    assert_eq!(cores[..2], [(Some(0), 0), (Some(0), 0)]);
    assert_eq!(device.receive_steering[0].cores, [0, 1, 2, 3]);
    assert_eq!(device.transmit_steering[2], [2]);
    assert_eq!(seen.cloud.as_ref().unwrap().provider, Provider::Kvm);
    assert_eq!(seen.irqbalance, Some(false));
}

#[test]
fn steering_is_absent_when_the_tree_shows_another_namespace() {
    let host = elsewhere::virtio();
    host.write("sys/class/net/eth0/ifindex", "7\n");
    let seen = read(&host, None);
    let device = &nic(&seen, "eth0").device;
    assert!(device.receive_steering.is_empty() && device.transmit_steering.is_empty());
    assert_eq!(device.interrupts.len(), 8, "these are found by the place on the bus");
}

#[test]
fn kernel_without_nftables_has_no_rules_and_is_not_queried() {
    let host = elsewhere::virtio();
    // A query would be refused here, and would load the module elsewhere.
    host.kernel.lock().unwrap().rules = None;
    assert_eq!(read(&host, None).firewall, None);
    host.write("proc/modules", "ext4 1 0 - Live 0x0\n");
    assert_eq!(read(&host, None).firewall.unwrap().nft_rules, Some(0));
}

#[test]
fn private_hyper_v_has_a_host_name_and_no_metadata_service() {
    let seen = of("hyper-v-on-premises");
    let cloud = seen.cloud.unwrap();
    assert_eq!(
        (cloud.provider, cloud.physical_host.as_deref()),
        (Provider::HyperV, Some("hv07.corp.example"))
    );
    assert_eq!((cloud.metadata_failure, cloud.size), (None, None));
    assert_eq!(cloud.instance.as_deref(), Some("DA4A1C5E-2C0B-4F0E-9B66-0D3A10200007"));
}
