//! Plays many seeds of the simulation, or one: `cargo xtask bench simulate --seeds N`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use netduel_simulation::campaign;

/// The default number of seeds.
const SEEDS: u64 = 100_000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse::<u64>().ok()
    };
    if words.iter().any(|word| word == "--lifeline") {
        // The end of the input means that the starting process has ended.
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            std::process::exit(1);
        });
    }
    if let Some(seed) = number("--seed") {
        let trace = campaign::trace(seed);
        println!("{}", trace.text);
        return if trace.is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let outcome = campaign::play(number("--from").unwrap_or(0), number("--seeds").unwrap_or(SEEDS));
    println!("figure seeds {} seeds", outcome.seeds);
    println!("figure faults {} faults", outcome.hits);
    println!("figure broken {} seeds", outcome.broken.len());
    println!("ends of parts: {:?}", outcome.ends);
    if outcome.broken.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{}", outcome.report());
    ExitCode::FAILURE
}
