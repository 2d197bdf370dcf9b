//! The handshake: both ends prove that they know the trial's token before the first byte of traffic. Pure bytes.
//!
//! The client sends `Hello` with the token; the server answers `Proof`, computed from the token and the client's nonce. On
//! UDP, where a source address can be forged, the client then returns the server's nonce in `Confirm`, and the server answers
//! `Ready`. A server that echoes, or that does not know the trial, cannot compute `Proof`, so it receives 48 bytes per stream and no
//! more.
use netduel_model::ids::Token;

/// Bytes of each message. A reply is no longer than its request, so a forged source address gains no amplification.
pub const LENGTH: usize = 48;

const MAGIC: [u8; 8] = *b"NETDUEL1";

/// The first byte of each message. No TLS record begins with it (22 is a handshake, RFC 8446 section 5.1), so one port can serve both.
pub(crate) const FIRST_BYTE: u8 = MAGIC[0];

/// The step of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Client to server: contains the token.
    Hello = 1,
    /// Server to client: proves that the server knows the token.
    Proof = 2,
    /// Client to server: proves that the client receives at its source address.
    Confirm = 3,
    /// Server to client: the socket is connected.
    Ready = 4,
    /// Client to server: the start of a request on its own connection. The following bytes belong to the request.
    Transaction = 5,
}

impl Step {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Hello, Self::Proof, Self::Confirm, Self::Ready, Self::Transaction]
            .into_iter()
            .find(|step| *step as u8 == byte)
    }
}

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeMessage {
    /// Its step.
    pub step: Step,
    /// Index of the stream or flow.
    pub stream: u32,
    /// The token, or the proof of it.
    pub key: [u8; 16],
    /// A number used once; the key of the reply depends on it.
    pub nonce: [u8; 16],
}

/// The key that proves the token in reply to `nonce`. Each step has its own, so a message cannot be replayed as another.
/// `Hello` and `Transaction` contain the token itself: a shared port finds the trial by it.
pub(crate) fn key_for(token: Token, nonce: &[u8; 16], step: Step) -> [u8; 16] {
    if matches!(step, Step::Hello | Step::Transaction) {
        return token.0;
    }
    let mut key = [0; 16];
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = token.0[index] ^ nonce[(index + 5) % 16].rotate_left(3) ^ (step as u8).wrapping_mul(0x5b);
    }
    key
}

impl HandshakeMessage {
    /// A message whose key depends on `challenge`, the nonce of the peer; not used by `Hello`.
    pub fn new(token: Token, step: Step, stream: u32, challenge: &[u8; 16], nonce: [u8; 16]) -> Self {
        Self { step, stream, key: key_for(token, challenge, step), nonce }
    }

    /// Whether the key proves the token in reply to `challenge`, compared in constant time.
    pub fn proves(&self, token: Token, challenge: &[u8; 16]) -> bool {
        Token(key_for(token, challenge, self.step)).matches(&self.key)
    }

    /// The token of a client's message. The caller must look up a trial with this token.
    pub fn token(&self) -> Token {
        match self.step {
            Step::Hello | Step::Transaction => Token(self.key),
            // The key is the token XOR a value that depends on the nonce alone, so the same XOR restores the token.
            _ => Token(key_for(Token(self.key), &self.nonce, self.step)),
        }
    }

    /// Encodes it.
    pub fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = self.step as u8;
        bytes[12..16].copy_from_slice(&self.stream.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.key);
        bytes[32..].copy_from_slice(&self.nonce);
        bytes
    }

    /// Decodes it; absent when the bytes are no handshake message.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != LENGTH || bytes[..8] != MAGIC {
            return None;
        }
        Some(Self {
            step: Step::from_byte(bytes[8])?,
            stream: u32::from_le_bytes(bytes[12..16].try_into().ok()?),
            key: bytes[16..32].try_into().ok()?,
            nonce: bytes[32..].try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datagram::CHANGED_BYTES;

    const TOKEN: Token = Token(*b"sixteen bytes ok");
    const STEPS: [Step; 4] = [Step::Hello, Step::Proof, Step::Confirm, Step::Ready];

    #[test]
    fn message_is_decoded_as_it_was_encoded() {
        for step in STEPS {
            let message = HandshakeMessage::new(TOKEN, step, 1023, &[1; 16], [2; 16]);
            assert_eq!(HandshakeMessage::from_bytes(&message.to_bytes()), Some(message));
            assert!(message.proves(TOKEN, &[1; 16]));
            assert!(!message.proves(Token([9; 16]), &[1; 16]));
        }
    }

    #[test]
    fn bytes_are_those_of_protocol_3() {
        let challenge = 0x1011_1213_1415_1617_1819_1a1b_1c1d_1e1f_u128.to_be_bytes();
        let nonce = 0xa0a1_a2a3_a4a5_a6a7_a8a9_aaab_acad_aeaf_u128.to_be_bytes();
        let expected = [
            (Step::Hello, 1, TOKEN.0),
            (Step::Proof, 2, 0x6d6f_7602_1b03_0076_3c3f_3a53_4d06_417d_u128.to_be_bytes()),
            (Step::Confirm, 3, 0xcac8_d1a5_bca4_a7d1_9b98_9df4_eaa1_e6da_u128.to_be_bytes()),
            (Step::Ready, 4, 0xb7b5_acd8_c1d9_daac_e6e5_e089_97dc_9ba7_u128.to_be_bytes()),
            (Step::Transaction, 5, TOKEN.0),
        ];
        for (step, number, key) in expected {
            let message = HandshakeMessage::new(TOKEN, step, 0x0102_0304, &challenge, nonce);
            let head = [78, 69, 84, 68, 85, 69, 76, 49, number, 0, 0, 0, 4, 3, 2, 1];
            assert_eq!(message.to_bytes()[..], [head, key, nonce].concat(), "{step:?}: {CHANGED_BYTES}");
        }
    }

    #[test]
    fn token_is_read_from_each_client_message() {
        for step in [Step::Hello, Step::Confirm, Step::Transaction] {
            assert_eq!(HandshakeMessage::new(TOKEN, step, 7, &[3; 16], [3; 16]).token(), TOKEN, "{step:?}");
        }
    }

    #[test]
    fn echo_is_no_proof() {
        let hello = HandshakeMessage::new(TOKEN, Step::Hello, 0, &[0; 16], [5; 16]);
        let mut echo = hello;
        assert_ne!(echo.step, Step::Proof);
        echo.step = Step::Proof;
        assert!(!echo.proves(TOKEN, &hello.nonce));
    }

    #[test]
    fn each_step_has_its_own_key() {
        for left in STEPS {
            for right in STEPS {
                let same = key_for(TOKEN, &[3; 16], left) == key_for(TOKEN, &[3; 16], right);
                assert_eq!(same, left == right, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        let good = HandshakeMessage::new(TOKEN, Step::Hello, 0, &[0; 16], [5; 16]).to_bytes();
        assert_eq!(HandshakeMessage::from_bytes(&good[..47]), None);
        let mut bad = good;
        bad[8] = 9;
        assert_eq!(HandshakeMessage::from_bytes(&bad), None);
        bad = good;
        bad[0] = b'n';
        assert_eq!(HandshakeMessage::from_bytes(&bad), None);
    }
}
