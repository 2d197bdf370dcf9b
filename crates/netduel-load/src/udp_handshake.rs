//! The server's part of greeting one UDP flow: what is answered to what. Addresses can be forged and datagrams are lost, so a
//! flow is given to an address only after an answer that was sent there came back. Sends nothing itself.
use std::net::SocketAddr;

use netduel_model::ids::Token;
use netduel_sys::random;

use crate::error::LoadError;
use crate::handshake::{HandshakeMessage, LENGTH, Step};

/// Between which addresses a flow runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub peer: SocketAddr,
    /// Which address of this host the peer speaks to; absent where the flow has a socket of its own from the beginning.
    pub local: Option<SocketAddr>,
}

/// How far a flow's greeting is.
#[derive(Debug, Clone, Copy)]
enum State {
    Unknown,
    Answered { route: Route, nonce: [u8; 16] },
    Ready { route: Route, nonce: [u8; 16] },
}

/// What is to be done about a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub bytes: [u8; LENGTH],
    /// Before it is sent, the flow's socket is to be connected and [`UdpHandshake::connected`] to be called.
    pub connects: bool,
}

/// The greeting of one flow.
#[derive(Debug)]
pub(crate) struct UdpHandshake {
    token: Token,
    flow: u32,
    state: State,
}

impl UdpHandshake {
    pub(crate) fn new(token: Token, flow: u32) -> Self {
        Self { token, flow, state: State::Unknown }
    }

    /// Whether the flow has its peer.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// The flow's index.
    pub(crate) fn flow(&self) -> usize {
        self.flow as usize
    }

    /// What to answer; nothing to who does not know the token, or comes from elsewhere than the flow's peer.
    ///
    /// # Errors
    /// [`LoadError::System`] when there are no random bytes.
    pub(crate) fn hear(
        &mut self,
        greeting: &HandshakeMessage,
        route: Route,
    ) -> Result<Option<Reply>, LoadError> {
        if greeting.stream != self.flow {
            return Ok(None);
        }
        let (answer, connects) = match (greeting.step, self.state) {
            (Step::Hello, State::Unknown | State::Answered { .. })
                if greeting.proves(self.token, &[0; 16]) =>
            {
                let nonce = match self.state {
                    State::Answered { route: known, nonce } if known == route => nonce,
                    _ => random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?,
                };
                self.state = State::Answered { route, nonce };
                (HandshakeMessage::new(self.token, Step::Proof, self.flow, &greeting.nonce, nonce), false)
            }
            (
                Step::Confirm,
                State::Answered { route: known, nonce } | State::Ready { route: known, nonce },
            ) if known == route && greeting.nonce == nonce && greeting.proves(self.token, &nonce) => {
                (HandshakeMessage::new(self.token, Step::Ready, self.flow, &nonce, nonce), !self.is_ready())
            }
            _ => return Ok(None),
        };
        Ok(Some(Reply { bytes: answer.to_bytes(), connects }))
    }

    /// The flow's socket is connected to the peer that the last reply is for.
    pub(crate) fn connected(&mut self) {
        if let State::Answered { route, nonce } = self.state {
            self.state = State::Ready { route, nonce };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token(*b"sixteen bytes ok");

    fn route(port: u16) -> Route {
        Route { peer: SocketAddr::from(([127, 0, 0, 1], port)), local: None }
    }

    fn hello() -> HandshakeMessage {
        HandshakeMessage::new(TOKEN, Step::Hello, 3, &[1; 16], [1; 16])
    }

    /// What a client says to a proof.
    fn confirm(proof: &Reply) -> HandshakeMessage {
        let proof = HandshakeMessage::from_bytes(&proof.bytes).unwrap();
        assert!(proof.step == Step::Proof && proof.proves(TOKEN, &[1; 16]));
        HandshakeMessage::new(TOKEN, Step::Confirm, 3, &proof.nonce, proof.nonce)
    }

    #[test]
    fn a_flow_is_given_to_who_returns_the_nonce_from_the_same_address() {
        let mut greeter = UdpHandshake::new(TOKEN, 3);
        let proof = greeter.hear(&hello(), route(1)).unwrap().unwrap();
        assert!(!proof.connects && !greeter.is_ready());
        assert_eq!(greeter.hear(&confirm(&proof), route(2)).unwrap(), None, "another address");
        let ready = greeter.hear(&confirm(&proof), route(1)).unwrap().unwrap();
        assert!(ready.connects && !greeter.is_ready(), "the caller connects");
        greeter.connected();
        let again = greeter.hear(&confirm(&proof), route(1)).unwrap().unwrap();
        assert_eq!((again.bytes, again.connects), (ready.bytes, false), "a lost answer is repeated");
        assert_eq!(greeter.hear(&hello(), route(2)).unwrap(), None, "the flow has its peer");
    }

    #[test]
    fn a_repeated_question_has_the_same_answer_and_another_address_another_nonce() {
        let mut greeter = UdpHandshake::new(TOKEN, 3);
        let first = greeter.hear(&hello(), route(1)).unwrap();
        assert_eq!(greeter.hear(&hello(), route(1)).unwrap(), first);
        assert_ne!(greeter.hear(&hello(), route(2)).unwrap(), first);
        assert_eq!(
            greeter.hear(&confirm(&first.unwrap()), route(1)).unwrap(),
            None,
            "the first is forgotten"
        );
    }

    #[test]
    fn strangers_and_other_flows_hear_nothing() {
        let mut greeter = UdpHandshake::new(TOKEN, 3);
        let stranger = HandshakeMessage::new(Token([7; 16]), Step::Hello, 3, &[0; 16], [0; 16]);
        assert_eq!(greeter.hear(&stranger, route(1)).unwrap(), None);
        assert_eq!(greeter.hear(&HandshakeMessage { stream: 4, ..hello() }, route(1)).unwrap(), None);
        let early = HandshakeMessage::new(TOKEN, Step::Confirm, 3, &[0; 16], [0; 16]);
        assert_eq!(greeter.hear(&early, route(1)).unwrap(), None, "nothing was asked yet");
    }
}
