//! `test --repeat N --busy`: runs the suite several times, with busy loops on request, and lists each test that failed at least
//! once.
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::busy::{self, BusyLoops};
use crate::stopwatch::Stopwatch;
use crate::test_run::{self, Display, TestRun, Variable};
use crate::workspace::requires_all;

/// Maximum number of printed lines per failure.
const FAILURE_LINES: usize = 60;

/// The options of a test run.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Runs of the suite; `None` without `--repeat` and `--busy`.
    runs: Option<u32>,
    is_busy: bool,
    /// The remaining arguments for `cargo test`.
    for_cargo: Vec<String>,
}

impl Options {
    /// Parses the options of this command; arguments after `--` belong to the tests.
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self { runs: None, is_busy: false, for_cargo: Vec::new() };
        let mut repeat = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--" => {
                    options.for_cargo.push(argument.clone());
                    options.for_cargo.extend(rest.by_ref().cloned());
                }
                "--busy" => options.is_busy = true,
                "--repeat" => {
                    repeat = Some(rest.next().context("--repeat needs the number of runs")?.as_str());
                }
                other => match other.strip_prefix("--repeat=") {
                    Some(number) => repeat = Some(number),
                    None => options.for_cargo.push(argument.clone()),
                },
            }
        }
        options.runs = match repeat.map(str::parse::<u32>) {
            Some(Ok(runs)) if runs > 0 => Some(runs),
            Some(_) => bail!("--repeat needs a number of runs from 1 up, as in `--repeat 10`"),
            None if options.is_busy => Some(1),
            None => None,
        };
        Ok(options)
    }
}

/// Runs the tests with these variables set; `false` when a run failed.
pub fn run(arguments: &[String], variables: &[Variable<'_>]) -> Result<bool> {
    let options = Options::parse(arguments)?;
    let Some(runs) = options.runs else { return test_run::run(&options.for_cargo, variables) };
    test_run::build(&options.for_cargo)?;
    let mut tally = Tally::default();
    for number in 1..=runs {
        let watch = Stopwatch::start();
        let load = options.is_busy.then(BusyLoops::start);
        let finished = TestRun::perform(&options.for_cargo, requires_all(), Display::Failures, variables)?;
        drop(load);
        println!("run {number} of {runs}: {}, {watch}", test_run::totals(&finished.transcript));
        if let Some(time) = finished.time_of_guests() {
            println!("{time}");
        }
        for line in tally.add(&finished) {
            println!("{line}");
        }
    }
    print!("{}", tally.closing(options.is_busy));
    Ok(tally.is_green())
}

/// The result of several runs of the suite.
#[derive(Debug, Default)]
struct Tally {
    runs: u32,
    green_runs: u32,
    passed: u64,
    failed: u64,
    skipped: u64,
    /// By test: number of failures, and the text of the first one.
    unsteady: BTreeMap<String, (u32, String)>,
    /// Number of runs in which other programs disturbed a comparison, by test and reason.
    not_compared: BTreeMap<String, u32>,
    /// Maximum time of each test binary, seconds.
    seconds: BTreeMap<String, f64>,
}

impl Tally {
    /// Adds a run. Returns what is printed at once about each test that failed for the first time.
    fn add(&mut self, finished: &TestRun) -> Vec<String> {
        let mut first_failures = Vec::new();
        let transcript = &finished.transcript;
        self.runs += 1;
        self.green_runs += u32::from(finished.passed());
        self.passed += transcript.passed();
        self.failed += transcript.failed();
        self.skipped += transcript.skips.len() as u64;
        for (test, text) in finished.not_green() {
            let entry = self.unsteady.entry(test).or_insert_with_key(|test| {
                first_failures.push(format!("failed: {test}"));
                first_failures.extend(shortened(&text));
                (0, text)
            });
            entry.0 += 1;
        }
        let disturbed = transcript.not_compared.iter().map(|(test, reason)| format!("{test}: {reason}"));
        for comparison in disturbed.collect::<BTreeSet<String>>() {
            *self.not_compared.entry(comparison).or_default() += 1;
        }
        for (binary, seconds) in &transcript.seconds {
            let longest = self.seconds.entry(binary.clone()).or_default();
            *longest = longest.max(*seconds);
        }
        first_failures
    }

    fn is_green(&self) -> bool {
        self.green_runs == self.runs
    }

    /// The tests that failed at least once, the slowest binaries and, as the last line, the totals of all runs.
    fn closing(&self, is_busy: bool) -> String {
        let mut lines = vec![String::new()];
        for (test, (times, text)) in &self.unsteady {
            lines.push(format!("not green in {times} of {} runs: {test}", self.runs));
            lines.extend(shortened(text));
            lines.push(String::new());
        }
        for (comparison, times) in &self.not_compared {
            lines.push(format!("not compared in {times} of {} runs: {comparison}", self.runs));
        }
        lines.extend(test_run::slowest(&self.seconds));
        let load = if is_busy { format!(", beside {} busy loops", busy::LOOPS) } else { String::new() };
        lines.push(format!("{} of {} runs green{load}", self.green_runs, self.runs));
        lines.push(format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped));
        lines.join("\n") + "\n"
    }
}

/// The first lines of a failure, indented.
fn shortened(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().take(FAILURE_LINES).map(|line| format!("    {line}")).collect();
    let more = text.lines().count().saturating_sub(FAILURE_LINES);
    if more > 0 {
        lines.push(format!("    ... {more} more lines"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options> {
        Options::parse(&arguments.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn unknown_options_are_passed_to_cargo() {
        let options = parsed(&["-p", "x", "--repeat", "3", "--busy", "--", "--busy", "name"]).unwrap();
        assert_eq!((options.runs, options.is_busy), (Some(3), true));
        assert_eq!(options.for_cargo, ["-p", "x", "--", "--busy", "name"]);
        assert_eq!(parsed(&["--repeat=7"]).unwrap().runs, Some(7));
        assert_eq!(parsed(&["--busy"]).unwrap().runs, Some(1));
        assert_eq!(parsed(&["-p", "x"]).unwrap().runs, None);
    }

    #[test]
    fn zero_runs_are_rejected() {
        for wrong in [&["--repeat"][..], &["--repeat", "0"], &["--repeat=x"], &["--repeat", "--busy"]] {
            let refused = parsed(wrong).unwrap_err().to_string();
            assert!(refused.contains("--repeat needs"), "{wrong:?}: {refused}");
        }
    }

    /// A run with one test that may fail.
    fn run_of(fails: bool) -> TestRun {
        let mut lines =
            vec!["     Running unittests src/lib.rs (target/debug/deps/netduel_load-1f)", "running 2 tests"];
        lines.push("test steady ... ok");
        if fails {
            lines.extend([
                "test shaky ... FAILED",
                "failures:",
                "---- shaky stdout ----",
                "left: 1",
                "right: 2",
                "failures:",
            ]);
            lines.push("    shaky");
            lines.push("test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.50s");
        } else {
            lines.push("test shaky ... ok");
            lines.push("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.25s");
        }
        TestRun::of_lines(&lines, !fails)
    }

    #[test]
    fn flaky_test_is_listed_with_count_and_first_failure() {
        let mut tally = Tally::default();
        // The text of the first failure is printed at once.
        let printed = [false, true, false, true].map(|fails| tally.add(&run_of(fails)));
        let first = ["failed: netduel_load shaky", "    left: 1", "    right: 2"];
        assert_eq!(printed, [&[][..], &first, &[], &[]]);
        let closing = tally.closing(true);
        assert!(
            closing.contains("not green in 2 of 4 runs: netduel_load shaky\n    left: 1\n    right: 2\n"),
            "{closing}"
        );
        assert!(!closing.contains("steady\n"), "{closing}");
        assert!(closing.contains("2 of 4 runs green, beside 2 busy loops"), "{closing}");
        assert!(closing.contains("2.5 s  netduel_load"), "{closing}");
        assert!(closing.ends_with("\n6 passed, 2 failed, 0 skipped\n"), "{closing}");
        assert!(!tally.is_green());
    }

    #[test]
    fn successful_runs_succeed() {
        let mut tally = Tally::default();
        tally.add(&run_of(false));
        assert!(tally.is_green());
        assert!(tally.closing(false).contains("\n1 of 1 runs green\n2 passed, 0 failed, 0 skipped\n"));
    }

    #[test]
    fn run_with_leftovers_is_listed() {
        let mut tally = Tally::default();
        let mut run = run_of(false);
        run.left_behind.push("process 12".to_owned());
        tally.add(&run);
        assert!(tally.closing(false).contains("not green in 1 of 1 runs: left behind\n    process 12\n"));
        assert!(!tally.is_green());
    }
}
