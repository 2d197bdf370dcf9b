//! A whole run: verdicts, report, formats, interrupt and resume, an A/A run.
use std::process::Command;

use netduel_model::run::RunEnd;
use netduel_test_support::{not_compared, write_program};
use rustix::process::Signal;

use crate::gate::Gate;
use crate::support::{Bench, Finished, LATENCY, STREAM, TWO_PATHS, UnderWay, short_plan, signal, verdicts};

#[test]
fn paths_of_a_lab_are_distinguished_and_the_lab_is_removed() {
    let bench = Bench::new();
    let workloads = format!("{STREAM}{LATENCY}");
    let plan = bench.plan(&short_plan(TWO_PATHS, &workloads, "blocks_min = 12\nblocks_max = 12\nseed = 1"));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json", "--out", "out"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let verdicts = verdicts(&run.json());
    let mut better = 0;
    for metric in ["throughput", "latency-p50"] {
        let (_, tone, words) = verdicts.iter().find(|(name, ..)| name == metric).unwrap();
        // Other programs can widen the spread beyond the difference, or stall a trial, whose values are then bounds.
        if tone == "open" {
            assert!(words.starts_with("inconclusive"), "{words}");
            not_compared(format!("{metric}: {words}"));
            continue;
        }
        better += 1;
        assert_eq!(tone, "better", "{metric}: {words}");
        assert!(words.contains("x ") || words.contains(" % lower"), "{metric}: {words}");
    }
    let page = std::fs::read_to_string(bench.path().join("out/report.html")).unwrap();
    assert!(page.contains("Which path is faster?") && page.ends_with("</html>"), "the page is not whole");
    for (format, needle) in
        [("md", "| "), ("csv", "throughput"), ("json", "\"verdict\""), ("text", "better: ")]
    {
        let text = bench.run(["report", "last", "--format", format]).expect_code(0).stdout;
        assert!(text.contains(needle) || (format == "text" && better == 0), "{format}:\n{text}");
    }
    assert!(bench.run(["runs"]).expect_code(0).stdout.contains("short"));
    bench.assert_nothing_left();
}

#[test]
fn resumed_run_keeps_finished_trials() {
    let bench = Bench::new();
    // The third block waits.
    let mut gate = Gate::open_for(&bench, 2);
    let plan = bench.plan(&short_plan(&gate.arms(), LATENCY, "blocks_min = 4\nblocks_max = 4"));
    let out = ["--out", "pages/result.html", "--out", "pages/result.json"];
    let mut under_way = UnderWay::start(bench.netduel([&["run", plan.to_str().unwrap()], &out[..]].concat()));
    under_way.wait_for("trial   3/");
    signal(under_way.pid(), Signal::INT);
    gate.let_pass(8);
    let stopped = under_way.finish().expect_code(130);
    assert!(stopped.stderr.contains("--resume"), "{}", stopped.stderr);
    bench.assert_nothing_left();
    let before = stored_trials(&bench);
    assert!(before.len() >= 3, "{}", stopped.stderr);

    // Another build may measure differently: its trials are no trials of this run.
    let other = bench.path().join("another-build");
    let mut program = std::fs::read(env!("CARGO_BIN_EXE_netduel")).unwrap();
    program.push(0);
    write_program(&other, program);
    let mut command = Command::new(&other);
    bench.mark(&mut command);
    let refused = Finished::from(command.args(["run", "--resume", "last"]).output().unwrap()).expect_code(4);
    assert!(refused.stderr.contains("build of netduel is"), "{}", refused.stderr);
    assert!(refused.stderr.contains(", which is unchanged; continue with `"), "{}", refused.stderr);
    let stored = netduel_store::Store::at(bench.store()).read("last").unwrap();
    assert_eq!(stored.end, Some(RunEnd::Interrupted));
    bench.assert_nothing_left();

    // Resumed in another folder, the run writes the reports of its first part again.
    let pages = ["pages/result.html", "pages/result.json"].map(|page| bench.path().join(page));
    for page in &pages {
        std::fs::remove_file(page).unwrap();
    }
    let mut command = bench.netduel(["run", "--resume", "last", "--json"]);
    let resumed = Finished::from(command.current_dir("/").output().unwrap());
    assert!(matches!(resumed.code, Some(0 | 6)), "{}", resumed.stderr);
    assert!(resumed.stderr.contains("done before"), "{}", resumed.stderr);
    for page in &pages {
        assert!(resumed.stderr.contains(&format!("Report:  {}", page.display())), "{}", resumed.stderr);
    }
    let [page, document] = pages.map(|page| std::fs::read_to_string(page).unwrap());
    assert!(page.contains("4 blocks") && document.starts_with('{'), "{document}");
    let after = stored_trials(&bench);
    assert!(after.starts_with(&before), "trials of the first start are gone");
    assert!(after.len() > before.len(), "nothing was resumed");
    bench.assert_nothing_left();
}

/// The records of trials in the only file of the store.
fn stored_trials(bench: &Bench) -> Vec<String> {
    let mut files = std::fs::read_dir(bench.store()).unwrap().flatten();
    let file = files.find(|file| file.path().extension().is_some()).unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    text.lines().filter(|line| line.contains("\"attempt\":")).map(str::to_owned).collect()
}

#[test]
fn path_compared_with_itself_has_no_difference() {
    let bench = Bench::new();
    let arm = TWO_PATHS.split("[[arms]]").nth(1).unwrap();
    // At 99.9 % confidence a correct program fails this test once in a thousand runs.
    let design =
        "aa = true\nconfidence = \"99.9 %\"\nblocks_min = 12\nblocks_max = 12\nequivalence = \"50 %\"";
    let plan = bench.plan(&short_plan(&format!("[[arms]]{arm}"), LATENCY, design));
    let run = bench.run(["run", plan.to_str().unwrap(), "--json"]).expect_code(0);
    assert!(!run.stderr.contains("limit reached"), "the document states the end: {}", run.stderr);
    let verdicts = verdicts(&run.json());
    assert_eq!(verdicts.len(), 2);
    for (metric, tone, words) in verdicts {
        assert!(!["better", "worse"].contains(&tone.as_str()), "{metric}: {words}");
    }
}

#[test]
fn overrides_apply_are_recorded_and_validated() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 9\nblocks_max = 9"));
    let plan = plan.to_str().unwrap();
    let refused = bench.run(["run", plan, "--set", "latency.outstanding=0"]).expect_code(2);
    assert!(refused.stderr.contains("--set latency.outstanding=0: "), "{}", refused.stderr);
    let words =
        ["--set", "blocks_max=2", "--set", "blocks_min=2", "--title", "short one", "--note", "host=x"];
    let run = bench.run([&["run", plan, "-q"], &words[..]].concat()).expect_code(0);
    assert!(!run.stderr.contains("trial ") && !run.stderr.contains("is ready"), "{}", run.stderr);
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(listed["runs"][0]["trials"], 4);
    assert_eq!(listed["runs"][0]["overrides"], serde_json::json!(["blocks_max=2", "blocks_min=2"]));
    let run = &listed["runs"][0];
    assert_eq!((&run["title"], &run["notes"][0]["value"]), (&"short one".into(), &"x".into()));
    bench.assert_nothing_left();
}
