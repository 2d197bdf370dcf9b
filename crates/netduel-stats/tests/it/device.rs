//! Simulated paths for the search: received packets for an offered rate and duration. For tests only.
use netduel_model::search::{SearchInput, SearchOutput};

use crate::chance::Chance;

/// Overhead of a trial, nanoseconds: two agents prepare sockets and read counters.
const AROUND_NS: u64 = 300_000_000;

/// Behaviour of a path.
#[derive(Debug, Clone, Copy)]
pub enum Device {
    /// Delivers every load up to its capacity, and its capacity above.
    Clean,
    /// Like clean, but in each second packets are lost with a probability that rises from 0 at 90 % of the capacity to 0.7 at 100
    /// %: longer trials see more.
    Noisy,
    /// Like clean, but a tenth of all trials run in a bad period with 70 % of the capacity.
    Bursty,
    /// Its capacity falls by a tenth over the first ten minutes.
    Drifting,
    /// Loses one packet in a hundred at any load.
    Lossy,
    /// Like clean, with a buffer for one second of packets at its capacity: a short trial loses nothing even far above it.
    Buffered,
    /// Like clean up to its capacity; above, the delivered rate falls with the offered rate.
    Livelock,
}

/// A path with a generator of limited rate.
pub struct Path {
    device: Device,
    /// Capacity, packets per second.
    pub capacity: f64,
    /// Maximum rate of the generator without pacing, packets per second.
    pub ceiling: f64,
    /// Maximum rate of the generator with pacing, packets per second.
    pub paced_ceiling: f64,
    chance: Chance,
    /// Number of trials.
    pub trials: u32,
    /// Time of the trials including overhead, nanoseconds.
    pub spent_ns: u64,
}

impl Path {
    /// A path with its own random numbers.
    pub fn new(device: Device, capacity: f64, ceiling: f64, seed: u64) -> Self {
        Self {
            device,
            capacity,
            ceiling,
            paced_ceiling: ceiling,
            chance: Chance::new(seed),
            trials: 0,
            spent_ns: 0,
        }
    }

    /// Current capacity, packets per second.
    fn capacity_now(&mut self) -> f64 {
        match self.device {
            Device::Drifting => self.capacity * (1.0 - 0.1 * (self.spent_ns as f64 / 6e11).min(1.0)),
            Device::Bursty if self.chance.uniform() < 0.1 => 0.7 * self.capacity,
            _ => self.capacity,
        }
    }

    /// One trial.
    pub fn trial(&mut self, load: Option<u64>, duration_ns: u64) -> SearchOutput {
        let seconds = duration_ns as f64 / 1e9;
        let rate = load.map_or(self.ceiling, |load| (load as f64).min(self.paced_ceiling));
        let sent = (rate * seconds).round();
        let capacity = self.capacity_now();
        let mut received = match self.device {
            Device::Livelock if rate > capacity => capacity * capacity / rate * seconds,
            Device::Lossy => sent * 0.99,
            Device::Buffered => sent.min(capacity * (seconds + 1.0)),
            _ => sent.min(capacity * seconds),
        };
        if let Device::Noisy = self.device {
            let chance = (0.7 * (rate / capacity - 0.9) / 0.1).clamp(0.0, 1.0);
            let calm = (1.0 - chance).powf(seconds);
            if self.chance.uniform() > calm {
                received -= 20.0;
            }
        }
        self.trials += 1;
        self.spent_ns += duration_ns + AROUND_NS;
        SearchOutput {
            sent: sent as u64,
            received: received.max(0.0) as u64,
            elapsed_ns: duration_ns,
            effective_duration_ns: duration_ns + AROUND_NS,
            pacing_error_p99_ns: None,
        }
    }

    /// One trial requested by a search.
    pub fn answer(&mut self, ask: SearchInput) -> SearchOutput {
        self.trial(ask.load, ask.duration.0)
    }
}
