//! Histograms of the parts of round trips, and sums of the parts by duration of the round trip. Recording does not allocate.
use netduel_model::stamps::{Part, PartRecord, StampLevel};
use netduel_stats::histogram::Histogram;

/// Levels of an octave.
const LEVELS_OF_OCTAVE: u64 = 8;
/// Wholes shorter than this are of the first level; the scale begins where an eighth of an octave is one nanosecond.
const WHOLE_MIN: u64 = 8;

/// A part's place in arrays over all parts.
const fn index(part: Part) -> usize {
    part as usize
}

/// Lengths by part; absent parts are 0.
pub(super) type Lengths = [u64; Part::ALL.len()];

/// The parts of the round trips of one end.
pub(super) struct Parts {
    kinds: Vec<Part>,
    histograms: Vec<Histogram>,
    levels: Vec<(u64, Lengths)>,
}

impl Parts {
    /// Of these parts, in the order of a round trip.
    pub(super) fn new(kinds: &[Part]) -> Self {
        Self {
            kinds: kinds.to_vec(),
            histograms: kinds.iter().map(|_| Histogram::new()).collect(),
            levels: vec![(0, Lengths::default()); level(u64::MAX) + 1],
        }
    }

    /// Counts one round trip.
    pub(super) fn record(&mut self, lengths: &Lengths) {
        let whole = lengths.iter().sum();
        for (part, histogram) in self.kinds.iter().zip(&mut self.histograms) {
            histogram.record(lengths[index(*part)]);
        }
        let (count, sums) = &mut self.levels[level(whole)];
        *count += 1;
        for (sum, length) in sums.iter_mut().zip(lengths) {
            *sum += length;
        }
    }

    pub(super) fn histograms(&self) -> Vec<PartRecord> {
        let records = self.kinds.iter().zip(&self.histograms);
        records
            .map(|(part, histogram)| PartRecord { part: *part, histogram: histogram.to_record() })
            .collect()
    }

    pub(super) fn levels(&self) -> Vec<StampLevel> {
        let used = self.levels.iter().enumerate().filter(|(_, (count, _))| *count > 0);
        used.map(|(level, (count, sums))| StampLevel {
            round_trip_max_ns: longest(level),
            count: *count,
            sums_ns: self.kinds.iter().map(|part| sums[index(*part)]).collect(),
        })
        .collect()
    }
}

/// The level of a length.
fn level(whole: u64) -> usize {
    let whole = whole.max(WHOLE_MIN);
    let octave = u64::from(whole.ilog2());
    let within = (whole >> (octave - 3)) - LEVELS_OF_OCTAVE;
    ((octave - 3) * LEVELS_OF_OCTAVE + within) as usize
}

/// The longest length of a level.
fn longest(level: usize) -> u64 {
    let (octave, within) = (level as u64 / LEVELS_OF_OCTAVE, level as u64 % LEVELS_OF_OCTAVE);
    let beyond = u128::from(LEVELS_OF_OCTAVE + within + 1) << octave;
    u64::try_from(beyond - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sums_of_a_level_equal_the_sums_of_its_round_trips() {
        let mut parts = Parts::new(&[Part::ClientSend, Part::Network]);
        for (send, network) in [(100, 900), (90, 910), (200, 9_000)] {
            let mut lengths = Lengths::default();
            (lengths[index(Part::ClientSend)], lengths[index(Part::Network)]) = (send, network);
            parts.record(&lengths);
        }
        let levels = parts.levels();
        assert_eq!(levels.len(), 2);
        assert_eq!((levels[0].count, &levels[0].sums_ns), (2, &vec![190, 1_810]));
        assert_eq!((levels[1].count, &levels[1].sums_ns), (1, &vec![200, 9_000]));
        let counts: Vec<_> =
            parts.histograms().iter().map(|record| (record.part, record.histogram.count)).collect();
        assert_eq!(counts, [(Part::ClientSend, 3), (Part::Network, 3)]);
    }

    proptest! {
        #[test]
        fn level_is_an_eighth_of_an_octave_wide(whole in WHOLE_MIN..u64::MAX) {
            let level = level(whole);
            prop_assert!(whole <= longest(level));
            prop_assert!(level == 0 || longest(level - 1) < whole);
            prop_assert!(longest(level) as f64 <= whole as f64 * 1.126);
        }
    }
}
