//! Handshake over UDP, where addresses can be forged and datagrams are lost: each side repeats until answered, and the
//! server connects its socket to an address only after an answer that was sent there came back. No payload moves here.
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_sys::{clock, random, socket, udp};

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::handshake::{HandshakeMessage, LENGTH, Step};
use crate::socket_source::AcceptResult;
use crate::sockets::Sockets;
use crate::udp_handshake::{Route, UdpHandshake};
use crate::waker::{self, AcceptorState, TURN, left};

/// Send and receive buffer of each socket. With the default of the kernel (208 KiB) 20 to 40 % of small datagrams were
/// dropped at the receiver's socket when it was not scheduled for some milliseconds.
pub(crate) const BUFFER_BYTES: usize = 8 << 20;
/// How long an answer may take before the question is repeated.
const REPEAT: Duration = Duration::from_millis(100);
/// Datagrams read from one socket in a turn, so that a flood on one flow does not starve the others.
const READS_IN_A_TURN: usize = 64;

/// A flow at the server's gate. Its socket does not block.
pub(crate) struct Flow {
    pub socket: UdpSocket,
    /// Which address of this host its peer speaks to, where that is not the socket's own matter.
    pub local: Option<SocketAddr>,
    pub greeter: UdpHandshake,
}

/// What a port that trials share has for the gate of one.
pub(crate) enum Arrival {
    /// A flow that has its peer, and what was noted when its socket was prepared.
    Flow(Flow, ErrorCounts),
    /// A flow's client is there, and no socket could be made for it.
    Failure(io::Error),
}

/// The server's side, run in a thread of its own.
pub(crate) struct UdpAcceptor {
    pub flows: Vec<Flow>,
    pub expected: usize,
    /// Where flows come from that are not there from the beginning; each is announced by a byte on `wake`.
    pub arrivals: Option<Receiver<Arrival>>,
    pub wake: UnixStream,
    pub orders: Arc<AcceptorState>,
}

/// Prepares a socket for traffic; what the host does not give is noted.
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
    /// Answers until all flows are greeted and the end was started. Answers repeated questions until then, for the last
    /// answer may have been lost.
    pub(crate) fn run(mut self) -> AcceptResult {
        let mut heard: Vec<usize> = (0..self.flows.len()).collect();
        let mut setup = ErrorCounts::new();
        let mut failure = None;
        loop {
            let port_is_open = self.take_arrivals(&mut heard, &mut setup, &mut failure);
            let connected = self.flows.iter().filter(|flow| flow.greeter.is_ready()).count();
            let is_complete = connected == self.expected;
            if is_complete && self.orders.started.load(Relaxed) {
                return Ok((self.send_batch()?, setup));
            }
            let flows = heard.iter().map(|flow| self.flows[*flow].socket.as_fd());
            let descriptors: Vec<_> = std::iter::once(self.wake.as_fd()).chain(flows).collect();
            let ready = socket::wait_readable(&descriptors, TURN)
                .map_err(|error| LoadError::system("wait for the client's greeting", error))?;
            let is_abandoned = ready[0] && !waker::drain(&mut self.wake);
            if is_abandoned || waker::is_timed_out(&self.orders) || !(is_complete || port_is_open) {
                return Err(match failure {
                    Some(error) => LoadError::system("open a socket for a flow of the client", error),
                    None => LoadError::NoClient { connected, expected: self.expected },
                });
            }
            let mut still_heard = Vec::with_capacity(heard.len());
            for (flow, ready) in heard.into_iter().zip(&ready[1..]) {
                if !*ready || self.flows[flow].hear()? {
                    still_heard.push(flow);
                }
            }
            heard = still_heard;
        }
    }

    /// Takes the flows that came; false when no more can come.
    fn take_arrivals(
        &mut self,
        heard: &mut Vec<usize>,
        setup: &mut ErrorCounts,
        failure: &mut Option<io::Error>,
    ) -> bool {
        let Some(arrivals) = &self.arrivals else { return true };
        loop {
            match arrivals.try_recv() {
                Ok(Arrival::Flow(flow, errors)) => {
                    heard.push(self.flows.len());
                    self.flows.push(flow);
                    setup.take_in(errors);
                }
                Ok(Arrival::Failure(error)) => *failure = Some(error),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn send_batch(mut self) -> Result<Sockets, LoadError> {
        self.flows.sort_by_key(|flow| flow.greeter.flow());
        for flow in &self.flows {
            flow.socket
                .set_nonblocking(false)
                .map_err(|error| LoadError::system("make the socket blocking", error))?;
        }
        let udp = self.flows.into_iter().map(|flow| Arc::new(flow.socket)).collect();
        Ok(Sockets { udp, ..Sockets::default() })
    }
}

impl Flow {
    /// Hears what came; false when something else than a greeting waits on a greeted flow. It may be payload, which is
    /// for the receiver to count, so it is looked at and not taken.
    fn hear(&mut self) -> Result<bool, LoadError> {
        // One byte more than a greeting, so that a longer datagram is not taken for one.
        let mut bytes = [0; LENGTH + 1];
        for _ in 0..READS_IN_A_TURN {
            let is_greeted = self.greeter.is_ready();
            let result = if is_greeted {
                self.socket.peek_from(&mut bytes)
            } else {
                self.socket.recv_from(&mut bytes)
            };
            let (length, peer) = match result {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                // An ICMP answer to one of ours: reading it has taken it off the socket.
                Err(_) => continue,
            };
            let greeting = HandshakeMessage::from_bytes(&bytes[..length]);
            if is_greeted {
                if greeting.is_none() {
                    return Ok(false);
                }
                let _ = self.socket.recv_from(&mut bytes);
            }
            if let Some(greeting) = greeting {
                self.answer(&greeting, peer)?;
            }
        }
        Ok(true)
    }

    fn answer(&mut self, greeting: &HandshakeMessage, peer: SocketAddr) -> Result<(), LoadError> {
        let Some(reply) = self.greeter.hear(greeting, Route { peer, local: self.local })? else {
            return Ok(());
        };
        if reply.connects {
            self.socket.connect(peer).map_err(|error| LoadError::connect(peer, error))?;
            self.greeter.connected();
        }
        // A lost answer is asked for again. A connected socket takes no address.
        let _ = if self.greeter.is_ready() {
            self.socket.send(&reply.bytes)
        } else {
            self.socket.send_to(&reply.bytes, peer)
        };
        Ok(())
    }
}

/// The client's side of one flow: greets before `deadline_ns`.
pub(crate) fn connect(
    address: SocketAddr,
    token: Token,
    flow: u32,
    deadline_ns: u64,
    errors: &mut ErrorCounts,
) -> Result<UdpSocket, LoadError> {
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).map_err(|error| LoadError::bind(any, error))?;
    socket.connect(address).map_err(|error| LoadError::connect(address, error))?;
    prepare_socket(&socket, errors);
    let nonce = random::bytes16().map_err(|error| LoadError::system("draw random bytes", error))?;
    let hello = HandshakeMessage::new(token, Step::Hello, flow, &nonce, nonce);
    let proof = ask(&socket, address, &hello, Step::Proof, token, deadline_ns)?;
    let confirm = HandshakeMessage::new(token, Step::Confirm, flow, &proof.nonce, proof.nonce);
    ask(&socket, address, &confirm, Step::Ready, token, deadline_ns)?;
    let unlimited = socket.set_read_timeout(None);
    unlimited.map_err(|error| LoadError::system("end the limit of the wait", error))?;
    Ok(socket)
}

/// Repeats `question` until the answer comes that proves the token.
fn ask(
    socket: &UdpSocket,
    address: SocketAddr,
    question: &HandshakeMessage,
    expected: Step,
    token: Token,
    deadline_ns: u64,
) -> Result<HandshakeMessage, LoadError> {
    let mut bytes = [0; LENGTH + 1];
    let mut heard_other = false;
    loop {
        socket.send(&question.to_bytes()).map_err(|error| LoadError::connect(address, error))?;
        let repeat_ns = clock::monotonic_ns() + REPEAT.as_nanos() as u64;
        while clock::monotonic_ns() < repeat_ns.min(deadline_ns) {
            let wait = socket.set_read_timeout(Some(left(repeat_ns.min(deadline_ns))));
            wait.map_err(|error| LoadError::system("limit the wait for the greeting", error))?;
            match socket.recv(&mut bytes) {
                Ok(length) => match HandshakeMessage::from_bytes(&bytes[..length]) {
                    Some(answer)
                        if answer.step == expected
                            && answer.stream == question.stream
                            && answer.proves(token, &question.nonce) =>
                    {
                        return Ok(answer);
                    }
                    _ => heard_other = true,
                },
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LoadError::connect(address, error)),
            }
        }
        if clock::monotonic_ns() >= deadline_ns {
            return Err(if heard_other {
                LoadError::NotAnAgent { address }
            } else {
                LoadError::connect(address, io::Error::from(io::ErrorKind::TimedOut))
            });
        }
    }
}
