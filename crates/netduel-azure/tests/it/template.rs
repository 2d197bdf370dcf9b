//! The template of each type of bed: golden files, references within it, and the published types of its resources.
use std::collections::{BTreeMap, BTreeSet};

use netduel_azure::ssh_key::PublicKey;
use netduel_azure::tags::Tags;
use netduel_azure::template::{deployment_parameters, tags_of_parameters, template, text};
use netduel_model::bed::{Bed, parse};
use serde_json::Value;

use crate::{bed, project_file};

/// Properties of the types in the pinned versions; `published_types.py` derives them from the published types.
const PUBLISHED: &str = include_str!("published_types.txt");

fn shipped(name: &str) -> Bed {
    let text = std::fs::read_to_string(project_file(&format!("beds/{name}.toml"))).unwrap();
    parse(&text, name).unwrap_or_else(|errors| panic!("{errors}"))
}

fn json(bed: &Bed) -> Value {
    serde_json::to_value(template(bed)).unwrap()
}

fn resources(bed: &Bed) -> Vec<Value> {
    json(bed)["resources"].as_array().unwrap().clone()
}

fn of_type<'r>(resources: &'r [Value], kind: &str) -> Vec<&'r Value> {
    resources.iter().filter(|one| one["type"].as_str().unwrap().ends_with(kind)).collect()
}

/// Compares a text with a golden file, or writes the file for `cargo xtask bless`.
fn assert_golden(name: &str, text: &str) {
    let path = project_file(&format!("crates/netduel-azure/tests/golden/{name}.json"));
    if std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "the template of beds/{name}.toml differs from its golden file: read the change with `git diff` after \
         `cargo xtask bless`, and commit it"
    );
}

const SHIPPED: [&str; 5] = ["two-nic", "two-pairs", "toggle", "dpdk", "hot-add"];

#[test]
fn template_of_each_shipped_bed_is_its_golden_file() {
    for name in SHIPPED {
        assert_golden(name, &text(&template(&shipped(name))).unwrap());
    }
}

#[test]
fn file_that_a_run_keeps_gives_the_template_again() {
    for bed in SHIPPED.map(shipped) {
        let written = parse(&bed.file_text(), &bed.name).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(text(&template(&written)).unwrap(), text(&template(&bed)).unwrap(), "{}", bed.name);
    }
}

/// The expression with the id of a resource.
fn id(resource: &Value) -> String {
    format!(
        "[resourceId('{}', '{}')]",
        resource["type"].as_str().unwrap(),
        resource["name"].as_str().unwrap()
    )
}

/// Every text in a value.
fn texts<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_to_an_earlier_resource_of_the_template() {
    for name in SHIPPED {
        let mut known: BTreeSet<String> = BTreeSet::new();
        for resource in resources(&shipped(name)) {
            let mut found = Vec::new();
            texts(&resource["properties"], &mut found);
            texts(&resource["dependsOn"], &mut found);
            let waits: BTreeSet<&str> =
                resource["dependsOn"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            for reference in found.iter().filter(|text| text.starts_with("[resourceId(")) {
                if reference.contains("virtualNetworks/subnets") {
                    continue;
                }
                assert!(known.contains(*reference), "{name}: {reference} comes after {}", id(&resource));
                // A subnet's rules are those of the group on which its network waits, and so on.
                assert!(waits.contains(reference), "{name}: {} does not wait for {reference}", id(&resource));
            }
            assert!(known.insert(id(&resource)), "{name}: {} is there twice", id(&resource));
        }
    }
}

#[test]
fn every_nic_is_in_a_subnet_of_the_network() {
    for name in SHIPPED {
        let resources = resources(&shipped(name));
        let network = of_type(&resources, "/virtualNetworks")[0];
        let subnets = network["properties"]["subnets"].as_array().unwrap();
        let known: Vec<String> = subnets
            .iter()
            .map(|subnet| {
                format!(
                    "[resourceId('Microsoft.Network/virtualNetworks/subnets', '{}', '{}')]",
                    network["name"].as_str().unwrap(),
                    subnet["name"].as_str().unwrap()
                )
            })
            .collect();
        let nics = of_type(&resources, "/networkInterfaces");
        assert!(!nics.is_empty());
        for nic in nics {
            for configuration in nic["properties"]["ipConfigurations"].as_array().unwrap() {
                let subnet = configuration["properties"]["subnet"]["id"].as_str().unwrap();
                assert!(known.iter().any(|one| one == subnet), "{name}: {subnet}");
            }
        }
    }
}

/// The published properties of a type by their paths, `[]` for the elements of a list: the kind, and whether it is required.
type Published = BTreeMap<&'static str, (&'static str, bool)>;

/// The published properties by TYPE@VERSION.
fn published() -> BTreeMap<&'static str, Published> {
    let mut all: BTreeMap<&str, Published> = BTreeMap::new();
    for line in PUBLISHED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        all.entry(words[0]).or_default().insert(words[1], (words[2], words.get(3) == Some(&"required")));
    }
    all
}

/// Whether a value is of a published kind; that of an expression is known to Azure only.
fn fits(value: &Value, kind: &str) -> bool {
    let text = value.as_str();
    text.is_some_and(|text| text.starts_with('['))
        || match kind {
            "string" => text.is_some(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            values => text.is_some_and(|text| values.split('|').any(|one| one == text)),
        }
}

/// What is wrong with a value at a path of a resource.
fn faults(value: &Value, path: &str, published: &Published, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                faults(value, &path, published, found);
            }
            for name in published.iter().filter(|(_, (_, is_required))| *is_required).map(|(name, _)| *name) {
                let (around, key) = name.rsplit_once('.').unwrap_or(("", name));
                if around == path && !fields.contains_key(key) {
                    found.push(format!("{name} is required"));
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                faults(value, &format!("{path}[]"), published, found);
            }
        }
        leaf => match published.get(path) {
            None => found.push(format!("{path} is not published")),
            Some((kind, _)) if !fits(leaf, kind) => found.push(format!("{path} is {leaf}, not {kind}")),
            Some(_) => {}
        },
    }
}

/// What is wrong with a resource by the published types.
fn faults_of(resource: &Value) -> Vec<String> {
    let mut resource = resource.clone();
    let fields = resource.as_object_mut().unwrap();
    // Keys of the language, not of the type.
    let [kind, version] = ["type", "apiVersion"].map(|key| fields.remove(key).unwrap());
    fields.remove("dependsOn");
    fields.remove("name");
    let name = format!("{}@{}", kind.as_str().unwrap(), version.as_str().unwrap());
    let mut found = Vec::new();
    match published().get(name.as_str()) {
        Some(published) => faults(&resource, "", published, &mut found),
        None => found.push(format!("{name} is not published")),
    }
    found
}

#[test]
fn every_resource_is_of_its_published_type() {
    let others = ["spot = true\nfamilies = \"dual-stack\"\nzone = 3", "placement = \"availability-set\""];
    let all = SHIPPED.map(shipped).into_iter().chain(others.map(bed));
    for bed in all {
        for resource in resources(&bed) {
            assert_eq!(faults_of(&resource), Vec::<String>::new(), "{}: {resource}", bed.name);
        }
    }
}

#[test]
fn wrong_property_value_and_missing_property_are_found() {
    let resources = resources(&bed(""));
    let vm = of_type(&resources, "/virtualMachines")[0];
    let changed = |change: fn(&mut Value)| {
        let mut vm = vm.clone();
        change(&mut vm);
        faults_of(&vm)
    };
    assert_eq!(
        changed(|vm| vm["properties"]["prioritie"] = "Spot".into()),
        ["properties.prioritie is not published"]
    );
    assert_eq!(
        changed(|vm| vm["properties"]["priority"] = "spot".into()),
        ["properties.priority is \"spot\", not Regular|Low|Spot"]
    );
    let disk = |vm: &mut Value| {
        vm["properties"]["storageProfile"]["osDisk"].as_object_mut().unwrap().remove("createOption");
    };
    assert_eq!(changed(disk), ["properties.storageProfile.osDisk.createOption is required"]);
}

#[test]
fn keys_of_the_bed_reach_the_resources() {
    let plain = resources(&bed(""));
    let machine = |resources: &[Value]| of_type(resources, "/virtualMachines")[0].clone();
    assert_eq!(machine(&plain)["properties"]["hardwareProfile"]["vmSize"], "Standard_D4s_v3");
    assert_eq!(
        (&machine(&plain)["zones"], &machine(&plain)["properties"]["priority"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(of_type(&plain, "/schedules").len(), 2);

    let off = resources(&bed(
        "shutdown = \"off\"\nzone = 2\nspot = true\nplacement = \"proximity-group\"\nimage = \"debian-12\"",
    ));
    assert_eq!(of_type(&off, "/schedules").len(), 0);
    let vm = machine(&off);
    assert_eq!((&vm["zones"][0], &vm["properties"]["priority"]), (&"2".into(), &"Spot".into()));
    assert_eq!(vm["properties"]["storageProfile"]["imageReference"]["offer"], "debian-12");
    assert!(vm["properties"]["proximityPlacementGroup"]["id"].is_string());
    assert_eq!(of_type(&off, "/proximityPlacementGroups").len(), 1);

    let set = resources(&bed("placement = \"availability-set\""));
    assert_eq!(of_type(&set, "/availabilitySets").len(), 1);
    assert!(machine(&set)["properties"]["availabilitySet"]["id"].is_string());
    let time = resources(&bed("shutdown = \"07:30\""));
    assert_eq!(of_type(&time, "/schedules")[0]["properties"]["dailyRecurrence"]["time"], "0730");
}

#[test]
fn every_resource_has_the_tags_of_the_bed() {
    for name in SHIPPED {
        for resource in resources(&shipped(name)) {
            assert_eq!(resource["tags"], "[parameters('tags')]", "{name}: {}", id(&resource));
        }
    }
}

#[test]
fn accelerated_networking_is_on_exactly_where_the_layout_has_it() {
    let resources = resources(&bed(""));
    let flags: Vec<(&str, bool)> = of_type(&resources, "/networkInterfaces")
        .iter()
        .map(|nic| {
            let flag = nic["properties"]["enableAcceleratedNetworking"].as_bool().unwrap();
            (nic["name"].as_str().unwrap(), flag)
        })
        .collect();
    assert_eq!(
        flags,
        [
            ("vm1-synthetic", false),
            ("vm1-accelerated", true),
            ("vm2-synthetic", false),
            ("vm2-accelerated", true)
        ]
    );
}

#[test]
fn toggle_bed_has_an_empty_proximity_group_for_the_treatment_of_the_latency_plan() {
    let resources = resources(&shipped("toggle"));
    let groups = of_type(&resources, "/proximityPlacementGroups");
    let [group] = groups.as_slice() else { panic!("{groups:?}") };
    for vm in of_type(&resources, "/virtualMachines") {
        assert_eq!(vm["properties"].get("proximityPlacementGroup"), None);
    }
    let plan = std::fs::read_to_string(project_file("plans/azure-latency.toml")).unwrap();
    let treatment = format!("azure-placement = \"{}\"", group["name"].as_str().unwrap());
    assert_eq!(plan.matches(&treatment).count(), 2, "{treatment}");
    // A bed in a proximity group has one.
    let near = json(&bed("type = \"toggle\"\nplacement = \"proximity-group\""));
    assert_eq!(of_type(near["resources"].as_array().unwrap(), "/proximityPlacementGroups").len(), 1);
}

#[test]
fn spare_nic_is_created_and_not_attached() {
    let resources = resources(&shipped("hot-add"));
    assert_eq!(of_type(&resources, "/networkInterfaces").len(), 6);
    for vm in of_type(&resources, "/virtualMachines") {
        let attached = vm["properties"]["networkProfile"]["networkInterfaces"].as_array().unwrap();
        assert_eq!(attached.len(), 2);
        for (nic, name) in attached.iter().zip(["-management'", "-test'"]) {
            assert!(nic["id"].as_str().unwrap().contains(name), "{attached:?}");
        }
    }
}

#[test]
fn exactly_one_nic_of_a_vm_is_primary() {
    for name in SHIPPED {
        for vm in of_type(&resources(&shipped(name)), "/virtualMachines") {
            let attached = vm["properties"]["networkProfile"]["networkInterfaces"].as_array().unwrap();
            let primary = attached.iter().filter(|nic| nic["properties"]["primary"] == true);
            assert_eq!(primary.count(), 1, "{name}");
        }
    }
}

#[test]
fn ssh_is_open_to_the_prefixes_of_the_parameters_only() {
    let resources = resources(&bed(""));
    let rules =
        of_type(&resources, "/networkSecurityGroups")[0]["properties"]["securityRules"].as_array().unwrap();
    for rule in rules {
        let properties = &rule["properties"];
        let source =
            properties.get("sourceAddressPrefix").or_else(|| properties.get("sourceAddressPrefixes"));
        let source = source.and_then(Value::as_str).unwrap();
        assert!(matches!(source, "[parameters('sourceAddressPrefixes')]" | "VirtualNetwork"), "{source}");
    }
    assert_eq!(json(&bed(""))["parameters"]["sourceAddressPrefixes"].get("defaultValue"), None);
}

#[test]
fn parameters_are_those_that_the_template_declares() {
    let key = PublicKey::parse("ssh-ed25519 AAAA me@here").unwrap();
    let bed = bed("ssh_from = [\"192.0.2.1/32\"]");
    let tags = Tags::of(&bed, 7);
    let document = deployment_parameters(&key, &bed.ssh_from, &tags);
    let values = document["parameters"].as_object().unwrap();
    let declared = json(&bed)["parameters"].as_object().unwrap().clone();
    assert!(values.keys().all(|name| declared.contains_key(name)), "{values:?}");
    let missing = declared
        .iter()
        .filter(|(name, one)| one.get("defaultValue").is_none() && !values.contains_key(*name));
    assert_eq!(missing.count(), 0);
    assert_eq!(values["sshPublicKey"]["value"], "ssh-ed25519 AAAA");
    assert_eq!(values["sourceAddressPrefixes"]["value"][0], "192.0.2.1/32");
    assert_eq!(values["tags"]["value"]["netduel"], "x");
    let read = tags_of_parameters(&text(&document).unwrap()).expect("it has the tags");
    assert_eq!(read.pairs(), tags.pairs());
    assert_eq!(tags_of_parameters("{}"), None);
}

#[test]
fn outputs_have_an_address_of_each_nic() {
    let outputs = json(&shipped("two-pairs"))["outputs"]["hosts"]["value"].as_array().unwrap().clone();
    assert_eq!(outputs.len(), 4);
    for host in &outputs {
        let nics = host["nics"].as_array().unwrap();
        let has_ipv6: Vec<bool> = nics.iter().map(|nic| nic["ipv6"].is_string()).collect();
        assert_eq!(has_ipv6, [false, true], "{host}");
        assert!(nics[1]["ipv6"].as_str().unwrap().contains("ipConfigurations[1]"));
    }
}
