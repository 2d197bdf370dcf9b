//! The plans that come with the program say what they are meant to say.
use netduel_model::bed::{self, BedType, RunBed};
use netduel_model::lab;
use netduel_model::plan::spec::LabPath;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction, parse};
use netduel_model::published;
use netduel_model::units::{Bytes, Nanos, Percent};
use netduel_model::workload::{Family, Role, TcpStream, Traffic, Wait};

use crate::project_file;

fn plan(name: &str) -> ResolvedPlan {
    let file = format!("plans/{name}.toml");
    let text = std::fs::read_to_string(project_file(&file)).expect("the plan is there");
    parse(&text, &file).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn every_plan_in_the_folder_is_valid_and_named_after_its_file() {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(project_file("plans")).expect("the folder is there") {
        let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
        if let Some(name) = name.strip_suffix(".toml") {
            assert_eq!(plan(name).name, name);
            names.push(name.to_owned());
        }
    }
    names.sort();
    for shipped in ["aa", "datagrams", "demo", "engines", "families", "offloads", "streams", "vf", "vrss"] {
        assert!(names.iter().any(|name| name == shipped), "{shipped} is missing in {names:?}");
    }
}

#[test]
fn the_demo_compares_both_paths_within_a_minute() {
    let demo = plan("demo");
    let arms: Vec<_> = demo.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(arms, ["synthetic", "accelerated"]);
    for (arm, path) in demo.arms.iter().zip([LabPath::Synthetic, LabPath::Accelerated]) {
        assert_eq!(arm.treatments[0].action, TreatmentAction::Path { path });
        assert_eq!(arm.expected(Role::Client), Some(lab::interface(path)));
        assert_eq!(arm.expected(Role::Server), Some(lab::interface(path)));
    }
    let workloads = &demo.arms[0].workloads;
    assert!(matches!(
        &workloads[0].traffic,
        Traffic::TcpStream(TcpStream { streams: 1, congestion: Some(name), .. }) if name == "cubic"
    ));
    let Traffic::TcpRr(round_trip) = &workloads[1].traffic else { panic!("{:?}", workloads[1]) };
    assert_eq!((round_trip.size, round_trip.outstanding), (Bytes(64), 1));
    assert_eq!((round_trip.wait, round_trip.rate), (Wait::Block, None));
    for workload in workloads {
        assert_eq!(workload.timing.duration, Nanos::from_millis(1000));
        assert_eq!(workload.timing.warmup, Nanos::from_millis(200));
    }
    let design = &demo.design;
    assert_eq!((design.blocks_min, design.blocks_max, design.precision), (8, 10, Percent(10.0)));
    let traffic: u64 = workloads.iter().map(|workload| workload.timing.duration.0).sum::<u64>() * 2;
    let budget = design.budget.expect("a budget").0;
    // The last block may begin just before the budget ends; half as long again is room for control and treatments.
    assert!(budget + traffic * 3 / 2 <= 60_000_000_000, "{budget} {traffic}");
    assert!(traffic * u64::from(design.blocks_min) < budget);
}

#[test]
fn the_aa_plan_runs_one_arm_against_its_copy() {
    let aa = plan("aa");
    assert!(aa.design.aa);
    assert_eq!(aa.arms.len(), 2);
    assert_eq!(aa.arms[1].name.as_str(), "accelerated-again");
    assert_eq!(aa.arms[0].treatments, aa.arms[1].treatments);
    assert_eq!(aa.arms[0].workloads, aa.arms[1].workloads);
    assert_eq!(aa.arms[0].workloads, plan("demo").arms[0].workloads);
}

#[test]
fn the_other_plans_differ_in_the_one_thing_that_they_ask_about() {
    let streams = plan("streams");
    let counts: Vec<u32> = streams
        .arms
        .iter()
        .map(|arm| match arm.workloads[0].traffic {
            Traffic::TcpStream(TcpStream { streams, .. }) => streams,
            _ => 0,
        })
        .collect();
    assert_eq!(counts, [1, 8]);

    let families = plan("families");
    for (left, right) in families.arms[0].workloads.iter().zip(&families.arms[1].workloads) {
        assert_eq!((left.family, right.family), (Family::Ipv4, Family::Ipv6));
        assert_eq!(left.traffic, right.traffic);
    }

    let switched = |plan: &ResolvedPlan| -> Vec<Vec<(String, bool)>> {
        let one = |action: &TreatmentAction| match action {
            TreatmentAction::Offload { feature, enabled, .. } => Some((feature.clone(), *enabled)),
            _ => None,
        };
        let of = |arm: &Arm| arm.treatments.iter().filter_map(|treatment| one(&treatment.action)).collect();
        plan.arms.iter().map(of).collect()
    };
    let word = |name: &str, on| (name.to_owned(), on);
    let expected = [
        vec![word("tso", true), word("tx", true)],
        vec![word("tso", false)],
        vec![word("tso", false), word("gso", false)],
        vec![word("tso", false), word("gro", true)],
        vec![word("tx", false)],
    ];
    assert_eq!(switched(&plan("offloads")), expected);

    for (name, on) in [("vrss", false), ("vrss-segments", true)] {
        let vrss = plan(name);
        let treatments = vrss.arms.iter().flat_map(|arm| &arm.treatments);
        let steered: Vec<String> = treatments
            .filter_map(|treatment| match &treatment.action {
                TreatmentAction::Rps { cores, .. } => Some(cores.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(steered, ["off", "0", "0-1"]);
        assert_eq!(switched(&vrss), vec![vec![word("tso", on)]; 3]);
    }

    let vf = plan("vf");
    assert_eq!(vf.arms[0].expected(Role::Server), Some(lab::ACCELERATED_INTERFACE));
    assert_eq!(vf.arms[1].expected(Role::Server), Some(lab::interface(LabPath::Synthetic)));

    let by_streams: Vec<u32> = families.arms[0]
        .workloads
        .iter()
        .filter_map(|workload| match workload.traffic {
            Traffic::TcpStream(TcpStream { streams, .. }) => Some(streams),
            _ => None,
        })
        .collect();
    assert_eq!(by_streams, [1, 2, 4, 8, 16]);
}

/// The publication that each plan of an article names, and the arms that it compares.
const ARTICLES: [(&str, &str, &[&str]); 6] = [
    ("azure-throughput", "azure-stress-2018", &["synthetic", "accelerated"]),
    ("azure-latency", "azure-latency-test", &["synthetic", "accelerated", "accelerated-near"]),
    ("azure-dpdk", "azure-dpdk-2025", &["8-queues", "4-queues", "16-queues"]),
    (
        "azure-dual-stack",
        "azure-dual-stack",
        &["synthetic-ipv6", "accelerated-ipv6", "synthetic-ipv4", "accelerated-ipv4"],
    ),
    (
        "azure-linux",
        "linux-hyper-v",
        &["default", "one-queue", "four-queues", "no-large-send", "no-checksums", "accelerated"],
    ),
    ("azure-linux-hot-add", "linux-hyper-v", &["removed", "down"]),
];

#[test]
fn plans_of_the_articles_name_their_publication_and_its_comparison() {
    for (name, publication, arms) in ARTICLES {
        let plan = plan(name);
        assert_eq!(plan.published.as_deref(), Some(publication));
        assert!(published::publication_named(publication).is_some());
        let names: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, arms, "{name}");
        assert!(plan.too_few_blocks().is_none(), "{name} can prove a difference");
    }
    // Every publication with figures is repeated by a plan.
    for publication in published::publications() {
        assert!(ARTICLES.iter().any(|(_, id, _)| *id == publication.id), "{}", publication.id);
    }
}

#[test]
fn plans_of_the_articles_fit_the_shipped_bed_of_their_type_and_no_other() {
    let beds = BedType::ALL.map(|kind| {
        let file = format!("beds/{kind}.toml");
        let text = std::fs::read_to_string(project_file(&file)).expect("the bed is there");
        RunBed::planned(&bed::parse(&text, &file).unwrap_or_else(|errors| panic!("{errors}")))
    });
    for (name, ..) in ARTICLES {
        let plan = plan(name);
        let fitting: Vec<_> =
            beds.iter().filter(|bed| plan.fits_bed(bed).is_ok()).map(|bed| bed.kind).collect();
        assert!(plan.bed_type.is_some(), "{name}");
        assert_eq!(fitting, [plan.bed_type], "{name}");
    }
}

#[test]
fn plans_of_the_articles_leave_the_names_of_interfaces_to_the_guests() {
    for (name, ..) in ARTICLES {
        let file = project_file(&format!("plans/{name}.toml"));
        let text = std::fs::read_to_string(file).expect("the plan is there");
        assert!(!text.contains("interface ="), "{name}: a name depends on the number of NICs of the size");
    }
}

#[test]
fn plans_of_the_articles_have_the_traffic_of_the_published_figures() {
    let of = |publication: &str| -> Vec<Arm> {
        let named = ARTICLES.iter().filter(|(_, id, _)| *id == publication);
        named.flat_map(|(name, ..)| plan(name).arms).collect()
    };
    for figure in published::figures() {
        let arms = of(&figure.publication.id);
        let has = arms.iter().flat_map(|arm| &arm.workloads).any(|workload| figure.has_traffic_of(workload));
        assert!(has, "no plan repeats {figure:?}");
    }
}

#[test]
fn plans_of_packet_rates_have_the_frames_of_the_published_figures() {
    for figure in published::packets() {
        let named = ARTICLES.iter().filter(|(_, id, _)| *id == figure.publication.id);
        let arms: Vec<Arm> = named.flat_map(|(name, ..)| plan(name).arms).collect();
        let packets = arms.iter().flat_map(|arm| &arm.workloads);
        let frames: Vec<u32> =
            packets.filter_map(|workload| Some(workload.traffic.facts().packets?.frame)).collect();
        assert!(frames.contains(&figure.frame), "{figure:?} in {frames:?}");
    }
}

#[test]
fn the_latency_plan_switches_both_ends_and_expects_the_path_of_the_switch() {
    use netduel_model::plan::spec::PathKind;
    let latency = plan("azure-latency");
    let expected: Vec<_> = latency.arms.iter().map(|arm| arm.expect_path).collect();
    assert_eq!(expected, [Some(PathKind::Synthetic), Some(PathKind::Vf), Some(PathKind::Vf)]);
    for arm in &latency.arms {
        assert!(
            arm.agent_treatments(Role::Client).is_empty() && arm.agent_treatments(Role::Server).is_empty()
        );
        assert!(arm.provider_treatments().len() >= 2);
    }
    assert!(latency.has_provider_treatments() && !plan("azure-throughput").has_provider_treatments());
}
