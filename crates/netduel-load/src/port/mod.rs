//! A shared port: one TCP port and the UDP port of the same number carry the control connections and the data of many clients, so a
//! firewall has to allow one number.
//!
//! One thread assigns connections and datagrams with a handshake message to the trial of their token. A connection that begins as TLS
//! goes to the owner of the port; every other connection is closed. The thread moves no payload. `docs/design/0003-load.md` has the
//! reasons.
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use netduel_model::ids::Token;
use netduel_model::workload::{Family, Role, Workload};
use netduel_sys::{descriptor_limit, packet_info, shared_port, socket as sys_socket, tcp};

use crate::connection_source::{AcceptQueue, ConnectionSource};
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::listening;
use crate::preflight;
use crate::server::{Acceptors, ServerEnd};
use crate::spawn;
use crate::udp_acceptor::{self, UdpAcceptor};

mod demultiplexer;
mod flow_sockets;
pub(crate) mod registry;
mod stream_collector;

pub use demultiplexer::ControlHandler;
use demultiplexer::Demultiplexer;
use flow_sockets::FlowSockets;
use registry::{Delivery, Registry, Trial};
use stream_collector::StreamCollector;

/// Port numbers to try when the kernel chooses: each may be in use for UDP.
const NUMBERS_TRIED: usize = 64;
/// Room in the accept queue of a trial beyond its outstanding transactions: for connections of clients that have gone.
const ACCEPT_QUEUE_EXTRA: usize = 64;

/// A TCP port and the UDP port of the same number, which many trials share.
///
/// Dropping it closes both. Trials with all of their sockets continue, trials that wait for their client end.
pub struct Port {
    address: SocketAddr,
    registry: Arc<Registry>,
    /// Dropping it ends the thread. Present until the drop of the port.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    /// Opens both. With port 0 the kernel chooses a number that is free for both; `[::]` accepts IPv4 too. `control` is called
    /// with each TLS connection.
    ///
    /// # Errors
    /// [`LoadError::Bind`] when the address is not this host's or the port is in use, [`LoadError::Peer`] when it is not the
    /// address of one host, [`LoadError::System`] when the host has no descriptor left, [`LoadError::Thread`] when it has no thread left.
    pub fn open(bind: SocketAddr, control: ControlHandler) -> Result<Self, LoadError> {
        let bind = match bind.ip().to_canonical() {
            IpAddr::V4(mapped) => SocketAddr::from((mapped, bind.port())),
            IpAddr::V6(_) => bind,
        };
        preflight::check_address(bind.ip(), family_of(bind.ip()), false)?;
        descriptor_limit::raise(0)
            .map_err(|error| LoadError::system("raise the limit of open descriptors", error))?;
        let (listener, socket, address) = bind_both(bind)?;
        listening::defer_accept(&listener)?;
        packet_info::enable(&socket)
            .map_err(|error| LoadError::system("set IP_PKTINFO on the socket", error))?;
        // With smaller buffers, very many clients at once have to repeat their handshake messages; there is no other effect.
        let _ = sys_socket::set_buffers(&socket, udp_acceptor::BUFFER_BYTES);
        let (wake, watched) =
            UnixStream::pair().map_err(|error| LoadError::system("make a socket pair", error))?;
        let registry = Arc::new(Registry::default());
        let flows = FlowSockets::new(socket, address.port(), Arc::clone(&registry));
        let demultiplexer = Demultiplexer::new(listener, flows, watched, Arc::clone(&registry), control);
        let thread = spawn::thread("load-port", move || demultiplexer.run())?;
        Ok(Self { address, registry, wake: Some(wake), thread: Some(thread) })
    }

    /// The bound address and port number.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers one more trial, and returns at once. All [`ServerEnd::ports`] are this port's number. The wait for the client is that
    /// of [`crate::prepare_server`]. The port removes the token when the end is dropped or over.
    ///
    /// # Errors
    /// [`LoadError`] when the workload cannot be run here, or uses an IP version that the port is not bound to, or another trial of this
    /// port has the token.
    pub fn prepare_server(&self, workload: &Workload, token: Token) -> Result<ServerEnd, LoadError> {
        preflight::check_workload(workload, Role::Server)?;
        self.check_family(workload.family)?;
        let congestion = workload.traffic.facts().tcp.congestion;
        if let Some(name) = congestion {
            tcp::try_congestion(name).map_err(|error| {
                preflight::congestion_error(congestion, error)
                    .unwrap_or_else(|error| LoadError::system("set the congestion control", error))
            })?;
        }
        let needs = workload.traffic.facts().sockets;
        let mut trial = Trial::new(token, congestion);
        let mut acceptors = Acceptors::default();
        if needs.tcp > 0 {
            let incoming = (needs.runtime_tcp > 0).then(|| {
                Arc::new(ConnectionSource::Queue(AcceptQueue::new(
                    needs.runtime_tcp as usize + ACCEPT_QUEUE_EXTRA,
                )))
            });
            trial.incoming.clone_from(&incoming);
            let (sender, arrivals) = channel();
            let expected = needs.tcp as usize;
            let wake = acceptors.add(|wake, state| {
                Box::new(move || StreamCollector { arrivals, wake, state, expected, incoming }.run())
            })?;
            trial.expect_streams(expected, Delivery::new(sender, wake.handle()?));
        }
        if needs.udp > 0 {
            let (sender, arrivals) = channel();
            let expected = needs.udp as usize;
            let wake = acceptors.add(|wake, state| {
                let arrivals = Some(arrivals);
                Box::new(move || UdpAcceptor { flows: Vec::new(), expected, arrivals, wake, state }.run())
            })?;
            trial.expect_flows(needs.udp, Delivery::new(sender, wake.handle()?));
        }
        let registration = self.registry.register(trial)?;
        let ports = vec![self.address.port(); needs.ports()];
        Ok(ServerEnd::new(workload, token, ports, acceptors, ErrorCounts::new(), Some(registration)))
    }

    fn check_family(&self, family: Family) -> Result<(), LoadError> {
        let address = self.address.ip();
        let takes_both = address == IpAddr::from([0u16; 8]);
        if takes_both || family_of(address) == family {
            Ok(())
        } else {
            Err(LoadError::Family { address, family })
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.wake = None;
        if let Some(thread) = self.thread.take()
            // `control` may own the port, and be dropped by the thread itself.
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread is on stderr; this thread may be panicking, too.
            let _ = thread.join();
        }
        self.registry.clear();
    }
}

fn family_of(address: IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::Ipv4,
        IpAddr::V6(_) => Family::Ipv6,
    }
}

/// Binds TCP and UDP to one number, and returns the address.
fn bind_both(bind: SocketAddr) -> Result<(TcpListener, UdpSocket, SocketAddr), LoadError> {
    let tries = if bind.port() == 0 { NUMBERS_TRIED } else { 1 };
    // Listeners whose number is in use for UDP stay open until another is found, or the kernel would choose it again.
    let mut taken = Vec::new();
    loop {
        let listener =
            shared_port::listen(bind, listening::BACKLOG).map_err(|error| LoadError::bind(bind, error))?;
        let address =
            listener.local_addr().map_err(|error| LoadError::system("read the bound port", error))?;
        match shared_port::bind(address) {
            Ok(socket) => return Ok((listener, socket, address)),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && taken.len() + 1 < tries => {
                taken.push(listener);
            }
            Err(error) => return Err(LoadError::bind(address, error)),
        }
    }
}
