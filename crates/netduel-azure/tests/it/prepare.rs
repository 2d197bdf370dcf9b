//! What is checked before anything is created, and the requests that create a bed.
use std::path::Path;

use netduel_azure::az::cause::Cause;
use netduel_azure::deployment::up::{Prepared, create, prepare};
use netduel_azure::deployment::{BedError, DatedPrice};
use netduel_azure::template::sha256;

use crate::bed;
use crate::fake::{ACCOUNT, Answer, FakeAz, VERSION};

/// 2026-11-22T10:30:07Z.
const NOW: u64 = 1_795_343_407;
const NO_GROUP: (&str, &str) = ("group exists --name netduel-x --subscription 2222", "false");
/// As `az vm list-skus` of 2.91 prints it, with a null where there is nothing.
const SKU: &str = r#"[{"resourceType": "virtualMachines", "name": "Standard_D4s_v3", "family": "standardDSv3Family",
    "locationInfo": [{"location": "westeurope", "zones": ["1", "2"], "zoneDetails": []}], "restrictions": null,
    "capabilities": [{"name": "vCPUs", "value": "4"}, {"name": "AcceleratedNetworkingEnabled", "value": "True"},
                     {"name": "MaxNetworkInterfaces", "value": "2"}]}]"#;
const USAGE: &str = r#"[{"limit": "10", "currentValue": 2, "name": {"value": "standardDSv3Family"}},
    {"limit": "5", "currentValue": "0", "name": {"value": "lowPriorityCores"}}]"#;
const PRICE: &str = r#"{"Items": [{"retailPrice": 0.25, "unitOfMeasure": "1 Hour", "type": "Consumption", "productName": "Virtual Machines DSv3 Series",
    "skuName": "D4s v3", "armSkuName": "Standard_D4s_v3", "currencyCode": "USD", "isPrimaryMeterRegion": true}]}"#;

fn prepared(keys: &str, answers: &[(&str, &str)]) -> Result<Prepared, BedError> {
    let mut az = FakeAz::new(answers.iter().copied());
    let prepared = prepare(&mut az, &bed(keys), NOW, None);
    az.is_done();
    prepared
}

fn refused(keys: &str, answers: &[(&str, &str)]) -> String {
    prepared(keys, answers).expect_err("it is refused").to_string()
}

const GOOD: [(&str, &str); 6] = [
    VERSION,
    ACCOUNT,
    NO_GROUP,
    ("vm list-skus --location westeurope --size Standard_D4s_v3 --resource-type virtualMachines --all", SKU),
    ("vm list-usage --location westeurope", USAGE),
    ("rest --method get --skip-authorization-header --url https://prices.azure.com/", PRICE),
];

#[test]
fn bed_that_can_be_created_has_tags_with_time_price_and_shutdown() {
    let prepared = prepared("", &GOOD).unwrap();
    assert!(!prepared.exists);
    assert_eq!(prepared.subscription.name, "fake");
    let tags: Vec<String> =
        prepared.tags.pairs().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    let template = format!("netduel-template={}", sha256(&bed("")).unwrap());
    assert_eq!(
        tags,
        [
            "netduel=x",
            "netduel-created=1795343407",
            "netduel-families=ipv4",
            "netduel-image=ubuntu-24.04",
            "netduel-placement=none",
            "netduel-price=0.5 USD",
            "netduel-price-read=1795343407",
            "netduel-shutdown=19:00",
            "netduel-size=Standard_D4s_v3",
            "netduel-spot=false",
            "netduel-subnets=1",
            template.as_str(),
            "netduel-type=two-nic"
        ]
    );
}

#[test]
fn old_az_is_refused_first() {
    let error = refused("", &[("version", r#"{"azure-cli": "2.40.0"}"#)]);
    assert!(error.contains("2.40.0") && error.contains("az upgrade"), "{error}");
}

#[test]
fn subscription_of_the_bed_is_that_of_every_call() {
    let mut answers = GOOD;
    answers[1] = ("account show --subscription 22222222-2222-2222-2222-222222222222", ACCOUNT.1);
    let keys = "subscription = \"22222222-2222-2222-2222-222222222222\"";
    prepared(keys, &answers).unwrap();
}

#[test]
fn expired_login_is_named_before_anything_else() {
    let mut az = FakeAz::new([VERSION])
        .then("account show", Answer::Failure(Cause::Login { message: "expired".to_owned() }));
    let error = prepare(&mut az, &bed(""), NOW, None).unwrap_err().to_string();
    assert!(error.contains("run `az login`"), "{error}");
}

#[test]
fn group_without_the_tag_of_the_bed_is_not_touched() {
    for tags in ["null", "{}", r#"{"netduel": "other"}"#, r#"{"owner": "me"}"#] {
        let group = format!(r#"{{"name": "netduel-x", "location": "westeurope", "tags": {tags}}}"#);
        let answers =
            [VERSION, ACCOUNT, ("group exists", "true"), ("group show --name netduel-x", group.as_str())];
        let error = refused("", &answers);
        assert!(error.contains("it lacks the tag netduel=x"), "{error}");
    }
}

const GROUP: &str =
    r#"{"name": "netduel-x", "location": "westeurope", "tags": {"netduel": "x", "netduel-created": "7"}}"#;

/// The answers to a second `up` of a bed that has these VMs, until the quota.
fn second_up(vms: &str) -> [(&str, &str); 6] {
    let list = ("vm list --resource-group netduel-x --subscription 2222", vms);
    [VERSION, ACCOUNT, ("group exists", "true"), ("group show", GROUP), GOOD[3], list]
}

#[test]
fn quota_is_compared_with_the_vms_that_are_missing() {
    let usage = |current: &str| USAGE.replace("\"currentValue\": 2", &format!("\"currentValue\": {current}"));
    let (enough, full) = (usage("6"), usage("7"));
    let half = second_up(r#"[{"name": "vm1"}]"#);
    prepared("", &[&half[..], &[(GOOD[4].0, enough.as_str()), GOOD[5]]].concat()).unwrap();
    let error = refused("", &[&half[..], &[(GOOD[4].0, full.as_str())]].concat());
    assert!(error.contains("7 are in use, and the bed needs 4 more; request a quota of 11 "), "{error}");
    // A group without a VM is as good as no bed.
    let error = refused("", &[&second_up("[]")[..], &[(GOOD[4].0, enough.as_str())]].concat());
    assert!(error.contains("the bed needs 8 more; request a quota of 14 "), "{error}");
}

#[test]
fn second_up_keeps_the_time_of_the_first() {
    let answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let prepared = prepared("", &[&answers[..], &[GOOD[5]]].concat()).unwrap();
    assert!(prepared.exists);
    assert_eq!(prepared.tags.created_unix_s, Some(7));
    let moved = GROUP.replace("westeurope", "northeurope");
    let answers = [VERSION, ACCOUNT, ("group exists", "true"), ("group show", moved.as_str())];
    let error = refused("", &answers);
    assert!(error.contains("exists in northeurope") && error.contains("netduel azure down x"), "{error}");
}

#[test]
fn bed_that_azure_is_deleting_is_not_completed() {
    let deleting = GROUP.replace(r#""tags""#, r#""properties": {"provisioningState": "Deleting"}, "tags""#);
    let answers = [VERSION, ACCOUNT, ("group exists", "true"), ("group show", deleting.as_str())];
    let error = refused("", &answers);
    assert!(error.contains("Azure is deleting the bed x; create it again when"), "{error}");
}

#[test]
fn second_up_changes_its_own_tags_and_leaves_those_of_the_user() {
    // The bed had a zone and a budget; the file names none now.
    let group = r#"{"name": "netduel-x", "location": "westeurope", "properties": {"provisioningState": "Succeeded"},
        "tags": {"netduel": "x", "netduel-created": "7", "netduel-zone": "1", "netduel-budget": "20 USD", "owner": "@/etc/passwd", "--debug": "x"}}"#;
    let mut answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    answers[3].1 = group;
    let prepared = prepared("", &[&answers[..], &[GOOD[5]]].concat()).unwrap();
    let mut az = FakeAz::new([("deployment group create", ""), ("tag update", "{}")]);
    create(&mut az, &bed(""), &prepared, Path::new("/t"), Path::new("/p"), &mut || ()).unwrap();
    az.is_done();
    let call = &az.calls[1];
    let id = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/netduel-x";
    let start =
        format!("tag update --resource-id {id} --operation Merge --tags netduel=x netduel-created=7 ");
    assert!(call.starts_with(&start), "{call}");
    // `az` would read the file that a value beginning with @ names.
    assert!(!call.contains("owner") && !call.contains('@') && !call.contains("--debug"), "{call}");
    assert!(call.contains(" netduel-zone= netduel-budget= --subscription "), "{call}");
}

#[test]
fn refused_second_up_leaves_the_tags_of_the_bed_as_they_are() {
    let answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let prepared = prepared("", &[&answers[..], &[GOOD[5]]].concat()).unwrap();
    let refused = Cause::Allocation { message: "no room".to_owned(), placement: None };
    let mut az = FakeAz::new([]).then("deployment group create", Answer::Failure(refused));
    let mut is_accepted = false;
    let mut accepted = || is_accepted = true;
    let result = create(&mut az, &bed(""), &prepared, Path::new("/t"), Path::new("/p"), &mut accepted);
    assert!(result.is_err() && !is_accepted && az.calls.len() == 1, "{:?}", az.calls);
}

#[test]
fn deployment_is_accepted_also_where_the_tags_cannot_be_changed() {
    let answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let prepared = prepared("", &[&answers[..], &[GOOD[5]]].concat()).unwrap();
    let lost = Cause::Connection { message: "reset".to_owned() };
    let mut az = FakeAz::new([("deployment group create", "")]).then("tag update", Answer::Failure(lost));
    let mut is_accepted = false;
    let mut accepted = || is_accepted = true;
    let result = create(&mut az, &bed(""), &prepared, Path::new("/t"), Path::new("/p"), &mut accepted);
    assert!(result.is_err() && is_accepted, "{:?}", az.calls);
}

/// The answers to an `up` that the group of the bed prevents.
fn with_group(group: &str) -> Vec<(&str, &str)> {
    vec![VERSION, ACCOUNT, ("group exists", "true"), ("group show", group)]
}

#[test]
fn commands_of_refusals_name_the_subscription_of_the_bed() {
    let own = |name: &str| format!(r#"{{"name": "{name}", "tags": {{"netduel": "x"}}}}"#);
    let four = format!("[{}]", ["vm1", "vm2", "vm3", "vm4"].map(own).join(", "));
    let two = format!("[{}]", ["vm1", "vm2"].map(own).join(", "));
    let schedule = r#"[{"name": "shutdown-computevm-vm1", "type": "Microsoft.DevTestLab/schedules"}]"#;
    let moved = GROUP.replace("westeurope", "northeurope");
    let typed = GROUP.replace(r#""netduel-created""#, r#""netduel-type": "toggle", "netduel-created""#);
    let deleting = GROUP.replace(r#""tags""#, r#""properties": {"provisioningState": "Deleting"}, "tags""#);
    let off = [&second_up(&two)[..], &[("resource list", schedule)]].concat();
    for (keys, answers, command) in [
        ("", with_group(&moved), "netduel azure down x"),
        ("", with_group(&typed), "netduel azure down x"),
        ("", with_group(&deleting), "netduel azure list"),
        ("", second_up(&four).to_vec(), "netduel azure down x"),
        ("shutdown = \"off\"", off, "az vm auto-shutdown --off --resource-group netduel-x --name VM"),
    ] {
        let error = refused(keys, &answers);
        assert!(error.contains(&format!("`{command}`")), "{error}");
        let error = refused(&format!("{keys}\nsubscription = \"pay as you go\""), &answers);
        assert!(error.contains(&format!("`{command} --subscription 'pay as you go'`")), "{error}");
    }
}

#[test]
fn bed_of_another_user_is_not_completed() {
    // SHA-256 of "me@example.com".
    let own = "8c2a47d3bdb8d3096a6479f53eac3b724291db5f1c31611100f675be5537329d";
    let user = r#""user": {"name": "Me@Example.com", "type": "user"}, "state""#;
    let account = ACCOUNT.1.replace(r#""state""#, user);
    let mut new = GOOD;
    new[1].1 = account.as_str();
    let tags = prepared("", &new).unwrap().tags;
    assert_eq!(tags.pairs().get("netduel-owner").map(String::as_str), Some(own));
    let other = "0a".repeat(32);
    let of = |owner: &str| {
        let tags = format!(r#""netduel-owner": "{owner}", "netduel-created""#);
        GROUP.replace(r#""netduel-created""#, &tags)
    };
    let mut second = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let group = of(&other);
    second[3].1 = group.as_str();
    // Where `az` names no user, the bed keeps its owner.
    let kept = prepared("", &[&second[..], &[GOOD[5]]].concat()).unwrap().tags;
    assert_eq!(kept.owner.as_ref(), Some(&other));
    second[1].1 = account.as_str();
    let error = refused("", &second[..4]);
    let part = "another user of the subscription created the bed x (tag netduel-owner of its resource group)";
    assert!(error.contains(part), "{error}");
    for owner in [own, ""] {
        let group = of(owner);
        let mut second = second;
        second[3].1 = group.as_str();
        let tags = prepared("", &[&second[..], &[GOOD[5]]].concat()).unwrap().tags;
        assert_eq!(tags.owner.as_deref(), Some(own), "{owner}");
    }
}

#[test]
fn bed_of_another_type_is_not_completed() {
    let two_pairs =
        GROUP.replace(r#""netduel-created""#, r#""netduel-type": "two-pairs", "netduel-created""#);
    let mut answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}, {"name": "vm3"}, {"name": "vm4"}]"#);
    answers[3].1 = two_pairs.as_str();
    let error = refused("type = \"toggle\"", &answers[..4]);
    let part =
        "exists with the type two-pairs, and the file has toggle; delete it with `netduel azure down x`, or";
    assert!(error.contains(part), "{error}");
    // A bed of an earlier version has no type. A VM without the tag of the bed is not netduel's.
    let own = |name: &str| format!(r#"{{"name": "{name}", "tags": {{"netduel": "x"}}}}"#);
    let list = ["vm1", "vm2", "vm4", "vm3"].map(own).join(", ");
    let error = refused("", &second_up(&format!("[{list}]")));
    assert!(error.contains("VMs that its file does not have: vm3, vm4; they cost money"), "{error}");
    let others = format!(r#"[{}, {}, {{"name": "web", "tags": null}}]"#, own("vm1"), own("vm2"));
    prepared("", &[&second_up(&others)[..], &[GOOD[5]]].concat()).unwrap();
}

#[test]
fn shutdown_that_vms_have_is_turned_off_by_az_and_not_by_a_deployment() {
    let vms = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let schedule = |vm: &str| {
        let name = format!("shutdown-ComputeVM-{vm}");
        format!(r#"{{"name": "{name}", "type": "microsoft.devtestlab/schedules", "tags": null}}"#)
    };
    let vm = r#"{"name": "shutdown-computevm-vm1", "type": "Microsoft.Compute/virtualMachines"}"#;
    let (both, none) = (["vm1", "vm2", "web"].map(schedule).join(", "), vm.to_owned());
    let [both, none] = [both, none].map(|list| format!("[{list}]"));
    let list = |text| ("resource list --resource-group netduel-x --subscription 2222", text);
    let error = refused("shutdown = \"off\"", &[&vms[..], &[list(both.as_str())]].concat());
    let parts = ["a daily shutdown of vm1, vm2, and", "az vm auto-shutdown --off --resource-group netduel-x"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    prepared("shutdown = \"off\"", &[&vms[..], &[list(none.as_str()), GOOD[5]]].concat()).unwrap();
}

#[test]
fn size_that_is_not_offered_is_refused_with_the_reason() {
    let restricted =
        SKU.replace("null", r#"[{"type": "Location", "reasonCode": "NotAvailableForSubscription", "restrictionInfo": {"zones": null}}]"#);
    let in_zone = SKU
        .replace("null", r#"[{"type": "Zone", "reasonCode": "Full", "restrictionInfo": {"zones": ["1"]}}]"#);
    for (keys, sku, part) in [
        ("", "[]", "in westeurope to the subscription fake: the region does not have it"),
        ("", restricted.as_str(), "(NotAvailableForSubscription)"),
        (
            "zone = 1",
            in_zone.as_str(),
            "in westeurope, zone 1 to the subscription fake: the subscription is restricted (Full)",
        ),
        ("zone = 3", SKU, "the size is not in zone 3"),
    ] {
        let error = refused(keys, &[VERSION, ACCOUNT, NO_GROUP, (GOOD[3].0, sku)]);
        assert!(error.contains(part) && error.contains("choose another size"), "{error}");
    }
    let mut answers = GOOD;
    answers[3].1 = in_zone.as_str();
    prepared("zone = 2", &answers).unwrap();
}

#[test]
fn size_without_accelerated_networking_or_nics_is_refused_with_others() {
    let without = SKU.replace("\"True\"", "\"False\"");
    let answers = [VERSION, ACCOUNT, NO_GROUP, (GOOD[3].0, without.as_str())];
    let error = refused("", &answers);
    assert!(
        error.contains("no accelerated networking for Standard_D4s_v3") && error.contains("Standard_D4s_v4"),
        "{error}"
    );
    assert!(!error.contains("Standard_D4s_v5"), "it has no arm without accelerated networking: {error}");
    let of_dpdk = refused("type = \"dpdk\"", &answers);
    assert!(of_dpdk.contains("Standard_D4s_v5"), "the bed has no such arm: {of_dpdk}");
    let single = SKU
        .replace("\"MaxNetworkInterfaces\", \"value\": \"2\"", "\"MaxNetworkInterfaces\", \"value\": \"1\"");
    let error = refused("", &[VERSION, ACCOUNT, NO_GROUP, (GOOD[3].0, single.as_str())]);
    assert!(error.contains("has 1 NIC in westeurope, and each VM of the bed has 2"), "{error}");
}

#[test]
fn quota_is_compared_before_the_first_resource_with_the_number_to_request() {
    let used = USAGE.replace("\"currentValue\": 2", "\"currentValue\": 3");
    let error = refused("", &[VERSION, ACCOUNT, NO_GROUP, GOOD[3], (GOOD[4].0, used.as_str())]);
    assert!(
        error.contains("standardDSv3Family in westeurope is 10, 3 are in use, and the bed needs 8 more"),
        "{error}"
    );
    assert!(error.contains("request a quota of 11 "), "{error}");
    let error = refused("spot = true", &[VERSION, ACCOUNT, NO_GROUP, GOOD[3], GOOD[4]]);
    assert!(error.contains("lowPriorityCores") && error.contains("request a quota of 8 "), "{error}");
}

#[test]
fn bed_beyond_its_budget_is_refused() {
    // 8.5 hours to 19:00 at 0.50 USD an hour.
    let error = refused("budget = \"4.20 USD\"", &GOOD);
    assert!(error.contains("costs 4.25 USD until its shutdown in 8.5 h (0.50 USD an hour)"), "{error}");
    prepared("budget = \"4.30 USD\"", &GOOD).unwrap();
    let error = refused("budget = \"11 USD\"\nshutdown = \"off\"", &GOOD);
    assert!(error.contains("costs 12.00 USD a day, and has no shutdown"), "{error}");
}

#[test]
fn budget_holds_beyond_a_shutdown_that_the_deployment_may_miss() {
    // 18:58 UTC: the VMs run until 19:00 of the next day.
    let late = NOW + (8 * 60 + 28) * 60;
    let mut az = FakeAz::new(GOOD);
    let error = prepare(&mut az, &bed("budget = \"11 USD\""), late, None).unwrap_err().to_string();
    assert!(error.contains("costs 12.02 USD until its shutdown in 24.0 h"), "{error}");
    let prepared = prepare(&mut FakeAz::new(GOOD), &bed("budget = \"12.5 USD\""), late, None).unwrap();
    assert_eq!(prepared.tags.pairs().get("netduel-budget").map(String::as_str), Some("12.5 USD"));
}

#[test]
fn unknown_price_is_refused_only_with_a_budget() {
    let mut answers = GOOD;
    answers[5].1 = r#"{"Items": []}"#;
    assert_eq!(prepared("", &answers).unwrap().tags.price, None);
    let error = refused("budget = \"20 USD\"", &answers);
    assert!(error.contains("price of Standard_D4s_v3 in westeurope is unknown"), "{error}");
    let mut az = FakeAz::new(GOOD[..5].iter().copied())
        .then("rest", Answer::Failure(Cause::Connection { message: "gone".to_owned() }));
    assert_eq!(prepare(&mut az, &bed(""), NOW, None).unwrap().tags.price, None);
}

#[test]
fn earlier_price_is_used_only_while_the_service_cannot_be_reached() {
    let earlier = || Some(DatedPrice { of_vm: "0.4 USD".parse().unwrap(), read_unix_s: 7 });
    let mut answers = GOOD;
    answers[5].1 = r#"{"Items": []}"#;
    let gone = prepare(&mut FakeAz::new(answers), &bed(""), NOW, earlier()).unwrap();
    assert_eq!((gone.price, gone.tags.price, gone.tags.price_read_unix_s), (None, None, None));
    let mut az = FakeAz::new(GOOD[..5].iter().copied())
        .then("rest", Answer::Failure(Cause::Connection { message: "gone".to_owned() }));
    let kept = prepare(&mut az, &bed(""), NOW, earlier()).unwrap();
    assert_eq!((kept.price, kept.tags.price_read_unix_s), (earlier(), Some(7)));
    assert!(kept.is_price_earlier);
    let mut az = FakeAz::new(GOOD[..5].iter().copied())
        .then("rest", Answer::Failure(Cause::Connection { message: "gone".to_owned() }));
    let error = prepare(&mut az, &bed("budget = \"20 USD\""), NOW, None).unwrap_err().to_string();
    assert!(error.contains("cannot be looked up now") && error.contains("repeat the command"), "{error}");
    let current = prepare(&mut FakeAz::new(GOOD), &bed(""), NOW, earlier()).unwrap();
    assert_eq!(current.tags.price_read_unix_s, Some(NOW));
    assert!(!current.is_price_earlier);
}

#[test]
fn price_is_asked_in_the_currency_of_the_budget() {
    let mut az = FakeAz::new(GOOD);
    let error = prepare(&mut az, &bed("budget = \"20 EUR\""), NOW, None).unwrap_err();
    assert!(matches!(error, BedError::PriceUnknown { .. }), "{error}");
    assert!(az.calls[5].contains("currencyCode='EUR'"), "{}", az.calls[5]);
}

/// Creates the bed; the calls, and what became of it.
fn created(answer: Answer, after: &[(&str, &str)]) -> (Vec<String>, Result<(), BedError>) {
    let prepared = prepared("", &GOOD).unwrap();
    let mut az =
        FakeAz::new([("group create --name netduel-x --location westeurope --tags netduel=x ", "{}")])
            .then("deployment group create --resource-group netduel-x --name netduel ", answer);
    for (start, text) in after {
        az = az.then(start, Answer::Text((*text).to_owned()));
    }
    let (template, parameters) = (Path::new("/t/template.json"), Path::new("/t/parameters.json"));
    let result = create(&mut az, &bed(""), &prepared, template, parameters, &mut || ());
    az.is_done();
    (az.calls, result)
}

#[test]
fn group_with_tags_comes_first_and_then_the_deployment_from_files() {
    let (calls, result) = created(Answer::Text(String::new()), &[]);
    result.unwrap();
    assert!(
        calls[0].contains("netduel-created=1795343407") && calls[0].contains("netduel-price=0.5 USD"),
        "{calls:?}"
    );
    assert!(
        calls[1].contains(
            "--template-file /t/template.json --parameters @/t/parameters.json --no-wait --subscription 2222"
        ),
        "{calls:?}"
    );
    assert!(calls.iter().all(|call| !call.contains("ssh-")), "{calls:?}");
}

#[test]
fn hidden_conflict_is_explained_by_the_operations_of_the_deployment() {
    let operations = r#"[{"properties": {"provisioningState": "Failed", "targetResource": {"resourceName": "vm1",
        "resourceType": "Microsoft.Compute/virtualMachines"}, "statusMessage": {"error": {"code": "AllocationFailed", "message": "no room"}}}}]"#;
    let (_, result) =
        created(Answer::Failure(Cause::Hidden), &[("deployment operation group list", operations)]);
    let error = result.unwrap_err().to_string();
    assert!(
        error.contains("failed to create VM vm1: Azure has no capacity") && error.contains("(no room)"),
        "{error}"
    );
    let (_, result) = created(Answer::Failure(Cause::Hidden), &[("deployment operation group list", "[]")]);
    let error = result.unwrap_err().to_string();
    assert!(error.contains("conflict") && error.contains("wait, and repeat"), "{error}");
}

#[test]
fn interrupted_request_has_the_command_that_shows_whether_azure_accepted_it() {
    let (_, result) = created(Answer::Interrupt, &[]);
    let show = "az deployment group show --resource-group netduel-x --name netduel";
    let start = format!("interrupted; Azure may have accepted the deployment: `{show}");
    assert_eq!(result.unwrap_err().to_string(), format!("{start}` shows the last accepted one"));
    // It looks in the subscription that the bed names.
    let keys = "subscription = \"paid\"";
    let prepared = prepared(keys, &GOOD).unwrap();
    let mut az = FakeAz::new([("group create", "{}")]).then("deployment group create", Answer::Interrupt);
    let result = create(&mut az, &bed(keys), &prepared, Path::new("/t"), Path::new("/p"), &mut || ());
    let expected = format!("{start} --subscription paid` shows the last accepted one");
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn azure_continues_an_accepted_deployment_whose_tags_were_interrupted() {
    let answers = second_up(r#"[{"name": "vm1"}, {"name": "vm2"}]"#);
    let prepared = prepared("", &[&answers[..], &[GOOD[5]]].concat()).unwrap();
    let mut az = FakeAz::new([("deployment group create", "")]).then("tag update", Answer::Interrupt);
    let result = create(&mut az, &bed(""), &prepared, Path::new("/t"), Path::new("/p"), &mut || ());
    assert!(matches!(result, Err(BedError::Interrupted)), "{result:?}");
}
