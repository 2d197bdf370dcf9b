//! Hosts of other clouds and without a cloud: driver names, PCI numbers and counters are those of the table of platforms;
//! counts, addresses and ids are invented.
use super::tree::{Cpu, Nic, OFFLOADS, Tree};
use crate::fixture::Host;
use crate::service::{Answer, Request, ok, status};

/// Interrupts of a device, one for each queue, distributed round robin over the cores.
fn one_each(name: impl Fn(u16) -> String, queues: u16) -> Vec<(String, u16, u32)> {
    (0..queues).map(|queue| (name(queue), queue, 1_000_000 + u32::from(queue))).collect()
}

/// EC2 on Nitro: every interface is the device itself.
pub fn ena() -> Host {
    let slot = "0000:00:05.0";
    let cpu = Cpu::guest("Intel(R) Xeon(R) Platinum 8488C", 4, 2, 32);
    let mut tree = Tree::new("aws-ena", "6.1.112-122.189.amzn2023.x86_64", "Amazon Linux 2023", &cpu);
    tree.dmi("Amazon EC2", "m7i.2xlarge", "Amazon EC2");
    tree.function(slot, 0x1d0f, 0xec20, Some("ena"), -1);
    tree.interrupts(slot, [(format!("ena-mgmnt@pci:{slot}"), 0, 3)]);
    tree.interrupts(slot, one_each(|queue| format!("ens5-Tx-Rx-{queue}"), 8));
    tree.nic(&Nic {
        index: 2,
        name: "ens5",
        mac: 9,
        mtu: 9001,
        disciplines: &["mq", "fq_codel"],
        addresses: &["172.31.16.9"],
        driver: "ena",
        bus: slot,
        features: OFFLOADS,
        combined: Some((8, 8)),
        rings: Some([1024, 16384, 1024, 1024]),
        coalesce: Some([20, 0, 64, 0, 1, 0]),
        indirection: 128,
        counters: vec![
            ("tx_timeout", 0),
            ("bw_in_allowance_exceeded", 1907),
            ("bw_out_allowance_exceeded", 48_211),
            ("pps_allowance_exceeded", 0),
            ("conntrack_allowance_exceeded", 0),
            ("linklocal_allowance_exceeded", 0),
            ("conntrack_allowance_available", 271_834),
            ("ena_srd_mode", 0),
            ("queue_1_tx_queue_stop", 7),
            ("queue_1_tx_bytes", 9_876_543_210),
            ("queue_1_rx_empty_rx_ring", 0),
        ],
        ..Nic::default()
    });
    tree.finish(2)
}

pub fn aws_metadata(request: &Request) -> Answer {
    if request.line == "PUT /latest/api/token" {
        let wanted = request.has("X-aws-ec2-metadata-token-ttl-seconds: 30");
        return if wanted { ok("AQAEAExample-token==") } else { status("400 Bad Request") };
    }
    if !request.has("X-aws-ec2-metadata-token: AQAEAExample-token==") {
        return status("401 Unauthorized");
    }
    match request.line.as_str() {
        "GET /latest/dynamic/instance-identity/document" => ok(r#"{
            "accountId": "123456789012", "architecture": "x86_64", "availabilityZone": "eu-central-1b",
            "imageId": "ami-0592c673f0b1e7665", "instanceId": "i-0abcdef1234567890", "instanceType": "m7i.2xlarge",
            "kernelId": null, "region": "eu-central-1", "version": "2017-09-30" }"#),
        "GET /latest/meta-data/placement/availability-zone-id" => ok("euc1-az2"),
        "GET /latest/meta-data/placement/group-name" => ok("near"),
        _ => status("404 Not Found"),
    }
}

/// Google Compute Engine with its own adapter.
pub fn gve() -> Host {
    let slot = "0000:00:04.0";
    let cpu = Cpu::guest("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", 4, 2, 32);
    let mut tree = Tree::new("gcp-gve", "6.1.0-26-cloud-amd64", "Debian GNU/Linux 12 (bookworm)", &cpu);
    tree.dmi("Google", "Google Compute Engine", "");
    tree.function(slot, 0x1ae0, 0x0042, Some("gvnic"), -1);
    tree.interrupts(slot, one_each(|block| format!("gve-ntfy-blk{block}@pci:{slot}"), 8));
    tree.interrupts(slot, [(format!("gve-mgmnt@pci:{slot}"), 0, 1)]);
    tree.nic(&Nic {
        index: 2,
        name: "ens4",
        mac: 10,
        mtu: 1460,
        disciplines: &["mq", "fq"],
        addresses: &["10.164.0.10"],
        driver: "gve",
        bus: slot,
        features: OFFLOADS,
        combined: Some((4, 8)),
        rings: Some([1024, 1024, 1024, 1024]),
        counters: vec![
            ("rx_packets", 55_000_000),
            ("rx_dropped", 0),
            ("tx_dropped", 0),
            ("tx_timeouts", 0),
            ("rx_buf_alloc_fail", 0),
            ("rx_desc_err_dropped_pkt", 0),
            ("rx_queue_drop_cnt[0]", 0),
            ("rx_queue_drop_cnt[1]", 12),
        ],
        ..Nic::default()
    });
    tree.finish(2)
}

pub fn gcp_metadata(request: &Request) -> Answer {
    if !request.has("Metadata-Flavor: Google") {
        return status("403 Forbidden");
    }
    match request.line.strip_prefix("GET /computeMetadata/v1/instance/").unwrap_or_default() {
        "machine-type" => ok("projects/123456789012/machineTypes/c3-standard-8"),
        "zone" => ok("projects/123456789012/zones/europe-west4-b"),
        "id" => ok("4567890123456789012"),
        "image" => ok("projects/debian-cloud/global/images/debian-12-bookworm-v20241009"),
        "attributes/physical_host" => ok("/5f1a/b2/0c77"),
        _ => status("404 Not Found"),
    }
}

/// A KVM guest with two memory nodes and a virtio NIC with four queues of eight, whose host limits its rate.
pub fn virtio() -> Host {
    let slot = "0000:00:03.0";
    let cpu = Cpu { sockets: 2, ..Cpu::guest("AMD EPYC-Milan Processor", 2, 2, 16) };
    let mut tree = Tree::new("kvm-virtio", "6.12.9-amd64", "Debian GNU/Linux 13 (trixie)", &cpu);
    tree.dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)", "");
    tree.log(&["Hypervisor detected: KVM"]);
    tree.function(slot, 0x1af4, 0x1041, Some("virtio-pci"), 0);
    let pair = |queue: u16| {
        [("input", 70_000), ("output", 60_000)]
            .map(|(name, count)| (format!("virtio0-{name}.{queue}"), queue, count + u32::from(queue)))
    };
    tree.interrupts(slot, [("virtio0-config".to_owned(), 0, 0)].into_iter().chain((0..4).flat_map(pair)));
    tree.nic(&Nic {
        index: 2,
        name: "eth0",
        mac: 11,
        mtu: 1500,
        disciplines: &["mq", "pfifo_fast"],
        addresses: &["192.0.2.11"],
        driver: "virtio_net",
        bus: slot,
        features: OFFLOADS,
        combined: Some((4, 8)),
        rings: Some([256, 256, 256, 256]),
        coalesce: Some([0, 1, 0, 1, 0, 0]),
        rps: "0f",
        xps: true,
        counters: vec![
            ("rx_queue_0_packets", 1_000_000),
            ("rx_queue_0_drops", 0),
            ("rx_queue_1_drops", 9),
            ("tx_hw_ratelimit_bytes", 7_864_320),
        ],
        ..Nic::default()
    });
    tree.finish(2)
}

/// VMware's adapter: a table of counters with the same names for each queue.
pub fn vmxnet3() -> Host {
    let slot = "0000:0b:00.0";
    let cpu = Cpu::guest("Intel(R) Xeon(R) Gold 6354 CPU @ 3.00GHz", 4, 1, 16);
    let mut tree =
        Tree::new("vmware", "5.14.0-503.11.1.el9_5.x86_64", "Red Hat Enterprise Linux 9.5 (Plow)", &cpu);
    tree.dmi("VMware, Inc.", "VMware7,1", "No Asset Tag");
    tree.log(&["Hypervisor detected: VMware"]);
    tree.function(slot, 0x15ad, 0x07b0, Some("vmxnet3"), -1);
    tree.interrupts(slot, one_each(|queue| format!("ens192-rxtx-{queue}"), 2));
    tree.interrupts(slot, [("ens192-event-2".to_owned(), 0, 4)]);
    tree.nic(&Nic {
        index: 2,
        name: "ens192",
        mac: 12,
        mtu: 1500,
        disciplines: &["mq", "fq_codel"],
        addresses: &["192.0.2.12"],
        driver: "vmxnet3",
        bus: slot,
        speed: Some(10_000),
        features: OFFLOADS,
        combined: Some((2, 8)),
        rings: Some([1024, 4096, 512, 4096]),
        indirection: 64,
        counters: vec![
            ("Rx Queue#", 0),
            ("  pkts rx OOB", 3),
            ("  rx buf alloc fail", 0),
            ("Rx Queue#", 1),
            ("  pkts rx OOB", 4),
            ("  rx buf alloc fail", 0),
            ("  ring full", 210),
        ],
        ..Nic::default()
    });
    tree.finish(2)
}

/// A guest of a private Hyper-V: the same drivers, no chassis tag, no metadata service.
pub fn hyper_v() -> Host {
    let guid = "7d4a1c5e-2c0b-4f0e-9b66-0d3a10200007";
    let cpu = Cpu::guest("Intel(R) Xeon(R) Silver 4314 CPU @ 2.40GHz", 4, 1, 8);
    let mut tree = Tree::new("hyper-v", "6.1.0-26-amd64", "Debian GNU/Linux 12 (bookworm)", &cpu);
    tree.dmi("Microsoft Corporation", "Virtual Machine", "1873-5093-9137-6417-6524-2297-88");
    tree.log(&["Hypervisor detected: Microsoft Hyper-V", "Hyper-V: Host Build 10.0.26100.2033-1-0"]);
    tree.key_values(&[
        ("PhysicalHostName", "HV07"),
        ("PhysicalHostNameFullyQualified", "hv07.corp.example"),
        ("VirtualMachineId", "DA4A1C5E-2C0B-4F0E-9B66-0D3A10200007"),
        ("VirtualMachineName", "build-3"),
    ]);
    // Every channel on one core, as in a guest without spread channels.
    tree.vmbus(guid, &[(0, 500_000), (0, 400_000)]);
    tree.nic(&Nic {
        index: 2,
        name: "eth0",
        mac: 13,
        mtu: 1500,
        disciplines: &["mq", "fq_codel"],
        addresses: &["192.0.2.13"],
        driver: "hv_netvsc",
        bus: guid,
        firmware: "N/A",
        speed: Some(10_000),
        features: OFFLOADS,
        combined: Some((2, 4)),
        rings: Some([9709, 18811, 170, 2560]),
        indirection: 128,
        counters: vec![("tx_busy", 0), ("tx_send_full", 0), ("vf_rx_packets", 0), ("vf_tx_packets", 0)],
        ..Nic::default()
    });
    tree.finish(2)
}

/// A machine of two sockets with a port of 100 Gbit/s on the second one, a firewall, and irqbalance.
pub fn bare_metal() -> Host {
    let slot = "0000:98:00.0";
    let cpu = Cpu {
        sockets: 2,
        is_guest: false,
        frequency: Some((3_500_000, "powersave")),
        huge_pages: 512,
        ..Cpu::guest("Intel(R) Xeon(R) Gold 6334 CPU @ 3.60GHz", 8, 2, 256)
    };
    let mut tree = Tree::new("bare-metal", "6.1.0-26-amd64", "Debian GNU/Linux 12 (bookworm)", &cpu);
    tree.dmi("Dell Inc.", "PowerEdge R750", "");
    tree.host.write("proc/812/comm", "irqbalance\n");
    tree.host.write("proc/thread-self/net/ip_tables_names", "filter\nnat\n");
    tree.host.write("proc/sys/net/netfilter/nf_conntrack_count", "1834\n");
    tree.host.write("proc/sys/net/netfilter/nf_conntrack_max", "262144\n");
    tree.host.kernel.lock().unwrap().rules = Some(37);
    tree.function(slot, 0x15b3, 0x101d, Some("mlx5_core"), 1);
    tree.host.write(&format!("sys/bus/pci/devices/{slot}/sriov_totalvfs"), "8\n");
    // All are served by the first socket, although the device is at the second.
    tree.interrupts(slot, one_each(|queue| format!("mlx5_comp{queue}@pci:{slot}"), 16));
    tree.nic(&Nic {
        index: 2,
        name: "ens3f0np0",
        mac: 14,
        mtu: 9000,
        disciplines: &["mq", "fq_codel"],
        addresses: &["192.0.2.14", "2001:db8::14"],
        driver: "mlx5_core",
        bus: slot,
        firmware: "22.39.2048 (MT_0000000359)",
        speed: Some(100_000),
        features: OFFLOADS,
        combined: Some((16, 63)),
        rings: Some([1024, 8192, 1024, 8192]),
        coalesce: Some([8, 128, 8, 128, 1, 1]),
        indirection: 256,
        xps: true,
        counters: vec![("rx_out_of_buffer", 0), ("rx_discards_phy", 0), ("tx_queue_stopped", 812)],
        ..Nic::default()
    });
    tree.finish(2)
}
