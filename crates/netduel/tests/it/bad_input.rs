//! Invalid input: a clear message with the remedy, the documented exit code, no leftovers and no partial output.
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{Bench, Finished, LATENCY, STREAM, TWO_PATHS, short_plan};

/// A plan with one error: the replaced text, the replacement, and the expected message.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    ("congestion = \"cubic\"", "rate = \"10Gb\"", &["Gbit/s"]),
    ("congestion = \"cubic\"", "strems = 8", &["strems", "streams"]),
    ("duration = \"300 ms\"", "duration = \"0 s\"", &["duration"]),
    ("duration = \"300 ms\"", "duration = 1", &["duration", "unit"]),
    ("congestion = \"cubic\"", "streams = 0", &["streams", "1"]),
    ("congestion = \"cubic\"", "streams = 100000", &["streams", "20000"]),
    ("server = \"b\"", "server = \"a\"", &["\"a\"", "client"]),
    ("server = \"b\"", "server = \"c\"", &["c"]),
    ("type = \"tcp-stream\"", "type = \"tcp\"", &["tcp-stream", "udp-rr"]),
];

#[test]
fn invalid_plan_is_rejected_with_file_line_key_and_remedy() {
    let good = short_plan(TWO_PATHS, STREAM, "blocks_min = 2");
    for (from, to, needles) in MISTAKES {
        let bench = Bench::new();
        assert!(good.contains(from), "{from} is not in the plan");
        let wrong = good.replacen(from, to, 1);
        let line = wrong.lines().position(|line| line.contains(to)).unwrap() + 1;
        let plan = bench.plan(&wrong);
        let run = bench.run(["run", plan.to_str().unwrap(), "--out", "out"]).expect_code(2);
        for needle in *needles {
            assert!(run.stderr.contains(needle), "{to}: {needle:?} is not in\n{}", run.stderr);
        }
        assert!(
            run.stderr.contains(&format!("plan.toml:{line}")),
            "{to}: line {line} is not in\n{}",
            run.stderr
        );
        assert!(!bench.path().join("out").exists());
        assert!(bench.run(["runs"]).stdout.contains("no run is stored"));
        bench.assert_nothing_left();
    }
}

#[test]
fn plan_without_an_end_is_refused_at_the_limit_of_its_length() {
    let bench = Bench::new();
    for words in [["plan", "check", "/dev/zero"].as_slice(), &["run", "/dev/urandom"]] {
        let refused = bench.run(words).expect_code(2);
        assert!(refused.stderr.contains("it is longer than 1 MiB"), "{words:?}: {}", refused.stderr);
    }
    let longest = format!("{}\n#", short_plan(TWO_PATHS, STREAM, "blocks_min = 2"));
    let longest = format!("{longest}{}", "x".repeat((1 << 20) - longest.len()));
    bench.run(["plan", "check", bench.plan(&longest).to_str().unwrap()]).expect_code(0);
    let longer = bench.plan(&format!("{longest}x"));
    bench.run(["plan", "check", longer.to_str().unwrap()]).expect_code(2);
}

#[test]
fn logo_of_a_plan_that_cannot_be_read_is_refused_by_check_and_run() {
    let bench = Bench::new();
    let text = short_plan(TWO_PATHS, STREAM, "blocks_min = 2");
    let text = format!("{text}[report]\nlogo = \"logo.png\"\n");
    let place = format!("plan.toml:{}: report.logo: ", text.lines().count());
    let plan = bench.plan(&text);
    let logo = bench.path().join("logo.png");
    let refused = |needle: &str| {
        for words in [["plan", "check"].as_slice(), &["run"]] {
            let words = [words, &[plan.to_str().unwrap()]].concat();
            let stderr = bench.run(&words).expect_code(2).stderr;
            for needle in [place.as_str(), needle, "PNG file of at most 128 KiB"] {
                assert!(stderr.contains(needle), "{words:?}: {needle:?} is not in\n{stderr}");
            }
        }
    };
    refused("No such file");
    mknodat(CWD, &logo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    refused("it is not a regular file");
    std::fs::remove_file(&logo).unwrap();
    std::fs::write(&logo, b"\x89PNG\r\n\x1a\nshort").unwrap();
    refused("it is a damaged PNG file");
    bench.assert_nothing_left();
}

#[test]
fn control_characters_of_a_plan_do_not_reach_the_terminal() {
    let bench = Bench::new();
    let text = short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2");
    let text = text.replace("Which path is faster?", "Which\\u001b]0;x\\u0007 path\\nis \\u009b2Jfaster?");
    let plan = bench.plan(&text);
    let plan = plan.to_str().unwrap();
    let checked = bench.run(["plan", "check", plan]).expect_code(0);
    let run = bench.run(["run", plan]).expect_code(0);
    let listed = bench.run(["runs"]).expect_code(0);
    // A value in an error is quoted from the plan.
    std::fs::write(plan, text.replace("[[workloads]]", "[[workloads]]\ncongestion = \"\\u001b[2J\""))
        .unwrap();
    let refused = bench.run(["plan", "check", plan]).expect_code(2);
    for output in [&checked, &run, &listed, &refused] {
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        }
    }
    assert!(checked.stdout.contains("0;x\u{fffd} path is \u{fffd}2Jfaster?"), "{}", checked.stdout);
    let question =
        bench.run(["report", "last", "--format", "json"]).expect_code(0).json()["question"].clone();
    assert!(question.as_str().unwrap().contains("\u{1b}]0;x"), "{question}");
}

#[test]
fn checked_plan_shows_the_overrides_that_a_run_would_have() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 8"));
    let words = ["plan", "check", plan.to_str().unwrap(), "--json", "--set"];
    let shown = bench.run(words.iter().chain(&["blocks_max=12"])).expect_code(0).json();
    assert_eq!(shown["plan"]["design"]["blocks_max"], 12);
    let refused = bench.run(words.iter().chain(&["blocks_max=3"])).expect_code(2);
    assert!(refused.stderr.contains("--set blocks_max=3: is less than blocks_min"), "{}", refused.stderr);
}

#[test]
fn plan_of_an_editor_of_windows_is_read_and_one_in_utf_16_is_named() {
    let bench = Bench::new();
    let text = short_plan(TWO_PATHS, STREAM, "blocks_min = 2").replace('\n', "\r\n");
    let marked = format!("\u{feff}{text}");
    let plan = bench.plan(&marked);
    let words = ["plan", "check", plan.to_str().unwrap()];
    bench.run(words).expect_code(0);
    let utf16: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&plan, utf16).unwrap();
    let refused = bench.run(words).expect_code(2).stderr;
    assert!(refused.contains("plan.toml: it is text in UTF-16; save it as UTF-8, "), "{refused}");
}

#[test]
fn errors_of_a_plan_end_with_their_number() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 1\nblocks_max = 1"));
    for words in [&["plan", "check"][..], &["run"]] {
        let words = [words, &[plan.to_str().unwrap()]].concat();
        let stderr = bench.run(&words).expect_code(2).stderr;
        assert!(stderr.contains("design.blocks_max: is 1; "), "{words:?}: {stderr}");
        assert!(stderr.trim_end().ends_with("\n2 errors; nothing was run"), "{words:?}: {stderr}");
    }
    bench.assert_nothing_left();
}

#[test]
fn failed_launch_is_reported_with_host_and_reason() {
    let bench = Bench::new();
    let text = short_plan(TWO_PATHS, LATENCY, "blocks_min = 2")
        .replace(
            "[hosts.b]\nlaunch = \"lab\"",
            "[hosts.b]\nlaunch = \"command\"\ncommand = [\"/no/such/ssh\"]\naddresses = [\"10.77.0.2\"]",
        )
        .replace("treatments = [{ path = \"synthetic\" }]", "")
        .replace("treatments = [{ path = \"accelerated\" }]", "");
    let plan = bench.plan(&text);
    let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
    assert!(run.stderr.contains("/no/such/ssh") && run.stderr.contains(" b"), "{}", run.stderr);
    bench.assert_nothing_left();
}

#[test]
fn agent_that_prints_garbage_is_rejected() {
    let bench = Bench::new();
    let text = short_plan(TWO_PATHS, LATENCY, "blocks_min = 2")
        .replace(
            "[hosts.b]\nlaunch = \"lab\"",
            "[hosts.b]\nlaunch = \"command\"\ncommand = [\"sh\", \"-c\", \"yes garbage\"]\naddresses = [\"10.77.0.2\"]",
        )
        .replace("treatments = [{ path = \"synthetic\" }]", "")
        .replace("treatments = [{ path = \"accelerated\" }]", "");
    let plan = bench.plan(&text);
    let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
    assert!(run.stderr.contains("garbage"), "{}", run.stderr);
    bench.assert_nothing_left();
}

#[test]
fn standard_error_that_cannot_be_written_changes_no_exit_code_and_loses_no_result() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.netduel(["report", "no-such-run"]);
    assert_eq!(command.stderr(full()).output().unwrap().status.code(), Some(9));
    let mut command = bench.netduel(["run", plan.to_str().unwrap(), "--json"]);
    let run = Finished::from(command.stderr(full()).output().unwrap());
    assert!(matches!(run.code, Some(0 | 6)), "{:?}", run.code);
    assert_eq!(run.json()["document"], "netduel.report", "{}", run.stdout);
    bench.assert_nothing_left();
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let bench = Bench::new();
    for words in [
        &["demmo"][..],
        &["run"],
        &["run", "x.toml", "--resume", "y"],
        &["lab", "path", "fast"],
        &["lab", "up", "--cap", "10Gb"],
    ] {
        bench.run(words).expect_code(2);
    }
    let missing = bench.run(["run", "missing.toml"]).expect_code(2);
    assert!(missing.stderr.contains("missing.toml"), "{}", missing.stderr);
    let unknown = bench.run(["report", "nothing-like-it"]).expect_code(9);
    assert!(unknown.stderr.contains("nothing-like-it"), "{}", unknown.stderr);
}
