//! The connected sockets of one end. Opens none.
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_sys::icmp::IcmpSocket;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::socket;

use crate::connection_source::ConnectionSource;

/// The sockets of an end. The workload assigns their use (`workload/`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Sockets {
    /// Authenticated connections, by index.
    pub tcp: Vec<Arc<TcpStream>>,
    /// Authenticated flows, by index.
    pub udp: Vec<Arc<UdpSocket>>,
    /// ICMP sockets of a client. No call on them waits long, so nothing needs to wake it.
    pub echo: Vec<Arc<IcmpSocket>>,
    /// At a server whose workload connects while it runs: the source of these connections.
    pub incoming: Option<Arc<ConnectionSource>>,
    /// At the client of such a workload: the peer that it connects to.
    pub peer: Option<Peer>,
}

/// The server of connections that a client makes while traffic runs.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// Its address and port.
    pub address: SocketAddr,
    /// The address and interface of this host that they are made from.
    pub bind: LocalBind,
}

impl Sockets {
    /// Adds the sockets of another acceptor.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tcp.extend(other.tcp);
        self.udp.extend(other.udp);
        self.echo.extend(other.echo);
        self.incoming = self.incoming.or(other.incoming);
        self.peer = self.peer.or(other.peer);
        self
    }

    /// Shuts all sockets down, which wakes every thread that sleeps in a call on one of them.
    pub(crate) fn shut_down(&self) {
        // ENOTCONN from a socket whose peer is gone: its threads are awake already.
        for stream in &self.tcp {
            let _ = socket::shut_down(stream);
        }
        self.shut_down_responders();
    }

    /// Shuts down the sockets on which no peer signals the end.
    pub(crate) fn shut_down_responders(&self) {
        for flow in &self.udp {
            let _ = socket::shut_down(flow);
        }
        if let Some(incoming) = &self.incoming {
            incoming.shut_down();
        }
    }
}
