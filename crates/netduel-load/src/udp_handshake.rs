//! The server's handshake of one UDP flow, as a state machine. Source addresses can be forged and datagrams can be lost, so a flow is
//! assigned to an address only after the server's nonce came back from there. Sends nothing itself.
use std::net::SocketAddr;

use netduel_model::ids::Token;
use netduel_sys::random;

use crate::error::LoadError;
use crate::handshake::{HandshakeMessage, LENGTH, Step};

/// The addresses of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub peer: SocketAddr,
    /// The address of this host that the peer sends to; absent when the flow has its own socket from the beginning.
    pub local: Option<SocketAddr>,
}

/// Progress of the handshake.
#[derive(Debug, Clone, Copy)]
enum State {
    Unknown,
    Answered { route: Route, nonce: [u8; 16] },
    Ready { route: Route, nonce: [u8; 16] },
}

/// The reply to a handshake message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    pub bytes: [u8; LENGTH],
    /// Before sending it, the caller must connect the flow's socket and call [`UdpHandshake::connected`].
    pub must_connect: bool,
}

/// The handshake of one flow.
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

    /// Whether the flow's socket is connected to its peer.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }

    /// The peer that the server has answered, connected or not.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self.state {
            State::Unknown => None,
            State::Answered { route, .. } | State::Ready { route, .. } => Some(route.peer),
        }
    }

    /// The flow's index.
    pub(crate) fn flow(&self) -> usize {
        self.flow as usize
    }

    /// The reply to a message; absent when the sender does not know the token, or is not the peer of the flow.
    ///
    /// # Errors
    /// [`LoadError::System`] when there are no random bytes.
    pub(crate) fn receive(
        &mut self,
        message: &HandshakeMessage,
        route: Route,
    ) -> Result<Option<Reply>, LoadError> {
        if message.stream != self.flow {
            return Ok(None);
        }
        let (answer, must_connect) = match (message.step, self.state) {
            (Step::Hello, State::Unknown | State::Answered { .. })
                if message.proves(self.token, &[0; 16]) =>
            {
                let nonce = match self.state {
                    State::Answered { route: known, nonce } if known == route => nonce,
                    _ => random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?,
                };
                self.state = State::Answered { route, nonce };
                (HandshakeMessage::new(self.token, Step::Proof, self.flow, &message.nonce, nonce), false)
            }
            (
                Step::Confirm,
                State::Answered { route: known, nonce } | State::Ready { route: known, nonce },
            ) if known == route && message.nonce == nonce && message.proves(self.token, &nonce) => {
                (HandshakeMessage::new(self.token, Step::Ready, self.flow, &nonce, nonce), !self.is_ready())
            }
            _ => return Ok(None),
        };
        Ok(Some(Reply { bytes: answer.to_bytes(), must_connect }))
    }

    /// Records that the flow's socket is connected to the peer of the last reply.
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

    /// The message with which a client confirms a proof.
    fn confirm(proof: &Reply) -> HandshakeMessage {
        let proof = HandshakeMessage::from_bytes(&proof.bytes).unwrap();
        assert!(proof.step == Step::Proof && proof.proves(TOKEN, &[1; 16]));
        HandshakeMessage::new(TOKEN, Step::Confirm, 3, &proof.nonce, proof.nonce)
    }

    #[test]
    fn flow_is_assigned_to_the_address_that_returns_the_nonce() {
        let mut handshake = UdpHandshake::new(TOKEN, 3);
        let proof = handshake.receive(&hello(), route(1)).unwrap().unwrap();
        assert!(!proof.must_connect && !handshake.is_ready());
        assert_eq!(handshake.receive(&confirm(&proof), route(2)).unwrap(), None, "another address");
        let ready = handshake.receive(&confirm(&proof), route(1)).unwrap().unwrap();
        assert!(ready.must_connect && !handshake.is_ready(), "the caller must_connect");
        handshake.connected();
        let again = handshake.receive(&confirm(&proof), route(1)).unwrap().unwrap();
        assert_eq!((again.bytes, again.must_connect), (ready.bytes, false), "a lost answer is repeated");
        assert_eq!(handshake.receive(&hello(), route(2)).unwrap(), None, "the flow is connected");
    }

    #[test]
    fn repeated_hello_has_the_same_reply_and_another_address_another_nonce() {
        let mut handshake = UdpHandshake::new(TOKEN, 3);
        let first = handshake.receive(&hello(), route(1)).unwrap();
        assert_eq!(handshake.receive(&hello(), route(1)).unwrap(), first);
        assert_ne!(handshake.receive(&hello(), route(2)).unwrap(), first);
        assert_eq!(
            handshake.receive(&confirm(&first.unwrap()), route(1)).unwrap(),
            None,
            "the first nonce is replaced"
        );
    }

    #[test]
    fn wrong_token_and_other_flows_have_no_reply() {
        let mut handshake = UdpHandshake::new(TOKEN, 3);
        let foreign = HandshakeMessage::new(Token([7; 16]), Step::Hello, 3, &[0; 16], [0; 16]);
        assert_eq!(handshake.receive(&foreign, route(1)).unwrap(), None);
        assert_eq!(handshake.receive(&HandshakeMessage { stream: 4, ..hello() }, route(1)).unwrap(), None);
        let early = HandshakeMessage::new(TOKEN, Step::Confirm, 3, &[0; 16], [0; 16]);
        assert_eq!(handshake.receive(&early, route(1)).unwrap(), None, "no Hello was received");
    }
}
