//! The command line without traffic: suggestions, exit codes, where reports are written, deleting runs, completions.
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use netduel_model::pairing::{Pairing, SECRET_LEN};
use netduel_model::socket_name::SocketName;
use netduel_test_support::skip;
use rustix::fs::{FlockOperation, flock};

use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, short_plan, stored};

/// The program on a pseudo-terminal.
fn on_a_terminal(bench: &Bench, words: &str) -> Option<Finished> {
    on_a_terminal_with(bench, "TERM=xterm", words)
}

/// The program on a pseudo-terminal, with these environment variables.
fn on_a_terminal_with(bench: &Bench, variables: &str, words: &str) -> Option<Finished> {
    let mut command = Command::new("script");
    let line = format!("env {variables} {} {words}", env!("CARGO_BIN_EXE_netduel"));
    command.args(["-qec", &line, "/dev/null"]);
    command.current_dir(bench.path()).stdin(std::process::Stdio::null());
    bench.mark(&mut command);
    match command.output() {
        Ok(output) => Some(Finished::from(output)),
        Err(error) => {
            skip(format!("`script` makes the terminal, and cannot be run: {error}"));
            None
        }
    }
}

#[test]
fn internal_commands_are_not_suggested() {
    let bench = Bench::new();
    let error = bench.run(["client"]).expect_code(2).stderr;
    assert!(error.contains("'tcp'") && !error.contains("'agent'") && !error.contains("'link'"), "{error}");
    let help = bench.run(["--help"]).expect_code(0).stdout;
    assert!(!help.contains("agent") && !help.contains("lab-keeper"), "{help}");
}

#[test]
fn missing_run_missing_file_and_missing_pairing_have_their_own_exit_codes() {
    let bench = Bench::new();
    for words in [
        &["report", "last"][..],
        &["compare", "last", "x"],
        &["run", "--resume", "last"],
        &["runs", "rm", "--yes", "x"],
    ] {
        bench.run(words).expect_code(9);
    }
    for words in [
        &["report", "x.netduel"][..],
        &["report", "./x"],
        &["report", "x.json"],
        &["report", "./x.json"],
        &["compare", "x.netduel", "x.json"],
        &["compare", "x.json", "x.netduel"],
        &["history", "x.netduel"],
        &["runs", "verify", "x.netduel"],
        &["runs", "import", "x.netduel"],
        &["run", "--resume", "x.netduel"],
    ] {
        let error = bench.run(words).expect_code(9).stderr;
        assert!(error.contains("`netduel run"), "{words:?} has no remedy: {error}");
    }
    bench.run(["pair", "--forget", "far"]).expect_code(10);
    bench.run(["rr", "far.invalid"]).expect_code(10);
    assert_eq!(
        bench.run(["pair", "--list", "--json"]).expect_code(0).json()["pairings"],
        serde_json::json!([])
    );
}

#[test]
fn pairing_whose_name_is_no_host_any_more_is_named_and_deleted() {
    let bench = Bench::new();
    let state = bench.path().join("state/netduel");
    let pairing = state.join("pairings/fär:5210");
    std::fs::create_dir_all(state.join("pairings")).unwrap();
    std::fs::write(&pairing, "").unwrap();
    std::fs::write(state.join("other:5210"), "").unwrap();
    let listed = bench.run(["pair", "--list"]).expect_code(0);
    assert!(listed.stderr.contains("fär:5210") && !listed.stdout.contains("fär"), "{}", listed.stderr);
    for words in [&["tcp", "fär"][..], &["inspect", "fär"], &["link", "fär"]] {
        let error = bench.run(words).expect_code(2).stderr;
        assert!(error.contains("xn--"), "{words:?}: {error}");
    }
    for elsewhere in ["../other", "../other:5210", "..", "."] {
        bench.run(["pair", "--forget", elsewhere]).expect_code(2);
    }
    bench.run(["pair", "--forget", "other"]).expect_code(10);
    assert!(pairing.exists() && state.join("other:5210").exists());
    let deleted = bench.run(["pair", "--forget", "fär", "--json"]).expect_code(0).json();
    let server = serde_json::json!([{ "name": "fär:5210", "host": "fär", "port": 5210 }]);
    assert_eq!(deleted["pairings"], server);
    assert!(!pairing.exists());
    bench.run(["pair", "--forget", "fär"]).expect_code(2);
}

#[test]
fn damaged_pairing_names_the_command_that_replaces_it() {
    let bench = Bench::new();
    let folder = bench.path().join("state/netduel/pairings");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("far.invalid:5210");
    for content in [&b""[..], b"netduel1abcdefgh", b"\xff"] {
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        for command in ["rr", "inspect", "link"] {
            let error = bench.run([command, "far.invalid"]).expect_code(5).stderr;
            let has_remedy =
                error.contains("; pair again: run `netduel serve` there, and once `netduel pair -`");
            assert!(has_remedy && error.contains("far.invalid:5210: "), "{command}: {error}");
        }
    }
    let server = SocketName::parse("far.invalid").unwrap();
    let string = Pairing { server, fingerprint: [1; 32], secret: [2; SECRET_LEN] }.to_string();
    bench.run(["pair", &string]).expect_code(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap().trim(), string);
    // The pairing itself is good, and stays.
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let error = bench.run(["rr", "far.invalid"]).expect_code(5).stderr;
    assert!(error.contains("; run `chmod 600 ") && !error.contains("pair again"), "{error}");
}

#[test]
fn remedies_of_bad_arguments_are_commands_and_values_that_work() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let file = bench.path().join("other run.netduel");
    std::fs::copy(bench.store().join("old-1.netduel"), &file).unwrap();
    let error = bench.run(["run", "--resume", file.to_str().unwrap()]).expect_code(9).stderr;
    let import = format!("netduel runs import '{}'", file.display());
    assert!(error.contains("it is a file") && error.contains(&import), "{error}");
    bench.run(["runs", "baseline", "old-1", "--out", "baseline.json"]).expect_code(0);
    for (words, code) in [
        (["report", "baseline.json"], 9),
        (["report", "./baseline.json"], 5),
        (["history", "baseline.json"], 9),
    ] {
        let error = bench.run(words).expect_code(code).stderr;
        assert!(error.contains("only `netduel compare` takes a baseline file"), "{words:?}: {error}");
    }
    let error = bench.run(["compare", "a", "b", "--out", "two.docx"]).expect_code(2).stderr;
    assert!(error.contains(".md") && !error.contains(".csv"), "{error}");
    let error = bench.run(["history", "--out", "all.docx"]).expect_code(2).stderr;
    assert!(error.contains(".pdf, .md") && !error.contains(".csv"), "{error}");
    let error = bench.run(["tcp", "far", "-t", "nan"]).expect_code(2).stderr;
    assert!(error.contains("for example \"100 ms\""), "{error}");
    let error = bench.run(["pps", "127.0.0.1", "-R", "--generator", "xdp"]).expect_code(2).stderr;
    assert!(error.contains("start the test at the other end") && !error.contains("arm"), "{error}");
    let plan = bench.plan("");
    let error =
        bench.run(["run", plan.to_str().unwrap(), "--remote-program", "missing"]).expect_code(2).stderr;
    assert!(error.contains("--remote-program") && error.contains("No such file"), "{error}");
    let title = "x".repeat(100_000);
    let error = bench.run(["run", plan.to_str().unwrap(), "--title", &title]).expect_code(2).stderr;
    assert!(error.len() < 2_000 && error.contains("200 are allowed"), "{} bytes", error.len());
}

#[test]
fn empty_store_of_the_environment_is_none_and_an_empty_option_is_refused() {
    let bench = Bench::new();
    let mut command = bench.netduel(["runs"]);
    command.env("NETDUEL_STORE", "").env("XDG_DATA_HOME", bench.path());
    let finished = Finished::from(command.output().unwrap()).expect_code(0);
    let folder = bench.path().join("netduel");
    assert!(finished.stdout.contains(folder.to_str().unwrap()), "{}", finished.stdout);
    let error = bench.run(["runs", "--store", ""]).expect_code(2).stderr;
    assert!(error.contains("--store: it is empty"), "{error}");
}

#[test]
fn relative_folder_of_the_environment_is_none_and_nothing_is_created_in_the_current_one() {
    let bench = Bench::new();
    let plan = bench.plan("");
    let run = |words: &[&str], home: &str| {
        let mut command = bench.netduel(words);
        command.env("NETDUEL_STORE", "").env("HOME", home);
        for variable in ["XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env(variable, "data");
        }
        Finished::from(command.output().unwrap())
    };
    for (words, variable) in [
        (&["runs"][..], "XDG_DATA_HOME"),
        (&["report", "last"], "XDG_DATA_HOME"),
        (&["pair", "--list"], "XDG_STATE_HOME"),
        (&["pair", "--forget", "far"], "XDG_STATE_HOME"),
    ] {
        let error = run(words, "home").expect_code(3).stderr;
        let fault =
            format!("{variable} is the relative path `data` and HOME is the relative path `home`; set");
        assert!(error.contains(&fault) && error.contains("to an absolute path, or"), "{words:?}: {error}");
    }
    // The specification has a relative path ignored: the next one counts.
    let home = bench.path().join("home");
    let listed = run(&["runs"], home.to_str().unwrap()).expect_code(0).stdout;
    assert!(listed.contains(home.join(".local/share/netduel").to_str().unwrap()), "{listed}");
    let left: Vec<_> = std::fs::read_dir(bench.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [plan]);
}

#[test]
fn out_is_a_file_or_a_folder_by_its_name_for_every_command() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    for (words, path, beginning) in [
        (&["--out", "page.html"][..], "page.html", "<!DOCTYPE html>"),
        (&["--out", "pages"], "pages/report.html", "<!DOCTYPE html>"),
        (&["--out", "made/for/it.md"], "made/for/it.md", "# "),
        (&["--out", "pages", "--format", "csv"], "pages/report.csv", "run,"),
    ] {
        let words = [&["report", "last"], words].concat();
        let printed = bench.run(&words).expect_code(0).stdout;
        assert_eq!(printed.trim(), path);
        let text = std::fs::read_to_string(bench.path().join(path)).unwrap();
        assert!(text.starts_with(beginning), "{path}: {}", text.lines().next().unwrap_or_default());
    }
    // The name is checked before anything runs.
    let plan = bench.plan("");
    for words in [&["report", "last"][..], &["run", plan.to_str().unwrap()], &["demo"]] {
        let error = bench.run([words, &["--out", "report.docx"]].concat()).expect_code(2).stderr;
        assert!(error.contains(".html, .pdf, .md, .json, .csv"), "{error}");
    }
}

#[test]
fn output_that_cannot_be_written_has_one_exit_code_and_ends_before_the_first_trial() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, ""));
    // The kernel creates no folder there, not even for root.
    for words in [
        &["demo", "--out", "/proc/x"][..],
        &["run", plan.to_str().unwrap(), "--out", "/proc/x/report.html"],
        &["run", plan.to_str().unwrap(), "--store", "/proc/x"],
        &["rr", "far.invalid", "--save", "--store", "/proc/x"],
        &["report", "last", "--out", "/proc/x"],
        &["man", "/proc/x"],
    ] {
        let failed = bench.run(words).expect_code(5);
        assert!(failed.stderr.contains("/proc/x"), "{words:?}: {}", failed.stderr);
        assert!(!failed.stderr.contains("lab:") && !failed.stderr.contains("host "), "{}", failed.stderr);
    }
    for words in [
        &["runs"][..],
        &["report", "last"],
        &["plan", "schema"],
        &["--help"],
        &["--version"],
        &["run", "-h"],
        &["help", "tcp"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let code = bench.netduel(words).stdout(full).status().unwrap().code();
        assert_eq!(code, Some(5), "{words:?}");
    }
}

#[test]
fn json_errors_have_the_form_of_the_output_and_the_code_of_the_cause() {
    let bench = Bench::new();
    let inspected = bench.run(["inspect", "--json", "--no-metadata", "far.invalid:1"]).expect_code(10);
    assert_eq!(inspected.json()["error"]["exit_code"], 10);
    let missing = bench.run(["report", "nope", "--out", "x.json"]).expect_code(9);
    assert!(missing.stderr.contains("failed to find run `nope`"), "{}", missing.stderr);
    for words in [&["report", "--format", "json"][..], &["report", "--format=json", "--bogus"]] {
        assert_eq!(bench.run(words).expect_code(2).json()["error"]["exit_code"], 2, "{words:?}");
    }
    for words in [&["serve", "--json", "--bogus"][..], &["serve", "--json", "--bind", "192.0.2.1"]] {
        let failed = bench.run(words);
        assert_eq!(failed.stdout.lines().count(), 1, "{words:?}: {}", failed.stdout);
        assert_eq!(failed.json()["error"]["exit_code"].as_i64(), failed.code.map(i64::from), "{words:?}");
    }
    // A stream has events, also of a test that never begins.
    let failed = bench.run(["tcp", "far", "--json-stream", "--bogus"]).expect_code(2);
    assert_eq!((failed.stdout.lines().count(), &failed.json()["event"]), (1, &"failed".into()));
    assert_eq!(failed.json()["error"]["exit_code"], 2);
    let refused = bench.run(["runs", "--json=false"]).expect_code(2);
    assert!(refused.stderr.contains("unexpected value 'false' for '--json'"), "{}", refused.stderr);
}

#[test]
fn colours_need_a_terminal_with_control_sequences_and_no_wish_against_them() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    for (variables, has_colours) in [
        ("TERM=xterm", true),
        // An empty variable counts as unset (no-color.org).
        ("TERM=xterm NO_COLOR=", true),
        ("TERM=xterm NO_COLOR=1", false),
        ("TERM=dumb", false),
    ] {
        let Some(report) = on_a_terminal_with(&bench, variables, "report last") else { return };
        assert_eq!(report.expect_code(0).stdout.contains("\u{1b}["), has_colours, "{variables}");
    }
}

#[test]
fn listing_marks_copies_and_offers_the_next_command_of_stopped_runs() {
    let bench = Bench::new();
    let path = stored(&bench, "old-1");
    let text = std::fs::read_to_string(&path).unwrap();
    let id = text.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap();
    // Its own name, and without the record of its end.
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("{\"end\"")).collect();
    std::fs::write(bench.store().join(format!("{id}.netduel")), kept.join("\n") + "\n").unwrap();
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!((&runs[0]["id"], &runs[0]["copy_of"]), (&id.into(), &serde_json::Value::Null));
    assert_eq!((&runs[1]["id"], &runs[1]["copy_of"]), (&"old-1".into(), &id.into()));
    let text = bench.run(["runs"]).expect_code(0).stdout;
    assert!(text.contains(&format!("done, copy of {id}\n")), "{text}");
    assert!(text.contains(&format!("\n    Resume with: netduel run --resume {id}\n")), "{text}");
}

#[test]
fn html_page_is_not_printed_to_a_terminal() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let Some(refused) = on_a_terminal(&bench, "report last --format html") else { return };
    let refused = refused.expect_code(2);
    assert!(
        refused.stdout.contains("--out report.html") && !refused.stdout.contains("<html"),
        "{}",
        refused.stdout
    );
    let piped = bench.run(["report", "last", "--format", "html"]).expect_code(0);
    assert!(piped.stdout.contains("<html"));
}

#[test]
fn runs_are_deleted_after_confirmation_and_never_while_in_use() {
    let bench = Bench::new();
    let first = stored(&bench, "old-1");
    let second = stored(&bench, "old-2");
    let unasked = bench.run(["runs", "rm", "old-1"]).expect_code(2);
    assert!(unasked.stderr.contains("--yes") && first.exists(), "{}", unasked.stderr);

    let writer = File::open(&second).unwrap();
    flock(&writer, FlockOperation::LockExclusive).unwrap();
    let in_use = bench.run(["runs", "rm", "--yes", "old-2"]).expect_code(5);
    assert!(in_use.stderr.contains("old-2") && second.exists(), "{}", in_use.stderr);
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    let states: Vec<_> = listed["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["id"].clone(), run["state"].clone()))
        .collect();
    assert_eq!(states, [("old-1".into(), "done".into()), ("old-2".into(), "running".into())]);
    let text = bench.run(["runs"]).expect_code(0).stdout;
    assert!(text.contains("running") && !text.contains("--resume"), "{text}");
    let report = bench.run(["report", "old-2"]).expect_code(0).stdout;
    assert!(report.contains("still running") && !report.contains("--resume"), "{report}");
    drop(writer);

    // One name is invalid, so nothing is deleted.
    bench.run(["runs", "rm", "--yes", "old-1", "nothing-like-it"]).expect_code(9);
    let deleted = bench.run(["runs", "rm", "--yes", "old-1", "old-2", "old-1"]).expect_code(0).stdout;
    assert_eq!(deleted, "deleted old-1\ndeleted old-2\n");
    assert!(!first.exists() && !second.exists());
}

#[test]
fn bash_completes_names_of_runs_and_of_paired_hosts() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let pairings = bench.path().join("state/netduel/pairings");
    std::fs::create_dir_all(&pairings).unwrap();
    std::fs::write(pairings.join("10.0.0.7:5210"), "").unwrap();
    let completed = |words: &str| {
        let script = format!(
            "source <({0} completions bash); COMP_WORDS=({0} {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _netduel_names {0} \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            env!("CARGO_BIN_EXE_netduel")
        );
        let mut command = Command::new("bash");
        command.args(["--norc", "-c", &script]);
        bench.mark(&mut command);
        Finished::from(command.output().unwrap()).expect_code(0).stdout
    };
    assert_eq!(completed("report ''"), "last\nold-1\n");
    let compared = completed("compare old-1 ''");
    let publications: Vec<&str> =
        compared.strip_prefix("last\nold-1\n").unwrap_or_default().lines().collect();
    assert!(!publications.is_empty(), "{compared}");
    assert!(publications.iter().all(|name| name.starts_with("published:")), "{compared}");
    assert_eq!(completed("run --resume o"), "old-1\n");
    assert_eq!(completed("runs rm old-1 l"), "last\n");
    assert_eq!(completed("tcp 10."), "10.0.0.7:5210\n");
    // Bash splits HOST:PORT at the colon.
    assert_eq!(completed("tcp 10.0.0.7 : 52"), "5210\n");
    assert_eq!(completed("pair --forget ''"), "10.0.0.7:5210\n");
    let options = completed("tcp --par");
    assert!(options.contains("--parallel"), "{options}");
}
