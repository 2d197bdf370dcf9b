//! Holm's step-down correction (Holm 1979): keeps the family-wise error rate when one run has many comparisons.
//!
//! It is valid for dependent comparisons; throughput, latency and CPU of one trial are always dependent.

/// The p values adjusted for their number, in the given order: a null hypothesis is rejected at level alpha when its adjusted
/// value is at most alpha. A value that is not a number counts as 1.
pub fn adjusted(p: &[f64]) -> Vec<f64> {
    let mut corrected = vec![1.0; p.len()];
    let mut largest: f64 = 0.0;
    for (step, index) in ascending(p).into_iter().enumerate() {
        largest = largest.max((clean(p[index]) * (p.len() - step) as f64).min(1.0));
        corrected[index] = largest;
    }
    corrected
}

/// The level at which each comparison was tested when the family is tested at `alpha`: alpha divided by the number of comparisons
/// still open. After the first one that is not rejected the procedure stops, and all others share its level. An interval at 1
/// minus its level therefore excludes the null value exactly when Holm's procedure rejects it.
///
/// These intervals agree with the decisions. Their simultaneous coverage is not 1 - alpha, because no such intervals exist for a
/// step-down test.
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
    fn four_comparisons_match_a_manual_calculation() {
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
