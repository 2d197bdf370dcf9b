//! The time that a program needs to start, beside the shortest program of the system. It judges no time: a busy machine takes longer.
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::machine::Machine;
use crate::stopwatch::Stopwatch;

/// Odd, so that one start is the median.
const STARTS: usize = 21;

/// The medians of starts in turn, as a line for people. A program of another processor starts through the emulator.
pub fn measured(machine: Machine, program: &Path) -> Result<String> {
    let (mut ours, mut shortest) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(time_of(machine.direct_command(program).arg("--version"))?);
        shortest.push(time_of(&mut Command::new("true"))?);
    }
    let (ours, shortest) = (median_ms(ours), median_ms(shortest));
    let how = if machine.is_native() { "" } else { " through QEMU, which translates it at each start" };
    Ok(format!(
        "{}: `netduel --version` takes {ours:.1} ms{how}, `true` {shortest:.1} ms (medians of {STARTS})",
        machine.name()
    ))
}

/// The time from start to end of a program that succeeds.
fn time_of(command: &mut Command) -> Result<Duration> {
    let start = Stopwatch::start();
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let elapsed = start.elapsed();
    let status = status.context("failed to start a program")?;
    ensure!(status.success(), "a program that only starts ended with {status}");
    Ok(elapsed)
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_that_fails_has_no_start_time() {
        let machine = Machine::ALL.into_iter().find(|machine| machine.is_native()).unwrap();
        let line = measured(machine, Path::new("true")).unwrap();
        assert!(line.starts_with(machine.name()) && !line.contains("QEMU"), "{line}");
        let error = measured(machine, Path::new("false")).unwrap_err().to_string();
        assert!(error.contains("a program that only starts"), "{error}");
    }

    #[test]
    fn median_is_that_of_one_start() {
        let times = [9, 1, 2].map(Duration::from_millis);
        assert!((median_ms(times.to_vec()) - 2.0).abs() < 1e-9);
    }
}
