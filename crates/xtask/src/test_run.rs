//! One run of the tests: results, skips, and leftovers on the machine. All tests of the workspace run in parallel; those that arguments
//! select run as `cargo test` runs them.
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use netduel_test_support::{NOT_COMPARED, REQUIRE_ALL, SKIPPED};

use crate::binaries::{self, Finished, GUESTS, TestBinary};
use crate::leftovers::{MARK_VARIABLE, Snapshot};
use crate::transcript::Transcript;
use crate::warden::Warden;
use crate::workspace::requires_all;
use crate::{setup, step};

/// Number of the slowest test binaries that are listed.
const SLOWEST: usize = 10;
/// Time that the tests in guests are to take on two cores that nothing else uses, seconds. More is printed and fails no run: emulated guests are
/// as slow as the machine, whose speed is no property of the tests.
const GUESTS_SECONDS: f64 = 480.0;

/// A finished run of the tests.
#[derive(Debug)]
pub struct TestRun {
    /// The parsed output of the tests.
    pub transcript: Transcript,
    cargo_succeeded: bool,
    /// Processes, namespaces and sockets that outlived the tests.
    pub left_behind: Vec<String>,
    requires_all: bool,
}

/// The output while tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// Every line except the output of passed tests.
    Everything,
    /// The names of failed tests.
    Failures,
}

/// A variable for the tests: its name and value.
pub type Variable<'a> = (&'a str, &'a OsStr);

/// Runs the tests with these variables set and prints the result; `false` when anything failed.
pub fn run(arguments: &[String], variables: &[Variable<'_>]) -> Result<bool> {
    let finished = TestRun::perform(arguments, requires_all(), Display::Everything, variables)?;
    print_closing(&finished);
    Ok(finished.passed())
}

/// Builds the tests without running them.
pub fn build(arguments: &[String]) -> Result<()> {
    if Selection::of(arguments).is_everything() {
        return binaries::build().map(drop);
    }
    let mut command = test_command(arguments, Some("--no-run"));
    if !step::succeeds(&mut command)? {
        bail!("the tests do not build; cargo's message is above");
    }
    Ok(())
}

impl TestRun {
    /// Installs the required packages, runs the tests and compares the machine before and after. `arguments` select tests as with
    /// `cargo test`.
    pub fn perform(
        arguments: &[String],
        requires_all: bool,
        display: Display,
        variables: &[Variable<'_>],
    ) -> Result<Self> {
        setup::run()?;
        let before = Snapshot::take();
        let mark = format!("xtask-{}", std::process::id());
        let _warden = Warden::start(&mark)?;
        let prepared = |mut command: Command| {
            command.env(MARK_VARIABLE, &mark).envs(variables.iter().copied());
            if requires_all {
                command.env(REQUIRE_ALL, "1");
            }
            command
        };
        let selection = Selection::of(arguments);
        let finished = if selection.is_everything() {
            everything(selection.for_tests, &prepared, display)?
        } else {
            let command = prepared(test_command(arguments, None));
            println!("$ {}", step::shown(&command));
            vec![one(command, Transcript::default(), "", display)?]
        };
        let mut transcript = Transcript::default();
        let mut cargo_succeeded = true;
        for Finished { transcript: part, status } in finished {
            // A failed test explains the status of its binary.
            cargo_succeeded &= status.success() || part.failed() > 0;
            transcript.absorb(part);
        }
        let left_behind = before.left_behind(&mark);
        Ok(Self { transcript, cargo_succeeded, left_behind, requires_all })
    }

    /// Every failed test with the text of its failure; failures outside of tests have a name of their own.
    pub fn not_green(&self) -> Vec<(String, String)> {
        let transcript = &self.transcript;
        let text = |test: &String| transcript.failure_texts.get(test).cloned().unwrap_or_default();
        let mut found: Vec<(String, String)> =
            transcript.failures.iter().map(|test| (test.clone(), text(test))).collect();
        found.extend(
            transcript.died.iter().map(|binary| (binary.clone(), "ended without a result".to_owned())),
        );
        if self.requires_all {
            let skips = transcript.skips.iter();
            found.extend(skips.map(|skip| (skip.test.clone(), format!("{SKIPPED} {}", skip.reason))));
        }
        if !self.left_behind.is_empty() {
            found.push(("left behind".to_owned(), self.left_behind.join("\n")));
        }
        if !self.cargo_succeeded && found.is_empty() {
            found.push(("cargo test".to_owned(), "failed before all tests could run".to_owned()));
        }
        found
    }

    /// A run with these output lines.
    #[cfg(test)]
    pub fn of_lines(lines: &[&str], cargo_succeeded: bool) -> Self {
        let mut transcript = Transcript::default();
        for line in lines {
            transcript.take(line);
        }
        transcript.close();
        Self { transcript, cargo_succeeded, left_behind: Vec::new(), requires_all: false }
    }

    /// Whether the run passed.
    pub fn passed(&self) -> bool {
        self.cargo_succeeded
            && self.transcript.failed() == 0
            && self.left_behind.is_empty()
            && (self.transcript.skips.is_empty() || !self.requires_all)
    }

    /// The time of the tests in guests beside the time that they are to take. Absent without guests, where these tests end at once.
    pub fn time_of_guests(&self) -> Option<String> {
        let seconds = self.transcript.seconds.get(GUESTS).filter(|seconds| **seconds >= 1.0)?;
        let more = if *seconds > GUESTS_SECONDS { ", more than" } else { ", of" };
        Some(format!("tests in guests: {seconds:.1} s{more} {GUESTS_SECONDS:.0} s on two idle cores"))
    }
}

/// Arguments of a test run, split at `--`.
#[derive(Debug, Clone, Copy)]
struct Selection<'a> {
    for_cargo: &'a [String],
    for_tests: &'a [String],
}

impl<'a> Selection<'a> {
    fn of(arguments: &'a [String]) -> Self {
        let (for_cargo, for_tests) = match arguments.iter().position(|argument| argument == "--") {
            Some(at) => (&arguments[..at], &arguments[at + 1..]),
            None => (arguments, &[][..]),
        };
        Self { for_cargo, for_tests }
    }

    /// Whether all packages and targets are tested.
    fn is_everything(self) -> bool {
        self.for_cargo.is_empty()
    }
}

/// A part of the tests of the whole workspace.
enum Job {
    /// A binary, and the arguments for its harness.
    Binary(TestBinary, Vec<String>),
    /// The examples in the documentation, which cargo tests itself.
    Documentation,
}

/// Builds and runs all tests of the workspace, several binaries at a time.
fn everything(
    for_tests: &[String],
    prepared: &(impl Fn(Command) -> Command + Sync),
    display: Display,
) -> Result<Vec<Finished>> {
    let binaries = binaries::build()?;
    let at_once = binaries::at_once();
    println!("{} test binaries, {at_once} at a time", binaries.len());
    // The harness joins filters with "or": a part of the tests that the caller selects cannot be named.
    let is_split = for_tests.is_empty();
    let last = binaries.iter().filter(|_| is_split);
    let last = last.filter_map(|binary| Some(Job::Binary(binary.clone(), binary.after_others()?))).collect();
    let beside = |binary: TestBinary| {
        let arguments = if is_split { binary.beside_others() } else { for_tests.to_vec() };
        Job::Binary(binary, arguments)
    };
    let jobs = binaries.into_iter().map(beside).chain([Job::Documentation]).collect();
    let run = |job| match job {
        Job::Binary(binary, arguments) => {
            let command = prepared(binary.command(&arguments));
            one(command, Transcript::of_binary(&binary.name), &format!("{}: ", binary.name), display)
        }
        Job::Documentation => {
            let mut command = prepared(step::cargo(["test", "--workspace", "--doc", "--no-fail-fast"]));
            command.args(["--", "--show-output"]).args(for_tests).env("CARGO_TERM_COLOR", "never");
            one(command, Transcript::default(), "documentation: ", display)
        }
    };
    let mut finished = binaries::run_all(jobs, at_once, run)?;
    finished.extend(binaries::run_all(last, 1, run)?);
    Ok(finished)
}

/// Runs one command that tests, and prints its lines as they come, each with a prefix.
fn one(mut command: Command, mut transcript: Transcript, prefix: &str, display: Display) -> Result<Finished> {
    let status = read_lines(&mut command, |line| {
        let failures_before = transcript.failures.len();
        let is_shown = transcript.take(line) && (prefix.is_empty() || !line.is_empty());
        if is_shown && (display == Display::Everything || transcript.failures.len() > failures_before) {
            // Standard output may be closed; the tests and their exit code still matter.
            let _ = writeln!(std::io::stdout(), "{prefix}{line}");
        }
    })?;
    transcript.close();
    Ok(Finished { transcript, status })
}

/// `cargo test` as selected by the arguments. All binaries run even after a failure. `extra` is an option for cargo.
fn test_command(arguments: &[String], extra: Option<&str>) -> Command {
    let Selection { for_cargo, for_tests } = Selection::of(arguments);
    let mut command = step::cargo(["test", "--no-fail-fast"]);
    command.args(extra).args(for_cargo).args(["--", "--show-output"]).args(for_tests);
    // The parser expects lines without colours.
    command.env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs a command and passes on each line of its stdout and stderr in the order of writing.
///
/// A process that outlives the command may keep the pipe open. So the end is marked by a line that this function writes after the
/// command ended, not by the end of file.
fn read_lines(command: &mut Command, mut each: impl FnMut(&str)) -> Result<ExitStatus> {
    let shown = step::shown(command);
    let (reader, mut writer) = std::io::pipe().context("failed to make a pipe")?;
    let end = format!("xtask-end-{}", std::process::id());
    command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
    let mut child = command.spawn().with_context(|| format!("failed to start `{shown}`"))?;
    // Closes the copies of the pipe in the command; this process keeps one to write the end mark.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let waiter = std::thread::spawn({
        let end = end.clone();
        move || {
            let status = child.wait();
            writer.write_all(format!("\n{end}\n").as_bytes()).and(status)
        }
    });
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let mut held: Option<String> = None;
    while reader.read_until(b'\n', &mut line).context("failed to read what the tests print")? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        line.clear();
        if text == end {
            break;
        }
        // One line is held back: the last one is the empty line before the end mark.
        if let Some(earlier) = held.replace(text) {
            each(&earlier);
        }
    }
    if let Some(last) = held.filter(|last| !last.is_empty()) {
        each(&last);
    }
    let status =
        waiter.join().map_err(|_| anyhow::anyhow!("the thread that waits for `{shown}` panicked"))?;
    status.with_context(|| format!("failed to wait for `{shown}`"))
}

/// Prints skips and leftovers, then cargo's summary lines, then the totals as the last line.
pub fn print_closing(finished: &TestRun) {
    let transcript = &finished.transcript;
    print_list("failed:", &transcript.failures);
    print_list("ended without a result:", &transcript.died);
    let skips: Vec<String> =
        transcript.skips.iter().map(|skip| format!("{}: {}", skip.test, skip.reason)).collect();
    print_list(SKIPPED, &skips);
    if finished.requires_all && !skips.is_empty() {
        println!("{REQUIRE_ALL}=1: each skip is a failure\n");
    }
    let disturbed: Vec<String> =
        transcript.not_compared.iter().map(|(test, reason)| format!("{test}: {reason}")).collect();
    print_list(NOT_COMPARED, &disturbed);
    print_list("left behind:", &finished.left_behind);
    if !finished.cargo_succeeded && transcript.failed() == 0 {
        println!("cargo failed before all tests could run; its message is above\n");
    }
    for result in &transcript.results {
        println!("{result}");
    }
    for line in slowest(&transcript.seconds) {
        println!("{line}");
    }
    if let Some(time) = finished.time_of_guests() {
        println!("{time}");
    }
    println!("{}", totals(transcript));
}

/// The slowest test binaries below a title, one per line, and the sum of all.
pub fn slowest(seconds: &BTreeMap<String, f64>) -> Vec<String> {
    let mut rows: Vec<(&String, &f64)> = seconds.iter().collect();
    rows.sort_by(|a, b| b.1.total_cmp(a.1));
    let sum: f64 = rows.iter().map(|(_, seconds)| *seconds).sum();
    let mut lines = vec![format!("slowest of {} test binaries, {sum:.1} s in sum:", rows.len())];
    lines.extend(rows.iter().take(SLOWEST).map(|(binary, seconds)| format!("{seconds:>8.1} s  {binary}")));
    lines.push(String::new());
    lines
}

/// The closing line of a run.
pub fn totals(transcript: &Transcript) -> String {
    format!(
        "{} passed, {} failed, {} skipped",
        transcript.passed(),
        transcript.failed(),
        transcript.skips.len()
    )
}

fn print_list(title: &str, entries: &[String]) {
    if entries.is_empty() {
        return;
    }
    println!("{title}");
    for entry in entries {
        println!("  {entry}");
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Skip;

    fn finished(requires_all: bool) -> TestRun {
        TestRun {
            transcript: Transcript::default(),
            cargo_succeeded: true,
            left_behind: Vec::new(),
            requires_all,
        }
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn lines_of_stdout_and_stderr_come_in_the_order_of_writing() {
        let mut lines = Vec::new();
        let status = read_lines(&mut shell("echo one; echo two >&2; printf three; exit 4"), |line| {
            lines.push(line.to_owned());
        })
        .unwrap();
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(status.code(), Some(4));
    }

    #[test]
    fn surviving_child_does_not_block_the_command() {
        // `cat` keeps the pipe open until the test drops `keeper`, which closes its stdin.
        let (stdin, keeper) = std::io::pipe().unwrap();
        let mut lines = Vec::new();
        let mut command = shell("exec 3<&0; cat <&3 & echo done");
        command.stdin(stdin);
        read_lines(&mut command, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["done"]);
        drop(keeper);
    }

    #[test]
    fn a_skip_fails_the_run_only_when_everything_is_required() {
        for (requires_all, passed) in [(false, true), (true, false)] {
            let mut run = finished(requires_all);
            run.transcript.skips.push(Skip {
                test: "a b".into(),
                reason: "no iperf3".into(),
                counted_as_passed: true,
            });
            assert_eq!(run.passed(), passed);
        }
    }

    #[test]
    fn leftovers_fail_the_run() {
        let mut run = finished(false);
        run.left_behind.push("process 1".into());
        assert!(!run.passed());
    }

    #[test]
    fn time_of_tests_in_guests_is_printed_and_fails_no_run() {
        for (seconds, printed) in [(480.0, "480.0 s, of 480 s"), (480.1, "480.1 s, more than 480 s")] {
            let mut run = finished(true);
            run.transcript.seconds.insert(GUESTS.to_owned(), seconds);
            assert!(run.passed() && run.not_green().is_empty(), "{seconds}");
            assert_eq!(
                run.time_of_guests().unwrap(),
                format!("tests in guests: {printed} on two idle cores")
            );
        }
        assert_eq!(finished(true).time_of_guests(), None);
    }

    #[test]
    fn arguments_narrow_the_run_down() {
        let words = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            step::shown(&test_command(&arguments, None))
        };
        assert!(words(&["-p", "x", "--", "name"]).ends_with("--no-fail-fast -p x -- --show-output name"));
    }

    #[test]
    fn totals_are_on_a_line_of_their_own() {
        assert_eq!(totals(&Transcript::default()), "0 passed, 0 failed, 0 skipped");
    }
}
