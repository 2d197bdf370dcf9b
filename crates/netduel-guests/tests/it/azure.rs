//! `netduel azure` with guests as the VMs of a bed: a virtual function that carries the traffic, and claims that contradict what the guests show.
//! A script stands for `az`.
use netduel_guests::{Bed, Scene};
use serde_json::{Value, json};

use super::coordinator::{Coordinator, assert_all_valid};
use super::run;
use super::states::REACH_PEER;

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
duration = "2 s"
[design]
blocks_min = 2
blocks_max = 2
"#;

fn machine(number: u8) -> Value {
    json!({
        "name": format!("vm{number}"), "location": "westeurope", "powerState": "VM running", "publicIps": format!("192.0.2.{}", number + 6),
        "hardwareProfile": { "vmSize": "Standard_D4s_v3" }, "osProfile": { "adminUsername": "root" },
    })
}

/// The NIC of a guest that stands for the one with this name, with the flag that Azure claims.
fn interface(scene: &Scene, number: u8, (name, interface, is_accelerated): (&str, &str, bool)) -> Value {
    let nic = scene.nic(interface).unwrap();
    let public = (name == "synthetic").then(|| json!({ "id": "/x/address" }));
    json!({
        "name": format!("vm{number}-{name}"), "macAddress": scene.mac(number, nic).to_uppercase().replace(':', "-"),
        "enableAcceleratedNetworking": is_accelerated, "virtualMachine": { "id": format!("/x/vm{number}") },
        "ipConfigurations": [{
            "privateIPAddress": format!("10.{}.0.{number}", nic.subnet.unwrap()), "publicIPAddress": public, "subnet": { "id": format!("/x/{name}") },
        }],
    })
}

/// What Azure claims of the flag of each NIC, `synthetic` first.
fn claim(coordinator: &Coordinator, flags: [bool; 2]) {
    let scene = Scene::named("igb").unwrap();
    let of = |number: u8| {
        [("synthetic", "pf0", flags[0]), ("accelerated", "fo0", flags[1])]
            .map(|nic| interface(scene, number, nic))
    };
    coordinator.file("interfaces.json", &json!([of(1), of(2)].concat()).to_string());
}

fn prepare(coordinator: &Coordinator) {
    coordinator.file("az", AZ);
    let tags = json!({ "netduel": "x", "netduel-created": "1795343407", "netduel-type": "two-nic" });
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
    coordinator.file("machines.json", &json!([machine(1), machine(2)]).to_string());
    claim(coordinator, [false, true]);
}

/// The virtual function is proven, and claims that are wrong are refused. The guests are those of the scene `igb`, and as before afterwards.
pub fn check_bed(bed: &mut Bed, coordinator: &Coordinator) {
    prepare(coordinator);
    // Azure's subnets are networks of their own. The NICs here share a wire, on which each would answer for the address of the other.
    for guest in bed.guests() {
        run(guest, "echo 1 > /proc/sys/net/ipv4/conf/all/arp_ignore; ip neighbour flush all");
    }
    // The checks before this one restarted the physical function, and its virtual functions lose their links some time after that.
    run(&bed.guests()[0], REACH_PEER);
    let key = coordinator.file("key.pub", "ssh-ed25519 AAAAC3Nz me@here\n");
    let file = coordinator.file(
        "x.toml",
        &format!("name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D4s_v3\"\nssh_from = [\"192.0.2.1/32\"]\nssh_key = {key:?}\n"),
    );
    coordinator.run(bed, &["azure", "up", &file]).expect_code(0);
    let plan = coordinator.plan(PLAN);

    let report = coordinator.run(bed, &["azure", "run", &plan, "--json"]).expect_code(0).document();
    assert_all_valid(&report, 4);
    let arms = &report["plan"]["arms"];
    assert_eq!(arms[0]["expected_interface_client"], "pf0", "{arms:#}");
    assert_eq!(
        (&arms[1]["expected_path"], &arms[1]["expected_interface_client"]),
        (&"vf".into(), &Value::Null),
        "{arms:#}"
    );

    // Both directions, at both VMs.
    claim(coordinator, [true, false]);
    let refused = coordinator.run(bed, &["azure", "run", &plan]).expect_code(12).stderr;
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

    // A virtual function without a path for traffic.
    claim(coordinator, [false, true]);
    run(&bed.guests()[0], "ip link set vf0 down");
    let refused = coordinator.run(bed, &["azure", "run", &plan]).expect_code(12).stderr;
    assert!(
        refused.contains(
            "problem at vm1: the virtual function of vm1-accelerated cannot carry traffic: it is down"
        ),
        "{refused}"
    );
    coordinator.run(bed, &["azure", "down", "x", "--yes"]).expect_code(0);
    run(&bed.guests()[0], &format!(". /scene.sh; up vf0; {REACH_PEER}"));
    for guest in bed.guests() {
        run(guest, "echo 0 > /proc/sys/net/ipv4/conf/all/arp_ignore");
    }
}
