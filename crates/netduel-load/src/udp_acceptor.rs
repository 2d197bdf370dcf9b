//! Handshake over UDP, where source addresses can be forged and datagrams are lost: the client repeats each message until it has a
//! reply, and the server connects its socket only after its nonce came back from the address. No payload moves here.
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_sys::local_bind::{self, LocalBind};
use netduel_sys::{clock, random, socket, udp};

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::handshake::{HandshakeMessage, LENGTH, Step};
use crate::socket_source::AcceptResult;
use crate::sockets::Accepted;
use crate::udp_handshake::{Route, UdpHandshake};
use crate::waker::{self, AcceptorState, POLL_TIMEOUT, remaining};

/// Send and receive buffer of each socket. With the default of the kernel (208 KiB) 20 to 40 % of small datagrams were
/// dropped at the receiver's socket when its thread was not scheduled for some milliseconds.
pub(crate) const BUFFER_BYTES: usize = 8 << 20;
/// Time without a reply after which a message is repeated.
const REPEAT: Duration = Duration::from_millis(100);
/// Datagrams read from one socket per turn, so that a flood on one flow does not starve the others.
const READS_PER_TURN: usize = 64;

/// A flow during its handshake at the server. Its socket does not block.
pub(crate) struct Flow {
    pub socket: UdpSocket,
    /// The address of this host that the peer sends to, on a shared port.
    pub local: Option<SocketAddr>,
    pub handshake: UdpHandshake,
}

/// What a shared port delivers to the acceptor of a trial.
pub(crate) enum Arrival {
    /// A connected flow, and the errors of preparing its socket.
    Flow(Flow, ErrorCounts),
    /// No socket could be opened for a flow of an authenticated client.
    Failure(io::Error),
}

/// The server's side, run in a thread of its own.
pub(crate) struct UdpAcceptor {
    pub flows: Vec<Flow>,
    pub expected: usize,
    /// On a shared port, the flows as they are connected; each comes with a byte on `wake`.
    pub arrivals: Option<Receiver<Arrival>>,
    pub wake: UnixStream,
    pub state: Arc<AcceptorState>,
}

/// Prepares a socket for traffic. Smaller granted buffers are recorded.
pub(crate) fn prepare_socket(socket: &UdpSocket, errors: &mut ErrorCounts) {
    match socket::set_buffers(socket, BUFFER_BYTES) {
        Ok((sending, receiving)) => {
            for (name, got) in [("SO_SNDBUF", sending), ("SO_RCVBUF", receiving)] {
                if got < BUFFER_BYTES {
                    errors.remark(
                        &format!("setsockopt {name}"),
                        format!(
                            "got {got} of {BUFFER_BYTES} bytes: raise net.core.rmem_max and net.core.wmem_max"
                        ),
                    );
                }
            }
        }
        Err(error) => errors.count("setsockopt SO_RCVBUF", &error),
    }
    errors.count_failure("setsockopt IP_RECVERR", udp::report_send_errors(socket));
}

impl UdpAcceptor {
    /// Replies until all flows are connected and the end was started. Repeated messages are answered until then, because the last
    /// reply may have been lost.
    pub(crate) fn run(mut self) -> AcceptResult {
        let mut polled: Vec<usize> = (0..self.flows.len()).collect();
        let mut setup = ErrorCounts::new();
        let mut failure = None;
        loop {
            let port_is_open = self.take_arrivals(&mut polled, &mut setup, &mut failure);
            let connected = self.flows.iter().filter(|flow| flow.handshake.is_ready()).count();
            let is_complete = connected == self.expected;
            if is_complete && self.state.started.load(Relaxed) {
                return Ok((Accepted::Flows(self.into_sockets()?), setup));
            }
            let flows = polled.iter().map(|flow| self.flows[*flow].socket.as_fd());
            let descriptors: Vec<_> = std::iter::once(self.wake.as_fd()).chain(flows).collect();
            let ready = socket::wait_readable(&descriptors, POLL_TIMEOUT)
                .map_err(|error| LoadError::system("wait for the client's handshake", error))?;
            let is_abandoned = ready[0] && !waker::drain(&mut self.wake);
            if is_abandoned || waker::is_timed_out(&self.state) || !(is_complete || port_is_open) {
                return Err(match failure {
                    Some(error) => LoadError::system("open a socket for a flow of the client", error),
                    None => LoadError::NoClient { connected, expected: self.expected },
                });
            }
            let mut still_polled = Vec::with_capacity(polled.len());
            for (flow, ready) in polled.into_iter().zip(&ready[1..]) {
                if !*ready || self.flows[flow].receive()? {
                    still_polled.push(flow);
                }
            }
            polled = still_polled;
        }
    }

    /// Takes the delivered flows; false when the shared port is closed.
    fn take_arrivals(
        &mut self,
        polled: &mut Vec<usize>,
        setup: &mut ErrorCounts,
        failure: &mut Option<io::Error>,
    ) -> bool {
        let Some(arrivals) = &self.arrivals else { return true };
        loop {
            match arrivals.try_recv() {
                Ok(Arrival::Flow(flow, errors)) => {
                    polled.push(self.flows.len());
                    self.flows.push(flow);
                    setup.merge_from(errors);
                }
                Ok(Arrival::Failure(error)) => *failure = Some(error),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn into_sockets(mut self) -> Result<Vec<Arc<UdpSocket>>, LoadError> {
        self.flows.sort_by_key(|flow| flow.handshake.flow());
        for flow in &self.flows {
            flow.socket
                .set_nonblocking(false)
                .map_err(|error| LoadError::system("make the socket blocking", error))?;
        }
        Ok(self.flows.into_iter().map(|flow| Arc::new(flow.socket)).collect())
    }
}

impl Flow {
    /// Reads received datagrams; false when something other than a handshake message waits on a connected flow. That may be payload for
    /// the receiver, so it is peeked and not read.
    pub(crate) fn receive(&mut self) -> Result<bool, LoadError> {
        // One byte more than a message, to detect longer datagrams.
        let mut bytes = [0; LENGTH + 1];
        for _ in 0..READS_PER_TURN {
            let is_connected = self.handshake.is_ready();
            let result = if is_connected {
                self.socket.peek_from(&mut bytes)
            } else {
                self.socket.recv_from(&mut bytes)
            };
            let (length, peer) = match result {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                // An ICMP error for an earlier reply: reading it has cleared it.
                Err(_) => continue,
            };
            let message = HandshakeMessage::from_bytes(&bytes[..length]);
            if is_connected {
                if message.is_none() {
                    return Ok(false);
                }
                let _ = self.socket.recv_from(&mut bytes);
            }
            if let Some(message) = message {
                self.answer(&message, peer)?;
            }
        }
        Ok(true)
    }

    fn answer(&mut self, message: &HandshakeMessage, peer: SocketAddr) -> Result<(), LoadError> {
        let Some(reply) = self.handshake.receive(message, Route { peer, local: self.local })? else {
            return Ok(());
        };
        if reply.must_connect {
            self.socket.connect(peer).map_err(|error| LoadError::connect(peer, error))?;
            self.handshake.connected();
        }
        // The client repeats its message when the reply is lost. A connected socket takes no address.
        let _ = if self.handshake.is_ready() {
            self.socket.send(&reply.bytes)
        } else {
            self.socket.send_to(&reply.bytes, peer)
        };
        Ok(())
    }
}

/// The client's side of one flow: does the handshake before `deadline_ns`.
pub(crate) fn connect(
    address: SocketAddr,
    token: Token,
    flow: u32,
    deadline_ns: u64,
    bind: &LocalBind,
    errors: &mut ErrorCounts,
) -> Result<UdpSocket, LoadError> {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let connect_error = |error| LoadError::connect_from(bind, address, error);
    let socket = local_bind::udp(bind, any).map_err(connect_error)?;
    socket.connect(address).map_err(connect_error)?;
    prepare_socket(&socket, errors);
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let hello = HandshakeMessage::new(token, Step::Hello, flow, &nonce, nonce);
    let proof = request(&socket, address, &hello, Step::Proof, token, deadline_ns)?;
    let confirm = HandshakeMessage::new(token, Step::Confirm, flow, &proof.nonce, proof.nonce);
    request(&socket, address, &confirm, Step::Ready, token, deadline_ns)?;
    let unlimited = socket.set_read_timeout(None);
    unlimited.map_err(|error| LoadError::system("remove the receive timeout", error))?;
    Ok(socket)
}

/// Repeats `request` until the reply that proves the token.
fn request(
    socket: &UdpSocket,
    address: SocketAddr,
    request: &HandshakeMessage,
    expected: Step,
    token: Token,
    deadline_ns: u64,
) -> Result<HandshakeMessage, LoadError> {
    let mut bytes = [0; LENGTH + 1];
    let mut received_other = false;
    loop {
        socket.send(&request.to_bytes()).map_err(|error| LoadError::connect(address, error))?;
        let repeat_ns = clock::monotonic_ns() + REPEAT.as_nanos() as u64;
        while clock::monotonic_ns() < repeat_ns.min(deadline_ns) {
            let wait = socket.set_read_timeout(Some(remaining(repeat_ns.min(deadline_ns))));
            wait.map_err(|error| LoadError::system("limit the wait for the handshake", error))?;
            match socket.recv(&mut bytes) {
                Ok(length) => match HandshakeMessage::from_bytes(&bytes[..length]) {
                    Some(answer)
                        if answer.step == expected
                            && answer.stream == request.stream
                            && answer.proves(token, &request.nonce) =>
                    {
                        return Ok(answer);
                    }
                    _ => received_other = true,
                },
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LoadError::connect(address, error)),
            }
        }
        if clock::monotonic_ns() >= deadline_ns {
            return Err(if received_other {
                LoadError::NotAnAgent { address }
            } else {
                LoadError::connect(address, io::Error::from(io::ErrorKind::TimedOut))
            });
        }
    }
}
