//! One port number for many trials: a TCP port and the UDP port of the same number, through which control and all data of
//! many clients come, so that a firewall has to let one number through.
//!
//! A thread takes what comes: a connection that begins with a greeting, and a greeting in a datagram, go to the trial whose
//! token they prove; a connection that begins as TLS does goes to the owner of the port; everything else is closed. It moves
//! no payload. `docs/design/0003-load.md` says why it is so.
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::workload::{Family, Role, Workload};
use netduel_sys::{descriptor_limit, packet_info, shared_port, socket as sys_socket, tcp};

use crate::connection_source::{AcceptQueue, ConnectionSource};
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::preflight;
use crate::server::{Acceptors, ServerEnd};
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

/// Connections that the kernel keeps until they are accepted; it caps it at net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// How long the kernel keeps a peer that says nothing away from us.
const DEFER_ACCEPT: Duration = Duration::from_secs(4);
/// Numbers that are tried when the kernel may choose: each may be taken for UDP.
const NUMBERS_TRIED: usize = 64;
/// Connections of a trial that may wait for one of its threads, beyond those that its client has under way: strangers who know
/// the token, and clients that went away.
const ACCEPT_QUEUE_EXTRA: usize = 64;
/// Stack of the thread; what it keeps is on the heap.
const STACK_BYTES: usize = 256 * 1024;

/// A TCP port and the UDP port of the same number, which many trials share.
///
/// Dropping it closes both. Trials that have all of their sockets go on, those that wait for their client end.
pub struct Port {
    address: SocketAddr,
    registry: Arc<Registry>,
    /// Closing it ends the thread. Present until the drop.
    wake: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Port {
    /// Opens both. With port 0 the kernel chooses a number that is free for both; `[::]` takes IPv4 too. `control` is called
    /// for connections that are none of a trial.
    ///
    /// # Errors
    /// [`LoadError::Bind`] when the address is not this host's or the port is taken, [`LoadError::Peer`] when it is no address
    /// of a host, [`LoadError::System`] when the host has no descriptor or thread left.
    pub fn open(bind: SocketAddr, control: ControlHandler) -> Result<Self, LoadError> {
        let bind = match bind.ip().to_canonical() {
            IpAddr::V4(mapped) => SocketAddr::from((mapped, bind.port())),
            IpAddr::V6(_) => bind,
        };
        preflight::check_address(bind.ip(), family_of(bind.ip()), false)?;
        descriptor_limit::raise(0)
            .map_err(|error| LoadError::system("raise the limit of open descriptors", error))?;
        let (listener, socket, address) = bind_both(bind)?;
        tcp::defer_accept(&listener, DEFER_ACCEPT)
            .map_err(|error| LoadError::system("set TCP_DEFER_ACCEPT on the listener", error))?;
        packet_info::enable(&socket)
            .map_err(|error| LoadError::system("set IP_PKTINFO on the socket", error))?;
        // What the host does not grant costs repeated greetings when very many come at once, and nothing else.
        let _ = sys_socket::set_buffers(&socket, udp_acceptor::BUFFER_BYTES);
        let (wake, watched) =
            UnixStream::pair().map_err(|error| LoadError::system("make a socket pair", error))?;
        let registry = Arc::new(Registry::default());
        let flows = FlowSockets::new(socket, address.port(), Arc::clone(&registry));
        let demultiplexer = Demultiplexer::new(listener, flows, watched, Arc::clone(&registry), control);
        let thread = std::thread::Builder::new()
            .name("load-port".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || demultiplexer.run())
            .map_err(|error| LoadError::system("start a thread", error))?;
        Ok(Self { address, registry, wake: Some(wake), thread: Some(thread) })
    }

    /// What is bound: the address asked for, and the number.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the port take the client of one more trial, and returns at once. [`ServerEnd::ports`] are all this port's
    /// number. A client that never comes is waited for as with [`crate::prepare_server`]; dropping the end, or its being over,
    /// makes the port forget the token.
    ///
    /// # Errors
    /// [`LoadError`] when the workload cannot be run here, or asks for an IP version that the port is not bound to, or the token is
    /// that of another trial of this port.
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
        let mut gates = Acceptors::default();
        if needs.tcp > 0 {
            let later = (needs.later > 0).then(|| {
                Arc::new(ConnectionSource::Queue(AcceptQueue::new(needs.later as usize + ACCEPT_QUEUE_EXTRA)))
            });
            trial.later.clone_from(&later);
            let (sender, arrivals) = channel();
            let expected = needs.tcp as usize;
            let wake = gates.add(|wake, orders| {
                Box::new(move || StreamCollector { arrivals, wake, orders, expected, later }.run())
            })?;
            trial.expect_streams(expected, Delivery::new(sender, wake.handle()?));
        }
        if needs.udp > 0 {
            let (sender, arrivals) = channel();
            let expected = needs.udp as usize;
            let wake = gates.add(|wake, orders| {
                let arrivals = Some(arrivals);
                Box::new(move || UdpAcceptor { flows: Vec::new(), expected, arrivals, wake, orders }.run())
            })?;
            trial.expect_flows(needs.udp, Delivery::new(sender, wake.handle()?));
        }
        let registration = self.registry.register(trial)?;
        let ports = vec![self.address.port(); needs.ports()];
        Ok(ServerEnd::new(workload, token, ports, gates, ErrorCounts::new(), Some(registration)))
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
            // A panic of the thread is on stderr, and one of ours may be under way.
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

/// Binds TCP and UDP to one number, and tells the address with it.
fn bind_both(bind: SocketAddr) -> Result<(TcpListener, UdpSocket, SocketAddr), LoadError> {
    let tries = if bind.port() == 0 { NUMBERS_TRIED } else { 1 };
    // Numbers that are taken for UDP are kept until another is found, or the kernel would give them again.
    let mut taken = Vec::new();
    loop {
        let listener = shared_port::listen(bind, BACKLOG).map_err(|error| LoadError::bind(bind, error))?;
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
