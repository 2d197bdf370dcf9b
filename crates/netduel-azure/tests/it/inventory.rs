//! Looking at a deployed bed, and starting its VMs.
use netduel_azure::az::PAUSE_S;
use netduel_azure::az::cause::Cause;
use netduel_azure::deployment::inventory::{Inventory, LIMIT_MIN, look_up, start, stopped};
use netduel_azure::deployment::{BedError, Subscription, groups::Group};
use netduel_azure::tags::Tags;
use netduel_model::bed::{BedNetwork, BedType};
use serde_json::{Value, json};

use crate::bed;
use crate::fake::{Answer, FakeAz, subscription};

/// The hash of a template, 64 digits.
const HASH: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";

fn group() -> (Group, Tags) {
    let tags = json!({ "netduel": "x", "netduel-created": "7", "netduel-price": "2.00 EUR", "netduel-type": "two-nic", "netduel-template": HASH });
    let group: Group =
        serde_json::from_value(json!({ "name": "netduel-x", "location": "westeurope", "tags": tags }))
            .unwrap();
    let tags = group.bed().unwrap();
    (group, tags)
}

fn id(kind: &str, name: &str) -> Value {
    json!({ "id": format!("/subscriptions/2/resourceGroups/netduel-x/providers/{kind}/{name}"), "resourceGroup": "netduel-x" })
}

/// A VM as `az vm list --show-details` prints it.
fn vm(name: &str, state: &str) -> Value {
    json!({
        "name": name, "location": "westeurope", "zones": ["2"], "vmId": "AB-CD", "powerState": state, "publicIps": "192.0.2.7",
        "hardwareProfile": { "vmSize": "Standard_DS4_v2" }, "osProfile": { "adminUsername": "netduel", "computerName": name },
        "proximityPlacementGroup": id("p", "netduel-proximity"), "availabilitySet": null,
        "networkProfile": { "networkInterfaces": [id("n", &format!("{name}-management")), id("n", &format!("{name}-test"))] },
    })
}

/// NICs as `az network nic list` prints them: the second of `vm1` first, and one that is not attached.
fn nics() -> Value {
    let address = |ipv4: &str| json!({ "privateIPAddress": ipv4, "privateIPAddressVersion": "IPv4", "subnet": id("subnets", "test") });
    json!([
        {
            "name": "vm1-test", "macAddress": "00-0D-3A-12-34-56", "enableAcceleratedNetworking": true, "virtualMachine": id("v", "vm1"),
            "ipConfigurations": [
                { "privateIPAddress": "fd77::4", "privateIPAddressVersion": "IPv6", "subnet": id("subnets", "test") }, address("10.77.1.4"),
            ],
        },
        {
            "name": "vm1-management", "macAddress": "00-0D-3A-12-34-55", "enableAcceleratedNetworking": false, "virtualMachine": id("v", "vm1"),
            "ipConfigurations": [{ "privateIPAddress": "10.77.0.4", "publicIPAddress": id("a", "vm1-address"), "subnet": id("s", "management") }],
        },
        { "name": "vm1-spare", "macAddress": null, "enableAcceleratedNetworking": true, "virtualMachine": null, "ipConfigurations": [address("10.77.1.9")] },
        { "name": "other", "virtualMachine": null, "ipConfigurations": null },
    ])
}

fn list(states: [&str; 2]) -> String {
    json!([vm("vm2", states[1]), vm("vm1", states[0])]).to_string()
}

fn looked_up(states: [&str; 2]) -> Inventory {
    let mut az = FakeAz::new([
        ("vm list --resource-group netduel-x --show-details --subscription 2222", list(states).as_str()),
        ("network nic list --resource-group netduel-x --subscription 2222", nics().to_string().as_str()),
    ]);
    let (group, tags) = group();
    let inventory = look_up(&mut az, &group, &tags, &subscription()).unwrap();
    az.is_done();
    inventory
}

#[test]
fn claims_of_vms_and_nics_are_those_of_azure() {
    let inventory = looked_up(["VM running"; 2]);
    let bed = &inventory.bed;
    assert_eq!(
        (bed.name.as_str(), bed.kind, bed.region.as_str()),
        ("x", Some(BedType::TwoNic), "westeurope")
    );
    assert_eq!(bed.price_per_hour.as_ref().map(ToString::to_string).as_deref(), Some("2.00 EUR"));
    assert_eq!(bed.template_sha256.as_deref(), Some(HASH));
    assert_eq!(bed.vms.iter().map(|vm| vm.name.as_str()).collect::<Vec<_>>(), ["vm1", "vm2"]);
    let vm = &bed.vms[0];
    let claimed = &vm.claimed;
    assert_eq!((claimed.id.as_deref(), claimed.zone.as_deref()), (Some("ab-cd"), Some("2")));
    assert_eq!(
        (claimed.size.as_deref(), claimed.placement.as_deref()),
        (Some("Standard_DS4_v2"), Some("netduel-proximity"))
    );
    assert_eq!(vm.user.as_deref(), Some("netduel"));
    assert_eq!(vm.public_address().unwrap().to_string(), "192.0.2.7");
    assert_eq!(
        vm.nics.iter().map(|nic| nic.name.as_str()).collect::<Vec<_>>(),
        ["vm1-management", "vm1-test", "vm1-spare"]
    );
    let test = vm.nic_in(BedNetwork::Test).unwrap();
    assert_eq!(test.mac.as_deref(), Some("00:0d:3a:12:34:56"));
    assert_eq!(test.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.77.1.4", "fd77::4"]);
    assert!(test.is_accelerated && test.is_attached && test.public_address.is_none());
    assert!(
        !vm.nics[2].is_attached && vm.nics[2].mac.is_none() && vm.nics[2].network == Some(BedNetwork::Test)
    );
}

#[test]
fn file_of_the_bed_follows_from_its_tags() {
    let bed = bed("placement = \"proximity-group\"\nfamilies = \"dual-stack\"");
    let tags = Tags::of(&bed, 7);
    let (group, _) = group();
    let mut az = FakeAz::new([
        ("vm list", list(["VM running"; 2]).as_str()),
        ("network nic list", nics().to_string().as_str()),
    ]);
    let found = look_up(&mut az, &group, &tags, &subscription()).unwrap();
    assert_eq!(found.bed.file, Some(bed.file_text()));
    // A bed of an earlier version has no tag for each key.
    assert_eq!(looked_up(["VM running"; 2]).bed.file, None);
}

#[test]
fn vms_that_do_not_run_are_those_in_another_state_and_those_that_are_missing() {
    let inventory = looked_up(["VM running", "VM deallocated"]);
    assert_eq!(inventory.not_running(["vm1", "vm2", "vm3"]), [("vm2", "VM deallocated"), ("vm3", "unknown")]);
}

#[test]
fn stopped_vms_are_those_that_neither_run_nor_start() {
    for (states, named) in [
        (["VM running", "VM starting"], vec![]),
        (["VM deallocated", "VM stopped"], vec![("vm1", "VM deallocated"), ("vm2", "VM stopped")]),
        (["", "VM creating"], vec![]),
    ] {
        let mut az = FakeAz::new([(
            "vm list --resource-group netduel-x --show-details --subscription 2222",
            list(states).as_str(),
        )]);
        let found = stopped(&mut az, &bed(""), &subscription()).unwrap();
        let found: Vec<(&str, &str)> =
            found.iter().map(|(vm, state)| (vm.as_str(), state.as_str())).collect();
        assert_eq!(found, named);
    }
}

#[test]
fn start_waits_until_the_named_vms_run() {
    let inventory = looked_up(["VM starting", "VM deallocated"]);
    let (starting, running) = (list(["VM running", "VM starting"]), list(["VM running"; 2]));
    let nics = nics().to_string();
    let mut az = FakeAz::new([
        ("vm start --resource-group netduel-x --name vm2 --no-wait --subscription 2222", ""),
        ("vm list", starting.as_str()),
        ("network nic list", nics.as_str()),
        ("vm list", running.as_str()),
        ("network nic list", nics.as_str()),
    ]);
    let (group, tags) = group();
    let vms = ["vm1".to_owned(), "vm2".to_owned()];
    let started = start(&mut az, (&group, &tags), &subscription(), &inventory, &vms).unwrap();
    az.is_done();
    assert!(started.not_running(["vm1", "vm2"]).is_empty());
}

#[test]
fn start_awaits_a_lost_connection_and_ends_with_any_other_error() {
    let lost = || Answer::Failure(Cause::Connection { message: "no route to host".to_owned() });
    let running = list(["VM running"; 2]);
    let inventory = looked_up(["VM running", "VM stopped"]);
    let (group, tags) = group();
    let vms = ["vm2".to_owned()];
    let mut az = FakeAz::new([("vm start", "")])
        .then("vm list", lost())
        .then("vm list", Answer::Text(running.clone()))
        .then("network nic list", lost())
        .then("vm list", Answer::Text(running))
        .then("network nic list", Answer::Text(nics().to_string()));
    start(&mut az, (&group, &tags), &subscription(), &inventory, &vms).unwrap();
    az.is_done();
    // Ten lost looks in a row are awaited.
    let mut az = FakeAz::new([("vm start", "")]);
    for _ in 0..11 {
        az = az.then("vm list", lost());
    }
    let error = start(&mut az, (&group, &tags), &subscription(), &inventory, &vms).unwrap_err();
    assert!(matches!(error, BedError::Call(_)), "{error}");
    az.is_done();
    let expired = Answer::Failure(Cause::Login { message: "expired".to_owned() });
    let mut az = FakeAz::new([("vm start", "")]).then("vm list", expired);
    let error = start(&mut az, (&group, &tags), &subscription(), &inventory, &vms).unwrap_err();
    assert!(matches!(error, BedError::Call(_)), "{error}");
    az.is_done();
}

#[test]
fn interrupt_of_a_start_says_which_vms_start() {
    let inventory = looked_up(["VM running", "VM stopped"]);
    let mut az = FakeAz::new([("vm start", ""), ("vm list", list(["VM running", "VM starting"]).as_str())]);
    az = az.then("network nic list", Answer::Text(nics().to_string()));
    az.pauses = 1;
    let (group, tags) = group();
    let error =
        start(&mut az, (&group, &tags), &subscription(), &inventory, &["vm2".to_owned()]).unwrap_err();
    assert!(matches!(error, BedError::StartInterrupted { .. }), "{error}");
    // Also in the middle of a call.
    let mut az = FakeAz::new([("vm start", "")]).then("vm list", Answer::Interrupt);
    let error =
        start(&mut az, (&group, &tags), &subscription(), &inventory, &["vm2".to_owned()]).unwrap_err();
    assert!(matches!(error, BedError::StartInterrupted { .. }), "{error}");
    // Also when the start of one VM was not accepted yet.
    let inventory = looked_up(["VM stopped", "VM stopped"]);
    let mut az = FakeAz::new([("vm start --resource-group netduel-x --name vm1", "")])
        .then("vm start --resource-group netduel-x --name vm2", Answer::Interrupt);
    let vms = ["vm1".to_owned(), "vm2".to_owned()];
    let error = start(&mut az, (&group, &tags), &subscription(), &inventory, &vms).unwrap_err();
    assert!(matches!(error, BedError::StartInterrupted { .. }), "{error}");
    assert!(error.to_string().contains("VMs whose start Azure accepted"), "{error}");
    az.is_done();
}

#[test]
fn commands_of_errors_of_a_start_name_the_subscription_that_the_user_named() {
    let inventory = looked_up(["VM running", "VM stopped"]);
    let (group, tags) = group();
    let vms = ["vm2".to_owned()];
    let paid = Subscription { named: Some("paid".to_owned()), ..subscription() };
    for (of, end) in [
        (subscription(), "`netduel azure run --start` starts the others"),
        (paid.clone(), "`netduel azure run --start --subscription paid` starts the others"),
    ] {
        let mut az = FakeAz::new([]).then("vm start", Answer::Interrupt);
        let error = start(&mut az, (&group, &tags), &of, &inventory, &vms).unwrap_err().to_string();
        assert!(error.ends_with(end), "{error}");
    }
    let (stopped, nics) = (list(["VM running", "VM stopped"]), nics().to_string());
    let mut az = FakeAz::new([("vm start", "")]);
    for _ in 0..LIMIT_MIN * 60 / PAUSE_S {
        az = az.then("vm list", Answer::Text(stopped.clone()));
        az = az.then("network nic list", Answer::Text(nics.clone()));
    }
    let error = start(&mut az, (&group, &tags), &paid, &inventory, &vms).unwrap_err().to_string();
    let command = "`az vm list --resource-group netduel-x --show-details --subscription paid`";
    assert!(error.contains(command), "{error}");
    // The time of the message has passed.
    az.is_done();
}
