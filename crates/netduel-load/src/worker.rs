//! The context of a thread of an end: shared state, counters, errors. Moves no payload.
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use netduel_sys::{clock, socket};

use crate::control::Control;
use crate::error_counts::ErrorCounts;
use crate::spin_yield::SpinYield;
use crate::stream_counter::StreamCounter;

/// The context of one thread.
pub(crate) struct Worker {
    pub control: Arc<Control>,
    /// Index of its stream, the first when there are several.
    pub stream: usize,
    /// The core that it is pinned to.
    pub pinned: Option<u16>,
    /// Errors of its calls.
    pub errors: ErrorCounts,
    spin_yield: SpinYield,
}

/// Longest sleep of a thread that moves data, in a call or between two: how late it may notice an abort or the end of the trial. The
/// series of a slow stream has no gaps at this interval.
pub(crate) const SLEEP_MAX: Duration = Duration::from_nanos(SLEEP_MAX_NS);
/// The same, nanoseconds.
pub(crate) const SLEEP_MAX_NS: u64 = 20_000_000;

impl Worker {
    pub(crate) fn new(control: Arc<Control>, stream: usize) -> Self {
        Self { control, stream, pinned: None, errors: ErrorCounts::new(), spin_yield: SpinYield::new() }
    }

    /// Sets the buffers of sockets to `requested` bytes. Smaller granted sizes are recorded once, among the errors.
    pub(crate) fn set_buffers<S: AsFd>(
        &mut self,
        sockets: impl IntoIterator<Item = S>,
        requested: Option<usize>,
    ) {
        let Some(requested) = requested else { return };
        let mut min: Option<(usize, usize)> = None;
        for socket in sockets {
            match socket::set_buffers(socket, requested) {
                Ok((sending, receiving)) => {
                    let (s, r) = min.unwrap_or((sending, receiving));
                    min = Some((s.min(sending), r.min(receiving)));
                }
                Err(error) => self.errors.count("setsockopt SO_RCVBUF", &error),
            }
        }
        let Some((sending, receiving)) = min else { return };
        for (name, got) in [("SO_SNDBUF", sending), ("SO_RCVBUF", receiving)] {
            if got < requested {
                let text =
                    format!("got {got} of {requested} bytes: raise net.core.rmem_max and net.core.wmem_max");
                self.errors.remark(&format!("setsockopt {name}"), text);
            }
        }
    }

    /// After an empty poll: pauses, and sometimes yields the core.
    #[inline]
    pub(crate) fn spin(&mut self) {
        if self.spin_yield.should_yield() {
            let before = clock::monotonic_ns();
            std::thread::yield_now();
            self.spin_yield.yielded_for(clock::monotonic_ns() - before);
        } else {
            std::hint::spin_loop();
        }
    }

    /// A poll returned a message.
    #[inline]
    pub(crate) fn note_message(&mut self) {
        self.spin_yield.note_message();
    }

    /// Waits until `due_ns`, asleep for most of the time; false when the end is no longer running.
    pub(crate) fn wait_until(&self, due_ns: u64) -> bool {
        if self.sleep_until(due_ns.saturating_sub(SLEEP_MAX_NS)) {
            clock::sleep_then_spin_until(due_ns);
        }
        self.control.is_running()
    }

    /// Sleeps until `time_ns`; false when the end is no longer running.
    pub(crate) fn sleep_until(&self, time_ns: u64) -> bool {
        while self.control.is_running() {
            let now = clock::monotonic_ns();
            if now >= time_ns {
                return true;
            }
            clock::sleep_until(time_ns.min(now + SLEEP_MAX_NS / 2));
        }
        false
    }

    /// The counter of what this thread sends.
    #[inline]
    pub(crate) fn sent(&self) -> &StreamCounter {
        &self.control.sent[self.stream]
    }

    /// The counter of what this thread receives.
    #[inline]
    pub(crate) fn received(&self) -> &StreamCounter {
        &self.control.received[self.stream]
    }
}
