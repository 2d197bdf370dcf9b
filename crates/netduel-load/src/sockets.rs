//! The connected sockets of one end. Opens none.
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_sys::socket;

use crate::connection_source::ConnectionSource;

/// The sockets of an end. What each connection and flow is for, the workload says (`workload/`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Sockets {
    /// Authenticated connections, by index.
    pub tcp: Vec<Arc<TcpStream>>,
    /// Authenticated flows, by index.
    pub udp: Vec<Arc<UdpSocket>>,
    /// At a server whose workload connects while it runs: where those connections come in.
    pub later: Option<Arc<ConnectionSource>>,
    /// At the client of such a workload: whom it connects to.
    pub peer: Option<SocketAddr>,
}

impl Sockets {
    /// With what another gate gave.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tcp.extend(other.tcp);
        self.udp.extend(other.udp);
        self.later = self.later.or(other.later);
        self.peer = self.peer.or(other.peer);
        self
    }

    /// Wakes every thread that sleeps in a call on one of them, for good.
    pub(crate) fn shut_down(&self) {
        // ENOTCONN from a socket whose peer is gone: the threads are awake then anyway.
        for stream in &self.tcp {
            let _ = socket::shut_down(stream);
        }
        self.shut_down_responders();
    }

    /// The same for those whose end no peer tells.
    pub(crate) fn shut_down_responders(&self) {
        for flow in &self.udp {
            let _ = socket::shut_down(flow);
        }
        if let Some(later) = &self.later {
            later.shut_down();
        }
    }
}
