//! The section "Test bed", its prices and its drawing, and the published figures beside those of a run.
use std::collections::BTreeSet;

use netduel_model::bed::{
    Bed, BedNetwork, BedNic, BedType, BedVm, Placement, RunBed, SeenNic, SeenVf, VfUse, VmFacts, parse,
};
use netduel_model::plan::spec::{PathKind, Side as Ends};
use netduel_model::plan::{Treatment, TreatmentAction};
use netduel_model::published::publication_named;
use netduel_model::run::Run;
use netduel_report::analysis::compare::{Side, compare};
use netduel_report::analysis::published::{Published, PublishedFigure};
use netduel_report::{analyse_run, document, html, markdown, terminal};

use crate::builder::{Recipe, build};

fn nic(vm: &str, number: u8, network: BedNetwork, is_accelerated: bool, vf: Option<VfUse>) -> BedNic {
    let word = netduel_model::word::word(&network);
    BedNic {
        name: format!("{vm}-{word}"),
        network: Some(network),
        subnet: Some(word.to_owned()),
        addresses: vec![format!("10.77.{number}.4").parse().unwrap()],
        public_address: (number == 0).then(|| "192.0.2.7".parse().unwrap()),
        mac: Some(format!("00:0d:3a:00:00:0{number}")),
        is_accelerated,
        is_attached: true,
        seen: Some(SeenNic {
            interface: format!("eth{number}"),
            driver: Some("hv_netvsc".to_owned()),
            vf: vf.map(|state| SeenVf {
                name: "enP1s1".to_owned(),
                driver: Some("mlx5_core".to_owned()),
                model: Some("Mellanox ConnectX-4 Lx VF".to_owned()),
                state,
            }),
        }),
    }
}

fn vm(name: &str) -> BedVm {
    let claimed = VmFacts {
        id: Some(format!("id-of-{name}")),
        size: Some("Standard_DS4_v2".to_owned()),
        placement: Some("two-nic-near".to_owned()),
        ..VmFacts::default()
    };
    let seen = VmFacts { physical_host: Some(format!("HOST-{name}")), ..claimed.clone() };
    BedVm {
        name: name.to_owned(),
        user: Some("netduel".to_owned()),
        claimed,
        seen: Some(seen),
        nics: vec![
            nic(name, 0, BedNetwork::Management, false, None),
            nic(name, 1, BedNetwork::Synthetic, false, None),
            nic(name, 2, BedNetwork::Accelerated, true, Some(VfUse::Active)),
        ],
    }
}

/// A run on a bed of two VMs that cost 1 EUR an hour together, of half an hour.
pub fn run() -> Run {
    let mut run =
        build(&Recipe { workloads: vec!["bulk", "rr"], effect: 2.0, noise: 0.0, ..Recipe::default() });
    let started = run.header.started_unix_ms;
    for trial in &mut run.trials {
        trial.started_unix_ms = started + 30 * 60 * 1000 - 5_000;
    }
    for (arm, path) in run.header.plan.arms.iter_mut().zip([PathKind::Synthetic, PathKind::Vf]) {
        arm.expect_path = Some(path);
    }
    for host in run.header.plan.hosts.values_mut() {
        host.size = Some("Standard_DS4_v2".to_owned());
    }
    run.header.bed = Some(RunBed {
        name: "two-nic".to_owned(),
        kind: Some(BedType::TwoNic),
        group: "netduel-two-nic".to_owned(),
        region: "westeurope".to_owned(),
        placement: Placement::None,
        created_unix_s: Some(1_795_257_900),
        price_per_hour: Some("1 EUR".parse().unwrap()),
        price_read_unix_s: Some(1_795_257_900),
        template_sha256: None,
        file: None,
        vms: vec![vm("vm1"), vm("vm2")],
    });
    run
}

/// The lines of a text report from the heading of the section on.
fn section(run: &Run) -> String {
    let text = terminal::report(&document(run), 160, false);
    let (_, after) = text.split_once("Test bed").unwrap_or_else(|| panic!("no test bed:\n{text}"));
    after.to_owned()
}

#[test]
fn run_without_a_bed_has_no_section() {
    let mut run = run();
    run.header.bed = None;
    assert!(!html::page(&document(&run)).contains("Test bed"));
}

#[test]
fn bed_shows_what_azure_claims_and_what_the_guests_showed() {
    let run = run();
    let text = section(&run);
    for part in [
        "netduel-two-nic in westeurope",
        "HOST-vm1",
        "id-of-vm2",
        "two-nic-near",
        "Mellanox ConnectX-4 Lx VF: active",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let page = html::page(&document(&run));
    // Both VMs and all NICs are drawn, in the frame of a phone.
    for part in
        ["vm1-management", "vm2-synthetic", "vm2-accelerated", "guest: VF active", "subnet accelerated"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("viewBox=\"0 0 328 "), "as wide as a phone");
    let markdown = markdown::page(&document(&run));
    assert!(
        markdown.contains("vm1-accelerated") && markdown.contains("netduel azure template two-nic.toml"),
        "{markdown}"
    );
}

#[test]
fn disagreement_of_azure_and_guest_is_marked_and_both_are_named() {
    let mut run = run();
    let bed = run.header.bed.as_mut().unwrap();
    bed.vms[0].seen.as_mut().unwrap().size = Some("Standard_D4s_v3".to_owned());
    bed.vms[0].nics[2].seen.as_mut().unwrap().vf = None;
    let page = html::page(&document(&run));
    assert!(page.contains("Standard_DS4_v2 by Azure, Standard_D4s_v3 by the guest"));
    assert_eq!(page.matches("<text class=\"number off\"").count(), 1, "one NIC has no virtual function");
}

#[test]
fn price_cost_and_worth_follow_from_the_price_of_the_bed() {
    let run = run();
    let text = section(&run);
    assert!(text.contains("0.50 EUR for Standard_DS4_v2, 1.00 EUR for 2 VMs"), "{text}");
    assert!(text.contains("0.50 EUR for 30"), "half an hour of both:\n{text}");
    // Twice the rate: half of the price of both VMs does the work of the baseline.
    assert!(text.contains("saves 0.50 EUR an hour (50 %)"), "{text}");
    assert!(text.contains("Gbit/s per EUR and hour"), "{text}");
}

#[test]
fn price_of_small_vms_keeps_its_digits() {
    let mut run = run();
    run.header.bed.as_mut().unwrap().price_per_hour = Some("0.1104 USD".parse().unwrap());
    let text = section(&run);
    assert!(text.contains("0.055 USD for Standard_DS4_v2, 0.11 USD for 2 VMs"), "{text}");
    assert!(text.contains("0.055 USD for 30"), "half an hour of both:\n{text}");
    assert!(text.contains("saves 0.055 USD an hour (50 %)"), "{text}");
}

#[test]
fn slower_arm_costs_more_and_equal_arms_nothing() {
    let of = |effect: f64| {
        let mut run = run();
        let other = build(&Recipe { workloads: vec!["bulk", "rr"], effect, noise: 0.0, ..Recipe::default() });
        run.trials = other.trials;
        section(&run)
    };
    let slower = of(0.5);
    assert!(slower.contains("costs 1.00 EUR more an hour (100 %)"), "{slower}");
    let equal = of(1.0);
    assert!(equal.contains("no difference that matters"), "{equal}");
}

#[test]
fn unknown_price_is_called_unknown() {
    let mut run = run();
    run.header.bed.as_mut().unwrap().price_per_hour = None;
    let text = section(&run);
    assert!(text.matches("price unknown").count() >= 3, "{text}");
    assert!(!text.contains("Cost of the run"), "{text}");
}

/// A run on a bed of `beds/`, with what its file says of it.
pub fn run_on(file: &str) -> Run {
    let path = format!("{}/../../beds/{file}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let bed = parse(&text, file).unwrap_or_else(|errors| panic!("{errors}"));
    let mut run = run();
    run.header.bed = Some(RunBed::planned(&bed));
    run
}

/// The bed that the section prints for its repetition.
fn printed(run: &Run) -> Bed {
    let page = markdown::page(&document(run));
    let (_, after) = page.split_once("Repeat the bed").unwrap_or_else(|| panic!("{page}"));
    // Code is indented by four columns.
    let code = after.lines().map(|line| line.strip_prefix("    "));
    let file: Vec<&str> = code.skip_while(Option::is_none).map_while(|line| line).collect();
    parse(&file.join("\n"), "the report").unwrap_or_else(|errors| panic!("{errors}\n{after}"))
}

#[test]
fn hash_of_the_template_is_beside_the_command_that_prints_it() {
    let mut run = run_on("two-nic");
    assert!(!markdown::page(&document(&run)).contains("sha256sum"));
    let hash = "0a".repeat(32);
    run.header.bed.as_mut().unwrap().template_sha256 = Some(hash.clone());
    let page = markdown::page(&document(&run));
    assert!(page.contains(&hash) && page.contains("sha256sum"), "{page}");
}

#[test]
fn name_that_no_bed_has_is_in_no_command() {
    let mut run = run_on("two-nic");
    for name in ["x; reboot", "--yes", "$(reboot)"] {
        run.header.bed.as_mut().unwrap().name = name.to_owned();
        let page = markdown::page(&document(&run));
        assert!(page.contains("netduel azure down NAME.toml\n"), "{page}");
        assert!(!page.contains(&format!("down {name}")) && !page.contains(&format!("{name}.toml")), "{page}");
    }
}

#[test]
fn commands_that_repeat_a_bed_find_it_in_the_subscription_of_its_file() {
    let page = markdown::page(&document(&run_on("two-nic")));
    for command in ["netduel azure run PLAN.toml --bed two-nic.toml ", "netduel azure down two-nic.toml\n"] {
        assert!(page.contains(command), "{command}: {page}");
    }
    assert!(page.contains("the subscription that the key `subscription` of the file names"), "{page}");
}

#[test]
fn commands_that_repeat_a_run_on_a_bed_are_those_for_beds() {
    let mut run = run_on("two-nic");
    let plan = run.header.plan.name.clone();
    run.header.seed = 7;
    let page = markdown::page(&document(&run));
    let command = format!("    netduel azure run {plan}.toml --bed two-nic.toml");
    assert!(page.contains(&command) && page.contains(" --set seed=7\n"), "{page}");
    assert!(!page.contains("    netduel run") && !page.contains(" --seed 7"), "{page}");
    // TOML has no number as large, and a bed of other means has no file.
    run.header.seed = u64::MAX;
    run.header.bed.as_mut().unwrap().kind = None;
    let page = markdown::page(&document(&run));
    assert!(page.contains(&format!("    netduel azure run {plan}.toml --bed two-nic\n")), "{page}");
}

#[test]
fn repeated_bed_is_the_bed_of_the_run() {
    for kind in BedType::ALL {
        let run = run_on(netduel_model::word::word(&kind));
        let bed = run.header.bed.as_ref().unwrap();
        let printed = printed(&run);
        assert_eq!(RunBed::planned(&printed), *bed);
        assert_eq!(Some(printed.file_text()), bed.file);
        assert!(!section(&run).contains("Azure claimed otherwise"), "{kind:?}");
    }
}

#[test]
fn bed_that_was_changed_after_its_creation_says_so() {
    let mut run = run_on("two-nic");
    let bed = run.header.bed.as_mut().unwrap();
    bed.placement = Placement::None;
    bed.vms[1].claimed.size = Some("Standard_D4s_v3".to_owned());
    let text = section(&run);
    assert!(text.contains("Azure claimed otherwise"), "{text}");
    assert!(text.contains("size Standard_D4s_v3, placement none"), "{text}");
}

#[test]
fn bed_whose_tags_have_no_file_is_repeated_with_what_azure_claims() {
    let mut run = run();
    run.header.bed.as_mut().unwrap().placement = Placement::ProximityGroup;
    assert_eq!(printed(&run).placement, Placement::ProximityGroup);
    assert!(section(&run).contains("as far as the run knows it"));
}

#[test]
fn bed_of_other_means_is_drawn_without_commands_of_netduel() {
    let mut run = run();
    run.header.bed.as_mut().unwrap().kind = None;
    let text = section(&run);
    assert!(text.contains("deployed by other means") && !text.contains("netduel azure up"), "{text}");
}

#[test]
fn published_figures_of_the_size_stand_beside_the_own_ones() {
    let text = terminal::report(&document(&run()), 200, false);
    let (_, after) = text.split_once("Published figures").unwrap_or_else(|| panic!("{text}"));
    // DS4_v2 without a number of streams: both arms are compared with the article of 2018; its UDP and IPv6 figures have no counterpart.
    assert!(
        after.contains("5.70 Gbit/s to 5.80 Gbit/s") && after.contains("(bulk of accelerated)"),
        "{after}"
    );
    assert!(after.contains("Stress Testing Azure Accelerated Networking"), "{after}");
    let mut other = run();
    for host in other.header.plan.hosts.values_mut() {
        host.size = Some("Standard_D2s_v3".to_owned());
    }
    assert!(!html::page(&document(&other)).contains("Published figures"));
    // A plan that names the publication shows its figures, and no share of a figure of another size.
    other.header.plan.published = Some("azure-stress-2018".to_owned());
    let analysis = analyse_run(&other);
    assert_eq!(analysis.plan.published.as_deref(), Some("azure-stress-2018"));
    let text = terminal::report(&document(&other), 200, false);
    let (_, after) = text.split_once("Published figures").unwrap();
    let after = after.split("Path proof").next().unwrap();
    assert!(after.contains("Standard_DS15_v2") && !after.contains("share"), "{after}");
    let page = html::page(&document(&other));
    assert!(page.contains("Published figures: Stress Testing Azure Accelerated Networking"), "no reference");
}

#[test]
fn path_of_an_arm_of_a_crossover_is_that_of_the_hosts_of_both_halves() {
    let mut run = run();
    let Run { header, .. } = &mut run;
    for (name, like) in [("c", "a"), ("d", "b")] {
        let host = header.plan.hosts[&like.parse().unwrap()].clone();
        header.plan.hosts.insert(name.parse().unwrap(), host);
        let facts = header.hosts[&like.parse().unwrap()].clone();
        header.hosts.insert(name.parse().unwrap(), facts);
    }
    for (host, name) in header.plan.hosts.values_mut().zip(["vm1", "vm2", "vm3", "vm4"]) {
        host.vm = Some(name.to_owned());
    }
    header.bed.as_mut().unwrap().vms.extend([vm("vm3"), vm("vm4")]);
    header.plan.design.crossover = true;
    for arm in &mut header.plan.arms {
        (arm.expect_path, arm.network) = (None, Some(BedNetwork::Accelerated));
    }
    // The second arm begins on c and d.
    let pair = &mut header.plan.arms[1].pair;
    (pair.client, pair.server) = ("c".parse().unwrap(), "d".parse().unwrap());
    assert_eq!(compared_paths(&run), BTreeSet::from([PathKind::Vf]));
    for vm in &mut run.header.bed.as_mut().unwrap().vms[2..] {
        vm.nics[2].seen.as_mut().unwrap().vf.as_mut().unwrap().state = VfUse::Down;
    }
    assert_eq!(compared_paths(&run), BTreeSet::new(), "one half has no virtual function");
}

/// The paths of the published figures that are compared with the values of the second arm.
fn compared_paths(run: &Run) -> BTreeSet<PathKind> {
    let analysis = analyse_run(run);
    let publication = publication_named("azure-stress-2018").unwrap();
    let compared = compare(&[Side::of(run, &analysis)], &[publication]);
    let is_of_arm =
        |figure: &&PublishedFigure| figure.values.iter().any(|value| value.arm.as_str() == "accelerated");
    let path = |figure: &PublishedFigure| match figure.figure {
        Published::Figure(figure) => Some(figure.path),
        Published::Packets(_) => None,
    };
    compared.published.iter().filter(is_of_arm).filter_map(path).collect()
}

#[test]
fn published_figures_beside_an_arm_are_those_of_the_path_of_its_trials() {
    let mut run = run();
    for (host, vm) in run.header.plan.hosts.values_mut().zip(["vm1", "vm2"]) {
        host.vm = Some(vm.to_owned());
    }
    let arm = &mut run.header.plan.arms[1];
    (arm.expect_path, arm.network) = (None, Some(BedNetwork::Accelerated));
    let [vf, synthetic, none] = [&[PathKind::Vf][..], &[PathKind::Synthetic], &[]]
        .map(|paths| paths.iter().copied().collect::<BTreeSet<_>>());
    assert_eq!(compared_paths(&run), vf);
    // The guests show the virtual function before the trials take it away.
    let interface = || "eth2".to_owned();
    for (action, on) in [
        (TreatmentAction::Vf { interface: interface() }, Ends::Both),
        (TreatmentAction::Vf { interface: interface() }, Ends::Server),
        (TreatmentAction::Pci { interface: interface() }, Ends::Client),
    ] {
        run.header.plan.arms[1].treatments = vec![Treatment { action, on }];
        assert_eq!(compared_paths(&run), none);
    }
    // Each trial proves it.
    run.header.plan.arms[1].expect_path = Some(PathKind::Synthetic);
    assert_eq!(compared_paths(&run), synthetic);
    let arm = &mut run.header.plan.arms[1];
    (arm.expect_path, arm.treatments) = (None, Vec::new());
    for (vm, expected) in [(0, &none), (1, &synthetic)] {
        let nic = &mut run.header.bed.as_mut().unwrap().vms[vm].nics[2];
        nic.seen.as_mut().unwrap().vf.as_mut().unwrap().state = VfUse::Down;
        assert_eq!(&compared_paths(&run), expected);
    }
}
