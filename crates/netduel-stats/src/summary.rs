//! Summaries of a few numbers: mean with its error, median, quantile, spread.
//!
//! A set with a number that is not finite has no summary: it is an error of the caller, and dropping the number would hide it.

/// A mean with its number of values and its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean, in the unit of the values.
    pub mean: f64,
    /// Standard error: sample standard deviation divided by the square root of `n`; absent for a single value.
    pub standard_error: Option<f64>,
}

/// The mean of the values; absent when there are none or one is not finite.
pub fn mean(values: &[f64]) -> Option<Mean> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let standard_error = (n > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (n - 1) as f64 / n as f64).sqrt()
    });
    Some(Mean { n, mean, standard_error })
}

/// The median: the middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The `q` quantile, `q` from 0 to 1, by linear interpolation (definition 7 of Hyndman and Fan, 1996, the default of
/// spreadsheets, R and NumPy).
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&q) || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(quantile_of_sorted(&sorted, q))
}

/// The same for at least one value, sorted and finite, and `q` within 0 to 1.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let position = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    let weight = position.fract();
    below * (1.0 - weight) + above * weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_match_a_manual_calculation() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let Mean { n, mean, standard_error } = mean(&values).unwrap();
        assert_eq!((n, mean), (8, 5.0));
        // The squared deviations from 5 sum to 32; 32 / 7 is the variance.
        assert!((standard_error.unwrap() - (32.0_f64 / 7.0 / 8.0).sqrt()).abs() < 1e-15);
        assert_eq!(median(&values), Some(4.5));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(quantile(&[10.0, 20.0, 30.0, 40.0, 50.0], 0.9), Some(46.0));
        assert_eq!((quantile(&values, 0.0), quantile(&values, 1.0)), (Some(2.0), Some(9.0)));
    }

    #[test]
    fn undefined_summaries_are_absent() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]).unwrap().standard_error, None);
        assert_eq!(mean(&[3.0, f64::NAN]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[f64::INFINITY]), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
    }
}
