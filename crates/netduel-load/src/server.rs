//! The server's end before its start: ports are bound, and a thread greets the client.
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use netduel_model::ids::Token;
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_sys::tcp;

use crate::control::{Control, Sockets};
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
    let streams = peer::streams(workload) as usize;
    let (wake, gate_end) =
        UnixStream::pair().map_err(|error| LoadError::system("make a socket pair", error))?;
    let finish_cuts = matches!(workload.traffic, Traffic::UdpRr(_));
    let control = Arc::new(Control::new(streams, finish_cuts, Some(wake)));
    let orders = Arc::clone(&control.gate_orders);
    let mut setup = Tally::new();
    let (ports, run): (_, Box<dyn FnOnce() -> Result<Sockets, LoadError> + Send>) = if peer::is_udp(workload)
    {
        let sockets = bind_flows(address, streams, &mut setup)?;
        let ports = sockets.iter().map(|socket| port_of(socket.local_addr())).collect::<Result<_, _>>()?;
        let gate = UdpGate { sockets, wake: gate_end, orders, token };
        (ports, Box::new(move || gate.run()))
    } else {
        let congestion = peer::congestion(workload);
        let listener = tcp::listen(address, congestion, BACKLOG).map_err(|error| {
            peer::congestion_error(congestion, error).unwrap_or_else(|error| LoadError::bind(address, error))
        })?;
        listener
            .set_nonblocking(true)
            .map_err(|error| LoadError::system("make the listener non-blocking", error))?;
        let ports = vec![port_of(listener.local_addr())?];
        let gate = TcpGate { listener, wake: gate_end, orders, token, streams };
        (ports, Box::new(move || gate.run()))
    };
    let thread = std::thread::Builder::new()
        .name("load-gate".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(run)
        .map_err(|error| LoadError::system("start a thread", error))?;
    let gate = Gate::Waiting(thread);
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
    /// The ports that the client needs: one for TCP, one for each flow for UDP.
    pub fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Runs this end. `notify` is called once, when it is over.
    pub fn start(self, notify: Notify) -> Running {
        Running::start(self.supervisor, notify)
    }
}
