//! The examples with jq in docs/json.md and in the help texts print something when they get the documents that they name.
use std::io::Write as _;
use std::process::{Command, Stdio};

use netduel_report::json::report::ReportDocument;
use netduel_report::{analyse_run, json::envelope::Document};
use serde_json::Value;

use super::{checked, first_trial, inspected, listed, origin, printed, project_file, quick_test};
use crate::builder::{Recipe, build};

/// Files with examples.
const FILES: [&str; 6] = [
    "docs/json.md",
    "docs/compare.md",
    "crates/netduel/src/cli/mod.rs",
    "crates/netduel/src/cli/lab.rs",
    "README.md",
    "docs/quick-tests.md",
];

/// The commands with jq in a text, with the options and the expression of jq.
fn examples(text: &str) -> Vec<(String, Vec<String>)> {
    // A help text is a string of Rust.
    let text = text.replace("\\\"", "\"").replace("\\n", "\n");
    let example = |line: &str| {
        let (command, jq) = line.split_once("| jq ")?;
        let command = &command[command.find("netduel ")?..];
        let (options, expression) = match jq.split_once('\'') {
            Some((options, rest)) => (options, rest.split_once('\'')?.0),
            None => ("", jq.split(['"', ' ', '`']).next()?),
        };
        let mut words: Vec<String> = options.split_whitespace().map(str::to_owned).collect();
        words.push(expression.to_owned());
        Some((command.trim().to_owned(), words))
    };
    text.lines().filter_map(example).collect()
}

/// A document of the type that a command prints.
fn document_of(command: &str) -> Value {
    let run = build(&Recipe { workloads: vec!["bulk", "rr"], ..Recipe::default() });
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[1..] {
        ["report" | "demo" | "run", ..] => printed(&ReportDocument::of(&run, &analyse_run(&run), &origin())),
        ["compare", ..] => super::compared(&run),
        ["tcp" | "rr" | "udp" | "crr" | "pps", ..] => quick_test(&run, first_trial(&run)),
        ["inspect", ..] => printed(&inspected()),
        ["runs", "baseline", ..] => super::baseline(&run),
        ["history", ..] => super::history(),
        ["runs", ..] => printed(&listed()),
        ["plan", "check", ..] => printed(&checked()),
        ["lab", ..] => printed(&super::lab()),
        _ => panic!("no document for `{command}`"),
    }
}

#[test]
fn jq_examples_print_something() {
    if Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_err() {
        return netduel_test_support::skip("jq is not installed");
    }
    let mut run = 0;
    for file in FILES {
        for (command, words) in examples(&std::fs::read_to_string(project_file(file)).unwrap()) {
            let mut jq = Command::new("jq")
                .args(&words)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let text = document_of(&command).to_string();
            jq.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            let output = jq.wait_with_output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{file}: `{command} | jq {words:?}`: {error}");
            assert!(
                !["", "null"].contains(&printed.trim()),
                "{file}: `{command} | jq {words:?}` prints nothing"
            );
            run += 1;
        }
    }
    assert!(run >= 8, "{run} examples were found");
}

#[test]
fn documents_of_examples_have_their_names() {
    assert_eq!(document_of("netduel demo --json")["document"], ReportDocument::NAME);
}
