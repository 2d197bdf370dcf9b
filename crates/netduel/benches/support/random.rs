//! Random choices that a seed reproduces.
use netduel_stats::split_mix::SplitMix;

/// The choices of one case.
pub struct Choices(SplitMix);

impl Choices {
    /// Those of a case: they depend on the seed and the number of the case only, so that one case can be repeated alone.
    pub fn of_case(seed: u64, number: u64) -> Self {
        let start = SplitMix::new(seed).bits();
        Self(SplitMix::new(start ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0.bits() % end
    }

    /// One of some values, of which there is at least one.
    pub fn one_of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len() as u64) as usize]
    }

    /// Brings values into a random order.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            values.swap(last, other);
        }
    }
}
