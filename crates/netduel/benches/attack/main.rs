//! Attacks on the whole program that are the same for a seed: `cargo xtask bench attack`. Run files with one changed bit, plans with pieces
//! cut out and put in, and names of labs and locks that another user holds. No command may end with a signal or by a fault of its own, and
//! nothing damaged may be taken for sound. Runs in namespaces of its own, and touches no process and no setting of the machine.
mod flips;
mod names;
mod plans;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Parser as _;

use random::Choices;

/// Attacks the program, and checks how its commands end.
#[derive(Debug, clap::Parser)]
#[command(name = "attack", args_override_self = true)]
struct Arguments {
    /// Run files with one changed bit.
    #[arg(long, default_value_t = 200)]
    flips: u64,
    /// Changed plans.
    #[arg(long, default_value_t = 600)]
    plans: u64,
    /// Names that another user holds.
    #[arg(long, default_value_t = 20_000)]
    names: u64,
    /// Seed: the same attacks for the same seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    start: stage::Start,
}

/// How a command ended.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    stage::run(&arguments.start, || bench(&arguments))
}

fn bench(arguments: &Arguments) -> Result<bool> {
    let seed = arguments.seed;
    println!("attack: seed {seed}");
    let folder = stage::folder("attack")?;
    let run = if arguments.flips > 0 { flips::sound_run(&folder)? } else { Vec::new() };
    let flips = series("flips", arguments.flips, |number| {
        flips::attack(&folder, &run, Choices::of_case(seed, number))
    });
    let sound = plans::sound()?;
    let plans = series("plans", arguments.plans, |number| {
        plans::attack(&folder, &sound, Choices::of_case(seed, number))
    });
    let names = series("names", u64::from(arguments.names > 0), |number| {
        names::attack(&folder, arguments.names, Choices::of_case(seed, number))
    });
    Ok(flips && plans && names)
}

/// Makes attacks of one kind, and counts their results; false when one is wrong.
fn series(name: &str, count: u64, mut attack: impl FnMut(u64) -> Result<&'static str>) -> bool {
    let mut results: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = 0_u64;
    for number in 0..count {
        match attack(number) {
            Ok(result) => *results.entry(result).or_default() += 1,
            Err(error) => {
                wrong += 1;
                println!("attack: {name}, number {number}: WRONG: {error:#}");
            }
        }
    }
    for (result, count) in results {
        println!("figure {name}-{result} {count} attacks");
    }
    println!("figure {name}-wrong {wrong} attacks");
    wrong == 0
}

/// Runs netduel to its end. Its code must be a documented one other than 1, and its text must not control a terminal.
fn netduel(folder: &Path, words: &[&str]) -> Result<Ended> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netduel"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("NETDUEL_STORE", folder.join("store")).env("XDG_STATE_HOME", folder.join("state"));
    let output = command.output().context("failed to start netduel")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().filter(|code| matches!(code, 0 | 2..=12));
    let shown = words.join(" ");
    let code =
        code.with_context(|| format!("`netduel {shown}` ended with {}: {stderr:.2000}", output.status))?;
    let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let controls = stdout.contains(is_control) || stderr.contains(is_control);
    ensure!(!controls, "`netduel {shown}` printed control characters: {stdout:?} {stderr:?}");
    Ok(Ended { code, stdout, stderr })
}
