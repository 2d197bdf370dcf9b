//! `netduel history` with runs of the store: which runs belong to it, what it prints, and its exit codes.
use std::path::Path;

use crate::compare::{stored_run, stored_slower_run};
use crate::support::Bench;

/// Changes a text of a stored run, which has no checksums.
fn change(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

/// Six runs and six slower ones, a day apart, the last of which is not in the future; those of odd days have the note `site=west`.
fn nightly(bench: &Bench) {
    for day in 0..12 {
        let name = format!("night-{day:02}");
        if day < 6 {
            stored_run(bench, &name, "6.18.44");
        } else {
            stored_slower_run(bench, &name);
        }
        let path = bench.store().join(format!("{name}.netduel"));
        let text = std::fs::read_to_string(&path).unwrap();
        let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let started = header["header"]["started_unix_ms"].as_u64().unwrap();
        let earlier = started - (11 - day) * 86_400_000;
        change(
            &path,
            &format!("\"started_unix_ms\":{started},\"program\""),
            &format!("\"started_unix_ms\":{earlier},\"program\""),
        );
        if day % 2 == 1 {
            let noted = format!("\"id\":\"{name}\",\"annotations\":{{\"notes\":{{\"site\":\"west\"}}}},");
            change(&path, &format!("\"id\":\"{name}\","), &noted);
        }
    }
}

#[test]
fn change_of_level_is_shown_with_its_first_run() {
    let bench = Bench::new();
    nightly(&bench);
    let text = bench.run(["history", "--metric", "latency-p50"]).expect_code(0).stdout;
    for words in ["History of ", "12 runs", "night-06", "worse: 692 us to 951 us", "▁▁▁▁▁▁|██████"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let document = bench.run(["history", "--json"]).expect_code(0).json();
    assert_eq!(document["runs"].as_array().unwrap().len(), 12);
    let series = document["series"].as_array().unwrap();
    let changed: Vec<_> = series.iter().filter(|one| one["metric"] == "latency-p50").collect();
    assert_eq!(changed.len(), 2, "{document}");
    for one in changed {
        assert_eq!(one["changes"].as_array().unwrap().len(), 1, "{one}");
        assert_eq!(one["changes"][0]["run"], "night-06");
    }
    let printed = bench.run(["history", "--out", "history.html", "--arm", "synthetic"]).expect_code(0).stdout;
    assert_eq!(printed, "history.html\n");
    let page = std::fs::read_to_string(bench.path().join("history.html")).unwrap();
    assert!(page.contains("data-chart=\"history\"") && !page.contains(" on accelerated"), "{}", page.len());
}

#[test]
fn history_has_the_earlier_runs_of_the_plan_with_the_notes() {
    let bench = Bench::new();
    nightly(&bench);
    let ids = |words: &[&str]| -> Vec<String> {
        let document = bench.run([&["history", "--json"][..], words].concat()).expect_code(0).json();
        let runs = document["runs"].as_array().unwrap();
        runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["night-03"]), ["night-00", "night-01", "night-02", "night-03"]);
    assert_eq!(ids(&["night-05", "--tag", "site=west"]), ["night-01", "night-03", "night-05"]);
    // Without a name it is the last run that has the note, not the last of all.
    change(&bench.store().join("night-11.netduel"), "\"site\":\"west\"", "\"site\":\"east\"");
    assert_eq!(ids(&["--tag", "site=west"]).last().unwrap(), "night-09");
    let refused = bench.run(["history", "--tag", "site=north"]).expect_code(2);
    assert!(refused.stderr.contains("no run has all of the notes site=north"), "{}", refused.stderr);
    // A copy is no further run, nor is a run of another plan.
    std::fs::copy(bench.store().join("night-01.netduel"), bench.store().join("copy.netduel")).unwrap();
    crate::support::stored(&bench, "other");
    assert_eq!(ids(&["night-01"]), ["night-00", "night-01"]);
    let refused = bench.run(["history", "night-04", "--note", "site=west"]).expect_code(2);
    let lack = "night-04 does not have all of the notes site=west";
    assert!(refused.stderr.contains(lack), "{}", refused.stderr);
    bench.run(["history", "nothing"]).expect_code(9);
    let words = ["history", "night-03", "--metric", "throughput", "--arm", "fast"];
    let refused = bench.run(words).expect_code(6);
    let lack = "no run has a value of the metric throughput and the arm fast";
    assert!(refused.stderr.contains(lack), "{}", refused.stderr);
    let refused = bench.run(["history", "--metric", "speed"]).expect_code(2);
    assert!(refused.stderr.contains("metrics: throughput"), "{}", refused.stderr);
    let refused = bench.run(["history", "--out", "history.csv"]).expect_code(2);
    assert!(refused.stderr.contains("use text, html, pdf, md or json"), "{}", refused.stderr);
}

#[test]
fn error_of_a_history_without_a_value_has_the_reason() {
    let bench = Bench::new();
    for name in ["night-00", "night-01"] {
        let path = stored_run(&bench, name, "6.18.44");
        let counts = |responses: u32, timeouts: u32| {
            format!("\"requests\":10,\"responses\":{responses},\"timeouts\":{timeouts}")
        };
        change(&path, &counts(10, 0), &counts(0, 10));
    }
    // The plan does not judge the metric, and no arm has a value.
    let refused = bench.run(["history", "--metric", "cpu-per-round-trip"]).expect_code(6).stderr;
    for words in [
        "no run has a value of the metric cpu-per-round-trip: night-0",
        ": CPU per round trip of rr on synthetic: no value in 8 valid trials (no response came)",
        "; and 2 more; `netduel report RUN` lists",
    ] {
        assert!(refused.contains(words), "no `{words}` in {refused}");
    }
    // Runs that do not measure a metric have no other reason.
    let refused = bench.run(["history", "--metric", "throughput"]).expect_code(6).stderr;
    assert!(refused.contains("value of the metric throughput; `netduel report"), "{refused}");
}

/// The names of the runs of a history, and its messages.
fn history(bench: &Bench, words: &[&str]) -> (Vec<String>, String) {
    let finished = bench.run([&["history", "--json"][..], words].concat()).expect_code(0);
    let document = finished.json();
    let runs = document["runs"].as_array().unwrap();
    let ids = runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    (ids, finished.stderr)
}

#[test]
fn run_and_its_copies_count_once() {
    let bench = Bench::new();
    nightly(&bench);
    let stored = |name: &str| bench.store().join(format!("{name}.netduel"));
    std::fs::copy(stored("night-03"), bench.path().join("copy.netduel")).unwrap();
    let (runs, messages) = history(&bench, &["./copy.netduel"]);
    assert_eq!(runs, ["night-00", "night-01", "night-02", "night-03"]);
    assert!(messages.contains("night-03 counts once: ./copy.netduel is the same run"), "{messages}");
    // The stored run has another name than its file.
    std::fs::rename(stored("night-03"), stored("renamed")).unwrap();
    let (runs, messages) = history(&bench, &["./copy.netduel"]);
    assert_eq!(runs, ["night-00", "night-01", "night-02", "night-03"]);
    assert!(messages.contains("renamed is left out: it is the same run as night-03"), "{messages}");
    // Neither of two files is known as a copy of the other: their run is not in the store by its first name.
    std::fs::copy(stored("renamed"), stored("twice")).unwrap();
    let (runs, messages) = history(&bench, &["night-04"]);
    assert_eq!(runs, ["night-00", "night-01", "night-02", "renamed", "night-04"]);
    assert!(messages.contains("twice is left out: it is the same run as renamed"), "{messages}");
    let (runs, messages) = history(&bench, &["twice"]);
    assert_eq!(runs, ["night-00", "night-01", "night-02", "twice"]);
    assert!(messages.contains("renamed is left out: it is the same run as twice"), "{messages}");
}

#[test]
fn beginning_of_several_names_is_the_newest_of_them_where_all_are_of_one_plan() {
    let bench = Bench::new();
    nightly(&bench);
    let (runs, _) = history(&bench, &["night-0"]);
    assert_eq!((runs.len(), runs.last().map(String::as_str)), (10, Some("night-09")));
    let (runs, _) = history(&bench, &["night-0", "--tag", "site=west"]);
    assert_eq!(runs, ["night-01", "night-03", "night-05", "night-07", "night-09"]);
    let other = crate::support::stored(&bench, "night-other");
    let header = std::fs::read_to_string(other).unwrap();
    let header: serde_json::Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    let plan = header["header"]["plan"]["name"].as_str().unwrap();
    let refused = bench.run(["history", "night-"]).expect_code(9).stderr;
    assert!(refused.contains("names of runs of 2 plans begin with `night-`: "), "{refused}");
    assert!(refused.contains("interrupted") && refused.contains(plan), "{refused}");
    history(&bench, &["night-0"]);
}

/// Colleagues may give their runs the same name.
#[test]
fn two_runs_of_one_name_count_twice() {
    let bench = Bench::new();
    nightly(&bench);
    let file = bench.path().join("night-03.netduel");
    std::fs::copy(bench.store().join("night-03.netduel"), &file).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let started = header["header"]["started_unix_ms"].as_u64().unwrap();
    let key = |started: u64| format!("\"started_unix_ms\":{started}");
    change(&file, &key(started), &key(started + 60_000));
    let (runs, messages) = history(&bench, &["./night-03.netduel"]);
    assert_eq!(runs, ["night-00", "night-01", "night-02", "night-03", "night-03"]);
    assert!(!messages.contains("same run"), "{messages}");
    bench.run(["compare", "night-03", "./night-03.netduel"]).expect_code(0);
}

#[test]
fn copy_with_the_notes_stands_for_a_run_without_them() {
    let bench = Bench::new();
    nightly(&bench);
    bench.run(["runs", "tag", "night-02", "--note", "site=north"]).expect_code(0);
    std::fs::copy(bench.store().join("night-02.netduel"), bench.store().join("copy.netduel")).unwrap();
    change(&bench.store().join("night-02.netduel"), "\"site\":\"north\"", "\"site\":\"south\"");
    bench.run(["runs", "tag", "night-04", "--note", "site=north"]).expect_code(0);
    let (runs, _) = history(&bench, &["night-04", "--note", "site=north"]);
    assert_eq!(runs, ["copy", "night-04"]);
}

#[test]
fn arm_is_selected_by_its_own_name_with_redact() {
    let bench = Bench::new();
    crate::redaction::store_runs_of_arms_in_two_cases(&bench);
    for arm in ["via-SendHost7", "via-sendhost7"] {
        let words = ["history", "after", "--arm", arm, "--format", "md"];
        let plain = bench.run(words).expect_code(0).stdout;
        assert!(plain.contains(arm), "{plain}");
        let hidden = bench.run([&words[..], &["--redact"]].concat()).expect_code(0).stdout;
        assert!(hidden.contains("via-host-") && !hidden.to_lowercase().contains("sendhost7"), "{hidden}");
    }
}

#[test]
fn plans_of_a_beginning_are_named_with_pseudonyms() {
    let bench = Bench::new();
    nightly(&bench);
    let other = crate::support::stored(&bench, "night-other");
    change(&other, "\"run\",\"plans/golden.toml\"", "\"run\",\"/Users/mallory7/golden.toml\"");
    change(&other, "\"plan\":{\"name\":\"golden\"", "\"plan\":{\"name\":\"of-mallory7\"");
    let named = bench.run(["history", "night-"]).expect_code(9).stderr;
    assert!(named.contains("interrupted, of-mallory7"), "{named}");
    let hidden = bench.run(["history", "night-", "--redact"]).expect_code(9).stderr;
    assert!(hidden.contains("interrupted, of-") && !hidden.contains("mallory7"), "{hidden}");
}
