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
use crate::flow_greeting::Greeter;
use crate::gate::{Gate, Greeted};
use crate::packets::RawPath;
use crate::peer;
use crate::port::registry::Registration;
use crate::running::{Notify, Running};
use crate::supervisor::Supervisor;
use crate::tally::Tally;
use crate::tcp_gate::TcpGate;
use crate::udp_gate::{self, Flow, UdpGate};
use crate::wake::{GateOrders, Wake};

/// Connections that the kernel keeps until the gate accepts them: all streams of the largest workload and strangers.
const BACKLOG: i32 = 4096;
/// How long the kernel keeps a peer that says nothing away from the threads of a workload that connects while it runs.
const SILENT_PEERS: Duration = Duration::from_secs(4);
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
    peer::check_workload(workload, Role::Server)?;
    peer::check_address(bind, workload.family, false)?;
    let address = SocketAddr::new(bind, 0);
    let needs = workload.traffic.facts().sockets;
    let mut setup = Tally::new();
    let mut ports = Vec::with_capacity(needs.ports());
    let mut gates = Gates::default();
    if needs.tcp > 0 {
        let congestion = workload.traffic.facts().tcp.congestion;
        let listener = tcp::listen(address, congestion, BACKLOG).map_err(|error| {
            peer::congestion_error(congestion, error).unwrap_or_else(|error| LoadError::bind(address, error))
        })?;
        listener
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the listener non-blocking", error))?;
        if needs.later > 0 {
            tcp::defer_accept(&listener, SILENT_PEERS)
                .map_err(|error| LoadError::system("set TCP_DEFER_ACCEPT on the listener", error))?;
        }
        ports.push(port_of(listener.local_addr())?);
        let (streams, later) = (needs.tcp as usize, needs.later > 0);
        gates.add(|wake, orders| {
            Box::new(move || TcpGate { listener, wake, orders, token, streams, later }.run())
        })?;
    }
    if needs.udp > 0 {
        let flows = bind_flows(address, needs.udp, token, &mut setup)?;
        for flow in &flows {
            ports.push(port_of(flow.socket.local_addr())?);
        }
        let expected = flows.len();
        gates.add(|wake, orders| {
            Box::new(move || UdpGate { flows, expected, arrivals: None, wake, orders }.run())
        })?;
    }
    Ok(ServerEnd::new(workload, token, ports, gates, setup, None))
}

/// What the thread of a gate does.
type Work = Box<dyn FnOnce() -> Greeted + Send>;

/// The gates of an end, each in a thread of its own.
#[derive(Default)]
pub(crate) struct Gates {
    orders: Arc<GateOrders>,
    wakes: Vec<Wake>,
    threads: Vec<JoinHandle<Greeted>>,
}

impl Gates {
    /// Starts a gate, and returns what wakes it. Those before it end when this fails, because what wakes them is dropped.
    pub(crate) fn add(
        &mut self,
        gate: impl FnOnce(UnixStream, Arc<GateOrders>) -> Work,
    ) -> Result<&Wake, LoadError> {
        let (wake, gate_end) = Wake::pair()?;
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
    setup: &mut Tally,
) -> Result<Vec<Flow>, LoadError> {
    let bind = |flow| {
        let socket = UdpSocket::bind(address).map_err(|error| LoadError::bind(address, error))?;
        udp_gate::prepare_socket(&socket, setup);
        socket
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the socket non-blocking", error))?;
        Ok(Flow { socket, local: None, greeter: Greeter::new(token, flow) })
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
        gates: Gates,
        setup: Tally,
        registration: Option<Registration>,
    ) -> Self {
        let facts = workload.traffic.facts();
        let (lanes, finish_cuts) = (facts.sockets.lanes(), facts.finish_cuts);
        let control = Arc::new(Control::new(lanes, finish_cuts, gates.wakes, gates.orders));
        let gate = Gate::Waiting(gates.threads);
        let supervisor = Supervisor {
            control,
            workload: workload.clone(),
            role: Role::Server,
            token,
            gate,
            setup,
            connections: None,
            raw: None,
            segmentation: None,
            stamping: peer::begin_stamping(workload),
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
    /// [`LoadError::Raw`] without the right, or when the interface refuses.
    pub fn over(mut self, path: &RawPath) -> Result<Self, LoadError> {
        self.supervisor.open_raw(path)?;
        Ok(self)
    }

    /// Runs this end. `notify` is called once, when it is over.
    pub fn start(self, notify: Notify) -> Running {
        Running::start(self.supervisor, notify)
    }
}
