//! Which message a transmit stamp of the kernel belongs to.
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_sys::timestamping::Numbering;

/// From the key of a transmit stamp, 32 bits that the kernel counts, to the position of the message: the bytes sent up to
/// its end over TCP, its index among the stamped ones over UDP.
#[derive(Debug, Clone, Copy)]
pub(super) struct StampKeys {
    /// Position less key; unknown where the kernel counts from elsewhere.
    difference: Option<u32>,
}

impl StampKeys {
    pub(super) fn of_stream(numbering: Numbering) -> Self {
        // A key is that of the last byte, a position the end.
        Self { difference: (numbering == Numbering::FromHere).then_some(1) }
    }

    pub(super) fn of_datagrams() -> Self {
        Self { difference: Some(0) }
    }

    /// The position, given that of the message stamped last. Where the kernel's counting is unknown, the next key is taken to be
    /// that of the last message; a wrong guess gives parts that do not add up, and those are counted.
    pub(super) fn position(&mut self, key: u32, last: u64) -> Option<u64> {
        let difference = *self.difference.get_or_insert((last as u32).wrapping_sub(key));
        let behind = (last as u32).wrapping_sub(key.wrapping_add(difference));
        last.checked_sub(u64::from(behind))
    }

    /// A send call failed, and whether the kernel counted it cannot be known.
    pub(super) fn forget(&mut self) {
        self.difference = None;
    }
}

/// Stamps are asked for before any thread runs, so that the first request is numbered 0.
pub(super) fn enable_stream(stream: &Arc<TcpStream>) -> std::io::Result<StampKeys> {
    netduel_sys::timestamping::enable(&**stream, true).map(StampKeys::of_stream)
}

/// As [`enable_stream`].
pub(super) fn enable_datagrams(socket: &Arc<UdpSocket>) -> std::io::Result<StampKeys> {
    netduel_sys::timestamping::enable(&**socket, false).map(|_| StampKeys::of_datagrams())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_followed_past_32_bits() {
        let mut keys = StampKeys::of_stream(Numbering::FromHere);
        assert_eq!(keys.position(63, 64), Some(64));
        let last = (1 << 32) + 6400;
        assert_eq!(keys.position(u32::MAX, last), Some(1 << 32));
        assert_eq!(keys.position(6399, last), Some(last));
        // A key of what was not sent yet.
        assert_eq!(keys.position(100, 64), None);
    }

    #[test]
    fn an_unknown_beginning_is_learnt_from_the_first_key() {
        let mut keys = StampKeys::of_stream(Numbering::FromUnacknowledged);
        assert_eq!(keys.position(63 + 48, 64), Some(64));
        assert_eq!(keys.position(127 + 48, 128), Some(128));
        keys.forget();
        assert_eq!(keys.position(5, 192), Some(192));
    }
}
