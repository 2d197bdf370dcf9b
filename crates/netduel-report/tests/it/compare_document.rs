//! The page of a comparison to publish: summary, bars, charts where a run lacks a workload, and the words of the author.
use std::net::IpAddr;

use netduel_model::ids::{HostName, NAME_LEN_MAX};
use netduel_model::publication::Publication;
use netduel_model::run::Run;
use netduel_model::search::SearchState;
use netduel_model::snapshot::{Cloud, KernelSettings, PciFunction, Route};
use netduel_model::units::Nanos;
use netduel_model::workload::{Pps, Traffic};
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::{RunComparison, Side, compare};
use netduel_report::document::block::{Block, Document, Section};
use netduel_report::document::chart::{Chart, Figure, LevelGroup, Plot};
use netduel_report::html::Paper;
use netduel_report::{analyse_run, document, html, markdown, terminal};
use serde_json::{Value, json};

use crate::builder::{Recipe, build};
use crate::look::author;
use crate::{hosts, packets, search};

/// A run of these workloads; the seed also makes its name.
pub fn run(workloads: &[&'static str], seed: u64) -> Run {
    let mut run = build(&Recipe { workloads: workloads.to_vec(), seed, ..Recipe::default() });
    run.header.id = format!("run-{seed}").parse().unwrap();
    run
}

/// The run with the longest names of run, arms and workloads, which have no place for a line break.
pub fn with_long_names(mut run: Run) -> Run {
    let long = |name: &str| format!("{name}_{}", "x".repeat(NAME_LEN_MAX - name.len() - 1));
    let Run { header, trials, .. } = &mut run;
    header.id = long(header.id.as_str().get(..5).unwrap()).parse().unwrap();
    for name in &mut header.plan.workloads {
        *name = long(name.as_str()).parse().unwrap();
    }
    for arm in &mut header.plan.arms {
        arm.name = long(arm.name.as_str()).parse().unwrap();
        for workload in &mut arm.workloads {
            workload.name = long(workload.name.as_str()).parse().unwrap();
        }
    }
    for slot in trials.iter_mut().map(|trial| &mut trial.slot) {
        slot.arm = long(slot.arm.as_str()).parse().unwrap();
        slot.workload = long(slot.workload.as_str()).parse().unwrap();
    }
    run
}

/// The page of a comparison without an author.
pub fn document_of(comparison: &RunComparison<'_>) -> Document {
    document::of_runs(comparison, &Publication::default())
}

/// The page of a comparison.
pub fn page_of(runs: &[Run], author: &Publication) -> Document {
    let analyses: Vec<Analysis> = runs.iter().map(analyse_run).collect();
    let sides: Vec<Side<'_>> = runs.iter().zip(&analyses).map(|(run, own)| Side::of(run, own)).collect();
    document::of_runs(&compare(&sides, &[]), author)
}

fn section<'a>(document: &'a Document, title: &str) -> &'a Section {
    document.sections.iter().find(|section| section.title == title).unwrap()
}

fn figures(section: &Section) -> impl Iterator<Item = &Figure> {
    section.blocks.iter().filter_map(|block| match block {
        Block::Figure(figure) => Some(&**figure),
        _ => None,
    })
}

fn plot<'a>(section: &'a Section, kind: &str) -> &'a Plot {
    let mut plots = figures(section).filter_map(|figure| match &figure.chart {
        Chart::Plot(plot) => Some(plot),
        _ => None,
    });
    plots.find(|plot| plot.kind == kind).unwrap()
}

fn bars(section: &Section) -> Vec<&LevelGroup> {
    let levels = figures(section).filter_map(|figure| match &figure.chart {
        Chart::Levels(levels) => Some(&levels.groups),
        _ => None,
    });
    levels.flatten().collect()
}

#[test]
fn summary_has_the_outcomes_and_one_picture_of_the_values() {
    let mut runs = [run(&["bulk", "rr"], 1), run(&["bulk", "rr"], 2)];
    // A plan that may stop early is tested at a level above the one that it promises.
    runs[0].header.plan.design.blocks_max += 12;
    let document = page_of(&runs, &Publication::default());
    let summary = &document.sections[0];
    assert_eq!(summary.anchor, "summary");
    let [Block::Paragraph(text), Block::Figure(_)] = summary.blocks.as_slice() else {
        panic!("{:?}", summary.blocks)
    };
    let words = text.characters();
    let compared = "B was compared with A: bulk and rr on synthetic and accelerated";
    assert!(words.starts_with(&format!("{compared}; the runs differ in 1 stored fact. B is ")), "{words}");
    let promise = "At most 5 % of such comparisons state any false difference, and at most 5 % any false \"no difference\", \
                   under the conditions of these runs; what changed between them is not covered.";
    assert!(words.ends_with(promise), "{words}");
    // Summary, legend and method promise the same.
    let page = markdown::page(&document);
    assert!(page.matches(promise).count() >= 3, "{page}");
    assert!(!page.contains("96.5 % confidence"), "{page}");
    let titles: Vec<&str> = bars(summary).iter().map(|group| group.title.as_str()).collect();
    assert_eq!(titles.len(), 4, "{titles:?}");
    assert!(titles[0].starts_with("bulk, synthetic: "), "{titles:?}");
    let shown = |document: &Document| terminal::report(document, 120, false);
    assert!(!shown(&document).contains("was compared with"), "the terminal has the verdicts in view");
}

#[test]
fn question_program_size_placement_and_nic_model_are_stated_before_the_verdicts() {
    let [mut before, mut after] = [run(&["bulk"], 1), run(&["bulk"], 2)];
    let host: HostName = "b".parse().unwrap();
    let words = |text: &str| Some(text.to_owned());
    for (run, size, group, device) in [
        (&mut before, "Standard_D4s_v5", "near", 0x1016),
        (&mut after, "Standard_D8s_v5", "far-away", 0x00ba),
    ] {
        let own = run.header.hosts.get_mut(&host).unwrap();
        let (cloud, function) = (hosts::azure().cloud.unwrap(), hosts::function());
        own.cloud = Some(Cloud { size: words(size), placement: words(group), ..cloud });
        own.interfaces[2].device.pci = Some(PciFunction { device, ..function });
    }
    after.header.program = "netduel 0.2.0".to_owned();
    after.header.plan.question = "Is it as before?".to_owned();
    let page = terminal::report(&page_of(&[before, after], &Publication::default()), 400, false);
    let (first, _) = page.split_once("Verdicts\n").unwrap_or_else(|| panic!("no verdicts in {page}"));
    for (fact, values) in [
        ("question", ["Is the accelerated path faster than the synthetic one?", "Is it as before?"]),
        ("netduel", ["netduel 0.1.0", "netduel 0.2.0"]),
        ("size of host b", ["Standard_D4s_v5", "Standard_D8s_v5"]),
        ("placement group of host b", ["near", "far-away"]),
        ("vf0 NIC model of host b", ["15b3:1016", "15b3:00ba"]),
    ] {
        let row = first.lines().find(|line| line.trim_start().starts_with(&format!("{fact}  ")));
        let row = row.unwrap_or_else(|| panic!("no {fact} in {first}"));
        assert!(values.iter().all(|value| row.contains(value)), "{values:?}: {row}");
    }
}

#[test]
fn changed_settings_of_plans_are_stated_before_the_verdicts_in_every_format() {
    let [mut before, mut after] = [run(&["bulk", "rr"], 1), run(&["bulk", "rr"], 2)];
    before.header.annotations.overrides = vec!["blocks_max=8".to_owned()];
    after.header.annotations.overrides = ["blocks_max=8", "bulk.duration=4s"].map(str::to_owned).to_vec();
    for arm in &mut after.header.plan.arms {
        arm.workloads[0].timing.duration = Nanos::from_millis(4_000);
    }
    let document = page_of(&[before, after], &Publication::default());
    let anchors: Vec<&str> = document.sections.iter().map(|section| section.anchor.as_str()).collect();
    assert_eq!(anchors[..5], ["summary", "runs", "differences", "not-compared", "verdicts"]);
    let Block::Paragraph(summary) = &document.sections[0].blocks[0] else { panic!("no summary") };
    let summary = summary.characters();
    let changed = "the runs differ in 1 stored fact; 2 arms or workloads are not compared. B ";
    assert!(summary.contains(&format!("rr on synthetic and accelerated; {changed}")), "{summary}");
    for (page, verdicts) in [
        (html::page(&document), "<section id=\"verdicts\">"),
        (html::printed(&document, Paper::A4), "<section id=\"verdicts\">"),
        (markdown::page(&document).replace('\\', ""), "\n## Verdicts\n"),
        (terminal::report(&document, 400, false), "\nVerdicts\n"),
    ] {
        let (first, _) = page.split_once(verdicts).unwrap_or_else(|| panic!("no verdicts in {page}"));
        for words in [
            "settings of the command line",
            "blocks_max=8; bulk.duration=4s",
            "bulk of arm synthetic: other settings (A: tcp-stream, ",
        ] {
            assert!(first.contains(words), "no {words:?} in {first}");
        }
    }
}

#[test]
fn too_few_values_are_stated_with_the_number_that_a_verdict_needs_in_every_format() {
    let page = |blocks: u32| {
        let of = |seed| build(&Recipe { blocks, workloads: vec!["bulk"], seed, ..Recipe::default() });
        page_of(&[of(1), of(2)], &Publication::default())
    };
    // Each of four verdicts is tested at 1.25 %: 2 of 20 orders of 3 and 3 values are too many, 2 of 70 of 4 and 4 as well, 2 of 252 are not.
    let few = page(3);
    for text in [terminal::report(&few, 120, false), html::page(&few), markdown::page(&few)] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("inconclusive: too few values (3 and 3), at least 5 in each needed"), "{text}");
    }
    let enough = markdown::page(&page(5));
    assert!(!enough.contains("too few values"), "{enough}");
}

#[test]
fn workload_has_boxes_by_run_and_a_cumulative_distribution() {
    let report = document(&run(&["bulk"], 1));
    let document = page_of(&[run(&["bulk"], 1), run(&["bulk"], 2)], &Publication::default());
    let own = section(&document, "bulk, accelerated");
    let groups = bars(own);
    assert!(!groups.is_empty());
    for group in groups {
        let names: Vec<(&str, usize)> = group.bars.iter().map(|bar| (bar.name.as_str(), bar.arm)).collect();
        assert_eq!(names, [("A", 0), ("B", 1)], "{}", group.title);
        for bar in &group.bars {
            let ((min, max), (low, high)) = (bar.whiskers.unwrap(), bar.range.unwrap());
            assert!(min < max && min <= low && high <= max, "{bar:?}");
        }
    }
    let levels = figures(own).find(|figure| matches!(figure.chart, Chart::Levels(_))).unwrap();
    assert!(levels.reading.contains("Box: their quartiles. Line: from min to max."), "{}", levels.reading);
    assert!(levels.alternative.contains("] from "), "{}", levels.alternative);
    // The arms of one run are paired, and have their intervals only.
    let of_arms = bars(section(&report, "Summary"));
    assert!(of_arms.iter().flat_map(|group| &group.bars).all(|bar| bar.whiskers.is_none()));
    let data = &plot(own, "cumulative").data;
    for line in data["cumulative"].as_array().unwrap() {
        let points = line.as_array().unwrap();
        let share = |point: &Value| point[1].as_f64().unwrap();
        let (first, last) = (&points[0][1], &points[points.len() - 1][1]);
        assert_eq!([first, last].map(Value::as_f64), [Some(0.0), Some(100.0)], "{line}");
        let is_rising = |pair: &[Value]| {
            let [one, next] = [0, 1].map(|place| (pair[place][0].as_f64().unwrap(), share(&pair[place])));
            one.0 <= next.0 && one.1 <= next.1
        };
        assert!(points.windows(2).all(is_rising), "{line}");
    }
}

#[test]
fn run_without_a_workload_takes_no_chart_from_the_others() {
    let runs = [run(&["bulk", "rr"], 1), run(&["bulk"], 2), run(&["bulk", "rr"], 3)];
    let document = page_of(&runs, &Publication::default());
    assert_eq!(document.arms, ["A", "B", "C"]);
    let own = section(&document, "rr, accelerated");
    for group in bars(own) {
        let names: Vec<(&str, usize)> = group.bars.iter().map(|bar| (bar.name.as_str(), bar.arm)).collect();
        assert_eq!(names, [("A", 0), ("C", 2)], "{}", group.title);
    }
    let has_points = |points: &Value| points.as_array().is_some_and(|points| !points.is_empty());
    for (kind, key) in [("blocks", "arms"), ("series", "arms"), ("tail", "tail"), ("density", "density")] {
        let data = &plot(own, kind).data;
        let known: Vec<bool> = data[key].as_array().unwrap().iter().map(has_points).collect();
        assert_eq!(known, [true, false, true], "{kind}: {data}");
    }
    assert_eq!(plot(own, "blocks").data["medians"][1], json!(null));
}

#[test]
fn runs_of_a_sweep_are_points_of_one_picture() {
    let run = |id: &str, times: u64| {
        let mut run = packets::swept_far(times);
        run.header.id = id.parse().unwrap();
        for (arm, queues) in run.header.plan.arms.iter_mut().zip([1, 4]) {
            for workload in &mut arm.workloads {
                let Traffic::Pps(Pps { packets, .. }) = &mut workload.traffic else { panic!("no packets") };
                packets.queues = Some(queues);
            }
        }
        run
    };
    let document = page_of(&[run("before", 1), run("after", 2)], &Publication::default());
    let own = section(&document, "Packets per second");
    let titles: Vec<&str> = figures(own).map(|figure| figure.title.as_str()).collect();
    let expected = [
        "Packets received by frame size: small, synthetic",
        "Packets received by frame size: small, accelerated",
        "Packets received by queues: small-68",
        "Packets received by queues: small-512",
    ];
    assert_eq!(titles, expected);
    let points = |place: usize| -> Vec<(String, u64, f64)> {
        let Chart::Plot(plot) = &figures(own).nth(place).unwrap().chart else { panic!("{own:?}") };
        let points = plot.data["points"].as_array().unwrap().iter();
        let point = |one: &Value| {
            let label = one["label"].as_str().unwrap().to_owned();
            (label, one["arm"].as_u64().unwrap(), one["received"].as_f64().unwrap())
        };
        points.map(point).collect()
    };
    let sizes = points(1);
    let places: Vec<(&str, u64)> = sizes.iter().map(|(label, run, _)| (label.as_str(), *run)).collect();
    assert_eq!(places, [("68 B", 0), ("68 B", 1), ("512 B", 0), ("512 B", 1)]);
    // The second run received half of the large frames.
    let ratio = |first: usize| sizes[first].2 / sizes[first + 1].2;
    assert!((ratio(0) - 1.0).abs() < 0.01 && (ratio(2) - 2.0).abs() < 0.01, "{sizes:?}");
    let queues = points(2);
    let places: Vec<(&str, u64)> = queues.iter().map(|(label, run, _)| (label.as_str(), *run)).collect();
    let [one, four] = ["1 queue (synthetic)", "4 queues (accelerated)"];
    assert_eq!(places, [(one, 0), (one, 1), (four, 0), (four, 1)]);
    let page = markdown::page(&document);
    assert!(page.contains("| size | run | sent, median, ") && !page.contains("| size | arm |"), "{page}");
}

#[test]
fn searches_of_runs_are_lines_of_loss_by_rate() {
    let searched = |seed: u64| {
        let mut run = search::run([SearchState::Regular; 2]);
        run.header.id = format!("run-{seed}").parse().unwrap();
        run
    };
    let mut last = searched(3);
    for trial in &mut last.trials {
        let step = trial.search.as_mut().unwrap().steps.last_mut().unwrap();
        step.output.received = step.output.sent / 2;
    }
    let document = page_of(&[searched(1), run(&["bulk"], 2), last.clone()], &Publication::default());
    let own = section(&document, "udp, synthetic");
    // The search of the fourth block: 3 Mpps at most, and two steps at 1.003 Mpps. The second run has none.
    let [first, third] = [0.000_349, 50.0].map(|lost| json!([[1.003, 0.0], [1.003, lost], [3.0, 33.33]]));
    assert_eq!(plot(own, "loss").data["arms"], json!([first, [], third]));
    let figure = figures(own).find(|figure| figure.title == "Loss by rate").unwrap();
    let words = "A 3 steps in 7.20 s, between 1.00 Mpps and 1.01 Mpps; C 3 steps in 7.20 s, between ";
    assert!(figure.alternative.contains(words), "{}", figure.alternative);
    let table = figure.data.as_ref().unwrap();
    assert_eq!((table.columns[0].title.as_str(), table.rows.len()), ("run", 6));
    // A search beside no other is no comparison.
    last.trials.iter_mut().for_each(|trial| trial.search = None);
    let document = page_of(&[searched(1), last], &Publication::default());
    let has_loss = |section: &Section| figures(section).any(|figure| figure.title == "Loss by rate");
    assert!(!document.sections.iter().any(has_loss));
}

#[test]
fn parts_of_round_trips_are_those_of_their_runs() {
    let runs = [run(&["load"], 1), run(&["bulk"], 2), run(&["load"], 3)];
    let document = page_of(&runs, &Publication::default());
    let rows = &plot(section(&document, "load, accelerated"), "parts").data["rows"];
    let mut places: Vec<u64> =
        rows.as_array().unwrap().iter().map(|row| row["arm"].as_u64().unwrap()).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places, [0, 2]);
}

#[test]
fn run_without_a_value_keeps_its_column_in_the_table_of_differences() {
    let mut runs = [1, 2, 3].map(|seed| run(&["bulk"], seed));
    for (run, ticket) in runs.iter_mut().zip(["NET-7", "NET-8"]) {
        run.header.annotations.notes.insert("ticket".to_owned(), ticket.to_owned());
    }
    let document = page_of(&runs, &Publication::default());
    let page = markdown::page(&document);
    assert!(page.contains("| A | B | C |"), "{page}");
    assert!(page.contains("| NET-7 | NET-8 | unknown or none |"), "{page}");
    let text = terminal::report(&document, 80, false);
    assert!(text.contains("unknown or none"), "{text}");
}

#[test]
fn longest_names_fit_a_terminal_of_80_columns() {
    let run = |seed: u64| {
        let recipe = Recipe { workloads: vec!["bulk", "rr"], blocks: 12, seed, ..Recipe::default() };
        with_long_names(build(&recipe))
    };
    let document = page_of(&[run(1), run(2), run(3)], &Publication::default());
    let text = terminal::report(&document, 80, false);
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    // Three values beside each other have no room.
    assert!(text.contains("\n  throughput\n    baseline A: "), "{text}");
    assert!(text.contains("\n    run: B\n    value of the run: "), "{text}");
}

#[test]
fn words_of_the_author_are_in_the_files_of_a_comparison() {
    let document = page_of(&[run(&["bulk"], 1), run(&["bulk"], 2)], &author());
    let page = html::page(&document);
    let text = markdown::page(&document);
    for (html, markdown) in [
        ("<h1>Accelerated networking in our test bed</h1>", "# Accelerated networking in our test bed"),
        ("<p class=\"question\">Comparison of 2 runs: ", "Comparison of 2 runs: "),
        ("A. Author, Example Networks", "A. Author, Example Networks"),
        ("To decide whether <b>all</b> guests", "To decide whether **all** guests"),
        ("<h3>First impression</h3>", "### First impression"),
        ("<dt>Runs</dt><dd>A run-1; B run-2</dd>", "- Runs: A run-1; B run-2"),
    ] {
        assert!(page.contains(html), "no {html}");
        assert!(text.contains(markdown), "no {markdown} in {text}");
    }
    assert!(page.contains("<img class=\"logo\" src=\"data:image/png;base64,"));
    assert!(page.contains(":root { --accent: "), "the colour of the author");
}

#[test]
fn facts_that_an_earlier_version_did_not_read_are_no_differences() {
    let differing = |runs: [&Run; 2]| -> Vec<String> {
        let analyses = runs.map(analyse_run);
        let sides = [0, 1].map(|place| Side::of(runs[place], &analyses[place]));
        compare(&sides, &[]).differences.iter().map(|one| one.fact.clone()).collect()
    };
    let known = |seed: u64, smt: &str, boot_options: &[&str]| {
        let mut run = run(&["bulk"], seed);
        let host = run.header.hosts.values_mut().next().unwrap();
        host.kernel_settings = Some(KernelSettings {
            smt: Some(smt.to_owned()),
            boot_options: boot_options.iter().map(|&option| option.to_owned()).collect(),
            vulnerabilities: [("spectre_v2".to_owned(), format!("Mitigation: {smt}"))].into(),
            ..KernelSettings::default()
        });
        host.routes = vec![Route {
            destination: [10, 77, 0, 0].into(),
            prefix_length: 24,
            interface: smt.to_owned(),
            metric: 0,
            gateway: None,
            source: None,
            mtu: None,
            attributes: None,
        }];
        run
    };
    let (earlier, before, after) = (run(&["bulk"], 1), known(2, "on", &[]), known(3, "off", &["nosmt"]));
    assert_eq!(differing([&earlier, &after]), Vec::<String>::new());
    assert_eq!(differing([&after, &earlier]), Vec::<String>::new());
    let facts = ["routes", "SMT", "CPU vulnerability spectre_v2", "kernel boot parameters"];
    assert_eq!(differing([&before, &after]), facts);
    // An empty list of known facts is known.
    assert_eq!(differing([&before, &known(4, "on", &["nosmt"])]), ["kernel boot parameters"]);
}

#[test]
fn next_hops_are_compared_where_both_runs_know_some() {
    let run_with = |seed: u64, interface: &str, hop: Option<(u8, u32)>| {
        let mut run = run(&["bulk"], seed);
        let host = run.header.hosts.values_mut().next().unwrap();
        let route = |prefix_length: u8, gateway: Option<IpAddr>, mtu: Option<u32>| Route {
            destination: [0, 0, 0, 0].into(),
            prefix_length,
            interface: interface.to_owned(),
            metric: 0,
            gateway,
            source: None,
            mtu,
            attributes: None,
        };
        let gateway = hop.map(|(last, _)| IpAddr::from([10, 0, 0, last]));
        host.routes = vec![route(0, gateway, hop.map(|(_, mtu)| mtu)), route(8, None, None)];
        run
    };
    let differing = |runs: [&Run; 2]| -> Vec<(String, Vec<Option<String>>)> {
        let analyses = runs.map(analyse_run);
        let sides = [0, 1].map(|place| Side::of(runs[place], &analyses[place]));
        compare(&sides, &[]).differences.iter().map(|one| (one.fact.clone(), one.values.clone())).collect()
    };
    let (earlier, now) = (run_with(1, "eth0", None), run_with(2, "eth0", Some((1, 1400))));
    for runs in [[&earlier, &now], [&now, &earlier]] {
        let found = differing(runs);
        assert!(found.is_empty(), "{found:?}");
    }
    let moved = differing([&earlier, &run_with(3, "eth1", Some((1, 1400)))]);
    assert_eq!(moved.iter().map(|(fact, _)| fact.as_str()).collect::<Vec<_>>(), ["routes"]);
    let values = ["0.0.0.0/0 via 10.0.0.1, MTU 1400", "0.0.0.0/0 via 10.0.0.2, MTU 1500"];
    let values = values.map(|value| Some(value.to_owned())).to_vec();
    let found = differing([&now, &run_with(4, "eth0", Some((2, 1500)))]);
    assert_eq!(found, [("next hops and MTUs of routes".to_owned(), values)]);
}

#[test]
fn attributes_of_routes_are_compared_where_both_runs_know_them() {
    let run_with = |seed: u64, attributes: Option<&[(&str, &str)]>| {
        let mut run = run(&["bulk"], seed);
        let host = run.header.hosts.values_mut().next().unwrap();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        host.routes = vec![Route {
            destination: [10, 77, 0, 0].into(),
            prefix_length: 24,
            interface: "eth0".to_owned(),
            metric: 0,
            gateway: None,
            source: None,
            mtu: None,
            attributes: attributes.map(|stated| stated.iter().map(owned).collect()),
        }];
        run
    };
    let differing = |runs: [&Run; 2]| -> Vec<(String, Vec<Option<String>>)> {
        let analyses = runs.map(analyse_run);
        let sides = [0, 1].map(|place| Side::of(runs[place], &analyses[place]));
        compare(&sides, &[]).differences.iter().map(|one| (one.fact.clone(), one.values.clone())).collect()
    };
    let reno = run_with(1, Some(&[("advmss", "300"), ("congctl", "reno")]));
    assert!(differing([&run_with(2, None), &reno]).is_empty());
    let values = ["10.77.0.0/24 advmss 300, congctl reno", "10.77.0.0/24 congctl cubic"];
    let values = values.map(|value| Some(value.to_owned())).to_vec();
    let found = differing([&reno, &run_with(3, Some(&[("congctl", "cubic")]))]);
    assert_eq!(found, [("attributes of routes".to_owned(), values)]);
}
