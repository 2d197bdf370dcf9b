//! Round trips with time stamps: some requests are stamped by both kernels when they are sent and received, and the rest of
//! them are not, so that the stamps' cost can be seen within one trial.
//!
//! The server's times travel back in the stamped response. Its transmit stamp is known only when the response has left, so it
//! travels with the next stamped one. Kernels stamp on the wall clock; everything here is brought to the monotonic clock
//! of its host, so a step of the wall clock moves no figure.
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_model::stamps::{STAMPED_TCP_BYTES, STAMPED_UDP_BYTES};
use netduel_sys::timestamping::Numbering;

use super::Settings;
use crate::datagram::MESSAGE_HEADER;

mod clock_id;
mod collector;
mod desk;
mod ledger;
mod lines;
mod parts;
mod serve;
mod wall_clock;

pub(super) use lines::{tcp_client, udp_client};
pub(super) use serve::{tcp as serve_tcp, udp as serve_udp};

/// One request of so many is stamped, on the average: their own cost disturbs the others little, and a second of round trips of
/// 10 us has 6,000.
const STAMPED_EVERY: u64 = 16;
/// Where there are fewer requests a second than the sixteenfold of this, a larger part of them is stamped, half at most.
const STAMPED_PER_SECOND: u64 = 1_000;
/// In the first byte of a request over TCP: whether it is stamped, and whether the next is, so that the server asks for a
/// receive stamp then only: recvmsg(2) takes 1 us longer than recv(2) after a wake-up.
const STAMPED_BYTE: u8 = 1;
const ANNOUNCED_BYTE: u8 = 2;
/// The same in the number of a request over UDP.
const STAMPED_BIT: u64 = 1 << 63;
const ANNOUNCED_BIT: u64 = 1 << 62;

/// Bytes of [`Times`] in a response.
const TIMES_BYTES: usize = STAMPED_TCP_BYTES as usize;
const _: () = assert!(STAMPED_UDP_BYTES as usize == TIMES_BYTES + MESSAGE_HEADER);

/// What a stamped response tells of the server, nanoseconds of its monotonic clock. 0 is a stamp that did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Times {
    /// When its kernel received the request.
    kernel_received: u64,
    /// When its program had it.
    received: u64,
    /// When its program called send for the response.
    sent: u64,
    /// When its kernel sent the response to an earlier stamped request ...
    earlier_transmit: u64,
    /// ... of this number.
    earlier_number: u64,
    /// Which clock all this is on.
    clock: u64,
}

impl Times {
    fn write(self, bytes: &mut [u8]) {
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

    fn read(bytes: &[u8; TIMES_BYTES]) -> Self {
        let mut words = [0; TIMES_BYTES / 8];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = place.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        }
        let [kernel_received, received, sent, earlier_transmit, earlier_number, clock] = words;
        Self { kernel_received, received, sent, earlier_transmit, earlier_number, clock }
    }
}

/// Whether responses of this size carry the server's times.
fn carries_times(size: usize, is_stream: bool) -> bool {
    size as u64 >= if is_stream { STAMPED_TCP_BYTES } else { STAMPED_UDP_BYTES }
}

/// From the key of a transmit stamp, 32 bits that the kernel counts, to the position of the message: the bytes sent up to
/// its end over TCP, its index among the stamped ones over UDP.
#[derive(Debug, Clone, Copy)]
struct Keys {
    /// Position less key; unknown where the kernel counts from elsewhere.
    difference: Option<u32>,
}

impl Keys {
    fn of_stream(numbering: Numbering) -> Self {
        // A key is that of the last byte, a position the end.
        Self { difference: (numbering == Numbering::FromHere).then_some(1) }
    }

    fn of_datagrams() -> Self {
        Self { difference: Some(0) }
    }

    /// The position, given that of the message stamped last. Where the kernel's counting is unknown, the next key is taken to be
    /// that of the last message; a wrong guess gives parts that do not add up, and those are counted.
    fn position(&mut self, key: u32, last: u64) -> Option<u64> {
        let difference = *self.difference.get_or_insert((last as u32).wrapping_sub(key));
        let behind = (last as u32).wrapping_sub(key.wrapping_add(difference));
        last.checked_sub(u64::from(behind))
    }

    /// A send call failed, and whether the kernel counted it cannot be known.
    fn forget(&mut self) {
        self.difference = None;
    }
}

/// Stamps are asked for before any thread runs, so that the first request is numbered 0.
fn enable_stream(stream: &Arc<TcpStream>) -> std::io::Result<Keys> {
    netduel_sys::timestamping::enable(&**stream, true).map(Keys::of_stream)
}

/// As [`enable_stream`].
fn enable_datagrams(socket: &Arc<UdpSocket>) -> std::io::Result<Keys> {
    netduel_sys::timestamping::enable(&**socket, false).map(|_| Keys::of_datagrams())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written() {
        let times = Times {
            kernel_received: 1,
            received: u64::MAX,
            sent: 3 << 40,
            earlier_transmit: 4,
            earlier_number: 5,
            clock: 6 << 56,
        };
        let mut bytes = [9; TIMES_BYTES];
        times.write(&mut bytes);
        assert_eq!(Times::read(&bytes), times);
    }

    #[test]
    fn keys_are_followed_past_32_bits() {
        let mut keys = Keys::of_stream(Numbering::FromHere);
        assert_eq!(keys.position(63, 64), Some(64));
        let last = (1 << 32) + 6400;
        assert_eq!(keys.position(u32::MAX, last), Some(1 << 32));
        assert_eq!(keys.position(6399, last), Some(last));
        // A key of what was not sent yet.
        assert_eq!(keys.position(100, 64), None);
    }

    #[test]
    fn an_unknown_beginning_is_learnt_from_the_first_key() {
        let mut keys = Keys::of_stream(Numbering::FromUnacknowledged);
        assert_eq!(keys.position(63 + 48, 64), Some(64));
        assert_eq!(keys.position(127 + 48, 128), Some(128));
        keys.forget();
        assert_eq!(keys.position(5, 192), Some(192));
    }
}
