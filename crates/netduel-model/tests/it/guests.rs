//! What guests of the lab have is accepted up to its bounds, and hosts that are no guests are not judged by them.
use netduel_model::plan::parse;

/// A plan with an arm of these treatments and one without any difference but its name, and this workload.
fn plan(lab: &str, treatments: &str, workload: &str) -> String {
    let arm = |name: &str| {
        format!("[[arms]]\nname = \"{name}\"\nclient = \"a\"\nserver = \"b\"\ntreatments = [{treatments}]\n")
    };
    format!(
        "name = \"x\"\nquestion = \"?\"\n[lab]\n{lab}\n[hosts.a]\nlaunch = \"lab\"\n[hosts.b]\nlaunch = \"lab\"\n{}{}\
         [[workloads]]\nname = \"w\"\n{workload}\n",
        arm("one"),
        arm("other")
    )
}

const DIRECT: &str = "{ path = \"direct\" }";
const XDP: &str = "type = \"pps\"\ngenerator = \"xdp\"\nqueues = 2";

#[test]
fn what_guests_have_is_accepted() {
    for (lab, treatments, workload) in [
        ("queues = 2", DIRECT, XDP),
        ("", "{ path = \"accelerated\" }, { queues = 2, interface = \"vf0\" }", XDP),
        ("", DIRECT, "type = \"pps\"\ngenerator = \"kernel\""),
        ("", "{ path = \"accelerated\" }, { vf = \"down\", interface = \"vf0\" }", "type = \"tcp-rr\""),
        (
            "",
            "{ mtu = 1280, interface = \"eth0\" }, { mtu = 9000, interface = \"vf0\" }",
            "type = \"tcp-rr\"",
        ),
        ("", DIRECT, "type = \"udp-stream\"\nsize = \"1472 B\"\noffload = \"gso\""),
        ("", DIRECT, "type = \"udp-stream\"\nsize = \"1473 B\"\noffload = \"none\""),
        ("", DIRECT, "type = \"udp-stream\"\nsize = \"1452 B\"\noffload = \"gso\"\nfamily = \"ipv6\""),
        ("mtu = 9000", DIRECT, "type = \"udp-stream\"\nsize = \"8972 B\"\noffload = \"gso-gro\""),
    ] {
        let text = plan(lab, treatments, workload);
        if let Err(errors) = parse(&text, "p") {
            panic!("{text}\n{errors}");
        }
    }
}

#[test]
fn path_and_sizes_are_those_of_the_arm() {
    for (lab, treatments, workload, wrong) in [
        // No arm sets a path: the lab begins with the synthetic one.
        ("queues = 2", "", XDP, "workload \"w\", queues: is 2, and syn0 has 1"),
        (
            "",
            "",
            "type = \"pps\"\ngenerator = \"kernel\"",
            "workload \"w\", generator: is \"kernel\", whose frames the far end of syn0",
        ),
        ("queues = 2", "{ path = \"accelerated\" }", XDP, "workload \"w\", queues: is 2, and vf0 has 1"),
        (
            "",
            "{ mtu = 1300, interface = \"eth0\" }",
            "type = \"udp-stream\"\nsize = \"1400 B\"\noffload = \"gso\"",
            "the MTU of 1300 bytes of the lab guests leaves 1272",
        ),
        (
            "",
            DIRECT,
            "type = \"udp-stream\"\nsize = \"1453 B\"\noffload = \"gso\"\nfamily = \"ipv6\"",
            "leaves 1452 for the payload",
        ),
        (
            "mtu = 1280",
            DIRECT,
            "type = \"udp-stream\"",
            "workload \"w\", size: is \"1448 B\" with segmentation offload",
        ),
    ] {
        let errors = parse(&plan(lab, treatments, workload), "p").expect_err(workload).to_string();
        assert!(errors.contains(wrong) && errors.lines().count() == 1, "{wrong:?} is not all of\n{errors}");
    }
}

#[test]
fn interface_and_mtu_of_a_treatment_are_judged_together() {
    let text = plan("", "{ mtu = 9001, interface = \"eth1\" }", "type = \"tcp-rr\"");
    let errors = parse(&text, "p").expect_err("both are wrong").to_string();
    for wrong in [
        "arm \"one\", treatment 1, mtu: is 9001; 1280 to 9000 bytes is allowed",
        "arm \"one\", treatment 1, interface: \"eth1\" is no interface of a lab guest",
    ] {
        assert!(errors.contains(wrong), "{wrong:?} is not in\n{errors}");
    }
}

#[test]
fn hosts_that_are_no_guests_are_not_judged_by_the_lab() {
    let elsewhere = |treatments: &str, workload: &str| {
        plan("", treatments, workload)
            .replace("[lab]\n", "")
            .replace("launch = \"lab\"", "launch = \"local\"\naddresses = [\"192.0.2.1\"]")
    };
    for (treatments, workload) in [
        (
            "{ ring = \"rx\", value = \"64\", interface = \"eth7\" }, { mtu = 576, interface = \"eth7\" }",
            "type = \"tcp-rr\"",
        ),
        ("{ pci = \"removed\", interface = \"eth7\" }", "type = \"tcp-rr\""),
        ("", XDP),
        ("", "type = \"pps\"\ngenerator = \"kernel\""),
        ("", "type = \"udp-stream\"\nsize = \"8972 B\"\noffload = \"gso\""),
    ] {
        let text = elsewhere(treatments, workload);
        if let Err(errors) = parse(&text, "p") {
            panic!("{text}\n{errors}");
        }
    }
}
