//! Holm's step-down correction (Holm 1979): keeps the family-wise error rate when one run has many comparisons.
//!
//! It holds whatever the questions have to do with each other, which throughput, latency and CPU of one trial always do.

/// The p values corrected for their number: a question is answered at level alpha when its corrected value is at most alpha.
/// In the order given. A value that is not a number counts as 1.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (step, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max((clean(p[index]) * (p.len() - step) as f64).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

/// The level at which each question was tested when the whole family is at `alpha`: alpha over the number of questions that
/// were still open. After the first one that stays open no more are closed, and all that are left share its level. An
/// interval at 1 minus its level therefore leaves out the null value exactly when Holm rejects it.
///
/// These intervals agree with the decisions; they do not all cover at once with probability 1 - alpha, for no such
/// intervals go with a step-down test.
pub fn levels(p: &[f64], alpha: f64) -> Vec<f64> {
    let mut levels = vec![alpha; p.len()];
    let mut open = p.len();
    let mut stopped = false;
    for index in ascending(p) {
        levels[index] = alpha / open as f64;
        stopped |= clean(p[index]) > levels[index];
        open -= usize::from(!stopped);
    }
    levels
}

/// Indices by ascending value; equal values stay in order.
fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&one, &other| clean(p[one]).total_cmp(&clean(p[other])));
    order
}

fn clean(p: f64) -> f64 {
    if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn four_questions_by_hand() {
        let p = [0.01, 0.04, 0.03, 0.005];
        for (seen, expected) in adjusted(&p).iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((seen - expected).abs() < 1e-15);
        }
        // 0.005 <= 0.05 / 4 and 0.01 <= 0.05 / 3 close; 0.03 > 0.05 / 2 stops, and 0.04 stays with it.
        assert_eq!(levels(&p, 0.05), [0.05 / 3.0, 0.05 / 2.0, 0.05 / 2.0, 0.05 / 4.0]);
        assert_eq!(levels(&[0.001, 0.04], 0.05), [0.025, 0.05]);
        assert_eq!((adjusted(&[]), levels(&[], 0.05)), (vec![], vec![]));
        assert_eq!(adjusted(&[f64::NAN, 0.01]), [1.0, 0.02]);
    }

    proptest! {
        #[test]
        fn levels_and_corrected_values_decide_alike(p in proptest::collection::vec(0.0..0.2_f64, 1..12), alpha in 0.001..0.2_f64) {
            for ((p, corrected), level) in p.iter().zip(adjusted(&p)).zip(levels(&p, alpha)) {
                prop_assert_eq!(corrected <= alpha, *p <= level);
                prop_assert!(level >= alpha / 12.0 && level <= alpha);
            }
        }
    }
}
