//! Plays many seeds, on one thread per core. Each seed runs on one thread from start to end.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::case::{Case, Verdict};
use crate::sabotage::Sabotage;
use crate::shrink::{describe, shrink};

/// Failing seeds that are printed with their trace.
const DESCRIBED_MAX: usize = 3;

/// The results of many seeds.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Seeds that were played.
    pub seeds: u64,
    /// Faults that occurred.
    pub hits: u64,
    /// Counts of how parts of runs ended, by the first word.
    pub ends: BTreeMap<String, u64>,
    /// Seeds that broke a promise.
    pub broken: Vec<(u64, String)>,
}

/// Plays `count` seeds from `first` on.
pub fn play(first: u64, count: u64) -> Outcome {
    let next = AtomicU64::new(first);
    let outcome = Mutex::new(Outcome::default());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let verdict = Case::of(seed).play(false);
                    outcome.lock().unwrap_or_else(PoisonError::into_inner).add(seed, &verdict);
                }
            });
        }
    });
    let mut outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.broken.sort_unstable();
    outcome
}

impl Outcome {
    fn add(&mut self, seed: u64, verdict: &Verdict) {
        self.seeds += 1;
        self.hits += verdict.hits as u64;
        for end in &verdict.ends {
            let word = end.split([' ', ':', '{']).next().unwrap_or_default().to_owned();
            *self.ends.entry(word).or_default() += 1;
        }
        if let Some(violation) = verdict.violations.first() {
            self.broken.push((seed, violation.clone()));
        }
    }

    /// The failing seeds, the first of them shrunk and with its trace; empty when there is none.
    pub fn report(&self) -> String {
        let shrunk =
            self.broken.iter().take(DESCRIBED_MAX).map(|(seed, _)| describe(&Case::of(*seed)) + "\n");
        let all = self.broken.iter().map(|(seed, violation)| format!("seed {seed}: {violation}\n"));
        shrunk.chain(all).collect()
    }
}

/// One seed with a broken product.
#[derive(Debug)]
pub struct Broken {
    /// In what way it is broken.
    pub sabotage: Option<Sabotage>,
    /// Faults of the seed, whether they occurred or not.
    pub faults: usize,
    /// The promises that it breaks.
    pub violations: Vec<String>,
}

impl Broken {
    fn new(case: &Case, verdict: Verdict) -> Self {
        let faults = case.parts.iter().map(Vec::len).sum();
        Self { sabotage: case.sabotage, faults, violations: verdict.violations }
    }

    /// Whether a broken promise is reported with these words.
    pub fn reports(&self, words: &str) -> bool {
        self.violations.iter().any(|violation| violation.contains(words))
    }
}

/// Plays one seed with a broken product.
pub fn play_broken(seed: u64, sabotage: Sabotage) -> Broken {
    let case = Case::of(seed).with(sabotage);
    Broken::new(&case, case.play(false))
}

/// The same with the fewest faults with which a promise is still broken.
pub fn shrink_broken(seed: u64, sabotage: Sabotage) -> Broken {
    let (case, verdict) = shrink(&Case::of(seed).with(sabotage));
    Broken::new(&case, verdict)
}

/// Everything that happens in one seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Its faults, its events, its ends and the promises that it breaks, as lines.
    pub text: String,
    /// Whether it keeps every promise.
    pub is_kept: bool,
}

/// One seed with its trace, whether it breaks a promise or not.
pub fn trace(seed: u64) -> Trace {
    let case = Case::of(seed);
    let verdict = case.play(true);
    Trace { is_kept: verdict.violations.is_empty(), text: lines(&case, verdict) }
}

fn lines(case: &Case, verdict: Verdict) -> String {
    let mut text = String::new();
    for (part, faults) in case.parts.iter().enumerate() {
        for fault in faults {
            let _ = writeln!(text, "part {part}: {fault}");
        }
    }
    for line in verdict.trace {
        text += &line;
        text.push('\n');
    }
    text + &format!("ends: {:?}\nbroken: {:?}\n", verdict.ends, verdict.violations)
}
