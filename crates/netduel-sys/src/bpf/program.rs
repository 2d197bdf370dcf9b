//! Loads a program. The verifier of the kernel checks it, and explains a rejection.
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::call::{Command, NAME_LENGTH, call, object_name, own};
use super::instruction::Code;

/// The licence of the programs. No helper in use requires GPL.
const LICENCE: &[u8] = b"Apache-2.0 OR MIT\0";
/// Size of the verifier's log; a longer log keeps its end (Linux 6.4 and later).
const LOG_LENGTH: usize = 64 * 1024;
/// `BPF_F_XDP_HAS_FRAGS`: the program accepts frames in several pages and sees the first. Without it an interface whose packets may be
/// longer than a page rejects the program. Since Linux 5.18.
const FRAGMENTS: u32 = 1 << 5;

/// The type of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum ProgramKind {
    /// Packets with the kernel's metadata (`BPF_PROG_TYPE_SCHED_CLS`), before or after the network stack.
    SchedCls = 3,
    /// Frames in the driver (`BPF_PROG_TYPE_XDP`).
    Xdp = 6,
}

/// The head of `union bpf_attr` for `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log_buffer: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_LENGTH],
}

/// The error of a program that was not loaded.
#[derive(Debug, thiserror::Error)]
#[error("load a program into the kernel (bpf(2); needs root, or CAP_BPF and CAP_NET_ADMIN): {source}{}", verifier_log(.log))]
pub struct LoadError {
    /// The kernel's error.
    pub source: io::Error,
    /// The verifier's log; empty when it did not run.
    pub log: String,
}

fn verifier_log(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; the verifier says:\n{log}") }
}

/// A program in the kernel. It exists as long as this or a link that runs it.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
    kind: ProgramKind,
}

impl Program {
    /// Loads `code`; the kernel checks it. `name` is shown by bpftool(8), at most 15 bytes.
    ///
    /// # Errors
    /// [`LoadError`], with the verifier's log when it rejected the code.
    ///
    /// # Panics
    /// When the code jumps to a label without a position.
    pub fn load(kind: ProgramKind, name: &str, code: &Code<'_>) -> Result<Self, LoadError> {
        let bytes = code.finish();
        if kind == ProgramKind::Xdp
            && let Ok(descriptor) = load((kind, FRAGMENTS), name, &bytes, &mut [])
        {
            return Ok(Self { descriptor, kind });
        }
        match load((kind, 0), name, &bytes, &mut []) {
            Ok(descriptor) => Ok(Self { descriptor, kind }),
            Err(source) if matches!(source.raw_os_error(), Some(libc::EINVAL | libc::EACCES)) => {
                // Again with a log, which is too expensive for each call.
                let mut log = vec![0; LOG_LENGTH];
                match load((kind, 0), name, &bytes, &mut log) {
                    Ok(descriptor) => Ok(Self { descriptor, kind }),
                    Err(source) => {
                        let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
                        let log = String::from_utf8_lossy(&log[..length]).trim_end().to_owned();
                        Err(LoadError { source, log })
                    }
                }
            }
            Err(source) => Err(LoadError { source, log: String::new() }),
        }
    }

    /// Its type.
    pub fn kind(&self) -> ProgramKind {
        self.kind
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

fn load((kind, flags): (ProgramKind, u32), name: &str, code: &[u8], log: &mut [u8]) -> io::Result<OwnedFd> {
    let mut attributes = LoadAttributes {
        program_type: kind as u32,
        instruction_count: (code.len() / 8) as u32,
        instructions: code.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        log_level: u32::from(!log.is_empty()),
        log_size: log.len() as u32,
        flags,
        log_buffer: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        name: object_name(name),
        ..LoadAttributes::default()
    };
    // SAFETY: the structure is that of the command; code and licence are read and the log is written within their lengths,
    // and all three are borrowed for the call.
    let descriptor = unsafe { call(Command::ProgramLoad, &mut attributes) }?;
    // SAFETY: the kernel has just opened it for us.
    Ok(unsafe { own(descriptor) })
}
