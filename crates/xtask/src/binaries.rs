//! The test binaries of the whole workspace: builds them, and runs several at a time.
//!
//! `cargo test` runs one binary after the other. Most tests of the largest binary wait for the end of a trial, so that a machine of two
//! cores was idle for half of the time.
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use netduel_guests::TESTS_AT_A_TIME;
use serde_json::Value;

use crate::step;
use crate::transcript::Transcript;

/// Tests of a binary that run after everything else.
struct Alone {
    /// The binary.
    name: &'static str,
    /// The modules of its integration tests. The empty name means all modules.
    modules: &'static [&'static str],
    /// The number of these tests that run at a time.
    threads: usize,
}

/// Those that compare figures would find the other tests as the bottleneck, and in the same run of the harness they would keep its threads
/// waiting; one steps the clock of the machine, one takes all cores: one at a time. Guests on emulated processors need all cores.
static ALONE: [Alone; 2] = [
    Alone {
        name: "netduel/it",
        modules: &[
            "starved::",
            "truth::cap::",
            "truth::clock::",
            "truth::cpu::",
            "truth::delay::",
            "truth::limits::",
            "under_load::",
        ],
        threads: 1,
    },
    Alone { name: GUESTS, modules: &[""], threads: TESTS_AT_A_TIME },
];

/// The binary with the tests in guests.
pub const GUESTS: &str = "netduel_guests/it";

/// The number of tests that the harness runs at a time.
pub const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

/// Most tests of the largest binaries wait for the end of a trial.
const THREADS_PER_CORE: usize = 3;

/// Binaries that run at a time: one for each core, and the largest one, whose tests mostly wait.
pub fn at_once() -> usize {
    step::cores() + 1
}

/// A test binary of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestBinary {
    /// That of the crate; for integration tests, that of the crate and of the test target.
    pub name: String,
    /// The file.
    pub executable: PathBuf,
    /// The folder of the package, in which its tests run.
    pub folder: PathBuf,
}

impl TestBinary {
    /// The binary that a message of cargo is about: a built artifact that runs tests. `None` for every other message.
    fn from_message(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let executable = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let target = message["target"]["name"].as_str()?.replace('-', "_");
        let is_integration = message["target"]["kind"].as_array()?.iter().any(|kind| kind == "test");
        let package = folder.file_name()?.to_string_lossy().replace('-', "_");
        let name = if is_integration { format!("{package}/{target}") } else { target };
        Some(Self { name, executable, folder })
    }

    /// The arguments for the harness that leave out the tests of [`Self::alone`].
    pub fn beside_others(&self) -> Vec<String> {
        let modules = self.alone().into_iter().flat_map(|alone| alone.modules);
        modules.flat_map(|module| ["--skip".to_owned(), (*module).to_owned()]).collect()
    }

    /// The arguments for the harness that select the tests of [`Self::alone`], and as many at a time as may be.
    pub fn after_others(&self) -> Option<Vec<String>> {
        let alone = self.alone()?;
        let modules = alone.modules.iter().map(|module| (*module).to_owned());
        Some(modules.chain([format!("--test-threads={}", alone.threads)]).collect())
    }

    /// What of it runs after everything else.
    fn alone(&self) -> Option<&'static Alone> {
        ALONE.iter().find(|alone| alone.name == self.name)
    }

    /// The command that runs its tests. `arguments` are for the test harness.
    pub fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.executable);
        command.arg("--show-output").args(arguments);
        // The variable of the caller, if any, is stronger than the default of the harness: one thread per core.
        if std::env::var_os(THREADS_VARIABLE).is_none() {
            command.env(THREADS_VARIABLE, (THREADS_PER_CORE * step::cores()).to_string());
        }
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder).stdin(Stdio::null());
        command
    }
}

/// Builds all tests of the workspace and returns their binaries, the largest first: it has the most tests.
pub fn build() -> Result<Vec<TestBinary>> {
    let mut command =
        step::cargo(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    println!("$ {}", step::shown(&command));
    let mut child = command.stdout(Stdio::piped()).spawn().context("failed to start cargo")?;
    let stdout = child.stdout.take().context("cargo has no standard output")?;
    let mut binaries = Vec::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("failed to read the messages of cargo")?;
        binaries.extend(TestBinary::from_message(&line));
    }
    if !child.wait().context("failed to wait for cargo")?.success() {
        bail!("the tests do not build; cargo's message is above");
    }
    let size = |binary: &TestBinary| binary.executable.metadata().map_or(0, |file| file.len());
    binaries.sort_by_key(|binary| std::cmp::Reverse(size(binary)));
    Ok(binaries)
}

/// What a job printed, and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// The parsed output.
    pub transcript: Transcript,
    /// The status of its command.
    pub status: ExitStatus,
}

/// Runs jobs, at most `at_once` at a time, in their order. Returns the results in the order of their ends, or the first error; after an
/// error no further job starts.
pub fn run_all<J: Send>(
    jobs: Vec<J>,
    at_once: usize,
    run: impl Fn(J) -> Result<Finished> + Sync,
) -> Result<Vec<Finished>> {
    let waiting = Mutex::new(VecDeque::from(jobs));
    let finished = Mutex::new(Ok(Vec::new()));
    // A function, because the condition of a loop would hold the lock while its body runs.
    let next = || locked(&waiting).pop_front();
    let work = || {
        while let Some(job) = next() {
            let result = run(job);
            let mut all = locked(&finished);
            match (&mut *all, result) {
                (Ok(all), Ok(result)) => all.push(result),
                (Ok(_), Err(error)) => {
                    *all = Err(error);
                    locked(&waiting).clear();
                }
                (Err(_), _) => {}
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once.max(1) {
            scope.spawn(work);
        }
    });
    finished.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::sync::{Barrier, atomic};

    use super::*;

    fn message(kind: &str, name: &str, is_test: bool) -> String {
        serde_json::json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/crates/netduel-load/Cargo.toml",
            "target": { "kind": [kind], "name": name },
            "profile": { "test": is_test },
            "executable": "/w/target/debug/deps/x-1f",
        })
        .to_string()
    }

    #[test]
    fn binaries_of_messages_are_named_after_their_crate() {
        let name = |line: &str| TestBinary::from_message(line).map(|binary| binary.name);
        assert_eq!(name(&message("lib", "netduel-load", true)).as_deref(), Some("netduel_load"));
        assert_eq!(name(&message("test", "it", true)).as_deref(), Some("netduel_load/it"));
        assert_eq!(name(&message("bin", "netduel", false)), None);
        assert_eq!(name("not a message"), None);
        let binary = TestBinary::from_message(&message("test", "it", true)).unwrap();
        assert_eq!(binary.folder, Path::new("/w/crates/netduel-load"));
        assert_eq!((binary.beside_others(), binary.after_others()), (Vec::new(), None));
    }

    #[test]
    fn tests_that_run_alone_are_left_out_beside_others() {
        let binary = TestBinary::from_message(&message("test", "it", true)).unwrap();
        let of = |name: &str| TestBinary { name: name.to_owned(), ..binary.clone() };
        assert_eq!(of("netduel_guests/it").beside_others(), ["--skip", ""]);
        // Two scenes of guests at a time; what compares figures has the machine for itself.
        assert_eq!(of("netduel_guests/it").after_others().unwrap(), ["", "--test-threads=3"]);
        let (beside, after) = (of("netduel/it").beside_others(), of("netduel/it").after_others().unwrap());
        assert_eq!(beside[..4], ["--skip", "starved::", "--skip", "truth::cap::"]);
        assert_eq!(after[..2], ["starved::", "truth::cap::"]);
        assert_eq!((beside.len() / 2, after.last().unwrap().as_str()), (after.len() - 1, "--test-threads=1"));
    }

    fn done() -> Finished {
        Finished { transcript: Transcript::default(), status: ExitStatus::from_raw(0) }
    }

    #[test]
    fn two_jobs_run_at_a_time_and_each_once() {
        // Each of the four jobs waits for another one: alone, none could end.
        let (pair, ran) = (Barrier::new(2), atomic::AtomicU32::new(0));
        let finished = run_all(vec![1, 10, 100, 1000], 2, |job| {
            pair.wait();
            ran.fetch_add(job, atomic::Ordering::Relaxed);
            Ok(done())
        });
        assert_eq!((finished.unwrap().len(), ran.into_inner()), (4, 1111));
    }

    #[test]
    fn job_that_cannot_start_ends_the_others() {
        let ran = atomic::AtomicU32::new(0);
        let finished = run_all(vec![false, true, true], 1, |is_there| {
            ran.fetch_add(1, atomic::Ordering::Relaxed);
            if is_there { Ok(done()) } else { bail!("no such file") }
        });
        assert_eq!(finished.unwrap_err().to_string(), "no such file");
        assert_eq!(ran.into_inner(), 1);
    }
}
