//! Histories of one plan: levels that changed, the facts that changed with them, and what does not belong to a series.
use netduel_model::ids::NAME_LEN_MAX;
use netduel_model::metric::Metric;
use netduel_model::units::Nanos;
use netduel_report::analysis::Bound;
use netduel_report::history::{History, PastRun, Selection, Series};
use netduel_report::json::history::HistoryDocument;
use netduel_report::words::Tone;
use netduel_report::{analyse_run, document, html, markdown, terminal};

use serde_json::Value;

use crate::bounds::{with_contention, with_stalls};
use crate::builder::{Recipe, build};
use crate::compare_document::with_long_names;
use crate::json::{origin, printed};

/// A run per day; from the day `at` on the second arm has the other effect, and the hosts another kernel.
pub fn runs(count: u64, at: u64, effects: [f64; 2]) -> Vec<netduel_model::run::Run> {
    let run = |day: u64| {
        let effect = effects[usize::from(day >= at)];
        let recipe =
            Recipe { effect, noise: 0.01, workloads: vec!["bulk"], seed: day + 1, ..Recipe::default() };
        let mut run = build(&recipe);
        run.header.id = format!("demo-{day:02}").parse().unwrap();
        run.header.started_unix_ms += day * 86_400_000;
        if day >= at {
            for host in run.header.hosts.values_mut() {
                host.kernel = Some("6.19.0".to_owned());
            }
        }
        run
    };
    (0..count).map(run).collect()
}

/// The history of these runs.
pub fn history(runs: &[netduel_model::run::Run], selection: &Selection) -> History {
    // The order in which they are read does not matter.
    let past = runs.iter().rev().map(|run| PastRun::of(run, &analyse_run(run)));
    History::of(past.collect(), selection).unwrap()
}

fn series<'a>(history: &'a History, arm: &str, metric: Metric) -> &'a Series {
    history.series.iter().find(|one| one.arm.as_str() == arm && one.metric.metric == metric).unwrap()
}

#[test]
fn loss_of_a_tenth_is_a_change_with_the_facts_that_changed() {
    let history = history(&runs(16, 10, [3.0, 2.7]), &Selection::default());
    let changed = series(&history, "accelerated", Metric::Throughput);
    let [change] = changed.changes.as_slice() else { panic!("{:?}", changed.changes) };
    assert_eq!((change.at, change.tone), (10, Tone::Worse));
    assert!((change.after / change.before - 0.9).abs() < 0.01, "{change:?}");
    assert_eq!(change.causes[0], "kernel of host a (6.18.5-cloud-amd64 to 6.19.0)");
    assert!(series(&history, "synthetic", Metric::Throughput).changes.is_empty());
    let page = terminal::report(&document::of_history(&history), 110, false);
    for text in [
        "History of demo: ",
        "16 runs from 2026-11-21",
        "throughput of bulk on accelerated",
        "demo-10",
        "worse: ",
        "(-10.",
        "kernel of host a (6.18.5-cloud-amd64 to 6.19.0)",
    ] {
        assert!(page.contains(text), "no `{text}` in {page}");
    }
    let trend = document::history::trend(changed);
    assert_eq!(trend.chars().position(|c| c == '|'), Some(10), "{trend}");
    let document = printed(&HistoryDocument::of(&history, &origin()));
    let json = &document["series"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["arm"] == "accelerated")
        .unwrap()["changes"][0];
    assert_eq!((&json["run"], &json["tone"]), (&"demo-10".into(), &"worse".into()));
    assert!(markdown::page(&document::of_history(&history)).contains("worse: "));
    let page = html::page(&document::of_history(&history));
    assert!(page.contains("data-chart=\"history\""));
    // The table of changes has the name, and that of each series.
    assert!(page.matches(">demo-<wbr>10<").count() > history.series.len(), "{page}");
}

#[test]
fn run_with_other_settings_is_in_no_series_and_one_of_another_plan_in_no_history() {
    let mut all = runs(9, 9, [3.0, 3.0]);
    for arm in &mut all[2].header.plan.arms {
        arm.workloads[0].timing.duration = Nanos::from_millis(4_000);
    }
    all[4].header.plan.name = "other".parse().unwrap();
    let history = history(&all, &Selection::default());
    assert_eq!(history.runs.len(), 8);
    let one = series(&history, "accelerated", Metric::Throughput);
    assert_eq!((one.points.len(), one.other_runs), (7, 1));
    let page = markdown::page(&document::of_history(&history));
    // Four series share the level.
    assert!(page.contains("None. A change can be shown from 10 runs on."), "{page}");
    assert!(page.contains("1 run of the plan not shown"), "{page}");
}

#[test]
fn selection_shows_one_series_also_of_a_metric_without_verdicts() {
    let all = runs(3, 9, [3.0, 3.0]);
    let judged = all[0].header.plan.arms[0].workloads[0].metrics.clone();
    let other = Metric::ALL
        .into_iter()
        .find(|metric| !judged.contains(metric) && *metric == Metric::RetransmitsPerGigabyte);
    let metric = other.unwrap_or(Metric::Throughput);
    let selection =
        Selection { metric: Some(metric), arm: Some("accelerated".parse().unwrap()), workload: None };
    let history = history(&all, &selection);
    assert_eq!(history.series.len(), 1);
    assert_eq!((history.series[0].arm.as_str(), history.series[0].metric.metric), ("accelerated", metric));
    assert_eq!(history.series[0].points.len(), 3);
}

#[test]
fn change_is_found_from_the_stated_number_of_runs_on() {
    let one = Selection {
        metric: Some(Metric::Throughput),
        workload: Some("bulk".parse().unwrap()),
        arm: Some("accelerated".parse().unwrap()),
    };
    for (selection, needed) in [(&Selection::default(), 10), (&one, 8)] {
        for count in [needed - 1, needed] {
            let history = history(&runs(count, count / 2, [3.0, 2.0]), selection);
            assert_eq!(history.runs_needed(), needed as usize);
            let changes = &series(&history, "accelerated", Metric::Throughput).changes;
            assert_eq!(changes.len(), usize::from(count == needed), "{count} of {needed}: {changes:?}");
            let page = markdown::page(&document::of_history(&history));
            let text = format!("None. A change can be shown from {needed} runs on.");
            assert_eq!(page.contains(&text), count < needed, "{page}");
        }
    }
}

#[test]
fn bounds_have_their_sign_in_every_format_of_a_history() {
    let run = |day: u64| {
        let mut run = with_stalls(8, [0, if day == 2 { 8 } else { 0 }]);
        run.header.id = format!("demo-{day:02}").parse().unwrap();
        run.header.started_unix_ms += day * 86_400_000;
        run
    };
    let runs: Vec<_> = (0..3).map(run).collect();
    let history = history(&runs, &Selection { metric: Some(Metric::LatencyP50), ..Selection::default() });
    let stalled = series(&history, "accelerated", Metric::LatencyP50);
    assert_eq!(stalled.points[2].bounds, [Some(Bound::AtLeast); 3]);
    assert_eq!(stalled.points[1].bounds, [None; 3]);
    let shown = document::of_history(&history);
    let page = terminal::report(&shown, 200, false);
    let overview = page.lines().find(|line| line.contains("round trip p50 of rr on accelerated")).unwrap();
    assert!(overview.ends_with(">= 4.30 s"), "the newest run: {overview}");
    assert!(page.contains(">= 4.30  ") && markdown::page(&shown).contains("&gt;= 4.30 |"), "{page}");
    let page = html::page(&shown);
    assert!(page.contains("&gt;= 4.30") && page.contains("An arrow marks a bound"));
    let document = printed(&HistoryDocument::of(&history, &origin()));
    let all = document["series"].as_array().unwrap();
    let points = &all.iter().find(|one| one["arm"] == "accelerated").unwrap()["points"];
    for key in ["median_bound", "quartile_1_bound", "quartile_3_bound"] {
        assert_eq!((&points[2][key], &points[1][key]), (&"at-least".into(), &Value::Null), "{points}");
    }
}

#[test]
fn history_of_one_run_has_its_values() {
    let history = history(&runs(1, 9, [3.0, 3.0]), &Selection::default());
    assert!(history.series.iter().all(|series| series.points.len() == 1 && series.changes.is_empty()));
    assert!(!history.series.is_empty());
    assert!(terminal::report(&document::of_history(&history), 80, false).contains("1 run"));
}

#[test]
fn longest_names_of_a_history_fit_a_terminal() {
    let all = runs(16, 10, [3.0, 2.7]).into_iter().map(with_long_names).zip(0..).map(|(mut run, day)| {
        let name = format!("demo-{day:02}_");
        run.header.id = format!("{name}{}", "x".repeat(NAME_LEN_MAX - name.len())).parse().unwrap();
        run.header.annotations.title = Some("after the update of the driver of the interfaces".to_owned());
        let site = "a building with a long name, the second floor, rack 12".to_owned();
        run.header.annotations.notes.insert("site".to_owned(), site);
        run
    });
    let history = history(&all.collect::<Vec<_>>(), &Selection::default());
    assert!(history.series.iter().any(|one| !one.changes.is_empty()), "{:?}", history.series);
    for width in [60, 80] {
        let text = terminal::report(&document::of_history(&history), width, false);
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert!(wide.is_empty(), "{width}: {wide:#?}");
    }
}

#[test]
fn cpu_time_with_contention_is_marked_as_in_a_comparison() {
    let run = |day: u64| {
        let mut run = with_contention(if day == 1 { 8 } else { 0 });
        run.header.id = format!("demo-{day:02}").parse().unwrap();
        run.header.started_unix_ms += day * 86_400_000;
        run
    };
    let runs: Vec<_> = (0..3).map(run).collect();
    let history = history(&runs, &Selection::default());
    let contended = |metric: Metric| {
        let points = &series(&history, "accelerated", metric).points;
        points.iter().map(|point| point.contention.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(contended(Metric::CpuPerGigabyte), [false, true, false]);
    assert_eq!(contended(Metric::Throughput), [false; 3]);
    let page = markdown::page(&document::of_history(&history));
    let words = "not comparable: other processes used up to ";
    assert!(page.contains(words) && page.contains(" of the CPU time of a host in 1 of 3 runs"), "{page}");
}
