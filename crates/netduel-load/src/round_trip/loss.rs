//! When unanswered requests are lost: after their time, and only when no response waits in the socket. A process that was not scheduled
//! finds the responses that came in time there. Pure.
use std::io;

use crate::udp_acceptor::BUFFER_BYTES;

/// Messages that are received after the deadline, at most: a flood of other messages must not keep the trial from its end. More than a
/// receive buffer holds: the kernel doubles its size (socket(7)) and charges each message more than 512 bytes.
const WAITING_MAX: usize = 2 * BUFFER_BYTES / 512;

/// A receive call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// When it began, nanoseconds of the monotonic clock: what arrives after it was not seen.
    pub began_ns: u64,
    /// Whether it found the socket empty.
    pub is_empty: bool,
}

impl Call {
    pub(super) fn new<T>(began_ns: u64, result: &io::Result<T>) -> Self {
        let is_empty = matches!(result, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        Self { began_ns, is_empty }
    }
}

/// The receive calls after the deadline of the last response.
#[derive(Debug, Default)]
pub(super) struct Drain {
    messages: usize,
}

impl Drain {
    /// Whether no response that came before `deadline_ns` can wait in the socket after this call.
    #[inline]
    pub(super) fn is_over(&mut self, call: Call, deadline_ns: u64) -> bool {
        if call.began_ns <= deadline_ns {
            return false;
        }
        self.messages += 1;
        call.is_empty || self.messages > WAITING_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_that_wait_after_the_deadline_are_received() {
        let mut drain = Drain::default();
        let call = |began_ns: u64, is_empty: bool| Call { began_ns, is_empty };
        assert!(!drain.is_over(call(100, true), 100), "a response may still come");
        for _ in 0..1_000 {
            assert!(!drain.is_over(call(1_000_000, false), 100));
        }
        assert!(drain.is_over(call(1_000_000, true), 100));
    }

    #[test]
    fn flood_of_messages_ends() {
        let mut drain = Drain::default();
        let calls = (0..=WAITING_MAX).filter(|_| drain.is_over(Call { began_ns: 101, is_empty: false }, 100));
        assert_eq!(calls.count(), 1);
    }

    #[test]
    fn only_an_empty_socket_is_empty() {
        let call = |kind: io::ErrorKind| Call::new::<()>(7, &Err(kind.into()));
        assert!(call(io::ErrorKind::WouldBlock).is_empty);
        assert!(!call(io::ErrorKind::Interrupted).is_empty && !Call::new(7, &Ok(())).is_empty);
    }
}
