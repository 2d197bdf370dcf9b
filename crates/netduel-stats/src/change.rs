//! Change points in a sequence of values, such as the medians of runs in the order of their time: where the level changed and stayed changed.
//!
//! The statistic is the largest standardised rank sum of the values before a point, over all points: Pettitt's test with the same weight for all
//! points, so that a change near the end is seen as soon as one in the middle. Its null distribution is that of random orders of the
//! same values, so it needs no assumption about their noise but that their order means nothing; ties are covered. The orders are drawn with a
//! fixed seed: equal input has equal output. Where a change is, the values say: ranks lose how far the levels are apart, and the lowest value
//! before a loss would move it. A trend, or noise that lasts for several values, is no random order and is shown as changes.
use crate::split_mix::SplitMix;

/// A change between two neighbouring values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Position of the first value after it.
    pub at: usize,
    /// The probability of so clear a change where the order means nothing.
    pub p_value: f64,
}

/// Fewest values on each side: one outlier is no change of level.
pub const SIDE_MIN: usize = 2;
/// Random orders. The smallest p value is one in this number.
const ORDERS: u32 = 10_000;
/// Relative size below which two statistics are equal: sums of the same ranks in another order differ by rounding.
const TIE: f64 = 1e-9;

/// The changes of a sequence in its order. `level` is the probability of any change where there is none, a fraction. The parts on both sides of a
/// change are searched again, each at half the level, so that one real change does not add false ones beyond the level.
/// Values that are not finite have no rank: the result is then empty.
pub fn changes(values: &[f64], level: f64) -> Vec<Change> {
    let mut found = Vec::new();
    if values.iter().all(|value| value.is_finite()) {
        search(values, 0, level, &mut found);
    }
    found.sort_by_key(|change| change.at);
    found
}

fn search(values: &[f64], offset: usize, level: f64, found: &mut Vec<Change>) {
    let Some((at, p_value)) = clearest(values, level) else { return };
    found.push(Change { at: offset + at, p_value });
    let (before, after) = values.split_at(at);
    search(before, offset, level / 2.0, found);
    search(after, offset + at, level / 2.0, found);
}

/// The clearest change of a sequence, if it is significant.
fn clearest(values: &[f64], level: f64) -> Option<(usize, f64)> {
    let mut ranks = ranks(values);
    let observed = largest(&ranks)?;
    let mut chance = Orders(SplitMix::new(0x6e65_7464_7565_6c00 ^ values.len() as u64));
    let mut as_clear = 1;
    let accepted = (level * f64::from(ORDERS)).floor();
    for _ in 1..ORDERS {
        chance.shuffle(&mut ranks);
        let random = largest(&ranks).unwrap_or(0.0);
        as_clear += u32::from(random >= observed * (1.0 - TIE));
        if f64::from(as_clear) > accepted {
            return None;
        }
    }
    Some((place(values)?, f64::from(as_clear) / f64::from(ORDERS)))
}

/// The point beside which the values are nearest to the medians of their sides: least sum of absolute deviations.
fn place(values: &[f64]) -> Option<usize> {
    let last = values.len().checked_sub(SIDE_MIN)?;
    let spread = |at: usize| {
        let (before, after) = values.split_at(at);
        deviation(before) + deviation(after)
    };
    (SIDE_MIN..=last).min_by(|one, other| spread(*one).total_cmp(&spread(*other)))
}

/// The sum of the absolute deviations from the median.
fn deviation(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    values.iter().map(|value| (value - middle).abs()).sum()
}

/// The largest standardised rank sum before a point, up to a factor that all orders share.
fn largest(ranks: &[f64]) -> Option<f64> {
    let count = ranks.len();
    let mean = f64::midpoint(count as f64, 1.0);
    let (mut sum, mut largest) = (0.0, 0.0_f64);
    for (index, rank) in ranks.iter().enumerate() {
        sum += rank - mean;
        let (before, after) = (index + 1, count - index - 1);
        if before < SIDE_MIN || after < SIDE_MIN {
            continue;
        }
        largest = largest.max(sum.abs() / ((before * after) as f64).sqrt());
    }
    (largest > 0.0).then_some(largest)
}

/// The rank of each value from 1; equal values share the middle of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let same = |place: &&usize| values[**place].total_cmp(&values[order[start]]).is_eq();
        let end = start + order[start..].iter().take_while(same).count();
        let middle = (start + end + 1) as f64 / 2.0;
        order[start..end].iter().for_each(|place| ranks[*place] = middle);
        start = end;
    }
    ranks
}

/// Random orders.
struct Orders(SplitMix);

impl Orders {
    /// Fisher and Yates; the bias of the multiplication is below 2^-32 for any sequence that fits into memory.
    fn shuffle(&mut self, values: &mut [f64]) {
        for last in (1..values.len()).rev() {
            let place = (u128::from(self.0.bits()) * (last as u128 + 1)) >> 64;
            values.swap(last, place as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_middle_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0, 3.0]), [4.0, 1.0, 4.0, 2.0, 4.0]);
        assert!(ranks(&[]).is_empty());
    }

    #[test]
    fn clear_step_is_found_where_it_is() {
        let step: Vec<f64> =
            (0..16).map(|index| if index < 10 { 100.0 } else { 90.0 } + f64::from(index % 3)).collect();
        let found = changes(&step, 0.05);
        assert_eq!(found.iter().map(|change| change.at).collect::<Vec<_>>(), [10]);
        assert!(found[0].p_value <= 0.001, "{found:?}");
        let two: Vec<f64> =
            (0..30).map(|index| [100.0, 80.0, 60.0][index / 10] + (index * 7 % 5) as f64).collect();
        assert_eq!(changes(&two, 0.05).iter().map(|change| change.at).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn lowest_value_before_a_loss_is_no_part_of_it() {
        // By ranks the change would be at 9.
        let mut values: Vec<f64> = (0..16).map(|index| if index < 10 { 100.0 } else { 90.0 }).collect();
        values.iter_mut().zip(0..).for_each(|(value, index)| *value += f64::from(index * 5 % 7) / 10.0);
        values[9] = 99.5;
        assert_eq!(changes(&values, 0.05).iter().map(|change| change.at).collect::<Vec<_>>(), [10]);
    }

    #[test]
    fn short_constant_and_unknown_sequences_have_no_change() {
        assert_eq!(changes(&[], 0.05), []);
        assert_eq!(changes(&[1.0, 2.0, 9.0], 0.05), []);
        assert_eq!(changes(&[5.0; 40], 0.05), []);
        // Two of 70 orders of 4 and 4 are as clear: below that no sequence of 7 is.
        assert_eq!(changes(&[1.0, 2.0, 3.0, 14.0, 15.0, 16.0, 17.0], 0.05), []);
        assert_eq!(changes(&[1.0, 2.0, 3.0, 4.0, 15.0, 16.0, 17.0, 18.0], 0.05).len(), 1);
        assert_eq!(changes(&[1.0, 1.0, 1.0, 1.0, f64::NAN, 9.0, 9.0, 9.0, 9.0], 0.05), []);
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut values: Vec<f64> = (0..20).map(|index| 100.0 + f64::from(index * 7 % 11)).collect();
        values[19] = 5.0;
        assert_eq!(changes(&values, 0.05), []);
    }
}
