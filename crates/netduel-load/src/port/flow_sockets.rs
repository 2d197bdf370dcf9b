//! The UDP socket that receives the handshake messages of all trials, and the sockets of flows that are opened beside it.
//!
//! A flow's socket is bound to the address that its client sends to and then connected. Between these calls the kernel delivers to it
//! the datagrams of all peers without a connected socket: handshake messages (payload goes to connected sockets only) and invalid
//! ones. They are read after the connect and handled as if they had arrived at the shared socket.
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use netduel_sys::{packet_info, shared_port};

use super::registry::{Registry, Trial};
use crate::error_counts::ErrorCounts;
use crate::handshake::{HandshakeMessage, LENGTH};
use crate::udp_acceptor::{self, Arrival, Flow};
use crate::udp_handshake::Route;

/// Datagrams read per turn, so that a flood does not starve TCP connections.
const READS_PER_TURN: usize = 64;
/// Datagrams of other peers read from a flow's new socket, at most. A network of 100 Gbit/s delivers fewer between bind and connect,
/// which takes microseconds.
const STALE_DATAGRAMS_MAX: usize = 4096;

pub(super) struct FlowSockets {
    socket: UdpSocket,
    port: u16,
    registry: Arc<Registry>,
    /// Handshake messages that were read and not answered yet.
    received: VecDeque<(HandshakeMessage, Route)>,
}

impl FlowSockets {
    pub(super) fn new(socket: UdpSocket, port: u16, registry: Arc<Registry>) -> Self {
        Self { socket, port, registry, received: VecDeque::new() }
    }

    /// The descriptor to poll.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads and answers the received messages.
    ///
    /// # Errors
    /// When the socket of a flow could not be opened. Its trial was notified and its client repeats the message; other messages were
    /// answered.
    pub(super) fn receive(&mut self) -> io::Result<()> {
        // One byte more than a message, to detect longer datagrams.
        let mut bytes = [0; LENGTH + 1];
        let mut result = Ok(());
        for _ in 0..READS_PER_TURN {
            match packet_info::receive(&self.socket, &mut bytes) {
                Ok(datagram) => {
                    let mut local = datagram.local;
                    local.set_port(self.port);
                    let route = Route { peer: datagram.peer, local: Some(local) };
                    self.received.extend(
                        HandshakeMessage::from_bytes(&bytes[..datagram.length])
                            .map(|message| (message, route)),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The ICMP error of an earlier reply: reading it has cleared it.
                Err(_) => {}
            }
            result = self.answer_received().and(result);
        }
        result
    }

    fn answer_received(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        while let Some((message, route)) = self.received.pop_front() {
            result = self.answer(&message, route).and(result);
        }
        result
    }

    fn answer(&mut self, message: &HandshakeMessage, route: Route) -> io::Result<()> {
        let registry = Arc::clone(&self.registry);
        registry.with(message.token(), |trial| self.answer_for(trial, message, route)).unwrap_or(Ok(()))
    }

    fn answer_for(&mut self, trial: &mut Trial, message: &HandshakeMessage, route: Route) -> io::Result<()> {
        let (Some(place), Some(local)) = (trial.handshakes.get_mut(message.stream as usize), route.local)
        else {
            return Ok(());
        };
        // A connected flow has its own socket. Without random bytes there is no reply, and the client repeats its message.
        let Some(Ok(Some(reply))) = place.as_mut().map(|handshake| handshake.receive(message, route)) else {
            return Ok(());
        };
        if !reply.must_connect {
            // The client repeats its message when the reply is lost.
            let _ = packet_info::send(&self.socket, &reply.bytes, local, route.peer);
            return Ok(());
        }
        let Some(delivery) = &trial.flows else { return Ok(()) };
        let (socket, setup) = match self.open(local, route.peer) {
            Ok(opened) => opened,
            Err(error) => {
                let again = io::Error::from(error.kind());
                delivery.send(Arrival::Failure(error));
                return Err(again);
            }
        };
        let _ = socket.send(&reply.bytes);
        if let Some(mut handshake) = place.take() {
            handshake.connected();
            delivery.send(Arrival::Flow(Flow { socket, local: route.local, handshake }, setup));
        }
        Ok(())
    }

    /// A socket for the datagrams from `peer` to `local` only.
    fn open(&mut self, local: SocketAddr, peer: SocketAddr) -> io::Result<(UdpSocket, ErrorCounts)> {
        let mut setup = ErrorCounts::new();
        let socket = self.bind_beside(local, &mut setup)?;
        self.connect(&socket, local, peer)?;
        Ok((socket, setup))
    }

    fn bind_beside(&self, local: SocketAddr, setup: &mut ErrorCounts) -> io::Result<UdpSocket> {
        let socket = shared_port::unbound(local)?;
        // Slow calls come before the bind, so that the socket receives from other peers as briefly as possible.
        udp_acceptor::prepare_socket(&socket, setup);
        shared_port::bind_beside(&self.socket, &socket, local)?;
        Ok(socket)
    }

    /// Connects, and reads the datagrams of other peers since the bind.
    fn connect(&mut self, socket: &UdpSocket, local: SocketAddr, peer: SocketAddr) -> io::Result<()> {
        socket.connect(peer)?;
        let mut bytes = [0; LENGTH + 1];
        for _ in 0..STALE_DATAGRAMS_MAX {
            match socket.recv_from(&mut bytes) {
                Ok((length, peer)) => {
                    let route = Route { peer, local: Some(local) };
                    self.received.extend(
                        HandshakeMessage::from_bytes(&bytes[..length]).map(|message| (message, route)),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use netduel_model::ids::Token;
    use netduel_sys::socket;

    use super::super::registry::Delivery;
    use super::*;
    use crate::handshake::Step;
    use crate::waker::Waker;

    const TOKEN: Token = Token(*b"sixteen bytes ok");
    const LIMIT: Duration = Duration::from_secs(60);

    fn message(socket: &UdpSocket) -> HandshakeMessage {
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let mut bytes = [0; LENGTH];
        let length = socket.recv(&mut bytes).unwrap();
        HandshakeMessage::from_bytes(&bytes[..length]).unwrap()
    }

    #[test]
    fn datagrams_of_other_peers_before_the_connect_are_answered_and_removed() {
        let socket = shared_port::bind("[::]:0".parse().unwrap()).unwrap();
        packet_info::enable(&socket).unwrap();
        let port = socket.local_addr().unwrap().port();
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let registry = Arc::new(Registry::default());
        let mut trial = Trial::new(TOKEN, None);
        let (sender, _arrivals) = channel();
        let (wake, _watched) = Waker::pair().unwrap();
        trial.expect_flows(1, Delivery::new(sender, wake.handle().unwrap()));
        let _registration = registry.register(trial).unwrap();
        let mut flows = FlowSockets::new(socket, port, registry);

        let [peer, other] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let flow = flows.bind_beside(local, &mut ErrorCounts::new()).unwrap();
        let hello = HandshakeMessage::new(TOKEN, Step::Hello, 0, &[1; 16], [1; 16]);
        for nonsense in [&b"nonsense"[..], &[0; 1400]] {
            other.send_to(nonsense, local).unwrap();
        }
        other.send_to(&hello.to_bytes(), local).unwrap();
        // It arrived at the unconnected socket of the flow: this is the window.
        assert!(socket::wait_readable(&[flow.as_fd()], LIMIT).unwrap()[0]);
        assert!(!socket::wait_readable(&[flows.as_fd()], Duration::ZERO).unwrap()[0]);
        flows.connect(&flow, local, peer.local_addr().unwrap()).unwrap();
        assert_eq!(flow.recv(&mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        flows.answer_received().unwrap();
        assert_eq!(message(&other).step, Step::Proof);
    }
}
