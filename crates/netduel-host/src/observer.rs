//! Readings around a trial. Files and sockets are opened once, and buffers are reused. Must not interpret readings.
use netduel_model::observation::{HostIdentity, Observation};
use netduel_sys::clock::thread_cpu_ns;

use crate::difference::observation;
use crate::drain::{DRAIN_PATIENCE, wait_for_drained_queues};
use crate::error::HostError;
use crate::link_watch::Watch;
use crate::reading::{Reader, Reading};
use crate::source::Sources;

const SECOND_NS: u64 = 1_000_000_000;

/// Reads a host's counters before and after a trial, in the network namespace of the thread that made it.
pub struct Observer {
    reader: Reader,
    spare: Vec<Reading>,
    tick_ns: u64,
    /// Whether it reads the running host; only that has link notifications.
    is_live: bool,
}

impl Observer {
    /// Opens all files and sockets of the readings.
    ///
    /// # Errors
    /// When a socket or a file cannot be opened. A missing file is not an error.
    pub fn new() -> Result<Self, HostError> {
        Ok(Self { is_live: true, ..Self::with_sources(Sources::live()?)? })
    }

    /// As [`Observer::new`], with other sources.
    ///
    /// # Errors
    /// As there.
    pub fn with_sources(sources: Sources) -> Result<Self, HostError> {
        let tick_ns = SECOND_NS / rustix::param::clock_ticks_per_second().max(1);
        Ok(Self { reader: Reader::new(sources)?, spare: Vec::new(), tick_ns, is_live: false })
    }

    /// The reading directly before the traffic.
    ///
    /// # Errors
    /// When the kernel refuses a list or a file.
    pub fn before(&mut self) -> Result<Before, HostError> {
        let started = thread_cpu_ns();
        // Without link notifications the events are unknown, which differs from none.
        let watch = if self.is_live { Watch::begin().ok() } else { None };
        let mut reading = self.spare.pop().unwrap_or_default();
        self.reader.before(&mut reading)?;
        let identity = self.reader.identity(&reading);
        Ok(Before { watch, identity, reading, observer_cpu_ns: thread_cpu_ns().saturating_sub(started) })
    }
}

/// A first reading, before the second one.
pub struct Before {
    watch: Option<Watch>,
    identity: HostIdentity,
    reading: Reading,
    observer_cpu_ns: u64,
}

impl Before {
    /// The reading directly after the traffic, and the differences. Packets that wait in the queues of this host are counted with it: for at
    /// most [`DRAIN_PATIENCE`] until they are sent.
    ///
    /// # Errors
    /// When the kernel refuses a list or a file.
    pub fn after(self, observer: &mut Observer) -> Result<Observation, HostError> {
        let started = thread_cpu_ns();
        let mut last = observer.spare.pop().unwrap_or_default();
        let is_live = observer.is_live;
        observer.reader.after(&mut last, || {
            // Queues that are still full then are those of other traffic; the next trial does not begin with them.
            if is_live { wait_for_drained_queues(DRAIN_PATIENCE).map(drop) } else { Ok(()) }
        })?;
        let mut seen = observation(&self.reading, &last, observer.tick_ns);
        observer.spare.push(self.reading);
        observer.spare.push(last);
        seen.identity = Some(self.identity);
        seen.link_events = self.watch.map(Watch::finish);
        seen.observer_cpu_ns = self.observer_cpu_ns + thread_cpu_ns().saturating_sub(started);
        Ok(seen)
    }
}
