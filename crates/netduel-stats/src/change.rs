//! Change points in a sequence of values, such as the medians of runs in the order of their time: where the level changed and stayed changed.
//!
//! The statistic is the largest standardised rank sum of the values before a point, over all points: Pettitt's test with the same weight for all
//! points, so that a change near the end is seen as soon as one in the middle. Its null distribution is that of random orders of the
//! same values, so it needs no assumption about their noise but that their order means nothing; ties are covered. The orders are drawn with a
//! fixed seed: equal input has equal output. Where a change is, the values say: ranks lose how far the levels are apart, and the lowest value
//! before a loss would move it. A trend, or noise that lasts for several values, is no random order and is shown as changes. A level is a
//! median: values that are mostly equal on both sides have one level, however the others are spread.
use crate::split_mix::SplitMix;
use crate::summary::median;

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
/// Random orders. The smallest p value is one in this number, but for halves that do not overlap, whose p value is exact.
const ORDERS: u32 = 10_000;
/// Relative size below which two statistics are equal: sums of the same ranks in another order differ by rounding.
const TIE: f64 = 1e-9;

/// The changes of a sequence in its order. `level` is the probability of any change where there is none, a fraction. The parts on both sides of a
/// change are searched again, each at half the level, so that one real change does not add false ones beyond the level. The medians of the
/// values between two changes differ from those beside them.
/// Values that are not finite have no rank: the result is then empty.
pub fn changes(values: &[f64], level: f64) -> Vec<Change> {
    let mut found = Vec::new();
    if values.iter().all(|value| value.is_finite()) {
        search(values, 0, level, &mut found);
    }
    found.sort_by_key(|change| change.at);
    while let Some(place) = change_without_a_step(values, &found) {
        found.remove(place);
    }
    found
}

/// The number of values from which on a change is found at this level, a fraction above 0, when both halves lie apart and no values are equal;
/// a change near an end needs more.
pub fn values_needed(level: f64) -> usize {
    let mut count = 2 * SIDE_MIN;
    // Also without a level this ends: where the probability is too small for a number.
    while least_p_value(count) > level.max(0.0) {
        count += 1;
    }
    count
}

/// The probability of the clearest order of so many values that are not equal: the lower half, or the upper one, comes first. Of an odd number
/// the value in the middle belongs to either half.
fn least_p_value(count: usize) -> f64 {
    let half = count / 2;
    let of_one_half: f64 = (1..=half).map(|place| place as f64 / (half + place) as f64).product();
    2.0 * of_one_half
}

/// The statistic of [`largest`] in that order, which no other order exceeds.
fn largest_of_any(count: usize) -> f64 {
    let half = count / 2;
    ((half * (count - half)) as f64).sqrt() / 2.0
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
    let at = place(values, &ranks)?;
    if observed >= largest_of_any(values.len()) * (1.0 - TIE) {
        let p_value = least_p_value(values.len());
        return (p_value <= level).then_some((at, p_value));
    }
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
    Some((at, f64::from(as_clear) / f64::from(ORDERS)))
}

/// The point beside which the values are nearest to the medians of their sides: least sum of absolute deviations. Of points that are equally
/// near, as among values that are mostly equal, it is the one with the largest rank sum. Absent where the medians of both sides are equal at
/// each point: then values differ, and no level does.
fn place(values: &[f64], ranks: &[f64]) -> Option<usize> {
    let last = values.len().checked_sub(SIDE_MIN)?;
    let clear: Vec<(usize, f64)> = rank_sums(ranks).collect();
    let mut points: Vec<(usize, f64)> = Vec::new();
    for at in SIDE_MIN..=last {
        let (before, after) = values.split_at(at);
        if !is_same(median(before)?, median(after)?) {
            points.push((at, deviation(before) + deviation(after)));
        }
    }
    let least = points.iter().map(|(_, deviation)| *deviation).reduce(f64::min)?;
    let nearest = points.iter().filter(|(_, deviation)| *deviation <= least * (1.0 + TIE));
    let clearness = |at: usize| clear.iter().find(|(own, _)| *own == at).map_or(0.0, |(_, sum)| *sum);
    let best = nearest.rev().max_by(|(one, _), (other, _)| clearness(*one).total_cmp(&clearness(*other)));
    best.map(|(at, _)| *at)
}

/// Whether two levels are equal but for rounding.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= one.abs().max(other.abs()) * TIE
}

/// The position of the first change whose sides have the same median: parts beside a change that were searched too.
fn change_without_a_step(values: &[f64], found: &[Change]) -> Option<usize> {
    let starts = [0].into_iter().chain(found.iter().map(|change| change.at));
    let ends = found.iter().map(|change| change.at).chain([values.len()]);
    let levels: Vec<Option<f64>> = starts.zip(ends).map(|(from, to)| median(values.get(from..to)?)).collect();
    let is_level = |beside: &[Option<f64>]| {
        let [Some(before), Some(after)] = beside else { return false };
        is_same(*before, *after)
    };
    levels.windows(2).position(is_level)
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
    let largest = rank_sums(ranks).map(|(_, sum)| sum).fold(0.0, f64::max);
    (largest > 0.0).then_some(largest)
}

/// The size of the standardised rank sum before each point that has enough values on each side, up to a factor that all orders share.
fn rank_sums(ranks: &[f64]) -> impl Iterator<Item = (usize, f64)> {
    let count = ranks.len();
    let mean = f64::midpoint(count as f64, 1.0);
    let mut sum = 0.0;
    ranks.iter().enumerate().filter_map(move |(index, rank)| {
        sum += rank - mean;
        let (before, after) = (index + 1, count - index - 1);
        let is_point = before >= SIDE_MIN && after >= SIDE_MIN;
        is_point.then(|| (before, f64::abs(sum) / ((before * after) as f64).sqrt()))
    })
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
    fn values_that_are_mostly_equal_change_where_their_median_does() {
        // Only the second half has values above 0, so its ranks are clearly higher. Its median is 0 as before.
        let mut some = vec![0.0; 60];
        (31..58).step_by(2).for_each(|place| some[place] = 5.0);
        assert_eq!(changes(&some, 0.05), []);
        // From the 21st on three of four values are 1.
        let mut most = vec![0.0; 32];
        (20..32).filter(|place| place % 4 != 3).for_each(|place| most[place] = 1.0);
        let found = changes(&most, 0.05);
        assert_eq!(found.iter().map(|change| change.at).collect::<Vec<_>>(), [20], "{found:?}");
        // Levels that differ by rounding.
        let rounded: Vec<f64> = (0..20).map(|place| if place < 10 { 0.3 } else { 0.1 + 0.2 }).collect();
        assert_eq!(changes(&rounded, 0.05), []);
    }

    #[test]
    fn neighbouring_changes_have_different_levels() {
        let mut chance = SplitMix::new(5);
        for _ in 0..300 {
            let values: Vec<f64> = (0..40).map(|place| (chance.bits() % (2 + place / 14)) as f64).collect();
            let found = changes(&values, 0.2);
            assert_eq!(change_without_a_step(&values, &found), None, "{values:?}: {found:?}");
        }
    }

    #[test]
    fn clear_step_is_found_from_the_needed_values_on() {
        for (series, needed) in [(1, 8), (2, 10), (4, 10), (6, 10), (7, 12), (23, 12), (24, 14), (1000, 18)] {
            let level = 0.05 / f64::from(series);
            assert_eq!(values_needed(level), needed, "{series} series");
            let step = |count: usize| -> Vec<f64> {
                (0..count).map(|place| place as f64 + if place < count / 2 { 0.0 } else { 100.0 }).collect()
            };
            assert_eq!(changes(&step(needed), level).len(), 1, "{series} series");
            assert_eq!(changes(&step(needed - 1), level), [], "{series} series");
        }
        // The smallest level of a history: 4096 arms, workloads and metrics.
        assert!(values_needed(0.05 / 4096_f64.powi(3)) < 60);
        assert!([0.0, -1.0, f64::NAN].into_iter().all(|level| values_needed(level) > 1000));
    }

    #[test]
    fn one_outlier_is_no_change() {
        let mut values: Vec<f64> = (0..20).map(|index| 100.0 + f64::from(index * 7 % 11)).collect();
        values[19] = 5.0;
        assert_eq!(changes(&values, 0.05), []);
    }
}
