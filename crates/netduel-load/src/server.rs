//! The server's end before its start: ports are bound, and a thread greets the client.
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::workload::{Role, Workload};
use netduel_sys::tcp;

use crate::control::Control;
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::packets::BypassPath;
use crate::port::registry::Registration;
use crate::preflight;
use crate::running::{Notify, Running};
use crate::socket_source::{AcceptResult, SocketSource};
use crate::supervisor::Supervisor;
use crate::tcp_acceptor::TcpAcceptor;
use crate::udp_acceptor::{self, Flow, UdpAcceptor};
use crate::udp_handshake::UdpHandshake;
use crate::waker::{AcceptorState, Waker};

/// Connections that the kernel keeps until the gate accepts them: all streams of the largest workload and strangers.
const BACKLOG: i32 = 4096;
/// How long the kernel keeps a peer that says nothing away from the threads of a workload that connects while it runs.
const DEFER_ACCEPT: Duration = Duration::from_secs(4);
/// Stack of threads that keep their data elsewhere.
const STACK_BYTES: usize = 256 * 1024;

/// A server that is ready for its client. Dropping it closes the ports.
pub struct ServerEnd {
    ports: Vec<u16>,
    supervisor: Supervisor,
}

/// Binds free ports of `bind` for `workload` and returns at once. From now on the client may connect: a thread takes the
/// peers that know `token`, and no others.
///
/// # Errors
/// [`LoadError`] when the workload cannot be run here or no port can be bound.
pub fn prepare_server(workload: &Workload, bind: IpAddr, token: Token) -> Result<ServerEnd, LoadError> {
    preflight::check_workload(workload, Role::Server)?;
    preflight::check_address(bind, workload.family, false)?;
    let address = SocketAddr::new(bind, 0);
    let needs = workload.traffic.facts().sockets;
    let mut setup = ErrorCounts::new();
    let mut ports = Vec::with_capacity(needs.ports());
    let mut gates = Acceptors::default();
    if needs.tcp > 0 {
        let congestion = workload.traffic.facts().tcp.congestion;
        let listener = tcp::listen(address, congestion, BACKLOG).map_err(|error| {
            preflight::congestion_error(congestion, error)
                .unwrap_or_else(|error| LoadError::bind(address, error))
        })?;
        listener
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the listener non-blocking", error))?;
        if needs.later > 0 {
            tcp::defer_accept(&listener, DEFER_ACCEPT)
                .map_err(|error| LoadError::system("set TCP_DEFER_ACCEPT on the listener", error))?;
        }
        ports.push(port_of(listener.local_addr())?);
        let (streams, later) = (needs.tcp as usize, needs.later > 0);
        gates.add(|wake, orders| {
            Box::new(move || TcpAcceptor { listener, wake, orders, token, streams, later }.run())
        })?;
    }
    if needs.udp > 0 {
        let flows = bind_flows(address, needs.udp, token, &mut setup)?;
        for flow in &flows {
            ports.push(port_of(flow.socket.local_addr())?);
        }
        let expected = flows.len();
        gates.add(|wake, orders| {
            Box::new(move || UdpAcceptor { flows, expected, arrivals: None, wake, orders }.run())
        })?;
    }
    Ok(ServerEnd::new(workload, token, ports, gates, setup, None))
}

/// What the thread of a gate does.
type Work = Box<dyn FnOnce() -> AcceptResult + Send>;

/// The gates of an end, each in a thread of its own.
#[derive(Default)]
pub(crate) struct Acceptors {
    orders: Arc<AcceptorState>,
    wakes: Vec<Waker>,
    threads: Vec<JoinHandle<AcceptResult>>,
}

impl Acceptors {
    /// Starts a gate, and returns what wakes it. Those before it end when this fails, because what wakes them is dropped.
    pub(crate) fn add(
        &mut self,
        gate: impl FnOnce(UnixStream, Arc<AcceptorState>) -> Work,
    ) -> Result<&Waker, LoadError> {
        let (wake, gate_end) = Waker::pair()?;
        let thread = std::thread::Builder::new()
            .name("load-gate".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(gate(gate_end, Arc::clone(&self.orders)))
            .map_err(|error| LoadError::system("start a thread", error))?;
        self.threads.push(thread);
        self.wakes.push(wake);
        Ok(&self.wakes[self.wakes.len() - 1])
    }
}

fn bind_flows(
    address: SocketAddr,
    flows: u32,
    token: Token,
    setup: &mut ErrorCounts,
) -> Result<Vec<Flow>, LoadError> {
    let bind = |flow| {
        let socket = UdpSocket::bind(address).map_err(|error| LoadError::bind(address, error))?;
        udp_acceptor::prepare_socket(&socket, setup);
        socket
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the socket non-blocking", error))?;
        Ok(Flow { socket, local: None, greeter: UdpHandshake::new(token, flow) })
    };
    (0..flows).map(bind).collect()
}

fn port_of(address: std::io::Result<SocketAddr>) -> Result<u16, LoadError> {
    address.map(|address| address.port()).map_err(|error| LoadError::system("read the bound port", error))
}

impl ServerEnd {
    /// An end whose gates are at work.
    pub(crate) fn new(
        workload: &Workload,
        token: Token,
        ports: Vec<u16>,
        gates: Acceptors,
        setup: ErrorCounts,
        registration: Option<Registration>,
    ) -> Self {
        let facts = workload.traffic.facts();
        let (lanes, finish_cuts) = (facts.sockets.lanes(), facts.finish_cuts);
        let control = Arc::new(Control::new(lanes, finish_cuts, gates.wakes, gates.orders));
        let sockets = SocketSource::Accepting(gates.threads);
        let supervisor = Supervisor {
            control,
            workload: workload.clone(),
            role: Role::Server,
            token,
            sockets,
            setup,
            connections: None,
            raw: None,
            segmentation: None,
            stamping: preflight::enable_timestamping(workload),
            registration,
        };
        Self { ports, supervisor }
    }

    /// The ports that the client needs: one for TCP if there is any, then one for each flow of UDP.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Opens what the workload needs past the network stack, over this interface; nothing when it needs nothing.
    ///
    /// # Errors
    /// [`LoadError::KernelBypass`] without the right, or when the interface refuses.
    pub fn with_bypass(mut self, path: &BypassPath) -> Result<Self, LoadError> {
        self.supervisor.open_bypass(path)?;
        Ok(self)
    }

    /// Runs this end. `notify` is called once, when it is over.
    pub fn start(self, notify: Notify) -> Running {
        Running::start(self.supervisor, notify)
    }
}
