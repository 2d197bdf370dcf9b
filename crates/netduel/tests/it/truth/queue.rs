//! A token bucket on an interface, and its own counters and those of the far end's sockets, read over and over with the time of
//! each reading.
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use netduel_sys::clock;
use netduel_sys::namespace::{self, Kind};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use super::bed::{Namespace, prefer_this_thread};

/// Time between two readings, nanoseconds.
const PERIOD_NS: u64 = 2_000_000;

// include/uapi/linux/rtnetlink.h and gen_stats.h.
const RTM_GETQDISC: u16 = 38;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const NLMSG_DONE: u16 = 3;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;

/// What the queue had counted at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// Bytes that have left: those on the wire, each segment's Ethernet, IP and TCP or UDP header among them.
    pub bytes: u64,
    /// Segments or datagrams that have left.
    pub packets: u64,
    /// Bytes that wait.
    pub backlog: u32,
    /// What did not fit.
    pub drops: u32,
    /// Bytes that wait in the far end's sockets for the program to take them (`rx_queue` of `/proc/net/tcp` and `udp`; UDP's
    /// with the memory that they take).
    pub waiting: u64,
    /// Packets that wait in the cores' receive queues, those of the whole machine (`/proc/net/softnet_stat`, Linux 5.10 and later).
    pub unprocessed: u64,
}

/// Limits what `interface` sends to `rate` as tc(8) spells it. The queue is longer than TCP lets a socket fill it
/// (`net.ipv4.tcp_limit_output_bytes`), so TCP loses nothing there.
pub fn cap(side: &Namespace, interface: &str, rate: &str, burst: u32) {
    side.must(&format!(
        "tc qdisc replace dev {interface} root handle 1: tbf rate {rate} burst {burst} limit 16777216"
    ));
}

/// Reads in a thread of its own until it is stopped.
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Reading>>,
}

impl Sampler {
    /// Reads the queue of `interface` of one host, and the sockets of the other.
    pub fn start(side: &Namespace, interface: &str, other: &Namespace) -> Self {
        let (inside, index, far) = (side.descriptor(), side.index(interface), other.descriptor());
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (first, begun) = channel();
        let thread = std::thread::spawn(move || {
            namespace::enter(Kind::Net, inside.as_fd()).unwrap();
            let socket =
                socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None).unwrap();
            // The socket stays where it was opened.
            namespace::enter(Kind::Net, far.as_fd()).unwrap();
            prefer_this_thread();
            let mut readings = Vec::new();
            let mut next = clock::monotonic_ns();
            let mut is_last = false;
            while !is_last {
                // One more after the end.
                is_last = stopped.load(Ordering::Relaxed);
                let (waiting, unprocessed) = (waiting(), unprocessed());
                readings.push(Reading { waiting, unprocessed, ..read(&socket, index) });
                // Whoever started this waits for the first reading alone.
                let _ = first.send(());
                next = (next + PERIOD_NS).max(clock::monotonic_ns());
                clock::sleep_until(next);
            }
            readings
        });
        begun.recv().unwrap();
        Self { stop, thread }
    }

    pub fn finish(self) -> Vec<Reading> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Packets that left the sender and that no core has looked at yet; 0 where the kernel does not tell.
fn unprocessed() -> u64 {
    const BACKLOG_FIELD: usize = 11;
    let text = std::fs::read_to_string("/proc/net/softnet_stat").unwrap();
    let of_core = |line: &str| u64::from_str_radix(line.split_whitespace().nth(BACKLOG_FIELD)?, 16).ok();
    text.lines().filter_map(of_core).sum()
}

/// What waits in all connected IPv4 sockets of this thread's namespace.
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

/// Asks for all queues and takes the token bucket of the interface.
fn read(socket: &OwnedFd, index: u32) -> Reading {
    let mut request = [0_u8; 36];
    request[0..4].copy_from_slice(&36_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&RTM_GETQDISC.to_ne_bytes());
    request[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    send(socket, &request, SendFlags::empty()).unwrap();
    let at_ns = clock::monotonic_ns();
    let mut found = None;
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let (length, _) = recv(socket, buffer.as_mut_slice(), RecvFlags::empty()).unwrap();
        let mut rest = &buffer[..length];
        while rest.len() >= 16 {
            let (size, kind) = (number::<4>(rest) as usize, number::<2>(&rest[4..]));
            if kind == u64::from(NLMSG_DONE) {
                return found.expect("the interface has a token bucket");
            }
            found = found.or_else(|| bucket(&rest[16..size], index, at_ns));
            rest = &rest[size.next_multiple_of(4).min(rest.len())..];
        }
    }
}

/// One queue of the table, when it is the interface's token bucket.
fn bucket(message: &[u8], index: u32, at_ns: u64) -> Option<Reading> {
    if number::<4>(&message[4..]) != u64::from(index) || attribute(&message[20..], TCA_KIND)? != b"tbf\0" {
        return None;
    }
    let statistics = attribute(&message[20..], TCA_STATS2)?;
    let (basic, queue) = (attribute(statistics, TCA_STATS_BASIC)?, attribute(statistics, TCA_STATS_QUEUE)?);
    Some(Reading {
        at_ns,
        bytes: number::<8>(basic),
        packets: number::<4>(&basic[8..]),
        backlog: number::<4>(&queue[4..]) as u32,
        drops: number::<4>(&queue[8..]) as u32,
        waiting: 0,
        unprocessed: 0,
    })
}

fn number<const N: usize>(bytes: &[u8]) -> u64 {
    let mut whole = [0; 8];
    whole[..N].copy_from_slice(&bytes[..N]);
    u64::from_le_bytes(whole)
}

fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    while bytes.len() >= 4 {
        let (length, kind) = (number::<2>(bytes) as usize, number::<2>(&bytes[2..]) & 0x3fff);
        if kind == u64::from(wanted) {
            return bytes.get(4..length);
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    None
}
