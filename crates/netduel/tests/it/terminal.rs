//! Output on a narrow terminal: no line is broken within a word. Questions on a terminal.
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Command, Stdio};

use netduel_sys::pty::Pty;
use netduel_test_support::skip;
use rustix::process::{Pid, Signal};

use crate::azure::Scene;
use crate::serve::Server;
use crate::support::{Bench, Finished, TWO_PATHS, short_plan, signal, until};

/// Words that a terminal of this width would break, and the complete output. A terminal continues in the next line after its last
/// column (ECMA-48; xterm's auto-wrap).
fn broken_words(output: &str, width: usize) -> Vec<String> {
    let mut broken = Vec::new();
    let (mut column, mut word) = (0, String::new());
    let mut chars = output.chars();
    while let Some(c) = chars.next() {
        match c {
            // A control sequence ends with a letter: colours, and cursor moves by whole lines.
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            '\r' | '\n' => (column, word) = (0, String::new()),
            _ => {
                if column == width {
                    if c != ' ' && !word.is_empty() {
                        broken.push(format!("{word}|{c}"));
                    }
                    column = 0;
                }
                column += 1;
                if c == ' ' { word.clear() } else { word.push(c) }
            }
        }
    }
    broken
}

/// Runs a command with a terminal of this width as its standard output and error.
fn on_terminal(mut command: Command, width: usize) -> Option<String> {
    let Pty { user, program } = Pty::open().ok()?;
    let program = File::from(program);
    let size = ["rows", "24", "cols", &width.to_string()];
    let sized = Command::new("stty").args(size).stdin(program.try_clone().unwrap()).status();
    if !sized.is_ok_and(|status| status.success()) {
        return None;
    }
    let error = program.try_clone().unwrap();
    let mut child =
        command.env("TERM", "xterm").stdin(Stdio::null()).stdout(program).stderr(error).spawn().unwrap();
    // It holds copies of the program's end, which would keep reading from ending.
    drop(command);
    let (mut user, mut bytes, mut part) = (File::from(user), Vec::new(), [0; 4096]);
    loop {
        match user.read(&mut part) {
            Ok(0) => break,
            Ok(length) => bytes.extend(&part[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // EIO: no process holds the program's end any more.
            Err(_) => break,
        }
    }
    child.wait().unwrap();
    Some(String::from_utf8(bytes).unwrap())
}

/// Checks what a command prints on a terminal of this width, and returns it; skips without a terminal.
fn assert_whole_words(command: Command, width: usize, part: &str) -> Option<String> {
    let words = format!("{command:?}");
    let Some(output) = on_terminal(command, width) else {
        skip("no pseudo-terminal, or no stty");
        return None;
    };
    assert!(output.contains(part), "{words}: {output}");
    let broken = broken_words(&output, width);
    assert!(broken.is_empty(), "{words} at {width} columns breaks {broken:?}: {output}");
    Some(output)
}

#[test]
fn wrapped_words_are_found() {
    assert_eq!(broken_words("one two", 5), ["t|w"]);
    assert!(broken_words("one two", 4).is_empty() && broken_words("one  two\r\nthree", 5).is_empty());
    assert!(broken_words("\u{1b}[1mone\u{1b}[0m two", 4).is_empty());
}

#[test]
fn progress_of_a_run_and_its_verdicts_fit_the_terminal() {
    let bench = Bench::new();
    let workloads = "[[workloads]]\nname = \"bulk\"\ntype = \"tcp-stream\"\nduration = \"300 ms\"\nwarmup = \"0 s\"\n\
                     [[workloads]]\nname = \"latency\"\ntype = \"tcp-rr\"\nduration = \"300 ms\"\nwarmup = \"0 s\"\n";
    let plan = bench.plan(&short_plan(TWO_PATHS, workloads, "blocks_min = 2\nblocks_max = 2"));
    for width in [60, 80] {
        let Some(output) =
            assert_whole_words(bench.netduel(["run", plan.to_str().unwrap()]), width, " valid trial")
        else {
            return;
        };
        // Not how many are valid: a client that is not scheduled within its 300 ms has no round trip. But each trial is one or the other.
        let words: Vec<&str> = output.split_whitespace().collect();
        let before = |following: &[&str]| -> u32 {
            let place = words.windows(following.len()).position(|window| {
                window
                    .iter()
                    .zip(following)
                    .all(|(word, wanted)| word.trim_end_matches([',', '.', 's']) == *wanted)
            });
            let number = place.and_then(|place| words.get(place.checked_sub(1)?)?.parse().ok());
            number.unwrap_or_else(|| panic!("no number before {following:?}: {output}"))
        };
        assert_eq!(before(&["valid", "trial"]) + before(&["excluded"]), 8, "{output}");
    }
}

#[test]
fn listing_and_checked_plan_fit_the_terminal() {
    let bench = Bench::new();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
    fs::create_dir_all(bench.store()).unwrap();
    fs::copy(golden, bench.store().join("a-run-with-a-name-of-the-maximum-length1.netduel")).unwrap();
    // A path that is longer than a line is broken, so it is one within the folder of the command.
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plans/streams.toml");
    fs::copy(plan, bench.path().join("streams.toml")).unwrap();
    for width in [60, 80] {
        let _ = assert_whole_words(bench.netduel(["runs"]), width, "trials");
        let _ = assert_whole_words(bench.netduel(["plan", "check", "streams.toml"]), width, "  workloads  ");
    }
}

#[test]
fn lines_of_quick_tests_fit_the_terminal() {
    let server = Server::start(&[]);
    for width in [60, 80] {
        for words in
            [&["tcp", "-b", "20M"][..], &["udp", "-b", "20M"], &["rr"], &["crr"], &["pps", "--rate", "2k"]]
        {
            let options = [&server.string, "-t", "0.5", "-i", "0.1"];
            let command = server
                .bench
                .netduel(words[..1].iter().copied().chain(options).chain(words[1..].iter().copied()));
            let _ = assert_whole_words(command, width, "bottleneck");
        }
        // Errors and help.
        let _ = assert_whole_words(
            server.bench.netduel(["tcp", "elsewhere.invalid"]),
            width,
            "there is no pairing with",
        );
        let _ = assert_whole_words(server.bench.netduel(["pps", "--help"]), width, "--generator");
    }
    server.end();
}

/// The end of `netduel azure down x` after an answer to its question, or after a signal in place of one; absent without a terminal.
fn answered(scene: &Scene, answer: Option<&[u8]>) -> Option<(Finished, String)> {
    let Pty { user, program } = Pty::open().ok()?;
    let mut command = scene.netduel(&["azure", "down", "x"]);
    let mut child = command.stdin(program).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It holds a copy of the program's end.
    drop(command);
    let mut errors = child.stderr.take().unwrap();
    let mut shown = Vec::new();
    while !shown.ends_with(b"[y/N] ") {
        let mut byte = [0];
        assert_eq!(errors.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.extend(byte);
    }
    let mut user = File::from(user);
    match answer {
        Some(answer) => user.write_all(answer).unwrap(),
        None => signal(Pid::from_child(&child), Signal::INT),
    }
    let has_ended = until(|| child.try_wait().unwrap().is_some());
    // The end of the terminal ends a command that still waits.
    drop(user);
    errors.read_to_end(&mut shown).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap());
    let shown = String::from_utf8(shown).unwrap();
    assert!(has_ended, "it waited on: {shown}");
    Some((finished, shown))
}

#[test]
fn question_before_a_deletion_ends_at_a_signal_and_takes_yes_only_for_consent() {
    let scene = Scene::new();
    fs::write(scene.at("exists"), "").unwrap();
    let Some((interrupted, shown)) = answered(&scene, None) else { return skip("no pseudo-terminal") };
    assert!(shown.contains("netduel azure down was interrupted; nothing was deleted"), "{shown}");
    interrupted.expect_code(130);
    for answer in [&b"\xff\xfe\n"[..], b"n\n", b"\n"] {
        let (refused, shown) = answered(&scene, Some(answer)).expect("a second pseudo-terminal");
        assert_eq!(refused.expect_code(0).stdout, "nothing was deleted\n", "{shown}");
    }
    assert!(scene.at("exists").exists(), "{}", scene.calls());
}
