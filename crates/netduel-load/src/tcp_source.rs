//! How a sender passes bytes to the kernel. The engine `lean` passes pages (vmsplice, splice), `copy` writes, `zerocopy` requests
//! zero-copy sends and counts the copies, `io-uring` does so with several sends in flight.
use std::io;
use std::net::TcpStream;

use netduel_model::sample::ZeroCopyReport;
use netduel_model::workload::TcpEngine;
use netduel_sys::page_pipe::PagePipe;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, pattern, tcp_info, uring, zerocopy};

use crate::tcp_settings::TcpSettings;
use crate::worker::{SLEEP_MAX, Worker};

/// How long a sender waits after its end for the completions of all sends, nanoseconds. All data was acknowledged before, so these
/// are local notifications. The kernel frees the last packets of a stream in ksoftirqd, which waits its turn on a busy core.
const SETTLE_NS: u64 = 5_000_000_000;

/// Payload and headers of a packet before segmentation, bytes (`GSO_LEGACY_MAX_SIZE` in include/linux/netdevice.h), less what
/// TCP leaves for headers (`MAX_TCP_HEADER + 1`, include/net/tcp.h).
const OFFLOAD_MAX: usize = 65_536 - 321;

/// The source of an engine.
pub(crate) enum Source {
    Pages(PagePipe),
    Buffer(Vec<u8>),
    ZeroCopy(zerocopy::Sender),
    /// With the bytes per send.
    Ring(Box<uring::Sender>, usize),
}

impl Source {
    /// The source of an engine, with packets sized for this connection.
    ///
    /// # Errors
    /// The failed call and its error.
    pub(crate) fn new(settings: TcpSettings, stream: &TcpStream) -> Result<Self, (&'static str, io::Error)> {
        match settings.engine {
            TcpEngine::Lean => {
                PagePipe::new(settings.block, run(stream)).map(Self::Pages).map_err(|error| ("pipe", error))
            }
            TcpEngine::Copy => {
                let mut buffer = vec![0; settings.block];
                pattern::fill(&mut buffer);
                Ok(Self::Buffer(buffer))
            }
            TcpEngine::Zerocopy => zerocopy::Sender::new(stream, settings.block)
                .map(Self::ZeroCopy)
                .map_err(|error| ("setsockopt SO_ZEROCOPY", error)),
            TcpEngine::IoUring => uring::Sender::new(settings.block)
                .map(|sender| Self::Ring(Box::new(sender), settings.block))
                .map_err(|error| ("io_uring_setup", error)),
        }
    }

    /// Sends up to `length` bytes, at most one block, and returns how many the kernel took. io_uring keeps further sends in flight,
    /// at most `length` bytes in total, so the result may include bytes of earlier calls.
    #[inline]
    pub(crate) fn push(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        match self {
            Self::Pages(pipe) => pipe.send(stream, length),
            Self::Buffer(buffer) => socket::send(stream, &buffer[..length.min(buffer.len())], Waiting::Block),
            Self::ZeroCopy(sender) => sender.send(stream, length, SLEEP_MAX),
            Self::Ring(sender, block) => sender.send(stream, (*block, length), SLEEP_MAX),
        }
    }

    /// The call for the error counts.
    pub(crate) fn call(&self) -> &'static str {
        match self {
            Self::Pages(_) => "splice",
            Self::Buffer(_) => "send",
            Self::ZeroCopy(_) => "send MSG_ZEROCOPY",
            Self::Ring(..) => "io_uring send",
        }
    }

    /// Ends sending: no send stays in flight, and bytes taken meanwhile are counted.
    pub(crate) fn finish(&mut self, worker: &mut Worker) {
        let Self::Ring(sender, _) = self else { return };
        match sender.finish() {
            Ok(0) => {}
            Ok(count) => worker.sent().add(count as u64, 0, clock::monotonic_ns()),
            Err(error) => worker.errors.count("io_uring cancel", &error),
        }
    }

    /// After all data was acknowledged: waits for the completions of all sends, and reports the zero-copy sends.
    pub(crate) fn settle(self, worker: &mut Worker, stream: &TcpStream) -> Option<ZeroCopyReport> {
        let counts = match self {
            Self::Pages(_) | Self::Buffer(_) => return None,
            Self::ZeroCopy(mut sender) => {
                wait_for_completions(worker, "recvmsg MSG_ERRQUEUE", || sender.settle(stream, SLEEP_MAX));
                sender.counts()
            }
            Self::Ring(mut sender, _) => {
                wait_for_completions(worker, "io_uring_enter", || sender.settle(SLEEP_MAX));
                let Some(counts) = sender.counts() else {
                    let text =
                        "this kernel does not report copies (needs Linux 6.1.2), so sends were not zero-copy";
                    worker.errors.remark("io_uring SEND_ZC", text.to_owned());
                    return None;
                };
                counts
            }
        };
        Some(ZeroCopyReport {
            sends: counts.sends,
            completions: counts.completions,
            copied: counts.copied,
            deferred: counts.deferred,
        })
    }
}

/// Payload of the largest packet of whole segments, bytes: parts of this size leave without a small packet between two large ones.
fn run(stream: &TcpStream) -> usize {
    // Without a segment size the pages are full, which only costs CPU time.
    let segment = tcp_info::read(stream).ok().and_then(|info| info.snd_mss()).unwrap_or(1) as usize;
    (OFFLOAD_MAX / segment.max(1)).max(1) * segment
}

/// How often completions are polled after the end, nanoseconds.
const LOOK_NS: u64 = 500_000;

/// Repeats `settle` until it returns true, the end is aborted, or [`SETTLE_NS`] have passed. Errors are counted under `call`.
fn wait_for_completions(
    worker: &mut Worker,
    call: &'static str,
    mut settle: impl FnMut() -> io::Result<bool>,
) {
    let until = clock::monotonic_ns() + SETTLE_NS;
    loop {
        match settle() {
            // The connection is closed, so there is no event to wait for.
            Ok(false) if !worker.control.is_aborted() && clock::monotonic_ns() < until => {
                clock::sleep_until(clock::monotonic_ns() + LOOK_NS);
            }
            Ok(_) => return,
            Err(error) => return worker.errors.count(call, &error),
        }
    }
}
