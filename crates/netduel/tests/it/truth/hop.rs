//! A hop in user space between two wires: it delays every frame by a set time, and records arrival and departure by its own
//! clock.
use std::collections::{HashSet, VecDeque};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use netduel_sys::clock;
use netduel_sys::packet::PacketSocket;
use netduel_sys::socket::{Waiting, wait_readable};

use super::bed::{Hosts, Namespace, prefer_this_thread, wire};

/// Maximum wait for a frame, so that the end is detected.
const LOOK: Duration = Duration::from_millis(20);

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer = 0,
    ToClient = 1,
}

/// A forwarded frame.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub way: Direction,
    /// Payload bytes above TCP, UDP or an ICMP echo; absent for other frames, and for retransmits.
    pub payload: Option<usize>,
    /// TCP sequence number of the first byte.
    sequence: Option<u32>,
    /// Whether it is the last one of its direction: a TCP FIN.
    pub is_fin: bool,
    /// Read time, nanoseconds of the monotonic clock: not before its arrival.
    pub came_ns: u64,
    /// Time before sending: not after its departure.
    pub went_ns: u64,
}

/// A running hop.
pub struct Hop {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Passed>>,
    _namespace: Namespace,
}

struct Held {
    due_ns: u64,
    frame: Vec<u8>,
    passed: Passed,
}

impl Hop {
    /// Two hosts with the hop between them, which delays each frame by `hold_ns`.
    pub fn between_hosts(hold_ns: u64) -> (Hosts, Self) {
        let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
        let middle = Namespace::new();
        wire(&hosts.a, "va", &middle, "ha");
        wire(&middle, "hb", &hosts.b, "vb");
        hosts.address();
        hosts.send_whole_frames();
        let sockets = ["ha", "hb"].map(|name| {
            let index = middle.index(name);
            middle.inside(|| PacketSocket::open(index, 4 << 20).unwrap())
        });
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || pass_on(&sockets, hold_ns, &stopped));
        (hosts, Self { stop, thread, _namespace: middle })
    }

    /// All forwarded frames, in the order of departure.
    pub fn finish(self) -> Vec<Passed> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = self.thread.join().unwrap();
        // A stalled machine makes TCP retransmit data that the hop holds; the first copy counts.
        let mut known = HashSet::new();
        for frame in all.iter_mut().filter(|frame| frame.payload.is_some_and(|bytes| bytes > 0)) {
            if frame.sequence.is_some_and(|number| !known.insert((frame.way as u8, number))) {
                frame.payload = None;
            }
        }
        all
    }
}

fn pass_on(sockets: &[PacketSocket; 2], hold_ns: u64, stop: &AtomicBool) -> Vec<Passed> {
    prefer_this_thread();
    let mut all = Vec::new();
    let mut held: VecDeque<Held> = VecDeque::new();
    let mut buffer = [0; 2048];
    loop {
        // Read before the sockets: every frame that came before the stop is recorded, also by a thread that had no core then.
        let is_stopped = stop.load(Ordering::Relaxed);
        let wait = held
            .front()
            .map_or(LOOK, |first| Duration::from_nanos(first.due_ns.saturating_sub(clock::monotonic_ns())));
        let ready = wait_readable(&[sockets[0].as_fd(), sockets[1].as_fd()], wait).unwrap();
        for (way, socket) in [Direction::ToServer, Direction::ToClient].into_iter().zip(sockets) {
            if !ready[way as usize] {
                continue;
            }
            while let Ok(length) = socket.receive(&mut buffer, Waiting::Never) {
                let came_ns = clock::monotonic_ns();
                let frame = buffer[..length].to_vec();
                let (payload, sequence, is_fin) = look_into(&frame);
                let passed = Passed { way, payload, sequence, is_fin, came_ns, went_ns: 0 };
                // Equal delays keep the order of arrival, so the first is always the next.
                held.push_back(Held { due_ns: came_ns + hold_ns, frame, passed });
            }
        }
        while held.front().is_some_and(|first| first.due_ns <= clock::monotonic_ns()) {
            let Held { frame, passed, .. } = held.pop_front().unwrap();
            all.push(Passed { went_ns: clock::monotonic_ns(), ..passed });
            sockets[1 - passed.way as usize].send(&frame).unwrap();
        }
        if is_stopped && held.is_empty() {
            return all;
        }
    }
}

/// Payload bytes above TCP, UDP or ICMP over IPv4, TCP's sequence number, and whether it is a FIN.
fn look_into(frame: &[u8]) -> (Option<usize>, Option<u32>, bool) {
    if frame.len() < 14 + 20 + 8 || frame[12..14] != [8, 0] || frame[14] != 0x45 {
        return (None, None, false);
    }
    let length = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
    match frame[23] {
        6 => {
            let header = usize::from(frame[46] >> 4) * 4;
            let sequence = frame[38..42].try_into().map(u32::from_be_bytes).ok();
            (length.checked_sub(20 + header), sequence, frame[47] & 1 != 0)
        }
        // The headers of ICMP echoes and of UDP have the same length.
        1 | 17 => (length.checked_sub(20 + 8), None, false),
        _ => (None, None, false),
    }
}
