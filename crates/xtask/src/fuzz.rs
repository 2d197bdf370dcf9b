//! `fuzz`: builds the fuzz targets with counters of coverage and runs them under libFuzzer, one after the other.
//!
//! The compiler adds the counters on stable Rust: the flags are those of `cargo-fuzz` without a sanitizer of addresses, which needs nightly.
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{step, workspace};

const USAGE: &str = "\
usage: cargo xtask fuzz --quick
       cargo xtask fuzz --seconds N [TARGET]
       cargo xtask fuzz --minimize [TARGET]

  --quick       every target for some seconds, as in CI
  --seconds N   every target, or one of them, for N seconds
  --minimize    replace the corpus of every target, or of one, by the fewest inputs with the same coverage,
                out of the corpus and of all inputs that runs on this machine found

The targets are the folders of crates/netduel-fuzz/corpus.
";

/// Seconds of each target with `--quick`: all targets take less than three minutes.
const QUICK_SECONDS: u32 = 11;
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
    Run { seconds: u32, seed: u32, only: Option<String> },
    Minimize { only: Option<String> },
}

impl Task {
    /// `None` for arguments that are not those of the usage.
    fn of(arguments: &[String]) -> Option<Self> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let named = |name: &str| (!name.starts_with('-')).then(|| Some(name.to_owned()));
        Some(match words[..] {
            ["--quick"] => Self::Run { seconds: QUICK_SECONDS, seed: QUICK_SEED, only: None },
            ["--seconds", seconds] => Self::Run { seconds: positive(seconds)?, seed: ANY_SEED, only: None },
            ["--seconds", seconds, name] => {
                Self::Run { seconds: positive(seconds)?, seed: ANY_SEED, only: named(name)? }
            }
            ["--minimize"] => Self::Minimize { only: None },
            ["--minimize", name] => Self::Minimize { only: named(name)? },
            _ => return None,
        })
    }

    fn only(&self) -> Option<&str> {
        match self {
            Self::Run { only, .. } | Self::Minimize { only } => only.as_deref(),
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
    let program = build()?;
    let mut passed = true;
    for name in &targets {
        let target = Target { name, program: &program };
        match task {
            Task::Run { seconds, seed, .. } => passed &= target.run(seconds, seed)?,
            Task::Minimize { .. } => target.minimize()?,
        }
    }
    Ok(passed)
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

    /// Runs it, and prints how many inputs it had.
    fn run(&self, seconds: u32, seed: u32) -> Result<bool> {
        let faults = made(scratch().join("faults").join(self.name))?;
        let log = scratch().join(format!("{}.log", self.name));
        let mut artifacts: OsString = "-artifact_prefix=".into();
        artifacts.push(faults.join(""));
        let mut command = self.command();
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-seed={seed}"))
            .arg(format!("-timeout={INPUT_SECONDS}"))
            .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
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
        println!("{:<24}{statistics}", self.name);
        if !status.success() {
            println!("{}", last_lines(&messages));
            println!("the target {} failed ({status}); all messages: {}", self.name, log.display());
            println!("copy the input below {} into crates/{PACKAGE}/corpus/{}:", faults.display(), self.name);
            println!("`cargo test -p {PACKAGE}` then shows the failure until it is mended");
        }
        Ok(status.success())
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
    use super::*;

    fn task(line: &str) -> Option<Task> {
        Task::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_those_of_the_usage() {
        assert_eq!(task("--quick"), Some(Task::Run { seconds: QUICK_SECONDS, seed: QUICK_SEED, only: None }));
        let only = Some("plan".to_owned());
        assert_eq!(
            task("--seconds 3600 plan"),
            Some(Task::Run { seconds: 3600, seed: ANY_SEED, only: only.clone() })
        );
        assert_eq!(task("--minimize plan"), Some(Task::Minimize { only }));
        for line in
            ["", "plan", "--seconds", "--seconds 0", "--seconds x", "--quick plan", "--seconds 5 --quick"]
        {
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
    fn quick_run_of_all_targets_takes_less_than_three_minutes() {
        assert!(targets(None).unwrap().len() as u32 * QUICK_SECONDS < 180);
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
