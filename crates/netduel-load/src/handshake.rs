//! The greeting by which both ends prove that they know the trial's token before the first byte of traffic. Pure bytes.
//!
//! The client says `Hello` with the token; the server answers `Proof`, computed from the token and the client's nonce. On
//! UDP, where a source address can be forged, the client then returns the server's nonce in `Confirm`, and the server says
//! `Ready`. A server that echoes, or that knows nothing of the trial, cannot produce `Proof`, and so receives 48 bytes per
//! stream and no more.
use netduel_model::ids::Token;

/// Bytes of each message. Answers are no longer than questions, so that a forged source gains nothing.
pub(crate) const LENGTH: usize = 48;

const MAGIC: [u8; 8] = *b"NETDUEL1";

/// The byte that each greeting begins with. No record of TLS does (22 is a handshake, RFC 8446 section 5.1), so both can come to
/// one port.
pub(crate) const FIRST_BYTE: u8 = MAGIC[0];

/// What a greeting says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Client: I know the token.
    Hello = 1,
    /// Server: so do I.
    Proof = 2,
    /// Client: your answer reached the address that I speak from.
    Confirm = 3,
    /// Server: all is set.
    Ready = 4,
    /// Client: the request of a transaction that has this connection for itself. What follows belongs to the request.
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
pub(crate) struct HandshakeMessage {
    /// What it says.
    pub step: Step,
    /// Which stream or flow it is about.
    pub stream: u32,
    /// The token, or what proves it.
    pub key: [u8; 16],
    /// A number used once, to which the answer's key is bound.
    pub nonce: [u8; 16],
}

/// The key that proves the token in answer to `nonce`. Each answer has its own, so no message can be played back as another.
/// What a client says of itself holds the token, by which a port that several trials share knows whose it is.
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
    /// A message whose key is bound to `asked`, the nonce being answered; for `Hello` it has no effect.
    pub(crate) fn new(token: Token, step: Step, stream: u32, asked: &[u8; 16], nonce: [u8; 16]) -> Self {
        Self { step, stream, key: key_for(token, asked, step), nonce }
    }

    /// Whether the key proves the token in answer to `asked`, without telling by time where it differs.
    pub(crate) fn proves(&self, token: Token, asked: &[u8; 16]) -> bool {
        Token(key_for(token, asked, self.step)).matches(&self.key)
    }

    /// The token that a client's message is about: whoever knows it has one that [`Self::proves`]. What it says counts only
    /// when a trial has that token.
    pub(crate) fn token(&self) -> Token {
        match self.step {
            Step::Hello | Step::Transaction => Token(self.key),
            // The key is the token with something added that depends on the nonce alone, and which adding again takes away.
            _ => Token(key_for(Token(self.key), &self.nonce, self.step)),
        }
    }

    /// As bytes.
    pub(crate) fn to_bytes(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8] = self.step as u8;
        bytes[12..16].copy_from_slice(&self.stream.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.key);
        bytes[32..].copy_from_slice(&self.nonce);
        bytes
    }

    /// From bytes; absent when they are no greeting.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
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

    const TOKEN: Token = Token(*b"sixteen bytes ok");
    const STEPS: [Step; 4] = [Step::Hello, Step::Proof, Step::Confirm, Step::Ready];

    #[test]
    fn a_greeting_survives_its_bytes() {
        for step in STEPS {
            let greeting = HandshakeMessage::new(TOKEN, step, 1023, &[1; 16], [2; 16]);
            assert_eq!(HandshakeMessage::from_bytes(&greeting.to_bytes()), Some(greeting));
            assert!(greeting.proves(TOKEN, &[1; 16]));
            assert!(!greeting.proves(Token([9; 16]), &[1; 16]));
        }
    }

    #[test]
    fn a_clients_messages_tell_the_token() {
        for step in [Step::Hello, Step::Confirm, Step::Transaction] {
            assert_eq!(HandshakeMessage::new(TOKEN, step, 7, &[3; 16], [3; 16]).token(), TOKEN, "{step:?}");
        }
    }

    #[test]
    fn an_echo_proves_nothing() {
        let hello = HandshakeMessage::new(TOKEN, Step::Hello, 0, &[0; 16], [5; 16]);
        let mut echo = hello;
        assert_ne!(echo.step, Step::Proof);
        echo.step = Step::Proof;
        assert!(!echo.proves(TOKEN, &hello.nonce));
    }

    #[test]
    fn the_key_of_one_step_is_not_that_of_another() {
        for left in STEPS {
            for right in STEPS {
                let same = key_for(TOKEN, &[3; 16], left) == key_for(TOKEN, &[3; 16], right);
                assert_eq!(same, left == right, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn other_bytes_are_no_greeting() {
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
