//! Comparisons of stored runs: verdicts, what differs between the runs, what is not compared, and the formats.
use netduel_model::ids::HostName;
use netduel_model::metric::Metric;
use netduel_model::plan::spec::PathKind;
use netduel_model::run::{Run, RunEnd};
use netduel_model::snapshot::{
    Cache, Device, HugePages, NumaNode, Processor, QueueInterrupt, ReceiveSteering, SYSCTLS_OF_STATE,
    XdpFeature,
};
use netduel_model::units::Nanos;
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::{Aspect, Owner, Reason, RunComparison, RunVerdict, Side, compare};
use netduel_report::analysis::published::Standing as FigureStanding;
use netduel_report::document::verdicts::Sides;
use netduel_report::gate::{Condition, Standing};
use netduel_report::{analyse_run, html, markdown, terminal, words};
use netduel_stats::verdict::Verdict;
use serde_json::json;

use crate::builder::{Recipe, build};
use crate::compare_document::document_of;

/// A quiet run of one workload; the seed also makes its name.
pub fn run(effect: f64, seed: u64) -> Run {
    let mut run = build(&Recipe {
        blocks: 12,
        effect,
        noise: 0.004,
        workloads: vec!["bulk"],
        seed,
        ..Recipe::default()
    });
    run.header.id = format!("run-{seed}").parse().unwrap();
    run
}

pub fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

/// Compares runs and hands the result to a test.
pub fn compared<T>(runs: &[Run], test: impl FnOnce(&RunComparison<'_>) -> T) -> T {
    let analyses: Vec<Analysis> = runs.iter().map(analyse_run).collect();
    let sides: Vec<Side<'_>> = runs.iter().zip(&analyses).map(|(run, own)| Side::of(run, own)).collect();
    test(&compare(&sides, &[]))
}

/// The verdict on an arm's metric.
pub fn verdict<'a>(
    comparison: &'a RunComparison<'_>,
    arm: &str,
    metric: Metric,
    run: usize,
) -> &'a RunVerdict {
    let subject = comparison.subjects.iter().find(|subject| subject.arm.as_str() == arm).unwrap();
    subject.verdicts.iter().find(|verdict| verdict.metric == metric && verdict.run == run).unwrap()
}

#[test]
fn arm_that_became_slower_is_found_and_the_other_is_unchanged() {
    compared(&[run(1.5, 1), run(1.2, 2)], |comparison| {
        assert_eq!(comparison.subjects.len(), 2);
        let slower = verdict(comparison, "accelerated", Metric::Throughput, 1);
        let Verdict::Lower { estimate } = slower.judged.verdict else { panic!("{slower:?}") };
        assert!((estimate.centre - 0.8).abs() < 0.02, "{estimate:?}");
        assert!(estimate.low <= 0.81 && estimate.high >= 0.79, "{estimate:?}");
        assert_eq!(slower.sizes, [12, 12]);
        let same = verdict(comparison, "synthetic", Metric::Throughput, 1);
        assert!(matches!(same.judged.verdict, Verdict::NoDifference { .. }), "{same:?}");
        assert!(comparison.differences.is_empty() && comparison.unmatched.is_empty(), "{comparison:?}");
        assert!(comparison.has_data());
    });
}

#[test]
fn exchanged_runs_have_the_inverse_effect() {
    let (one, other) = (run(1.5, 1), run(1.2, 2));
    let centre = |runs: &[Run]| {
        compared(runs, |comparison| {
            verdict(comparison, "accelerated", Metric::Throughput, 1).judged.estimate.unwrap().centre
        })
    };
    let product = centre(&[one.clone(), other.clone()]) * centre(&[other, one]);
    assert!((product - 1.0).abs() < 1e-12, "{product}");
}

#[test]
fn differences_of_the_hosts_mark_the_verdicts_that_they_can_cause() {
    let (before, mut after) = (run(1.5, 1), run(1.2, 2));
    let changed = after.header.hosts.get_mut(&host("b")).unwrap();
    changed.kernel = Some("6.19.0-cloud-amd64".to_owned());
    changed.sysctls.insert("net.core.rmem_max".to_owned(), "212992".to_owned());
    // No settings, so no difference.
    changed.sysctls.extend(SYSCTLS_OF_STATE.map(|name| (name.to_owned(), "12".to_owned())));
    changed.interfaces[2].features_on.push("tx-tcp-segmentation".to_owned());
    changed.interfaces[0].name = "eth1".to_owned();
    after.header.annotations.notes.insert("ticket".to_owned(), "NET-7".to_owned());
    after.header.plan.design.blocks_max = 20;
    compared(&[before, after], |comparison| {
        let of_b = Owner::Host(host("b"));
        let seen: Vec<(Aspect, &Owner, &str)> =
            comparison.differences.iter().map(|one| (one.aspect, &one.owner, one.fact.as_str())).collect();
        let expected = [
            (Aspect::Design, &Owner::Run, "blocks"),
            (Aspect::System, &of_b, "kernel"),
            (Aspect::Interface, &of_b, "presence of eth0"),
            (Aspect::Sysctl, &of_b, "net.core.rmem_max"),
            (Aspect::Note, &Owner::Run, "note ticket"),
            (Aspect::Interface, &of_b, "presence of eth1"),
            (Aspect::Interface, &of_b, "vf0 offload tx-tcp-segmentation"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            comparison.differences[1].values,
            [Some("6.18.5-cloud-amd64".to_owned()), Some("6.19.0-cloud-amd64".to_owned())]
        );
        let slower = verdict(comparison, "accelerated", Metric::Throughput, 1);
        assert_eq!(slower.explained_by, [1, 2, 3, 5, 6], "neither a note nor the design changes a value");
        let same = verdict(comparison, "synthetic", Metric::Throughput, 1);
        assert!(same.explained_by.is_empty(), "nothing has to be explained: {same:?}");
        let explanations = words::compare::explanations(comparison);
        assert_eq!(explanations.len(), 5);
        assert_eq!(
            explanations[..2],
            [
                "*1 kernel of host b (A: 6.18.5-cloud-amd64; B: 6.19.0-cloud-amd64): may be the cause of the verdicts with this mark",
                "*2 presence of eth0 of host b (A: yes; B: unknown or none): may be the cause of the verdicts with this mark"
            ]
        );
    });
}

/// Gives a host facts of its machine and of the queues of its first interface. Queues and nodes count from `first`.
fn describe(run: &mut Run, first: u16, is_up: bool) {
    let of_b = run.header.hosts.get_mut(&host("b")).unwrap();
    of_b.default_routes = vec![format!("eth{first}")];
    of_b.processor = Some(Processor {
        identity: Some(format!("family 25 model {first}")),
        sockets: Some(u32::from(first)),
        physical_cores: vec![vec![first]],
        max_khz: Some(2_000_000 + u64::from(first) * 100_000),
        caches: vec![Cache { level: 3, kind: "Unified".to_owned(), bytes: 32 << 20, cores: vec![first] }],
        ..Processor::default()
    });
    let pages = HugePages { size_kib: 2048, total: u64::from(first), free: 0 };
    let number = u32::from(first);
    of_b.numa_nodes = vec![NumaNode { number, huge_pages: vec![pages], ..NumaNode::default() }];
    let (domain, image) = (first.to_string(), format!("debian 13 {first}"));
    let cloud = json!({"provider": "azure", "evidence": "", "fault_domain": domain, "image": image});
    of_b.cloud = serde_json::from_value(cloud).unwrap();
    let interface = &mut of_b.interfaces[0];
    (interface.up, interface.carrier) = (is_up, Some(is_up));
    // What each start of a machine has anew is no difference.
    (interface.index, interface.mac) = (u32::from(first), Some(format!("02:00:00:00:00:0{first}")));
    interface.device = Device {
        rss_entries: vec![64; usize::from(first)],
        receive_steering: vec![ReceiveSteering { cores: vec![first], flows: 0 }; 2],
        transmit_steering: vec![vec![first], Vec::new()],
        interrupts: vec![QueueInterrupt { cores: vec![first], ..QueueInterrupt::default() }],
        qdiscs: vec!["mq".to_owned(), format!("qdisc{first}")],
        xdp: Some(XdpFeature::ALL[..usize::from(first)].to_vec()),
        ..Device::default()
    };
}

#[test]
fn facts_of_machines_and_queues_are_differences() {
    let (mut before, mut after) = (run(1.5, 1), run(1.2, 2));
    describe(&mut before, 1, true);
    describe(&mut after, 2, false);
    compared(&[before, after], |comparison| {
        let seen: Vec<String> = comparison
            .differences
            .iter()
            .map(|one| {
                let values = one.values.iter().map(|value| value.as_deref().unwrap_or("-"));
                format!("{}: {}", one.fact, values.collect::<Vec<_>>().join(" | "))
            })
            .collect();
        let expected = [
            "default routes: eth1 | eth2",
            "CPU identity: family 25 model 1 | family 25 model 2",
            "sockets: 1 | 2",
            "highest clock rate: 2.10 GHz | 2.20 GHz",
            "NUMA nodes: 1: no cores | 2: no cores",
            "huge pages: node 1: 1 of 2 MiB | node 2: 2 of 2 MiB",
            "image: debian 13 1 | debian 13 2",
            "location: fault domain 1 | fault domain 2",
            "eth0 state: up | down",
            "eth0 carrier: yes | no",
            "eth0 RSS entries by queue: 64 | 2 x 64",
            "eth0 RPS by queue: 2 x 1 | 2 x 2",
            "eth0 XPS by queue: 1; off | 2; off",
            "eth0 cores of the interrupts: 1 | 2",
            "eth0 qdiscs of the queues: mq qdisc1 | mq qdisc2",
            "eth0 XDP features: basic | basic redirect",
        ];
        assert_eq!(seen, expected);
    });
}

#[test]
fn host_of_another_pair_explains_nothing() {
    let (mut before, mut after) = (run(1.5, 1), run(1.2, 2));
    for run in [&mut before, &mut after] {
        let third = run.header.hosts[&host("a")].clone();
        run.header.hosts.insert(host("c"), third);
    }
    after.header.hosts.get_mut(&host("c")).unwrap().kernel = Some("5.10.0".to_owned());
    compared(&[before, after], |comparison| {
        assert_eq!(comparison.differences.len(), 1);
        let slower = verdict(comparison, "accelerated", Metric::Throughput, 1);
        assert!(slower.explained_by.is_empty(), "{slower:?}");
    });
}

#[test]
fn cores_of_the_threads_are_a_difference_and_other_settings_are_not_compared() {
    let (before, mut after) = (run(1.5, 1), run(1.2, 2));
    after.header.plan.arms[0].workloads[0].timing.duration = Nanos::from_millis(4_000);
    after.header.plan.arms[1].workloads[0].pin_client = vec![2];
    compared(&[before, after], |comparison| {
        let [subject] = comparison.subjects.as_slice() else { panic!("{:?}", comparison.unmatched) };
        assert_eq!(subject.arm.as_str(), "accelerated");
        let pinned = comparison.differences.iter().find(|one| one.aspect == Aspect::Pinning).unwrap();
        assert_eq!(pinned.values[1].as_deref(), Some("client 2, server 3"));
        assert_eq!(pinned.owner, Owner::Workload("accelerated".parse().unwrap(), "bulk".parse().unwrap()));
        let [unmatched] = comparison.unmatched.as_slice() else { panic!("{:?}", comparison.unmatched) };
        assert!(matches!(unmatched.reason, Reason::Settings(_)), "{unmatched:?}");
        let text = words::compare::unmatched(comparison, unmatched);
        assert!(text.starts_with("bulk of arm synthetic: other settings (A: tcp-stream, "), "{text}");
    });
}

#[test]
fn what_only_one_run_has_is_listed_with_its_reason() {
    let (mut before, mut after) = (run(1.5, 1), run(1.2, 2));
    let workloads =
        build(&Recipe { workloads: vec!["rr"], ..Recipe::default() }).header.plan.arms[0].workloads.clone();
    for arm in &mut before.header.plan.arms {
        arm.workloads.extend(workloads.clone());
    }
    before.header.plan.workloads.push("rr".parse().unwrap());
    let arms = &mut after.header.plan.arms;
    let third = netduel_model::plan::Arm { name: "third".parse().unwrap(), ..arms[0].clone() };
    arms.push(third);
    arms[0].treatments.clear();
    let client = arms[1].pair.client.clone();
    arms[1].pair.client = std::mem::replace(&mut arms[1].pair.server, client);
    compared(&[before, after], |comparison| {
        let texts: Vec<String> =
            comparison.unmatched.iter().map(|one| words::compare::unmatched(comparison, one)).collect();
        assert!(
            texts[0].starts_with("arm synthetic: other treatments (A: ") && texts[0].ends_with("; B: none)"),
            "{texts:?}"
        );
        assert_eq!(
            texts[1..],
            [
                "arm accelerated: other hosts (A: a to b; B: b to a)",
                "workload rr: A has it, B does not",
                "arm third: B has it, A does not"
            ]
        );
        assert!(comparison.subjects.is_empty() && !comparison.has_data());
        let page = markdown::page(&document_of(comparison));
        assert!(page.contains("No arm and workload has the same settings in two of the runs."), "{page}");
    });
}

#[test]
fn each_further_run_is_compared_with_the_first_in_one_family() {
    let three = [run(1.5, 1), run(1.5, 2), run(1.2, 3)];
    let level = |runs: &[Run]| {
        compared(runs, |comparison| {
            let slower = verdict(comparison, "accelerated", Metric::Throughput, runs.len() - 1);
            assert!(matches!(slower.judged.verdict, Verdict::Lower { .. }), "{slower:?}");
            slower.judged.estimate.unwrap().confidence
        })
    };
    let pair = level(&[three[0].clone(), three[2].clone()]);
    assert!(level(&three) >= pair, "more comparisons need more evidence");
    compared(&three, |comparison| {
        let same = verdict(comparison, "accelerated", Metric::Throughput, 1);
        assert!(matches!(same.judged.verdict, Verdict::NoDifference { .. }), "{same:?}");
        let labels: Vec<&str> = comparison.runs.iter().map(|run| run.label.as_str()).collect();
        assert_eq!(labels, ["A", "B", "C"]);
        let page = markdown::page(&document_of(comparison));
        assert!(page.contains("| metric | baseline A | run | value of the run | verdict |"), "{page}");
    });
}

#[test]
fn run_without_valid_trials_has_no_verdict() {
    let (before, mut after) = (run(1.5, 1), run(1.2, 2));
    after.trials.clear();
    after.end = Some(RunEnd::Interrupted);
    compared(&[before, after], |comparison| {
        let open = verdict(comparison, "accelerated", Metric::Throughput, 1);
        assert_eq!((open.judged.estimate, open.sizes), (None, [12, 0]));
        assert_eq!(words::compare::verdict(comparison, open), "inconclusive: B has no valid value");
        assert!(!comparison.has_data());
    });
}

#[test]
fn all_formats_use_the_same_words() {
    let (before, mut after) = (run(1.5, 1), run(1.2, 2));
    for host in after.header.hosts.values_mut() {
        host.kernel = Some("6.19.0-cloud-amd64".to_owned());
    }
    compared(&[before, after], |comparison| {
        let document = document_of(comparison);
        let page = html::page(&document)
            .replace('\u{a0}', " ")
            .replace("<span class=\"interval\">", "")
            .replace("</span>", "");
        let markdown = markdown::page(&document).replace('\\', "");
        let table = terminal::report(&document, 400, false);
        let mut texts =
            vec!["kernel of host a".to_owned(), "6.19.0-cloud-amd64".to_owned(), "Warnings of B".to_owned()];
        let verdicts = comparison.subjects.iter().flat_map(|subject| &subject.verdicts);
        texts.extend(verdicts.map(|verdict| words::compare::verdict(comparison, verdict)));
        assert_eq!(texts.len(), 3 + 4);
        for text in texts {
            for (format, shown) in [("html", &page), ("markdown", &markdown), ("terminal", &table)] {
                assert!(shown.contains(&text), "{format} does not say `{text}`");
            }
        }
        assert!(page.contains("Each row compares a run with <b>A</b>. "), "runs have no blocks in common");
        assert!(!page.contains("paired estimate") && table.contains("run-1") && table.contains("run-2"));
        // On a phone the table of differences has no head.
        assert!(page.contains("data-title=\"B\">6.19.0-cloud-amd64<"), "no title of the value of a run");
        // What differs is read before the verdicts.
        assert!(table.find("Differences between the runs") < table.find("Verdicts\n"), "{table}");
    });
}

#[test]
fn markdown_has_no_section_without_text_and_tables_name_runs() {
    let of = |seed| build(&Recipe { workloads: vec!["bulk", "rr"], seed, ..Recipe::default() });
    compared(&[of(1), of(2)], |comparison| {
        let document = document_of(comparison);
        assert!(html::page(&document).contains(">bulk, synthetic</h2>"));
        let page = markdown::page(&document);
        assert!(page.contains("## rr, synthetic") && !page.contains("## bulk, synthetic"), "{page}");
        assert!(page.contains("| run | trials | round trips |") && !page.contains("| arm |"), "{page}");
    });
}

#[test]
fn texts_of_a_run_file_cannot_leave_their_place() {
    let hostile = "</script><img src=x onerror=alert(1)>";
    let mut after = build(&Recipe { workloads: vec!["bulk"], text: hostile.to_owned(), ..Recipe::default() });
    after.header.id = "hostile".parse().unwrap();
    compared(&[run(1.5, 1), after], |comparison| {
        let page = html::page(&document_of(comparison));
        assert!(
            page.contains("&lt;img src=x") && !page.contains("<img"),
            "markup of a run file is in the page"
        );
    });
}

fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

#[test]
fn gate_finds_a_loss_of_ten_percent_beyond_five_and_clears_the_other_arm() {
    compared(&[run(1.5, 1), run(1.35, 2)], |comparison| {
        let [synthetic, accelerated] = condition("throughput < -5 %").of_runs(comparison).try_into().unwrap();
        assert_eq!(synthetic.standing, Standing::NotWorse, "{synthetic:?}");
        assert_eq!(accelerated.standing, Standing::Worse, "{accelerated:?}");
        assert_eq!(accelerated.subject, "throughput of bulk on accelerated, B against A");
        assert!(accelerated.verdict.starts_with("0.90x (-10 %) ["), "{accelerated:?}");
        let narrow = condition("throughput of bulk on accelerated < -20 %").of_runs(comparison);
        assert_eq!(narrow.len(), 1);
        assert_eq!(narrow[0].standing, Standing::NotWorse, "a loss of 10 % is within the limit: {narrow:?}");
        for nothing in ["throughput of other < -5 %", "throughput on other < -5 %", "outage > 1 ms"] {
            assert!(condition(nothing).of_runs(comparison).is_empty(), "{nothing}");
        }
    });
}

#[test]
fn gate_compares_the_arms_of_a_run_with_the_baseline() {
    let slower = run(0.8, 1);
    let checked = condition("throughput < -5 %").of_run(&analyse_run(&slower));
    let [accelerated] = checked.as_slice() else { panic!("{checked:?}") };
    assert_eq!(accelerated.subject, "throughput of bulk on accelerated");
    assert_eq!(accelerated.standing, Standing::Worse, "{accelerated:?}");
    let faster = condition("throughput < -5 %").of_run(&analyse_run(&run(1.5, 1)));
    assert_eq!(faster[0].standing, Standing::NotWorse, "{faster:?}");
    let plan = &slower.header.plan;
    for (text, in_run, in_runs) in [
        ("throughput < -5 %", true, true),
        ("throughput of bulk on accelerated < -5 %", true, true),
        ("throughput on synthetic < -5 %", false, true),
        ("throughput of rr < -5 %", false, false),
        ("outage > 1 ms", false, false),
    ] {
        let is_about = [Sides::Arms, Sides::Runs].map(|sides| condition(text).is_about(plan, sides));
        assert_eq!(is_about, [in_run, in_runs], "{text}");
    }
}

#[test]
fn twenty_comparisons_of_runs_without_a_change_raise_no_more_alarms_than_the_level() {
    let any_loss = ["throughput < -0 %", "cpu-per-gigabyte > 0 %"].map(condition);
    let is_alarm = |seed: u64| {
        compared(&[run(1.5, 2 * seed), run(1.5, 2 * seed + 1)], |comparison| {
            let mut checked = any_loss.iter().flat_map(|condition| condition.of_runs(comparison));
            checked.any(|one| one.standing == Standing::Worse)
        })
    };
    // At 5 % three or more alarms of twenty have a probability of 8 %, five or more of 0.3 %.
    let alarms: Vec<u64> = (100..120).filter(|seed| is_alarm(*seed)).collect();
    assert!(alarms.len() < 5, "{alarms:?}");
}

/// A run whose accelerated arm has this median throughput, beside the figures of a publication of accelerated networking.
fn beside_published<T>(blocks: u32, bits_per_second: f64, test: impl FnOnce(&RunComparison<'_>) -> T) -> T {
    let mut run =
        build(&Recipe { blocks, effect: 1.0, noise: 0.004, workloads: vec!["bulk"], ..Recipe::default() });
    for (arm, path) in run.header.plan.arms.iter_mut().zip([PathKind::Synthetic, PathKind::Vf]) {
        arm.expect_path = Some(path);
    }
    let mut analysis = analyse_run(&run);
    let throughput = analysis.workloads.iter_mut().flat_map(|workload| &mut workload.judged);
    let throughput = throughput.filter(|metric| metric.metric == Metric::Throughput);
    for values in throughput.flat_map(|metric| &mut metric.arms) {
        for (block, value) in &mut values.values {
            *value = bits_per_second * (1.0 + f64::from(*block) * 1e-4);
        }
    }
    let publication = netduel_model::published::publication_named("azure-stress-2018").unwrap();
    test(&compare(&[Side::of(&run, &analysis)], &[publication]))
}

/// Where the accelerated arm lies beside the published throughput of a size.
fn standing(comparison: &RunComparison<'_>, size: &str) -> FigureStanding {
    let figures = comparison.published.iter().filter(|one| one.figure.size() == size);
    let mut values = figures.flat_map(|one| &one.values).filter(|one| one.arm.as_str() == "accelerated");
    values.next().unwrap().standing
}

#[test]
fn published_range_is_compared_with_the_interval_of_the_run() {
    // Published for accelerated networking: 5.7 to 5.8 Gbit/s (DS4) and 23.9 to 24.4 Gbit/s (DS15).
    let sizes = ["Standard_DS4_v2", "Standard_DS15_v2"];
    beside_published(20, 5.75e9, |comparison| {
        assert_eq!(standing(comparison, sizes[0]), FigureStanding::WithinRange);
        let FigureStanding::Below(estimate) = standing(comparison, sizes[1]) else {
            panic!("{comparison:?}")
        };
        // Against the nearer end.
        assert!((estimate.centre - 5.75 / 23.9).abs() < 0.01 && estimate.high < 1.0, "{estimate:?}");
        assert!(comparison.has_data() && comparison.subjects.is_empty());
    });
    beside_published(20, 8e9, |comparison| {
        let FigureStanding::Above(estimate) = standing(comparison, sizes[0]) else {
            panic!("{comparison:?}")
        };
        assert!((estimate.centre - 8.0 / 5.8).abs() < 0.01 && estimate.low > 1.0, "{estimate:?}");
        // Three figures in a unit of the tool are about no metric.
        let without = comparison.published.iter().filter(|one| one.values.is_empty()).count();
        assert_eq!(without, 4);
    });
    // The blocks lie on both sides of the upper end.
    beside_published(20, 5.8e9 / (1.0 + 9.5e-4), |comparison| {
        assert_eq!(standing(comparison, sizes[0]), FigureStanding::Open);
    });
    beside_published(4, 5.75e9, |comparison| {
        assert_eq!(standing(comparison, sizes[0]), FigureStanding::TooFew);
    });
}

#[test]
fn comparison_with_a_publication_states_its_limits_in_every_format() {
    beside_published(20, 8e9, |comparison| {
        let document = document_of(comparison);
        assert!(document.title.starts_with("Comparison with published figures: "), "{}", document.title);
        for text in
            [terminal::report(&document, 100, false), html::page(&document), markdown::page(&document)]
        {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for words in ["its source states no spread", "no known common size", "Aidan Finn", "1.4x (+38 %)"]
            {
                assert!(text.contains(words), "no `{words}` in {text}");
            }
            assert!(!text.contains("Differences between the runs"), "{text}");
        }
    });
}
