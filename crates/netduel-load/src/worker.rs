//! What a thread of an end works with. Moves no payload.
use std::os::fd::AsFd;
use std::sync::Arc;

use netduel_sys::{clock, socket};

use crate::control::Control;
use crate::error_counts::ErrorCounts;
use crate::spin_yield::SpinYield;
use crate::stream_counter::StreamCounter;

/// A thread's view of its end.
pub(crate) struct Worker {
    pub control: Arc<Control>,
    /// The stream that it works on, the first when there are several.
    pub stream: usize,
    /// The core that it is pinned to.
    pub pinned: Option<u16>,
    /// Errors of its calls.
    pub errors: ErrorCounts,
    sharing: SpinYield,
}

/// Longest sleep before something is due, so that an end can be cut.
const STEP_NS: u64 = 20_000_000;

impl Worker {
    pub(crate) fn new(control: Arc<Control>, stream: usize) -> Self {
        Self { control, stream, pinned: None, errors: ErrorCounts::new(), sharing: SpinYield::new() }
    }

    /// Gives sockets the buffers that were asked for, bytes. What the host does not grant is said once, among the errors.
    pub(crate) fn set_buffers<S: AsFd>(
        &mut self,
        sockets: impl IntoIterator<Item = S>,
        asked: Option<usize>,
    ) {
        let Some(asked) = asked else { return };
        let mut least: Option<(usize, usize)> = None;
        for socket in sockets {
            match socket::set_buffers(socket, asked) {
                Ok((sending, receiving)) => {
                    let (s, r) = least.unwrap_or((sending, receiving));
                    least = Some((s.min(sending), r.min(receiving)));
                }
                Err(error) => self.errors.count("setsockopt SO_RCVBUF", &error),
            }
        }
        let Some((sending, receiving)) = least else { return };
        for (name, got) in [("SO_SNDBUF", sending), ("SO_RCVBUF", receiving)] {
            if got < asked {
                let text =
                    format!("got {got} of {asked} bytes: raise net.core.rmem_max and net.core.wmem_max");
                self.errors.remark(&format!("setsockopt {name}"), text);
            }
        }
    }

    /// Nothing was there: spins, and now and then lets another thread run.
    #[inline]
    pub(crate) fn spin(&mut self) {
        if self.sharing.is_time() {
            let before = clock::monotonic_ns();
            std::thread::yield_now();
            self.sharing.ran(clock::monotonic_ns() - before);
        } else {
            std::hint::spin_loop();
        }
    }

    /// A message was there.
    #[inline]
    pub(crate) fn note_message(&mut self) {
        self.sharing.note_message();
    }

    /// Waits until `due_ns`, asleep for most of it; false when the end is not running any more.
    pub(crate) fn wait_until(&self, due_ns: u64) -> bool {
        let is_running = self.sleep_until(due_ns.saturating_sub(STEP_NS));
        if is_running {
            clock::sleep_then_spin_until(due_ns);
        }
        is_running
    }

    /// Sleeps until `time_ns`, if that is not past; false when the end is not running any more.
    pub(crate) fn sleep_until(&self, time_ns: u64) -> bool {
        while self.control.is_running() {
            let now = clock::monotonic_ns();
            if now >= time_ns {
                return true;
            }
            clock::sleep_until(time_ns.min(now + STEP_NS / 2));
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
