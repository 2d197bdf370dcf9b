//! Kernel bypass over a real veth: each frame of one socket is received by another exactly once and unchanged, and generated frames
//! of the kernel are counted exactly.
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::process::Command;

use netduel_sys::bpf::{
    Attach, Code, Condition, Helper, Link, Live, Operand, PerCoreArray, Program, ProgramKind, Register,
    SocketMap, Width, run_live,
};
use netduel_sys::clock;
use netduel_sys::namespace::{self, Kind};
use netduel_sys::xdp::{Settings, XdpSocket, ZeroCopy};

/// Values of `enum xdp_action` (include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_TX: i32 = 3;
/// Minimum length of an Ethernet frame without its checksum, bytes.
const LENGTH: usize = 60;
/// The same as an immediate.
const LENGTH_IN_CODE: i32 = 60;
/// An EtherType for experiments (IEEE 802, local experimental 1): no network stack processes it.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// Timeout of every step, nanoseconds.
const PATIENCE_NS: u64 = 120_000_000_000;

/// Two namespaces, `va` in the first and `vb` in the second.
struct Wire {
    ends: [OwnedFd; 2],
}

impl Wire {
    /// `None`, with a printed reason, when this user lacks the capability.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            netduel_test_support::skip("AF_XDP and bpf(2) need root");
            return None;
        }
        let ends = [(); 2].map(|()| {
            let made = std::thread::spawn(|| {
                namespace::unshare(&[Kind::Net]).unwrap();
                OwnedFd::from(File::open("/proc/thread-self/ns/net").unwrap())
            });
            made.join().unwrap()
        });
        let wire = Self { ends };
        let far = format!("/proc/{}/fd/{}", std::process::id(), wire.ends[1].as_raw_fd());
        wire.inside(0, || {
            ip(&[
                "link", "add", "va", "index", "10", "type", "veth", "peer", "name", "vb", "index", "11",
                "netns", &far,
            ]);
        });
        for (side, name) in [(0, "va"), (1, "vb")] {
            wire.inside(side, || {
                ip(&["link", "set", name, "addrgenmode", "none"]);
                ip(&["link", "set", name, "up"]);
            });
        }
        Some(wire)
    }

    fn inside<T: Send>(&self, side: usize, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                namespace::enter(Kind::Net, self.ends[side].as_fd()).unwrap();
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().unwrap();
    assert!(output.status.success(), "ip {words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Jumps to `other` unless the frame has the length and the EtherType of the test.
fn only_ours(code: &mut Code<'_>, other: netduel_sys::bpf::Label) {
    let ether_type = i32::from(u16::from_ne_bytes(ETHER_TYPE));
    // struct xdp_md: data, data_end.
    code.load(Width::Word, Register::R2, Register::R1, 0)
        .load(Width::Word, Register::R3, Register::R1, 4)
        .set(Register::R4, Operand::Of(Register::R2))
        .compute(netduel_sys::bpf::Operation::Add, Register::R4, Operand::Value(LENGTH_IN_CODE))
        .jump_if(Condition::Greater, Register::R4, Operand::Of(Register::R3), other)
        .load(Width::Half, Register::R5, Register::R2, 12)
        .jump_if(Condition::NotEqual, Register::R5, Operand::Value(ether_type), other);
}

/// Redirects the frames of the test to the socket of their queue.
fn leader(sockets: &SocketMap) -> Program {
    let mut code = Code::new();
    let other = code.label();
    only_ours(&mut code, other);
    code.load(Width::Word, Register::R2, Register::R1, 16)
        .load_map(Register::R1, sockets)
        .set(Register::R3, Operand::Value(XDP_PASS))
        .call(Helper::RedirectMap)
        .exit()
        .place(other)
        .exit_with(XDP_PASS);
    Program::load(ProgramKind::Xdp, "leader", &code).unwrap()
}

/// Counts the frames of the test and drops them.
fn counter(counts: &PerCoreArray) -> Program {
    let mut code = Code::new();
    let (other, drop) = (code.label(), code.label());
    only_ours(&mut code, other);
    code.store(Width::Word, Register::R10, -4, Operand::Value(0))
        .set(Register::R2, Operand::Of(Register::R10))
        .compute(netduel_sys::bpf::Operation::Add, Register::R2, Operand::Value(-4))
        .load_map(Register::R1, counts)
        .call(Helper::MapLookup)
        .jump_if(Condition::Equal, Register::R0, Operand::Value(0), drop)
        .load(Width::Double, Register::R1, Register::R0, 0)
        .compute(netduel_sys::bpf::Operation::Add, Register::R1, Operand::Value(1))
        .store(Width::Double, Register::R0, 0, Operand::Of(Register::R1))
        .place(drop)
        .exit_with(XDP_DROP)
        .place(other)
        .exit_with(XDP_PASS);
    Program::load(ProgramKind::Xdp, "counter", &code).unwrap()
}

fn frame() -> [u8; LENGTH] {
    let mut frame = [0; LENGTH];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    frame
}

fn settings(interface: u32, send_frames: u32, receive_frames: u32) -> Settings {
    Settings {
        interface,
        queue: 0,
        send_frames,
        receive_frames,
        zero_copy: ZeroCopy::Never,
        busy_poll_us: None,
    }
}

#[test]
fn frames_are_received_once_and_complete() {
    const FRAMES: u64 = 20_000;
    /// Frames in flight are limited to the capacity of the receiver, so none may be lost.
    const WINDOW: u64 = 256;
    let Some(wire) = Wire::new() else { return };
    let mut sender = wire.inside(0, || XdpSocket::open(&settings(10, 512, 0)).unwrap());
    let sockets = SocketMap::new("sockets", 1).unwrap();
    let (mut receiver, _link) = wire.inside(1, || {
        let receiver = XdpSocket::open(&settings(11, 0, 1024)).unwrap();
        sockets.put(0, &receiver).unwrap();
        (receiver, Link::attach(&leader(&sockets), Attach::Xdp, 11).unwrap())
    });
    assert!(!sender.is_zero_copy() && !receiver.is_zero_copy());
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    let (mut written, mut seen) = (0_u64, Vec::new());
    while seen.len() < FRAMES as usize {
        assert!(clock::monotonic_ns() < deadline, "{written} sent, {} received", seen.len());
        let room = (FRAMES - written).min(WINDOW - (written - seen.len() as u64)).min(32);
        sender.send(room as usize, |bytes| {
            bytes[..LENGTH].copy_from_slice(&frame());
            bytes[14..22].copy_from_slice(&written.to_be_bytes());
            written += 1;
            LENGTH
        });
        // A full queue drains.
        let _ = sender.kick();
        sender.reclaim();
        receiver.receive(64, |bytes| {
            assert_eq!((bytes.len(), &bytes[..14]), (LENGTH, &frame()[..14]));
            seen.push(u64::from_be_bytes(bytes[14..22].try_into().unwrap()));
        });
    }
    assert!(seen.iter().copied().eq(0..FRAMES), "lost, doubled or out of order");
    assert_eq!(receiver.counters().unwrap().rx_dropped, 0);
    assert_eq!(receiver.counters().unwrap().rx_ring_full, 0);
    while sender.free_frames() < 512 {
        assert!(clock::monotonic_ns() < deadline);
        sender.reclaim();
    }
}

#[test]
fn frames_beyond_the_ring_of_an_idle_receiver_count_as_dropped() {
    const SENT: u64 = 300;
    const ROOM: u64 = 64;
    let Some(wire) = Wire::new() else { return };
    let mut sender = wire.inside(0, || XdpSocket::open(&settings(10, 512, 0)).unwrap());
    let sockets = SocketMap::new("sockets", 1).unwrap();
    let (mut receiver, _link) = wire.inside(1, || {
        let receiver = XdpSocket::open(&settings(11, 0, ROOM as u32)).unwrap();
        sockets.put(0, &receiver).unwrap();
        (receiver, Link::attach(&leader(&sockets), Attach::Xdp, 11).unwrap())
    });
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    let put = sender.send(SENT as usize, |bytes| {
        bytes[..LENGTH].copy_from_slice(&frame());
        LENGTH
    });
    assert_eq!(put as u64, SENT);
    while sender.free_frames() < 512 {
        assert!(clock::monotonic_ns() < deadline);
        let _ = sender.kick();
        sender.reclaim();
    }
    let lost = |receiver: &XdpSocket| {
        let counters = receiver.counters().unwrap();
        counters.rx_dropped + counters.rx_ring_full
    };
    while lost(&receiver) < SENT - ROOM {
        assert!(clock::monotonic_ns() < deadline, "{:?}", receiver.counters());
    }
    assert_eq!(receiver.receive(u32::MAX, |_| {}), ROOM as u32);
    assert_eq!(lost(&receiver), SENT - ROOM);
}

#[test]
fn frames_of_the_kernel_generator_are_counted_exactly() {
    /// At most 256, the capacity of the queue of a veth, so none may be lost.
    const FRAMES: u32 = 200;
    const ROUNDS: u64 = 20;
    let Some(wire) = Wire::new() else { return };
    let counts = PerCoreArray::new("counts", 1).unwrap();
    let _link = wire.inside(1, || Link::attach(&counter(&counts), Attach::Xdp, 11).unwrap());
    let mut code = Code::new();
    code.exit_with(XDP_TX);
    let maker = Program::load(ProgramKind::Xdp, "maker", &code).unwrap();
    let counted = || counts.read(0).unwrap().iter().sum::<u64>();
    let deadline = clock::monotonic_ns() + PATIENCE_NS;
    for round in 1..=ROUNDS {
        let live = Live { interface: 10, count: FRAMES, batch: 64 };
        wire.inside(0, || run_live(&maker, &frame(), live).unwrap());
        while counted() < round * u64::from(FRAMES) {
            assert!(clock::monotonic_ns() < deadline, "{} counted in round {round}", counted());
        }
    }
    assert_eq!(counted(), ROUNDS * u64::from(FRAMES));
}
