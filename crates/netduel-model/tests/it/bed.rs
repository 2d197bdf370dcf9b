//! Beds from the outside: those that come with the program, invalid beds, the schema and the guide.
use netduel_formats::markdown;
use netduel_model::bed::{self, Bed, BedType, Image, Layout, Placement, Sysctls, parse};
use proptest::prelude::*;

use crate::guide::{Author, reference, with_text_between};
use crate::{assert_current, project_file};

const KEYS: [&str; 2] =
    ["<!-- begin: generated from the schema -->\n", "<!-- end: generated from the schema -->"];
const WORDS: [&str; 2] =
    ["<!-- begin: generated from the words -->\n", "<!-- end: generated from the words -->"];

/// A valid bed with every key.
const VALID: &str = r#"name = "good"
region = "westeurope"
size = "Standard_DS4_v2"
type = "two-nic"
subscription = "22222222-2222-2222-2222-222222222222"
zone = 1
image = "debian-12"
placement = "proximity-group"
families = "dual-stack"
subnets = 2
ssh_key = "~/.ssh/id_ed25519.pub"
ssh_from = ["192.0.2.1/32", "198.51.100.0/24"]
spot = true
shutdown = "20:30"
budget = "20 EUR"

[sysctls]
"net.core.rmem_max" = "134217728"
"net.ipv4.tcp_rmem" = "4096 131072 67108864"
"#;

fn bed(text: &str) -> Bed {
    parse(text, "b").unwrap_or_else(|errors| panic!("{errors}"))
}

/// The problems of the valid bed with another text in place of one.
fn problems(valid: &str, invalid: &str) -> String {
    assert!(VALID.matches(valid).count() == 1, "{valid:?} is not there once");
    parse(&VALID.replace(valid, invalid), "b").expect_err(invalid).to_string()
}

#[test]
fn every_key_is_read() {
    let bed = bed(VALID);
    assert_eq!((bed.name.as_str(), bed.region.as_str()), ("good", "westeurope"));
    assert_eq!(
        (bed.kind, bed.image, bed.placement),
        (BedType::TwoNic, Image::Debian12, Placement::ProximityGroup)
    );
    assert_eq!((bed.size.vcpus, bed.zone, bed.subnets, bed.is_spot), (8, Some(1), 2, true));
    let prefixes: Vec<String> = bed.ssh_from.iter().map(ToString::to_string).collect();
    assert_eq!(prefixes, ["192.0.2.1/32", "198.51.100.0/24"]);
    assert_eq!(bed.shutdown.map(|time| time.to_string()).as_deref(), Some("20:30"));
    assert_eq!(bed.budget.as_ref().map(ToString::to_string).as_deref(), Some("20.00 EUR"));
    assert_eq!(bed.subscription.as_deref(), Some("22222222-2222-2222-2222-222222222222"));
    assert_eq!(bed.group(), "netduel-good");
    assert_eq!(bed.sysctls.line(), "net.core.rmem_max 134217728; net.ipv4.tcp_rmem 4096 131072 67108864");
}

#[test]
fn defaults_are_safe() {
    let bed = bed("name = \"x\"\nregion = \"westeurope\"\nsize = \"standard_ds4_v2\"\n");
    assert_eq!((bed.kind, bed.image, bed.placement), (BedType::TwoNic, Image::Ubuntu2404, Placement::None));
    assert!(bed.shutdown.is_some() && bed.ssh_from.is_empty() && !bed.is_spot && bed.budget.is_none());
    assert_eq!((bed.size.name.as_str(), bed.ssh_key.as_str()), ("Standard_DS4_v2", Bed::SSH_KEY));
    assert_eq!(bed.sysctls, Sysctls::default());
}

/// A part of the valid bed, what takes its place, and how the problem is reported.
const RULES: &[(&str, &str, &str)] = &[
    (
        "name = \"good\"",
        "name = \"Good\"",
        "b:1: name: \"Good\" is not the name of a bed; 1 to 24 of a-z 0-9 -",
    ),
    ("name = \"good\"", "name = \"x;reboot\"", "b:1: name: \"x;reboot\" is not the name"),
    ("name = \"good\"", "name = \"$(id)\"", "b:1: name: "),
    ("name = \"good\"", "name = \"-x\"", "b:1: name: "),
    (
        "name = \"good\"",
        "nmae = \"good\"\nname = \"x\"",
        "b:1: nmae: is not a key that a bed has here; did you mean `name`?",
    ),
    ("\"westeurope\"", "\"West Europe\"", "b:2: region: \"West Europe\" is not the name of a region"),
    ("\"westeurope\"", "\"--debug\"", "b:2: region: "),
    (
        "Standard_DS4_v2",
        "Standard_DS4_v3",
        "b:3: size: is \"Standard_DS4_v3\", which is not in the table of sizes; did you mean",
    ),
    (
        "Standard_DS4_v2",
        "Standard_D8s_v5",
        "b:3: size: is Standard_D8s_v5, which requires accelerated networking: a bed \"two-nic\" has no arm without it there; sizes with both: Standard_DS4_v2, ",
    ),
    (
        "\"two-nic\"",
        "\"two-nics\"",
        "b:4: type: is the text \"two-nics\"; did you mean \"two-nic\"? allowed: ",
    ),
    ("22222222-2222-2222-2222-222222222222", "-x", "b:5: subscription: \"-x\" is not a subscription; "),
    ("zone = 1", "zone = 4", "b:6: zone: is 4; 1 to 3 is allowed"),
    ("zone = 1", "zone = \"1\"", "b:6: zone: is the text \"1\"; a whole number"),
    (
        "debian-12",
        "windows-server-2022",
        "b:7: image: is \"windows-server-2022\", and netduel has no agent for Windows yet; choose a Linux image",
    ),
    (
        "proximity-group",
        "isolated-size",
        "b:8: placement: is \"isolated-size\", but VMs of Standard_DS4_v2 share their host; sizes with a host to themselves: Standard_DS15_v2, Standard_E192ids_v6",
    ),
    ("subnets = 2", "subnets = 0", "b:10: subnets: is 0; 1 to 2 is allowed"),
    ("~/.ssh/id_ed25519.pub", "", "b:11: ssh_key: \"\" is not a file; "),
    (
        "192.0.2.1/32",
        "0.0.0.0/0",
        "b:12: ssh_from, element 1: 0.0.0.0/0 opens ssh to too many addresses; at least /16",
    ),
    ("198.51.100.0/24", "*", "b:12: ssh_from, element 2: \"*\" is no address prefix; write ADDRESS/LENGTH"),
    (
        "198.51.100.0/24",
        "2001:db8::1/128",
        "b:12: ssh_from, element 2: 2001:db8::1/128 is an IPv6 prefix, and all public addresses of a bed are IPv4; write the IPv4 address",
    ),
    (
        "198.51.100.0/24",
        "192.168.1.5/32",
        "b:12: ssh_from, element 2: 192.168.1.5/32 is not public, and Azure sees only public addresses as sources of ssh; write the IPv4 address",
    ),
    ("spot = true", "spot = 1", "b:13: spot: is the number 1; `true` or `false`"),
    ("20:30", "24:00", "b:14: shutdown: \"24:00\" is no time of day; write HH:MM"),
    ("20 EUR", "twenty", "b:15: budget: \"twenty\" is no amount of money; write a number above 0"),
];

#[test]
fn every_rule_is_reported_at_its_line_and_key_with_the_remedy() {
    for (valid, invalid, expected) in RULES {
        let reported = problems(valid, invalid);
        assert_eq!(reported.lines().count(), 1, "{reported}");
        assert!(reported.starts_with(expected), "{reported}\nis not\n{expected}");
    }
}

#[test]
fn sysctls_that_a_bed_cannot_have_are_refused_at_their_lines() {
    let (key, value) = ("\"net.core.rmem_max\"", "\"134217728\"");
    let long = format!("\"{}\"", "1 ".repeat(200).trim_end());
    for (valid, invalid, expected) in [
        (
            key,
            "\"rmem_max\"",
            "b:18: sysctls.rmem_max: is not the name of a sysctl; write its dotted name in quotes",
        ),
        (key, "\"net.core.rmem max\"", "b:18: sysctls.\"net.core.rmem max\": is not the name of a sysctl; "),
        (key, "\"../../etc/passwd\"", "b:18: sysctls.\"../../etc/passwd\": is not the name of a sysctl; "),
        (
            key,
            "net.core.rmem_max",
            "b:18: sysctls.net: is a table; write the whole name in quotes, for example \"net.",
        ),
        (
            key,
            "\"kernel.core_pattern\"",
            "b:18: sysctls.\"kernel.core_pattern\": is no sysctl of the network; a bed sets net.* and `kernel.nmi_watchdog`, ",
        ),
        (
            key,
            "\"net.ipv4.conf.eth1.rp_filter\"",
            "b:18: sysctls.\"net.ipv4.conf.eth1.rp_filter\": is a sysctl of one interface, ",
        ),
        (
            key,
            "\"net.ipv6.conf.all.disable_ipv6\"",
            "b:18: sysctls.\"net.ipv6.conf.all.disable_ipv6\": changes more than its value: with 1 the kernel removes IPv6",
        ),
        (
            value,
            "134217728",
            "b:18: sysctls.\"net.core.rmem_max\": is the number 134217728; a text in quotes is needed",
        ),
        (
            value,
            "\"\"",
            "b:18: sysctls.\"net.core.rmem_max\": \"\" is not the value of a sysctl; letters, digits, ",
        ),
        (
            value,
            "\"1; reboot\"",
            "b:18: sysctls.\"net.core.rmem_max\": \"1; reboot\" is not the value of a sysctl; ",
        ),
        (value, "\"$(id)\"", "b:18: sysctls.\"net.core.rmem_max\": \"$(id)\" is not the value of a sysctl; "),
        (
            value,
            "\"1\\nkernel.x = 1\"",
            "b:18: sysctls.\"net.core.rmem_max\": \"1\\nkernel.x = 1\" is not the value",
        ),
        (value, long.as_str(), "b:17: sysctls: has 457 bytes of names and values; at most 256 are allowed"),
    ] {
        let reported = problems(valid, invalid);
        assert_eq!(reported.lines().count(), 1, "{reported}");
        assert!(reported.starts_with(expected), "{reported}\nis not\n{expected}");
    }
    let text = VALID.replace("\n[sysctls]", "sysctls = 1\n[x]");
    let reported = parse(&text, "b").expect_err("no table").to_string();
    assert!(reported.contains("b:16: sysctls: is the number 1; a table is needed"), "{reported}");
}

#[test]
fn size_with_two_vcpus_is_refused_where_a_vm_has_two_accelerated_nics() {
    let text = "name = \"x\"\nregion = \"westeurope\"\nsize = \"Standard_D2s_v5\"\ntype = \"dpdk\"\n";
    let reported = parse(text, "b").expect_err("both NICs are accelerated").to_string();
    let expected = "b:3: size: is Standard_D2s_v5, which allows accelerated networking on 1 NIC, \
                    and a bed \"dpdk\" has it on 2 there; sizes that fit: Standard_DS2_v2, ";
    assert!(reported.starts_with(expected), "{reported}\nis not\n{expected}");
    for fitting in ["Standard_D4s_v5", "Standard_D2s_v4"] {
        bed(&text.replace("Standard_D2s_v5", fitting));
    }
}

#[test]
fn availability_set_has_neither_zone_nor_spot_vms() {
    let reported = problems("proximity-group", "availability-set");
    let lines: Vec<&str> = reported.lines().collect();
    assert_eq!(lines.len(), 2, "{reported}");
    assert!(lines[0].contains("remove `zone`") && lines[1].contains("remove `spot`"), "{reported}");
}

#[test]
fn every_size_has_enough_nics_for_every_type() {
    for size in netduel_model::size::table() {
        assert!(BedType::ALL.iter().all(|kind| size.nics >= bed::layout::nics_min(*kind)), "{size:?}");
    }
}

#[test]
fn every_problem_is_reported_at_once_in_the_order_of_the_lines() {
    let text = VALID.replace("\"good\"", "\"\"").replace("zone = 1", "zone = 9").replace("20:30", "now");
    let errors = parse(&text, "b").expect_err("three problems");
    let places: Vec<(usize, &str)> =
        errors.problems.iter().map(|problem| (problem.line, problem.key.as_str())).collect();
    assert_eq!(places, [(1, "name"), (6, "zone"), (14, "shutdown")]);
    let errors = parse("", "empty.toml").expect_err("nothing").to_string();
    for key in ["name", "region", "size"] {
        assert!(errors.contains(&format!("empty.toml:1: {key}: is missing; add {key} = \"")), "{errors}");
    }
    let errors = parse("name = \n", "b").expect_err("no TOML").to_string();
    assert!(errors.starts_with("b:1: this is not TOML: "), "{errors}");
}

#[test]
fn there_is_a_bed_of_every_type_named_after_its_file() {
    let mut kinds = Vec::new();
    for entry in std::fs::read_dir(project_file("beds")).expect("the folder is there") {
        let file = entry.expect("an entry").file_name().into_string().expect("a plain name");
        let text = std::fs::read_to_string(project_file(&format!("beds/{file}"))).expect("the bed is there");
        let bed = parse(&text, &file).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(format!("{}.toml", bed.name), file);
        assert!(Layout::of(&bed).vms.len() >= 2);
        kinds.push(bed.kind);
    }
    for kind in BedType::ALL {
        assert!(kinds.contains(&kind), "{kind:?} has no bed");
    }
}

#[test]
fn written_bed_is_read_as_the_same_bed_without_the_keys_of_its_user() {
    let shipped = BedType::ALL.map(|kind| {
        let file = format!("beds/{}.toml", netduel_model::word::word(&kind));
        std::fs::read_to_string(project_file(&file)).expect("the bed is there")
    });
    for text in shipped.into_iter().chain([VALID.to_owned(), VALID.replace("20 EUR", "0.0276 USD")]) {
        let before = bed(&text);
        let written = before.file_text();
        let after = bed(&written);
        assert_eq!(Layout::of(&after), Layout::of(&before), "{written}");
        let Bed { subscription, ssh_key, ssh_from, .. } = before.clone();
        assert_eq!(Bed { subscription, ssh_key, ssh_from, ..after }, before, "{written}");
        assert!(!written.contains("ssh") && !written.contains("subscription"), "{written}");
        assert_eq!(bed::check(&before.spec(), "tags").map(|bed| bed.spec()), Ok(before.spec()));
    }
}

#[test]
fn every_bed_of_the_guide_is_valid() {
    let guide = std::fs::read_to_string(project_file("docs/beds.md")).expect("the guide is there");
    let beds: Vec<&str> =
        guide.split("```toml\n").skip(1).map(|block| block.split("```").next().unwrap_or_default()).collect();
    // The others are parts of plans.
    let beds: Vec<&str> = beds.into_iter().filter(|block| block.contains("region = ")).collect();
    assert!(!beds.is_empty(), "the guide shows no bed");
    for text in beds {
        bed(text);
    }
}

#[test]
fn the_committed_schema_is_current() {
    let schema = serde_json::to_string_pretty(&bed::schema()).expect("a schema is JSON");
    assert_current("docs/bed-file.schema.json", &(schema + "\n"));
}

#[test]
fn the_generated_tables_of_the_guide_are_current() {
    let guide = std::fs::read_to_string(project_file("docs/beds.md")).expect("the guide is there");
    let guide = with_text_between(&guide, WORDS, &words());
    let keys = reference(&bed::schema(), &[("The bed", None)]);
    assert_current("docs/beds.md", &with_text_between(&guide, KEYS, &keys));
}

/// The words of each key that has only words, with their meanings.
fn words() -> String {
    let schema = bed::schema();
    let author = Author { definitions: &schema["$defs"] };
    let mut text = String::new();
    for (key, definition) in
        [("type", "BedType"), ("image", "Image"), ("placement", "BedPlacement"), ("families", "Families")]
    {
        let words = markdown::branches(&schema["$defs"][definition]).expect("every word is described");
        let rows = words.iter().map(|word| vec![markdown::kind(word, &author), markdown::description(word)]);
        text.push_str(&["\n### `", key, "`\n\n", &markdown::table(&["word", "meaning"], rows)].concat());
    }
    text + "\n"
}

/// Pieces that are put into beds: values of other types, limits, broken syntax, characters of shells.
const PIECES: [&str; 16] = [
    "0",
    "-1",
    "99999999999999999999",
    "nan",
    "\"\"",
    "[]",
    "{}",
    "[x]\n",
    "true",
    "'",
    "\0",
    "\u{feff}",
    "$(id)",
    "; rm",
    "\"--debug\"",
    "ä🦀",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is done to a bed, its texts that become arguments and names have plain characters only, or it is refused.
    #[test]
    fn mutated_bed_is_plain_or_refused(cuts in prop::collection::vec((0..500_usize, 0..6_usize, 0..PIECES.len()), 1..4)) {
        let mut text: Vec<char> = VALID.chars().collect();
        for (at, removed, piece) in cuts {
            let at = at.min(text.len());
            let end = (at + removed).min(text.len());
            drop(text.splice(at..end, PIECES[piece].chars()));
        }
        let text: String = text.into_iter().collect();
        match parse(&text, "b") {
            Ok(bed) => {
                let is_plain = |text: &str| {
                    text.chars().all(|c| c.is_ascii_alphanumeric() || " ._-()".contains(c)) && !text.starts_with('-')
                };
                let subscription = bed.subscription.as_deref().unwrap_or("x");
                for text in [bed.name.as_str(), &bed.region, &bed.size.name, subscription] {
                    prop_assert!(is_plain(text) && !text.is_empty(), "{text:?}");
                }
                prop_assert!(Layout::of(&bed).nics().all(|nic| is_plain(&nic.name) && is_plain(&nic.subnet)));
                for (name, value) in &bed.sysctls.0 {
                    let value = value.replace([',', '-'], "");
                    prop_assert!(is_plain(name) && is_plain(&value), "{name} = {value:?}");
                }
            }
            Err(errors) => prop_assert!(!errors.problems.is_empty() && !errors.to_string().is_empty()),
        }
    }
}
