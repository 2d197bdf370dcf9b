//! `guests`: prepares the test bed of guests, boots a scene for a person, and runs the tests in it. The bed itself is `netduel-guests`.
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use netduel_guests::{
    BED_VARIABLE, Bed, FOLDER_VARIABLE, Kernel, OBSTACLE_VARIABLE, Prepared, SCENES, Scene, TESTS_AT_A_TIME,
};
use signal_hook::consts::SIGINT;

use crate::binaries::THREADS_VARIABLE;
use crate::test_run::Variable;
use crate::workspace::requires_all;
use crate::{repeat, setup, step, test_run, workspace};

const USAGE: &str = "\
usage: cargo xtask guests prepare
       cargo xtask guests up SCENE [COMMAND ...]
       cargo xtask guests failover
       cargo xtask guests transcript

  prepare   fetch QEMU, a kernel and programs into target/guests, build a static netduel, make the file system of guests;
            installs nothing. Needs apt-get with a source of Debian 12
  up SCENE  boot both guests of a scene; run the command, or a shell, where `ssh` reaches them; then end everything.
            Needs root
  failover  outages of guests below net_failover and a bond, and of the lab, as rows of a table; takes some ten minutes
  transcript
            run the second example of the README as it is written, between two guests without netduel: what a terminal shows and
            the reports are in target/guests/transcript. Needs root; takes some ten minutes
";

/// Below the target folder.
const FOLDER: &str = "target/guests";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// The profile in the manifest of the workspace.
const PROFILE: &str = "guest";

/// Runs what the arguments say; `Ok(false)` when the command failed or the arguments are not valid.
pub fn run(arguments: &[String]) -> Result<bool> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        ["prepare"] => prepare().map(|_| true),
        ["up", scene, command @ ..] => up(scene, command),
        ["failover"] => failover(),
        ["transcript"] => transcript(),
        _ => {
            print!("{USAGE}");
            for scene in SCENES {
                println!("  {:10} {}", scene.name, scene.about);
            }
            Ok(matches!(words[..], ["--help"]))
        }
    }
}

/// `test guests`: prepares, then runs the tests of the bed. The arguments are those of `cargo xtask test`.
pub fn test(arguments: &[String]) -> Result<bool> {
    let prepared = prepare()?;
    if requires_all() {
        add_other_kernels(&prepared);
    }
    let mut words = vec!["-p".to_owned(), "netduel-guests".to_owned()];
    words.extend_from_slice(arguments);
    let threads = OsString::from(TESTS_AT_A_TIME.to_string());
    let folder = ForTests::Folder(prepared.folder().to_owned());
    repeat::run(&words, &[folder.variable(), (THREADS_VARIABLE, &threads)])
}

/// `test` without arguments: all tests, with those in guests. The arguments of others select tests, or repeat all but these.
pub fn test_all() -> Result<bool> {
    let guests = prepare_for_tests(requires_all())?;
    test_run::run(&[], &[guests.variable()])
}

/// What the tests learn of the guests.
pub enum ForTests {
    /// The folder of the prepared guests.
    Folder(PathBuf),
    /// Why there are none. The tests are skipped and say so.
    Obstacle(OsString),
}

impl ForTests {
    /// The variable for the tests.
    pub fn variable(&self) -> Variable<'_> {
        match self {
            Self::Folder(folder) => (FOLDER_VARIABLE, folder.as_os_str()),
            Self::Obstacle(reason) => (OBSTACLE_VARIABLE, reason),
        }
    }
}

/// Prepares the guests for the whole suite. With `is_required` an obstacle is an error.
pub fn prepare_for_tests(is_required: bool) -> Result<ForTests> {
    if !setup::is_root() && !is_required {
        return Ok(ForTests::Obstacle("their test bed needs root".into()));
    }
    // The file system of the guests has programs of this machine.
    setup::run()?;
    match prepare() {
        Ok(prepared) => {
            if is_required {
                add_other_kernels(&prepared);
            }
            Ok(ForTests::Folder(prepared.folder().to_owned()))
        }
        Err(error) if is_required => Err(error),
        Err(error) => {
            // A skip has one line.
            println!("guests are not prepared: {error:#}");
            let reason = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
            Ok(ForTests::Obstacle(reason.into()))
        }
    }
}

fn folder() -> PathBuf {
    workspace::root().join(FOLDER)
}

/// The target folder of the guests' netduel.
fn cargo_folder() -> PathBuf {
    folder().join("cargo")
}

fn static_program() -> PathBuf {
    cargo_folder().join(TARGET).join(PROFILE).join("netduel")
}

fn prepare() -> Result<Prepared> {
    let netduel = build()?;
    Prepared::prepare(&folder(), &netduel).context("failed to prepare the guests")
}

/// Adds the kernels that are fetched on demand. An archive drops old releases: without such a kernel all other tests run, and its own test
/// is skipped, which is a failure with `REQUIRE_ALL=1`.
fn add_other_kernels(prepared: &Prepared) {
    for kernel in Kernel::ON_DEMAND {
        if let Err(error) = prepared.add_kernel(kernel) {
            println!("guests with the kernel of {} are not prepared: failed to {error}", kernel.suite());
        }
    }
}

/// Builds netduel without shared libraries, into a folder of its own because of its flags.
fn build() -> Result<PathBuf> {
    let mut command = static_cargo("build");
    if !step::succeeds(command.args(["--package", "netduel"]))? {
        bail!("the static netduel does not build; cargo's message is above");
    }
    Ok(static_program())
}

/// Runs `cargo run -- WORDS` with the options of the program in guests, so that it is built once. `false` when it failed.
pub fn cargo_run(words: &[&str]) -> Result<bool> {
    step::succeeds(static_cargo("run").args(["--quiet", "--"]).args(words))
}

/// A command of cargo with the profile, the flags and the folder of the program in guests.
fn static_cargo(word: &str) -> Command {
    let mut flags = std::env::var_os("RUSTFLAGS").unwrap_or_default();
    if !flags.is_empty() {
        flags.push(" ");
    }
    flags.push("-C target-feature=+crt-static");
    let mut command = step::cargo([word, "--profile", PROFILE, "--target", TARGET]);
    command.env("RUSTFLAGS", flags).env("CARGO_TARGET_DIR", cargo_folder());
    command
}

/// The test of the table.
fn failover() -> Result<bool> {
    requested(&prepare()?, "failover_table::", ("NETDUEL_FAILOVER_TABLE", OsStr::new("1")))
}

/// The test that runs the example of the README and keeps what it wrote.
fn transcript() -> Result<bool> {
    let prepared = prepare()?;
    let folder = prepared.folder().join("transcript");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let passed = requested(&prepared, "recorded::", ("NETDUEL_TRANSCRIPT", folder.as_os_str()))?;
    if passed && !folder.join("transcript.txt").exists() {
        bail!("the example did not run; the test has printed why it was skipped");
    }
    println!("the transcript and the reports are in {}", folder.display());
    Ok(passed)
}

/// A test that runs only when this variable requests it, with its output.
fn requested(prepared: &Prepared, module: &str, (name, value): Variable<'_>) -> Result<bool> {
    let mut command = step::cargo(["test", "--package", "netduel-guests", "--test", "it", module]);
    command.args(["--", "--nocapture"]).env(FOLDER_VARIABLE, prepared.folder()).env(name, value);
    step::succeeds(&mut command)
}

fn up(name: &str, words: &[&str]) -> Result<bool> {
    let Some(scene) = Scene::named(name) else {
        let names: Vec<&str> = SCENES.iter().map(|scene| scene.name).collect();
        bail!("failed to find the scene {name:?}: there are {}", names.join(", "));
    };
    let prepared = Prepared::open(&folder()).context("failed to use the prepared folder")?;
    if !prepared.has_kernel(scene.kernel) {
        prepared.add_kernel(scene.kernel).with_context(|| format!("failed to prepare the scene {name}"))?;
    }
    if scene.has_dpdk && !prepared.has_dpdk(scene.kernel) {
        bail!(
            "failed to prepare the scene {name}: there was no dpdk-testpmd with its drivers when the guests \
             were prepared; install it (`apt-get install dpdk-dev`), then run `cargo xtask guests prepare`"
        );
    }
    // Ctrl-C ends the command; this program then ends the bed and removes its folder.
    signal_hook::flag::register(SIGINT, Arc::new(AtomicBool::new(false)))
        .context("failed to handle SIGINT")?;
    let bed = Bed::boot(&prepared, scene).with_context(|| format!("failed to boot the scene {name}"))?;
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| OsString::from("sh"));
    let (program, arguments) = match words.split_first() {
        Some((program, arguments)) => (Path::new(program), arguments),
        None => (Path::new(&shell), &[][..]),
    };
    println!(
        "both guests run: ssh -F \"${BED_VARIABLE}/ssh_config\" a, or b; the end of this command ends them"
    );
    let mut command = bed.interactive_command(program);
    step::succeeds(command.args(arguments))
}
