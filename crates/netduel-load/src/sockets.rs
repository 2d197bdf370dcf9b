//! The connected sockets of one end. Opens none.
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use netduel_sys::icmp::IcmpSocket;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::{socket, tcp};

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

/// The sockets of one acceptor of a server.
#[derive(Debug)]
pub(crate) enum Accepted {
    /// Authenticated connections, by index.
    Streams {
        tcp: Vec<Arc<TcpStream>>,
        /// The source of further ones, of a workload that connects while it runs.
        incoming: Option<Arc<ConnectionSource>>,
    },
    /// Authenticated flows, by index.
    Flows(Vec<Arc<UdpSocket>>),
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
    /// Adds the sockets of an acceptor.
    pub(crate) fn add(&mut self, accepted: Accepted) {
        match accepted {
            Accepted::Streams { tcp, incoming } => {
                assert!(
                    self.tcp.is_empty() && self.incoming.is_none(),
                    "an end has one acceptor of connections"
                );
                self.tcp.extend(tcp);
                self.incoming = incoming;
            }
            Accepted::Flows(udp) => self.udp.extend(udp),
        }
    }

    /// Shuts all sockets down, which wakes every thread that sleeps in a call on one of them.
    pub(crate) fn shut_down(&self) {
        // ENOTCONN from a socket whose peer is gone: its threads are awake already.
        for stream in &self.tcp {
            let _ = socket::shut_down(stream);
        }
        self.shut_down_responders();
    }

    /// Whether a peer has not acknowledged all data of this end.
    pub(crate) fn have_unacknowledged(&self) -> bool {
        self.tcp.iter().any(has_unacknowledged)
    }

    /// Makes the close of connections with unacknowledged data discard it: the kernel would send it in the next
    /// trial. Returns their number.
    pub(crate) fn discard_unacknowledged(&self) -> usize {
        let with_data = self.tcp.iter().filter(|stream| has_unacknowledged(stream));
        with_data.filter(|stream| tcp::discard_at_close(stream).is_ok()).count()
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

/// An error means that the connection has ended.
fn has_unacknowledged(stream: &Arc<TcpStream>) -> bool {
    tcp::unacknowledged(stream).is_ok_and(|bytes| bytes > 0)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// A connection, the client's end first.
    fn pair() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Arc::new(client), listener.accept().unwrap().0)
    }

    #[test]
    fn data_that_a_reader_never_took_is_discarded_and_other_data_is_not() {
        let (stuck, mut stopped) = pair();
        stuck.set_nonblocking(true).unwrap();
        let block = vec![7; 64 << 10];
        let mut sent = 0;
        while let Ok(count) = (&*stuck).write(&block) {
            sent += count;
        }
        let (quiet, mut reader) = pair();
        (&*quiet).write_all(b"abc").unwrap();
        reader.read_exact(&mut [0; 3]).unwrap();
        // The acknowledgement comes with the answer.
        reader.write_all(b"d").unwrap();
        (&*quiet).read_exact(&mut [0; 1]).unwrap();

        let sockets = Sockets { tcp: vec![stuck, quiet], ..Sockets::default() };
        // As at the end of a trial.
        sockets.shut_down();
        assert_eq!(sockets.discard_unacknowledged(), 1);
        drop(sockets);
        let mut received = Vec::new();
        let error = stopped.read_to_end(&mut received).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(received.len() < sent, "{} of {sent}", received.len());
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0, "the end of the stream");
    }

    #[test]
    #[should_panic(expected = "an end has one acceptor of connections")]
    fn second_acceptor_of_connections_is_refused_without_a_source_too() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let mut sockets = Sockets::default();
        for _ in 0..2 {
            sockets.add(Accepted::Streams { tcp: vec![Arc::clone(&stream)], incoming: None });
        }
    }

    #[test]
    fn sockets_of_both_acceptors_are_kept_in_any_order() {
        let flow = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let source = Arc::new(ConnectionSource::Listener(listener));
        let streams =
            || Accepted::Streams { tcp: vec![Arc::clone(&stream)], incoming: Some(Arc::clone(&source)) };
        let flows = || Accepted::Flows(vec![Arc::clone(&flow)]);
        for order in [[streams(), flows()], [flows(), streams()]] {
            let mut sockets = Sockets::default();
            for accepted in order {
                sockets.add(accepted);
            }
            assert_eq!((sockets.tcp.len(), sockets.udp.len()), (1, 1));
            assert!(sockets.incoming.is_some_and(|kept| Arc::ptr_eq(&kept, &source)));
        }
    }
}
