//! Simulated paths for the search: how much arrives of what is offered for a time. Not for anything but tests.
use netduel_model::search::{SearchInput, SearchOutput};

use crate::chance::Chance;

/// What a trial costs beyond its traffic, nanoseconds: two agents prepare sockets and read counters.
const AROUND_NS: u64 = 300_000_000;

/// How a path behaves.
#[derive(Debug, Clone, Copy)]
pub enum Device {
    /// Takes everything up to its capacity, and its capacity above.
    Clean,
    /// As clean, but each second a lapse costs packets with a chance that rises from nothing at 90 % of the capacity to 0.7 at
    /// 100 %: longer trials see more.
    Noisy,
    /// As clean, but a tenth of all trials fall into a bad period, in which three tenths of the capacity are gone.
    Bursty,
    /// Its capacity falls by a tenth over the first ten minutes.
    Drifting,
    /// Loses one packet in a hundred at any load.
    Lossy,
    /// As clean, behind a buffer that holds what comes in a second at its capacity: a short trial loses nothing at far more.
    Buffered,
    /// As clean up to its capacity; beyond it the more is offered, the less gets through.
    Livelock,
}

/// A path under load, with a generator that has a ceiling.
pub struct Path {
    device: Device,
    /// Packets per second that it can take.
    pub capacity: f64,
    /// Packets per second that the generator can make.
    pub ceiling: f64,
    /// Packets per second that the generator can make at a rate.
    pub paced_ceiling: f64,
    chance: Chance,
    /// Trials so far.
    pub trials: u32,
    /// What they took, nanoseconds, with what is around them.
    pub spent_ns: u64,
}

impl Path {
    /// A path of its own chance.
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

    /// Capacity now, packets per second.
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

    /// One trial that a search asked for.
    pub fn answer(&mut self, ask: SearchInput) -> SearchOutput {
        self.trial(ask.load, ask.duration.0)
    }
}
