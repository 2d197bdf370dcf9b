//! Sums of counts. A run file may hold any number, so a sum ends at the largest number and panics nowhere. Pure.
use std::borrow::Borrow;

/// The sum of counts.
pub(crate) trait Total: Iterator {
    /// The sum, at most the largest number.
    fn total(self) -> u64
    where
        Self: Sized,
        Self::Item: Borrow<u64>,
    {
        self.fold(0, |sum, count| sum.saturating_add(*count.borrow()))
    }
}

impl<I: Iterator> Total for I {}

/// The sum of counts that are all known; absent when one is not.
pub(crate) fn total_of_known(mut counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
}

/// Adds a count to a sum.
pub(crate) fn add(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_ends_at_the_largest_number() {
        assert_eq!([1, 2, 3].iter().total(), 6);
        assert_eq!([u64::MAX, 1].into_iter().total(), u64::MAX);
        assert_eq!(total_of_known([Some(u64::MAX), Some(1)].into_iter()), Some(u64::MAX));
        assert_eq!(total_of_known([Some(1), None].into_iter()), None);
        let mut sum = u64::MAX;
        add(&mut sum, 1);
        assert_eq!(sum, u64::MAX);
    }
}
