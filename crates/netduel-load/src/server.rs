//! The server's end before its start: ports are bound, and acceptor threads wait for the client.
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use netduel_model::data_ports::ListenAt;
use netduel_model::ids::Token;
use netduel_model::workload::{Role, Workload};

use crate::control::Control;
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::free_port;
use crate::listening;
use crate::packets::bypass::Bypass;
use crate::packets::{Attachment, BypassPath};
use crate::port::registry::Registration;
use crate::preflight;
use crate::running::{Notify, Running};
use crate::socket_source::{AcceptResult, AcceptorThreads, SocketSource};
use crate::spawn;
use crate::supervisor::Supervisor;
use crate::tcp_acceptor::TcpAcceptor;
use crate::transaction;
use crate::udp_acceptor::{self, Flow, UdpAcceptor};
use crate::udp_handshake::UdpHandshake;
use crate::waker::{AcceptorState, Waker};

/// A server that is ready for its client. Dropping it closes the ports.
pub struct ServerEnd {
    ports: Vec<u16>,
    supervisor: Supervisor,
}

/// Binds free ports for `workload` where `listen` says and returns at once. From now on the client may connect: threads accept the
/// peers that know `token`, and no others.
///
/// # Errors
/// [`LoadError`] when the workload cannot be run here or no port can be bound.
pub fn prepare_server(
    workload: &Workload,
    listen: impl Into<ListenAt>,
    token: Token,
) -> Result<ServerEnd, LoadError> {
    let listen = listen.into();
    preflight::check_workload(workload, Role::Server)?;
    preflight::check_address(listen.address, workload.family, false)?;
    let needs = workload.traffic.facts().sockets;
    let mut setup = ErrorCounts::new();
    let mut ports = Vec::with_capacity(needs.ports());
    let mut acceptors = Acceptors::default();
    if needs.tcp > 0 {
        let congestion = workload.traffic.facts().tcp.congestion;
        let listener = free_port::listener(listen, congestion)?;
        if needs.runtime_tcp > 0 {
            listening::prepare_runtime(&listener, transaction::CALL_LIMIT)?;
        }
        ports.push(port_of(listener.local_addr())?);
        let (streams, incoming) = (needs.tcp as usize, needs.runtime_tcp > 0);
        acceptors.add(|wake, state| {
            Box::new(move || TcpAcceptor { listener, wake, state, token, streams, incoming }.run())
        })?;
    }
    if needs.udp > 0 {
        let flows = bind_flows(listen, needs.udp, token, &mut setup)?;
        for flow in &flows {
            ports.push(port_of(flow.socket.local_addr())?);
        }
        let expected = flows.len();
        acceptors.add(|wake, state| {
            Box::new(move || UdpAcceptor { flows, expected, arrivals: None, wake, state }.run())
        })?;
    }
    Ok(ServerEnd::new(workload, token, ports, acceptors, setup, None))
}

/// The work of an acceptor thread.
type Work = Box<dyn FnOnce() -> AcceptResult + Send>;

/// The acceptor threads of an end.
#[derive(Default)]
pub(crate) struct Acceptors {
    /// Dropped before the threads, which they end.
    wakes: Vec<Waker>,
    threads: AcceptorThreads,
}

impl Acceptors {
    /// Starts an acceptor thread, and returns its waker. When this fails, the wakers are dropped, which ends the threads before it.
    pub(crate) fn add(
        &mut self,
        acceptor: impl FnOnce(UnixStream, Arc<AcceptorState>) -> Work,
    ) -> Result<&Waker, LoadError> {
        let (wake, watched) = Waker::pair()?;
        let thread = spawn::thread("load-accept", acceptor(watched, Arc::clone(&self.threads.state)))?;
        self.threads.push(thread);
        self.wakes.push(wake);
        Ok(&self.wakes[self.wakes.len() - 1])
    }
}

pub(crate) fn bind_flows(
    listen: ListenAt,
    flows: u32,
    token: Token,
    setup: &mut ErrorCounts,
) -> Result<Vec<Flow>, LoadError> {
    let sockets = free_port::udp_sockets(listen, flows)?;
    let prepare = |(flow, socket): (u32, UdpSocket)| {
        udp_acceptor::prepare_socket(&socket, setup);
        socket
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the socket non-blocking", error))?;
        Ok(Flow { socket, local: None, handshake: UdpHandshake::new(token, flow) })
    };
    (0..).zip(sockets).map(prepare).collect()
}

pub(crate) fn port_of(address: std::io::Result<SocketAddr>) -> Result<u16, LoadError> {
    address.map(|address| address.port()).map_err(|error| LoadError::system("read the bound port", error))
}

impl ServerEnd {
    /// An end whose acceptor threads are running.
    pub(crate) fn new(
        workload: &Workload,
        token: Token,
        ports: Vec<u16>,
        acceptors: Acceptors,
        setup: ErrorCounts,
        registration: Option<Registration>,
    ) -> Self {
        let facts = workload.traffic.facts();
        let (counters, finish_shuts_down) = (facts.sockets.counters(), facts.finish_shuts_down);
        let Acceptors { wakes, threads } = acceptors;
        let control = Control::new(counters, finish_shuts_down, wakes, Arc::clone(&threads.state));
        let supervisor = Supervisor {
            control: Arc::new(control),
            workload: workload.clone(),
            role: Role::Server,
            token,
            sockets: SocketSource::Accepting(threads),
            setup,
            connections: None,
            raw: None,
            segmentation: None,
            stamping: preflight::enable_timestamping(workload),
            registration,
        };
        Self { ports, supervisor }
    }

    /// The ports that the client needs: one for TCP if it is used, then one per UDP flow.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Opens the kernel-bypass sockets or programs of the workload on this interface; none when it uses the network stack.
    ///
    /// # Errors
    /// [`LoadError::KernelBypass`] without the capability, or when the interface does not support it.
    pub fn with_bypass(mut self, path: &BypassPath) -> Result<Self, LoadError> {
        self.supervisor.open_bypass(path)?;
        Ok(self)
    }

    /// Keeps the programs and sockets of kernel bypass on their interface after the traffic; none when the workload uses the network stack.
    pub fn attachment(&self) -> Option<Attachment> {
        self.supervisor.raw.as_ref().and_then(Bypass::attachment)
    }

    /// Runs this end. `notify` is called once, when it is over.
    pub fn start(self, notify: Notify) -> Running {
        Running::start(self.supervisor, notify)
    }
}
