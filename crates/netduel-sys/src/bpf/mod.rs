//! Programs in the kernel (bpf(2)): written as instructions, checked by the kernel's verifier, attached by a link. Nothing is
//! pinned: maps, programs and links end with their last descriptor. No compiler and no object file is needed.
mod call;
mod instruction;
mod link;
mod live;
mod map;
mod program;

pub use instruction::{Code, Condition, Helper, Label, Operand, Operation, Register, Width};
pub use link::{Attach, Link};
pub use live::{Live, run_live};
pub use map::{ArrayMap, HashMap, Map, PerCoreArray, SocketMap};
pub use program::{LoadError, Program, ProgramKind};

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether programs may be loaded here; prints the reason when not.
    fn able() -> bool {
        match ArrayMap::new("able", 1) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                netduel_test_support::skip("bpf(2) needs root");
                false
            }
            other => other.is_ok(),
        }
    }

    #[test]
    fn map_returns_written_values_and_rejects_indices_beyond_its_end() {
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
    fn rejected_program_has_the_log_of_the_verifier() {
        if !able() {
            return;
        }
        let mut code = Code::new();
        // R3 was never written.
        code.set(Register::R0, Operand::Of(Register::R3)).exit();
        let error = Program::load(ProgramKind::Xdp, "refused", &code).unwrap_err();
        assert!(error.to_string().contains("R3 !read_ok"), "{error}");
    }

    #[test]
    fn attaching_to_a_missing_interface_fails() {
        if !able() {
            return;
        }
        let mut code = Code::new();
        code.exit_with(0);
        let program = Program::load(ProgramKind::SchedCls, "nothing", &code).unwrap();
        let error = Link::attach(&program, Attach::TcxIngress, i32::MAX as u32).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{error}");
    }
}
