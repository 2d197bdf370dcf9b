//! What a stranger can send to a data socket: messages of the handshake, and frames with datagrams.
use netduel_load::frame_payload;
use netduel_load::handshake::{HandshakeMessage, Step};
use netduel_model::ids::Token;

/// The token of the trial, which strangers do not know.
const TOKEN: Token = Token(*b"sixteen bytes ok");

/// Reads a message of the handshake and a frame.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(message) = HandshakeMessage::from_bytes(bytes) {
        assert_eq!(HandshakeMessage::from_bytes(&message.to_bytes()), Some(message));
        let is_of_token = message.proves(TOKEN, &message.nonce);
        if matches!(message.step, Step::Hello | Step::Transaction) {
            assert_eq!(
                is_of_token,
                message.token() == TOKEN,
                "a message is for the trial whose token it has"
            );
        }
        let answer =
            HandshakeMessage::new(message.token(), Step::Proof, message.stream, &message.nonce, [0; 16]);
        assert!(answer.proves(message.token(), &message.nonce), "the sender can check the answer");
    }
    if let Some((_, payload)) = frame_payload(bytes) {
        assert!(payload.len() < bytes.len(), "a payload has headers before it");
    }
}
