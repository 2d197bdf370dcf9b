//! A probe of ports before the first trial: the handshake of a trial with each port, and the addresses that each end saw. No payload
//! moves.
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_model::data_ports::{ListenAt, PortAnswer, PortNeeds, PortProtocol, ProbeSource, ProbedPort};
use netduel_model::ids::Token;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::tcp_table::{self, State};
use netduel_sys::{clock, error_name, socket};

use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::handshake::Step;
use crate::pending_handshakes::{self, FirstBytes, PendingHandshakes};
use crate::server::{bind_flows, port_of};
use crate::udp_acceptor::Flow;
use crate::waker::{self, POLL_TIMEOUT, Waker};
use crate::{free_port, preflight, spawn, tcp_acceptor, udp_acceptor};

/// Ports that a client probes at the same time: a blocked port costs its whole timeout.
const AT_A_TIME: usize = 32;

/// The open ports of a server. Dropping it closes them.
#[derive(Debug)]
pub struct OpenPorts {
    tcp: Vec<u16>,
    udp: Vec<u16>,
    wake: Option<Waker>,
    thread: Option<JoinHandle<Vec<ProbeSource>>>,
}

impl OpenPorts {
    /// Binds the ports that trials with these needs would have, and answers the client that knows `token`. Of ports that the kernel
    /// chooses, one of each protocol stands for all.
    ///
    /// # Errors
    /// As [`crate::prepare_server`].
    pub fn open(listen: ListenAt, needs: PortNeeds, token: Token) -> Result<Self, LoadError> {
        let udp_flows = if listen.ports.is_some() { needs.udp } else { needs.udp.min(1) };
        preflight::raise_descriptor_limit(u64::from(needs.tcp) + u64::from(udp_flows))?;
        let listener = if needs.tcp { Some(free_port::listener(listen, None)?) } else { None };
        let flows = bind_flows(listen, udp_flows, token, &mut ErrorCounts::new())?;
        let tcp = listener.iter().map(|one| port_of(one.local_addr())).collect::<Result<_, _>>()?;
        let udp = flows.iter().map(|flow| port_of(flow.socket.local_addr())).collect::<Result<_, _>>()?;
        let (wake, watched) = Waker::pair()?;
        let answering = Answering { listener, flows, token, wake: watched, seen: Vec::new() };
        let thread = spawn::thread("load-probe", move || answering.run())?;
        Ok(Self { tcp, udp, wake: Some(wake), thread: Some(thread) })
    }

    /// The ports: TCP, and UDP.
    pub fn ports(&self) -> [&[u16]; 2] {
        [&self.tcp, &self.udp]
    }

    /// Closes the ports, and returns the source address of each handshake that began.
    pub fn close(mut self) -> Vec<ProbeSource> {
        self.wake = None;
        let thread = self.thread.take();
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for OpenPorts {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is on stderr.
            drop(thread.join());
        }
    }
}

/// The thread of a server.
struct Answering {
    listener: Option<TcpListener>,
    flows: Vec<Flow>,
    token: Token,
    wake: UnixStream,
    seen: Vec<ProbeSource>,
}

impl Answering {
    fn run(mut self) -> Vec<ProbeSource> {
        let mut pending = PendingHandshakes::default();
        // An error ends the answers, and the client names the port that has none.
        while self.turn(&mut pending).is_ok_and(|goes_on| goes_on) {}
        for flow in &self.flows {
            if let (Some(peer), Ok(own)) = (flow.handshake.peer(), flow.socket.local_addr()) {
                let address = peer.ip().to_canonical();
                self.seen.push(ProbeSource { protocol: PortProtocol::Udp, port: own.port(), address });
            }
        }
        self.note_half_open();
        self.seen
    }

    /// Notes a client whose SYN arrived, and which the answer did not reach.
    fn note_half_open(&mut self) {
        let Some(Ok(own)) = self.listener.as_ref().map(TcpListener::local_addr) else { return };
        if self.seen.iter().any(|source| source.protocol == PortProtocol::Tcp) {
            return;
        }
        let own = (own.ip().to_canonical(), own.port());
        // Without the table a dropped answer counts as a dropped request.
        let entries = tcp_table::read().unwrap_or_default();
        let waiting = entries.iter().filter(|entry| {
            entry.state == State::SynReceived && (entry.local.ip(), entry.local.port()) == own
        });
        self.seen.extend(waiting.map(|entry| ProbeSource {
            protocol: PortProtocol::Tcp,
            port: own.1,
            address: entry.peer.ip(),
        }));
    }

    /// Waits, and answers what has arrived; false when the end was closed.
    fn turn(&mut self, pending: &mut PendingHandshakes) -> Result<bool, LoadError> {
        let listeners = self.listener.iter().map(AsFd::as_fd);
        let flows = self.flows.iter().map(|flow| flow.socket.as_fd());
        let descriptors: Vec<_> = std::iter::once(self.wake.as_fd())
            .chain(flows)
            .chain(listeners)
            .chain(pending.descriptors())
            .collect();
        let ready = socket::wait_readable(&descriptors, POLL_TIMEOUT)
            .map_err(|error| LoadError::system("wait for the probe of the client", error))?;
        if ready[0] && !waker::drain(&mut self.wake) {
            return Ok(false);
        }
        for (flow, ready) in self.flows.iter_mut().zip(&ready[1..]) {
            if *ready {
                flow.receive()?;
            }
        }
        let of_tcp = 1 + self.flows.len();
        if let Some(listener) = &self.listener {
            let mut first_bytes = Vec::new();
            pending.read_ready(&ready[of_tcp + 1..], &mut first_bytes);
            if ready[of_tcp] {
                pending
                    .accept(listener, &mut first_bytes)
                    .map_err(|error| LoadError::system("accept the probe of the client", error))?;
            }
            let port = port_of(listener.local_addr())?;
            for first_bytes in first_bytes {
                self.answer(port, first_bytes)?;
            }
        }
        Ok(true)
    }

    /// Answers a connection of the client; others are closed.
    fn answer(&mut self, port: u16, first_bytes: FirstBytes) -> Result<(), LoadError> {
        let FirstBytes::Handshake(mut stream, hello) = first_bytes else { return Ok(()) };
        if hello.step != Step::Hello || !hello.proves(self.token, &hello.nonce) {
            return Ok(());
        }
        if pending_handshakes::prove(&mut stream, self.token, &hello)?
            && let Ok(peer) = stream.peer_addr()
        {
            let address = peer.ip().to_canonical();
            self.seen.push(ProbeSource { protocol: PortProtocol::Tcp, port, address });
        }
        Ok(())
    }
}

/// Probes the ports of a server, TCP and UDP, each for `timeout` at most. After a port without a handshake the ports behind it may be
/// left out.
///
/// # Errors
/// [`LoadError`] when this host cannot probe: it has no threads left.
pub fn probe_ports(
    peer: IpAddr,
    [tcp, udp]: [&[u16]; 2],
    token: Token,
    timeout: Duration,
    bind: &LocalBind,
) -> Result<Vec<ProbedPort>, LoadError> {
    let flows = udp.iter().zip(0..).map(|(port, flow)| (PortProtocol::Udp, *port, flow));
    let ports: Vec<(PortProtocol, u16, u32)> =
        tcp.iter().map(|port| (PortProtocol::Tcp, *port, 0)).chain(flows).collect();
    let mut probed = Vec::with_capacity(ports.len());
    for ports in ports.chunks(AT_A_TIME) {
        let each = |(protocol, port, flow): (PortProtocol, u16, u32)| {
            let deadline_ns = clock::monotonic_ns().saturating_add(timeout.as_nanos() as u64);
            let address = SocketAddr::new(peer, port);
            let local = match protocol {
                PortProtocol::Tcp => {
                    tcp_acceptor::connect(address, (None, None), token, 0, deadline_ns, bind)
                        .map(|(stream, _)| stream.local_addr())
                }
                PortProtocol::Udp => {
                    let errors = &mut ErrorCounts::new();
                    udp_acceptor::connect(address, token, flow, deadline_ns, bind, errors)
                        .map(|socket| socket.local_addr())
                }
            };
            let answer = match local {
                Ok(Ok(local)) => PortAnswer::Open { local: local.ip().to_canonical() },
                Ok(Err(error)) => PortAnswer::Failed { reason: error.to_string() },
                Err(error) => answer_of(&error, timeout),
            };
            ProbedPort { protocol, port, answer }
        };
        let some: Result<Vec<ProbedPort>, LoadError> = std::thread::scope(|scope| {
            let threads: Vec<_> = ports
                .iter()
                .map(|port| spawn::builder("load-probe").spawn_scoped(scope, || each(*port)))
                .collect();
            threads
                .into_iter()
                .map(|thread| match thread {
                    Ok(thread) => Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
                    Err(source) => {
                        let operation = "start a thread that probes a port".to_owned();
                        Err(LoadError::Thread { operation, source })
                    }
                })
                .collect()
        });
        probed.extend(some?);
        if probed.iter().any(|port| !matches!(port.answer, PortAnswer::Open { .. })) {
            break;
        }
    }
    Ok(probed)
}

/// What the error of a handshake says about the way to the port.
fn answer_of(error: &LoadError, timeout: Duration) -> PortAnswer {
    let reason = || PortAnswer::Failed { reason: error.to_string() };
    let (LoadError::Connect { source, .. } | LoadError::ConnectFrom { source, .. }) = error else {
        return reason();
    };
    match source.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            PortAnswer::Dropped { seconds: timeout.as_secs() }
        }
        // A rule of the client's own host, and no answer.
        io::ErrorKind::PermissionDenied
            if source.raw_os_error().and_then(error_name::of) == Some("EPERM") =>
        {
            reason()
        }
        // A reset, or ICMP: port unreachable, host unreachable, administratively prohibited (EACCES by IPv6).
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::PermissionDenied => PortAnswer::Refused { error: source.to_string() },
        _ => reason(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const TOKEN: Token = Token([7; 16]);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn open_ports_answer_and_both_ends_know_the_address() {
        let open = OpenPorts::open(HOST.into(), PortNeeds { tcp: true, udp: 4 }, TOKEN).unwrap();
        let ports = open.ports().map(<[u16]>::to_vec);
        assert_eq!(
            ports.each_ref().map(Vec::len),
            [1, 1],
            "one of each stands for all that the kernel chooses"
        );
        let probed = probe_ports(HOST, [&ports[0], &ports[1]], TOKEN, LONG, &LocalBind::ANY).unwrap();
        assert_eq!(probed.len(), 2);
        assert!(probed.iter().all(|port| port.answer == PortAnswer::Open { local: HOST }), "{probed:?}");
        let mut seen = open.close();
        seen.sort_by_key(|source| source.protocol);
        let source = |protocol, port| ProbeSource { protocol, port, address: HOST };
        assert_eq!(seen, [source(PortProtocol::Tcp, ports[0][0]), source(PortProtocol::Udp, ports[1][0])]);
    }

    #[test]
    fn prohibition_of_the_network_is_an_answer_and_one_of_this_host_is_none() {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5210));
        let answer = |number| {
            let error = LoadError::connect(address, io::Error::from_raw_os_error(number));
            answer_of(&error, LONG)
        };
        // EPERM, EACCES, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH (errno(3)).
        assert!(matches!(answer(1), PortAnswer::Failed { .. }), "{:?}", answer(1));
        for number in [13, 111, 113, 101] {
            assert!(matches!(answer(number), PortAnswer::Refused { .. }), "{:?}", answer(number));
        }
    }

    #[test]
    fn port_of_a_silent_program_counts_as_dropped() {
        let silent = UdpSocket::bind((HOST, 0)).unwrap();
        let port = silent.local_addr().unwrap().port();
        let timeout = Duration::from_secs(1);
        let probed = probe_ports(HOST, [&[], &[port]], TOKEN, timeout, &LocalBind::ANY).unwrap();
        assert_eq!(probed[0].answer, PortAnswer::Dropped { seconds: 1 });
    }
}
