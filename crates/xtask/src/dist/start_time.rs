//! The time that the program needs to start, beside the shortest program of the system. It judges nothing: a busy machine takes longer.
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::stopwatch::Stopwatch;

/// Odd, so that one start is the median.
const STARTS: usize = 101;

/// The medians of starts in turn, as a line for people.
pub fn measured(program: &Path) -> Result<String> {
    let (mut ours, mut shortest) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(time_of(Command::new(program).arg("--version"))?);
        shortest.push(time_of(&mut Command::new("true"))?);
    }
    let (ours, shortest) = (median_ms(ours), median_ms(shortest));
    Ok(format!("`netduel --version` takes {ours:.1} ms (median of {STARTS}), `true` {shortest:.1} ms"))
}

fn time_of(command: &mut Command) -> Result<Duration> {
    let start = Stopwatch::start();
    command.stdin(Stdio::null()).stdout(Stdio::null()).status().context("failed to start a program")?;
    Ok(start.elapsed())
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e3
}
