//! Tests of pseudonyms in texts and values.
use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::bed::{BedNic, BedVm, VmFacts};
use crate::ids::{ArmName, HostName, RunId};
use crate::plan::{Launch, SshHost, TreatmentAction};
use crate::publication::Publication;
use crate::snapshot::{HostSnapshot, Interface};

fn knowing(host: &HostSnapshot, ssh: &SshHost) -> Redactor {
    let mut redactor = Redactor::default();
    redactor.learn(host).unwrap();
    redactor.learn(&Launch::Ssh(ssh.clone())).unwrap();
    redactor
}

fn host() -> HostSnapshot {
    let interface = Interface {
        name: "enx00155d3a1b2c".to_owned(),
        mac: Some("00:15:5D:3a:1b:2c".to_owned()),
        addresses: vec!["10.1.2.3".parse().unwrap(), "fd12::7".parse().unwrap()],
        ..Interface::default()
    };
    HostSnapshot {
        hostname: Some("Db-Prod7.corp.example.net".to_owned()),
        boot_id: Some("6f9619ff-8b86-d011-b42d-00c04fc964ff".to_owned()),
        kernel: Some("6.1.0.9-corp".to_owned()),
        interfaces: vec![interface],
        ..HostSnapshot::default()
    }
}

fn ssh() -> SshHost {
    SshHost { user: Some("mallory".to_owned()), ..SshHost::of("db-prod7") }
}

#[test]
fn fields_have_pseudonyms_of_their_kind() {
    let mut redactor = knowing(&host(), &ssh());
    let shown = redactor.redact(&host()).unwrap();
    let interface = &shown.interfaces[0];
    assert_eq!(shown.hostname.as_deref(), Some("host-1"));
    assert_eq!(shown.kernel.as_deref(), Some("6.1.0.9-corp"), "a version is no address");
    assert_eq!(shown.boot_id.as_deref(), Some("00000000-0000-4000-8000-000000000001"));
    assert_eq!(interface.name, "enx020000000001");
    assert_eq!(interface.mac.as_deref(), Some("02:00:00:00:00:01"));
    assert_eq!(
        interface.addresses,
        ["192.0.2.1".parse::<std::net::IpAddr>().unwrap(), "2001:db8::1".parse().unwrap()]
    );
    assert_eq!(redactor.redact(&ssh()).unwrap().user.as_deref(), Some("user-1"));
    assert_eq!(redactor.redact(&ssh()).unwrap().host, "host-1", "a host with and without its domain is one");
}

#[test]
fn names_that_underscores_or_foreign_letters_join_to_words_are_replaced() {
    let mut redactor = knowing(&host(), &ssh());
    for (text, shown) in [
        ("DB-Prod7_arm arm_db-prod7 a_db-prod7_b", "host-1_arm arm_host-1 a_host-1_b"),
        ("mallory_x of x_mallory, mallory2, notmallory", "user-1_x of x_user-1, mallory2, notmallory"),
        ("mac_00:15:5d:3a:1b:2c_1", "mac_02:00:00:00:00:01_1"),
        ("id_6f9619ff-8b86-d011-b42d-00c04fc964ff_disk", "id_00000000-0000-4000-8000-000000000001_disk"),
        ("日10.1.2.3 10.1.2.3é db-prod7é", "日192.0.2.1 192.0.2.1é host-1é"),
    ] {
        assert_eq!(redactor.text(text), shown);
    }
}

#[test]
fn texts_have_the_pseudonyms_of_the_fields() {
    let mut redactor = knowing(&host(), &ssh());
    redactor.redact(&host()).unwrap();
    for (text, expected) in [
        ("failed to reach 10.1.2.3:5210.", "failed to reach 192.0.2.1:5210."),
        ("[fd12::7]:5210, fd12:0::7", "[2001:db8::1]:5210, 2001:db8::1"),
        ("10.1.2.0/24 and ::1 and 127.0.0.1", "192.0.2.2/24 and ::1 and 127.0.0.1"),
        ("mac 00-15-5d-3A-1B-2C", "mac 02-00-00-00-00-01"),
        ("mac 0015.5d3A.1b2c, not 10.11.2.3.4", "mac 0200.0000.0001, not 10.11.2.3.4"),
        ("0015.5d3A.1b2c.. not 0015.5d3A.1b2c..a", "0200.0000.0001.. not 0015.5d3A.1b2c..a"),
        ("new.corp.example.net..., x.new.corp.example.net", "host-2..., host-3"),
        ("backup_10.1.2.3_4 of 10.1.2.3_old", "backup_192.0.2.1_4 of 192.0.2.1_old"),
        ("DB-PROD7: mallory@db-prod7, new.corp.example.net", "host-1: user-1@host-1, host-2"),
        ("/Users/mallory/x and --out=/Users/eve/y", "/Users/user-1/x and --out=/Users/user-2/y"),
        ("mallory2 remains, as db-prod70", "mallory2 remains, as db-prod70"),
        ("~mallory/x, ~10/s and ~5 %", "~user-1/x, ~10/s and ~5 %"),
        ("id 6f9619ff8b86d011b42d00c04fc964ff", "id 00000000-0000-4000-8000-000000000001"),
        ("vm 6F9619FF-8b86-d011-b42d-00c04fc964ff.", "vm 00000000-0000-4000-8000-000000000001."),
        ("mlx5_comp3@pci:0000:03:00.0 veth0@if7", "mlx5_comp3@pci:0000:03:00.0 veth0@if7"),
        ("std::fs at 12:34:56, v1.2.3.4.5, 0000:00:05.0", "std::fs at 12:34:56, v1.2.3.4.5, 0000:00:05.0"),
        (
            "/subscriptions/x/resourceGroups/Secret-RG/providers",
            "/subscriptions/x/resourceGroups/resource-1/providers",
        ),
        ("äöü €", "äöü €"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
}

#[test]
fn names_that_only_messages_have_are_replaced_as_those_of_resources() {
    let mut redactor = Redactor::default();
    for name in ["Contoso Production", "acme7", "vm1"] {
        redactor.learn_resource(name);
    }
    let text = "down ACME7 (netduel-acme7, acme70, vm1) --subscription 'contoso production'";
    let shown = "down resource-2 (netduel-resource-2, acme70, vm1) --subscription 'resource-1'";
    assert_eq!(redactor.text(text), shown);
}

#[test]
fn names_of_resources_have_pseudonyms_but_those_of_every_bed() {
    let nics = ["billing-nic", "vm1-accelerated"];
    let vm = BedVm {
        name: "vm1".to_owned(),
        user: Some("mallory".to_owned()),
        claimed: VmFacts { placement: Some("payments".to_owned()), ..VmFacts::default() },
        nics: nics.map(|name| BedNic { name: name.to_owned(), ..BedNic::default() }).to_vec(),
        ..BedVm::default()
    };
    let switch = TreatmentAction::AzureNic {
        nic: "Billing-NIC".to_owned(),
        resource_group: Some("hp".to_owned()),
        accelerated: true,
    };
    let mut redactor = Redactor::default();
    redactor.learn(&vm).unwrap();
    redactor.learn(&switch).unwrap();
    let shown = redactor.redact(&vm).unwrap();
    assert_eq!((shown.name.as_str(), shown.user.as_deref()), ("vm1", Some("user-1")));
    assert_eq!(shown.claimed.placement.as_deref(), Some("resource-1"));
    assert_eq!(shown.nics.iter().map(|nic| nic.name.as_str()).collect::<Vec<_>>(), ["resource-2", nics[1]]);
    let TreatmentAction::AzureNic { nic, resource_group, .. } = redactor.redact(&switch).unwrap() else {
        panic!("another treatment")
    };
    assert_eq!((nic.as_str(), resource_group.as_deref()), ("resource-2", Some("resource-3")));
    assert_eq!(
        redactor.text("--name billing-nic --ppg payments, vm1-accelerated"),
        "--name resource-2 --ppg resource-1, vm1-accelerated"
    );
}

#[test]
fn author_and_organization_are_replaced_as_whole_words() {
    let mut redactor = Redactor::default();
    redactor.learn_phrase("organization", "net");
    redactor.learn_phrase("organization", "例の会社");
    redactor.learn_phrase("author", "Ann A.");
    for (text, expected) in [
        ("netduel of net, in a subnet", "netduel of organization-1, in a subnet"),
        ("net's (net) net-b", "organization-1's (organization-1) organization-1-b"),
        (r"two lines:\nnet asks", r"two lines:\norganization-1 asks"),
        ("Ann A., Ann A.and JoAnn A.", "author-1, author-1and JoAnn A."),
        ("これは例の会社です", "これはorganization-2です"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
    let mut redactor = Redactor::default();
    redactor.learn_phrase("organization", "net net");
    assert_eq!(redactor.text("subnet net net"), "subnet organization-1");
}

#[test]
fn pseudonym_of_an_author_stays_and_no_other_author_has_it() {
    let mut redactor = Redactor::default();
    for name in ["author-2", "author-friendly press", "Bob"] {
        redactor.learn_phrase("author", name);
    }
    assert_eq!(redactor.text("author-2 at Author-Friendly Press, Bob"), "author-2 at author-3, author-4");
}

#[test]
fn pseudonyms_of_hosts_are_exchanged_where_they_are_words() {
    let other = |pseudonym: &str| match pseudonym {
        "host-1" => Some("host-2".to_owned()),
        "host-2" => Some("host-1".to_owned()),
        _ => None,
    };
    for (text, expected) in [
        ("host-1 or user-1@host-2:22, by_host-1", "host-2 or user-1@host-1:22, by_host-2"),
        ("host-11 host-1a ghost-1 host- host-3", "host-11 host-1a ghost-1 host- host-3"),
        ("host-", "host-"),
    ] {
        assert_eq!(with_host_pseudonyms_replaced(text, other), expected, "{text}");
    }
}

#[test]
fn names_are_replaced_whatever_the_case_of_their_letters() {
    let mut redactor = Redactor::default();
    redactor.learn_phrase("author", "Jörg Straße");
    redactor.learn_phrase("author", "JÖRG STRASSE");
    redactor.learn_phrase("organization", "Ångström Networks");
    redactor.learn_phrase("organization", "ΟΔΟΣ");
    redactor.named(Meaning::User, "Björn");
    for (text, expected) in [
        ("by JÖRG STRASSE, jörg straße", "by author-1, author-1"),
        ("ÅNGSTRÖM NETWORKS' ångström networksx", "organization-1' ångström networksx"),
        ("οδος, Οδοσ: BJÖRN, björn2", "organization-2, organization-2: user-1, björn2"),
        ("jörg stra ße", "jörg stra ße"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
    let publication = Publication { author: Some("jÖRG strasse".to_owned()), ..Publication::default() };
    assert_eq!(redactor.redact(&publication).unwrap().author.as_deref(), Some("author-1"));
}

#[test]
fn names_too_short_to_be_sought_in_texts_are_replaced_where_they_are_values() {
    let publication = Publication {
        author: Some("Ö".to_owned()),
        organization: Some("HP".to_owned()),
        ..Publication::default()
    };
    let ssh = SshHost { user: Some("jo".to_owned()), ..SshHost::of("db") };
    let mut redactor = Redactor::default();
    redactor.learn(&publication).unwrap();
    redactor.learn(&Launch::Ssh(ssh)).unwrap();
    let shown = redactor.redact(&publication).unwrap();
    assert_eq!(shown.author.as_deref(), Some("author-1"));
    assert_eq!(shown.organization.as_deref(), Some("organization-1"));
    for (text, expected) in [
        ("organization = \"HP\"\nname = \"HP\"", "organization = \"organization-1\"\nname = \"HP\""),
        ("report = { author='Ö' }", "report = { author='author-1' }"),
        ("\"host\" = \t\"db\" # db", "\"host\" = \t\"host-1\" # db"),
        ("serve = \"db:5210\"\nuser = \"jo\"", "serve = \"host-1:5210\"\nuser = \"user-1\""),
        ("user = \"jo and host = 'db", "user = \"jo and host = 'db"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
    for (word, expected) in [
        ("Ö", "author-1"),
        ("--organization=HP", "--organization=organization-1"),
        ("db:5210", "host-1:5210"),
        ("ssh:db", "ssh:host-1"),
        ("ssh:jo@db", "ssh:user-1@host-1"),
        ("HPs", "HPs"),
        ("", ""),
    ] {
        assert_eq!(redactor.argument(word), expected, "{word}");
    }
}

#[test]
fn lab_and_guest_of_an_argument_are_replaced() {
    let mut redactor = Redactor::default();
    assert_eq!(redactor.host("lab:payroll/vault7"), "lab:host-1/host-2");
    assert_eq!(redactor.host("lab:payroll/guest8"), "lab:host-1/host-3");
    // Labs have this name unless they are given another one.
    assert_eq!(redactor.host("lab:local/vault7"), "lab:local/host-2");
    assert_eq!(redactor.text("no lab payroll; up: local (vault7)"), "no lab host-1; up: local (host-2)");
}

/// A call for each separator, within that of the one before, would end the program without a message.
#[test]
fn host_names_of_nothing_but_separators_are_redacted() {
    for part in ["@", "ssh:", ":1"] {
        let text = part.repeat(20_000);
        let mut redactor = knowing(&host(), &ssh());
        assert!(!redactor.host(&text).is_empty(), "{part}");
        assert!(!redactor.text(&format!("{text}corp.example.net")).is_empty(), "{part}");
    }
}

/// A search of the rest of the word from each of its parts would take the square of its length.
#[test]
fn word_of_very_many_parts_is_redacted() {
    for (part, rest) in [("a.", "@pci"), ("a-", "a"), ("aa-", "a"), ("0015.5d3a.1b2c.", "a")] {
        let text = format!("{}{rest}{}", part.repeat(50_000), ".".repeat(50_000));
        let mut redactor = knowing(&host(), &ssh());
        text::learn(&text, &mut redactor.pseudonyms);
        assert_eq!(redactor.text(&text), text, "{part}");
    }
}

/// Each part of a user's name may be a name of a user elsewhere. To keep all parts of a very long one takes the square of its length.
#[test]
fn parts_of_a_very_long_login_are_not_learned() {
    let mut redactor = Redactor::default();
    let text = format!("{}c@db-prod7", "b.".repeat(1000));
    text::learn(&text, &mut redactor.pseudonyms);
    // `c` and the parts of 3, 5 and up to 319 bytes.
    assert_eq!(redactor.text("~eve/x"), "~user-161/x");
    assert_eq!(redactor.text("db-prod7"), "host-1");
    assert_eq!(redactor.text(&text), "user-162@host-1", "its form still shows it");
}

#[test]
fn longest_of_the_names_that_begin_alike_is_replaced() {
    let mut redactor = Redactor::default();
    for user in ["anna", "anna-maria", "anna-marie", "annabel"] {
        redactor.named(Meaning::User, user);
    }
    for (text, expected) in [
        ("anna, anna-maria, Anna-Marie: annabel", "user-1, user-2, user-3: user-4"),
        ("annabella, anna-mari and anna-maria-x", "annabella, user-1-mari and user-2-x"),
        ("ann and an", "ann and an"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
}

#[test]
fn author_that_no_plan_can_have_is_left_out() {
    let long = "a".repeat(TEXT_LEN_MAX + 1);
    let mut redactor = Redactor::default();
    redactor.learn_phrase("author", &long);
    assert_eq!(redactor.text(&long), long);
    assert!(is_too_long(&long) && !is_too_long(&long[1..]));
}

#[test]
fn redacted_value_is_the_same_when_it_is_redacted_again() {
    let mut redactor = knowing(&host(), &ssh());
    let once = redactor.redact(&host()).unwrap();
    let mut again = knowing(&once, &ssh());
    assert_eq!(again.redact(&once).unwrap(), once);
}

#[test]
fn text_with_pseudonyms_is_the_same_when_it_is_redacted_again() {
    let mut redactor = knowing(&host(), &ssh());
    redactor.redact(&host()).unwrap();
    let text = "mallory@db-prod7: 10.1.2.3:5210 of 10.1.2.3/24, [fd12::7]:1, FD12:0::7/64, \
                fe80::215:5dff:fe3a:1b2c%3, ::ffff:10.1.2.3, 00:15:5d:3a:1b:2c, mallory@fd12::7";
    let shown = redactor.text(text);
    assert_eq!(
        shown,
        "user-1@host-1: 192.0.2.1:5210 of 192.0.2.1/24, [2001:db8::1]:1, 2001:db8::1/64, fe80::2%3, \
         ::ffff:192.0.2.1, 02:00:00:00:00:01, user-1@2001:db8::1"
    );
    assert_eq!(redactor.text(&shown), shown);
}

#[test]
fn host_behind_a_user_is_replaced_as_a_whole() {
    let mut redactor = knowing(&host(), &ssh());
    redactor.redact(&host()).unwrap();
    for (text, expected) in [
        ("eve@fd12::7, eve@[fd12::7]:22", "user-2@2001:db8::1, user-2@[2001:db8::1]:22"),
        ("eve@10.1.2.3:22", "user-2@192.0.2.1:22"),
        ("eve@10.1.2.3.nip.example or eve@10.1.2.3-web", "user-2@host-2 or user-2@host-3"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text}");
    }
}

#[test]
fn address_in_the_input_that_is_a_pseudonym_is_not_given_to_another_one() {
    let interface = |mac: &str, addresses: [&str; 3]| Interface {
        mac: Some(mac.to_owned()),
        addresses: addresses.map(|address| address.parse().unwrap()).to_vec(),
        ..Interface::default()
    };
    let interfaces = [
        interface("02:00:00:00:00:01", ["192.0.2.1", "2001:db8::1", "fe80::2"]),
        interface("00:15:5d:3a:1b:2c", ["10.1.2.3", "fd12::7", "fe80::215:5dff:fe3a:1b2c"]),
    ];
    let mut redactor = Redactor::default();
    redactor.learn(&interfaces).unwrap();
    let shown = redactor.redact(&interfaces).unwrap();
    assert_eq!(shown[0], interfaces[0]);
    assert_eq!(shown[1], interface("02:00:00:00:00:02", ["192.0.2.2", "2001:db8::2", "fe80::3"]));
}

#[test]
fn name_of_a_run_has_no_part_of_a_name_in_that_of_its_plan() {
    let mut plan = crate::plan::parse(include_str!("../../../../plans/demo.toml"), "demo.toml").unwrap();
    for (name, id, shown) in [
        ("path-of-the-db-prod7", "path-of-the-db-prod", "path-of-the-host-1"),
        ("from-mallory-of-db-prod7-to-b", "from-mallory-of-db-", "from-user-1-of-host"),
        ("db-prod7.corp.example.net-fast", "db-prod7.corp.examp", "host-1-fast"),
        ("db-prod7", "db-prod7", "host-1"),
        ("demo", "demo", "demo"),
    ] {
        plan.name = name.to_owned();
        let mut redactor = knowing(&host(), &ssh());
        redactor.learn(&plan).unwrap();
        let [id, shown] = [id, shown].map(|start| format!("{start}-20261121-104501-7f3a"));
        assert_eq!(redactor.redact(&RunId::new(&*id).unwrap()).unwrap().as_str(), shown);
        let command = |id: &str| format!("netduel report {id}; /store/{id}.netduel");
        assert_eq!(redactor.text(&command(&id)), command(&shown));
        assert_eq!(redactor.text(&command(&shown)), command(&shown));
    }
}

#[test]
fn pseudonym_in_the_input_is_not_given_to_another_name() {
    let mut redactor = Redactor::default();
    let names = ["host-1", "secret-db"].map(|name| HostName::new(name).unwrap());
    redactor.learn(&names).unwrap();
    assert_eq!(redactor.redact(&names).unwrap().map(|name| name.to_string()), ["host-1", "host-2"]);
}

#[test]
fn hosts_of_several_domains_with_one_first_label_stay_distinct() {
    let mut redactor = Redactor::default();
    let hosts = ["srv.east", "srv.west", "srv.east.example.net", "srv"];
    assert_eq!(hosts.map(|host| redactor.host(host)), ["host-1", "host-2", "host-1", "host-1"]);
    assert_eq!(redactor.text("srv.west and srv.east, srv"), "host-2 and host-1, host-1");
}

#[test]
fn hosts_of_a_plan_have_pseudonyms_of_their_own() {
    for names in [["srv", "srv.east", "srv.west"], ["srv", "srv.east", "SRV"], ["srv.a", "srv.a.b", "host-1"]]
    {
        let names = names.map(|name| HostName::new(name).unwrap());
        let mut redactor = Redactor::default();
        redactor.learn(&names).unwrap();
        let shown: std::collections::BTreeSet<_> = redactor.redact(&names).unwrap().into_iter().collect();
        assert_eq!(shown.len(), 3, "{names:?} are {shown:?}");
        assert!(shown.iter().all(|name| is_host_pseudonym(name.as_str())), "{shown:?}");
    }
}

#[test]
fn arms_stay_distinct_when_their_names_are_replaced_and_cut() {
    let mut redactor = Redactor::default();
    redactor.learn(&HostSnapshot { hostname: Some("web".to_owned()), ..HostSnapshot::default() }).unwrap();
    let long = format!("web-{}", "x".repeat(NAME_LEN_MAX - "web-".len() - 1));
    let names = [format!("{long}a"), format!("{long}b"), "web".to_owned(), "WEB".to_owned()];
    let arms = names.map(|name| ArmName::new(name).unwrap());
    let shown = redactor.redact(&arms).unwrap();
    let distinct: std::collections::BTreeSet<_> = shown.iter().collect();
    assert_eq!(distinct.len(), arms.len(), "{shown:?}");
    assert!(shown.iter().all(|name| !name.as_str().to_lowercase().contains("web")), "{shown:?}");
    assert_eq!(redactor.redact(&arms).unwrap(), shown);
}

#[test]
fn texts_name_arms_as_they_are_shown_where_two_differ_by_the_case_of_a_host() {
    let mut redactor = knowing(&host(), &ssh());
    let arms = ["via-DB-PROD7", "via-db-prod7"].map(|name| ArmName::new(name).unwrap());
    redactor.learn(&arms).unwrap();
    let shown = redactor.redact(&arms).unwrap().map(|arm| arm.to_string());
    assert_eq!(shown, ["via-host-1", "via-host-1-2"]);
    let text = "rr on via-db-prod7, B: via-DB-PROD7 against via-db-prod7. See via-db-prod7.html of db-prod7";
    let expected = "rr on via-host-1-2, B: via-host-1 against via-host-1-2. See via-host-1.html of host-1";
    assert_eq!(redactor.text(text), expected);
    assert_eq!(redactor.text(expected), expected);
}

#[test]
fn name_that_is_a_word_of_the_format_leaves_the_format_readable() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Given {
        hosts: BTreeMap<HostName, Launch>,
        text: String,
    }
    let named = |name: &str| Given {
        hosts: BTreeMap::from([(HostName::new(name).unwrap(), Launch::Netns { name: "x".to_owned() })]),
        text: format!("the {name} failed"),
    };
    let mut redactor = Redactor::default();
    redactor.learn(&named("netns")).unwrap();
    let shown = redactor.redact(&named("netns")).unwrap();
    assert_eq!(shown.hosts.keys().map(HostName::as_str).collect::<Vec<_>>(), ["host-1"]);
    assert_eq!(shown.text, "the netns failed");
}

#[test]
fn names_that_identify_nothing_remain() {
    let mut redactor = Redactor::default();
    let names = ["a", "b"].map(|name| HostName::new(name).unwrap());
    assert_eq!(redactor.redact(&names).unwrap(), names);
    for name in ["client", "server", "localhost", "netduel"] {
        assert_eq!(redactor.host(name), name);
    }
    assert_eq!(redactor.host("ssh:admin@db-prod7:22"), "ssh:user-1@host-1:22");
}

#[test]
fn more_addresses_than_those_for_documentation_stay_distinct() {
    let mut redactor = Redactor::default();
    let shown: std::collections::BTreeSet<String> = (0..2000_u32)
        .map(|n| redactor.text(&std::net::Ipv4Addr::from(0x0a00_0000 + n).to_string()))
        .collect();
    assert_eq!(shown.len(), 2000);
}
