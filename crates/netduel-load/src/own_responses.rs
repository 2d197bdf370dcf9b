//! Recognizes the responses to the datagrams of a client: own, complete, and not received before.
use crate::datagram;
use crate::sequence_window::{Arrival, SequenceWindow};

/// What identifies the responses of a trial.
pub(crate) struct OwnResponses {
    magic: u64,
    size: usize,
    seen: SequenceWindow,
}

impl OwnResponses {
    /// Of responses that begin with `magic` and have `size` bytes.
    pub(crate) fn new(magic: u64, size: usize) -> Self {
        Self { magic, size, seen: SequenceWindow::new() }
    }

    /// Whether a message belongs to the trial.
    #[inline]
    pub(crate) fn is_own(&self, payload: &[u8]) -> bool {
        datagram::read_magic(payload) == Some(self.magic)
    }

    /// The number of the request that this response answers. Absent for messages of other programs, for a response of another size, and for
    /// a duplicate.
    #[inline]
    pub(crate) fn number(&mut self, payload: &[u8]) -> Option<u64> {
        if payload.len() != self.size || !self.is_own(payload) {
            return None;
        }
        let number = datagram::read_number(payload)?;
        matches!(self.seen.arrive(number), Arrival::InOrder | Arrival::Reordered).then_some(number)
    }
}
