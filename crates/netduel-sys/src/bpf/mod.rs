//! Programs in the kernel (bpf(2)): written as instructions, checked by the kernel's verifier, attached by a link. Nothing is
//! pinned: maps, programs and links go with the last descriptor that holds them. No compiler and no object file is needed.
mod instruction;
mod link;
mod live;
mod map;
mod program;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use instruction::{Code, Condition, Helper, Label, Operand, Operation, Register, Width};
pub use link::{Attach, Link};
pub use live::{Live, run_live};
pub use map::{ArrayMap, HashMap, Map, PerCoreArray, SocketMap};
pub use program::{LoadError, Program, ProgramKind};

/// Commands of bpf(2) (include/uapi/linux/bpf.h, `enum bpf_cmd`).
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
enum Command {
    MapCreate = 0,
    MapLookup = 1,
    MapUpdate = 2,
    ProgramLoad = 5,
    ProgramRun = 10,
    LinkCreate = 28,
}

/// Length of a name in the kernel, with the closing zero (`BPF_OBJ_NAME_LEN`).
const NAME_LENGTH: usize = 16;

/// A name as the kernel takes it: cut to 15 bytes, and only letters, digits, `_` and `.`.
fn object_name(name: &str) -> [u8; NAME_LENGTH] {
    let mut bytes = [0; NAME_LENGTH];
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    for (to, from) in bytes[..NAME_LENGTH - 1].iter_mut().zip(name.bytes().filter(allowed)) {
        *to = from;
    }
    bytes
}

/// Calls bpf(2) with the attributes of a command. A structure shorter than the kernel's is filled up with zeros by it.
///
/// # Safety
/// `attributes` is the structure of `command`, and every address in it is valid for the kernel's reads and writes of the
/// length that it gives, until the call returns.
unsafe fn call<T>(command: Command, attributes: &mut T) -> io::Result<i32> {
    let pointer: *mut T = attributes;
    // SAFETY: `pointer` is to a live structure of the given size; the caller vouches for what it holds.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command as i32, pointer, size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Takes over the descriptor that a command has returned.
///
/// # Safety
/// `descriptor` is open, and nobody else owns it.
unsafe fn own(descriptor: i32) -> OwnedFd {
    // SAFETY: the caller vouches for it.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether programs may be loaded here; says aloud when not.
    fn able() -> bool {
        match ArrayMap::new("able", 1) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                assert!(
                    std::env::var_os("REQUIRE_ALL").is_none(),
                    "no right to bpf(2), and REQUIRE_ALL is set"
                );
                println!("skipped: bpf(2) needs root");
                false
            }
            other => other.is_ok(),
        }
    }

    #[test]
    fn a_map_holds_what_is_written_and_has_an_end() {
        if !able() {
            return;
        }
        let map = ArrayMap::new("numbers", 3).unwrap();
        map.write(2, u64::MAX - 1).unwrap();
        let all: Vec<u64> = (0..map.entries()).map(|index| map.read(index).unwrap()).collect();
        assert_eq!(all, [0, 0, u64::MAX - 1]);
        assert_eq!(map.read(3).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(map.write(3, 1).unwrap_err().raw_os_error(), Some(libc::E2BIG));
    }

    #[test]
    fn a_program_that_the_verifier_refuses_comes_back_with_its_words() {
        if !able() {
            return;
        }
        let mut code = Code::new();
        // Nothing was ever put into R3.
        code.set(Register::R0, Operand::Of(Register::R3)).exit();
        let error = Program::load(ProgramKind::Xdp, "refused", &code).unwrap_err();
        assert!(error.to_string().contains("R3 !read_ok"), "{error}");
    }

    #[test]
    fn a_program_is_not_attached_to_an_interface_that_is_not_there() {
        if !able() {
            return;
        }
        let mut code = Code::new();
        code.exit_with(0);
        let program = Program::load(ProgramKind::SchedCls, "nothing", &code).unwrap();
        let error = Link::attach(&program, Attach::TcxIngress, i32::MAX as u32).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }

    #[test]
    fn a_name_is_cut_to_what_the_kernel_takes() {
        assert_eq!(&object_name("net duel-fates of datagrams"), b"netduelfatesofd\0");
    }
}
