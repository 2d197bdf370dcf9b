//! Each finding appears on a host that has the fault, and none on a host without it.
//!
//! Long because: it is a list of findings, each with its host.
use netduel_model::snapshot::{
    Channels, Coalescing, Firewall, HostSnapshot, HugePages, Provider, QueueInterrupt, ReceiveSteering, Rings,
};
use netduel_report::findings::{
    Acceleration, Finding, HostContext, PairContext, Severity, accelerations, of_host, of_pair,
};
use netduel_report::inspect::Inspection;
use netduel_report::words::interface_facts;

use crate::hosts::{azure, captured, function, lab_guest, other};

fn ids(found: &[Finding]) -> Vec<&'static str> {
    found.iter().map(|finding| finding.id).collect()
}

/// The findings of a host, without the limit of its size, which every host of a known size has.
fn on_host(host: &HostSnapshot) -> Vec<Finding> {
    let mut found = of_host(host, &HostContext::default());
    found.retain(|finding| finding.id != "size-limit");
    found
}

fn pair() -> PairContext {
    PairContext { names: ["vm-a".into(), "vm-b".into()], ..PairContext::default() }
}

/// Adds one fault to a healthy host.
type Harm = fn(&mut HostSnapshot);

/// Removes the interface of the virtual function.
fn without_vf(host: &mut HostSnapshot) {
    host.interfaces.truncate(2);
    host.pci_functions[0].interfaces.clear();
}

/// Each fault with its expected finding. `interfaces[1]` is the synthetic NIC, `[2]` the virtual function.
const HARMS: &[(&str, Severity, Harm)] = &[
    ("vf-idle", Severity::Warning, |host| host.interfaces[2].up = false),
    ("vf-idle", Severity::Warning, |host| {
        host.interfaces[1].device.counters.values_mut().for_each(|count| *count = 0);
    }),
    ("vf-unpaired", Severity::Problem, |host| host.interfaces[2].master = None),
    ("function-without-driver", Severity::Problem, |host| {
        without_vf(host);
        host.pci_functions[0].driver = None;
    }),
    ("vf-without-interface", Severity::Warning, without_vf),
    ("synthetic-only", Severity::Warning, |host| {
        without_vf(host);
        host.pci_functions.clear();
    }),
    ("one-queue", Severity::Warning, |host| {
        host.interfaces[2].device.channels = Some(Channels { combined: (1, 8), ..Channels::default() });
    }),
    ("few-queues", Severity::Warning, |host| {
        host.interfaces[2].device.channels = Some(Channels { combined: (3, 8), ..Channels::default() });
    }),
    ("interrupts-on-one-core", Severity::Warning, |host| {
        host.interfaces[2].device.interrupts.iter_mut().for_each(|interrupt| interrupt.cores = vec![0]);
    }),
    ("interrupts-crowded", Severity::Warning, |host| {
        let interrupts = host.interfaces[2].device.interrupts.iter_mut().enumerate();
        interrupts.for_each(|(index, interrupt)| interrupt.cores = vec![index as u16 % 2]);
    }),
    ("rss-imbalance", Severity::Warning, |host| {
        host.interfaces[2].device.rss_entries = vec![64, 64, 0, 0, 0, 0, 0, 0];
    }),
    ("rss-imbalance", Severity::Warning, |host| {
        host.interfaces[2].device.rss_entries = vec![58, 10, 10, 10, 10, 10, 10, 10];
    }),
    ("rps-beside-queues", Severity::Note, |host| {
        host.interfaces[2].device.receive_steering = vec![ReceiveSteering { cores: vec![1, 2], flows: 0 }];
    }),
    ("small-rings", Severity::Note, |host| {
        host.interfaces[2].device.rings = Some(Rings { rx: (256, 4096), tx: (1024, 4096) });
    }),
    ("irqbalance", Severity::Note, |host| host.irqbalance = Some(true)),
    ("other-node", Severity::Warning, |host| {
        host.processor.as_mut().unwrap().allowed = Some(vec![4, 5, 6, 7]);
    }),
    ("cores-withheld", Severity::Note, |host| host.processor.as_mut().unwrap().allowed = Some(vec![0, 1])),
    ("clock-rate-governor", Severity::Warning, |host| {
        host.processor.as_mut().unwrap().governor = Some("powersave".into());
    }),
    ("packet-filter", Severity::Note, |host| {
        host.firewall = Some(Firewall { nft_rules: Some(12), ..Firewall::default() });
    }),
    ("packet-filter", Severity::Warning, |host| {
        host.firewall = Some(Firewall { nft_rules: Some(600), ..Firewall::default() });
    }),
    ("packet-filter", Severity::Note, |host| {
        host.firewall = Some(Firewall { iptables: vec!["filter".into()], ..Firewall::default() });
    }),
    ("connection-tracking", Severity::Problem, |host| {
        host.firewall = Some(Firewall { conntrack: Some((260_000, 262_144)), ..Firewall::default() });
    }),
    ("connection-tracking", Severity::Note, |host| {
        host.firewall = Some(Firewall { conntrack: Some((20, 262_144)), ..Firewall::default() });
    }),
    ("no-huge-pages", Severity::Note, |host| {
        let mut given = function();
        given.driver = Some("vfio-pci".into());
        given.slot = "0002:00:02.0".into();
        host.pci_functions.push(given);
    }),
    ("metadata-unknown", Severity::Note, |host| {
        host.cloud.as_mut().unwrap().metadata_failure = Some("no answer within 300 ms".into());
    }),
    ("provider-limit", Severity::Warning, |host| {
        host.interfaces[1].device.counters.insert("bw_in_allowance_exceeded".into(), 7);
    }),
    ("provider-limit", Severity::Warning, |host| {
        host.interfaces[1].device.counters.insert("tx_hw_ratelimit_bytes".into(), 7);
    }),
    ("device-pushed-back", Severity::Note, |host| {
        host.interfaces[1].device.counters.insert("tx_send_full".into(), 3000);
    }),
    ("no-carrier", Severity::Problem, |host| host.interfaces[1].carrier = Some(false)),
    ("link-down", Severity::Warning, |host| host.interfaces[1].up = false),
    ("double-queueing", Severity::Note, |host| {
        host.interfaces[2].device.qdiscs = vec!["mq".into(), "fq_codel".into()];
    }),
    ("offload-off", Severity::Warning, |host| {
        host.interfaces[2].features_on.retain(|feature| feature != "tx-tcp-segmentation");
    }),
    ("offload-off", Severity::Note, |host| {
        host.interfaces[2].features_on.retain(|feature| feature != "rx-gro");
    }),
    ("xdp-generic", Severity::Note, |host| host.interfaces[2].device.xdp = Some(Vec::new())),
    ("small-buffers", Severity::Warning, |host| {
        host.sysctls.insert("net.ipv4.tcp_rmem".into(), "4096 131072 524288".into());
    }),
    ("facts-unread", Severity::Problem, |host| *host = HostSnapshot::default()),
    ("size-limit", Severity::Note, |host| {
        host.cloud.as_mut().unwrap().size = Some("standard_d4s_v5".into());
    }),
    ("size-unknown", Severity::Note, |host| {
        host.cloud.as_mut().unwrap().size = Some("Standard_Nowhere_v9".into());
    }),
    ("interrupts-on-other-node", Severity::Note, |host| {
        host.numa_nodes[0].cores = vec![0, 1];
        host.numa_nodes[1].cores = (2..8).collect();
    }),
    ("interrupts-on-other-node", Severity::Warning, |host| {
        host.interfaces[2].device.interrupts.truncate(4);
        host.interfaces[2].device.numa_node = Some(1);
    }),
];

#[test]
fn healthy_host_has_no_finding() {
    // Its queues are on both nodes, because there is one per core: a note only.
    assert_eq!(ids(&on_host(&azure())), ["interrupts-on-other-node"]);
    let mut one_node = azure();
    one_node.numa_nodes.truncate(1);
    assert_eq!(on_host(&one_node), []);
    let all = of_host(&one_node, &HostContext::default());
    assert!(all[0].what.starts_with("Standard_DS4_v2 sends at most 6.00 Gbit/s"), "{all:?}");
    assert_eq!(of_pair(&azure(), &other(), &pair()), []);
}

#[test]
fn each_fault_causes_its_finding_with_evidence_and_remedy() {
    for (index, (id, severity, harm)) in HARMS.iter().enumerate() {
        let mut host = azure();
        if *id != "other-node" && !id.contains("node") {
            host.numa_nodes.truncate(1);
        }
        harm(&mut host);
        let found = of_host(&host, &HostContext::default());
        let finding = found.iter().find(|finding| finding.id == *id);
        let finding = finding.unwrap_or_else(|| panic!("{index}: no {id} in {found:?}"));
        assert_eq!(finding.severity, *severity, "{index}: {id}");
        assert!(
            !finding.evidence.is_empty() && !finding.why.is_empty() && !finding.remedy.is_empty(),
            "{finding:?}"
        );
        assert!(finding.command.is_some() || *id == "size-limit", "{index}: {id} names no command");
        assert!(!finding.what.contains('\n') && !finding.why.contains('\n'));
    }
}

#[test]
fn commands_name_device_and_value() {
    let command = |id: &str, harm: Harm| {
        let mut host = azure();
        harm(&mut host);
        let found = on_host(&host);
        found
            .iter()
            .find(|finding| finding.id == id)
            .and_then(|finding| finding.command.clone())
            .unwrap_or_default()
    };
    let of = |id: &str| command(id, HARMS.iter().find(|(own, ..)| *own == id).unwrap().2);
    assert_eq!(of("one-queue"), "ethtool -L enP1s1 combined 8");
    assert_eq!(of("rss-imbalance"), "ethtool -X enP1s1 equal 8");
    assert_eq!(of("small-rings"), "ethtool -G enP1s1 rx 1024 tx 1024");
    assert_eq!(of("offload-off"), "ethtool -K enP1s1 tso on");
    assert!(of("function-without-driver").starts_with("modprobe mlx5_core; echo "));
    assert_eq!(of("double-queueing"), "tc qdisc replace dev enP1s1 root noqueue");
    assert_eq!(of("small-buffers"), "sysctl -w 'net.ipv4.tcp_rmem=4096 131072 3000000'");
    // The cores of the device's own node are 0 to 3.
    assert!(of("interrupts-on-one-core").ends_with("echo 3 > /proc/irq/37/smp_affinity_list"));
}

#[test]
fn measured_loss_is_that_of_the_measured_offloads() {
    let why = |off: &str| {
        let mut host = azure();
        host.interfaces[2].features_on.retain(|feature| feature != off);
        let found = on_host(&host).into_iter().find(|finding| finding.id == "offload-off");
        found.expect("a finding").why
    };
    assert!(why("tx-tcp-segmentation").ends_with("lab lost four fifths of its throughput"));
    assert!(why("rx-gro").ends_with("instead of segments of up to 64 kB"));
}

#[test]
fn remedies_are_what_the_device_can_do() {
    let found = |id: &str, harm: Harm| {
        let mut host = azure();
        host.interfaces.truncate(2);
        (host.interfaces[1].name, host.interfaces[1].driver) = ("virt0".into(), Some("virtio_net".into()));
        harm(&mut host);
        on_host(&host).into_iter().find(|finding| finding.id == id)
    };
    // The kernel keeps GSO off without scatter-gather, whatever is requested.
    let without = found("offload-off", |host| host.interfaces[1].features_on = vec!["rx-gro".into()]);
    assert_eq!(without, None);
    let with = found("offload-off", |host| {
        host.interfaces[1].features_on = vec!["rx-gro".into(), "tx-scatter-gather".into()];
    });
    assert_eq!(with.unwrap().command.unwrap(), "ethtool -K virt0 gso on");
    // As igbvf and e1000e: interrupts show one queue, and the driver has no channels.
    let queues = found("one-queue", |host| {
        let device = &mut host.interfaces[1].device;
        device.channels = None;
        device.interrupts = vec![QueueInterrupt {
            number: 30,
            name: "virt0-rx-0".into(),
            queue: Some(0),
            cores: vec![0],
            count: Some(1),
        }];
    });
    let queues = queues.unwrap();
    assert!(queues.remedy.contains("no more queues"), "{queues:?}");
    assert!(queues.command.as_deref().unwrap().contains("rps_cpus"), "{queues:?}");
}

#[test]
fn vmbus_channels_are_not_treated_as_interrupts() {
    let mut host = azure();
    host.numa_nodes.truncate(1);
    host.irqbalance = Some(true);
    let device = &mut host.interfaces[2].device;
    for interrupt in &mut device.interrupts {
        (interrupt.name, interrupt.cores) = (String::new(), vec![0]);
    }
    let found = |host: &HostSnapshot| {
        let found = on_host(host);
        assert_eq!(ids(&found), ["interrupts-on-one-core"], "irqbalance does not move channels");
        found[0].command.clone()
    };
    assert_eq!(found(&host), None, "the device is not known, and /proc/irq has another's interrupt");
    host.interfaces[2].device.bus_address = Some("000d3a0a-0002-0000-0001-000d3a0a0002".into());
    let command = found(&host).unwrap();
    let first = "echo 0 > /sys/bus/vmbus/devices/000d3a0a-0002-0000-0001-000d3a0a0002/channels/30/cpu; ";
    assert!(command.starts_with(first) && !command.contains("/proc/irq"), "{command}");
    // A host reports any text.
    host.interfaces[2].device.bus_address = Some("x; reboot".into());
    let command = found(&host).unwrap();
    assert!(
        command.starts_with("echo 0 > '/sys/bus/vmbus/devices/x; reboot/channels/30/cpu'; "),
        "{command}"
    );
}

#[test]
fn rss_table_at_a_driver_limit_is_a_note() {
    let spread = |entries: Vec<u32>| {
        let mut host = azure();
        host.numa_nodes.truncate(1);
        let device = &mut host.interfaces[2].device;
        device.channels = Some(Channels { combined: (63, 63), ..Channels::default() });
        device.rss_entries = entries;
        let found = on_host(&host);
        let finding = found.iter().find(|finding| finding.id == "rss-imbalance").unwrap().clone();
        (finding.severity, finding.remedy.contains("drivers with a maximum of 16"))
    };
    assert_eq!(spread(vec![8; 16]), (Severity::Note, true));
    assert_eq!(spread(vec![32; 4]), (Severity::Warning, false));
    assert_eq!(spread([vec![68], vec![4; 15]].concat()), (Severity::Warning, false));
    // Numbers of a run file.
    assert_eq!(spread(vec![u32::MAX; 16]), (Severity::Note, true));
}

/// A run file may be from elsewhere, and agents send what is in it.
#[test]
fn numbers_of_a_host_may_be_the_largest() {
    let with = |combined: u32, rx: u32| {
        let mut host = azure();
        host.cores = u32::MAX;
        host.processor = None;
        host.firewall = Some(Firewall { conntrack: Some((u64::MAX, u64::MAX)), ..Firewall::default() });
        let device = &mut host.interfaces[2].device;
        device.channels =
            Some(Channels { combined: (combined, u32::MAX), rx: (rx, u32::MAX), ..Channels::default() });
        device.rss_entries = vec![1, 5];
        on_host(&host)
    };
    let found = with(u32::MAX, u32::MAX);
    let command = |id: &str| found.iter().find(|finding| finding.id == id).unwrap().command.clone();
    assert!(command("connection-tracking").unwrap().ends_with(&format!("={}", u64::MAX)), "{found:?}");
    assert!(command("rss-imbalance").unwrap().ends_with(&format!(" equal {}", u32::MAX)), "{found:?}");
    assert!(ids(&with(u32::MAX / 2 + 1, 0)).contains(&"few-queues"));
}

#[test]
fn missing_driver_is_derived_from_the_pci_id() {
    for (vendor, device, module) in [
        (0x15b3, 0x1004, "mlx4_en"),
        (0x15b3, 0x101a, "mlx5_core"),
        (0x1414, 0x00ba, "mana"),
        (0x8086, 0x1889, "iavf"),
        (0x8086, 0x10ca, "igbvf"),
    ] {
        let mut host = azure();
        without_vf(&mut host);
        let function = &mut host.pci_functions[0];
        (function.vendor, function.device, function.driver) = (vendor, device, None);
        let probe = format!("modprobe {module}; echo {} > /sys/bus/pci/drivers_probe", function.slot);
        assert_eq!(on_host(&host)[0].command, Some(probe));
    }
}

#[test]
fn acceleration_state_is_derived_from_the_facts() {
    let state = |harm: Harm| {
        let mut host = azure();
        harm(&mut host);
        accelerations(&host)[0].1.clone()
    };
    let vf = || "enP1s1".to_owned();
    let slot = || "0001:00:02.0".to_owned();
    assert_eq!(state(|_| {}), Acceleration::Active { function: vf() });
    assert_eq!(
        state(|host| host.interfaces[1].device.counters.clear()),
        Acceleration::Paired { function: vf() }
    );
    assert_eq!(state(|host| host.interfaces[2].up = false), Acceleration::Idle { function: vf(), up: false });
    assert_eq!(state(|host| host.interfaces[2].master = None), Acceleration::Unpaired { function: vf() });
    assert_eq!(state(without_vf), Acceleration::PciOnly { slot: slot() });
    let no_driver = |host: &mut HostSnapshot| {
        without_vf(host);
        host.pci_functions[0].driver = None;
    };
    assert_eq!(state(no_driver), Acceleration::NoDriver { slot: slot() });
    let none = |host: &mut HostSnapshot| {
        without_vf(host);
        host.pci_functions.clear();
    };
    assert_eq!(state(none), Acceleration::SyntheticOnly);
}

#[test]
fn host_with_functions_for_guests_has_no_problem() {
    let mut host = azure();
    without_vf(&mut host);
    host.pci_functions[0].driver = None;
    host.cloud.as_mut().unwrap().provider = Provider::BareMetal;
    let found = on_host(&host);
    assert!(found.iter().all(|finding| finding.severity != Severity::Problem), "{found:?}");
    assert!(found.iter().any(|finding| finding.why == "the kernel cannot use this function"), "{found:?}");
    // Without a provider that offers accelerated networking, its absence is no finding.
    let mut on_premises = azure();
    without_vf(&mut on_premises);
    on_premises.pci_functions.clear();
    on_premises.cloud.as_mut().unwrap().provider = Provider::HyperV;
    on_premises.numa_nodes.truncate(1);
    assert_eq!(ids(&on_host(&on_premises)), [] as [&str; 0]);
}

#[test]
fn software_interfaces_are_not_hardware() {
    assert_eq!(on_host(&lab_guest()), []);
    let mut host = azure();
    host.numa_nodes.truncate(1);
    host.interfaces.extend(lab_guest().interfaces);
    assert_eq!(on_host(&host), []);
}

#[test]
fn host_without_facts_is_not_called_healthy() {
    assert_eq!(ids(&on_host(&HostSnapshot::default())), ["facts-unread"]);
    // One fact of /proc shows that it could be read.
    assert_eq!(on_host(&HostSnapshot { kernel: Some("6.8".into()), ..HostSnapshot::default() }), []);
    assert_eq!(of_pair(&HostSnapshot::default(), &HostSnapshot::default(), &pair()), []);
}

#[test]
fn missing_huge_pages_matter_only_with_a_user_space_driver() {
    let mut host = azure();
    host.numa_nodes.truncate(1);
    let mut given = function();
    (given.driver, given.slot) = (Some("vfio-pci".into()), "0002:00:02.0".into());
    host.pci_functions.push(given);
    assert_eq!(ids(&on_host(&host)), ["no-huge-pages"]);
    host.numa_nodes[0].huge_pages = vec![HugePages { size_kib: 2048, total: 1024, free: 1024 }];
    assert_eq!(on_host(&host), []);
}

#[test]
fn failed_metadata_query_suggests_the_providers_command() {
    let found = |provider, told_size: bool| {
        let mut host = azure();
        host.numa_nodes.truncate(1);
        let cloud = host.cloud.as_mut().unwrap();
        (cloud.provider, cloud.metadata_failure) = (provider, Some("no answer within 300 ms".into()));
        if !told_size {
            (cloud.size, cloud.region, cloud.zone) = (None, None, None);
        }
        on_host(&host).into_iter().find(|finding| finding.id == "metadata-unknown").unwrap()
    };
    for (provider, header, other) in [
        (Provider::Azure, "Metadata:true", "Google"),
        (Provider::Aws, "X-aws-ec2-metadata-token: $(curl", "Metadata:true"),
        (Provider::Gcp, "Metadata-Flavor: Google", "Metadata:true"),
    ] {
        let nothing = found(provider, false);
        let command = nothing.command.unwrap();
        assert!(command.contains(header) && !command.contains(other), "{command}");
        assert!(nothing.what.ends_with("gave no answer") && nothing.remedy.contains("--expect-mbps"));
        assert!(nothing.evidence.contains(&"unknown: size, region, zone, placement".to_owned()));
        let some = found(provider, true);
        assert!(some.what.ends_with("gave an incomplete answer") && !some.remedy.contains("--expect-mbps"));
        assert!(some.evidence.contains(&"unknown: placement".to_owned()), "{:?}", some.evidence);
    }
}

#[test]
fn pinned_cores_take_precedence_over_allowed_cores() {
    let pinned = |cores: &[u16]| ids(&of_host(&azure(), &HostContext { pinned: cores.to_vec() }));
    assert!(pinned(&[5, 6]).contains(&"other-node"));
    assert!(!pinned(&[0, 6]).contains(&"other-node"));
}

/// Each difference between two ends; the change is made to the server.
const DIFFERENCES: &[(&str, Severity, Harm)] = &[
    ("same-machine", Severity::Warning, |host| host.boot_id = azure().boot_id),
    ("same-physical-host", Severity::Warning, |host| {
        host.cloud.as_mut().unwrap().physical_host = Some("AMS20140215".into());
    }),
    ("acceleration-differs", Severity::Problem, |host| host.interfaces[2].up = false),
    ("mtu-differs", Severity::Warning, |host| host.interfaces[1].mtu = Some(3900)),
    ("family-missing", Severity::Note, |host| host.interfaces[1].addresses.truncate(1)),
    ("speed-differs", Severity::Warning, |host| host.interfaces[2].speed_mbps = Some(25_000)),
    ("device-differs", Severity::Warning, |host| host.interfaces[2].driver = Some("mana".into())),
    ("device-differs", Severity::Warning, |host| {
        host.interfaces[2].device.pci.as_mut().unwrap().device = 0x1018;
    }),
    ("size-differs", Severity::Warning, |host| {
        host.cloud.as_mut().unwrap().size = Some("Standard_DS5_v2".into());
    }),
    ("congestion-control-differs", Severity::Warning, |host| {
        host.sysctls.insert("net.ipv4.tcp_congestion_control".into(), "bbr".into());
    }),
    ("kernel-differs", Severity::Note, |host| host.kernel = Some("5.15.0-1074-azure".into())),
];

#[test]
fn each_difference_between_hosts_causes_its_finding() {
    for (id, severity, harm) in DIFFERENCES {
        let mut server = other();
        harm(&mut server);
        let found = of_pair(&azure(), &server, &pair());
        let finding = found.iter().find(|finding| finding.id == *id);
        let finding = finding.unwrap_or_else(|| panic!("no {id} in {found:?}"));
        assert_eq!(finding.severity, *severity, "{id}");
        assert!(
            !finding.evidence.is_empty() && !finding.why.is_empty() && !finding.remedy.is_empty(),
            "{finding:?}"
        );
    }
}

#[test]
fn intended_shared_machine_is_a_note() {
    let context = PairContext { one_machine_intended: true, ..pair() };
    let found = of_pair(&lab_guest(), &lab_guest(), &context);
    assert_eq!((ids(&found), found[0].severity), (vec!["same-machine"], Severity::Note));
}

#[test]
fn data_interface_is_selected_by_the_address_of_the_plan() {
    let mut server = other();
    let mut second = server.interfaces[1].clone();
    (second.name, second.mtu) = ("eth1".into(), Some(9000));
    second.mac = Some("00:0d:3a:44:55:66".into());
    second.addresses = vec!["10.1.0.5".parse().unwrap(), "fd01::5".parse().unwrap()];
    server.interfaces.push(second);
    assert!(!ids(&of_pair(&azure(), &server, &pair())).contains(&"mtu-differs"));
    let context = PairContext { addresses: [vec![], vec!["10.1.0.5".parse().unwrap()]], ..pair() };
    assert!(ids(&of_pair(&azure(), &server, &context)).contains(&"mtu-differs"));
}

/// A host with an interface for its management, which has the default route, and another for the data.
fn managed() -> HostSnapshot {
    let mut host = azure();
    host.interfaces.truncate(2);
    let management = &mut host.interfaces[1];
    (management.name, management.driver) = ("mgmt".into(), Some("virtio_net".into()));
    management.addresses = vec!["192.0.2.4".parse().unwrap()];
    management.prefix_lengths = vec![24];
    let mut data = management.clone();
    (data.name, data.driver) = ("vf1".into(), Some("igbvf".into()));
    data.addresses = vec!["10.3.0.1".parse().unwrap(), "fd03::1".parse().unwrap()];
    data.prefix_lengths = vec![24, 64];
    host.interfaces.push(data);
    host.default_routes = vec!["mgmt".into()];
    host
}

#[test]
fn data_interface_of_a_client_is_the_expected_one_or_in_the_network_of_the_server() {
    let client = managed();
    let mut server = HostSnapshot { boot_id: other().boot_id, cloud: other().cloud, ..managed() };
    server.interfaces[2].addresses = vec!["10.3.0.2".parse().unwrap(), "fd03::2".parse().unwrap()];
    let addresses = [vec![], vec!["10.3.0.2".parse().unwrap()]];
    let in_network = PairContext { addresses: addresses.clone(), ..pair() };
    assert_eq!(ids(&of_pair(&client, &server, &in_network)), Vec::<&str>::new());
    // A router between them: only the plan knows.
    let mut routed = client;
    routed.interfaces[2].addresses = vec!["10.4.0.1".parse().unwrap(), "fd04::1".parse().unwrap()];
    let unknown = PairContext { addresses: addresses.clone(), ..pair() };
    assert!(ids(&of_pair(&routed, &server, &unknown)).contains(&"device-differs"));
    let expected = PairContext { addresses, expected: [Some("vf1".into()), None], ..pair() };
    assert_eq!(ids(&of_pair(&routed, &server, &expected)), Vec::<&str>::new());
}

#[test]
fn expected_function_without_addresses_has_those_of_its_master() {
    let context = PairContext { expected: [Some("enP1s1".into()), Some("enP1s1".into())], ..pair() };
    assert_eq!(of_pair(&azure(), &other(), &context), []);
    // The plan expects the synthetic path of one end: its device is that one, though a function is below it.
    let context = PairContext { expected: [Some("eth0".into()), Some("enP1s1".into())], ..pair() };
    assert_eq!(ids(&of_pair(&azure(), &other(), &context)), ["device-differs"]);
}

#[test]
fn traffic_over_loopback_uses_its_interface_at_both_ends() {
    let mut host = azure();
    let mut loopback = host.interfaces[1].clone();
    (loopback.name, loopback.mtu, loopback.mac) = ("lo".into(), Some(65_536), None);
    loopback.addresses = vec!["127.0.0.1".parse().unwrap()];
    host.interfaces.push(loopback);
    // The client of a quick test has no address of its own.
    let context = PairContext { addresses: [vec![], vec!["127.0.0.1".parse().unwrap()]], ..pair() };
    let found = of_pair(&host, &host, &context);
    assert!(!ids(&found).contains(&"mtu-differs"), "{found:?}");
}

#[test]
fn findings_are_sorted_by_severity() {
    let mut host = azure();
    host.irqbalance = Some(true);
    host.interfaces[1].carrier = Some(false);
    host.interfaces[2].up = false;
    let severities: Vec<Severity> = on_host(&host).iter().map(|finding| finding.severity).collect();
    assert!(severities.is_sorted(), "{severities:?}");
    assert_eq!(severities[0], Severity::Problem);
}

#[test]
fn function_below_net_failover_is_active_by_its_own_counters() {
    let state = |packets: u64| {
        let mut host = azure();
        host.interfaces[1].driver = Some("net_failover".into());
        host.interfaces[1].device.counters.clear();
        host.interfaces[2].packets = Some(packets);
        accelerations(&host).remove(0).1
    };
    let function = || "enP1s1".to_owned();
    assert_eq!(state(7), Acceleration::Active { function: function() });
    assert_eq!(state(0), Acceleration::Idle { function: function(), up: true });
}

#[test]
fn function_that_is_down_below_net_failover_stops_reception() {
    let why = |driver: &str| {
        let mut host = azure();
        host.interfaces[1].driver = Some(driver.into());
        host.interfaces[2].up = false;
        on_host(&host).into_iter().find(|finding| finding.id == "vf-idle").unwrap().why
    };
    assert!(why("net_failover").contains("nothing is received"), "{}", why("net_failover"));
    assert!(why("hv_netvsc").contains("slower"), "{}", why("hv_netvsc"));
}

#[test]
fn idle_function_below_net_failover_is_shown_by_its_own_counters() {
    let idle = |driver: &str| {
        let mut host = azure();
        host.interfaces[1].driver = Some(driver.into());
        let counters = &mut host.interfaces[1].device.counters;
        if driver == "net_failover" {
            counters.clear();
        }
        for count in counters.values_mut() {
            *count = 0;
        }
        host.interfaces[2].packets = Some(0);
        on_host(&host).into_iter().find(|finding| finding.id == "vf-idle").unwrap()
    };
    let finding = idle("net_failover");
    assert_eq!(finding.evidence, ["enP1s1 is up; its own packet counters are 0"]);
    assert_eq!(finding.command.as_deref(), Some("ip -s link show enP1s1"));
    assert!(!format!("{finding:?}").contains("vf_") && !finding.remedy.contains("Data path"), "{finding:?}");
    let finding = idle("hv_netvsc");
    assert_eq!(finding.evidence, ["enP1s1 is up; vf_rx_packets and vf_tx_packets of eth0 are 0"]);
}

#[test]
fn remedy_of_an_unpaired_function_needs_no_file_that_its_device_lacks() {
    let unpaired = |harm: Harm| {
        let mut host = azure();
        host.interfaces[2].master = None;
        harm(&mut host);
        on_host(&host).into_iter().find(|finding| finding.id == "vf-unpaired").unwrap()
    };
    let finding = unpaired(|_| {});
    assert_eq!(
        finding.command.unwrap(),
        "ip link set enP1s1 down; echo 0001:00:02.0 > /sys/bus/pci/drivers/mlx5_core/unbind; \
         echo 0001:00:02.0 > /sys/bus/pci/drivers/mlx5_core/bind"
    );
    assert!(
        finding.remedy.ends_with("then unbind and bind its driver to pair it again"),
        "{}",
        finding.remedy
    );
    let finding = unpaired(|host| {
        host.interfaces[2].device.pci = None;
        host.pci_functions.clear();
    });
    assert_eq!(finding.command.unwrap(), "ip link set enP1s1 down");
    assert!(finding.remedy.contains("add it again"), "{}", finding.remedy);
}

#[test]
fn values_that_are_modes_are_not_shown_as_times() {
    let coalescing = |driver: &str, rx_usecs: u32| {
        let mut host = azure();
        host.interfaces[2].driver = Some(driver.into());
        host.interfaces[2].device.coalescing =
            Some(Coalescing { rx_usecs, tx_usecs: 8, tx_frames: 16, ..Coalescing::default() });
        let facts = interface_facts(&host, &host.interfaces[2]);
        facts.into_iter().find(|(title, _)| *title == "coalescing").unwrap().1
    };
    assert_eq!(coalescing("mlx5_core", 3), "receive 3 us, transmit 8 us or 16 frames");
    assert_eq!(coalescing("igb", 3), "receive adaptive, conservative (mode 3), transmit 8 us or 16 frames");
    assert_eq!(coalescing("igb", 4), "receive 4 us, transmit 8 us or 16 frames");
}

#[test]
fn findings_of_a_machine_with_two_names_are_listed_once() {
    let mut guest = azure();
    (guest.boot_id, guest.netns) = (Some("one-boot".into()), Some(1));
    guest.irqbalance = Some(true);
    let named = |names: [&str; 2]| names.map(|name| (name.to_owned(), guest.clone())).to_vec();
    let inspection = Inspection::of_hosts(named(["b", "b-vf"]));
    let of_balance = |inspection: &Inspection| {
        let found = inspection.findings().filter(|(_, finding)| finding.id == "irqbalance");
        found.map(|(place, _)| place).collect::<Vec<_>>()
    };
    assert_eq!(of_balance(&inspection), ["b, b-vf"]);
    let mut other = named(["b", "b-vf"]);
    other[1].1.boot_id = Some("another".into());
    assert_eq!(of_balance(&Inspection::of_hosts(other)), ["b", "b-vf"]);
}

#[test]
fn captured_hosts_have_the_expected_findings() {
    let mut lines = Vec::new();
    for (name, host) in captured() {
        lines.push(name);
        for finding in of_host(&host, &HostContext::default()) {
            let evidence = finding.evidence.join("; ");
            lines.push(format!(
                "  {} [{}] {} ({evidence})",
                finding.severity.word(),
                finding.id,
                finding.what
            ));
            lines.extend(finding.command.map(|command| format!("    {command}")));
        }
    }
    let text = lines.join("\n");
    insta::assert_snapshot!("captured_hosts", text);
}

#[test]
fn captured_hosts_have_the_acceleration_state_in_their_name() {
    for (name, word) in [
        ("azure-mana-active", "active"),
        ("azure-mana-no-driver", "no driver"),
        ("azure-mlx5-active", "active"),
        ("azure-mlx5-idle", "idle"),
        ("azure-mlx5-unpaired", "not paired"),
        ("azure-synthetic-only", "none"),
    ] {
        let host = captured().into_iter().find(|(own, _)| own == name).unwrap().1;
        let states = accelerations(&host);
        assert!(states.iter().any(|(_, state)| state.words().starts_with(word)), "{name}: {states:?}");
    }
}

#[test]
fn every_finding_is_documented() {
    let guide = include_str!("../../../../docs/inspect.md");
    let ids = HARMS.iter().chain(DIFFERENCES).map(|(id, ..)| *id);
    let captured = captured().into_iter().flat_map(|(_, host)| on_host(&host)).map(|finding| finding.id);
    for id in ids.chain(captured) {
        assert!(guide.contains(&format!("| `{id}` |")), "docs/inspect.md does not name {id}");
    }
}

#[test]
fn every_documented_finding_is_tested() {
    let guide = include_str!("../../../../docs/inspect.md");
    let named = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for id in named {
        assert!(HARMS.iter().chain(DIFFERENCES).any(|(own, ..)| *own == id), "nothing shows {id}");
    }
}

/// An interface can have a name that a shell would run, and people copy the commands of findings.
#[test]
fn commands_quote_the_names_of_a_host() {
    const HOSTILE: &str = "v;id;";
    let hostile = |host: &HostSnapshot| -> HostSnapshot {
        let mut text = serde_json::to_string(host).unwrap();
        for interface in &host.interfaces {
            let name = format!("{HOSTILE}{}", interface.index);
            text = text.replace(&format!("\"{}\"", interface.name), &format!("\"{name}\""));
        }
        serde_json::from_str(&text).unwrap()
    };
    let mut seen = 0;
    let mut check = |finding: &Finding| {
        let Some(command) = &finding.command else { return };
        for (at, _) in command.match_indices(HOSTILE) {
            seen += 1;
            assert!(command[..at].matches('\'').count() % 2 == 1, "{}: {command}", finding.id);
        }
    };
    for (_, _, harm) in HARMS {
        let mut host = azure();
        harm(&mut host);
        on_host(&hostile(&host)).iter().for_each(&mut check);
    }
    for (_, _, harm) in DIFFERENCES {
        let mut host = other();
        harm(&mut host);
        of_pair(&hostile(&azure()), &hostile(&host), &pair()).iter().for_each(&mut check);
    }
    assert!(seen > 10, "{seen}");
}
