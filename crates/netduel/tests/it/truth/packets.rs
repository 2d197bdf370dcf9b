//! A program on the path drops a known set of packets: for every generator and receiver, the measured loss is exactly that set.
use netduel_load::END_MARKERS;
use netduel_model::metric::Metric;
use netduel_model::packet_path::XdpMode;
use netduel_report::analysis::value_of;
use netduel_sys::bpf::{
    ArrayMap, Attach, Code, Condition, Helper, Link, Operand, Operation, Program, ProgramKind, Register,
    Width,
};

use super::bed::{Hosts, Namespace, skipped_without_root, wire};
use crate::support::Bench;

// Of `enum xdp_action`, and offsets in `struct xdp_md` (include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// A frame size as in RFC 2544, and its UDP length: no greeting and no end marker has this length.
const FRAME: u16 = 200;
const UDP_LENGTH: u16 = FRAME - 4 - 14 - 20;
/// A datagram's number is after its magic.
const NUMBER_AT: i16 = 14 + 20 + 8 + 8;
/// Every eighth number is dropped: 3, 11, 19 ...
const EIGHTH: i32 = 7;
const DROPPED: i32 = 3;
// Entries of the map. Numbers start at 0, as do the first packets of a sender's interface check, which are counted separately.
const PASSED_COUNT: u32 = 0;
const DROPPED_COUNT: u32 = 1;
const FIRST_COUNT: u32 = 2;
const KEY_AT: i16 = -4;

/// Two hosts with a bridge between them, with the program in front.
fn hosts_over_a_bridge() -> (Hosts, Namespace) {
    let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
    let middle = Namespace::new();
    wire(&hosts.a, "va", &middle, "ha");
    wire(&middle, "hb", &hosts.b, "vb");
    hosts.address();
    hosts.send_whole_frames();
    middle.must("ip link add br0 type bridge forward_delay 0 mcast_snooping 0");
    middle.must("ip link set br0 addrgenmode none up");
    middle.must("ip link set ha master br0");
    middle.must("ip link set hb master br0");
    (hosts, middle)
}

/// Counts the trial's datagrams in `counts`, and drops every eighth.
fn dropper(counts: &ArrayMap) -> Code<'_> {
    use Register::{R0, R1, R2, R3, R6, R7, R8, R10};
    let mut code = Code::new();
    let [pass, counted, drop] = [(); 3].map(|()| code.label());
    code.load(Width::Word, R7, R1, DATA).load(Width::Word, R8, R1, DATA_END);
    code.set(R2, Operand::Of(R7))
        .compute(Operation::Add, R2, Operand::Value(i32::from(NUMBER_AT) + 8))
        .jump_if(Condition::Greater, R2, Operand::Of(R8), pass);
    for (width, offset, expected) in [
        (Width::Half, 12, i32::from(0x0800_u16.to_be())),
        (Width::Byte, 14, 0x45),
        (Width::Byte, 23, 17),
        (Width::Half, 38, i32::from(UDP_LENGTH.to_be())),
    ] {
        code.load(width, R3, R7, offset).jump_if(Condition::NotEqual, R3, Operand::Value(expected), pass);
    }
    code.load(Width::Double, R6, R7, NUMBER_AT)
        .store(Width::Word, R10, KEY_AT, Operand::Value(FIRST_COUNT.cast_signed()))
        .jump_if(Condition::Equal, R6, Operand::Value(0), counted)
        .compute(Operation::And, R6, Operand::Value(EIGHTH))
        .store(Width::Word, R10, KEY_AT, Operand::Value(PASSED_COUNT.cast_signed()))
        .jump_if(Condition::NotEqual, R6, Operand::Value(DROPPED), counted)
        .store(Width::Word, R10, KEY_AT, Operand::Value(DROPPED_COUNT.cast_signed()))
        .place(counted)
        .load_map(R1, counts)
        .set(R2, Operand::Of(R10))
        .compute(Operation::Add, R2, Operand::Value(i32::from(KEY_AT)))
        .call(Helper::MapLookup)
        .jump_if(Condition::Equal, R0, Operand::Value(0), pass)
        .set(R1, Operand::Value(1))
        .add_atomically(R0, 0, R1)
        .jump_if(Condition::Equal, R6, Operand::Value(DROPPED), drop)
        .place(pass)
        .exit_with(XDP_PASS)
        .place(drop)
        .exit_with(XDP_DROP);
    code
}

#[test]
fn known_drops_equal_the_loss_of_every_generator_and_receiver() {
    if skipped_without_root() {
        return;
    }
    let (hosts, middle) = hosts_over_a_bridge();
    let counts = ArrayMap::new("fates", 3).unwrap();
    let program = Program::load(ProgramKind::Xdp, "eighth", &dropper(&counts))
        .unwrap_or_else(|error| panic!("{error}"));
    let index = middle.index("ha");
    let _link = middle.inside(|| Link::attach(&program, Attach::Xdp, index).unwrap());
    for generator in ["socket", "xdp", "kernel"] {
        for receiver in ["socket", "xdp", "count"] {
            let pair = format!("{generator} to {receiver}");
            let before = [PASSED_COUNT, DROPPED_COUNT].map(|entry| counts.read(entry).unwrap());
            // The kernel's generator is not paced: packets without room in a queue on the path are lost before they are counted.
            let flows = if generator == "kernel" { 1 } else { 3 };
            let rate = if generator == "kernel" { "" } else { "packet_rate = \"20 k/s\"\n" };
            let workload = format!(
                "[[workloads]]\nname = \"w\"\ntype = \"pps\"\ngenerator = \"{generator}\"\nreceiver = \"{receiver}\"\n\
                 frame = {FRAME}\nduration = \"200 ms\"\nwarmup = \"0 ms\"\ncooldown = \"0 ms\"\npin_client = [0]\n\
                 flows = {flows}\n{rate}"
            );
            let bench = Bench::new();
            let run = hosts.run(&bench, &workload, 2);
            let [passed, dropped] = [PASSED_COUNT, DROPPED_COUNT]
                .map(|entry| counts.read(entry).unwrap() - before[entry as usize]);
            // Plus the first of each flow, in each trial.
            let passed = passed + flows * run.trials.len() as u64;
            let mut read = [0; 3];
            for trial in &run.trials {
                let (client, server) = (trial.client.as_ref().unwrap(), trial.server.as_ref().unwrap());
                let sent = client.report.sent.as_ref().unwrap().messages;
                let seen = server.report.datagrams.as_ref().unwrap();
                assert_eq!((seen.duplicates, seen.unexpected), (0, 0), "{pair}: {seen:?}");
                let loss = value_of(Metric::Loss, &run.header.plan.arms[0].workloads[0], trial, true);
                assert_eq!(loss, Some((sent - seen.unique) as f64 / sent as f64), "{pair}: {seen:?}");
                let own = seen.socket_drops.unwrap_or(0);
                for (sum, one) in read.iter_mut().zip([sent, seen.unique, own]) {
                    *sum += one;
                }
                let packets_report = server.report.packets.as_ref();
                if receiver != "socket" {
                    let queues = &packets_report.unwrap().queues;
                    assert_eq!(queues.iter().map(|queue| queue.packets).sum::<u64>(), seen.unique, "{pair}");
                    assert_eq!(packets_report.unwrap().mode.map(XdpMode::word), Some("native"), "{pair}");
                }
            }
            let [sent, received, own] = read;
            println!(
                "{pair}: sent {sent}; passed {passed}, dropped {dropped}; received {received}, dropped at the socket {own}"
            );
            assert!(dropped > 0, "{pair}: the program has dropped nothing");
            // The receiver's own drops are counted as such, and nothing is lost behind the program. A full buffer has no room for an
            // end marker either, which the kernel counts as any other datagram of the socket.
            let markers = END_MARKERS * flows * run.trials.len() as u64;
            let markers = if own > 0 { markers } else { 0 };
            assert!((passed..=passed + markers).contains(&(received + own)), "{pair}");
            if generator != "kernel" {
                // Each datagram matched its set: the loss is exactly the set.
                assert_eq!(sent, passed + dropped, "{pair}");
            }
            bench.assert_nothing_left();
        }
    }
}
