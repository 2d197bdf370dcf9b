//! `check`: everything that CI runs, fastest checks first. A failing step does not hide the next one.
use anyhow::Result;

use crate::stopwatch::Stopwatch;
use crate::test_run::{self, Display, TestRun};
use crate::workspace::requires_all;
use crate::{azure, exports, fuzz, guests, licences, step, tidy};

/// The result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    NotRun,
}

impl From<bool> for Ending {
    fn from(passed: bool) -> Self {
        if passed { Self::Passed } else { Self::Failed }
    }
}

struct Row {
    name: &'static str,
    ending: Ending,
    time: String,
}

/// A step for CI, and for where everything is required.
struct CiStep {
    name: &'static str,
    /// Why it is not run elsewhere.
    reason: &'static str,
    /// What runs it elsewhere, after `cargo xtask`.
    command: &'static str,
    run: fn() -> Result<bool>,
}

const DOWNLOADS: &str = "it installs hundreds of megabytes below target";

const CI_STEPS: [CiStep; 2] = [
    CiStep { name: "azure", reason: DOWNLOADS, command: "test azure", run: || azure::test(&[]) },
    CiStep { name: "exports", reason: DOWNLOADS, command: "test exports", run: || exports::test(&[]) },
];

/// Runs all steps; `false` when one failed.
pub fn run() -> bool {
    let mut rows = Vec::new();
    timed(&mut rows, "format", || {
        step::succeeds(&mut step::cargo(["fmt", "--all", "--check"])).map(Ending::from)
    });
    timed(&mut rows, "tidy", || tidy::run().map(Ending::from));
    timed(&mut rows, "lints", || {
        // The code behind a feature has no other reader before it ships.
        let feature = "--features=netduel/parquet";
        let words = ["clippy", "--workspace", "--all-targets", feature, "--", "-D", "warnings"];
        step::succeeds(&mut step::cargo(words)).map(Ending::from)
    });
    timed(&mut rows, "documentation", || {
        let mut doc = step::cargo(["doc", "--workspace", "--no-deps", "--quiet"]);
        step::succeeds(doc.env("RUSTDOCFLAGS", "-D warnings")).map(Ending::from)
    });
    timed(&mut rows, "licences", dependencies);
    let mut tests = None;
    timed(&mut rows, "tests", || {
        let is_required = requires_all();
        let guests = guests::prepare_for_tests(is_required)?;
        let finished = TestRun::perform(&[], is_required, Display::Everything, &[guests.variable()])?;
        let ending = Ending::from(finished.passed());
        tests = Some(finished);
        Ok(ending)
    });
    for step in &CI_STEPS {
        timed(&mut rows, step.name, || in_ci(step));
    }
    timed(&mut rows, "fuzzing", fuzzing);
    // Fails if `cargo run` is ambiguous, which is a command of the README; the tests run the demo itself.
    timed(&mut rows, "cargo run", || {
        guests::cargo_run(&["plan", "check", "plans/demo.toml"]).map(Ending::from)
    });
    print_table(&rows);
    if let Some(tests) = tests {
        test_run::print_closing(&tests);
    }
    rows.iter().all(|row| row.ending != Ending::Failed)
}

/// Runs one step. A step that cannot start has failed, and the next one still runs.
fn timed(rows: &mut Vec<Row>, name: &'static str, work: impl FnOnce() -> Result<Ending>) {
    println!("\n== {name}");
    let watch = Stopwatch::start();
    let ending = work().unwrap_or_else(|error| {
        println!("{error:#}");
        Ending::Failed
    });
    rows.push(Row { name, ending, time: watch.to_string() });
}

fn dependencies() -> Result<Ending> {
    if !licences::check()? {
        return Ok(Ending::Failed);
    }
    if !step::is_installed("cargo-deny") {
        println!("cargo-deny is not installed: advisories were not checked (cargo install cargo-deny)");
        return Ok(Ending::Passed);
    }
    step::succeeds(&mut step::cargo(["deny", "--workspace", "check"])).map(Ending::from)
}

fn in_ci(step: &CiStep) -> Result<Ending> {
    if !requires_all() {
        println!("not run: {}; `cargo xtask {}` runs it", step.reason, step.command);
        return Ok(Ending::NotRun);
    }
    (step.run)().map(Ending::from)
}

/// Only libFuzzer needs a C++ compiler; the tests have called every target with its corpus.
fn fuzzing() -> Result<Ending> {
    if !fuzz::has_compiler() && !requires_all() {
        println!("no C++ compiler is installed: the fuzz targets were not run (apt-get install g++)");
        return Ok(Ending::NotRun);
    }
    fuzz::quick().map(Ending::from)
}

fn print_table(rows: &[Row]) {
    println!("\n{:<16}{:<10}{:>10}", "step", "ending", "time");
    for row in rows {
        let ending = match row.ending {
            Ending::Passed => "ok",
            Ending::Failed => "FAILED",
            Ending::NotRun => "not run",
        };
        println!("{:<16}{:<10}{:>10}", row.name, ending, row.time);
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_ci_are_also_commands() {
        assert_eq!(CI_STEPS.map(|step| step.name), ["azure", "exports"]);
        for step in CI_STEPS {
            let line = format!("\n  {} ", step.command);
            assert!(crate::USAGE.contains(&line), "{}", step.command);
        }
    }

    #[test]
    fn step_that_cannot_start_fails_and_the_next_one_runs() {
        let mut rows = Vec::new();
        timed(&mut rows, "first", || anyhow::bail!("no such tool"));
        timed(&mut rows, "second", || Ok(Ending::Passed));
        let endings: Vec<Ending> = rows.iter().map(|row| row.ending).collect();
        assert_eq!(endings, [Ending::Failed, Ending::Passed]);
    }
}
