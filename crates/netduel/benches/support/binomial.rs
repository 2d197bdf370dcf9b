//! The exact interval of a probability from a count (Clopper and Pearson 1934).

/// Error of the interval on each side.
const SIDE: f64 = 0.025;

/// The exact interval of a probability with `count` events in `total`.
pub fn interval(total: u64, count: u64) -> (f64, f64) {
    let low = if count == 0 { 0.0 } else { solve(|chance| SIDE - at_least(total, count, chance)) };
    let high =
        if count == total { 1.0 } else { solve(|chance| 1.0 - SIDE - at_least(total, count + 1, chance)) };
    (low, high)
}

/// The zero of a decreasing function between 0 and 1.
fn solve(function: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if function(middle) > 0.0 { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The probability of `count` or more events in `total`, each with this probability.
fn at_least(total: u64, count: u64, chance: f64) -> f64 {
    if chance <= 0.0 || chance >= 1.0 {
        return if chance <= 0.0 && count > 0 { 0.0 } else { 1.0 };
    }
    // Each term from the previous one, as logarithms: the first may be too small for a number.
    let mut log = total as f64 * (1.0 - chance).ln();
    let mut sum = if count == 0 { log.exp() } else { 0.0 };
    for index in 1..=total {
        log += ((total - index + 1) as f64 / index as f64).ln() + (chance / (1.0 - chance)).ln();
        if index >= count {
            sum += log.exp();
        }
    }
    sum
}
