//! Preconditions shared by all tests.

/// Whether every value is a number; a set with another value causes no warning, because it is an error of the caller.
pub(super) fn finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// The values in ascending order.
pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
