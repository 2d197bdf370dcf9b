//! Frames that the kernel itself makes and sends (`BPF_PROG_TEST_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES`, Linux 5.18 and later): an
//! XDP program gets one frame again and again, may change it, and says what becomes of it. No generator is nearer to the wire.
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

/// `struct xdp_md`: what the program sees of a frame.
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

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Live {
    /// The interface that frames seem to come from, and leave by when the program returns `XDP_TX`.
    pub interface: u32,
    /// How many frames.
    pub count: u32,
    /// How many at a time, 1 to 256; 0 is the kernel's 64. The kernel may be interrupted between batches.
    pub batch: u32,
}

/// Runs an XDP program on `count` frames, each at first a copy of `frame` (the kernel uses its pages again, so what the program
/// wrote into one is found in a later one). Returns when all were run, or with `EINTR` when a signal came.
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
