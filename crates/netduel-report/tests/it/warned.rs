//! Warnings of a run in every format: their marks, their wording, and why a run cannot have verdicts.
use netduel_model::plan::Launch;
use netduel_model::run::Run;
use netduel_model::sample::Flow;
use netduel_model::warning::Warning;
use netduel_report::{analyse_run, csv, document, html, markdown, terminal, words};
use serde_json::Value;

use crate::bounds::with_stalls;
use crate::builder::{Recipe, build};
use crate::json;

/// A run in each format that has its warnings as sentences, by name, in lines that are wide enough for them.
pub fn texts(run: &Run) -> [(&'static str, String); 4] {
    let document = document(run);
    [
        ("terminal", terminal::report(&document, 400, false)),
        ("closing lines", terminal::summary(&document, 400, false)),
        ("markdown", markdown::page(&document)),
        ("html", html::page(&document)),
    ]
}

fn outlier(workload: &str, metric: &str, block: u32, ratio: f64) -> Warning {
    Warning::OutlierBlock {
        arm: "accelerated".parse().unwrap(),
        workload: workload.parse().unwrap(),
        metric: serde_json::from_value(Value::from(metric)).unwrap(),
        block,
        ratio_to_median: ratio,
    }
}

fn late(workload: &str, ns: u64) -> Warning {
    Warning::ScheduleMissed {
        arm: "synthetic".parse().unwrap(),
        workload: workload.parse().unwrap(),
        pacing_error_p99_ns: ns,
    }
}

#[test]
fn outliers_of_each_metric_have_a_mark_of_their_own() {
    let mut run = build(&Recipe { workloads: vec!["rr"], ..Recipe::default() });
    run.warnings = vec![
        outlier("rr", "latency-p50", 1, 2.0),
        outlier("rr", "latency-p50", 4, 9.0),
        outlier("rr", "latency-p99", 4, 3.0),
    ];
    let analysis = analyse_run(&run);
    let sentences = words::warning_sentences(&analysis);
    let texts: Vec<String> = sentences.iter().map(words::Sentence::marked).collect();
    assert!(
        texts[0].starts_with("*1 outlier blocks: round trip p50 in rr was far")
            && texts[1].starts_with("*2 outlier block: "),
        "{texts:?}"
    );
    let page = markdown::page(&document(&run)).replace('\\', "");
    let row = |start: &str| page.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    assert!(
        row("| round trip p50 |").contains(" *1 |") && row("| round trip p99 |").contains(" *2 |"),
        "{page}"
    );
    let json = json::report(&run);
    let marks: Vec<&Value> = (0..3).map(|index| &json["warnings"][index]["mark"]).collect();
    assert_eq!(marks, [1, 1, 2]);
    assert_eq!(
        json["warnings"][1]["figures"][0],
        serde_json::json!({ "name": "block", "value": 5.0, "unit": "count" })
    );
}

#[test]
fn worst_warning_of_a_kind_is_shown_with_the_marks_of_the_others() {
    let mut run = build(&Recipe { workloads: vec!["rr", "open"], ..Recipe::default() });
    run.warnings = vec![late("rr", 1_000_000), late("open", 90_000_000)];
    let analysis = analyse_run(&run);
    let heads = words::warning_heads(&analysis);
    let head = heads.iter().find(|head| head.contains("schedule missed")).unwrap();
    let start = "*1, *2 schedule missed (2 warnings), the worst: the open loop of open";
    assert!(head.starts_with(start) && head.contains("90"), "{head}");
    // The count above the list agrees with its lines.
    let count = words::warning_sentences(&analysis).len();
    let above = format!("{count} warnings of 1 kind (*N marks");
    let text = terminal::report(&document(&run), 200, false);
    assert!(heads.len() == 1 && count == 2 && text.contains(&above), "no {above:?} in {text}");
}

#[test]
fn warnings_below_the_verdicts_stand_apart_from_them() {
    let mut run = build(&Recipe::default());
    let is_apart = |run: &Run| {
        let report = terminal::report(&document(run), 120, false);
        let is_count =
            |line: &str| line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" warning");
        let (before, _) = report.split_at(report.find("\nWarnings\n").unwrap());
        let lines: Vec<&str> = before.lines().collect();
        let count = lines.iter().position(|line| is_count(line)).unwrap_or_else(|| panic!("{report}"));
        lines[count - 1].is_empty() && !lines[count - 2].is_empty()
    };
    assert!(is_apart(&run));
    // Values of a single arm are a table.
    run.header.plan.arms.truncate(1);
    run.trials.retain(|trial| trial.slot.arm.as_str() == "synthetic");
    assert!(is_apart(&run));
}

#[test]
fn run_with_too_few_blocks_says_so_in_every_format() {
    let mut run = build(&Recipe { blocks: 2, ..Recipe::default() });
    run.header.plan.design.blocks_max = 2;
    let needed = run.header.plan.too_few_blocks().unwrap().1;
    let document = document(&run);
    let words = format!("at least {needed} blocks before even a difference in every block is significant");
    for (format, text) in texts(&run) {
        assert!(text.contains(&words), "{format}: {text}");
    }
    assert_eq!(json::report(&run)["blocks_needed"], needed);
    let headline = markdown::page(&document);
    assert!(
        headline.contains(&format!("the plan allows too few blocks, at least {needed} are needed")),
        "{headline}"
    );
    run.header.plan.design.blocks_max = 40;
    assert_eq!(json::report(&run)["blocks_needed"], Value::Null);
}

#[test]
fn valid_trials_without_a_value_have_the_reason_in_every_format() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    for trial in &mut run.trials {
        for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
            for flow in [&mut end.report.sent, &mut end.report.received].into_iter().flatten() {
                *flow = Flow::default();
            }
        }
    }
    assert_eq!(analyse_run(&run).trials_excluded, 0);
    for (format, text) in texts(&run) {
        assert!(
            text.contains("No value: throughput of bulk on synthetic and accelerated: no data arrived"),
            "{format}: {text}"
        );
        assert!(!text.contains("no valid trial"), "{format}: {text}");
    }
}

#[test]
fn estimate_without_a_verdict_is_in_every_format() {
    let run = build(&Recipe { blocks: 3, workloads: vec!["bulk"], ..Recipe::default() });
    let document = document(&run);
    for (format, text) in [
        ("terminal", terminal::report(&document, 200, false)),
        ("markdown", markdown::page(&document)),
        ("html", html::page(&document).split("<script").next().unwrap().to_owned()),
    ] {
        assert!(text.contains("inconclusive: at least"), "{format}");
        // Not only in the label of the picture.
        assert!(text.contains("estimate 3.") || text.contains("| 3."), "{format}: {text}");
    }
}

#[test]
fn cpu_figures_with_contention_are_marked_wherever_they_stand() {
    let of = |workload: &'static str, is_contended: bool| {
        let mut run = build(&Recipe { workloads: vec![workload], ..Recipe::default() });
        let ends = run.trials.iter_mut().flat_map(|trial| [&mut trial.client, &mut trial.server]).flatten();
        for core in ends.filter(|_| is_contended).flat_map(|end| &mut end.observation.cores) {
            core.user_ns += core.idle_ns / 2;
            core.idle_ns /= 2;
        }
        run
    };
    let run = of("rr", true);
    let page = markdown::page(&document(&run)).replace('\\', "");
    let row = page.lines().find(|line| line.starts_with("| CPU per round trip |")).unwrap();
    assert!(row.ends_with("| not comparable *1 |"), "{row}");
    assert!(page.contains("- CPU contention in synthetic and accelerated: CPU time, interrupts"), "{page}");
    let doubtful = ",CPU contention: other processes used ";
    let rows = |text: &str| {
        text.lines().filter(|line| line.contains(doubtful)).map(str::to_owned).collect::<Vec<_>>()
    };
    let csv = rows(&csv::trials(&run));
    assert!(csv.len() == 16 && csv.iter().all(|row| row.contains(",cpu-per-round-trip,")), "{csv:?}");
    assert!(rows(&csv::trials(&of("rr", false))).is_empty());
    let ratios = |is_contended: bool| {
        let analysis = analyse_run(&of("bulk", is_contended));
        let counters = &analysis.workloads[0].counters;
        ["interrupts", "context switches", "time_squeeze", "retransmitted segments"].map(|title| {
            counters.iter().find(|one| one.title == title).is_some_and(|one| one.ratios[1].is_some())
        })
    };
    assert_eq!(ratios(false), [true; 4]);
    assert_eq!(ratios(true), [false, false, false, true], "counters of whole hosts have no ratio");
}

#[test]
fn stalled_trials_name_other_processes_and_no_firewall_in_a_lab() {
    let warning = |in_lab: bool, others: bool| {
        let mut run = with_stalls(8, [1, 0]);
        if !in_lab {
            run.header.plan.hosts.values_mut().for_each(|host| host.launch = Launch::Local);
        }
        for trial in run.trials.iter_mut().filter(|trial| others && trial.slot.block == 0) {
            for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
                for core in &mut end.observation.cores {
                    core.user_ns += core.idle_ns / 2;
                    core.idle_ns /= 2;
                }
            }
        }
        let warnings = words::warnings(&analyse_run(&run));
        warnings.into_iter().find(|warning| warning.starts_with("no round trips: ")).unwrap()
    };
    let alone = warning(false, false);
    assert!(alone.contains("look for a stalled path, a busy host or a firewall, or set"), "{alone}");
    let lab = warning(true, false);
    assert!(lab.ends_with(": look for other load on this machine, or set a longer `duration`"), "{lab}");
    let contended = warning(true, true);
    let words = "per window: stop the other processes, which used up to ";
    assert!(contended.contains(words) && !contended.contains("firewall"), "{contended}");
    assert!(contended.contains(" of the CPU time of a host in 1 of these trials, or set"), "{contended}");
    let apart = warning(false, true);
    assert!(apart.contains("of these trials, look for a stalled path or a firewall, or set"), "{apart}");
}
