//! What pipelines use: JUnit files, annotations and summaries of GitHub, baseline files, and the examples of docs/gate.md.
use std::path::Path;
use std::process::Command;

use netduel_test_support::skip;

use crate::compare::{stored_run, stored_slower_run};
use crate::support::{Bench, Finished, STREAM, TWO_PATHS, VOLUME, short_plan};

const LOSS: [&str; 2] = ["--fail-if", "latency-p50 > 10 %"];

#[test]
fn junit_file_and_exit_code_agree() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_slower_run(&bench, "slower");
    let page = |name: &str| std::fs::read_to_string(bench.path().join(name)).unwrap();
    bench.run([&["compare", "before", "slower", "--out", "compare.xml"][..], &LOSS].concat()).expect_code(11);
    // The file has the loss of both arms.
    assert_eq!(page("compare.xml").matches("<failure ").count(), 2, "{}", page("compare.xml"));
    assert!(page("compare.xml").contains("report: netduel compare before slower</failure>"));
    let printed = bench.run(["compare", "before", "slower", "--format", "junit"]).expect_code(0).stdout;
    assert!(printed.starts_with("<?xml") && !printed.contains("<failure"), "{printed}");
    // All trials of the stored runs have equal values, so no arm is worse.
    bench.run([&["report", "before", "--out", "report.xml", "--strict"][..], &LOSS].concat()).expect_code(0);
    assert!(page("report.xml").contains("failures=\"0\""), "{}", page("report.xml"));
    let about_nothing = ["report", "before", "--fail-if", "throughput < -5 %"];
    assert!(bench.run(about_nothing).expect_code(2).stderr.contains("has no verdict"));
}

#[test]
fn redacted_test_cases_and_annotations_have_the_versions_of_the_page() {
    let bench = Bench::new();
    // As text it would be an address.
    stored_run(&bench, "before", "6.18.44.7");
    stored_slower_run(&bench, "slower");
    for format in ["md", "junit", "github"] {
        let words = ["compare", "before", "slower", "--redact", "--format", format];
        let shown = bench.run(words).expect_code(0).stdout.replace('\\', "");
        assert!(shown.contains("A: 6.18.44.7; B: 6.18.44)"), "{format}: {shown}");
    }
}

#[test]
fn run_writes_junit_by_the_extension_of_its_report() {
    let bench = Bench::new();
    // A trial with a volume counts also on a busy machine, and two blocks have no interval.
    let plan = bench.plan(&short_plan(TWO_PATHS, VOLUME, "blocks_min = 2\nblocks_max = 2"));
    let gate = ["--fail-if", "throughput < -5 %", "--strict", "--out", "report.xml", "--store", "kept"];
    bench.run([&["run", plan.to_str().unwrap()][..], &gate].concat()).expect_code(11);
    let page = std::fs::read_to_string(bench.path().join("report.xml")).unwrap();
    assert!(
        page.contains("classname=\"accelerated against synthetic\" name=\"throughput of stream\""),
        "{page}"
    );
    assert!(page.contains("<failure ") && page.contains(" --store kept</failure>"), "{page}");
    let reason = "failed by `throughput &lt; -5 %`: it may be worse (--strict)";
    assert!(page.contains(reason), "{page}");
}

#[test]
fn comparison_that_a_condition_covers_and_a_run_lacks_is_an_error() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.18.44");
    let path = stored_run(&bench, "renamed", "6.18.44");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"rr\"", "\"ping\"")).unwrap();
    let gate = ["--fail-if", "latency-p50 > 5 %", "--strict", "--out", "compare.xml"];
    bench.run([&["compare", "before", "after"][..], &gate].concat()).expect_code(0);
    let compare = ["compare", "before", "after", "renamed"];
    let missing = bench.run([&compare[..], &gate].concat()).expect_code(6).stderr;
    let line = "failed to apply `latency-p50 > 5 %`: round trip p50 of rr on synthetic, C against A: \
                not compared: workload rr: A has it, C does not (and 1 more)";
    assert!(missing.contains(line), "{missing}");
    let page = std::fs::read_to_string(bench.path().join("compare.xml")).unwrap();
    let case = "classname=\"accelerated, C against A\" name=\"round trip p50 of rr\">\n      <error ";
    assert!(page.contains(case), "{page}");
    assert_eq!(page.matches("<error ").count(), 2, "{page}");
    // Without a condition it is named only.
    bench.run(compare).expect_code(0);
}

#[test]
fn gate_of_a_stored_run_needs_its_data_and_its_end() {
    let bench = Bench::new();
    let page = || std::fs::read_to_string(bench.path().join("report.xml")).unwrap();
    let gate = ["--out", "report.xml", "--fail-if", "latency-p50 > 50 %"];
    let path = stored_run(&bench, "empty", "6.18.44");
    let text = std::fs::read_to_string(&path).unwrap();
    let is_of_arm = |line: &&str| line.starts_with("{\"trial\"") && line.contains("\"arm\":\"accelerated\"");
    let kept: Vec<&str> = text.lines().filter(|line| !is_of_arm(line)).collect();
    assert_eq!(kept.len() + 8, text.lines().count());
    std::fs::write(&path, kept.join("\n") + "\n").unwrap();
    for report in [&["report", "empty"][..], &["report", "empty", "--strict"]] {
        let empty = bench.run([report, &gate].concat()).expect_code(6).stderr;
        let line = "failed to apply `latency-p50 > 50 %`: round trip p50 of rr on accelerated: ";
        assert!(empty.contains(line), "{empty}");
        assert!(page().contains("name=\"round trip p50 of rr\">\n      <error "), "{}", page());
    }
    let path = stored_run(&bench, "failed", "6.18.44");
    let text = std::fs::read_to_string(&path).unwrap();
    let end = "{\"reason\":\"failed\",\"detail\":\"no route to host\"}";
    let failed = text.replace("{\"reason\":\"blocks-done\"}", end);
    assert_ne!(failed, text);
    std::fs::write(&path, failed).unwrap();
    let failed = bench.run([&["report", "failed"][..], &gate].concat()).expect_code(6).stderr;
    let line = "failed to apply --fail-if: the run is incomplete: failed: no route to host";
    assert!(failed.contains(line), "{failed}");
    let case = "classname=\"conditions\" name=\"end of the run\">\n      <error ";
    assert!(page().contains(case), "{}", page());
    // A report alone shows what there is.
    for name in ["empty", "failed"] {
        bench.run(["report", name, "--out", "report.xml"]).expect_code(0);
    }
}

#[test]
fn commands_in_test_reports_of_stored_runs_find_the_run_again() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    std::fs::rename(bench.store(), bench.path().join("other")).unwrap();
    for (words, command) in [
        (&["report", "last", "--store", "other"][..], "netduel report before --store other"),
        (&["report", "other/before.netduel"], "netduel report other/before.netduel"),
    ] {
        let page = bench.run([words, &["--format", "junit"]].concat()).expect_code(0).stdout;
        assert!(page.contains(&format!("report: {command}</system-out>")), "{page}");
    }
}

/// The command in a step of a workflow.
fn in_github(bench: &Bench, words: &[&str]) -> Finished {
    let mut command = bench.netduel(words);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", bench.path().join("summary.md"));
    Finished::from(command.output().unwrap())
}

#[test]
fn step_of_github_gets_annotations_and_a_summary_beside_the_result() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_slower_run(&bench, "slower");
    let summary = || std::fs::read_to_string(bench.path().join("summary.md")).unwrap_or_default();
    let compare = ["compare", "before", "slower", "--json"];
    let failed = in_github(&bench, &[&compare[..], &LOSS].concat()).expect_code(11);
    assert_eq!(failed.json()["document"], "netduel.compare");
    let annotations =
        failed.stderr.lines().filter(|line| line.starts_with("::error title=netduel%3A ")).count();
    assert_eq!(annotations, 2, "{}", failed.stderr);
    assert!(summary().starts_with("failed by \\`latency-p50 &gt; 10 %\\`"), "{}", summary());
    assert!(summary().contains("# Comparison of 2 runs"), "{}", summary());
    // The summary of a step has the output of all its commands.
    let length = summary().len();
    in_github(&bench, &compare).expect_code(0);
    assert!(summary().len() > length + 1000);
    // The format prints the same anywhere, and a report is no part of a workflow by itself.
    let printed = bench.run([&["compare", "before", "slower", "--format", "github"][..], &LOSS].concat());
    assert_eq!(printed.expect_code(11).stdout.matches("::error ").count(), 2);
    let length = summary().len();
    in_github(&bench, &["report", "before"]).expect_code(0);
    assert_eq!(summary().len(), length);
    in_github(&bench, &["report", "before", "--format", "github"]).expect_code(0);
    assert!(summary().len() > length);
}

#[test]
fn texts_of_a_run_are_no_commands_to_a_workflow() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_slower_run(&bench, "slower");
    let title = "::stop-commands::x ##[stop-commands]y";
    bench.run(["runs", "tag", "before", "--title", title]).expect_code(0);
    let compare = ["compare", "before", "slower"];
    for words in [
        &["runs"][..],
        &["runs", "--json"],
        &["runs", title],
        &["report", title],
        &["report", "before", "--format", "text"],
        &["report", "before", "--json"],
        &["report", "before", "--format", "junit"],
        &["report", "before", "--format", "text", "--out", "/dev/stdout"],
        &["report", "before", "--format", "md", "--out", "/dev/stderr"],
        &["report", "before", "--format", "json", "--out", "/dev/stdout"],
        &compare,
        &[&compare[..], &LOSS].concat(),
    ] {
        let finished = in_github(&bench, words);
        for line in finished.stdout.lines().chain(finished.stderr.lines()) {
            let own = ["::error title=netduel%3A ", "::warning title=netduel%3A "];
            let is_own = own.iter().any(|own| line.starts_with(*own));
            let is_command = line.trim_start().starts_with("::") || line.contains("##[");
            assert!(is_own || !is_command, "{words:?}: {line}");
        }
    }
    let listed = in_github(&bench, &["runs", "--json"]).expect_code(0).json();
    assert!(listed["runs"].as_array().unwrap().iter().any(|run| run["title"] == title), "{listed}");
    assert!(in_github(&bench, &["runs"]).stdout.contains("    : :stop-commands::x ## [stop-commands]y"));
    assert!(bench.run(["runs"]).expect_code(0).stdout.contains(title));
}

#[test]
fn texts_of_a_run_are_no_commands_to_a_pipeline_of_azure() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    let title = "##vso[task]x ##[error]y";
    bench.run(["runs", "tag", "before", "--title", title]).expect_code(0);
    let in_pipeline = |words: &[&str]| {
        let mut command = bench.netduel(words);
        Finished::from(command.env("TF_BUILD", "True").output().unwrap())
    };
    for words in [&["runs"][..], &["runs", "--json"], &["report", title], &["report", "before", "--json"]] {
        let finished = in_pipeline(words);
        let text = finished.stdout + &finished.stderr;
        let has_command = text.contains("##vso[") || text.contains("##[");
        assert!(text.contains("vso") && !has_command, "{words:?}: {text}");
    }
    let listed = in_pipeline(&["runs", "--json"]).expect_code(0).json();
    assert!(listed["runs"].as_array().unwrap().iter().any(|run| run["title"] == title), "{listed}");
    assert!(bench.run(["runs"]).expect_code(0).stdout.contains(title));
}

#[test]
fn step_summary_stays_below_the_size_that_github_drops() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    let path = bench.path().join("summary.md");
    std::fs::write(&path, "x".repeat((1 << 20) - 2000)).unwrap();
    in_github(&bench, &["compare", "before", "after"]).expect_code(0);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() <= 1 << 20, "{}", text.len());
    assert!(text.ends_with("`netduel compare before after` prints all of it.\n"));
    in_github(&bench, &["compare", "before", "after"]).expect_code(0);
    assert!(std::fs::metadata(&path).unwrap().len() <= 1 << 20);
    // A summary that cannot be written changes no result, and a pipe without a reader is not awaited.
    let pipe = bench.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for path in [bench.path(), &pipe] {
        let mut command = bench.netduel(["compare", "before", "after"]);
        command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", path);
        let finished = Finished::from(command.output().unwrap()).expect_code(0);
        assert!(finished.stderr.contains("warning: failed to write the step summary"), "{}", finished.stderr);
    }
}

#[test]
fn baseline_file_stands_for_its_run() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_slower_run(&bench, "slower");
    let printed = bench.run(["runs", "baseline", "before", "--out", "baseline.json"]).expect_code(0).stdout;
    assert_eq!(printed, "baseline.json\n");
    assert_eq!(
        bench.run(["runs", "baseline", "before"]).expect_code(0).json()["document"],
        "netduel.baseline"
    );
    let whole = bench.run(["compare", "before", "slower", "--json"]).expect_code(0).json();
    std::fs::remove_file(bench.store().join("before.netduel")).unwrap();
    let gate = |first: &str| {
        bench.run([&["compare", first, "slower", "--json"][..], &LOSS].concat()).expect_code(11).json()
    };
    assert_eq!(gate("baseline.json")["comparisons"], whole["comparisons"]);
    bench.run(["compare", "baseline.json", "slower", "--out", "page.html"]).expect_code(0);
    let same = bench.run(["compare", "baseline.json", "./baseline.json"]).expect_code(2);
    assert!(same.stderr.contains("both are the run before"), "{}", same.stderr);
    bench.run(["compare", "nothing.json", "slower"]).expect_code(9);
    std::fs::write(bench.path().join("other.json"), "{}").unwrap();
    let other = bench.run(["compare", "other.json", "slower"]).expect_code(5);
    assert!(other.stderr.contains("it is no netduel.baseline; make one with"), "{}", other.stderr);
}

#[test]
fn baseline_is_not_written_as_another_format() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    for extension in ["html", "md", "txt", "csv"] {
        let name = format!("baseline.{extension}");
        let refused = bench.run(["runs", "baseline", "before", "--out", &name]).expect_code(2).stderr;
        let reason = format!("failed to write a baseline as .{extension}: it has no such format; use .json");
        assert!(refused.contains(&reason) && !bench.path().join(&name).exists(), "{refused}");
    }
}

/// The fenced examples in YAML of docs/gate.md, as JSON: python3-yaml parses them.
fn examples() -> Option<Vec<serde_json::Value>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/gate.md");
    let script = "import json, re, sys, yaml\n\
        page = open(sys.argv[1]).read()\n\
        print(json.dumps([yaml.load(one, yaml.BaseLoader) for one in re.findall(r'```yaml\\n(.*?)```', page, re.S)]))";
    // The system's own interpreter has the modules of the system's packages.
    let parsed = Command::new("/usr/bin/python3").args(["-c", script, page]).output();
    match parsed {
        Ok(output) if output.status.success() => Some(serde_json::from_slice(&output.stdout).unwrap()),
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("No module named 'yaml'") => {
            panic!("{}", String::from_utf8_lossy(&output.stderr))
        }
        _ => {
            skip("python3-yaml is not installed");
            None
        }
    }
}

/// Runs lines of a pipeline as its runner does, in a folder with the plan of the examples and the program in the PATH.
fn shell(bench: &Bench, script: &str) -> Finished {
    let mut command = Command::new("bash");
    let program = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(program).chain(std::env::split_paths(&path));
    command.args(["-e", "-o", "pipefail", "-c", script]).current_dir(bench.path());
    bench.mark(&mut command);
    command.env("PATH", std::env::join_paths(folders).unwrap()).env_remove("NETDUEL_STORE");
    Finished::from(command.output().unwrap())
}

/// Which of its answers a command gives depends on the machine. That code and words are the same answer does not.
#[track_caller]
fn assert_decided(script: &str, finished: &Finished) {
    let Finished { code, stderr, .. } = finished;
    let has_gate = script.contains("--fail-if");
    let is_said = match code {
        Some(0) => stderr.contains("passed: no regression beyond --fail-if is shown") == has_gate,
        Some(6) => stderr.contains("failed to "),
        Some(11) => has_gate && stderr.contains("failed by `throughput < -5 %`: it is worse: "),
        _ => false,
    };
    assert!(is_said, "{script}: {code:?}: {stderr}");
}

#[test]
fn examples_of_the_guide_are_valid_and_their_commands_run() {
    let Some(examples) = examples() else { return };
    let [github, gitlab] = examples.as_slice() else { panic!("two examples: {examples:?}") };
    let texts = |value: &serde_json::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let steps = github["jobs"]["network"]["steps"].as_array().unwrap();
    let of_github: Vec<String> =
        steps.iter().filter_map(|step| step["run"].as_str()).map(str::to_owned).collect();
    let of_gitlab = texts(&gitlab["network"]["script"]);
    assert!(github.get("on").is_some() && github["jobs"]["network"]["runs-on"].is_array(), "{github}");
    assert_eq!(gitlab["network"]["artifacts"]["reports"]["junit"], "netduel.xml");
    for (scripts, written) in [(of_github, "report.html"), (of_gitlab, "netduel.xml")] {
        let bench = Bench::new();
        bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 5\nblocks_max = 5"));
        let first = "netduel run plan.toml --store before && netduel runs baseline last --store before --out baseline.json";
        // On a busy machine a trial may not count, and a run of a lab is not as steady as its machines.
        shell(&bench, first);
        assert!(bench.path().join("baseline.json").exists());
        for script in &scripts {
            let finished = shell(&bench, script);
            assert_decided(script, &finished);
        }
        assert!(scripts.iter().any(|script| script.contains("compare baseline.json last")), "{scripts:?}");
        assert!(bench.path().join(written).exists(), "{written}");
    }
}
