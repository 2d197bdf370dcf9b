//! Random numbers of a simulation. The streams of a seed are independent, so removing a fault changes nothing else.
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// A stream of numbers.
#[derive(Debug)]
pub struct Random(ChaCha8Rng);

/// Purpose of a stream.
#[derive(Debug, Clone, Copy)]
pub enum Stream {
    /// The plan and the hosts.
    Setting,
    /// Faults.
    Faults,
    /// Latencies and the splitting of bytes.
    Wire,
    /// Damage of the run file between two parts of the run.
    Damage,
    /// Agents that are lost again in their restart.
    Restarts,
    /// Hosts that reboot.
    Reboots,
}

impl Random {
    /// A stream of a seed.
    pub fn new(seed: u64, stream: Stream) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(stream as u64);
        Self(generator)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is irrelevant here: no distribution is assumed.
        self.0.next_u64() % bound
    }

    /// A number from `least` to `most`.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of some values.
    pub fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}
