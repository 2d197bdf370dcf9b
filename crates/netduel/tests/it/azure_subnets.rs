//! A bed with two subnets for each of its networks, IPv4 and IPv6. Its VMs are network namespaces, and this one is the router between their subnets.
//! The routes of the VMs are made by the script that cloud-init writes there.
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::azure::prints;
use crate::azure_run::{PLAN, interfaces, with_vms_in_subnets};
use crate::support::{Finished, VOLUME};
use crate::vms::assert_names;

/// The NICs of both VMs, each in a subnet of its own with an address of each family.
fn dual_stack() -> Value {
    let mut nics = interfaces(false);
    for (subnet, nic) in nics.as_array_mut().unwrap().iter_mut().enumerate() {
        // Two NICs for each VM; Azure keeps the first addresses of a subnet.
        let last = 4 + subnet / 2;
        let configurations = nic["ipConfigurations"].as_array_mut().unwrap();
        configurations[0]["privateIPAddress"] = json!(format!("10.77.{subnet}.{last}"));
        configurations.push(json!({ "privateIPAddress": format!("fd77:6e64:0:{subnet}::{last}") }));
    }
    nics
}

/// An arm for each network and family.
fn plan() -> String {
    let arm = |network: &str, family: &str| {
        format!(
            "[[arms]]\nname = \"{network}-{family}\"\nclient = \"client\"\nserver = \"server\"\nnetwork = \"{network}\"\n\
             set = {{ family = \"{family}\" }}\n"
        )
    };
    let of_network = |network: &str| ["ipv4", "ipv6"].map(|family| arm(network, family)).concat();
    let arms = ["synthetic", "accelerated"].map(of_network).concat();
    let (hosts, _) = PLAN.split_once("[[arms]]").unwrap();
    let (_, design) = PLAN.split_once("[design]").unwrap();
    format!("{hosts}{arms}[design]{design}{VOLUME}")
}

/// The script for the routes of a VM, as cloud-init finds it in the template of the bed.
fn script(template: &Value, vm: &str) -> String {
    let resources = template["resources"].as_array().unwrap();
    let is_vm = |one: &&Value| one["type"] == "Microsoft.Compute/virtualMachines" && one["name"] == vm;
    let machine = resources.iter().find(is_vm).unwrap();
    let data = machine["properties"]["osProfile"]["customData"].as_str().unwrap();
    let text = data.strip_prefix("[base64('").and_then(|rest| rest.strip_suffix("')]")).unwrap();
    let text = text.replace("''", "'");
    let configuration: Value = serde_json::from_str(text.strip_prefix("#cloud-config\n").unwrap()).unwrap();
    let files = configuration["write_files"].as_array().unwrap();
    let file = files.iter().find(|file| file["path"] == "/usr/local/sbin/netduel-routes").unwrap();
    file["content"].as_str().unwrap().to_owned()
}

/// Adds the routes of VMs, by the scripts in the template of their bed.
pub fn add_routes(template: &str, vms: &[&str]) {
    let template: Value = serde_json::from_str(template).unwrap();
    for vm in vms {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", vm, "sh", "-c", &script(&template, vm)]);
        Finished::from(ip.output().unwrap()).expect_code(0);
    }
}

/// Packets that the router, which is this namespace, has forwarded, of IPv4 and of IPv6.
pub fn forwarded() -> [u64; 2] {
    let four = fs::read_to_string("/proc/net/snmp").unwrap();
    let mut rows = four.lines().filter(|line| line.starts_with("Ip: "));
    let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
    let mut columns = names.split(' ').zip(values.split(' '));
    let (_, four) = columns.find(|(name, _)| *name == "ForwDatagrams").unwrap();
    let six = fs::read_to_string("/proc/net/snmp6").unwrap();
    let six = six.lines().find_map(|line| line.strip_prefix("Ip6OutForwDatagrams")).unwrap();
    [four, six.trim()].map(|count| count.parse().unwrap())
}

#[test]
fn traffic_of_both_families_crosses_the_router_between_two_subnets() {
    let test = "azure_subnets::traffic_of_both_families_crosses_the_router_between_two_subnets";
    with_vms_in_subnets(test, |scene| {
        let bed = fs::read_to_string(scene.at("x.toml")).unwrap();
        fs::write(scene.at("x.toml"), format!("{bed}subnets = 2\nfamilies = \"dual-stack\"\n")).unwrap();
        scene.answer("network nic list", prints(&dual_stack()));
        scene.bench.plan(&plan());
        scene.up();

        // Without the script, IPv4 leaves by the default route, and IPv6 does not leave.
        let refused = scene.run(&["azure", "run", "plan.toml"]).expect_code(12).stderr;
        assert_names(
            &refused,
            &[
                "warning at vm1: traffic to 10.77.3.5 does not leave by vm1-accelerated, the NIC of the arm",
                "problem at vm1: vm1-synthetic has no route to fd77:6e64:0:2::5",
                "problem at vm2: vm2-accelerated has no route to fd77:6e64:0:1::4",
            ],
        );

        let template = scene.run(&["azure", "template", "x.toml"]).expect_code(0).stdout;
        add_routes(&template, &["vm1", "vm2"]);
        let before = forwarded();
        let run = scene.run(&["azure", "run", "plan.toml", "--json"]).expect_code(0);
        let document = run.json();
        assert_eq!(
            (&document["trials_valid"], &document["trials_excluded"]),
            (&8.into(), &0.into()),
            "{document}"
        );
        let arms = document["plan"]["arms"].as_array().unwrap();
        let proven: Vec<&Value> = arms.iter().map(|arm| &arm["expected_interface_client"]).collect();
        assert_eq!(proven, ["eth0", "eth0", "eth1", "eth1"]);
        let after = forwarded();
        assert!(before.iter().zip(after).all(|(before, after)| *before < after), "{before:?}, {after:?}");
        assert!(!run.stderr.contains("does not leave by"), "{}", run.stderr);
        scene.bench.assert_nothing_left();
    });
}
