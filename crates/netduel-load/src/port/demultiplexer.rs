//! The demultiplexer of a shared port: one thread assigns connections and handshake messages to trials by their token. No peer can
//! block it, and a shortage of descriptors or memory does not end it.
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
use crate::waker::POLL_TIMEOUT;

/// The first byte of a TLS record that holds a handshake (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// Pause of accept(2) after a shortage of descriptors or memory, nanoseconds.
const ACCEPT_BACKOFF_NS: u64 = 100_000_000;
/// Sleep without pending connections: a new peer or the end of the port wakes the thread.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// Called with each connection whose first byte is that of a TLS handshake (22, not read yet) and the address of its peer, IPv4 as
/// IPv4. The stream blocks. The thread that serves all clients of the port makes the call, so it must return at once: it passes the
/// connection to another thread, or drops it. It limits the number of connections itself.
pub type ControlHandler = Box<dyn Fn(TcpStream, SocketAddr) + Send + Sync>;

pub(super) struct Demultiplexer {
    listener: TcpListener,
    flows: FlowSockets,
    /// Closed when the port is dropped.
    wake: UnixStream,
    registry: Arc<Registry>,
    control: ControlHandler,
    pending: PendingHandshakes,
    /// No connection is accepted before this time, nanoseconds of the monotonic clock.
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
        let mut first_bytes = Vec::new();
        loop {
            let ready = self.wait();
            if ready.port_is_dropped {
                return;
            }
            self.pending.read_ready(&ready.pending, &mut first_bytes);
            if ready.datagrams && self.flows.receive().is_err() {
                // A flow of an authenticated client has no descriptor: the pending connections of the largest source give theirs.
                self.pending.close_largest_source();
            }
            if ready.connections && self.pending.accept(&self.listener, &mut first_bytes).is_err() {
                self.accept_after_ns = clock::monotonic_ns() + ACCEPT_BACKOFF_NS;
            }
            for first_bytes in first_bytes.drain(..) {
                self.route(first_bytes);
            }
        }
    }

    /// Sleeps until a socket is readable.
    fn wait(&mut self) -> Ready {
        let is_paused = clock::monotonic_ns() < self.accept_after_ns;
        let timeout = if is_paused || !self.pending.is_empty() { POLL_TIMEOUT } else { IDLE_TIMEOUT };
        let mut descriptors = vec![self.wake.as_fd(), self.flows.as_fd()];
        descriptors.extend(self.pending.descriptors());
        if !is_paused {
            descriptors.push(self.listener.as_fd());
        }
        if let Ok(ready) = socket::wait_readable(&descriptors, timeout) {
            let connections = !is_paused && ready[ready.len() - 1];
            let pending = ready[2..ready.len() - usize::from(!is_paused)].to_vec();
            return Ready { port_is_dropped: ready[0], datagrams: ready[1], pending, connections };
        }
        // No memory, or the limit of descriptors was lowered.
        self.pending.close_largest_source();
        self.accept_after_ns = clock::monotonic_ns() + ACCEPT_BACKOFF_NS;
        clock::sleep_until(self.accept_after_ns);
        Ready::default()
    }

    fn route(&self, first_bytes: FirstBytes) {
        match first_bytes {
            FirstBytes::Handshake(stream, message) => {
                // Without a trial of this token the connection is dropped with the closure.
                self.registry.with(message.token(), |trial| trial.accept(stream, &message));
            }
            FirstBytes::Other(stream, address, TLS_HANDSHAKE) => {
                if stream.set_nonblocking(false).is_ok() {
                    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
                    // A panic of the handler is on stderr. It ends that connection, not the port.
                    let call = AssertUnwindSafe(|| (self.control)(stream, address));
                    let _ = catch_unwind(call);
                }
            }
            FirstBytes::Other(..) => {}
        }
    }
}

/// The readable sockets.
#[derive(Default)]
struct Ready {
    port_is_dropped: bool,
    datagrams: bool,
    /// As [`PendingHandshakes::descriptors`] names them.
    pending: Vec<bool>,
    connections: bool,
}
