//! Instructions of the kernel's virtual machine (Documentation/bpf/standardization/instruction-set.rst, RFC 9669) and code
//! made of them, with labels in place of offsets. Code is not checked here: the kernel's verifier rejects invalid code.
use std::os::fd::{AsRawFd as _, BorrowedFd};

use super::map::Map;

/// A register. `R0` holds results, `R1` to `R5` arguments (lost in a call), `R6` to `R9` survive calls, `R10` is the end of
/// the stack of 512 bytes, which is written below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "a register has no more to it than its name")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Width {
    /// 32 bit.
    Word = 0x00,
    /// 16 bit.
    Half = 0x08,
    /// 8 bit.
    Byte = 0x10,
    /// 64 bit.
    Double = 0x18,
}

/// A 64-bit operation: `destination = destination OPERATION operand`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of arithmetic")]
pub enum Operation {
    Add = 0x00,
    Subtract = 0x10,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Remainder = 0x90,
    Xor = 0xa0,
    /// The operand replaces the destination.
    Set = 0xb0,
}

/// An unsigned 64-bit comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of arithmetic")]
pub enum Condition {
    Equal = 0x10,
    Greater = 0x20,
    GreaterOrEqual = 0x30,
    NotEqual = 0x50,
    Less = 0xa0,
    LessOrEqual = 0xb0,
}

/// The second operand of an operation or comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// An immediate value, sign-extended to 64 bits.
    Value(i32),
    /// The value of a register.
    Of(Register),
}

/// Functions of the kernel (include/uapi/linux/bpf.h, `__BPF_FUNC_MAPPER`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Helper {
    /// `bpf_map_lookup_elem(map, key)`: the address of the value, or 0.
    MapLookup = 1,
    /// `bpf_clone_redirect(context, interface, flags)`: a copy goes to the interface.
    CloneRedirect = 13,
    /// `bpf_redirect(interface, flags)`: the packet goes to the interface when the program returns the result of this call.
    Redirect = 23,
    /// `bpf_redirect_map(map, key, otherwise)`: the frame goes to the socket of that key, or the program returns the low bits of
    /// `otherwise`.
    RedirectMap = 51,
    /// `bpf_skb_load_bytes(context, offset, to, length)`: copies from the packet; 0 on success.
    LoadBytes = 26,
}

/// A jump target in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// One unencoded instruction: operation code, registers, offset, immediate.
type Instruction = (u8, u8, i16, i32);

/// Code under construction. It borrows its maps, so that their descriptors are open when it is loaded.
#[derive(Debug, Default)]
pub struct Code<'map> {
    instructions: Vec<Instruction>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    maps: Vec<(usize, BorrowedFd<'map>)>,
}

impl<'map> Code<'map> {
    /// Code without instructions.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, code: u8, destination: u8, source: u8, offset: i16, value: i32) -> &mut Self {
        self.instructions.push((code, destination | source << 4, offset, value));
        self
    }

    /// `destination = destination OPERATION operand`.
    pub fn compute(&mut self, operation: Operation, destination: Register, operand: Operand) -> &mut Self {
        // BPF_ALU64, with BPF_X when the operand is a register.
        match operand {
            Operand::Value(value) => self.push(0x07 | operation as u8, destination as u8, 0, 0, value),
            Operand::Of(source) => self.push(0x0f | operation as u8, destination as u8, source as u8, 0, 0),
        }
    }

    /// `destination = operand`.
    pub fn set(&mut self, destination: Register, operand: Operand) -> &mut Self {
        self.compute(Operation::Set, destination, operand)
    }

    /// `destination = *(address + offset)`, zero-extended.
    pub fn load(&mut self, width: Width, destination: Register, address: Register, offset: i16) -> &mut Self {
        self.push(0x61 | width as u8, destination as u8, address as u8, offset, 0)
    }

    /// `*(address + offset) = operand`.
    pub fn store(&mut self, width: Width, address: Register, offset: i16, operand: Operand) -> &mut Self {
        match operand {
            Operand::Value(value) => self.push(0x62 | width as u8, address as u8, 0, offset, value),
            Operand::Of(source) => self.push(0x63 | width as u8, address as u8, source as u8, offset, 0),
        }
    }

    /// `*(address + offset) += source`, 64 bits, atomic.
    pub fn add_atomically(&mut self, address: Register, offset: i16, source: Register) -> &mut Self {
        self.push(0xdb, address as u8, source as u8, offset, 0)
    }

    /// `destination = map`, as an argument of helpers.
    pub fn load_map(&mut self, destination: Register, map: &'map impl Map) -> &mut Self {
        /// The immediate of this instruction is the descriptor of a map (`BPF_PSEUDO_MAP_FD`).
        const PSEUDO_MAP: u8 = 1;
        self.maps.push((self.instructions.len(), map.descriptor()));
        self.push(0x18, destination as u8, PSEUDO_MAP, 0, 0).push(0, 0, 0, 0, 0)
    }

    /// `R0 = helper(R1, ..., R5)`; `R1` to `R5` are lost.
    pub fn call(&mut self, helper: Helper) -> &mut Self {
        self.push(0x85, 0, 0, 0, helper as i32)
    }

    /// The program returns `R0`.
    pub fn exit(&mut self) -> &mut Self {
        self.push(0x95, 0, 0, 0, 0)
    }

    /// `R0 = value`, and the program returns it.
    pub fn exit_with(&mut self, value: i32) -> &mut Self {
        self.set(Register::R0, Operand::Value(value)).exit()
    }

    /// A new label without a position.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places the label before the next instruction.
    ///
    /// # Panics
    /// When it already has a position, or belongs to other code.
    pub fn place(&mut self, label: Label) -> &mut Self {
        let place = &mut self.places[label.0];
        assert!(place.is_none(), "a label has one place");
        *place = Some(self.instructions.len());
        self
    }

    /// Jumps to the label.
    pub fn jump(&mut self, to: Label) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        self.push(0x05, 0, 0, 0, 0)
    }

    /// Jumps to the label when `register CONDITION operand`.
    pub fn jump_if(
        &mut self,
        condition: Condition,
        register: Register,
        operand: Operand,
        to: Label,
    ) -> &mut Self {
        self.jumps.push((self.instructions.len(), to));
        match operand {
            Operand::Value(value) => self.push(0x05 | condition as u8, register as u8, 0, 0, value),
            Operand::Of(source) => self.push(0x0d | condition as u8, register as u8, source as u8, 0, 0),
        }
    }

    /// The encoded code, eight bytes per instruction.
    ///
    /// # Panics
    /// When the target of a jump has no position, or is beyond the range of a jump.
    pub(super) fn finish(&self) -> Vec<u8> {
        let mut instructions = self.instructions.clone();
        for (at, label) in &self.jumps {
            let place = self.places[label.0].expect("a label that is jumped to has a place");
            let distance = place.wrapping_sub(*at + 1).cast_signed();
            instructions[*at].2 = i16::try_from(distance).expect("a jump goes 32,767 instructions at most");
        }
        for (at, map) in &self.maps {
            instructions[*at].3 = map.as_raw_fd();
        }
        instructions.into_iter().flat_map(bytes).collect()
    }
}

fn bytes((code, registers, offset, value): Instruction) -> [u8; 8] {
    // On big-endian machines the two registers are swapped.
    let registers = if cfg!(target_endian = "big") { registers.rotate_left(4) } else { registers };
    let mut bytes = [code, registers, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..8].copy_from_slice(&value.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn instructions_have_the_bytes_that_the_standard_names() {
        let mut code = Code::new();
        code.compute(Operation::Add, Register::R2, Operand::Of(Register::R3))
            .load(Width::Word, Register::R1, Register::R6, 76)
            .store(Width::Byte, Register::R10, -8, Operand::Value(5))
            .exit_with(-1);
        let words: Vec<[u8; 8]> = code.finish().chunks(8).map(|chunk| chunk.try_into().unwrap()).collect();
        assert_eq!(
            words,
            [
                [0x0f, 0x32, 0, 0, 0, 0, 0, 0],
                [0x61, 0x61, 76, 0, 0, 0, 0, 0],
                [0x72, 0x0a, 0xf8, 0xff, 5, 0, 0, 0],
                [0xb7, 0x00, 0, 0, 0xff, 0xff, 0xff, 0xff],
                [0x95, 0, 0, 0, 0, 0, 0, 0],
            ]
        );
    }

    #[test]
    fn jump_goes_to_its_label_forwards_and_back() {
        let mut code = Code::new();
        let (back, forth) = (code.label(), code.label());
        code.place(back)
            .jump_if(Condition::Equal, Register::R1, Operand::Value(0), forth)
            .jump(back)
            .place(forth)
            .exit_with(0);
        let bytes = code.finish();
        let distance = |at: usize| i16::from_ne_bytes([bytes[at * 8 + 2], bytes[at * 8 + 3]]);
        assert_eq!((distance(0), distance(1)), (1, -2));
    }

    #[test]
    #[should_panic(expected = "has a place")]
    fn label_without_a_position_panics() {
        let mut code = Code::new();
        let nowhere = code.label();
        code.jump(nowhere).finish();
    }
}
