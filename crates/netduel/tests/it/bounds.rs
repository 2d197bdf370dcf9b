//! Inputs without an end and of any length: a message, and no more memory than the input is worth.
use netduel_control::protocol::PROTOCOL;
use netduel_model::PROGRAM;

use crate::support::{Bench, Finished};

#[test]
fn device_without_an_end_is_no_run() {
    let bench = Bench::new();
    for words in [["report", "/dev/zero"].as_slice(), &["runs", "verify", "/dev/zero"]] {
        // The limit ends a program that reads on before it takes the memory of the machine.
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", "ulimit -v 4000000 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_netduel")])
            .args(words);
        bench.mark(&mut command);
        let refused = Finished::from(command.output().unwrap());
        let text = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            refused.code == Some(5) && text.contains("it is a device"),
            "{words:?}: {:?} {text}",
            refused.code
        );
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
