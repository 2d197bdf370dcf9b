//! The UDP socket that hears the greetings of all trials, and the sockets of flows that are opened beside it.
//!
//! A flow's socket is bound to the address that its client speaks to and then connected, and in between the kernel gives it
//! what others send there for whom it has no connected socket. Those are greetings (payload is sent to connected sockets only)
//! and nonsense. So what is found in it after it was connected is heard here as if it had come to the shared socket.
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

/// Datagrams read in a turn, so that a flood does not starve those who connect.
const READS_IN_A_TURN: usize = 64;
/// Datagrams taken off a flow's new socket, so that a flood cannot hold us up: in the microseconds for which it hears others,
/// a network of 100 Gbit/s brings fewer.
const STALE_DATAGRAMS_MAX: usize = 4096;

pub(super) struct FlowSockets {
    socket: UdpSocket,
    port: u16,
    registry: Arc<Registry>,
    /// Greetings that were read and not answered yet.
    heard: VecDeque<(HandshakeMessage, Route)>,
}

impl FlowSockets {
    pub(super) fn new(socket: UdpSocket, port: u16, registry: Arc<Registry>) -> Self {
        Self { socket, port, registry, heard: VecDeque::new() }
    }

    /// What is to be watched.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Answers what came.
    ///
    /// # Errors
    /// When a flow could not be opened. Its trial was told, its client will ask again, and the others were answered.
    pub(super) fn hear(&mut self) -> io::Result<()> {
        // One byte more than a greeting, so that a longer datagram is not taken for one.
        let mut bytes = [0; LENGTH + 1];
        let mut result = Ok(());
        for _ in 0..READS_IN_A_TURN {
            match packet_info::receive(&self.socket, &mut bytes) {
                Ok(datagram) => {
                    let mut local = datagram.local;
                    local.set_port(self.port);
                    let route = Route { peer: datagram.peer, local: Some(local) };
                    self.heard.extend(
                        HandshakeMessage::from_bytes(&bytes[..datagram.length]).map(|said| (said, route)),
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The error of an earlier answer: reading it has taken it off the socket.
                Err(_) => {}
            }
            result = self.answer_heard().and(result);
        }
        result
    }

    fn answer_heard(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        while let Some((greeting, route)) = self.heard.pop_front() {
            result = self.answer(&greeting, route).and(result);
        }
        result
    }

    fn answer(&mut self, greeting: &HandshakeMessage, route: Route) -> io::Result<()> {
        let registry = Arc::clone(&self.registry);
        registry.with(greeting.token(), |trial| self.answer_for(trial, greeting, route)).unwrap_or(Ok(()))
    }

    fn answer_for(&mut self, trial: &mut Trial, greeting: &HandshakeMessage, route: Route) -> io::Result<()> {
        let (Some(place), Some(local)) = (trial.greeters.get_mut(greeting.stream as usize), route.local)
        else {
            return Ok(());
        };
        // A flow that has its peer hears for itself. Without random bytes the client asks again.
        let Some(Ok(Some(reply))) = place.as_mut().map(|greeter| greeter.hear(greeting, route)) else {
            return Ok(());
        };
        if !reply.connects {
            // A lost answer is asked for again.
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
        if let Some(mut greeter) = place.take() {
            greeter.connected();
            delivery.send(Arrival::Flow(Flow { socket, local: route.local, greeter }, setup));
        }
        Ok(())
    }

    /// A socket that the kernel gives the datagrams from `peer` to `local`, and no others.
    fn open(&mut self, local: SocketAddr, peer: SocketAddr) -> io::Result<(UdpSocket, ErrorCounts)> {
        let mut setup = ErrorCounts::new();
        let socket = self.bind_beside(local, &mut setup)?;
        self.connect(&socket, local, peer)?;
        Ok((socket, setup))
    }

    fn bind_beside(&self, local: SocketAddr, setup: &mut ErrorCounts) -> io::Result<UdpSocket> {
        let socket = shared_port::unbound(local)?;
        // What takes long comes before the bind, so that others come to this socket for as short as can be.
        udp_acceptor::prepare_socket(&socket, setup);
        shared_port::bind_beside(&self.socket, &socket, local)?;
        Ok(socket)
    }

    /// Connects, and takes what came from others since the bind.
    fn connect(&mut self, socket: &UdpSocket, local: SocketAddr, peer: SocketAddr) -> io::Result<()> {
        socket.connect(peer)?;
        let mut bytes = [0; LENGTH + 1];
        for _ in 0..STALE_DATAGRAMS_MAX {
            match socket.recv_from(&mut bytes) {
                Ok((length, peer)) => {
                    let route = Route { peer, local: Some(local) };
                    self.heard
                        .extend(HandshakeMessage::from_bytes(&bytes[..length]).map(|said| (said, route)));
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

    fn greeting(socket: &UdpSocket) -> HandshakeMessage {
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let mut bytes = [0; LENGTH];
        let length = socket.recv(&mut bytes).unwrap();
        HandshakeMessage::from_bytes(&bytes[..length]).unwrap()
    }

    #[test]
    fn what_others_send_before_a_flow_is_connected_is_heard_and_nothing_of_it_is_left_in_the_flow() {
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
        // It came to the wrong socket: this is the window.
        assert!(socket::wait_readable(&[flow.as_fd()], LIMIT).unwrap()[0]);
        assert!(!socket::wait_readable(&[flows.as_fd()], Duration::ZERO).unwrap()[0]);
        flows.connect(&flow, local, peer.local_addr().unwrap()).unwrap();
        assert_eq!(flow.recv(&mut [0; 64]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        flows.answer_heard().unwrap();
        assert_eq!(greeting(&other).step, Step::Proof);
    }
}
