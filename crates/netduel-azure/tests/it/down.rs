//! Finding, listing and deleting beds: only groups with the tag.
use netduel_azure::deployment::groups::{delete, find, foreign, list};

use crate::fake::{FakeAz, subscription};

const GROUP: &str = r#"{"name": "netduel-x", "location": "westeurope", "tags": {"netduel": "x", "netduel-created": "7", "netduel-price": "0.50 USD", "netduel-shutdown": "off"}}"#;

#[test]
fn bed_is_found_by_its_name_and_tag_and_deleted_whole() {
    let mut az = FakeAz::new([
        ("group exists --name netduel-x --subscription 2222", "true\n"),
        ("group show --name netduel-x --subscription 2222", GROUP),
        (
            "group delete --name netduel-x --yes --subscription 22222222-2222-2222-2222-222222222222 --no-wait",
            "",
        ),
    ]);
    let group = find(&mut az, "x", &subscription()).unwrap().unwrap();
    delete(&mut az, &group, &subscription(), false).unwrap();
    az.is_done();
}

#[test]
fn deletion_that_is_awaited_is_the_same_call_without_an_early_end() {
    let mut az = FakeAz::new([
        ("group exists", "true"),
        ("group show", GROUP),
        ("group delete --name netduel-x --yes", ""),
    ]);
    let group = find(&mut az, "x", &subscription()).unwrap().unwrap();
    delete(&mut az, &group, &subscription(), true).unwrap();
    assert!(az.calls[2].ends_with("--subscription 22222222-2222-2222-2222-222222222222"), "{:?}", az.calls);
}

#[test]
fn answer_about_another_group_is_no_bed_and_nothing_is_deleted() {
    for name in ["production", ""] {
        let other = GROUP.replace("netduel-x", name);
        let mut az = FakeAz::new([("group exists", "true"), ("group show", other.as_str())]);
        let error = find(&mut az, "x", &subscription()).unwrap_err().to_string();
        let expected = format!("(it shows the resource group {name})");
        assert!(error.contains("`az group show --name netduel-x") && error.contains(&expected), "{error}");
    }
    // Azure does not distinguish upper and lower case in names of groups.
    let upper = GROUP.replace("netduel-x", "NETDUEL-X");
    let mut az = FakeAz::new([("group exists", "true"), ("group show", upper.as_str())]);
    assert!(find(&mut az, "x", &subscription()).unwrap().is_some());
}

#[test]
fn resources_without_the_tag_are_foreign_unless_azure_made_them_for_the_bed() {
    let own = r#""tags": {"netduel": "x"}"#;
    let listed = format!(
        r#"[{{"name": "vm1", "type": "Microsoft.Compute/virtualMachines", {own}}},
            {{"name": "shutdown-computevm-vm1", "type": "Microsoft.DevTestLab/schedules", {own}}},
            {{"name": "VM1/Monitor", "type": "Microsoft.Compute/virtualMachines/extensions", "tags": null}},
            {{"name": "vm1_OsDisk_1_abc", "type": "Microsoft.Compute/disks"}},
            {{"name": "data", "type": "Microsoft.Compute/disks", "tags": {{}}}},
            {{"name": "web", "type": "Microsoft.Compute/virtualMachines", "tags": {{"netduel": "other"}}}},
            {{"name": "web/Monitor", "type": "Microsoft.Compute/virtualMachines/extensions"}},
            {{"name": "archive", "type": "Microsoft.Storage/storageAccounts", "tags": {{"owner": "me"}}}}]"#
    );
    let mut az = FakeAz::new([
        ("group exists", "true"),
        ("group show", GROUP),
        ("resource list --resource-group netduel-x --subscription 2222", listed.as_str()),
        (
            "vm list --resource-group netduel-x --query [].storageProfile.osDisk.name --subscription 2222",
            r#"["vm1_osdisk_1_abc"]"#,
        ),
    ]);
    let group = find(&mut az, "x", &subscription()).unwrap().unwrap();
    let found = foreign(&mut az, &group, "x", &subscription()).unwrap();
    az.is_done();
    assert_eq!(
        found.to_string(),
        "4 resources that netduel did not create: disk data, VM web, extensions web/Monitor, storageAccounts archive"
    );
    // Nothing is asked of VMs where no disk is in doubt.
    let mut az = FakeAz::new([("resource list", "[]")]);
    assert!(foreign(&mut az, &group, "x", &subscription()).unwrap().is_empty());
}

#[test]
fn untagged_shutdown_of_an_own_vm_is_not_foreign() {
    let listed = r#"[{"name": "vm1", "type": "Microsoft.Compute/virtualMachines", "tags": {"netduel": "x"}},
        {"name": "web", "type": "Microsoft.Compute/virtualMachines", "tags": {}},
        {"name": "SHUTDOWN-computevm-VM1", "type": "microsoft.devtestlab/schedules", "tags": null},
        {"name": "shutdown-computevm-vm10", "type": "Microsoft.DevTestLab/schedules"},
        {"name": "shutdown-computevm-web", "type": "Microsoft.DevTestLab/schedules"}]"#;
    let mut az = FakeAz::new([("group exists", "true"), ("group show", GROUP), ("resource list", listed)]);
    let group = find(&mut az, "x", &subscription()).unwrap().unwrap();
    let found = foreign(&mut az, &group, "x", &subscription()).unwrap();
    assert_eq!(found.0, ["VM web", "schedule shutdown-computevm-vm10", "schedule shutdown-computevm-web"]);
}

#[test]
fn missing_bed_and_group_without_its_tag_differ() {
    let mut az = FakeAz::new([("group exists", "false")]);
    assert_eq!(find(&mut az, "x", &subscription()).unwrap(), None);
    let other = GROUP.replace("\"netduel\": \"x\"", "\"owner\": \"me\"");
    let mut az = FakeAz::new([("group exists", "true"), ("group show", other.as_str())]);
    let error = find(&mut az, "x", &subscription()).unwrap_err().to_string();
    assert!(error.contains("netduel-x exists and is not the bed x"), "{error}");
}

#[test]
fn list_has_the_beds_with_their_tags_by_name() {
    let second = GROUP.replace("netduel-x", "netduel-a").replace("\"netduel\": \"x\"", "\"netduel\": \"a\"");
    let untagged = r#"{"name": "other", "location": "westeurope", "tags": null}"#;
    // A group of others with the tag of a bed is no bed: `down` would not find it.
    let of_others = GROUP.replace("netduel-x", "production");
    let answer = format!("[{GROUP}, {untagged}, {of_others}, {second}]");
    let mut az = FakeAz::new([("group list --tag netduel --subscription 2222", answer.as_str())]);
    let beds = list(&mut az, &subscription()).unwrap();
    let shown: Vec<(&str, Option<u64>)> =
        beds.iter().map(|(group, tags)| (group.name.as_str(), tags.created_unix_s)).collect();
    assert_eq!(shown, [("netduel-a", Some(7)), ("netduel-x", Some(7))]);
    assert_eq!(beds[1].1.price.as_ref().map(ToString::to_string).as_deref(), Some("0.50 USD"));
}
