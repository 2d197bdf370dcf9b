//! The client's end before its start: all streams are connected and authenticated, and no payload was sent.
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use netduel_model::ids::Token;
use netduel_model::sample::ConnectionReport;
use netduel_model::workload::{Role, TcpFacts, UdpOffload, Wire, Workload};
use netduel_stats::histogram::Histogram;
use netduel_sys::clock;
use netduel_sys::local_bind::LocalBind;

use crate::control::Control;
use crate::datagram::{self, Kind};
use crate::error::LoadError;
use crate::error_counts::ErrorCounts;
use crate::packets::bypass::Bypass;
use crate::packets::{Attachment, BypassPath};
use crate::preflight;
use crate::running::{Notify, Running};
use crate::segmentation;
use crate::socket_source::SocketSource;
use crate::sockets::{Peer, Sockets};
use crate::spawn;
use crate::supervisor::Supervisor;
use crate::{echo_socket, local_ports, tcp_acceptor, udp_acceptor};

/// Threads that connect in parallel, at least and at most. More would wait for cores, and connect(2) would seem slower; and the
/// server keeps at most 256 connections without a handshake message.
const CONNECTORS: usize = 32;
const CONNECTORS_MAX: usize = 128;
/// Time in which all streams should be set up, nanoseconds: a long path gets more threads.
const SET_UP_NS: u64 = 2_000_000_000;

/// A client that is connected. Dropping it closes its connections.
pub struct ClientEnd {
    supervisor: Supervisor,
}

/// Connects all streams of `workload` to `ports` of `peer`, which have to be those of [`crate::prepare_server`] with the
/// same workload and token, and does the handshake, all within `deadline`. No payload is sent.
///
/// # Errors
/// [`LoadError`] when the workload cannot be run here, or the peer does not answer, or is not an agent with the token.
pub fn prepare_client(
    workload: &Workload,
    peer: IpAddr,
    ports: &[u16],
    token: Token,
    deadline: Duration,
) -> Result<ClientEnd, LoadError> {
    prepare_bound_client(workload, peer, ports, token, deadline, &LocalBind::ANY)
}

/// As [`prepare_client`], with every socket bound to an address or an interface of this host.
///
/// # Errors
/// As [`prepare_client`]; [`LoadError::ConnectFrom`] when this host has no such address or interface, or the peer is not reached
/// from there.
pub fn prepare_bound_client(
    workload: &Workload,
    peer: IpAddr,
    ports: &[u16],
    token: Token,
    deadline: Duration,
    bind: &LocalBind,
) -> Result<ClientEnd, LoadError> {
    preflight::check_workload(workload, Role::Client)?;
    preflight::check_address(peer, workload.family, true)?;
    let needs = workload.traffic.facts().sockets;
    if ports.len() != needs.ports() {
        return Err(LoadError::Ports { given: ports.len(), needed: needs.ports() });
    }
    let limit_ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = clock::monotonic_ns().saturating_add(limit_ns);
    let (mut setup, mut sockets, mut connections) = (ErrorCounts::new(), Sockets::default(), None);
    let (tcp_ports, udp_ports) = ports.split_at(ports.len() - needs.udp as usize);
    if let Some(port) = tcp_ports.first() {
        let TcpFacts { congestion, mss, .. } = workload.traffic.facts().tcp;
        let address = SocketAddr::new(peer, *port);
        let greet = |stream: usize| {
            tcp_acceptor::connect(address, (congestion, mss), token, stream as u32, deadline_ns, bind)
        };
        let start_ns = clock::monotonic_ns();
        let mut connect = Histogram::new();
        local_ports::check(u64::from(needs.tcp))?;
        // The first connection measures the round trip of the path.
        let first = greet(0)?;
        let threads = connectors(needs.tcp as usize, clock::monotonic_ns() - start_ns);
        let others = in_parallel(needs.tcp as usize - 1, threads, |stream| greet(stream + 1))?;
        for (connection, connect_ns) in std::iter::once(first).chain(others) {
            sockets.tcp.push(Arc::new(connection));
            connect.record(connect_ns);
        }
        connections = Some(ConnectionReport {
            elapsed_ns: clock::monotonic_ns() - start_ns,
            concurrency: threads as u32,
            connect: connect.to_record(),
        });
        sockets.peer = Some(Peer { address, bind: bind.clone() });
    }
    for _ in 0..needs.echo {
        sockets.echo.push(Arc::new(echo_socket::open(peer, bind)?));
    }
    let greet = |flow: usize| {
        let mut errors = ErrorCounts::new();
        let address = SocketAddr::new(peer, udp_ports[flow]);
        let socket = udp_acceptor::connect(address, token, flow as u32, deadline_ns, bind, &mut errors)?;
        Ok((Arc::new(socket), errors))
    };
    for (flow, errors) in in_parallel(needs.udp as usize, CONNECTORS, greet)? {
        sockets.udp.push(flow);
        setup.merge_from(errors);
    }
    let control = Control::new(needs.counters(), false, Vec::new(), Arc::default());
    let control = Arc::new(control.without_end_markers(is_counted_whole(workload)));
    Ok(ClientEnd {
        supervisor: Supervisor {
            control,
            workload: workload.clone(),
            role: Role::Client,
            token,
            sockets: SocketSource::Connected(sockets),
            setup,
            connections,
            raw: None,
            segmentation: None,
            stamping: preflight::enable_timestamping(workload),
            registration: None,
        },
    })
}

/// Whether the server counts every received datagram as a packet of the trial.
fn is_counted_whole(workload: &Workload) -> bool {
    workload.traffic.facts().packets.is_some_and(|packets| packets.dpdk(Role::Server).is_some())
}

/// How many threads connect `count` streams, of which one took `each_ns` nanoseconds.
fn connectors(count: usize, each_ns: u64) -> usize {
    let wanted = (count as u64).saturating_mul(each_ns) / SET_UP_NS;
    count.min((wanted as usize).clamp(CONNECTORS, CONNECTORS_MAX))
}

/// Runs `work` for 0 to `count` in `threads` threads, and returns the results in order, or the first error.
fn in_parallel<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, LoadError> + Sync,
) -> Result<Vec<T>, LoadError> {
    let threads = count.min(threads);
    let part = |thread: usize| (thread..count).step_by(threads).map(&work).collect::<Result<Vec<T>, _>>();
    let parts: Vec<Result<Vec<T>, LoadError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let part = &part;
                spawn::builder("load-connect").spawn_scoped(scope, move || part(thread))
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| match handle {
                Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(source) => {
                    Err(LoadError::Thread { operation: "start a thread that connects".to_owned(), source })
                }
            })
            .collect()
    });
    let mut parts = parts.into_iter().map(|part| part.map(Vec::into_iter)).collect::<Result<Vec<_>, _>>()?;
    // Thread t had t, t + threads, ...: taking one of each thread in turn restores the order.
    Ok((0..count).filter_map(|index| parts[index % threads].next()).collect())
}

impl ClientEnd {
    /// Opens the kernel-bypass sockets or programs of the workload on this interface; none when it uses the network stack.
    ///
    /// # Errors
    /// [`LoadError::KernelBypass`] without the capability, or when the interface does not support it.
    pub fn with_bypass(mut self, path: &BypassPath) -> Result<Self, LoadError> {
        self.supervisor.open_bypass(path)?;
        Ok(self)
    }

    /// Lets the workload `pps` send GSO buffers when this interface is seen to segment them: `sent` reads how many packets the interface
    /// has sent. Otherwise each datagram is sent separately. No effect on other workloads.
    #[must_use]
    pub fn try_segmentation(mut self, interface: &str, sent: impl FnMut() -> Option<u64>) -> Self {
        let Supervisor { workload, token, sockets, .. } = &self.supervisor;
        let facts = workload.traffic.facts();
        if let Wire::Datagrams { size, offload } = facts.wire
            && facts.is_of_packets()
            && offload != UdpOffload::None
            && let SocketSource::Connected(sockets) = sockets
            && let Some(socket) = sockets.udp.first()
        {
            let magic = datagram::magic(*token, 0, Kind::SegmentationProbe);
            let is_segmented = segmentation::is_segmented(socket, magic, size.0 as usize, sent);
            self.supervisor.segmentation = Some((interface.to_owned(), is_segmented));
        }
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_path_gets_more_connecting_threads() {
        assert_eq!((connectors(1, 1_000_000), connectors(8, 50_000_000)), (1, 8));
        assert_eq!(connectors(20_000, 100_000), CONNECTORS);
        assert_eq!((connectors(20_000, 10_000_000), connectors(20_000, 100_000_000)), (100, 128));
    }

    #[test]
    fn parallel_results_are_in_order() {
        for count in [0, 1, 31, 32, 33, 100, 5_000] {
            assert_eq!(in_parallel(count, 32, Ok).unwrap(), (0..count).collect::<Vec<_>>());
        }
    }
}
