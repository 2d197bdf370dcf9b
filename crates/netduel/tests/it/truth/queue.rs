//! A token bucket on an interface: its counters and those of the far end's sockets, sampled with the time of each reading.
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use netduel_sys::clock;
use netduel_sys::namespace::{self, Kind};
use netduel_sys::netlink::{NetlinkSocket, RTM_GETQDISC, Request, attribute, messages, u32_at, u64_at};

use super::bed::{Namespace, prefer_this_thread};

/// Time between two readings, nanoseconds.
const PERIOD_NS: u64 = 2_000_000;

// include/uapi/linux/rtnetlink.h and gen_stats.h.
/// Bytes of `struct tcmsg`.
const BODY_LEN: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// The counters of the queue at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// Bytes that left: those on the wire, including the Ethernet, IP and TCP or UDP header of each segment.
    pub bytes: u64,
    /// Segments or datagrams that left.
    pub packets: u64,
    /// Backlog, bytes.
    pub backlog: u32,
    /// Drops.
    pub drops: u32,
    /// Bytes in the far end's sockets that the program has not read (`rx_queue` of `/proc/net/tcp` and `udp`; for UDP with memory
    /// overhead).
    pub waiting: u64,
    /// Packets in the cores' backlogs, for the whole machine (`/proc/net/softnet_stat`, Linux 5.10 and later).
    pub unprocessed: u64,
}

/// Limits the sending rate of `interface` to `rate` in the syntax of tc(8). The queue is longer than TCP lets a socket fill it
/// (`net.ipv4.tcp_limit_output_bytes`), so TCP loses nothing there.
pub fn cap(side: &Namespace, interface: &str, rate: &str, burst: u32) {
    side.must(&format!(
        "tc qdisc replace dev {interface} root handle 1: tbf rate {rate} burst {burst} limit 16777216"
    ));
}

/// Samples in its own thread until it is stopped.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Reading>>,
}

impl Sampler {
    /// Samples the queue of `interface` of one host, and the sockets of the other.
    pub fn start(side: &Namespace, interface: &str, other: &Namespace) -> Self {
        let (inside, index, far) = (side.descriptor(), side.index(interface), other.descriptor());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (first, started) = channel();
        let thread = std::thread::spawn(move || {
            namespace::enter(Kind::Net, inside.as_fd()).unwrap();
            let mut socket = NetlinkSocket::route().unwrap();
            // The socket stays in the namespace in which it was opened.
            namespace::enter(Kind::Net, far.as_fd()).unwrap();
            prefer_this_thread();
            let mut readings = Vec::new();
            let mut next = clock::monotonic_ns();
            let mut is_last = false;
            while !is_last {
                // One more reading after the end.
                is_last = stopped.load(Ordering::Relaxed);
                let (waiting, unprocessed) = (waiting(), unprocessed());
                readings.push(Reading { waiting, unprocessed, ..read(&mut socket, index) });
                // The creator waits for the first reading only.
                let _ = first.send(());
                next = (next + PERIOD_NS).max(clock::monotonic_ns());
                clock::sleep_until(next);
            }
            readings
        });
        started.recv().unwrap();
        Self { stop, thread }
    }

    pub fn finish(self) -> Vec<Reading> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Packets sent but not yet processed by a core; 0 where the kernel does not report it.
fn unprocessed() -> u64 {
    const BACKLOG_FIELD: usize = 11;
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let of_core = |line: &str| u64::from_str_radix(line.split_whitespace().nth(BACKLOG_FIELD)?, 16).ok();
    text.lines().filter_map(of_core).sum()
}

/// Unread bytes of all connected IPv4 sockets of this thread's namespace.
fn waiting() -> u64 {
    const LISTENING: &str = "0A";
    let texts =
        ["tcp", "udp"].map(|name| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap());
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, received) = fields.get(4)?.split_once(':')?;
        (fields[3] != LISTENING).then(|| u64::from_str_radix(received, 16).ok())?
    };
    texts.iter().flat_map(|text| text.lines().skip(1)).filter_map(of_line).sum()
}

/// Dumps all qdiscs and returns the token bucket of the interface.
fn read(socket: &mut NetlinkSocket, index: u32) -> Reading {
    let mut table = Vec::new();
    socket.dump(&Request::new(RTM_GETQDISC, 0, &[0; BODY_LEN]), &mut table).unwrap();
    let at_ns = clock::monotonic_ns();
    let found = messages(&table).find_map(|message| bucket(message.payload, index, at_ns));
    found.expect("the interface has a token bucket")
}

/// A qdisc of the dump, if it is the interface's token bucket.
fn bucket(message: &[u8], index: u32, at_ns: u64) -> Option<Reading> {
    let attributes = message.get(BODY_LEN..)?;
    if u32_at(message, 4) != Some(index) || attribute(attributes, TCA_KIND)? != b"tbf\0" {
        return None;
    }
    let statistics = attribute(attributes, TCA_STATS2)?;
    let (basic, queue) = (attribute(statistics, TCA_STATS_BASIC)?, attribute(statistics, TCA_STATS_QUEUE)?);
    Some(Reading {
        at_ns,
        bytes: u64_at(basic, 0)?,
        packets: u64::from(u32_at(basic, 8)?),
        backlog: u32_at(queue, 4)?,
        drops: u32_at(queue, 8)?,
        waiting: 0,
        unprocessed: 0,
    })
}
