//! A bed of type `hot-add` whose spare NIC comes and goes under traffic. QEMU attaches and detaches it while a command of the plan waits, as a
//! hypervisor does that has hot plug for running VMs; Azure has none.
use netduel_guests::{Bed, Guest, Scene, guest_uuid};
use serde_json::{Value, json};

use super::azure::{create, machines, shown_mac, write_az};
use super::coordinator::Coordinator;
use super::failover_cases::{Case, Timing, assert_outcomes, events_of, measure_by, on_hosts, plan_of};
use super::run;

/// The interface of the test NIC.
const TEST: &str = "virt0";
/// The free port, and the interface, of the spare NIC.
const SPARE: &str = "hot0";
/// Devices that QEMU attaches, each the name of a case.
const MODELS: [&str; 2] = ["e1000e", "vmxnet3"];
/// The NIC is attached long before it is detached, and detached long before the end of the traffic: longer than QEMU and a guest take for it.
const TIMING: Timing = Timing { away: 1, back: 5, returns_always: true, duration: 8, blocks: 2 };
const RUN: [&str; 2] = ["azure", "run"];

/// Traffic of the test NIC goes on while the spare one is attached and, after that, detached.
pub fn check_hot_add(bed: &mut Bed, coordinator: &Coordinator) {
    write_az(coordinator, "hot-add");
    let ids = [1, 2].map(guest_uuid);
    coordinator.file("machines.json", &machines([&ids[0], &ids[1]]).to_string());
    coordinator.file("interfaces.json", &interfaces().to_string());
    create(bed, coordinator, "type = \"hot-add\"\n");
    let cases = MODELS.map(|model| Case::awaited(model, ""));
    let vms = "[hosts.a]\nbed = \"vm1\"\nsudo = false\n[hosts.b]\nbed = \"vm2\"\nsudo = false\n";
    let plan = plan_of("10.1.0.2", &cases, TIMING);
    let plan = on_hosts(&plan, &format!("bed_type = \"hot-add\"\n{vms}"));

    attached_nic_that_azure_claims_is_not_is_refused(bed, coordinator, &plan);
    let report = measure_by(bed, coordinator, &RUN, &plan, change);
    assert_outcomes(&report, &cases, TIMING);
    for case in &cases {
        let events = events_of(&report, case);
        let kinds: Vec<&Value> = events.iter().map(|event| &event["kind"]).collect();
        assert_eq!(kinds, ["command", "return"], "{}: {events:#?}", case.name);
    }
    assert_eq!(report["plan"]["arms"][0]["expected_interface_client"], TEST, "{:#}", report["plan"]["arms"]);
    assert!(!run(&bed.guests()[0], "ls /sys/class/net").contains(SPARE));
    coordinator.run(bed, &["azure", "down", "x", "--yes"]).expect_code(0);
}

/// The address that the spare NIC of a VM would have.
fn spare_address(vm: u8) -> String {
    format!("10.1.0.{}", 20 + vm)
}

/// The NICs of both VMs as `az` shows them. The spare ones are attached to no VM.
fn interfaces() -> Value {
    let scene = Scene::named("hotplug").unwrap();
    let test = scene.nic(TEST).unwrap();
    let address = |private: String, public: Value| json!([{ "privateIPAddress": private, "publicIPAddress": public, "subnet": { "id": "/x/test" } }]);
    let of = |vm: u8| {
        let mac = shown_mac(&scene.mac(vm, test));
        [
            json!({
                "name": format!("vm{vm}-test"), "macAddress": mac, "enableAcceleratedNetworking": false,
                "virtualMachine": { "id": format!("/x/vm{vm}") },
                "ipConfigurations": address(format!("10.1.0.{vm}"), json!({ "id": "/x/address" })),
            }),
            json!({
                "name": format!("vm{vm}-spare"), "macAddress": null, "enableAcceleratedNetworking": false, "virtualMachine": null,
                "ipConfigurations": address(spare_address(vm), Value::Null),
            }),
        ]
    };
    json!([of(1), of(2)].concat())
}

/// Before the plan runs, the guest has a NIC that Azure claims is attached to no VM.
fn attached_nic_that_azure_claims_is_not_is_refused(bed: &mut Bed, coordinator: &Coordinator, plan: &str) {
    let plan = coordinator.plan(plan);
    attach(&mut bed.guests()[0], MODELS[0]);
    run(&bed.guests()[0], &format!("ip address add {}/32 dev {SPARE}", spare_address(1)));
    let refused = coordinator.run(bed, &[&RUN[..], &[plan.as_str()]].concat()).expect_code(12).stderr;
    let problem = "problem at vm1: the host has vm1-spare, which Azure claims is not attached";
    assert!(refused.contains(problem) && !refused.contains("problem at vm2"), "{refused}");
    bed.guests()[0].unplug(SPARE).unwrap();
}

/// Makes the change that a case waits for: `away` is its first event, which attaches the NIC here.
fn change(guest: &mut Guest, change: &str) {
    match change.rsplit_once('-') {
        Some((model, "away")) => attach(guest, model),
        Some((_, "back")) => guest.unplug(SPARE).unwrap(),
        _ => panic!("no change {change}"),
    }
}

/// QEMU attaches the spare NIC, and the guest sets it up.
fn attach(guest: &mut Guest, model: &str) {
    guest.plug_model(SPARE, model).unwrap();
    let mac = guest.mac(SPARE).unwrap();
    run(guest, &format!(". /scene.sh; rename {mac} {model} {SPARE}; up {SPARE}"));
}
