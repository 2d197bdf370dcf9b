//! Texts from outside cannot control the terminal: arguments, file names, plans, launchers, agents, clients of a server, stored runs and
//! names in the kernel. Every source is fed to the commands that print it.
use std::fs::write;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use netduel_report::words::controls_output;
use netduel_store::{Store, bytes_of};
use netduel_test_support::NewNamespace;
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::support::{Bench, Finished, LATENCY, STREAM, TWO_PATHS, short_plan, signal, stored};

/// Clears the screen, sets the title, starts a sequence with one character, reverses the direction of writing, overwrites the line, and has
/// characters that cannot be seen.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}2J\u{202e}\r\u{61c}\u{200b}\u{feff}\u{e0041}";
/// A part of it that is harmless, and is shown.
const SHOWN: &str = "[2J";

#[track_caller]
fn assert_harmless(text: &str, source: &str) {
    let found = text.chars().find(|c| *c != '\n' && controls_output(*c));
    assert!(found.is_none(), "{source}: {found:?} in {text:?}");
}

/// Fails unless both outputs are harmless and one of them has the text from outside.
#[track_caller]
fn check(finished: &Finished, source: &str) {
    assert_harmless(&finished.stdout, source);
    assert_harmless(&finished.stderr, source);
    let shown = [&finished.stdout, &finished.stderr].iter().any(|text| text.contains(SHOWN));
    assert!(shown, "{source} is not in\n{}\n{}", finished.stdout, finished.stderr);
}

#[test]
fn arguments_and_file_names_do_not_control_the_terminal() {
    let bench = Bench::new();
    let x = format!("x{HOSTILE}");
    for words in [
        &["report", &x][..],
        &["report", &x, "--json"],
        &["run", &x],
        &["run", "--resume", &x],
        &["plan", "check", &x],
        &["plan", "check", &x, "--json"],
        &["inspect", &x],
        &["inspect", &x, "--json"],
        &["tcp", &x],
        &["tcp", "far", "--pairing-file", &x],
        &["pair", "--forget", &x, "--json"],
        &["runs", "rm", &x, "--yes"],
    ] {
        let finished = bench.run(words);
        assert_ne!(finished.code, Some(0), "{words:?}");
        check(&finished, &format!("{words:?}"));
    }
    // The parser of the command line leaves control sequences out of its errors, but not single control characters.
    for words in
        [&[&x[..]][..], &["lab", &x], &["lab", "up", &x], &["tcp", "far", "-t", &x], &["serve", "-p", &x]]
    {
        for json in [&[][..], &["--json"]] {
            let finished = bench.run(words.iter().chain(json)).expect_code(2);
            assert_harmless(&finished.stdout, &format!("{words:?}"));
            assert_harmless(&finished.stderr, &format!("{words:?}"));
        }
    }
    let good = short_plan(TWO_PATHS, STREAM, "blocks_min = 2");
    let plan = bench.path().join(format!("{x}.toml"));
    let plan = plan.to_str().unwrap();
    write(plan, &good).unwrap();
    check(&bench.run(["plan", "check", plan]).expect_code(0), "the name of a valid plan");
    check(&bench.run(["plan", "check", plan, "--json"]).expect_code(0), "the name of a valid plan");
    write(plan, good.replacen("tcp-stream", "tcp", 1)).unwrap();
    check(&bench.run(["plan", "check", plan]).expect_code(2), "the name of an invalid plan");
}

#[test]
fn free_text_of_the_command_line_that_no_output_shows_is_refused() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let plan = bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 2"));
    let plan = plan.to_str().unwrap();
    let of_author =
        ["--author", "--organization", "--purpose", "--audience"].map(|option| (option, "a\u{1b}b"));
    let of_page = [&of_author[..], &[("--title", "a\nb"), ("--fail-if", "throughput\t< -5 %")]].concat();
    let of_run =
        [("--title", "a\u{1b}b"), ("--note", "k=a\u{200b}b"), ("--set", "blocks_max=4\nblocks_min=3")];
    for (words, options) in [
        (&["report", "last"][..], &of_page[..]),
        (&["compare", "old-1", "old-1"], &of_page),
        (&["run", plan], &[&of_author[..], &of_run].concat()),
        (&["plan", "check", plan], &of_run[2..]),
        (&["tcp", "far", "--save"], &of_run[..2]),
        (&["runs", "tag", "last"], &of_run[..2]),
        (&["history"], &of_run[1..2]),
    ] {
        for (option, text) in options {
            let finished = bench.run([words, &[*option, *text]].concat()).expect_code(2);
            let error = &finished.stderr;
            assert!(error.contains("contains the character U+"), "{words:?} {option}: {error}");
            assert_harmless(error, option);
        }
    }
}

#[test]
fn errors_in_a_plan_do_not_control_the_terminal() {
    let bench = Bench::new();
    let good = short_plan(TWO_PATHS, STREAM, "blocks_min = 2");
    let quoted = "\\u001b[2J\\u009b2J\\u202e";
    for (text, source) in [
        (good.replacen("Which", HOSTILE, 1), "a control character"),
        (format!("{good}# {HOSTILE}"), "a control character in a comment"),
        (format!("{HOSTILE} = 1\n{good}"), "a control character in a key"),
        (format!("\"{quoted}\" = 1\n{good}"), "an unknown key"),
        (good.replacen("cubic", quoted, 1), "an invalid value"),
        (good.replacen("server = \"b\"", &format!("server = \"{quoted}\""), 1), "an unknown host"),
    ] {
        let plan = bench.plan(&text);
        for words in [&["plan", "check"][..], &["run"], &["plan", "check", "--json"]] {
            let finished = bench.run(words.iter().copied().chain([plan.to_str().unwrap()])).expect_code(2);
            assert_harmless(&finished.stdout, source);
            assert_harmless(&finished.stderr, source);
            // An error of TOML itself does not quote the text.
            assert!(
                text.contains(HOSTILE) || finished.stderr.contains(SHOWN),
                "{source}: {}",
                finished.stderr
            );
        }
    }
    // A valid plan: its question is shown.
    let plan = bench.plan(&good.replacen("Which", &format!("Which {quoted}"), 1));
    for json in [&[][..], &["--json"]] {
        let words = ["plan", "check", plan.to_str().unwrap()];
        check(&bench.run(words.iter().chain(json)).expect_code(0), "the question of a valid plan");
    }
    let plan = bench.plan(&good);
    let words = ["plan", "check", plan.to_str().unwrap(), "--set", &format!("blocks_max={HOSTILE}")];
    check(&bench.run(words).expect_code(2), "--set");
}

#[test]
fn output_of_launchers_and_agents_does_not_control_the_terminal() {
    let bench = Bench::new();
    let hello = json!({ "type": "hello", "protocol": 99, "program": format!("other{HOSTILE}") });
    for (script, source) in [
        (format!("printf '%s\\n' '{HOSTILE}' >&2; exit 1"), "standard error of a launcher"),
        (format!("printf '%s\\n' '{HOSTILE}'"), "what is no message of an agent"),
        (format!("printf '%s\\n' '{hello}'; cat >/dev/null"), "the program of an agent"),
    ] {
        let file = bench.path().join("launcher");
        write(&file, script).unwrap();
        let text = short_plan(TWO_PATHS, LATENCY, "blocks_min = 2")
            .replace("[lab]\nrules = 600\n", "")
            .replace("[hosts.a]\nlaunch = \"lab\"", "[hosts.a]\nlaunch = \"local\"")
            .replace(
                "[hosts.b]\nlaunch = \"lab\"",
                &format!(
                    "[hosts.b]\nlaunch = \"command\"\ncommand = [\"sh\", \"{}\"]\naddresses = [\"127.0.0.1\"]",
                    file.display()
                ),
            )
            .replace("treatments = [{ path = \"synthetic\" }]", "")
            .replace("treatments = [{ path = \"accelerated\" }]", "");
        let plan = bench.plan(&text);
        for json in [&[][..], &["--json"]] {
            let words = ["run", plan.to_str().unwrap()];
            check(&bench.run(words.iter().chain(json)).expect_code(4), source);
        }
    }
    bench.assert_nothing_left();
}

#[test]
fn messages_of_clients_do_not_control_the_terminal_of_a_server() {
    for json in [&[][..], &["--json"]] {
        let bench = Bench::new();
        let words = ["serve", "--ephemeral", "--bind", "127.0.0.1", "--port", "0"];
        let mut server = bench.netduel(words.iter().chain(json)).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(server.stdout.take().unwrap());
        let mut greeting = String::new();
        let word = |text: &str| {
            let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
            words.find(|word| word.starts_with("netduel1")).map(str::to_owned)
        };
        while word(&greeting).is_none() {
            assert!(output.read_line(&mut greeting).unwrap() > 0, "{greeting}");
        }
        let paired = bench.run(["pair", &word(&greeting).unwrap(), "--json"]).expect_code(0).json();
        let host = paired["pairings"][0]["name"].as_str().unwrap().to_owned();
        let mut link = bench.netduel(["link", &host]);
        let mut link =
            link.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let hello = json!({ "type": "hello", "protocol": 99, "program": format!("other{HOSTILE}") });
        let mut input = link.stdin.take().unwrap();
        writeln!(input, "{hello}").unwrap();
        // The server ends the session after its line in the log.
        link.wait_with_output().unwrap();
        drop(input);
        signal(Pid::from_child(&server), Signal::TERM);
        let mut log = String::new();
        output.read_to_string(&mut log).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(0));
        assert_harmless(&log, "the program of a client");
        assert!(log.contains("other") && log.contains(SHOWN), "{log}");
        bench.assert_nothing_left();
    }
}

/// A run file of another machine, of a format without checksums: anybody can change its texts.
#[test]
fn texts_of_a_run_file_do_not_control_the_terminal() {
    let bench = Bench::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
    let mut text = std::fs::read_to_string(golden).unwrap();
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    for part in [
        "Does a run survive the disk?",
        "Debian GNU/Linux 13",
        "Some CPU @ 2.50GHz",
        "a.example",
        "host far does not answer",
        "the disk is full",
        "vf0 went",
    ] {
        assert!(text.contains(part), "{part}");
        text = text.replace(part, &format!("{part}{}", quoted.trim_matches('"')));
    }
    std::fs::create_dir(bench.store()).unwrap();
    write(bench.store().join("old.netduel"), text).unwrap();
    for words in [
        &["runs"][..],
        &["runs", "--json"],
        &["report", "old", "--format", "text"],
        &["report", "old", "--format", "md"],
        &["report", "old", "--format", "json"],
    ] {
        check(&bench.run(words).expect_code(0), &format!("{words:?}"));
    }
    for words in [&["runs", "verify"][..], &["report", "old", "--format", "csv"]] {
        let finished = bench.run(words).expect_code(0);
        assert_harmless(&finished.stdout, &format!("{words:?}"));
        assert_harmless(&finished.stderr, &format!("{words:?}"));
    }
}

#[test]
fn line_breaks_of_a_run_file_look_like_no_further_run() {
    let bench = Bench::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
    let mut run = Store::at(bench.store()).read(golden).unwrap();
    // As a quick test, whose command is shown.
    run.header.plan.arms.truncate(1);
    (run.trials, run.warnings, run.end) = (Vec::new(), Vec::new(), None);
    std::fs::create_dir(bench.store()).unwrap();
    let file = bench.store().join("old.netduel");
    let forged = "nightly-20261130-030000-aaaa  40 trials  done";
    let mut listed = |word: &str| {
        run.header.command = ["netduel", "tcp", word].map(str::to_owned).to_vec();
        write(&file, bytes_of(&run).unwrap()).unwrap();
        bench.run(["runs"]).expect_code(0).stdout
    };
    let (plain, broken) = (listed("far"), listed(&format!("far\n{forged}\n    no regression")));
    assert!(broken.contains(&format!("Repeat with: netduel tcp 'far {forged}")), "{broken}");
    assert_eq!(broken.lines().count(), plain.lines().count(), "{broken}");
    let refused = bench.run(["run", "--resume", "old"]).expect_code(2).stderr;
    assert!(!refused.lines().any(|line| line.starts_with(forged)), "{refused}");
    // Nor do those in the error about a file that is no run.
    let text = std::fs::read_to_string(golden).unwrap();
    let other = format!("\"netduel\":\"x\\n{forged}\"");
    write(&file, text.replacen("\"netduel\":\"run\"", &other, 1)).unwrap();
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("unreadable: ") && listed.contains(forged), "{listed}");
    assert!(!listed.lines().any(|line| line.starts_with(forged)), "{listed}");
}

#[test]
fn names_in_the_kernel_do_not_control_the_terminal() {
    let prepare = "ip link add \"$(printf 'a\\033[2J')\" type veth peer name peer0";
    let test = "escapes::names_in_the_kernel_do_not_control_the_terminal";
    NewNamespace { prepare, ..NewNamespace::default() }.run(test, || {
        let bench = Bench::new();
        for words in [&["inspect", "--no-metadata"][..], &["inspect", "--no-metadata", "--json"]] {
            check(&bench.run(words), &format!("{words:?}"));
        }
    });
}
