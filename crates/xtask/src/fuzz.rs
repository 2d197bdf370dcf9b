//! `fuzz`: builds the fuzz targets with counters of coverage and runs them under libFuzzer, as many at a time as the machine has cores.
//!
//! The compiler adds the counters on stable Rust: the flags are those of `cargo-fuzz` without a sanitizer of addresses, which needs nightly.
mod parallel;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::reduction::reduce;
use crate::stopwatch::Stopwatch;
use crate::{step, workspace};
use parallel::{Outcome, quick_seconds, run_all};

const USAGE: &str = "\
usage: cargo xtask fuzz --quick
       cargo xtask fuzz --seconds N [TARGET]
       cargo xtask fuzz --minimize [TARGET]
       cargo xtask fuzz --minimize TARGET INPUT

  --quick       every target for up to a minute, three minutes for all of them, as in CI
  --seconds N   every target, or one of them, for N seconds
  --minimize    replace the corpus of every target, or of one, by the fewest inputs with the same coverage,
                out of the corpus and of all inputs that runs on this machine found; with an input, write the smallest
                part of it with which the target fails in the same way to INPUT.min

The targets are the folders of crates/netduel-fuzz/corpus.
";

/// The seed of `--quick`: a commit is tried with the same inputs every time, as far as the time reaches, so that CI judges the commit.
const QUICK_SEED: u32 = 1;
/// libFuzzer's word for a seed that it draws.
const ANY_SEED: u32 = 0;
/// One input takes no longer, seconds: an input of this length that takes longer is a way to stop the program.
const INPUT_SECONDS: u32 = 60;
/// Bytes of an input at most: the length of a run with one trial of each kind. Larger ones are slow and reach nothing else.
const INPUT_LEN_MAX: u32 = 64 << 10;
/// Memory of a target at most, MiB.
const MEMORY_MIB: u32 = 1024;
/// Bounds of the search for the smallest part of an input that fails. An attempt that fails with the limit of time takes [`INPUT_SECONDS`].
const ATTEMPTS_MAX: u32 = 20_000;
const ATTEMPTS_TIME: Duration = Duration::from_secs(600);
const PACKAGE: &str = "netduel-fuzz";
/// As `TARGET_VARIABLE` of netduel-fuzz, which xtask must not import.
const TARGET_VARIABLE: &str = "NETDUEL_FUZZ_TARGET";
/// The counters of coverage, and comparisons as hints for the next input.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Task {
    /// Without a number of seconds as long as [`quick_seconds`] says.
    Run {
        seconds: Option<u32>,
        seed: u32,
        only: Option<String>,
    },
    Minimize {
        only: Option<String>,
    },
    MinimizeInput {
        name: String,
        input: PathBuf,
    },
}

impl Task {
    /// `None` for arguments that are not those of the usage.
    fn of(arguments: &[String]) -> Option<Self> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let named = |name: &str| (!name.starts_with('-')).then(|| Some(name.to_owned()));
        Some(match words[..] {
            ["--quick"] => Self::Run { seconds: None, seed: QUICK_SEED, only: None },
            ["--seconds", seconds] => {
                Self::Run { seconds: Some(positive(seconds)?), seed: ANY_SEED, only: None }
            }
            ["--seconds", seconds, name] => {
                Self::Run { seconds: Some(positive(seconds)?), seed: ANY_SEED, only: named(name)? }
            }
            ["--minimize"] => Self::Minimize { only: None },
            ["--minimize", name] => Self::Minimize { only: named(name)? },
            ["--minimize", name, input] => {
                Self::MinimizeInput { name: named(name)??, input: PathBuf::from(input) }
            }
            _ => return None,
        })
    }

    fn only(&self) -> Option<&str> {
        match self {
            Self::Run { only, .. } | Self::Minimize { only } => only.as_deref(),
            Self::MinimizeInput { name, .. } => Some(name.as_str()),
        }
    }
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|seconds| *seconds > 0)
}

/// Runs what the arguments say; `Ok(false)` when a target failed or the arguments are not valid.
pub fn run(arguments: &[String]) -> Result<bool> {
    let Some(task) = Task::of(arguments) else {
        print!("{USAGE}");
        return Ok(matches!(arguments, [word] if word == "--help"));
    };
    let targets = targets(task.only())?;
    if let Task::MinimizeInput { input, .. } = &task {
        // Before the build, which takes minutes.
        File::open(input).with_context(|| format!("failed to open {}", input.display()))?;
    }
    let program = build()?;
    let program = program.as_path();
    match &task {
        Task::Run { seconds, seed, .. } => {
            let jobs = step::cores().min(targets.len());
            let seconds = seconds.unwrap_or_else(|| quick_seconds(targets.len(), jobs));
            run_all(&targets, jobs, |name| Target { name, program }.run(seconds, *seed))
        }
        Task::Minimize { .. } => {
            targets.iter().try_for_each(|name| Target { name, program }.minimize())?;
            Ok(true)
        }
        Task::MinimizeInput { name, input } => Target { name, program }.minimize_input(input),
    }
}

/// As in CI.
pub fn quick() -> Result<bool> {
    run(&["--quick".to_owned()])
}

/// Whether libFuzzer can be compiled here.
pub fn has_compiler() -> bool {
    step::is_installed("c++") || std::env::var_os("CXX").is_some()
}

fn corpora() -> PathBuf {
    workspace::root().join("crates").join(PACKAGE).join("corpus")
}

/// Files that are not committed: the program, inputs of earlier runs, inputs that fail.
fn scratch() -> PathBuf {
    workspace::root().join("target/fuzz")
}

/// The names of all targets, or of the one that is meant.
fn targets(only: Option<&str>) -> Result<Vec<String>> {
    let corpora = corpora();
    let mut names = Vec::new();
    for entry in fs::read_dir(&corpora).with_context(|| format!("failed to list {}", corpora.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    match only {
        Some(only) if !names.iter().any(|name| name == only) => {
            bail!("failed to find the fuzz target {only:?}: there are {}", names.join(", "))
        }
        Some(only) => Ok(vec![only.to_owned()]),
        None => Ok(names),
    }
}

/// Builds the program and returns it.
fn build() -> Result<PathBuf> {
    let host = host()?;
    // With a target platform, flags do not apply to build scripts, which could not be linked with them.
    let mut command =
        step::cargo(["build", "--package", PACKAGE, "--features", "libfuzzer", "--profile", "fuzz"]);
    command.args(["--target", &host, "--target-dir"]).arg(scratch());
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    for flag in COVERAGE {
        flags.push(" ");
        flags.push(flag);
    }
    command.env("RUSTFLAGS", flags);
    if !step::succeeds(&mut command)? {
        bail!("failed to build {PACKAGE}: the messages of the compiler are above");
    }
    Ok(scratch().join(host).join("fuzz").join(PACKAGE))
}

/// The platform of the toolchain.
fn host() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").current_dir(workspace::root()).output();
    let output = output.context("failed to start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).with_context(|| format!("failed to find the platform in `rustc -vV`: {text}"))
}

/// One target of the built program.
struct Target<'a> {
    name: &'a str,
    program: &'a Path,
}

impl Target<'_> {
    /// Inputs that runs on this machine found.
    fn found(&self) -> Result<PathBuf> {
        made(scratch().join("corpus").join(self.name))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.env(TARGET_VARIABLE, self.name).current_dir(workspace::root());
        command.arg(format!("-max_len={INPUT_LEN_MAX}"));
        command
    }

    /// With the limits beyond which an input is a fault.
    fn limited(&self) -> Command {
        let mut command = self.command();
        command.arg(format!("-timeout={INPUT_SECONDS}")).arg(format!("-rss_limit_mb={MEMORY_MIB}"));
        command
    }

    /// Runs it. The text has the number of its inputs.
    fn run(&self, seconds: u32, seed: u32) -> Result<Outcome> {
        let faults = made(scratch().join("faults").join(self.name))?;
        let log = scratch().join(format!("{}.log", self.name));
        let mut artifacts: OsString = "-artifact_prefix=".into();
        artifacts.push(faults.join(""));
        let mut command = self.limited();
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-seed={seed}"))
            .args(["-print_final_stats=1", "-use_value_profile=0"])
            .arg(artifacts)
            .arg(self.found()?)
            .arg(corpora().join(self.name));
        let file = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
        let copy = file.try_clone().context("failed to share the file of messages")?;
        let status = command.stdout(copy).stderr(file).status();
        let status = status.with_context(|| format!("failed to start {}", self.program.display()))?;
        let messages = fs::read(&log).with_context(|| format!("failed to read {}", log.display()))?;
        let messages = String::from_utf8_lossy(&messages);
        let statistics = Statistics::of(&messages);
        let mut lines = vec![format!("{:<24}{statistics}", self.name)];
        if !status.success() {
            let (name, log, faults) = (self.name, log.display(), faults.display());
            lines.extend([
                last_lines(&messages),
                format!("the target {name} failed ({status}); all messages: {log}"),
                format!("`cargo xtask fuzz --minimize {name} INPUT` makes the input that failed smaller"),
                format!("copy the input below {faults} into crates/{PACKAGE}/corpus/{name}:"),
                format!("`cargo test -p {PACKAGE}` then shows the failure until it is mended"),
            ]);
        }
        Ok(Outcome { passed: status.success(), text: lines.join("\n") + "\n" })
    }

    /// Replaces the corpus by the fewest inputs with the same coverage.
    fn minimize(&self) -> Result<()> {
        let corpus = corpora().join(self.name);
        let merged = scratch().join("merged").join(self.name);
        if merged.exists() {
            fs::remove_dir_all(&merged).with_context(|| format!("failed to remove {}", merged.display()))?;
        }
        let merged = made(merged)?;
        let mut command = self.command();
        command.arg("-merge=1").arg(&merged).arg(&corpus).arg(self.found()?);
        if !step::succeeds(&mut command)? {
            bail!("failed to minimize the corpus of {}: the messages are above", self.name);
        }
        fs::remove_dir_all(&corpus).with_context(|| format!("failed to remove {}", corpus.display()))?;
        fs::create_dir(&corpus).with_context(|| format!("failed to create {}", corpus.display()))?;
        for entry in fs::read_dir(&merged).with_context(|| format!("failed to list {}", merged.display()))? {
            let entry = entry?;
            let to = corpus.join(entry.file_name());
            fs::copy(entry.path(), &to).with_context(|| format!("failed to write {}", to.display()))?;
        }
        Ok(())
    }
}

impl Target<'_> {
    /// Writes the smallest part of an input that fails in the same way beside it; `Ok(false)` when the input does not fail.
    fn minimize_input(&self, input: &Path) -> Result<bool> {
        let whole = fs::read(input).with_context(|| format!("failed to read {}", input.display()))?;
        let part = made(scratch().join("part"))?.join(self.name);
        let Some(fault) = self.fault(&part, &whole)? else {
            println!("{} does not fail with {}", self.name, input.display());
            return Ok(false);
        };
        println!("{} fails: {fault}", self.name);
        let watch = Stopwatch::start();
        let fails = |bytes: &[u8]| -> Result<bool> { Ok(self.fault(&part, bytes)?.as_ref() == Some(&fault)) };
        let has_time = || watch.elapsed() < ATTEMPTS_TIME;
        let found = reduce(&whole, ATTEMPTS_MAX, has_time, fails)?;
        let to = beside(input);
        fs::write(&to, &found.input).with_context(|| format!("failed to write {}", to.display()))?;
        let end = if found.is_minimal { "" } else { "; ended by a bound, a smaller one may exist" };
        println!(
            "{} B of {} B after {} inputs in {watch}{end}",
            found.input.len(),
            whole.len(),
            found.attempts
        );
        println!("the part that fails: {}", to.display());
        if self.fault(&part, &found.input)?.as_ref() != Some(&fault) {
            println!("it did not fail this way again: the fault depends on more than the input");
        }
        Ok(true)
    }

    /// How the target fails with an input, in a process and with the limits of a run; `None` when it does not. `file` is overwritten.
    fn fault(&self, file: &Path, input: &[u8]) -> Result<Option<String>> {
        fs::write(file, input).with_context(|| format!("failed to write {}", file.display()))?;
        let output = self.limited().arg(file).stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("failed to start {}", self.program.display()))?;
        let messages = String::from_utf8_lossy(&output.stderr);
        Ok((!output.status.success()).then(|| kind_of_fault(&messages, output.status)))
    }
}

/// Where the smallest part of an input is written.
fn beside(input: &Path) -> PathBuf {
    let mut name = input.as_os_str().to_owned();
    name.push(".min");
    name.into()
}

/// The same for every input with one fault: the place of the panic, or what libFuzzer found, without the figures of this input.
fn kind_of_fault(messages: &str, status: ExitStatus) -> String {
    let after = |mark: &str| messages.lines().find_map(|line| line.split_once(mark)).map(|(_, text)| text);
    if let Some(place) = after("panicked at ") {
        return format!("panic at {}", place.trim_end_matches(':'));
    }
    let Some(kind) = after("ERROR: libFuzzer: ") else { return status.to_string() };
    let kind = kind.split_once(" after ").map_or(kind, |(kind, _)| kind);
    kind.split_once(" (").map_or(kind, |(kind, _)| kind).to_owned()
}

/// The folder, which is made if it is missing.
fn made(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    Ok(folder)
}

/// The end of the messages: the panic, and the stack.
fn last_lines(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

/// What libFuzzer says at its end; absent where it ended before.
#[derive(Debug, PartialEq, Eq)]
struct Statistics {
    inputs: Option<u64>,
    new: Option<u64>,
    memory_mib: Option<u64>,
}

impl Statistics {
    fn of(messages: &str) -> Self {
        let value = |name: &str| {
            messages.lines().find_map(|line| {
                line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok()
            })
        };
        Self {
            inputs: value("number_of_executed_units"),
            new: value("new_units_added"),
            memory_mib: value("peak_rss_mb"),
        }
    }
}

impl std::fmt::Display for Statistics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = |value: Option<u64>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        let Self { inputs, new, memory_mib } = self;
        write!(f, "{:>12} inputs{:>8} new{:>8} MiB", text(*inputs), text(*new), text(*memory_mib))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn task(line: &str) -> Option<Task> {
        Task::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_those_of_the_usage() {
        assert_eq!(task("--quick"), Some(Task::Run { seconds: None, seed: QUICK_SEED, only: None }));
        let only = Some("plan".to_owned());
        assert_eq!(
            task("--seconds 3600 plan"),
            Some(Task::Run { seconds: Some(3600), seed: ANY_SEED, only: only.clone() })
        );
        assert_eq!(task("--minimize plan"), Some(Task::Minimize { only }));
        let input = PathBuf::from("crash-1");
        let name = "plan".to_owned();
        assert_eq!(task("--minimize plan crash-1"), Some(Task::MinimizeInput { name, input }));
        for line in [
            "",
            "plan",
            "--seconds",
            "--seconds 0",
            "--seconds x",
            "--quick plan",
            "--seconds 5 --quick",
            "--minimize --quick x",
        ] {
            assert_eq!(task(line), None, "{line}");
        }
    }

    #[test]
    fn unknown_target_is_an_error_with_the_known_ones() {
        let all = targets(None).unwrap();
        assert!(all.contains(&"plan".to_owned()), "{all:?}");
        let error = targets(Some("plam")).unwrap_err().to_string();
        assert!(error.contains("plam") && error.contains(&all.join(", ")), "{error}");
    }

    #[test]
    fn faults_are_the_same_by_their_place_and_not_by_their_figures() {
        let status = ExitStatus::from_raw(77 << 8);
        let kind = |messages: &str| kind_of_fault(messages, status);
        let panic = |thread: u32, text: &str| {
            format!(
                "Running: x\n\nthread '<unnamed>' ({thread}) panicked at crates/a/src/b.rs:10:5:\n{text}\n\
                 ==7== ERROR: libFuzzer: deadly signal\n"
            )
        };
        assert_eq!(kind(&panic(1, "index 3")), "panic at crates/a/src/b.rs:10:5");
        assert_eq!(kind(&panic(1, "index 3")), kind(&panic(2, "index 5")));
        for (message, expected) in [
            ("==7== ERROR: libFuzzer: timeout after 61 seconds", "timeout"),
            ("==7== ERROR: libFuzzer: out-of-memory (used: 1100Mb; limit: 1024Mb)", "out-of-memory"),
            ("==7== ERROR: libFuzzer: deadly signal", "deadly signal"),
            ("no such message", "exit status: 77"),
        ] {
            assert_eq!(kind(message), expected);
        }
    }

    #[test]
    fn smallest_part_is_beside_the_input() {
        assert_eq!(beside(Path::new("faults/crash-1")), Path::new("faults/crash-1.min"));
    }

    #[test]
    fn statistics_are_read_from_the_messages() {
        let messages = "#2\tINITED\nDone 5 runs in 1 second(s)\nstat::number_of_executed_units: 512\n\
                        stat::new_units_added:          7\nstat::peak_rss_mb:              36\n";
        let read = Statistics { inputs: Some(512), new: Some(7), memory_mib: Some(36) };
        assert_eq!(Statistics::of(messages), read);
        assert_eq!(Statistics::of("panicked").to_string().split_whitespace().next(), Some("?"));
    }
}
