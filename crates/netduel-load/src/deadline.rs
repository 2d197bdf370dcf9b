//! When an end that does not finish by itself is aborted. Pure: the time and the counters are passed in.

/// How long after the planned duration an end may run without progress, nanoseconds.
const NO_PROGRESS_NS: u64 = 10_000_000_000;
/// How long after the planned duration an end may run at all, nanoseconds: the buffers of a slow path may still drain.
const TOTAL_NS: u64 = 60_000_000_000;
/// An end without a byte for this long makes no progress, nanoseconds. TCP doubles its retransmission timeout with each loss, from
/// 0.2 s (`TCP_RTO_MIN` in include/net/tcp.h): after five losses of one segment it is silent for 6.4 s.
const SILENCE_NS: u64 = 8_000_000_000;
/// How long an end without progress may run after its peer is known to be done, nanoseconds.
const FINISH_NS: u64 = 5_000_000_000;

/// The deadline of one end.
#[derive(Debug)]
pub(crate) struct Deadline {
    /// End of the planned duration, nanoseconds of the monotonic clock.
    end_ns: u64,
    /// Bytes sent and received at the last progress, and its time.
    moved: u64,
    moved_ns: u64,
    finishing_ns: Option<u64>,
}

impl Deadline {
    /// Of an end that started at `started_ns` of the monotonic clock and is planned to run for `duration_ns`.
    pub(crate) fn new(started_ns: u64, duration_ns: u64) -> Self {
        let end_ns = started_ns.saturating_add(duration_ns);
        Self { end_ns, moved: 0, moved_ns: started_ns, finishing_ns: None }
    }

    /// How long an end waits for the connections of its peer, nanoseconds from its start.
    pub(crate) fn connect_ns(duration_ns: u64) -> u64 {
        duration_ns.saturating_add(NO_PROGRESS_NS)
    }

    /// Whether the end is overdue at `now`, when it has sent and received `moved` bytes. `is_finishing`: its peer is known to be done.
    pub(crate) fn is_over(&mut self, now: u64, moved: u64, is_finishing: bool) -> bool {
        if moved != self.moved {
            (self.moved, self.moved_ns) = (moved, now);
        }
        if is_finishing {
            self.finishing_ns.get_or_insert(now);
        }
        let is_silent = now.saturating_sub(self.moved_ns) > SILENCE_NS;
        now > self.end_ns.saturating_add(TOTAL_NS)
            || is_silent && now > self.end_ns.saturating_add(NO_PROGRESS_NS)
            || is_silent && self.finishing_ns.is_some_and(|since| now > since + FINISH_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Reads the deadline every 0.1 s, as the supervisor does, and returns when it was over, 0.1 s.
    fn over(mut deadline: Deadline, moved: impl Fn(u64) -> u64, finishing: Option<u64>) -> u64 {
        let is_over = |tenth: &u64| {
            let is_finishing = finishing.is_some_and(|since| *tenth >= since);
            deadline.is_over(tenth * SECOND / 10, moved(*tenth), is_finishing)
        };
        (0..1_000).find(is_over).unwrap()
    }

    #[test]
    fn connection_in_retransmission_backoff_is_not_aborted() {
        // The trial ends at 1 s; a segment is lost six times from 8 s on, and the stream goes on at 20.6 s and is done at 21 s.
        let moved = |tenth: u64| if (80..206).contains(&tenth) { 80 } else { tenth.min(210) };
        let retransmitted = |tenth: u64| match tenth {
            80..142 => 80,
            142..206 => 142,
            tenth => moved(tenth),
        };
        assert_eq!(over(Deadline::new(0, SECOND), retransmitted, None), 210 + 81);
    }

    #[test]
    fn silent_peer_ends_the_trial_ten_seconds_after_its_duration() {
        assert_eq!(over(Deadline::new(0, SECOND), |tenth| tenth.min(5), None), 111);
    }

    #[test]
    fn end_without_progress_is_aborted_soon_after_its_peer_is_done() {
        assert_eq!(over(Deadline::new(0, 100 * SECOND), |tenth| tenth.min(20), Some(25)), 101);
        assert_eq!(over(Deadline::new(0, 100 * SECOND), |tenth| tenth.min(20), Some(90)), 141);
    }

    #[test]
    fn path_that_drains_slowly_has_a_minute() {
        assert_eq!(over(Deadline::new(0, SECOND), |tenth| tenth, None), 611);
    }
}
