//! Several targets at a time: how long each may run, and what they print. Nothing here knows libFuzzer.
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

/// Seconds of all targets with `--quick`: a thirtieth of the time that the check may take in CI.
const QUICK_TOTAL_SECONDS: u32 = 180;
/// Seconds of a target with `--quick` at most.
const QUICK_SECONDS_MAX: u32 = 60;

/// The end of a target.
pub struct Outcome {
    /// Whether no input failed.
    pub passed: bool,
    /// What is printed about it: whole lines.
    pub text: String,
}

/// Runs every target with `run`, this number at a time, and prints what each returns; whether all passed.
pub fn run_all(
    targets: &[String],
    jobs: usize,
    run: impl Fn(&str) -> Result<Outcome> + Sync,
) -> Result<bool> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<bool> {
        let mut passed = true;
        while let Some(name) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run(name)?;
            // In one call, so that no other target prints between two lines.
            print!("{}", outcome.text);
            passed &= outcome.passed;
        }
        Ok(passed)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        let mut passed = true;
        for worker in workers {
            match worker.join() {
                Ok(ended) => passed &= ended?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(passed)
    })
}

/// Seconds of each target with `--quick`, when this number of them runs at a time.
pub fn quick_seconds(targets: usize, jobs: usize) -> u32 {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).max(1);
    let seconds = QUICK_TOTAL_SECONDS.saturating_mul(number(jobs)) / number(targets);
    seconds.clamp(1, QUICK_SECONDS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_run_takes_three_minutes_and_a_target_at_most_one() {
        let cases = [(24, 1, 7), (24, 2, 15), (24, 4, 30), (24, 8, 60), (24, 64, 60), (1, 1, 60)];
        for (count, jobs, seconds) in cases {
            assert_eq!(quick_seconds(count, jobs), seconds, "{count} targets, {jobs} at a time");
        }
    }

    #[test]
    fn every_target_is_run_once_and_one_that_fails_stops_no_other() {
        let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let seen = std::sync::Mutex::new(Vec::new());
        let run = |failing: &str| {
            run_all(&names, 3, |name| {
                seen.lock().unwrap().push(name.to_owned());
                Ok(Outcome { passed: name != failing, text: String::new() })
            })
        };
        assert!(run("none").unwrap() && !run("7").unwrap());
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        let mut twice = [names.clone(), names].concat();
        twice.sort();
        assert_eq!(seen, twice);
    }
}
