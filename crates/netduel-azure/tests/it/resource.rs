//! Changes of NICs and VMs, and the way back.
use std::time::Duration;

use netduel_azure::az::cause::Cause;
use netduel_azure::az::patient::Patient;
use netduel_azure::resource::{
    Machine, Place, availability_set, is_past, is_same_placement, nic, placement, restore_nic,
    restore_placement, restore_running, set_accelerated, set_placement,
};

use crate::fake::{Answer, FakeAz};

fn place() -> Place {
    Place { subscription: None, group: "g".to_owned() }
}

fn machine() -> Machine {
    Machine { place: place(), name: "vm1".to_owned() }
}

fn shown(accelerated: bool) -> String {
    format!(
        r#"{{"name": "vm1-test", "enableAcceleratedNetworking": {accelerated}, "macAddress": "00-0D-3A-12-34-AB",
            "virtualMachine": {{"id": "/subscriptions/s/resourceGroups/other/providers/Microsoft.Compute/virtualMachines/vm1"}}}}"#
    )
}

#[test]
fn nic_is_read_with_its_address_and_the_vm_of_its_own_group() {
    let mut az = FakeAz::new([("network nic show", shown(true).as_str())]);
    let found = nic(&mut az, &place(), "vm1-test").unwrap();
    assert_eq!((found.accelerated, found.mac.as_deref()), (true, Some("00:0d:3a:12:34:ab")));
    let machine = found.machine.unwrap();
    assert_eq!((machine.name.as_str(), machine.place.group.as_str()), ("vm1", "other"));
    assert_eq!(found.subscription, None);
    let mut az =
        FakeAz::new([("network nic show", r#"{"name": "x", "virtualMachine": null, "macAddress": null}"#)]);
    let bare = nic(&mut az, &place(), "x").unwrap();
    assert_eq!((bare.accelerated, bare.mac, bare.machine), (false, None, None));
}

#[test]
fn switch_that_azure_did_not_take_is_an_error() {
    let mut az = FakeAz::new([("network nic update", "{}"), ("network nic show", shown(false).as_str())]);
    let error = set_accelerated(&mut az, &place(), "vm1-test", true).unwrap_err().to_string();
    assert!(error.contains("failed to turn accelerated networking of vm1-test on"), "{error}");
    assert!(error.ends_with("the NIC is as it was"), "{error}");
    assert_eq!(
        az.calls[0],
        "network nic update --resource-group g --name vm1-test --accelerated-networking true"
    );
}

#[test]
fn subscription_is_part_of_every_command() {
    let place = Place { subscription: Some("s-1".to_owned()), ..place() };
    let mut az = FakeAz::new([("network nic show", shown(true).as_str())]);
    nic(&mut az, &place, "n").unwrap();
    assert_eq!(az.calls[0], "network nic show --resource-group g --name n --subscription s-1");
}

#[test]
fn subscription_of_a_resource_is_that_of_its_id() {
    let found = |id: &str| {
        let answer = format!(r#"{{"id": "{id}"}}"#);
        let nic = nic(&mut FakeAz::new([("network nic show", answer.as_str())]), &place(), "n").unwrap();
        let placed = placement(&mut FakeAz::new([("vm show", answer.as_str())]), &machine()).unwrap();
        assert_eq!(nic.subscription, placed.subscription, "{id}");
        nic.subscription
    };
    let id = "/subscriptions/s-1/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/n";
    assert_eq!(found(id).as_deref(), Some("s-1"));
    for id in ["", "/subscriptions/s-1", "/tenants/s-1/resourceGroups/g", "/subscriptions/--help/x"] {
        assert_eq!(found(id), None, "{id}");
    }
}

#[test]
fn restored_nic_stops_its_vm_only_when_it_must() {
    let (off, on) = (shown(false), shown(true));
    let mut az = FakeAz::new([("network nic show", off.as_str())]);
    restore_nic(&mut az, &place(), "vm1-test", false, true, None).unwrap();
    az.is_done();
    let mut az = FakeAz::new([
        ("network nic show", on.as_str()),
        ("network nic update", ""),
        ("network nic show", off.as_str()),
    ]);
    restore_nic(&mut az, &place(), "vm1-test", false, false, None).unwrap();
    az.is_done();
    let mut az = FakeAz::new([
        ("network nic show", on.as_str()),
        ("vm deallocate --resource-group other --name vm1", ""),
        ("network nic update", ""),
        ("network nic show", off.as_str()),
        ("vm start --resource-group other --name vm1", ""),
    ]);
    restore_nic(&mut az, &place(), "vm1-test", false, true, None).unwrap();
    az.is_done();
}

#[test]
fn vm_is_started_also_when_the_change_failed() {
    let cause = Cause::Other { code: Some("AllocationFailed".to_owned()), message: "no".to_owned() };
    let mut az = FakeAz::new([
        ("vm show", r#"{"proximityPlacementGroup": {"id": "/x/proximityPlacementGroups/near"}}"#),
        ("vm deallocate", ""),
    ])
    .then("vm update", Answer::Failure(cause))
    .then("vm start", Answer::Text(String::new()));
    let error = restore_placement(&mut az, &machine(), None, None).unwrap_err().to_string();
    assert!(error.contains("no"), "{error}");
    az.is_done();
    assert_eq!(az.calls[2], "vm update --resource-group g --name vm1 --remove proximityPlacementGroup");
}

#[test]
fn placement_is_the_same_by_name_and_by_id() {
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/proximityPlacementGroups/Near";
    assert!(is_same_placement(Some(id), Some("near")));
    assert!(!is_same_placement(Some(id), None) && is_same_placement(None, None));
    let elsewhere = id.replace("resourceGroups/g", "resourceGroups/h");
    assert!(!is_same_placement(Some(id), Some(elsewhere.as_str())));
    assert!(is_same_placement(Some(id), Some(id.to_uppercase().as_str())));
    let mut az =
        FakeAz::new([("vm show", format!(r#"{{"proximityPlacementGroup": {{"id": "{id}"}}}}"#).as_str())]);
    restore_placement(&mut az, &machine(), Some("near"), None).unwrap();
    az.is_done();
    // Azure takes an id only, so a name is looked up.
    let (shown, update) =
        (format!(r#"{{"id": "{id}"}}"#), format!("vm update --resource-group g --name vm1 --ppg {id}"));
    let placed = format!(r#"{{"proximityPlacementGroup": {{"id": "{id}"}}}}"#);
    let read_back = ("vm show", placed.as_str());
    for (group, script) in [
        (
            "near",
            vec![("ppg show --resource-group g --name near", shown.as_str()), (&*update, ""), read_back],
        ),
        (id, vec![(&*update, ""), read_back]),
    ] {
        let mut az = FakeAz::new(script);
        set_placement(&mut az, &machine(), Some(group)).unwrap();
        az.is_done();
    }
}

#[test]
fn placement_that_azure_did_not_make_is_an_error() {
    let near = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/proximityPlacementGroups/near";
    let placed = format!(r#"{{"proximityPlacementGroup": {{"id": "{near}"}}}}"#);
    for (group, shown, doing, found) in [
        (
            Some(near),
            r#"{"proximityPlacementGroup": null}"#,
            format!("put vm1 into the proximity placement group {near}"),
            "no proximity placement group".to_owned(),
        ),
        (
            None,
            placed.as_str(),
            "take vm1 out of its proximity placement group".to_owned(),
            format!("the proximity placement group {near}"),
        ),
    ] {
        let mut az = FakeAz::new([("vm update", ""), ("vm show --resource-group g --name vm1", shown)]);
        let error = set_placement(&mut az, &machine(), group).unwrap_err().to_string();
        let expected = format!("failed to {doing}: Azure accepted the command, and the VM is in {found}");
        assert_eq!(error, expected);
        az.is_done();
    }
}

#[test]
fn availability_set_of_a_vm_is_named() {
    let of = |answer: &str| {
        let mut az = FakeAz::new([("vm show --resource-group g --name vm1", answer)]);
        availability_set(&mut az, &machine()).unwrap()
    };
    let id =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/availabilitySets/NETDUEL-AVAILABILITY";
    let named = of(&format!(r#"{{"availabilitySet": {{"id": "{id}"}}}}"#));
    assert_eq!(named.as_deref(), Some("NETDUEL-AVAILABILITY"));
    assert_eq!(of(r#"{"availabilitySet": null}"#), None);
}

#[test]
fn what_was_deleted_needs_no_restoring() {
    let gone = || {
        Answer::Failure(Cause::Other { code: Some("ResourceNotFound".to_owned()), message: "x".to_owned() })
    };
    let none = || FakeAz::new(std::iter::empty::<(&str, &str)>());
    restore_nic(&mut none().then("network nic show", gone()), &place(), "n", false, true, None).unwrap();
    restore_placement(&mut none().then("vm show", gone()), &machine(), None, None).unwrap();
    restore_running(&mut none().then("vm start", gone()), &machine(), None).unwrap();
}

#[test]
fn resource_of_a_subscription_that_cannot_be_seen_is_not_restored() {
    let lost = || {
        let code = Some("SubscriptionNotFound".to_owned());
        Answer::Failure(Cause::Other { code, message: "x".to_owned() })
    };
    let none = || FakeAz::new(std::iter::empty::<(&str, &str)>());
    let nic = restore_nic(&mut none().then("network nic show", lost()), &place(), "n", false, true, None);
    let placed = restore_placement(&mut none().then("vm show", lost()), &machine(), None, None);
    let running = restore_running(&mut none().then("vm start", lost()), &machine(), None);
    assert!(nic.is_err() && placed.is_err() && running.is_err(), "{nic:?} {placed:?} {running:?}");
}

#[test]
fn vm_stays_stopped_after_its_daily_shutdown() {
    let near = r#"{"proximityPlacementGroup": {"id": "/x/proximityPlacementGroups/near"}}"#;
    let (off, on) = (shown(false), shown(true));
    let mut az = FakeAz::new([
        ("network nic show", on.as_str()),
        ("vm deallocate --resource-group other --name vm1", ""),
        ("network nic update", ""),
        ("network nic show", off.as_str()),
        ("vm show", near),
        ("vm deallocate --resource-group g --name vm1", ""),
        ("vm update", ""),
        ("vm show", r#"{"proximityPlacementGroup": null}"#),
    ]);
    let past = Some(0);
    restore_nic(&mut az, &place(), "vm1-test", false, true, past).unwrap();
    restore_placement(&mut az, &machine(), None, past).unwrap();
    restore_running(&mut az, &machine(), past).unwrap();
    az.is_done();
    let mut az = FakeAz::new([("vm start", "")]);
    restore_running(&mut az, &machine(), Some(u64::MAX)).unwrap();
    az.is_done();
    assert!(is_past(past) && !is_past(Some(u64::MAX)) && !is_past(None));
}

/// A refusal of Azure with this code.
fn refusal(code: &str) -> Answer {
    Answer::Failure(Cause::Other { code: Some(code.to_owned()), message: "not now".to_owned() })
}

#[test]
fn restoring_waits_for_conflicts_and_lost_connections() {
    let lost = || Answer::Failure(Cause::Connection { message: "x".to_owned() });
    let throttled = || Answer::Failure(Cause::Throttled { message: "x".to_owned() });
    let near = r#"{"proximityPlacementGroup": {"id": "/x/proximityPlacementGroups/near"}}"#;
    let text = |text: &str| Answer::Text(text.to_owned());
    let mut az = FakeAz::new([("vm show", near)])
        .then("vm deallocate", refusal("AnotherOperationInProgress"))
        .then("vm deallocate", refusal("Conflict"))
        .then("vm deallocate", text(""))
        .then("vm update", refusal("RetryableError"))
        .then("vm update", text(""))
        .then("vm show", throttled())
        .then("vm show", text(r#"{"proximityPlacementGroup": null}"#))
        .then("vm start", lost())
        .then("vm start", text(""));
    let mut patient = Patient::new(&mut az, Duration::MAX);
    restore_placement(&mut patient, &machine(), None, None).unwrap();
    az.is_done();
}

#[test]
fn refusal_that_lasts_ends_the_restoring() {
    let none = || FakeAz::new(std::iter::empty::<(&str, &str)>());
    let mut az = none().then("vm start", refusal("AuthorizationFailed"));
    let error = restore_running(&mut Patient::new(&mut az, Duration::MAX), &machine(), None).unwrap_err();
    assert!(error.to_string().contains("AuthorizationFailed"), "{error}");
    // The time is over.
    let mut az = none().then("vm start", refusal("Conflict"));
    let error = restore_running(&mut Patient::new(&mut az, Duration::ZERO), &machine(), None).unwrap_err();
    assert!(error.to_string().contains("Conflict"), "{error}");
}
