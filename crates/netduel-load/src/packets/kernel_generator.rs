//! Packets generated in the kernel (BPF test run with live frames): an XDP program numbers each frame and transmits it. It cannot
//! be paced; a plan with a rate is rejected before.
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use netduel_model::packet_path::{PacketReport, QueuePackets};
use netduel_sys::bpf::{
    ArrayMap, Code, Condition, Helper, Live, LoadError as Unloaded, Operand, Operation, Program, ProgramKind,
    Register, Width, run_live,
};
use netduel_sys::clock;

use super::bypass_path::BypassPath;
use super::frame::Template;
use super::programs::{XDP_DROP, XDP_TX};
use crate::datagram;
use crate::error::LoadError;
use crate::spawn;
use crate::worker::Worker;

/// Frames per batch, after which the kernel may schedule another task.
const BATCH: u32 = 64;
/// Frames of the first call, and the target duration of later calls: starting and ending one takes milliseconds.
const FIRST: u32 = 20_000;
const CALL_NS: u64 = 500_000_000;
/// How often progress is read, nanoseconds.
const READ_NS: u64 = 10_000_000;
/// Stack offset of the map key.
const KEY_AT: i16 = -4;

/// Sends one flow's frames until `end_ns`.
pub(crate) fn generate(
    worker: &mut Worker,
    path: &BypassPath,
    template: &Template,
    magic: u64,
    size: usize,
    end_ns: u64,
) -> Result<PacketReport, LoadError> {
    let mut payload = vec![0; size];
    datagram::write_number(&mut payload, magic, 0);
    let mut frame = vec![0; template.bytes().len()];
    template.write(&payload, &mut frame);
    let payload_at = template.payload_at();
    let failed = |doing, error| LoadError::bypass(doing, &path.interface, error);
    let next = ArrayMap::new("netduel_next", 1).map_err(|error| failed("make a map", error))?;
    let program = program(&next, payload_at).map_err(|error| failed("load an XDP program", error.source))?;
    let stream = worker.stream;
    let control = std::sync::Arc::clone(&worker.control);
    let is_done_generating = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        // This thread generates the frames, and its CPU time is in the report. Another one reads the progress.
        let progress = spawn::builder("load-progress").spawn_scoped(scope, || {
            let mut counted = 0;
            loop {
                let is_over = is_done_generating.load(Acquire);
                let now = clock::monotonic_ns();
                let sent = next.read(0).unwrap_or(counted);
                if sent > counted {
                    control.sent[stream].add((sent - counted) * size as u64, sent - counted, now);
                    counted = sent;
                }
                if is_over {
                    break;
                }
                clock::sleep_until(now + READ_NS);
            }
        });
        let progress = progress.map_err(|source| LoadError::Thread {
            operation: "start the thread that reads the progress".to_owned(),
            source,
        })?;
        let result = run(&program, &frame, path.index, end_ns, &control);
        is_done_generating.store(true, Release);
        progress.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        result.map_err(|error| failed("run frames in the kernel", error))
    });
    let packets = next.read(0).unwrap_or(0);
    result?;
    Ok(PacketReport {
        interface: path.interface.clone(),
        queues: vec![QueuePackets { queue: None, core: worker.pinned, packets }],
        ..PacketReport::default()
    })
}

fn run(
    program: &Program,
    frame: &[u8],
    interface: u32,
    end_ns: u64,
    control: &crate::control::Control,
) -> io::Result<()> {
    let mut count = FIRST;
    while control.is_running() {
        let started = clock::monotonic_ns();
        if started >= end_ns {
            break;
        }
        match run_live(program, frame, Live { interface, count, batch: BATCH }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => other?,
        }
        let took = (clock::monotonic_ns() - started).max(1);
        let left = end_ns.saturating_sub(clock::monotonic_ns()).min(CALL_NS);
        count = u32::try_from(u128::from(count) * u128::from(left) / u128::from(took))
            .unwrap_or(u32::MAX)
            .max(BATCH);
    }
    Ok(())
}

/// The program: numbers the frame, and transmits it on the interface.
fn program(next: &ArrayMap, payload_at: usize) -> Result<Program, Unloaded> {
    use Register::{R0, R1, R2, R3, R6, R7, R8, R10};
    // A head of 62 bytes at most.
    let number_at = i16::try_from(payload_at).unwrap_or(i16::MAX - 16) + 8;
    let mut code = Code::new();
    let drop = code.label();
    code.set(R6, Operand::Of(R1))
        .load(Width::Word, R7, R1, 0)
        .load(Width::Word, R8, R1, 4)
        .set(R2, Operand::Of(R7))
        .compute(Operation::Add, R2, Operand::Value(i32::from(number_at) + 8))
        .jump_if(Condition::Greater, R2, Operand::Of(R8), drop)
        .store(Width::Word, R10, KEY_AT, Operand::Value(0))
        .load_map(R1, next)
        .set(R2, Operand::Of(R10))
        .compute(Operation::Add, R2, Operand::Value(i32::from(KEY_AT)))
        .call(Helper::MapLookup)
        .jump_if(Condition::Equal, R0, Operand::Value(0), drop)
        .load(Width::Double, R3, R0, 0)
        .store(Width::Double, R7, number_at, Operand::Of(R3))
        .compute(Operation::Add, R3, Operand::Value(1))
        .store(Width::Double, R0, 0, Operand::Of(R3))
        .exit_with(XDP_TX)
        .place(drop)
        .exit_with(XDP_DROP);
    Program::load(ProgramKind::Xdp, "netduel_make", &code)
}
