//! The thread of a port: takes connections and greetings, and gives each to whom it is for. Nothing that a peer does or leaves
//! undone makes it wait, and no shortage ends it.
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use netduel_sys::{clock, socket};

use super::flow_sockets::FlowSockets;
use super::registry::Registry;
use crate::pending_handshakes::{FirstBytes, PendingHandshakes};
use crate::waker::TURN;

/// The first byte of a TLS record that holds a handshake (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// How long no connection is accepted after the host had nothing to accept one with.
const ACCEPT_BACKOFF_NS: u64 = 100_000_000;
/// Sleep while nobody waits: only a peer or the end of the port has anything to say then.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// Called for a connection whose first byte is that of a TLS handshake (22), which is not read yet: who connected, IPv4 as
/// IPv4. The stream blocks. The call comes from the thread that serves all clients of the port, so it must return at once:
/// it hands the connection to another thread, or drops it. How many it keeps is its own affair.
pub type ControlHandler = Box<dyn Fn(TcpStream, SocketAddr) + Send + Sync>;

pub(super) struct Demultiplexer {
    listener: TcpListener,
    flows: FlowSockets,
    /// Its end is the end of the port.
    wake: UnixStream,
    registry: Arc<Registry>,
    control: ControlHandler,
    pending: PendingHandshakes,
    /// Until when no connection is accepted, nanoseconds of the monotonic clock.
    accept_after_ns: u64,
}

impl Demultiplexer {
    pub(super) fn new(
        listener: TcpListener,
        flows: FlowSockets,
        wake: UnixStream,
        registry: Arc<Registry>,
        control: ControlHandler,
    ) -> Self {
        Self {
            listener,
            flows,
            wake,
            registry,
            control,
            pending: PendingHandshakes::default(),
            accept_after_ns: 0,
        }
    }

    /// Serves until the port is dropped.
    pub(super) fn run(mut self) {
        let mut said = Vec::new();
        loop {
            let ready = self.wait();
            if ready.port_is_dropped {
                return;
            }
            self.pending.hear(&ready.pending, &mut said);
            if ready.datagrams && self.flows.hear().is_err() {
                // A flow's client has proven itself; the pending ones have not, and have what it lacks.
                self.pending.clear();
            }
            if ready.connections && self.pending.accept(&self.listener, &mut said).is_err() {
                self.accept_after_ns = clock::monotonic_ns() + ACCEPT_BACKOFF_NS;
            }
            for said in said.drain(..) {
                self.route(said);
            }
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self) -> Ready {
        let rests = clock::monotonic_ns() < self.accept_after_ns;
        let timeout = if rests || !self.pending.is_empty() { TURN } else { IDLE_TIMEOUT };
        let mut descriptors = vec![self.wake.as_fd(), self.flows.as_fd()];
        descriptors.extend(self.pending.descriptors());
        if !rests {
            descriptors.push(self.listener.as_fd());
        }
        if let Ok(ready) = socket::wait_readable(&descriptors, timeout) {
            let connections = !rests && ready[ready.len() - 1];
            let pending = ready[2..ready.len() - usize::from(!rests)].to_vec();
            return Ready { port_is_dropped: ready[0], datagrams: ready[1], pending, connections };
        }
        // No memory, or more descriptors than are allowed since somebody lowered the limit.
        self.pending.clear();
        self.accept_after_ns = clock::monotonic_ns() + ACCEPT_BACKOFF_NS;
        clock::sleep_until(self.accept_after_ns);
        Ready::default()
    }

    fn route(&self, said: FirstBytes) {
        match said {
            FirstBytes::Handshake(stream, greeting) => {
                // A stranger's connection is dropped with the closure that would have taken it.
                self.registry.with(greeting.token(), |trial| trial.take(stream, &greeting));
            }
            FirstBytes::Other(stream, address, TLS_HANDSHAKE) => {
                if stream.set_nonblocking(false).is_ok() {
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    // A panic of the owner's is on stderr, and costs that connection, not all clients of the port.
                    let call = AssertUnwindSafe(|| (self.control)(stream, address));
                    let _ = catch_unwind(call);
                }
            }
            FirstBytes::Other(..) => {}
        }
    }
}

/// Who has something to say.
#[derive(Default)]
struct Ready {
    port_is_dropped: bool,
    datagrams: bool,
    /// As [`PendingHandshakes::descriptors`] names them.
    pending: Vec<bool>,
    connections: bool,
}
