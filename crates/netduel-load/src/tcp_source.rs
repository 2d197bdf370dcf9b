//! How a sender's bytes get into the kernel. The `lean` engine hands over pages (vmsplice, splice), `copy` writes, `zerocopy`
//! asks for no copy and counts how often there was one.
use std::io;
use std::net::TcpStream;

use netduel_model::sample::ZeroCopyReport;
use netduel_model::workload::TcpEngine;
use netduel_sys::page_pipe::PagePipe;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, pattern, zerocopy};

use crate::jobs::Worker;
use crate::tcp_stream::{CALL_LIMIT, TcpSettings, run};

/// How long a sender waits after its end until the kernel has told of every send, nanoseconds. All was acknowledged before, so
/// this is the time of a message from our own kernel.
const SETTLE_NS: u64 = 1_000_000_000;

/// What is sent, and how.
pub(crate) enum Source {
    Pages(PagePipe),
    Buffer(Vec<u8>),
    ZeroCopy(zerocopy::Sender),
}

impl Source {
    /// That of an engine, in packets for this connection and others like it.
    ///
    /// # Errors
    /// What the named call said.
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
        }
    }

    /// Hands up to `length` bytes to the kernel.
    #[inline]
    pub(crate) fn push(&mut self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        match self {
            Self::Pages(pipe) => pipe.send(stream, length),
            Self::Buffer(buffer) => socket::send(stream, &buffer[..length.min(buffer.len())], Waiting::Block),
            Self::ZeroCopy(sender) => sender.send(stream, length, CALL_LIMIT),
        }
    }

    /// The call that errors are counted under.
    pub(crate) fn call(&self) -> &'static str {
        match self {
            Self::Pages(_) => "splice",
            Self::Buffer(_) => "send",
            Self::ZeroCopy(_) => "send MSG_ZEROCOPY",
        }
    }

    /// The peer has all: waits until the kernel has told of every send, and reports.
    pub(crate) fn settle(self, worker: &mut Worker, stream: &TcpStream) {
        let counts = match self {
            Self::Pages(_) | Self::Buffer(_) => return,
            Self::ZeroCopy(mut sender) => {
                let until = clock::monotonic_ns() + SETTLE_NS;
                loop {
                    match sender.settle(stream, CALL_LIMIT) {
                        Ok(false) if !worker.control.is_cut() && clock::monotonic_ns() < until => {}
                        Ok(_) => break,
                        Err(error) => {
                            worker.tally.count("recvmsg MSG_ERRQUEUE", &error);
                            break;
                        }
                    }
                }
                sender.counts()
            }
        };
        worker.zero_copy = Some(ZeroCopyReport {
            sends: counts.sends,
            completions: counts.completions,
            copied: counts.copied,
            put_off: counts.put_off,
        });
    }
}
