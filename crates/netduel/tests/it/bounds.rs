//! Inputs without an end and of any length: a message, and no more memory than the input is worth.
use netduel_control::protocol::PROTOCOL;
use netduel_model::PROGRAM;

use crate::support::{Bench, Finished};

/// Runs the program with limits of processor time and memory, which end one that reads on, or whose work grows faster than its input,
/// before it takes those of the machine.
fn bounded(bench: &Bench, words: &[&str]) -> Finished {
    let limits = "ulimit -t 5 && ulimit -v 4000000 && exec \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limits, "sh", env!("CARGO_BIN_EXE_netduel")]).args(words);
    bench.mark(&mut command);
    Finished::from(command.output().unwrap())
}

/// The texts of the numbers below `count`, one after the other.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect()
}

#[test]
fn device_without_an_end_is_no_run() {
    let bench = Bench::new();
    for words in [["report", "/dev/zero"].as_slice(), &["runs", "verify", "/dev/zero"]] {
        let refused = bounded(&bench, words);
        let text = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            refused.code == Some(5) && text.contains("it is a device"),
            "{words:?}: {:?} {text}",
            refused.code
        );
    }
}

#[test]
fn baseline_is_a_regular_file_that_is_read_whole() {
    let bench = Bench::new();
    let (zero, large) = (bench.path().join("zero.json"), bench.path().join("large.json"));
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    // It has no blocks: the file takes no space.
    std::fs::File::create(&large).unwrap().set_len(65 << 20).unwrap();
    for (file, reason) in [(&zero, "it is not a regular file"), (&large, "it is longer than 65536 KiB")] {
        let refused = bounded(&bench, &["compare", file.to_str().unwrap(), "x"]).expect_code(5);
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
}

#[test]
fn reading_of_a_store_that_does_not_exist_creates_nothing() {
    let bench = Bench::new();
    let missing = bench.path().join("missing");
    let store = missing.to_str().unwrap();
    for (words, code) in [
        (["report", "last", "--store", store].as_slice(), 9),
        (&["runs", "--store", store], 0),
        (&["runs", "verify", "--store", store], 0),
        (&["runs", "rm", "x", "--yes", "--store", store], 9),
        (&["run", "--resume", "x", "--store", store], 9),
    ] {
        bench.run(words).expect_code(code);
        assert!(!missing.exists(), "{words:?} created the store");
    }
}

#[test]
fn long_error_of_an_agent_is_not_printed() {
    let bench = Bench::new();
    let hello = format!(r#"{{"type":"hello","protocol":{PROTOCOL},"program":"{PROGRAM}"}}"#);
    let failed = r#"{"type":"failed","kind":"internal","message":""#;
    let script = format!(
        "read -r _; printf '%s\\n' '{hello}'; read -r _; printf '%s' '{failed}'; head -c 300000 /dev/zero | tr '\\0' x; echo '\"}}'; \
         cat >/dev/null"
    );
    let plan = bench.plan(&format!(
        "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"command\"\n\
         command = [\"sh\", \"-c\", {script:?}]\naddresses = [\"127.0.0.1\"]\n[[arms]]\nname = \"p\"\nclient = \"a\"\nserver = \"b\"\n\
         [[arms]]\nname = \"q\"\nclient = \"a\"\nserver = \"b\"\nset = {{ streams = 2 }}\n[[workloads]]\nname = \"w\"\ntype = \"tcp-stream\"\n"
    ));
    let run = bench.run(["run", plan.to_str().unwrap()]).expect_code(4);
    assert!(run.stderr.contains("has a text of 300000 bytes"), "{:.2000}", run.stderr);
    assert!(run.stderr.len() < 10_000, "{} bytes were printed", run.stderr.len());
    bench.assert_nothing_left();
}

#[test]
fn plan_with_a_very_long_text_gets_a_short_error() {
    let bench = Bench::new();
    for text in [format!("name = \"{}\"", "x".repeat(900_000)), format!("\"{}\" = 1", "x".repeat(900_000))] {
        let refused = bench.run(["plan", "check", bench.plan(&text).to_str().unwrap()]).expect_code(2);
        assert!(refused.stderr.len() < 20_000, "{} bytes were printed", refused.stderr.len());
    }
}

/// A valid plan of the largest number of trials in a block, one of as many unknown keys as fit into a plan, and lists without a use.
#[test]
fn largest_plans_are_checked_within_limits_of_time_and_memory() {
    let bench = Bench::new();
    let start = "name = \"x\"\nquestion = \"?\"\n[hosts.a]\nlaunch = \"local\"\n[hosts.b]\nlaunch = \"local\"\n\
                 addresses = [\"192.0.2.1\"]\n";
    let arms = |count: usize| {
        repeated(count, |index| {
            format!(
                "[[arms]]\nname = \"a{index}\"\nclient = \"a\"\nserver = \"b\"\nset = {{ streams = {} }}\n",
                index + 1
            )
        })
    };
    let workloads = |count: usize| {
        repeated(count, |index| format!("[[workloads]]\nname = \"w{index}\"\ntype = \"tcp-stream\"\n"))
    };
    let valid = format!("{start}{}{}", arms(256), workloads(4));
    bounded(&bench, &["plan", "check", bench.plan(&valid).to_str().unwrap()]).expect_code(0);
    let unknown = repeated(40_000, |index| format!("key{index} = 1\n"));
    let (list, tables) = ("{}, ".repeat(20_000), "[[workloads.events]]\n".repeat(20_000));
    for (text, reason) in [
        (format!("{valid}{unknown}"), "has more problems on later lines"),
        (format!("{valid}events = [{list}]\n"), "workload \"w3\", events: has 20000 elements; at most 1024"),
        (format!("{valid}{tables}"), "workload \"w3\", events: has 20000 elements; at most 1024"),
        (format!("{start}{}{}", arms(2000), workloads(2000)), "arms: has 2000 elements; at most 1024"),
    ] {
        let refused = bounded(&bench, &["plan", "check", bench.plan(&text).to_str().unwrap()]).expect_code(2);
        assert!(refused.stderr.contains(reason), "{reason}: {:.2000}", refused.stderr);
    }
}

#[test]
fn program_for_hosts_is_a_file_of_the_size_of_a_program() {
    let bench = Bench::new();
    let plan = bench.plan("");
    let large = bench.path().join("large");
    // It has no blocks: the file takes no space.
    std::fs::File::create(&large).unwrap().set_len(2 << 30).unwrap();
    for (file, reason) in [(large.to_str().unwrap(), "it is larger than"), ("/dev/zero", "is not a file")] {
        let refused = bounded(&bench, &["run", plan.to_str().unwrap(), "--remote-program", file]);
        assert!(refused.expect_code(2).stderr.contains(reason), "{file}");
    }
}
