//! `netduel compare` with runs of the store and files: what it prints, where it writes, and its exit codes.
use std::path::PathBuf;

use crate::support::{Bench, PACED, STREAM, TWO_PATHS, VOLUME, short_plan, stored};

/// The run that the stored runs of these tests are made of. Its records have no checksum.
const GOLDEN: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2-real-resumed.netduel");

/// A finished run of eight blocks with this name, on hosts with this kernel. All its trials have the values of one valid trial. Runs of
/// different names start at different times, as runs do.
pub fn stored_run(bench: &Bench, name: &str, kernel: &str) -> PathBuf {
    let text = std::fs::read_to_string(GOLDEN).unwrap();
    let header = text.lines().next().unwrap();
    let header =
        header.replacen("\"id\":\"interrupted-20261122-140310-2d6f\"", &format!("\"id\":\"{name}\""), 1);
    let header = header.replace("\"kernel\":\"6.18.44\"", &format!("\"kernel\":\"{kernel}\""));
    let earlier_ms = name.bytes().fold(0, |sum: u64, byte| (sum * 31 + u64::from(byte)) % 1_000_000);
    let start = "\"started_unix_ms\":1795356190110,\"program\"";
    assert!(header.contains(start), "{header}");
    let earlier = format!("\"started_unix_ms\":{},\"program\"", 1_795_356_190_110 - earlier_ms);
    let header = header.replacen(start, &earlier, 1);
    let is_valid = |line: &&str| line.starts_with("{\"trial\"") && line.contains("\"state\":\"valid\"");
    let valid = text.lines().find(is_valid).unwrap();
    let mut lines = vec![header];
    for block in 0..8 {
        for (position, arm) in ["synthetic", "accelerated"].into_iter().enumerate() {
            let slot = format!("{{\"block\":{block},\"position\":{position},\"arm\":\"{arm}\",");
            let own = valid.replacen("{\"block\":0,\"position\":1,\"arm\":\"accelerated\",", &slot, 1);
            assert!(own.contains(&slot), "{own}");
            lines.push(own);
        }
    }
    lines.push("{\"end\":{\"reason\":\"blocks-done\"}}\n".to_owned());
    std::fs::create_dir_all(bench.store()).unwrap();
    let path = bench.store().join(format!("{name}.netduel"));
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

#[test]
fn runs_with_equal_values_have_no_difference_and_their_kernels_are_named() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    let text = bench.run(["compare", "before", "after"]).expect_code(0).stdout;
    for words in
        ["Differences between the runs", "kernel of host a", "6.18.44", "6.19.0", "no difference beyond 5 %"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let document = bench.run(["compare", "before", "after", "--json"]).expect_code(0).json();
    assert_eq!(document["runs"][1]["run"]["id"], "after");
    let compared = document["comparisons"].as_array().unwrap();
    assert_eq!(compared.len(), 2, "{document}");
    for metric in compared.iter().flat_map(|workload| workload["metrics"].as_array().unwrap()) {
        let verdict = &metric["comparisons"][0]["verdict"];
        assert_eq!(
            (&verdict["kind"], &verdict["estimate"]["centre"]),
            (&"no-difference".into(), &1.0_f64.into()),
            "{metric}"
        );
    }
}

#[test]
fn runs_are_named_as_for_a_report() {
    let bench = Bench::new();
    let before = stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after-1", "6.19.0");
    let document = bench.run(["compare", before.to_str().unwrap(), "aft", "-J"]).expect_code(0).json();
    let names = [0, 1].map(|run| document["runs"][run]["run"]["id"].as_str().unwrap().to_owned());
    assert_eq!(names, ["before", "after-1"]);
    stored_run(&bench, "after-2", "6.20.0");
    let three =
        bench.run(["compare", "before", "after-1", "after-2", "--format", "md"]).expect_code(0).stdout;
    assert!(three.contains("| metric | baseline A | run |") && three.contains("6.20.0"), "{three}");
    bench.run(["compare", "before", "aft"]).expect_code(9);
    let missing = bench.run(["compare", "before", "nothing", "--json"]).expect_code(9);
    assert_eq!(missing.json()["error"]["exit_code"], 9);
    let missing = bench.run(["compare", "nothing.json", "before"]).expect_code(9);
    assert!(missing.stderr.contains("netduel runs baseline RUN --out FILE.json"), "{}", missing.stderr);
}

#[test]
fn comparison_is_written_where_a_report_would_be() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    for (out, path, beginning) in [
        ("compare.html", "compare.html", "<!DOCTYPE html>"),
        ("pages", "pages/report.html", "<!DOCTYPE html>"),
        ("made/compare.md", "made/compare.md", "# Comparison of 2 runs"),
        ("compare.json", "compare.json", "{"),
    ] {
        let printed = bench.run(["compare", "before", "after", "--out", out]).expect_code(0).stdout;
        assert_eq!(printed.trim(), path);
        let text = std::fs::read_to_string(bench.path().join(path)).unwrap();
        assert!(text.starts_with(beginning), "{path}: {}", text.lines().next().unwrap_or_default());
    }
    bench.run(["compare", "before", "after", "--out", "/proc/x/compare.html"]).expect_code(5);
}

#[test]
fn comparison_has_the_cover_and_the_words_of_its_author() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    std::fs::write(bench.path().join("words.md"), "## First impression\n\nThe kernel was updated.\n")
        .unwrap();
    let author = ["--title", "The new kernel", "--author", "A. Author", "--organization", "Example Networks"];
    let words = ["--purpose", "To decide on the update.", "--commentary", "words.md", "--accent", "#0b5fa5"];
    let compare = ["compare", "before", "after", "--out", "compare.html"];
    bench.run([&compare[..], &author, &words].concat()).expect_code(0);
    let page = std::fs::read_to_string(bench.path().join("compare.html")).unwrap();
    for text in [
        "<h1>The new kernel</h1>",
        "A. Author, Example Networks",
        "<dd>A before; B after</dd>",
        "To decide on the update.",
        "<h3>First impression</h3>",
        "#0b5fa5",
    ] {
        assert!(page.contains(text), "no `{text}`");
    }
    let refused = bench.run(["compare", "before", "after", "--accent", "red"]).expect_code(2);
    assert!(refused.stderr.contains("#0b5fa5"), "{}", refused.stderr);
    let refused = bench.run(["compare", "before", "after", "--commentary", "nothing.md"]).expect_code(2);
    assert!(refused.stderr.contains("name a Markdown file of at most 256 KiB"), "{}", refused.stderr);
    for option in ["--commentary", "--logo"] {
        let refused = bench.run(["compare", "before", "after", option, "nothing"]).expect_code(2).stderr;
        let text = format!("failed to read {option} nothing: No such file");
        assert!(refused.contains(&text), "{refused}");
    }
}

#[test]
fn command_lines_without_a_meaning_are_refused() {
    let bench = Bench::new();
    let before = stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    let copy = bench.path().join("copy.netduel");
    std::fs::copy(&before, &copy).unwrap();
    std::fs::copy(before, bench.store().join("copied.netduel")).unwrap();
    bench.run(["runs", "import", "copy.netduel", "--name", "imported"]).expect_code(0);
    bench.run(["runs", "baseline", "before", "--out", "before.json"]).expect_code(0);
    let copy = copy.to_str().unwrap();
    for (words, reason) in [
        (&["compare", "before"][..], "required"),
        (&["compare", "before", "after", "before"], "both are the run before"),
        (&["compare", "before", copy], "both are the run before"),
        (&["compare", "before", "copied"], "both are copies of one run"),
        (&["compare", "after", "imported", copy], "both are copies of one run"),
        (&["compare", "before.json", "imported"], "both are copies of one run"),
        (&["compare", "before", "after", "--format", "csv"], "csv"),
        (
            &["compare", "before", "after", "--out", "values.csv"],
            "failed to write a comparison as .csv: it has no such format; use text, html, pdf, md, json, junit or github",
        ),
        (&["compare", "before", "after", "--out", "report.docx"], ".html"),
    ] {
        let refused = bench.run(words).expect_code(2);
        assert!(refused.stderr.contains(reason), "{words:?}: {}", refused.stderr);
    }
    assert!(!bench.path().join("values.csv").exists());
}

#[test]
fn runs_without_a_common_workload_are_shown_and_end_with_the_code_of_missing_data() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored(&bench, "old-1");
    let finished = bench.run(["compare", "before", "old-1"]).expect_code(6);
    assert!(finished.stdout.contains("workload rr: A has it, B does not"), "{}", finished.stdout);
    assert!(finished.stderr.contains("Not compared"), "{}", finished.stderr);
    let document = bench.run(["compare", "before", "old-1", "--json"]).expect_code(6).json();
    assert_eq!(document["comparisons"], serde_json::json!([]));
    assert_eq!(document["not_compared"][0]["text"], "workload rr: A has it, B does not");
}

#[test]
fn error_of_a_comparison_names_the_value_that_a_run_lacks() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    let after = stored_run(&bench, "after", "6.18.44");
    let text = std::fs::read_to_string(&after).unwrap();
    let is_kept = |line: &&str| !line.starts_with("{\"trial\"") || !line.contains("\"arm\":\"accelerated\",");
    let kept: Vec<&str> = text.lines().filter(is_kept).collect();
    assert_eq!(kept.len() + 8, text.lines().count());
    std::fs::write(&after, kept.join("\n") + "\n").unwrap();
    let error = bench.run(["compare", "before", "after"]).expect_code(6).stderr;
    assert!(error.contains("of rr on accelerated has no valid value in run B (and "), "{error}");
    let error = bench.run(["compare", "after", "before"]).expect_code(6).stderr;
    assert!(error.contains("of rr on accelerated has no valid value in run A (and "), "{error}");
}

/// The same with round trips that take longer: the median of the ten is 951 us instead of 692 us.
pub fn stored_slower_run(bench: &Bench, name: &str) {
    let path = stored_run(bench, name, "6.18.44");
    let text = std::fs::read_to_string(&path).unwrap();
    let usual = "\"pairs\":[[195583,1],[198015,1],[289791,1],[328959,1],[692223,1],[951295,1],";
    assert!(text.contains(usual));
    std::fs::write(&path, text.replace(usual, "\"pairs\":[[195583,1],[951295,5],")).unwrap();
}

#[test]
fn gate_fails_with_its_code_and_one_line_where_a_verdict_proves_the_loss() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.18.44");
    stored_slower_run(&bench, "slower");
    let gated = |run: &str, words: &[&str]| bench.run([&["compare", "before", run][..], words].concat());
    let failed = gated("slower", &["--fail-if", "latency-p50 > 10 %"]).expect_code(11);
    assert!(failed.stdout.contains("Verdicts"), "{}", failed.stdout);
    let line = "netduel: failed by `latency-p50 > 10 %`: it is worse: round trip p50 of rr on synthetic, B against A: 37 % higher";
    assert!(failed.stderr.starts_with(line) && failed.stderr.lines().count() == 1, "{}", failed.stderr);
    let document = gated("slower", &["--fail-if", "latency-p50 > 10 %", "--json"]).expect_code(11).json();
    assert_eq!(document["document"], "netduel.compare", "{document}");
    let passed = gated("slower", &["--fail-if", "latency-p50 > 50 %", "--strict"]).expect_code(0);
    assert!(passed.stderr.contains("passed: "), "{}", passed.stderr);
    gated("after", &["--fail-if", "latency-p50 > 5 %", "--strict"]).expect_code(0);
    gated("slower", &[]).expect_code(0);
}

#[test]
fn conditions_without_a_meaning_are_refused_before_anything_is_compared_or_run() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.18.44");
    let plan = bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 2\nblocks_max = 2"));
    let plan = plan.to_str().unwrap();
    for (words, reason) in [
        (&["compare", "before", "after", "--fail-if", "speed < -5 %"][..], "no metric"),
        (&["compare", "before", "after", "--fail-if", "throughput of rr < -5 %"], "(verdicts: "),
        (&["compare", "before", "after", "--fail-if", "latency-p50 of x > 5 %"], "x (workloads: rr)"),
        (&["compare", "before", "after", "--strict"], "--fail-if"),
        (&["run", plan, "--fail-if", "throughput > 5 %"], "write for example `throughput < -5 %`"),
        (&["run", plan, "--fail-if", "latency-p50 > 5 %"], "has no verdict"),
        (
            &["run", plan, "--fail-if", "throughput on synthetic < -5 %"],
            "the baseline is compared with nothing",
        ),
    ] {
        let refused = bench.run(words).expect_code(2);
        let is_of_baseline = refused.stderr.contains("the baseline is compared with nothing");
        assert_eq!(is_of_baseline, words.concat().contains("on synthetic"), "{words:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(reason) && refused.stdout.is_empty(),
            "{words:?}: {}",
            refused.stderr
        );
    }
}

#[test]
fn strict_gate_of_a_run_fails_where_the_blocks_are_too_few() {
    let bench = Bench::new();
    // A trial with a volume counts also on a busy machine, and two blocks have no interval.
    let plan = bench.plan(&short_plan(TWO_PATHS, VOLUME, "blocks_min = 2\nblocks_max = 2"));
    let plan = plan.to_str().unwrap();
    let gate = ["--fail-if", "throughput < -5 %"];
    let open = bench.run([&["run", plan, "--strict"][..], &gate].concat()).expect_code(11);
    let line = "it may be worse (--strict): throughput of stream on accelerated: ";
    assert!(open.stderr.contains(line), "{}", open.stderr);
    // The stored run has the same answer.
    bench.run([&["report", "last", "--strict"][..], &gate].concat()).expect_code(11);
    let passed = bench.run([&["report", "last"][..], &gate].concat()).expect_code(0);
    let line = "passed: no regression beyond --fail-if is shown; ruled out in 0 of 1 comparisons";
    assert!(passed.stderr.contains(line), "{}", passed.stderr);
}

/// Two arms of one path, of which the second sends a third of the rate of [`PACED`].
const LOSS: &str = r#"
[[arms]]
name = "before"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
[[arms]]
name = "after"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
set = { rate = "100 Mbit/s" }
"#;

#[test]
fn gate_of_a_run_fails_where_its_trials_prove_the_loss() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(LOSS, PACED, "blocks_min = 8\nblocks_max = 8"));
    let plan = plan.to_str().unwrap();
    let gate = ["--fail-if", "throughput of stream on after < -5 %"];
    let failed = bench.run([&["run", plan][..], &gate].concat()).expect_code(11);
    let line = format!("netduel: failed by `{}`: it is worse: throughput of stream on after: ", gate[1]);
    let last = failed.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with(&line), "{}", failed.stderr);
    // The stored run has the same answer, and a loss within the limit fails nothing.
    let stored = bench.run([&["report", "last"][..], &gate].concat()).expect_code(11);
    assert_eq!(stored.stderr.lines().last(), Some(last));
    bench.run(["report", "last", "--fail-if", "throughput < -90 %"]).expect_code(0);
}

#[test]
fn run_is_compared_with_a_publication_without_a_second_run() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    // Of the stored run no arm has path and traffic of a figure.
    let none = bench.run(["compare", "before", "published:azure-stress-2018"]).expect_code(6);
    assert!(none.stdout.contains("Published figures") && none.stdout.contains("no value"), "{}", none.stdout);
    let document =
        bench.run(["compare", "before", "published:azure-stress-2018", "-J"]).expect_code(6).json();
    assert_eq!(document["published"][0]["publication"], "azure-stress-2018");
    assert_eq!(document["runs"].as_array().unwrap().len(), 1);
    for (words, reason) in [
        (&["compare", "before", "published:azure"][..], "publications with figures: azure-stress-2018"),
        (&["compare", "published:linux-hyper-v", "published:azure-dpdk-2025"], "no run is named"),
        (
            &["compare", "before", "published:azure-stress-2018", "--fail-if", "latency-p50 > 10 %"],
            "one run is named",
        ),
    ] {
        let refused = bench.run(words).expect_code(2);
        assert!(refused.stderr.contains(reason), "{words:?}: {}", refused.stderr);
    }
}
