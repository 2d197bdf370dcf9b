//! XDP programs of the receiver. They recognize the datagrams of the trial by their magic number, and redirect them to AF_XDP
//! sockets or count them. All other packets, including handshakes and end markers, go to the network stack.
use std::io;

use netduel_sys::bpf::{
    Attach, Code, Condition, HashMap, Helper, Label, Link, LoadError, Map, Operand, Operation, PerCoreArray,
    Program, ProgramKind, Register, SocketMap, Width,
};

use super::attachment::{AttachedProgram, Attachment};
use super::bypass_path::BypassPath;

/// Return codes of an XDP program: `enum xdp_action` (include/uapi/linux/bpf.h).
pub(super) const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
pub(super) const XDP_TX: i32 = 3;

/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RECEIVE_QUEUE: i16 = 16;
/// Where the keys of maps lie on the stack.
const MAGIC_AT: i16 = -8;
const FLOW_AT: i16 = -12;

/// The header layout of an address family.
struct HeaderLayout {
    ether_type: u16,
    /// Offset and value of the bytes that must match, among them the protocol number of UDP.
    bytes: &'static [(i16, i32)],
    /// Offset of the datagram's head.
    udp: i16,
}

/// Without IPv4 options, which netduel does not send.
const LAYOUTS: [HeaderLayout; 2] = [
    HeaderLayout { ether_type: 0x0800, bytes: &[(14, 0x45), (23, 17)], udp: 34 },
    HeaderLayout { ether_type: 0x86dd, bytes: &[(20, 17)], udp: 54 },
];

/// The map of flows by the magic number of their datagrams.
pub(crate) fn flow_map(magics: &[u64]) -> io::Result<HashMap> {
    let map = HashMap::new("netduel_flows", magics.len() as u32)?;
    for (flow, magic) in magics.iter().enumerate() {
        map.write(*magic, flow as u64)?;
    }
    Ok(map)
}

/// Redirects the datagrams of the trial to the AF_XDP socket of their receive queue.
pub(crate) fn redirect_program(flows: &HashMap, sockets: &SocketMap) -> Result<Program, LoadError> {
    use Register::{R1, R2, R3, R6};
    let mut code = Code::new();
    let pass = code.label();
    match_flow(&mut code, flows, pass);
    code.load_map(R1, sockets)
        .load(Width::Word, R2, R6, RECEIVE_QUEUE)
        // Without a socket on the queue the network stack gets the packet. It counts as lost; the counters of the queue show it.
        .set(R3, Operand::Value(XDP_PASS))
        .call(Helper::RedirectMap)
        .exit()
        .place(pass)
        .exit_with(XDP_PASS);
    Program::load(ProgramKind::Xdp, "netduel_lead", &code)
}

/// Attaches a program that passes every packet: some drivers serve AF_XDP sockets only with a program on the interface.
pub(crate) fn attach_pass_program(path: &BypassPath) -> Result<Attachment, (&'static str, io::Error)> {
    let mut code = Code::new();
    code.exit_with(XDP_PASS);
    let program = Program::load(ProgramKind::Xdp, "netduel_pass", &code)
        .map_err(|error| ("load an XDP program", error.source))?;
    let link =
        Link::attach(&program, Attach::Xdp, path.index).map_err(|error| ("attach an XDP program", error))?;
    Ok(Attachment::of_program(AttachedProgram::new(link, None)))
}

/// Counts the datagrams of the trial per flow and core, and drops them.
pub(crate) fn count_program(flows: &HashMap, counts: &PerCoreArray) -> Result<Program, LoadError> {
    use Register::{R0, R1};
    let mut code = Code::new();
    let pass = code.label();
    match_flow(&mut code, flows, pass);
    code.load(Width::Double, R1, R0, 0).store(Width::Word, Register::R10, FLOW_AT, Operand::Of(R1));
    look_up(&mut code, counts, FLOW_AT, pass);
    code.load(Width::Double, R1, R0, 0)
        .compute(Operation::Add, R1, Operand::Value(1))
        .store(Width::Double, R0, 0, Operand::Of(R1))
        .exit_with(XDP_DROP)
        .place(pass)
        .exit_with(XDP_PASS);
    Program::load(ProgramKind::Xdp, "netduel_count", &code)
}

/// Continues with a datagram of the trial: `R0` is the address of its flow index, `R6` the context. Jumps to `pass` for any other
/// packet.
fn match_flow<'map>(code: &mut Code<'map>, flows: &'map HashMap, pass: Label) {
    use Register::{R1, R2, R3, R6, R7, R8, R10};
    let ours = code.label();
    code.set(R6, Operand::Of(R1)).load(Width::Word, R7, R1, DATA).load(Width::Word, R8, R1, DATA_END);
    for shape in LAYOUTS {
        let other = code.label();
        // The head of the datagram and the magic.
        code.set(R2, Operand::Of(R7))
            .compute(Operation::Add, R2, Operand::Value(i32::from(shape.udp) + 16))
            .jump_if(Condition::Greater, R2, Operand::Of(R8), pass)
            .load(Width::Half, R3, R7, 12)
            .jump_if(Condition::NotEqual, R3, Operand::Value(i32::from(shape.ether_type.to_be())), other);
        for (offset, value) in shape.bytes {
            code.load(Width::Byte, R3, R7, *offset).jump_if(
                Condition::NotEqual,
                R3,
                Operand::Value(*value),
                pass,
            );
        }
        code.load(Width::Double, R2, R7, shape.udp + 8).jump(ours).place(other);
    }
    code.jump(pass).place(ours).store(Width::Double, R10, MAGIC_AT, Operand::Of(R2));
    look_up(code, flows, MAGIC_AT, pass);
}

/// Looks up the key at `key_at` of the stack: `R0` is the address of its entry.
fn look_up<'map>(code: &mut Code<'map>, map: &'map impl Map, key_at: i16, otherwise: Label) {
    use Register::{R0, R1, R2, R10};
    code.load_map(R1, map)
        .set(R2, Operand::Of(R10))
        .compute(Operation::Add, R2, Operand::Value(i32::from(key_at)))
        .call(Helper::MapLookup)
        .jump_if(Condition::Equal, R0, Operand::Value(0), otherwise);
}
