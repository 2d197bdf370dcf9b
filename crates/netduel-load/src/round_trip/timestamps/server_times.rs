//! The time-stamp fields of requests and responses, as bytes. Pure.
use netduel_model::stamps::{STAMPED_TCP_BYTES, STAMPED_UDP_BYTES};

use crate::datagram::MESSAGE_HEADER;

/// Flags in the first byte of a TCP request: it is stamped; the next one is stamped. With the announcement the server uses
/// recvmsg(2) for stamped requests only: it takes 1 us longer than recv(2) after a wake-up.
pub(super) const STAMPED_BYTE: u8 = 1;
pub(super) const ANNOUNCED_BYTE: u8 = 2;
/// The same flags in the sequence number of a UDP request.
pub(super) const STAMPED_BIT: u64 = 1 << 63;
pub(super) const ANNOUNCED_BIT: u64 = 1 << 62;

/// Bytes of [`ServerTimes`] in a response.
pub(super) const TIMES_BYTES: usize = STAMPED_TCP_BYTES as usize;
const _: () = assert!(STAMPED_UDP_BYTES as usize == TIMES_BYTES + MESSAGE_HEADER);

/// The server's times in a stamped response, nanoseconds of its monotonic clock. 0 is a missing stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ServerTimes {
    /// When its kernel received the request.
    pub kernel_received: u64,
    /// When its program had it.
    pub received: u64,
    /// When its program called send for the response.
    pub sent: u64,
    /// When its kernel sent the response to an earlier stamped request ...
    pub earlier_transmit: u64,
    /// ... of this number.
    pub earlier_number: u64,
    /// Which clock all this is on.
    pub clock: u64,
}

impl ServerTimes {
    pub(super) fn write(self, bytes: &mut [u8]) {
        let words = [
            self.kernel_received,
            self.received,
            self.sent,
            self.earlier_transmit,
            self.earlier_number,
            self.clock,
        ];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }

    pub(super) fn read(bytes: &[u8; TIMES_BYTES]) -> Self {
        let mut words = [0; TIMES_BYTES / 8];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = place.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        }
        let [kernel_received, received, sent, earlier_transmit, earlier_number, clock] = words;
        Self { kernel_received, received, sent, earlier_transmit, earlier_number, clock }
    }
}

/// Whether responses of this size carry the server's times.
pub(super) fn carries_times(size: usize, is_stream: bool) -> bool {
    size as u64 >= if is_stream { STAMPED_TCP_BYTES } else { STAMPED_UDP_BYTES }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_decoded_as_they_were_encoded() {
        let times = ServerTimes {
            kernel_received: 1,
            received: u64::MAX,
            sent: 3 << 40,
            earlier_transmit: 4,
            earlier_number: 5,
            clock: 6 << 56,
        };
        let mut bytes = [9; TIMES_BYTES];
        times.write(&mut bytes);
        assert_eq!(ServerTimes::read(&bytes), times);
    }
}
