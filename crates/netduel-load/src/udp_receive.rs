//! The receiver of UDP datagrams: takes batches and accounts for each datagram.
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use netduel_model::sample::DatagramReport;
use netduel_stats::series::Jitter;
use netduel_sys::udp::{self, ReceiveBatch};
use netduel_sys::{clock, error_name, socket};

use crate::accounting::{Accounting, Arrival};
use crate::datagram;
use crate::greeting::{self, Greeting};
use crate::jobs::Worker;

/// Datagrams taken in one system call.
const BATCH: usize = 64;
/// Longest sleep in a call, so that the end of the trial is noticed.
const CALL_LIMIT: Duration = Duration::from_millis(20);
/// After the peer is done, this long without a datagram means that nothing is under way any more.
const QUIET_NS: u64 = 50_000_000;
/// The longest that is waited for quiet.
const DRAIN_NS: u64 = 2_000_000_000;

/// What one flow counted.
pub(crate) struct FlowCount {
    accounting: Accounting,
    foreign: u64,
    pub jitter: Jitter,
    socket_drops: Option<u64>,
}

impl FlowCount {
    /// Adds this flow's counts to the report of its end.
    pub(crate) fn add_to(&self, report: &mut DatagramReport, flow: usize) {
        report.unique += self.accounting.unique();
        report.duplicates += self.accounting.duplicates();
        report.reordered += self.accounting.reordered();
        report.too_late += self.accounting.too_late();
        report.foreign += self.foreign;
        if report.highest.len() <= flow {
            report.highest.resize(flow + 1, 0);
        }
        report.highest[flow] = self.accounting.highest_plus_one();
        if let Some(drops) = self.socket_drops {
            report.socket_drops = Some(report.socket_drops.unwrap_or(0) + drops);
        }
    }
}

/// How far the end of the flow is.
struct Ending {
    peer_done_ns: Option<u64>,
    last_arrival_ns: u64,
}

impl Ending {
    fn is_over(&self, now: u64) -> bool {
        self.peer_done_ns.is_some_and(|done| {
            now.saturating_sub(self.last_arrival_ns.max(done)) >= QUIET_NS
                || now.saturating_sub(done) >= DRAIN_NS
        })
    }
}

/// Receives until the peer is done and nothing is under way.
pub(crate) fn receive(worker: &mut Worker, socket: &UdpSocket, size: usize, magic: u64, end_magic: u64) {
    worker.tally.count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(socket, CALL_LIMIT));
    // Room for a greeting even when datagrams are smaller, so that a belated one is known for what it is.
    let mut batch = ReceiveBatch::new(BATCH, size.max(greeting::LENGTH + 1));
    let mut count = FlowCount {
        accounting: Accounting::new(),
        foreign: 0,
        jitter: Jitter::default(),
        socket_drops: None,
    };
    let mut ending = Ending { peer_done_ns: None, last_arrival_ns: 0 };
    while !worker.control.is_cut() {
        let result = batch.receive(socket);
        let now = clock::monotonic_ns();
        match result {
            Ok(taken) => {
                let before = count.accounting.unique();
                let ended = take_in(&batch, taken, size, (magic, end_magic), now, &mut count);
                let new = count.accounting.unique() - before;
                if new > 0 {
                    worker.received().add(new * size as u64, new, now);
                    ending.last_arrival_ns = now;
                }
                if ended && ending.peer_done_ns.is_none() {
                    ending.peer_done_ns = Some(now);
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => {
                worker.tally.count("recvmmsg", &error);
                // Anything else than an ICMP answer would come back at once, forever.
                if error.raw_os_error().and_then(error_name::of).is_none_or(|name| !is_from_the_path(name)) {
                    break;
                }
            }
        }
        if ending.peer_done_ns.is_none() && worker.control.is_finishing() {
            ending.peer_done_ns = Some(now);
        }
        if ending.is_over(now) {
            break;
        }
    }
    match udp::drops(socket) {
        Ok(drops) => count.socket_drops = Some(u64::from(drops)),
        Err(error) => worker.tally.count("getsockopt SO_MEMINFO", &error),
    }
    worker.datagrams = Some(count);
}

/// Errors that a router or the peer's host caused, and that the call has taken off the socket.
fn is_from_the_path(name: &str) -> bool {
    matches!(
        name,
        "ECONNREFUSED"
            | "EHOSTUNREACH"
            | "ENETUNREACH"
            | "EHOSTDOWN"
            | "ENONET"
            | "EPROTO"
            | "EMSGSIZE"
            | "EACCES"
            | "ENOPROTOOPT"
            | "EOPNOTSUPP"
            | "ENETDOWN"
            | "ENOBUFS"
            | "ENOMEM"
    )
}

/// Accounts for a batch; true when one of it was the end marker.
#[inline]
fn take_in(
    batch: &ReceiveBatch,
    taken: usize,
    size: usize,
    (magic, end_magic): (u64, u64),
    now: u64,
    count: &mut FlowCount,
) -> bool {
    let mut ended = false;
    for index in 0..taken {
        let (payload, length) = batch.datagram(index);
        let ours = length == size && datagram::read_magic(payload) == Some(magic);
        match (ours, datagram::read_number(payload), datagram::read_time(payload)) {
            (true, Some(number), Some(sent_ns)) => {
                let arrival = count.accounting.arrive(number);
                if matches!(arrival, Arrival::InOrder | Arrival::Reordered) {
                    count.jitter.update(now.wrapping_sub(sent_ns).cast_signed());
                }
            }
            _ if datagram::read_magic(payload) == Some(end_magic) => ended = true,
            // A repeated greeting whose answer was late is ours, too.
            _ if Greeting::from_bytes(payload).is_some() => {}
            _ => count.foreign += 1,
        }
    }
    ended
}
