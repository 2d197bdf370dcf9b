//! What a plan leaves out is written out.
use netduel_model::lab;
use netduel_model::metric::Metric;
use netduel_model::plan::{Launch, ResolvedPlan, parse};
use netduel_model::units::{Bytes, Nanos, Percent};
use netduel_model::workload::{
    Direction, Family, StreamTuning, TcpEngine, TcpStream, Timing, Traffic, UdpOffload, UdpStream,
};

/// Two local hosts, two arms, and whatever else the test writes.
fn minimal(rest: &str) -> String {
    format!(
        r#"
name = "minimal"
question = "Which?"
[hosts]
c = {{ launch = "local" }}
s = {{ launch = "local", addresses = ["127.0.0.1", "::1"] }}
[[arms]]
name = "one"
client = "c"
server = "s"
[[arms]]
name = "two"
client = "c"
server = "s"
{rest}"#
    )
}

fn resolved(text: &str) -> ResolvedPlan {
    parse(text, "plan.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_tcp_stream_has_the_documented_defaults() {
    let plan = resolved(&minimal("[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\""));
    let workload = &plan.arms[1].workloads[0];
    let seconds = |ms| Nanos::from_millis(ms);
    assert_eq!(
        workload.timing,
        Timing { duration: seconds(10_000), warmup: seconds(1000), cooldown: seconds(500) }
    );
    let expected = Traffic::TcpStream(TcpStream {
        streams: 1,
        direction: Direction::Up,
        block: Bytes(1 << 20),
        engine: TcpEngine::Lean,
        congestion: None,
        rate: None,
        tuning: StreamTuning::default(),
    });
    assert_eq!(workload.traffic, expected);
    assert_eq!(workload.family, Family::Ipv4);
    assert_eq!(workload.metrics, [Metric::Throughput, Metric::CpuPerGigabyte]);
    assert!(plan.lab.is_none());
    let design = &plan.design;
    assert_eq!((design.blocks_min, design.blocks_max), (8, 30));
    assert_eq!((design.precision, design.equivalence), (Percent(5.0), Percent(5.0)));
    assert_eq!(
        (design.confidence, design.budget, design.seed, design.aa),
        (Percent(95.0), None, None, false)
    );
    assert_eq!(plan.arms[0].expect_client, None);
}

#[test]
fn defaults_follow_the_values_they_depend_on() {
    let plan = resolved(&minimal(
        r#"
[[workloads]]
name = "copy"
type = "tcp-stream"
engine = "copy"
duration = "100 ms"
[[workloads]]
name = "datagrams"
type = "udp-stream"
family = "ipv6"
[design]
blocks_min = 50
"#,
    ));
    let [copy, datagrams] = &plan.arms[0].workloads[..] else { panic!() };
    assert!(matches!(copy.traffic, Traffic::TcpStream(TcpStream { block: Bytes(262_144), .. })));
    // 100 ms of warm-up would be all of it.
    assert_eq!((copy.timing.warmup, copy.timing.cooldown), (Nanos::from_millis(50), Nanos::from_millis(5)));
    assert!(matches!(
        datagrams.traffic,
        Traffic::UdpStream(UdpStream { size: Bytes(1428), rate: None, flows: 1, .. })
    ));
    assert_eq!(plan.design.blocks_max, 50);
    let few = resolved(&minimal("[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[design]\nblocks_max = 4"));
    assert_eq!((few.design.blocks_min, few.design.blocks_max), (4, 4));
}

#[test]
fn datagrams_are_cut_by_the_kernel_when_a_core_is_the_limit_and_they_fit_the_usual_mtu() {
    for (written, offload) in [
        ("", UdpOffload::Gso),
        ("size = \"1448 B\"", UdpOffload::Gso),
        ("size = \"1449 B\"", UdpOffload::None),
        ("size = \"1429 B\"\nfamily = \"ipv6\"", UdpOffload::None),
        ("rate = \"1 Gbit/s\"", UdpOffload::None),
        ("rate = \"1 Gbit/s\"\noffload = \"gso\"", UdpOffload::Gso),
        ("size = \"9 kB\"\noffload = \"gso-gro\"", UdpOffload::GsoGro),
        ("offload = \"none\"", UdpOffload::None),
    ] {
        let plan =
            resolved(&minimal(&format!("[[workloads]]\nname = \"w\"\ntype = \"udp-stream\"\n{written}")));
        let Traffic::UdpStream(UdpStream { offload: found, .. }) = plan.arms[0].workloads[0].traffic else {
            panic!()
        };
        assert_eq!(found, offload, "{written}");
        let json = serde_json::to_string(&plan).expect("a plan can be written");
        assert_eq!(serde_json::from_str::<ResolvedPlan>(&json).expect("and read"), plan);
    }
}

#[test]
fn the_baseline_comes_first_wherever_it_is_written() {
    let text = minimal("baseline = true\n[[workloads]]\nname = \"w\"\ntype = \"udp-rr\"");
    let names: Vec<_> = resolved(&text).arms.iter().map(|arm| arm.name.to_string()).collect();
    assert_eq!(names, ["two", "one"]);
}

#[test]
fn an_arm_overrides_only_the_workloads_whose_type_has_the_setting() {
    let text = minimal(
        "set = { streams = 4, family = \"ipv6\" }\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\n\
         [[workloads]]\nname = \"v\"\ntype = \"tcp-rr\"",
    );
    let plan = resolved(&text);
    assert!(matches!(plan.arms[0].workloads[0].traffic, Traffic::TcpStream(TcpStream { streams: 1, .. })));
    assert!(matches!(plan.arms[1].workloads[0].traffic, Traffic::TcpStream(TcpStream { streams: 4, .. })));
    let families: Vec<_> = plan.arms[1].workloads.iter().map(|workload| workload.family).collect();
    assert_eq!(families, [Family::Ipv6, Family::Ipv6]);
    assert_eq!(plan.arms[0].workloads[1].traffic, plan.arms[1].workloads[1].traffic);
}

#[test]
fn an_arm_may_place_the_threads_of_every_workload() {
    let text = minimal(
        "set = { pin_client = [1], pin_server = \"auto\" }\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\npin_client = [0]\n\
         [[workloads]]\nname = \"v\"\ntype = \"udp-rr\"",
    );
    let plan = resolved(&text);
    let placed = |arm: usize, workload: usize| {
        let workload = &plan.arms[arm].workloads[workload];
        (workload.pin_client.clone(), workload.pin_auto.server)
    };
    assert_eq!((placed(0, 0), placed(0, 1)), ((vec![0], false), (vec![], false)));
    assert_eq!((placed(1, 0), placed(1, 1)), ((vec![1], true), (vec![1], true)));
}

#[test]
fn every_kind_of_treatment_is_resolved_and_survives_json() {
    let kinds = [
        "offload = \"tso\", value = \"off\"",
        "mtu = 9000",
        "vf = \"down\"",
        "pci = \"removed\"",
        "queues = 4",
        "rss = \"weights 6 2\"",
        "rss = \"default\"",
        "ring = \"tx\", value = \"512\"",
        "coalesce = \"adaptive-tx\", value = \"on\"",
        "rps = \"0-1\"",
        "xps = \"spread\"",
        "irq_affinity = \"0,2\"",
    ];
    // One thing is changed once.
    let interface_of = |kind: &str| {
        if ["pci", "rss = \"default"].iter().any(|other| kind.starts_with(other)) { "eth1" } else { "eth0" }
    };
    let written: Vec<String> =
        kinds.iter().map(|kind| format!("{{ {kind}, interface = \"{}\" }}", interface_of(kind))).collect();
    let text = minimal(&format!(
        "treatments = [{}]\n[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"",
        written.join(", ")
    ));
    let plan = resolved(&text);
    let made = &plan.arms[1].treatments;
    assert_eq!(made.len(), kinds.len());
    for (index, treatment) in made.iter().enumerate() {
        assert!(made[index + 1..].iter().all(|other| other != treatment), "{treatment:?}");
    }
    let json = serde_json::to_string(&plan).expect("a plan can be written");
    assert!(
        json.contains(
            r#"{"kind":"irq-affinity","interface":"eth0","cores":{"choice":"cores","cores":[0,2]}}"#
        ),
        "{json}"
    );
    assert_eq!(serde_json::from_str::<ResolvedPlan>(&json).expect("and read"), plan);
}

#[test]
fn arms_may_use_different_addresses_of_one_server() {
    let text = minimal("[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"").replacen(
        "server = \"s\"\n",
        "server = \"s\"\nserver_addresses = [\"127.0.0.2\"]\n",
        1,
    );
    let plan = resolved(&text);
    let address = |arm: usize| plan.server_address(&plan.arms[arm], Family::Ipv4).map(|one| one.to_string());
    assert_eq!((address(0).as_deref(), address(1).as_deref()), (Some("127.0.0.2"), Some("127.0.0.1")));
    let all: Vec<String> =
        plan.hosts.values().flat_map(|host| &host.addresses).map(ToString::to_string).collect();
    assert_eq!(all, ["127.0.0.1", "::1", "127.0.0.2"], "those of the host come first");
}

#[test]
fn guests_of_the_lab_bring_their_addresses() {
    let text = minimal("[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[lab]\n")
        .replace("{ launch = \"local\" }", "{ launch = \"lab\", guest = \"b\" }");
    let plan = resolved(&text);
    let host = plan.hosts.values().next().expect("a host");
    assert_eq!(host.launch, Launch::Lab { guest: "b".into() });
    assert_eq!(host.addresses, lab::addresses("b"));
    let lab = plan.lab.expect("a lab");
    assert_eq!((lab.rules, lab.cap, lab.mtu), (600, None, 1500));
}

#[test]
fn a_resolved_plan_survives_json() {
    let plan = resolved(&minimal("[[workloads]]\nname = \"w\"\ntype = \"udp-stream\"\nrate = \"1 Gbit/s\""));
    let json = serde_json::to_string(&plan).expect("a plan can be written");
    assert_eq!(serde_json::from_str::<ResolvedPlan>(&json).expect("and read"), plan);
}
