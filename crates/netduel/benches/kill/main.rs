//! kill -9 of random processes in random phases of runs: `cargo xtask bench kill --kills N`. After each kill nothing may be left: no
//! process, namespace, socket of a lab, XDP program, sysctl, queueing discipline, offload or MTU, and no finished trial may be lost.
//! Half of the runs are then resumed. Runs in namespaces of its own, and touches no process and no setting of the machine.
mod case;
mod processes;
#[path = "../support/random.rs"]
mod random;
mod scene;
#[path = "../support/stage.rs"]
mod stage;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use case::{Killed, PHASES, Phase};
use processes::{TARGETS, Target};

/// Kills random processes of runs, and checks what is left.
#[derive(Debug, clap::Parser)]
#[command(name = "kill", args_override_self = true)]
struct Arguments {
    /// Number of kills.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    kills: u64,
    /// Number of the first kill, to repeat one: its moment and its processes depend on the seed and its number only, but the
    /// schedule of the machine does not.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Seed [default: random; always printed].
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    start: stage::Start,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    stage::run(&arguments.start, || bench(&arguments))
}

fn bench(arguments: &Arguments) -> Result<bool> {
    let seed = if let Some(seed) = arguments.seed {
        seed
    } else {
        let random = netduel_sys::random::bytes16().context("failed to draw a seed")?;
        (u128::from_ne_bytes(random) >> 96) as u64
    };
    println!("kill: seed {seed}");
    scene::build()?;
    let before = scene::state()?;
    let mut all: Vec<Killed> = Vec::new();
    let mut failures = 0_u64;
    let mut number = arguments.from;
    while (all.len() as u64) + failures < arguments.kills {
        match case::play(seed, number, &before) {
            Ok(Some(killed)) => all.push(killed),
            Ok(None) => {}
            Err(error) => {
                failures += 1;
                println!("kill: seed {seed}, number {number}: WRONG: {error:#}");
                println!("repeat it with: cargo xtask bench kill --seed {seed} --from {number} --kills 1");
                let after = scene::state()?;
                if after != before {
                    println!("the hosts stay changed, so no other kill can be judged");
                    break;
                }
            }
        }
        number += 1;
        if number.is_multiple_of(20) {
            println!("kill: {} of {} kills, {failures} wrong", all.len() as u64 + failures, arguments.kills);
        }
    }
    print(&all);
    println!("figure kills {} kills", all.len() as u64 + failures);
    println!("figure kills-that-left-something {failures} kills");
    println!("figure kills-followed-by-resume {} kills", all.iter().filter(|killed| killed.resumed).count());
    println!(
        "figure kills-restored-by-the-next-agent {} kills",
        all.iter().filter(|killed| killed.restored_later).count()
    );
    Ok(failures == 0)
}

/// Kills without a fault, by target and phase, and by kind of plan.
fn print(all: &[Killed]) {
    let mut counts: BTreeMap<(Target, Phase), usize> = BTreeMap::new();
    for killed in all {
        *counts.entry((killed.target, killed.phase)).or_default() += 1;
    }
    print!("\n{:<32}", "killed, nothing left");
    for (_, name) in PHASES {
        print!("{name:>11}");
    }
    println!("{:>11}", "all");
    for target in TARGETS {
        print!("{target:<32}");
        let row = PHASES.map(|(phase, _)| counts.get(&(target, phase)).copied().unwrap_or(0));
        for count in row {
            print!("{count:>11}");
        }
        println!("{:>11}", row.iter().sum::<usize>());
    }
    for scene in scene::SCENES {
        println!("plans of the kind {scene}: {}", all.iter().filter(|killed| killed.scene == scene).count());
    }
}
