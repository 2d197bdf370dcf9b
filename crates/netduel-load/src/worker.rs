//! What a thread of an end works with. Moves no payload.
use std::os::fd::AsFd;
use std::sync::Arc;

use netduel_model::packet_path::PacketReport;
use netduel_model::sample::{IntervalSample, RoundTripReport, UnderLoad, ZeroCopyReport};
use netduel_model::stamps::StampReport;
use netduel_sys::{clock, socket};

use crate::control::Control;
use crate::core_sharing::Sharing;
use crate::error::LoadError;
use crate::lane::Lane;
use crate::tally::Tally;
use crate::udp_receive::FlowCount;
use crate::udp_send::SendCount;

/// A thread's view of its end, and what it counted.
pub(crate) struct Worker {
    pub control: Arc<Control>,
    /// The stream that it works on, the first when there are several.
    pub stream: usize,
    /// The others, when there are several.
    pub others: Vec<usize>,
    /// Where it is to be pinned.
    pub core: Option<u16>,
    /// Where it was pinned.
    pub pinned: Option<u16>,
    pub tally: Tally,
    /// What its flows received.
    pub datagrams: Vec<FlowCount>,
    /// What its flows sent.
    pub datagrams_sent: Option<SendCount>,
    /// What it sent or took past the network stack.
    pub packets: Option<PacketReport>,
    /// Why there is no traffic that could be counted.
    pub failure: Option<LoadError>,
    pub round_trips: Option<RoundTripReport>,
    /// What this thread measured under load beside them.
    pub under_load: Option<UnderLoad>,
    /// What the streams received, at short intervals, by the thread that looks at them.
    pub fine_series: Vec<IntervalSample>,
    /// Its stamped round trips.
    pub stamps: Option<StampReport>,
    /// What became of its sends that were to copy nothing.
    pub zero_copy: Option<ZeroCopyReport>,
    /// Where its packets came from, when it was to busy-poll.
    pub napi_id: Option<u32>,
    /// How long its thread ran and waited for a core, nanoseconds.
    pub run_and_wait: Option<(u64, u64)>,
    sharing: Sharing,
}

/// Longest sleep before something is due, so that an end can be cut.
const STEP_NS: u64 = 20_000_000;

impl Worker {
    pub(crate) fn new(control: Arc<Control>, stream: usize, core: Option<u16>) -> Self {
        Self {
            control,
            stream,
            others: Vec::new(),
            core,
            pinned: None,
            tally: Tally::new(),
            datagrams: Vec::new(),
            datagrams_sent: None,
            packets: None,
            failure: None,
            round_trips: None,
            under_load: None,
            fine_series: Vec::new(),
            stamps: None,
            zero_copy: None,
            napi_id: None,
            run_and_wait: None,
            sharing: Sharing::new(),
        }
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
                Err(error) => self.tally.count("setsockopt SO_RCVBUF", &error),
            }
        }
        let Some((sending, receiving)) = least else { return };
        for (name, got) in [("SO_SNDBUF", sending), ("SO_RCVBUF", receiving)] {
            if got < asked {
                let text =
                    format!("got {got} of {asked} bytes: raise net.core.rmem_max and net.core.wmem_max");
                self.tally.remark(&format!("setsockopt {name}"), text);
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
    pub(crate) fn was_served(&mut self) {
        self.sharing.was_served();
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
    pub(crate) fn sent(&self) -> &Lane {
        &self.control.sent[self.stream]
    }

    /// The counter of what this thread receives.
    #[inline]
    pub(crate) fn received(&self) -> &Lane {
        &self.control.received[self.stream]
    }
}
