//! Treatments of the provider's resources in plans: their keys, and what is refused.
use netduel_model::plan::spec::PathKind;
use netduel_model::plan::{ResolvedPlan, TreatmentAction, parse};

fn text(treatments: &str) -> String {
    format!(
        "name = \"p\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\naddresses = [\"192.0.2.1\"]\n[hosts.b]\n\
         launch = \"netns\"\nnetns = \"n\"\naddresses = [\"192.0.2.2\"]\n[[arms]]\nname = \"one\"\nclient = \"a\"\nserver = \"b\"\n\
         [[arms]]\nname = \"two\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [\n{treatments}\n]\n\
         [[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n"
    )
}

fn resolved(treatments: &str) -> ResolvedPlan {
    parse(&text(treatments), "p").unwrap_or_else(|errors| panic!("{errors}"))
}

fn refused(treatments: &str) -> String {
    parse(&text(treatments), "p").expect_err(treatments).to_string()
}

#[test]
fn nic_and_placement_are_read_with_their_host() {
    let plan = resolved(
        "{ azure-placement = \"near\", vm = \"vm1\", on = \"client\", resource-group = \"g\" },\n\
         { azure-nic = \"n1\", accelerated = true, on = \"client\", resource-group = \"g\" },\n\
         { azure-nic = \"n2\", accelerated = true, on = \"server\", resource-group = \"g\" },",
    );
    let changes = plan.arms[1].provider_treatments();
    let words: Vec<String> =
        changes.iter().map(|(host, action)| format!("{host}: {}", action.words())).collect();
    assert_eq!(
        words,
        [
            "a: vm1 in the proximity group near",
            "a: accelerated networking of n1 on",
            "b: accelerated networking of n2 on"
        ]
    );
    assert_eq!(plan.arms[1].expect_path, Some(PathKind::Vf));
    assert_eq!(plan.arms[0].expect_path, None);
    let group = Some("g".to_owned());
    assert_eq!(
        changes[2].1,
        TreatmentAction::AzureNic { nic: "n2".to_owned(), resource_group: group, accelerated: true }
    );
}

#[test]
fn switch_of_one_end_expects_no_path() {
    let plan =
        resolved("{ azure-nic = \"n1\", accelerated = true, on = \"client\", resource-group = \"g\" },");
    assert_eq!(plan.arms[1].expect_path, None);
}

#[test]
fn missing_and_foreign_keys_are_named() {
    for (treatments, part) in [
        ("{ azure-nic = \"n\", on = \"client\", resource-group = \"g\" },", "accelerated: is missing"),
        ("{ azure-placement = \"p\", on = \"client\", resource-group = \"g\" },", "vm: is missing"),
        ("{ azure-nic = \"n\", accelerated = true, resource-group = \"g\" },", "does not name the host"),
        (
            "{ azure-nic = \"n\", accelerated = true, on = \"both\", resource-group = \"g\" },",
            "does not name the host",
        ),
        (
            "{ azure-nic = \"n\", accelerated = true, on = \"client\", resource-group = \"g\", interface = \"eth0\" },",
            "interface: has no meaning for `azure-nic`",
        ),
        ("{ azure-nic = \"n\", accelerated = true, on = \"client\" },", "resource-group: is missing"),
        (
            "{ mtu = 1400, interface = \"eth0\", resource-group = \"g\" },",
            "resource-group: has no meaning for `mtu`",
        ),
        (
            "{ mtu = 1400, interface = \"eth0\", accelerated = true },",
            "accelerated: has no meaning for `mtu`",
        ),
        (
            "{ azure-nic = \"n\", accelerated = true, on = \"client\", resource-group = \"g\" },\n\
             { azure-nic = \"n\", accelerated = false, on = \"client\", resource-group = \"g\" },",
            "changes accelerated networking of n a second time",
        ),
    ] {
        let error = refused(treatments);
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn name_that_would_be_an_option_or_more_than_a_name_is_refused() {
    for name in ["--debug", "a b", "x;y", "$(id)", "../n", "", "a/b"] {
        let error = refused(&format!(
            "{{ azure-nic = \"{name}\", accelerated = true, on = \"client\", resource-group = \"g\" }},"
        ));
        assert!(error.contains("is not the name of an Azure resource"), "{name}: {error}");
        let error = refused(&format!(
            "{{ azure-nic = \"n\", accelerated = true, on = \"client\", resource-group = \"{name}\" }},"
        ));
        assert!(error.contains("resource-group: "), "{name}: {error}");
    }
}

#[test]
fn unknown_publication_is_refused_with_those_that_exist() {
    let text = text("").replace("question = \"?\"", "question = \"?\"\npublished = \"azure-dpdk\"");
    let error = parse(&text, "p").unwrap_err().to_string();
    assert!(
        error.contains("did you mean \"azure-dpdk-2025\"?") && error.contains("linux-hyper-v"),
        "{error}"
    );
}
