//! An XDP program that drops testpmd's packets from some sources, and counts dropped and passed ones.
use netduel_sys::bpf::{
    Attach, Code, Condition, Helper, Link, Map, Operand, Operation, PerCoreArray, Program, ProgramKind,
    Register, Width,
};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

/// From `enum xdp_action` (include/uapi/linux/bpf.h).
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
/// Length of testpmd's packets in these tests.
const LENGTH: i32 = 60;
/// Protocol number of UDP, and its offset in an IPv4 packet.
const UDP: i32 = 17;
const PROTOCOL_AT: i16 = 23;
/// The last byte of the source address and both of the source port: one of them varies, depending on the version.
const SOURCE_AT: [i16; 4] = [28, 29, 34, 35];
/// The entries of the map.
const PASSED: i32 = 0;
const DROPPED: i32 = 1;

/// The attached program and its counters. Dropping it detaches the program.
pub struct Fate {
    _link: Link,
    counts: PerCoreArray,
}

impl Fate {
    /// Number of passed and of dropped packets of testpmd.
    pub fn read(&self) -> (u64, u64) {
        let sum = |entry: i32| self.counts.read(entry as u32).unwrap().iter().sum();
        (sum(PASSED), sum(DROPPED))
    }
}

/// Drops the packets of an eighth of all sources.
pub fn of_an_eighth(interface: &str) -> Fate {
    use Register::{R1, R2, R3, R4, R7};
    let counts = PerCoreArray::new("fates", 2).unwrap();
    let mut code = Code::new();
    let (other, lose) = (code.label(), code.label());
    // struct xdp_md: data, data_end.
    code.load(Width::Word, R7, R1, 0)
        .load(Width::Word, R3, R1, 4)
        .set(R4, Operand::Of(R7))
        .compute(Operation::Add, R4, Operand::Value(LENGTH))
        .jump_if(Condition::Greater, R4, Operand::Of(R3), other)
        .load(Width::Byte, R4, R7, PROTOCOL_AT)
        .jump_if(Condition::NotEqual, R4, Operand::Value(UDP), other)
        .set(R2, Operand::Value(0));
    for at in SOURCE_AT {
        code.load(Width::Byte, R4, R7, at).compute(Operation::Xor, R2, Operand::Of(R4));
    }
    code.compute(Operation::And, R2, Operand::Value(7)).jump_if(
        Condition::Equal,
        R2,
        Operand::Value(0),
        lose,
    );
    count(&mut code, &counts, PASSED);
    code.exit_with(XDP_PASS).place(lose);
    count(&mut code, &counts, DROPPED);
    code.exit_with(XDP_DROP).place(other).exit_with(XDP_PASS);
    let program = Program::load(ProgramKind::Xdp, "fates", &code).unwrap();
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    let index = name_to_index(socket, interface).unwrap();
    let link = Link::attach(&program, Attach::Xdp, index).unwrap();
    Fate { _link: link, counts }
}

/// Adds one to an entry of this core.
fn count<'map>(code: &mut Code<'map>, counts: &'map impl Map, entry: i32) {
    use Register::{R0, R1, R2, R10};
    let done = code.label();
    code.store(Width::Word, R10, -4, Operand::Value(entry))
        .set(R2, Operand::Of(R10))
        .compute(Operation::Add, R2, Operand::Value(-4))
        .load_map(R1, counts)
        .call(Helper::MapLookup)
        .jump_if(Condition::Equal, R0, Operand::Value(0), done)
        .load(Width::Double, R1, R0, 0)
        .compute(Operation::Add, R1, Operand::Value(1))
        .store(Width::Double, R0, 0, Operand::Of(R1))
        .place(done);
}
