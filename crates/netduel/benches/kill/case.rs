//! One kill: starts a run, kills at a random moment, and checks what is left.
use std::fmt::Write as _;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context as _, Result, bail, ensure};
use netduel_sys::clock::{monotonic_ns, sleep_until};

use crate::processes::{self, TARGETS, Target};
use crate::random::Choices;
use crate::scene::{self, SCENES, Scene, TRIALS};
use crate::stage;

/// Time limit for the end of a run, and of its processes, nanoseconds.
const END_DEADLINE_NS: u64 = 120_000_000_000;
/// Pause between two looks at a process, nanoseconds.
const LOOK_NS: u64 = 2_000_000;
/// The latest kill after the beginning of a run, or after a trial, milliseconds.
const DELAY_MS_MAX: u64 = 500;
/// As above, after the last trial.
const END_DELAY_MS_MAX: u64 = 60;

/// What a run was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// No trial has ended, and no guard is there.
    SetUp,
    /// A guard is there, because a host is changed or was changed by this agent.
    Guarded,
    /// Some trials have ended, and no guard is there.
    Unguarded,
    /// All trials have ended.
    End,
}

/// All phases, with the words of the table.
pub const PHASES: [(Phase, &str); 4] = [
    (Phase::SetUp, "set-up"),
    (Phase::Guarded, "guard"),
    (Phase::Unguarded, "no guard"),
    (Phase::End, "end"),
];

/// What was killed.
#[derive(Debug, Clone, Copy)]
pub struct Killed {
    pub scene: Scene,
    pub target: Target,
    pub phase: Phase,
    pub resumed: bool,
    /// The next agent restored the host, as documented for an agent that is killed together with its guard.
    pub restored_later: bool,
}

/// A run with its progress.
struct Running {
    child: Child,
    lines: Arc<Mutex<String>>,
    trials: Arc<AtomicU64>,
    reader: JoinHandle<()>,
}

/// Plays one kill; `None` when the run ended before its moment. An error says what is wrong.
pub fn play(seed: u64, number: u64, before: &str) -> Result<Option<Killed>> {
    let mut random = Choices::of_case(seed, number);
    let scene = *random.one_of(&SCENES);
    // Every third run is killed before its first trial has ended, and soon after the last one there is nothing to kill.
    let after_trials = random.below(TRIALS + 4).saturating_sub(3);
    let delay_ms_max = if after_trials < TRIALS { DELAY_MS_MAX } else { END_DELAY_MS_MAX };
    let delay_ns = random.below(delay_ms_max * 1_000_000);
    let resumes = random.below(2) == 0;
    let mut targets = TARGETS;
    random.shuffle(&mut targets);
    let folder = stage::folder("kill")?;
    let plan = scene.write(&folder, number + 1)?;
    let running = Running::start(&folder, &["run", &plan.to_string_lossy()])?;
    let Some((target, victims, phase)) = running.hit(after_trials, delay_ns, &targets, &mut random)? else {
        running.finish()?;
        wait_for_the_end_of_all()?;
        return Ok(None);
    };
    let words = || format!("kill {number} ({scene}: {target}, {})", name(phase));
    let (status, text) = running.finish().with_context(words)?;
    let mut killed = Killed { scene, target, phase, resumed: false, restored_later: false };
    let checked = (|| {
        wait_for_the_end_of_all()?;
        let survived = !processes::include_the_coordinator(&victims);
        ensure!(!survived || matches!(status.code(), Some(0 | 4 | 6 | 7)), "the run ended with {status}");
        let kept = stored(&folder, shown_trials(&text))?;
        // With a lab the kernel ends agents and guards at once. Its settings are gone, but not the journals.
        let ended_together =
            processes::need_the_next_agent(&victims) || (scene == Scene::Lab && phase == Phase::Guarded);
        let late = ended_together && scene::state()? != before;
        if kept.is_some() && (resumes || late) {
            killed.resumed = true;
            killed.restored_later = late;
            resume(&folder, kept.unwrap_or_default())?;
        }
        let after = scene::state()?;
        ensure!(after == before, "the machine is not as before:\n{}", scene::difference(before, &after));
        Ok(())
    })();
    checked.with_context(|| format!("{}; the run printed:\n{text}", words()))?;
    Ok(Some(killed))
}

fn name(phase: Phase) -> &'static str {
    PHASES.iter().find(|(known, _)| *known == phase).map_or("", |(_, name)| name)
}

/// Continues the run to its end, and compares what is stored.
fn resume(folder: &Path, kept: u64) -> Result<()> {
    let resumed = Running::start(folder, &["run", "--resume", "last"])?;
    let (status, text) = resumed.finish().context("--resume")?;
    // 6: a killed process can have taken the last block of an arm with it.
    ensure!(matches!(status.code(), Some(0 | 6)), "--resume ended with {status}:\n{text}");
    ensure!(!text.contains("panicked"), "--resume panicked:\n{text}");
    wait_for_the_end_of_all().context("after --resume")?;
    let now = stored(folder, kept).context("after --resume")?;
    ensure!(now.is_some_and(|now| now >= TRIALS), "--resume stored {now:?} of {TRIALS} trials:\n{text}");
    Ok(())
}

/// The number of stored trials, which must be at least `shown`; `None` when the run was killed before it had a file.
fn stored(folder: &Path, shown: u64) -> Result<Option<u64>> {
    let list = netduel(folder, &["runs", "--json"])?;
    let list: serde_json::Value = serde_json::from_str(&list).context("failed to read `runs --json`")?;
    let Some(trials) = list["runs"].get(0).map(|run| run["trials"].as_u64()) else {
        ensure!(shown == 0, "{shown} trials were shown, and no run is stored");
        return Ok(None);
    };
    let trials = trials.context("the stored run has no number of trials")?;
    ensure!(trials >= shown, "{shown} trials were shown, and {trials} are stored");
    netduel(folder, &["runs", "verify"])?;
    Ok(Some(trials))
}

/// Runs a command that must succeed.
fn netduel(folder: &Path, words: &[&str]) -> Result<String> {
    let output = command(folder, words).output().context("failed to start netduel")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "netduel {} ended with {}: {text}{errors}",
        words.join(" "),
        output.status
    );
    Ok(text)
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netduel"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("NETDUEL_STORE", folder.join("store")).env("XDG_STATE_HOME", folder.join("state"));
    command
}

/// Lines of finished trials in the progress of a run.
fn shown_trials(text: &str) -> u64 {
    text.lines().filter(|line| line.starts_with("trial ")).count() as u64
}

/// Waits until no process is left here.
fn wait_for_the_end_of_all() -> Result<()> {
    let deadline_ns = monotonic_ns() + END_DEADLINE_NS;
    loop {
        let left = processes::all();
        if left.is_empty() {
            return Ok(());
        }
        if monotonic_ns() > deadline_ns {
            let mut text = String::new();
            for process in &left {
                let _ = writeln!(text, "  {} {}", process.pid, process.command);
            }
            // They must not disturb what follows.
            processes::kill(&left)?;
            bail!("processes are left:\n{text}");
        }
        sleep_until(monotonic_ns() + LOOK_NS);
    }
}

impl Running {
    fn start(folder: &Path, words: &[&str]) -> Result<Self> {
        let mut command = command(folder, words);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("failed to start netduel")?;
        let stderr = std::io::BufReader::new(child.stderr.take().context("stderr is a pipe")?);
        let (lines, trials) = (Arc::<Mutex<String>>::default(), Arc::<AtomicU64>::default());
        let (to, count) = (Arc::clone(&lines), Arc::clone(&trials));
        let reader = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let is_trial = line.starts_with("trial ");
                let mut text = to.lock().unwrap_or_else(PoisonError::into_inner);
                *text += &line;
                text.push('\n');
                drop(text);
                count.fetch_add(u64::from(is_trial), Ordering::Release);
            }
        });
        Ok(Self { child, lines, trials, reader })
    }

    /// Waits for its moment, and kills; `None` when the run ended first.
    fn hit(
        &self,
        after_trials: u64,
        delay_ns: u64,
        targets: &[Target],
        random: &mut Choices,
    ) -> Result<Option<(Target, Vec<processes::Process>, Phase)>> {
        while self.trials.load(Ordering::Acquire) < after_trials && !self.reader.is_finished() {
            sleep_until(monotonic_ns() + LOOK_NS);
        }
        sleep_until(monotonic_ns() + delay_ns);
        let found = processes::all();
        let Some((target, victims)) = processes::choose(&found, targets, random) else { return Ok(None) };
        let trials = self.trials.load(Ordering::Acquire);
        let phase = match trials {
            _ if processes::is_treated(&found) => Phase::Guarded,
            TRIALS.. => Phase::End,
            0 => Phase::SetUp,
            _ => Phase::Unguarded,
        };
        processes::kill(&victims)?;
        Ok(Some((target, victims, phase)))
    }

    /// Waits for its end; returns its status and its progress.
    fn finish(mut self) -> Result<(ExitStatus, String)> {
        let deadline_ns = monotonic_ns() + END_DEADLINE_NS;
        let status = loop {
            if let Some(status) = self.child.try_wait().context("failed to wait for the run")? {
                break status;
            }
            if monotonic_ns() > deadline_ns {
                let text = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let left: Vec<String> =
                    processes::all().iter().map(|left| format!("  {} {}", left.pid, left.command)).collect();
                processes::kill(&processes::all())?;
                bail!("the run did not end; processes:\n{}\nit printed:\n{text}", left.join("\n"));
            }
            sleep_until(monotonic_ns() + LOOK_NS);
        };
        // The pipe ends with the last process that has it, which is checked with all others.
        wait_for_the_end_of_all()?;
        ensure!(self.reader.join().is_ok(), "the reader of the progress panicked");
        let text = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ensure!(!text.contains("panicked"), "a process panicked:\n{text}");
        Ok((status, text))
    }
}
