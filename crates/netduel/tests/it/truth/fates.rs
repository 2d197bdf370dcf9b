//! Programs at a receiver's ingress that select an action for each datagram or echo request by its number: pass, drop, duplicate, or detour
//! through a second pair of devices, where a thread forwards it after later ones have passed.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use netduel_sys::bpf::{
    ArrayMap, Attach, Code, Condition, Helper, Label, Link, Operand, Operation, Program, ProgramKind,
    Register, Width,
};
use netduel_sys::clock;
use netduel_sys::packet::PacketSocket;
use netduel_sys::socket::Waiting;

use super::bed::{Hosts, prefer_this_thread, wire};

/// The actions; the map has one for each number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Passed = 0,
    Dropped = 1,
    Doubled = 2,
    Held = 3,
}

/// What carries the numbers; the number stands at the same place in both, because both have a header of 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    Icmp = 1,
    Udp = 17,
}

/// A held datagram is forwarded after a datagram with a number this much higher has passed.
const HELD_FOR: u64 = 8;

// Indices of the second map.
const DECIDED: u32 = 4;
const LAST_PASSED: u32 = DECIDED;

/// Mark of a packet that was already processed.
const MARK: i32 = 0x006e_6475;
/// Offset of `mark` in `struct __sk_buff` (include/uapi/linux/bpf.h).
const MARK_OFFSET: i16 = 8;
// include/uapi/linux/bpf.h: `TCX_PASS`, `TCX_DROP`, `BPF_F_INGRESS`.
const PASS: i32 = 0;
const DROP: i32 = 2;
const INGRESS: i32 = 1;

// Offsets in a frame: from the Ethernet type to the end of the IP header and beyond, and the number after its magic.
const HEAD: (i32, i32) = (12, 28);
const NUMBER: (i32, i32) = (14 + 20 + 8 + 8, 8);
/// Positions of local variables, below the end of the stack.
const HEAD_AT: i16 = -32;
const NUMBER_AT: i16 = -40;
const KEY_AT: i16 = -44;

/// The attached programs, and the thread that holds datagrams.
pub struct Fates {
    decided: Arc<ArrayMap>,
    _links: [Link; 2],
    stop: Arc<AtomicBool>,
    holder: Option<JoinHandle<u64>>,
}

impl Fates {
    /// Selects an action for each IPv4 datagram of `size` payload bytes that arrives at `vb` by its number; those without an
    /// entry pass.
    pub fn decide(hosts: &Hosts, size: u16, fates: &[Fate]) -> Self {
        Self::decide_for(Carrier::Udp, hosts, size, fates)
    }

    /// As [`Self::decide`], for datagrams or echo requests.
    pub fn decide_for(carrier: Carrier, hosts: &Hosts, size: u16, fates: &[Fate]) -> Self {
        wire(&hosts.b, "hold0", &hosts.b, "hold1");
        let [arrival, hold0, hold1] = ["vb", "hold0", "hold1"].map(|name| hosts.b.index(name));
        let map = ArrayMap::new("fates", fates.len() as u32).unwrap();
        for (index, fate) in fates.iter().enumerate() {
            map.write(index as u32, *fate as u64).unwrap();
        }
        let decided = Arc::new(ArrayMap::new("decided", LAST_PASSED + 1).unwrap());
        let (fate, back) = (decider(&map, &decided, (carrier, size), arrival, hold0), returner(arrival));
        let fate =
            Program::load(ProgramKind::SchedCls, "fate", &fate).unwrap_or_else(|error| panic!("{error}"));
        let back =
            Program::load(ProgramKind::SchedCls, "back", &back).unwrap_or_else(|error| panic!("{error}"));
        let links = hosts.b.inside(|| {
            [(&fate, arrival), (&back, hold0)]
                .map(|(program, interface)| Link::attach(program, Attach::TcxIngress, interface).unwrap())
        });
        let stop = Arc::new(AtomicBool::new(false));
        let holder = hold(hosts, hold1, Arc::clone(&decided), Arc::clone(&stop));
        Self { decided, _links: links, stop, holder: Some(holder) }
    }

    /// Number of datagrams per action, as counted by the program, and number of datagrams forwarded by the holding thread.
    pub fn finish(mut self) -> ([u64; 4], u64) {
        self.stop.store(true, Ordering::Relaxed);
        let sent_on = self.holder.take().unwrap().join().unwrap();
        ([0, 1, 2, 3].map(|fate| self.decided.read(fate).unwrap()), sent_on)
    }
}

impl Drop for Fates {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The program at the receiver's interface.
fn decider<'a>(
    fates: &'a ArrayMap,
    decided: &'a ArrayMap,
    (carrier, size): (Carrier, u16),
    arrival: u32,
    hold0: u32,
) -> Code<'a> {
    use Register::{R0, R1, R2, R3, R6, R7, R8, R10};
    let mut code = Code::new();
    let [pass, fresh, drop, double, held] = [(); 5].map(|()| code.label());
    code.set(R6, Operand::Of(R1));
    // An already processed packet passes, without the mark.
    code.load(Width::Word, R2, R6, MARK_OFFSET).jump_if(Condition::NotEqual, R2, Operand::Value(MARK), fresh);
    set_mark(&mut code, 0);
    code.exit_with(PASS).place(fresh);
    load_bytes(&mut code, HEAD, HEAD_AT, pass);
    load_bytes(&mut code, NUMBER, NUMBER_AT, pass);
    let total_length = 20 + 8 + size;
    for (width, offset, expected) in [
        (Width::Half, 12, i32::from(0x0800_u16.to_be())),
        (Width::Byte, 14, 0x45),
        (Width::Half, 16, i32::from(total_length.to_be())),
        (Width::Byte, 23, carrier as i32),
    ] {
        code.load(width, R2, R10, HEAD_AT + offset - HEAD.0 as i16);
        code.jump_if(Condition::NotEqual, R2, Operand::Value(expected), pass);
    }
    code.load(Width::Double, R8, R10, NUMBER_AT);
    code.jump_if(Condition::GreaterOrEqual, R8, Operand::Value(fates.entries().cast_signed()), pass);
    code.store(Width::Word, R10, KEY_AT, Operand::Of(R8));
    look_up(&mut code, fates, pass);
    code.load(Width::Double, R7, R0, 0).store(Width::Word, R10, KEY_AT, Operand::Of(R7));
    look_up(&mut code, decided, pass);
    code.set(R1, Operand::Value(1)).add_atomically(R0, 0, R1);
    code.jump_if(Condition::Equal, R7, Operand::Value(Fate::Dropped as i32), drop).jump_if(
        Condition::Equal,
        R7,
        Operand::Value(Fate::Held as i32),
        held,
    );
    // It passes; the holding thread waits for that.
    code.store(Width::Word, R10, KEY_AT, Operand::Value(LAST_PASSED.cast_signed()));
    look_up(&mut code, decided, pass);
    code.store(Width::Double, R0, 0, Operand::Of(R8));
    code.jump_if(Condition::Equal, R7, Operand::Value(Fate::Doubled as i32), double);
    code.place(pass).exit_with(PASS);
    code.place(drop).exit_with(DROP);
    code.place(double);
    set_mark(&mut code, MARK);
    code.set(R1, Operand::Of(R6))
        .set(R2, Operand::Value(arrival.cast_signed()))
        .set(R3, Operand::Value(INGRESS));
    code.call(Helper::CloneRedirect);
    set_mark(&mut code, 0);
    code.exit_with(PASS);
    code.place(held).set(R1, Operand::Value(hold0.cast_signed())).set(R2, Operand::Value(0));
    code.call(Helper::Redirect).exit();
    code
}

/// The program at the near end of the second pair: returning packets arrive at the receiver's interface again, marked.
fn returner(arrival: u32) -> Code<'static> {
    let mut code = Code::new();
    code.set(Register::R6, Operand::Of(Register::R1));
    set_mark(&mut code, MARK);
    code.set(Register::R1, Operand::Value(arrival.cast_signed())).set(Register::R2, Operand::Value(INGRESS));
    code.call(Helper::Redirect).exit();
    code
}

/// `R6` is the context.
fn set_mark(code: &mut Code<'_>, mark: i32) {
    code.set(Register::R1, Operand::Value(mark));
    code.store(Width::Word, Register::R6, MARK_OFFSET, Operand::Of(Register::R1));
}

fn load_bytes(code: &mut Code<'_>, (offset, length): (i32, i32), to: i16, otherwise: Label) {
    use Register::{R0, R1, R2, R3, R4, R6, R10};
    code.set(R1, Operand::Of(R6)).set(R2, Operand::Value(offset));
    code.set(R3, Operand::Of(R10)).compute(Operation::Add, R3, Operand::Value(i32::from(to)));
    code.set(R4, Operand::Value(length)).call(Helper::LoadBytes);
    code.jump_if(Condition::NotEqual, R0, Operand::Value(0), otherwise);
}

/// `R0` is the address of the entry whose index lies at `KEY_AT`.
fn look_up<'a>(code: &mut Code<'a>, map: &'a ArrayMap, otherwise: Label) {
    use Register::{R0, R1, R2, R10};
    code.load_map(R1, map);
    code.set(R2, Operand::Of(R10)).compute(Operation::Add, R2, Operand::Value(i32::from(KEY_AT)));
    code.call(Helper::MapLookup).jump_if(Condition::Equal, R0, Operand::Value(0), otherwise);
}

/// Holds packets at the far end of the second pair until enough later ones have passed; counts forwarded ones.
fn hold(hosts: &Hosts, hold1: u32, decided: Arc<ArrayMap>, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    let socket = hosts.b.inside(|| PacketSocket::open(hold1, 16 << 20).unwrap());
    std::thread::spawn(move || {
        // The agents have this priority, too: they must not keep it from the core until the receiver has ended.
        prefer_this_thread();
        let mut waiting = std::collections::VecDeque::new();
        let mut buffer = [0; 2048];
        let mut sent_on = 0;
        let mut is_last = false;
        while !is_last {
            // One more look after the end.
            is_last = stop.load(Ordering::Relaxed);
            while let Ok(length) = socket.receive(&mut buffer, Waiting::Never) {
                let frame = buffer[..length].to_vec();
                let number = frame[NUMBER.0 as usize..][..8].try_into().map(u64::from_le_bytes).unwrap();
                waiting.push_back((number, frame));
            }
            let passed = decided.read(LAST_PASSED).unwrap();
            while waiting.front().is_some_and(|(number, _)| passed >= number + HELD_FOR) {
                socket.send(&waiting.pop_front().unwrap().1).unwrap();
                sent_on += 1;
            }
            clock::sleep_until(clock::monotonic_ns() + 200_000);
        }
        assert!(waiting.is_empty(), "{} datagrams are still held", waiting.len());
        sent_on
    })
}
