//! Maps the key of a transmit stamp (`SOF_TIMESTAMPING_OPT_ID`) to its message.
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_sys::timestamping::Numbering;

/// Converts the key of a transmit stamp, a 32-bit count of the kernel, to the position of the message: over TCP the bytes sent up
/// to its end, over UDP its index among the stamped messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct StampKeys {
    /// Position minus key; unknown when the kernel does not count from the start.
    difference: Option<u32>,
}

impl StampKeys {
    pub(super) fn of_stream(numbering: Numbering) -> Self {
        // The key is the last byte, the position the end.
        Self { difference: (numbering == Numbering::FromHere).then_some(1) }
    }

    pub(super) fn of_datagrams() -> Self {
        Self { difference: Some(0) }
    }

    /// The position of a key, when `last` is the position of the last stamped message. With an unknown offset, the next key is
    /// assumed to be that of the last message; a wrong guess gives inconsistent parts, which are counted.
    pub(super) fn position(&mut self, key: u32, last: u64) -> Option<u64> {
        let difference = *self.difference.get_or_insert((last as u32).wrapping_sub(key));
        let behind = (last as u32).wrapping_sub(key.wrapping_add(difference));
        last.checked_sub(u64::from(behind))
    }

    /// Resets the offset: a send failed, and the kernel may have counted it or not.
    pub(super) fn forget(&mut self) {
        self.difference = None;
    }
}

/// Enables time stamps before any thread runs, so that the first request has number 0.
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
    fn keys_wrap_at_32_bits() {
        let mut keys = StampKeys::of_stream(Numbering::FromHere);
        assert_eq!(keys.position(63, 64), Some(64));
        let last = (1 << 32) + 6400;
        assert_eq!(keys.position(u32::MAX, last), Some(1 << 32));
        assert_eq!(keys.position(6399, last), Some(last));
        // A key of what was not sent yet.
        assert_eq!(keys.position(100, 64), None);
    }

    #[test]
    fn unknown_offset_is_derived_from_the_first_key() {
        let mut keys = StampKeys::of_stream(Numbering::FromUnacknowledged);
        assert_eq!(keys.position(63 + 48, 64), Some(64));
        assert_eq!(keys.position(127 + 48, 128), Some(128));
        keys.forget();
        assert_eq!(keys.position(5, 192), Some(192));
    }
}
