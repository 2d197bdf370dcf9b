//! The server's end before its start: ports are bound, and a thread greets the client.
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_sys::tcp;

use crate::control::{Control, GateOrders, Sockets};
use crate::error::LoadError;
use crate::gate::Gate;
use crate::peer;
use crate::running::{Notify, Running};
use crate::supervisor::Supervisor;
use crate::tally::Tally;
use crate::tcp_gate::TcpGate;
use crate::udp_gate::{self, UdpGate};

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
    let needs = peer::needs(workload);
    let mut setup = Tally::new();
    let mut ports = Vec::with_capacity(needs.ports());
    let mut gates = Gates::default();
    if needs.tcp > 0 {
        let congestion = peer::congestion(workload);
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
        let sockets = bind_flows(address, needs.udp as usize, &mut setup)?;
        for socket in &sockets {
            ports.push(port_of(socket.local_addr())?);
        }
        gates.add(|wake, orders| Box::new(move || UdpGate { sockets, wake, orders, token }.run()))?;
    }
    let finish_cuts =
        matches!(workload.traffic, Traffic::UdpRr(_) | Traffic::TcpCrr(_) | Traffic::LoadedLatency(_));
    let control = Arc::new(Control::new(needs.lanes(), finish_cuts, gates.wakes, gates.orders));
    let gate = Gate::Waiting(gates.threads);
    Ok(ServerEnd {
        ports,
        supervisor: Supervisor {
            control,
            workload: workload.clone(),
            role: Role::Server,
            token,
            gate,
            setup,
        },
    })
}

/// What the thread of a gate does.
type Work = Box<dyn FnOnce() -> Result<Sockets, LoadError> + Send>;

/// The gates of an end, each in a thread of its own.
#[derive(Default)]
struct Gates {
    orders: Arc<GateOrders>,
    wakes: Vec<UnixStream>,
    threads: Vec<JoinHandle<Result<Sockets, LoadError>>>,
}

impl Gates {
    /// Starts a gate. Those before it end when this fails, because what wakes them is dropped.
    fn add(&mut self, gate: impl FnOnce(UnixStream, Arc<GateOrders>) -> Work) -> Result<(), LoadError> {
        let (wake, gate_end) =
            UnixStream::pair().map_err(|error| LoadError::system("make a socket pair", error))?;
        let thread = std::thread::Builder::new()
            .name("load-gate".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(gate(gate_end, Arc::clone(&self.orders)))
            .map_err(|error| LoadError::system("start a thread", error))?;
        self.wakes.push(wake);
        self.threads.push(thread);
        Ok(())
    }
}

fn bind_flows(address: SocketAddr, flows: usize, setup: &mut Tally) -> Result<Vec<UdpSocket>, LoadError> {
    let mut sockets = Vec::with_capacity(flows);
    for _ in 0..flows {
        let socket = UdpSocket::bind(address).map_err(|error| LoadError::bind(address, error))?;
        udp_gate::prepare_socket(&socket, setup);
        socket
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the socket non-blocking", error))?;
        sockets.push(socket);
    }
    Ok(sockets)
}

fn port_of(address: std::io::Result<SocketAddr>) -> Result<u16, LoadError> {
    address.map(|address| address.port()).map_err(|error| LoadError::system("read the bound port", error))
}

impl ServerEnd {
    /// The ports that the client needs: one for TCP if there is any, then one for each flow of UDP.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Runs this end. `notify` is called once, when it is over.
    pub fn start(self, notify: Notify) -> Running {
        Running::start(self.supervisor, notify)
    }
}
