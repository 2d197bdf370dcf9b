//! Frames that the kernel generates and sends (`BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18 and later): an
//! XDP program receives a frame repeatedly, may change it, and returns the action for it. Frames go directly to the driver.
use std::io;
use std::os::fd::AsRawFd as _;

use super::call::{Command, call};
use super::program::Program;

/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE_FRAMES: u32 = 1 << 1;

/// The part of `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct RunAttributes {
    program: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    padding: u32,
}

/// `struct xdp_md`: the context of a frame.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    receive_queue: u32,
    egress_interface: u32,
}

/// Parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// The apparent receive interface of the frames, by which they leave when the program returns `XDP_TX`.
    pub interface: u32,
    /// Number of frames.
    pub count: u32,
    /// Frames per batch, 1 to 256; 0 is the kernel's default of 64. The kernel may be interrupted between batches.
    pub batch: u32,
}

/// Runs an XDP program on `count` frames, each initially a copy of `frame` (the kernel reuses pages, so bytes that the program wrote may
/// appear in a later frame). Returns after all frames, or with `EINTR` after a signal.
///
/// # Errors
/// `EPERM` without CAP_NET_ADMIN and CAP_BPF, `EINVAL` for a frame without room for an Ethernet header or beyond a page, a
/// batch of more than 256 or an old kernel, `ENODEV` without the interface, `EINTR`.
pub fn run_live(program: &Program, frame: &[u8], live: Live) -> io::Result<()> {
    let context =
        Context { data_end: frame.len() as u32, ingress_interface: live.interface, ..Context::default() };
    let mut attributes = RunAttributes {
        program: program.descriptor().as_raw_fd() as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat: live.count,
        context_size_in: size_of::<Context>() as u32,
        context_in: (&raw const context) as u64,
        flags: LIVE_FRAMES,
        batch_size: live.batch,
        ..RunAttributes::default()
    };
    // SAFETY: the structure is that of the command; frame and context are live, only read, and of the lengths that it gives.
    unsafe { call(Command::ProgramRun, &mut attributes) }?;
    Ok(())
}
