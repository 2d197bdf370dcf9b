//! The first bytes of requests and responses. Pure.
use netduel_model::ids::Token;

use crate::datagram::{self, Kind};
use crate::handshake::{self, HandshakeMessage, Step};

/// Bytes with which a request begins.
pub(crate) const REQUEST_MIN: usize = handshake::LENGTH;
/// Bytes with which a response begins: a magic of the trial, and the number of the transaction.
pub(crate) const RESPONSE_MIN: usize = datagram::MESSAGE_HEADER;

/// The first bytes of request `number`.
pub(super) fn request_head(token: Token, number: u64) -> [u8; REQUEST_MIN] {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    HandshakeMessage::new(token, Step::Transaction, number as u32, &nonce, nonce).to_bytes()
}

/// The number of the request with this head; absent when it is not of this trial.
pub(super) fn read_request_head(token: Token, head: &[u8]) -> Option<u64> {
    let message = HandshakeMessage::from_bytes(head)?;
    let is_ours = message.step == Step::Transaction && message.proves(token, &message.nonce);
    is_ours.then(|| u64::from_le_bytes(*message.nonce.first_chunk().expect("a nonce has 16 bytes")))
}

/// The magic with which each response of the trial begins.
pub(super) fn response_magic(token: Token) -> u64 {
    datagram::magic(token, 0, Kind::FromServer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::CHANGED_BYTES;

    const TOKEN: Token = Token(*b"sixteen bytes ok");

    #[test]
    fn bytes_are_those_of_protocol_3() {
        // The magic of the handshake, its step 5, the low half of the number; the token; the number as a nonce.
        let expected = [
            [78, 69, 84, 68, 85, 69, 76, 49, 5, 0, 0, 0, 8, 7, 6, 5],
            TOKEN.0,
            [8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0],
        ];
        let head = request_head(TOKEN, 0x0102_0304_0506_0708);
        assert_eq!(head[..], expected.concat(), "{CHANGED_BYTES}");
        assert_eq!(response_magic(TOKEN), 0x62ae_8b80_cb33_d90e, "{CHANGED_BYTES}");
    }

    #[test]
    fn request_has_the_token_and_its_number() {
        for number in [0, 1, u64::from(u32::MAX) + 7] {
            let head = request_head(TOKEN, number);
            assert_eq!(read_request_head(TOKEN, &head), Some(number));
            assert_eq!(read_request_head(Token([7; 16]), &head), None);
        }
    }

    #[test]
    fn hello_is_no_request() {
        let hello = HandshakeMessage::new(TOKEN, Step::Hello, 0, &[0; 16], [0; 16]).to_bytes();
        assert_eq!(read_request_head(TOKEN, &hello), None);
        assert_eq!(read_request_head(TOKEN, &hello[..40]), None);
    }
}
