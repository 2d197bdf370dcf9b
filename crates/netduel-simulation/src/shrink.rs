//! Shrinks a failing seed: removes faults as long as a promise is still broken.
use std::fmt::Write as _;

use crate::case::{Case, Verdict};

/// A minimal set of faults with which a promise is still broken, and the result with its trace.
pub fn shrink(case: &Case) -> (Case, Verdict) {
    let mut best = case.clone();
    let mut has_shrunk = true;
    while has_shrunk {
        has_shrunk = false;
        'candidates: for part in 0..best.parts.len() {
            for fault in 0..=best.parts[part].len() {
                let mut smaller = best.clone();
                if fault < smaller.parts[part].len() {
                    smaller.parts[part].remove(fault);
                } else if smaller.parts[part].is_empty() && smaller.parts.len() > 1 {
                    smaller.parts.remove(part);
                } else {
                    continue;
                }
                if !smaller.play(false).violations.is_empty() {
                    best = smaller;
                    has_shrunk = true;
                    break 'candidates;
                }
            }
        }
    }
    let verdict = best.play(true);
    (best, verdict)
}

/// A failing case as text: the broken promises, the faults that break them, and the trace.
pub fn describe(case: &Case) -> String {
    let (smallest, verdict) = shrink(case);
    let mut text = format!("seed {} is broken\n", case.seed);
    for violation in &verdict.violations {
        let _ = writeln!(text, "  {violation}");
    }
    text += "with these faults:\n";
    for (part, faults) in smallest.parts.iter().enumerate() {
        for fault in faults {
            let _ = writeln!(text, "  part {part}: {fault}");
        }
    }
    text += "what happens:\n";
    for line in &verdict.trace {
        let _ = writeln!(text, "  {line}");
    }
    text + &format!("to see it again: cargo xtask bench simulate --seed {}\n", case.seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_ends_with_the_command_that_replays_the_seed() {
        let text = describe(&Case::of(117));
        assert!(text.ends_with("cargo xtask bench simulate --seed 117\n"), "{text}");
    }
}
