//! Exports for other programs: Prometheus' text format after promtool, and InfluxDB's line protocol after a strict grammar.
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use netduel_model::metric::Metric;
use netduel_model::run::Run;
use netduel_report::{analyse_run, csv, influx, prometheus};
use netduel_test_support::skip;

use crate::builder::{Recipe, build};
use crate::{failover, without_value};

/// Runs of all workloads that the builder has: clear, noisy, with few blocks, with failed trials, with texts of other programs; and one with
/// trials without a value.
fn runs() -> Vec<Run> {
    let all = || Recipe { workloads: vec!["bulk", "rr", "open", "udp", "crr", "load"], ..Recipe::default() };
    let text = "a,b=c \"d\" \\ \n\r\t=1+1 é".to_owned();
    let failed = vec![(0, 0), (3, 1)];
    let mut hostile = build(&Recipe { failed, text: text.clone(), question: text.clone(), ..all() });
    hostile.header.annotations.overrides = vec![text];
    vec![
        build(&all()),
        build(&Recipe {
            blocks: 2,
            noise: 0.3,
            effect: 1.0,
            failed: vec![(0, 1), (1, 0)],
            end: None,
            ..all()
        }),
        hostile,
        without_value::lost(),
    ]
}

#[test]
fn promtool_accepts_the_metrics() {
    for run in runs() {
        let page = prometheus::page(&run, &analyse_run(&run));
        assert!(page.ends_with('\n') && !page.contains("\n\n"), "{page}");
        let child = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            return skip("promtool does not start: prometheus is not installed");
        };
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let messages =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && messages.trim().is_empty(), "{messages}\n{page}");
    }
}

#[test]
fn samples_have_the_values_of_the_report_in_base_units_and_no_time() {
    let run = build(&Recipe { noise: 0.0, effect: 2.0, workloads: vec!["bulk"], ..Recipe::default() });
    let analysis = analyse_run(&run);
    let page = prometheus::page(&run, &analysis);
    let sample = |start: &str| -> f64 {
        let line = page
            .lines()
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("no {start} in {page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let throughput = "netduel_throughput_bytes_per_second";
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    };
    let arms = &analysis.workloads[0].judged[0].arms;
    let medians = arms.iter().map(|arm| median(arm.numbers())).collect::<Vec<_>>();
    for (arm, bits) in ["synthetic", "accelerated"].into_iter().zip(&medians) {
        let labels = format!("plan=\"demo\",workload=\"bulk\",arm=\"{arm}\"");
        let median = sample(&format!("{throughput}{{{labels},quantile=\"0.5\"}}"));
        assert!((median * 8.0 / bits - 1.0).abs() < 1e-12, "{median} B/s and {bits} bit/s");
        assert!(sample(&format!("{throughput}_count{{{labels}}}")).total_cmp(&8.0).is_eq());
        assert!(sample(&format!("netduel_trials{{{labels},state=\"valid\"}}")).total_cmp(&8.0).is_eq());
    }
    let about =
        "plan=\"demo\",workload=\"bulk\",metric=\"throughput\",arm=\"accelerated\",baseline=\"synthetic\"";
    for (verdict, value) in [("better", 1.0), ("worse", 0.0), ("no-difference", 0.0), ("inconclusive", 0.0)] {
        let shown: f64 = sample(&format!("netduel_verdict{{{about},verdict=\"{verdict}\"}}"));
        assert!(shown.total_cmp(&value).is_eq(), "{verdict}: {shown}");
    }
    assert!((sample(&format!("netduel_effect_ratio{{{about},value=\"estimate\"}}")) - 2.0).abs() < 0.05);
    let started: f64 = sample("netduel_run_start_time_seconds{plan=\"demo\"}");
    assert!(started.total_cmp(&1_795_239_000.0).is_eq(), "{started}");
    assert_eq!(page.matches(run.header.id.as_str()).count(), 1, "the run is no label of a value");
    // A sample is a name with labels and a value: a third word would be a time.
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (_, after) = line.rsplit_once('}').unwrap();
        assert_eq!(after.split(' ').count(), 2, "{line}");
    }
}

#[test]
fn metric_without_a_verdict_has_no_verdict_in_prometheus() {
    let run = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let analysis = analyse_run(&run);
    let page = prometheus::page(&run, &analysis);
    let has_verdict = |workload: &str, metric: Metric| {
        let labels =
            format!("netduel_verdict{{plan=\"demo\",workload=\"{workload}\",metric=\"{}\"", metric.key());
        page.lines().any(|line| line.starts_with(&labels))
    };
    for workload in &analysis.workloads {
        assert!(workload.unjudged.iter().any(|metric| !metric.comparisons.is_empty()));
        for metric in &workload.judged {
            assert!(has_verdict(workload.name.as_str(), metric.metric), "{:?}", metric.metric);
        }
        for metric in &workload.unjudged {
            assert!(!has_verdict(workload.name.as_str(), metric.metric), "{:?}: {page}", metric.metric);
        }
    }
}

/// A parsed line: tags, fields, time. Panics where the line breaks a rule of the protocol.
fn parsed(line: &str) -> (BTreeMap<String, String>, BTreeMap<String, String>, i64) {
    let (mut parts, mut part, mut is_quoted, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for c in line.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if parts.len() == 1 => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    assert!(!is_quoted && !is_escaped, "{line}");
    let [head, fields, time] = parts.as_slice() else { panic!("three parts: {line}") };
    let mut tags = separated(head, false);
    assert_eq!(tags.remove(0), "netduel", "{line}");
    let pair = |text: String| -> (String, String) {
        let at = text.find('=').unwrap_or_else(|| panic!("{text}: {line}"));
        let (key, value) = (text[..at].to_owned(), text[at + 1..].to_owned());
        assert!(
            !key.is_empty() && !value.is_empty() && key.chars().all(|c| c.is_ascii_lowercase()),
            "{line}"
        );
        (key, value)
    };
    let tags: BTreeMap<_, _> = tags.into_iter().map(pair).collect();
    let fields: BTreeMap<_, _> = separated(fields, true).into_iter().map(pair).collect();
    for value in fields.values() {
        let is_integer = value.strip_suffix('i').is_some_and(|number| number.parse::<i64>().is_ok());
        let is_float = value.parse::<f64>().is_ok_and(f64::is_finite);
        let is_boolean = value == "true" || value == "false";
        let is_text = value.len() >= 2 && value.starts_with('"') && value.ends_with('"');
        assert!(is_integer || is_float || is_boolean || is_text, "{value}: {line}");
    }
    (tags, fields, time.parse().unwrap())
}

/// The parts between commas that are neither escaped nor in a string.
fn separated(text: &str, has_strings: bool) -> Vec<String> {
    let (mut parts, mut part, mut is_quoted, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if has_strings => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                parts.push(std::mem::take(&mut part));
                continue;
            }
            _ => {}
        }
        part.push(c);
    }
    parts.push(part);
    parts
}

#[test]
fn every_line_follows_the_line_protocol_and_is_a_point_of_its_own() {
    for run in runs() {
        let text = influx::lines(&run);
        assert!(text.ends_with('\n'));
        let mut points = BTreeSet::new();
        for line in text.lines() {
            let (tags, fields, time_ns) = parsed(line);
            assert!(tags["plan"].starts_with("demo"), "{line}");
            let is_without = fields.get("doubt").is_some_and(|doubt| doubt.starts_with("\"no value: "));
            let has_result = fields.contains_key("value") != is_without;
            assert_eq!(has_result, tags.contains_key("metric"), "{line}");
            assert_eq!(fields["valid"] == "false", fields.contains_key("reason"), "{line}");
            assert!(points.insert((tags, time_ns)), "a second point of one series at one time: {line}");
        }
        // The same rows as CSV, whose first line has the names.
        assert_eq!(points.len(), csv::trials(&run).lines().count() - 1);
    }
}

#[test]
fn lines_have_the_values_and_the_start_of_each_trial() {
    let run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let text = influx::lines(&run);
    let rows = csv::trials(&run);
    let mut rows = rows.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    for line in text.lines() {
        let (tags, fields, time_ns) = parsed(line);
        let row = rows.next().unwrap();
        assert_eq!([&tags["arm"], &tags["metric"], &fields["value"]], [row[4], row[8], row[10]]);
        assert_eq!(time_ns, row[7].parse::<i64>().unwrap() * 1_000_000);
        assert_eq!(fields["block"], format!("{}i", row[1]));
    }
}

#[test]
fn trial_at_a_time_that_influx_cannot_store_has_no_line() {
    let mut run = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    // The last time that it stores, and later ones of a changed file.
    let times_ms = [i64::MAX as u64 / 1_000_000, i64::MAX as u64 / 1_000_000 + 1, u64::MAX];
    for (trial, time_ms) in run.trials.iter_mut().zip(times_ms) {
        trial.started_unix_ms = time_ms;
    }
    let text = influx::lines(&run);
    let starts: BTreeSet<i64> = text.lines().map(|line| parsed(line).2).collect();
    assert_eq!(starts.last(), Some(&9_223_372_036_854_000_000));
    let slots: BTreeSet<[String; 2]> =
        text.lines().map(|line| ["block", "position"].map(|field| parsed(line).1[field].clone())).collect();
    assert_eq!(slots.len(), run.trials.len() - 2, "{text}");
}

#[test]
fn settings_of_the_command_line_are_in_every_export_and_add_no_series() {
    let plain = build(&Recipe { workloads: vec!["bulk"], ..Recipe::default() });
    let mut set = plain.clone();
    set.header.annotations.overrides = ["blocks_max=8", "bulk.duration=\"5 s\""].map(str::to_owned).to_vec();
    let metrics = |run: &Run| prometheus::page(run, &analyse_run(run));
    let page = metrics(&set);
    let label = ",settings=\"blocks_max=8; bulk.duration=\\\"5 s\\\"\"";
    let info = page.lines().find(|line| line.starts_with("netduel_run_info{")).unwrap();
    assert!(info.contains(label), "{info}");
    assert_eq!(page.replace(label, ""), metrics(&plain), "one metric has the label, and no other run");
    let lines = influx::lines(&set);
    for line in lines.lines() {
        let (tags, fields, _) = parsed(line);
        assert!(!tags.contains_key("settings"), "a tag would begin new series: {line}");
        assert_eq!(fields["settings"], "\"blocks_max=8; bulk.duration=\\\"5 s\\\"\"", "{line}");
    }
    assert!(!influx::lines(&plain).contains("settings="));
    let table = csv::trials(&set);
    let cell = ",\"blocks_max=8; bulk.duration=\"\"5 s\"\"\"";
    assert!(table.lines().skip(1).all(|row| row.ends_with(cell)), "{table}");
    assert_eq!(table.replace(cell, ","), csv::trials(&plain));
}

/// A file of the repository.
fn project_file(path: &str) -> String {
    std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn guide_lists_every_metric_with_its_name_in_prometheus() {
    let page = project_file("docs/exports.md");
    for metric in Metric::ALL {
        let row = format!("| `{}` | `{}` |", metric.key(), prometheus::name(metric).0);
        assert!(page.contains(&row), "no row {row}");
    }
}

/// The names of metrics in a query, with the keys of the labels that it selects or shows by them.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_of_a_name(c)).filter(|word| word.starts_with("netduel_"));
    words.map(str::to_owned).collect()
}

#[test]
fn dashboard_queries_metrics_and_labels_that_exist() {
    let run = build(&Recipe { workloads: vec!["bulk", "rr", "udp"], ..Recipe::default() });
    let pages = [run, failover::shown()].map(|run| prometheus::page(&run, &analyse_run(&run)));
    let page = pages.concat();
    let mut known: BTreeSet<String> = names_in(&page);
    known.extend(Metric::ALL.map(|metric| prometheus::name(metric).0.to_owned()));
    let text = project_file("docs/examples/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut queries: Vec<String> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    assert!(queries.len() >= panels.len() && panels.len() > 5);
    for metric in [
        Metric::Throughput,
        Metric::DatagramRate,
        Metric::Loss,
        Metric::LatencyP50,
        Metric::LatencyP99,
        Metric::Outage,
        Metric::CpuPerGigabyte,
    ] {
        let name = prometheus::name(metric).0;
        assert!(queries.iter().any(|query| query.starts_with(name)), "no panel of {name}");
    }
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    queries.extend(variables.iter().filter_map(|one| Some(one["query"]["query"].as_str()?.to_owned())));
    for query in &queries {
        let used = names_in(query);
        assert!(!used.is_empty() && used.is_subset(&known), "{query}: {used:?}");
        for variable in ["plan", "workload", "arm"].iter().filter(|name| query.contains(&format!("${name}")))
        {
            assert!(variables.iter().any(|one| one["name"] == **variable), "{query}");
        }
        // Each label that a query selects is a label of its metric in a real file.
        for (name, labels) in query.split('}').filter_map(|part| part.split_once('{')) {
            let name = name.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap();
            let samples: Vec<&str> =
                page.lines().filter(|line| line.starts_with(&format!("{name}{{"))).collect();
            assert!(!samples.is_empty(), "{name} has no sample in {page}");
            for label in labels.split(',').filter_map(|one| Some(one.split_once('=')?.0)) {
                assert!(samples[0].contains(&format!("{label}=\"")), "{query}: {label}");
            }
            for (label, value) in labels.split(',').filter_map(|one| one.split_once("=\"")) {
                if !value.starts_with('$') && !label.ends_with('~') {
                    let selected = format!("{label}=\"{value}");
                    assert!(samples.iter().any(|line| line.contains(&selected)), "{query}: {selected}");
                }
            }
        }
    }
}
