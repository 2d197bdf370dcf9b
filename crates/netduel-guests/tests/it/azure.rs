//! `netduel azure` with guests as the VMs of a bed: a virtual function that carries the traffic, and claims that contradict what the guests show.
//! A stand-in for Azure answers the real `az` (`real_az`). A script stands for `az` for the bed of a NIC that
//! comes and goes (`hot_add`).
use std::fs;

use netduel_guests::{Bed, Scene, guest_uuid, management_mac};
use serde_json::{Value, json};

use super::coordinator::{Coordinator, assert_all_valid, keep};
use super::run;
use super::states::REACH_PEER;

/// The address of each guest behind the forwarded port of its ssh server.
pub const MANAGEMENT_ADDRESS: &str = "10.0.2.15";

/// Answers to each call of `up`, `run` and `down`, from files beside it.
const AZ: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
case "$*" in
  version*) echo '{ "azure-cli": "2.91.0" }' ;;
  'account show'*) echo '{ "id": "22222222-2222-2222-2222-222222222222", "name": "fake" }' ;;
  'group exists'*) [ -e deployed ] && echo true || echo false ;;
  'group create'*) : > deployed ;;
  'group delete'*) rm deployed ;;
  'resource list'*) echo '[]' ;;
  'group list'*) printf '[%s]' "$(cat group.json)" ;;
  'group show'*) cat group.json ;;
  'vm list-skus'*) cat sizes.json ;;
  'vm list-usage'*) echo '[{ "limit": "10", "currentValue": "0", "name": { "value": "standardDSv3Family" } }]' ;;
  'vm list '*) cat machines.json ;;
  'network nic list'*) cat interfaces.json ;;
  'rest '*) echo '{ "Items": [] }' ;;
  'deployment group create'*) ;;
  'deployment group show'*) echo '{ "provisioningState": "Succeeded", "outputs": { "hosts": { "value": [] } } }' ;;
  'deployment operation group list'*) echo '[]' ;;
  *) echo "no answer to: $*" >&2; exit 99 ;;
esac
"#;

/// Both arms on the same guests: igb itself for the NIC without accelerated networking, net_failover with its virtual function for the other one.
const PLAN: &str = r#"
name = "bed"
question = "Which NIC carries the traffic?"
[hosts.client]
bed = "vm1"
sudo = false
[hosts.server]
bed = "vm2"
sudo = false
[[arms]]
name = "synthetic"
client = "client"
server = "server"
network = "synthetic"
[[arms]]
name = "accelerated"
client = "client"
server = "server"
network = "accelerated"
[[workloads]]
name = "stream"
type = "tcp-stream"
duration = "1 s"
[design]
blocks_min = 2
blocks_max = 2
"#;

fn machine(number: u8, id: &str) -> Value {
    json!({
        "name": format!("vm{number}"), "location": "westeurope", "powerState": "VM running", "publicIps": format!("192.0.2.{}", number + 6),
        "vmId": id, "hardwareProfile": { "vmSize": "Standard_D4s_v3" }, "osProfile": { "adminUsername": "root" },
    })
}

/// Both VMs as `az` shows them, with these ids.
pub fn machines(ids: [&str; 2]) -> Value {
    json!([machine(1, ids[0]), machine(2, ids[1])])
}

/// A MAC address as `az` shows it.
pub fn shown_mac(mac: &str) -> String {
    mac.to_uppercase().replace(':', "-")
}

/// A NIC of the bed and the one of a guest that stands for it.
struct BedNic {
    vm: u8,
    network: &'static str,
    mac: String,
    address: String,
    is_accelerated: bool,
}

impl BedNic {
    fn name(&self) -> String {
        format!("vm{}-{}", self.vm, self.network)
    }
}

/// The NICs of both guests, with these flags: `synthetic` first.
fn nics(flags: [bool; 2]) -> Vec<BedNic> {
    let scene = Scene::named("igb").unwrap();
    let of = |vm: u8, network: &'static str, interface: &str, is_accelerated: bool| {
        let nic = scene.nic(interface).unwrap();
        let mac = shown_mac(&scene.mac(vm, nic));
        let address = format!("10.{}.0.{vm}", nic.subnet.unwrap());
        BedNic { vm, network, mac, address, is_accelerated }
    };
    [1, 2]
        .into_iter()
        .flat_map(|vm| [of(vm, "synthetic", "pf0", flags[0]), of(vm, "accelerated", "fo0", flags[1])])
        .collect()
}

/// What Azure claims of the flag of each NIC, `synthetic` first, and of the id of each VM.
pub fn claim(coordinator: &Coordinator, flags: [bool; 2], ids: [&str; 2]) {
    let mut claims = json!({ "vm1": { "id": ids[0] }, "vm2": { "id": ids[1] } });
    for nic in nics(flags) {
        claims[nic.name()] =
            json!({ "mac": nic.mac, "address": nic.address, "accelerated": nic.is_accelerated });
    }
    // VMs of larger sizes have a NIC for ssh as well.
    for vm in [1, 2] {
        let mac = shown_mac(&management_mac(vm));
        claims[format!("vm{vm}-management")] = json!({ "mac": mac, "address": MANAGEMENT_ADDRESS });
    }
    coordinator.real_az().unwrap().claim(&claims.to_string());
}

/// The script and its answers, for a bed of this type.
pub fn write_az(coordinator: &Coordinator, kind: &str) {
    coordinator.file("az", AZ);
    let tags = json!({ "netduel": "x", "netduel-created": "1795343407", "netduel-type": kind });
    coordinator.file(
        "group.json",
        &json!({ "name": "netduel-x", "location": "westeurope", "tags": tags }).to_string(),
    );
    let capabilities = json!([
        { "name": "AcceleratedNetworkingEnabled", "value": "True" }, { "name": "MaxNetworkInterfaces", "value": "2" },
    ]);
    let size = json!({
        "name": "Standard_D4s_v3", "family": "standardDSv3Family", "restrictions": [], "capabilities": capabilities,
        "locationInfo": [{ "location": "westeurope", "zones": [] }],
    });
    coordinator.file("sizes.json", &json!([size]).to_string());
}

/// Creates the bed `x`, with further keys of its file.
pub fn create(bed: &Bed, coordinator: &Coordinator, keys: &str) {
    let key = coordinator.file("key.pub", "ssh-ed25519 AAAAC3Nz me@here\n");
    let file = coordinator.file(
        "x.toml",
        &format!(
            "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\nssh_from = [\"192.0.2.1/32\"]\nssh_key = {key:?}\n{keys}"
        ),
    );
    coordinator.run(bed, &["azure", "up", &file]).expect_code(0);
}

/// The virtual function is proven, and claims that are wrong are refused. The guests are those of the scene `igb`, and as before afterwards.
pub fn check_bed(bed: &mut Bed, coordinator: &Coordinator) {
    let ids = [1, 2].map(guest_uuid);
    let ids = [ids[0].as_str(), ids[1].as_str()];
    claim(coordinator, [false, true], ids);
    with_networks_apart(bed, |bed| {
        create(bed, coordinator, "");
        let plan = coordinator.plan(PLAN);

        bed_carries_a_plan(bed, coordinator, &plan);
        wrong_claims_are_refused(bed, coordinator, &plan, ids);

        coordinator.run(bed, &["azure", "down", "x", "--yes"]).expect_code(0);
        run(&bed.guests()[0], &format!(". /scene.sh; up vf0; {REACH_PEER}"));
    });
}

/// Azure's subnets are networks of their own. The NICs here share a wire, on which each would answer for the address of the other.
pub fn with_networks_apart(bed: &mut Bed, check: impl FnOnce(&mut Bed)) {
    for guest in bed.guests() {
        run(guest, "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; ip neighbour flush all");
    }
    // The checks before may have restarted the physical function, and its virtual functions lose their links some time after that.
    run(&bed.guests()[0], REACH_PEER);
    check(bed);
    for guest in bed.guests() {
        run(guest, "echo 0 > /proc/sys/net/ipv4/conf/all/arp_ignore");
    }
}

/// Every trial has the proof of its path, and the report shows the bed.
fn bed_carries_a_plan(bed: &Bed, coordinator: &Coordinator, plan: &str) {
    let folder = coordinator.folder().join("report");
    let folder_name = folder.display().to_string();
    let words = ["azure", "run", plan, "--out", &folder_name, "--json"];
    let report = coordinator.run(bed, &words).expect_code(0).document();
    assert_all_valid(&report, 4);
    let arms = &report["plan"]["arms"];
    assert_eq!(arms[0]["expected_interface_client"], "pf0", "{arms:#}");
    assert_eq!(
        (&arms[1]["expected_path"], &arms[1]["expected_interface_client"]),
        (&"vf".into(), &Value::Null),
        "{arms:#}"
    );
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    keep(&folder, "bed");
    for part in ["Test bed", "vm1-synthetic", "vm2-accelerated", "guest: VF active", "guest: no VF"] {
        assert!(page.contains(part), "{part:?} is missing in the report");
    }
}

/// Claims that the guests contradict, and a virtual function that carries nothing.
fn wrong_claims_are_refused(bed: &mut Bed, coordinator: &Coordinator, plan: &str, ids: [&str; 2]) {
    // Both directions, at both VMs.
    claim(coordinator, [true, false], ids);
    let refused = coordinator.run(bed, &["azure", "run", plan]).expect_code(12).stderr;
    for vm in ["vm1", "vm2"] {
        for part in [
            format!(
                "problem at {vm}: {vm}-synthetic has no virtual function, and Azure claims that it is accelerated"
            ),
            format!(
                "problem at {vm}: {vm}-accelerated has a virtual function, and Azure claims that it is not accelerated"
            ),
        ] {
            assert!(refused.contains(&part), "{part}: {refused}");
        }
    }
    assert!(
        refused.contains("vf0 (igbvf, Intel 1 GbE Virtual Function) is the virtual function of fo0"),
        "{refused}"
    );

    // The guests in each other's place.
    claim(coordinator, [false, true], [ids[1], ids[0]]);
    let refused = coordinator.run(bed, &["azure", "run", plan]).expect_code(12).stderr;
    for vm in ["vm1", "vm2"] {
        let problem = format!("problem at {vm}: the host is not the VM {vm} of the bed x");
        assert!(refused.contains(&problem), "{problem}: {refused}");
    }

    // A virtual function without a path for traffic.
    claim(coordinator, [false, true], ids);
    run(&bed.guests()[0], "ip link set vf0 down");
    let refused = coordinator.run(bed, &["azure", "run", plan]).expect_code(12).stderr;
    assert!(
        refused.contains(
            "problem at vm1: the virtual function of vm1-accelerated cannot carry traffic: it is down"
        ),
        "{refused}"
    );
}
