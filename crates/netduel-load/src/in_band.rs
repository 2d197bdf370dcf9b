//! In-band round trips: request and response within a connection that carries load. They show how long an application waits for the
//! next object on a busy connection.
//!
//! Both directions of the connection consist of frames with a head of 8 bytes. The end that makes load sends filler frames; the
//! client inserts a request between two of them, and the server a response between two of its own (or at once, when it makes
//! no load). TCP keeps order, so the k-th response is to the k-th request, and requests leave on a schedule, so their times
//! are known without being sent. Nothing has priority.
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use netduel_stats::histogram::Histogram;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, pattern, tcp};

use crate::counted::Counted;
use crate::pacing::Schedule;
use crate::worker::{SLEEP_MAX, Worker};

/// Bytes of a frame's head: its kind and the length of its payload.
const HEAD: usize = 8;
/// Payload of a filler frame, bytes: a request waits for at most one frame before the kernel has it.
const FILLER: usize = 4 * 1024;
/// Unsent bytes in the kernel, at most. Without a limit there are megabytes, and a request would wait behind all of them in
/// the sender's own host. With 16 KiB this part of the wait is 1.3 ms at 100 Mbit/s.
const UNSENT_BYTES: u32 = 16 * 1024;
/// Bytes received in one call.
const READ_BYTES: usize = 128 * 1024;

/// Kinds of frames.
const KIND_FILLER: u32 = 0x4644_4c4e;
const KIND_REQUEST: u32 = 0x5144_4c4e;
const KIND_RESPONSE: u32 = 0x4144_4c4e;

/// The loaded part of the trial, for both threads of an end. Times are nanoseconds of the monotonic clock.
#[derive(Debug, Clone)]
pub(crate) struct Phase {
    /// When the load begins and ends.
    pub load: std::ops::Range<u64>,
    /// Whether this end makes load.
    pub sends: bool,
    /// The client's schedule of requests; the server has none.
    pub requests: Option<Schedule>,
    /// Requests that begin in it count.
    pub steady: std::ops::Range<u64>,
}

/// Shared by the two threads of one end.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Requests that were received, and whose response the sending thread sends.
    pending_responses: AtomicU64,
    /// Requests sent.
    requests_sent: AtomicU64,
}

fn head(kind: u32, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&kind.to_le_bytes());
    head[4..].copy_from_slice(&(length as u32).to_le_bytes());
    head
}

/// The sending thread: load and responses, and at the client requests. An end without load and without requests has none.
pub(crate) fn send(worker: &mut Worker, stream: &TcpStream, phase: &Phase, shared: &Shared) {
    worker.errors.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(stream, SLEEP_MAX));
    worker.errors.count_failure("setsockopt TCP_NOTSENT_LOWAT", tcp::limit_unsent(stream, UNSENT_BYTES));
    let mut filler = vec![0; HEAD + FILLER];
    pattern::fill(&mut filler);
    filler[..HEAD].copy_from_slice(&head(KIND_FILLER, FILLER));
    let (mut responses_sent, mut requests_sent) = (0, 0);
    while worker.control.is_running() && clock::monotonic_ns() < phase.load.end {
        let mut sent = true;
        while sent && responses_sent < shared.pending_responses.load(SeqCst) {
            sent = send_frame(worker, stream, &head(KIND_RESPONSE, 0), phase.sends);
            responses_sent += 1;
        }
        // The load may end after the check of the loop: a request that is due then is not part of it.
        if let Some(requests) = phase.requests
            && requests.due_ns(requests_sent) < phase.load.end
            && clock::monotonic_ns() >= requests.due_ns(requests_sent)
        {
            sent = sent && send_frame(worker, stream, &head(KIND_REQUEST, 0), phase.sends);
            requests_sent += 1;
            shared.requests_sent.store(requests_sent, Relaxed);
        }
        if phase.sends {
            sent = sent && send_frame(worker, stream, &filler, true);
        } else if let Some(requests) = phase.requests {
            sent = sent && worker.sleep_until(requests.due_ns(requests_sent).min(phase.load.end));
        }
        if !sent {
            break;
        }
    }
    // The peer reads to the end; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(stream);
}

/// Sends a whole frame; false when the connection is broken or the end aborted. `counts`: it counts as load.
fn send_frame(worker: &mut Worker, stream: &TcpStream, frame: &[u8], counts: bool) -> bool {
    let mut taken = 0;
    while taken < frame.len() {
        match socket::send(stream, &frame[taken..], Waiting::Block) {
            Ok(count) => {
                if counts {
                    worker.sent().add(count as u64, 0, clock::monotonic_ns());
                }
                taken += count;
            }
            Err(error) if socket::is_transient(&error) => {
                if worker.control.is_aborted() {
                    return false;
                }
            }
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("send", &error);
                }
                return false;
            }
        }
    }
    true
}

/// Splits a byte stream into frames.
#[derive(Debug, Default)]
pub struct FrameParser {
    head: [u8; HEAD],
    filled: usize,
    /// Bytes of the current filler that are to come.
    rest: usize,
}

/// A head that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidFrame;

impl FrameParser {
    /// Parses the next bytes, and calls `message` with the kind of each request and response.
    ///
    /// # Errors
    /// [`InvalidFrame`] at the first head that is none of a peer.
    pub fn parse(&mut self, mut bytes: &[u8], mut message: impl FnMut(u32)) -> Result<(), InvalidFrame> {
        while !bytes.is_empty() {
            let passed = self.rest.min(bytes.len());
            self.rest -= passed;
            bytes = &bytes[passed..];
            let part = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + part].copy_from_slice(&bytes[..part]);
            self.filled += part;
            bytes = &bytes[part..];
            if self.filled < HEAD {
                continue;
            }
            self.filled = 0;
            let (kind, length) = self.head.split_at(4);
            let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
            match (word(kind), word(length) as usize) {
                (KIND_FILLER, length) if length <= FILLER => self.rest = length,
                (kind @ (KIND_REQUEST | KIND_RESPONSE), 0) => message(kind),
                _ => return Err(InvalidFrame),
            }
        }
        Ok(())
    }
}

/// The receiving thread: reads to the end of the stream.
pub(crate) fn receive(worker: &mut Worker, stream: &TcpStream, phase: &Phase, shared: &Shared) -> Counted {
    worker.errors.count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(stream, SLEEP_MAX));
    let mut buffer = vec![0; READ_BYTES];
    let mut frames = FrameParser::default();
    let mut histogram = Histogram::new();
    let mut responses = 0;
    loop {
        let count = match socket::receive(stream, &mut buffer, Waiting::Block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if socket::is_transient(&error) => {
                if worker.control.is_aborted() {
                    break;
                }
                continue;
            }
            Err(error) => {
                if !worker.control.is_aborted() {
                    worker.errors.count("recv", &error);
                }
                break;
            }
        };
        let now = clock::monotonic_ns();
        worker.received().add(count as u64, 0, now);
        let mut pending_responses = 0;
        let taken = frames.parse(&buffer[..count], |kind| match phase.requests {
            Some(requests) if kind == KIND_RESPONSE => {
                let due = requests.due_ns(responses);
                if phase.steady.contains(&due) {
                    histogram.record(now.saturating_sub(due));
                }
                responses += 1;
            }
            _ => pending_responses += 1,
        });
        if taken.is_err() {
            worker.errors.count_event("recv", "invalid frame");
            worker.control.abort();
            break;
        }
        if !respond(worker, stream, phase, shared, pending_responses) {
            break;
        }
    }
    if phase.requests.is_some() {
        let requests = shared.requests_sent.load(Relaxed);
        return Counted::InBand { requests, histogram: histogram.to_record() };
    }
    if !phase.sends {
        // The client sees the end of the stream; ENOTCONN when it is gone.
        let _ = socket::shut_down_sending(stream);
    }
    Counted::Nothing
}

/// Responds to requests, or lets the sending thread do so; false when the connection is broken.
fn respond(
    worker: &mut Worker,
    stream: &TcpStream,
    phase: &Phase,
    shared: &Shared,
    pending_responses: u64,
) -> bool {
    if phase.sends {
        shared.pending_responses.fetch_add(pending_responses, SeqCst);
        return true;
    }
    (0..pending_responses).all(|_| send_frame(worker, stream, &head(KIND_RESPONSE, 0), false))
}

/// State for the two threads of an end.
pub(crate) fn shared() -> Arc<Shared> {
    Arc::new(Shared::default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datagram::CHANGED_BYTES;

    #[test]
    fn bytes_are_those_of_protocol_3() {
        let heads = [head(KIND_FILLER, FILLER), head(KIND_REQUEST, 0), head(KIND_RESPONSE, 0)];
        let expected = [*b"NLDF\0\x10\0\0", *b"NLDQ\0\0\0\0", *b"NLDA\0\0\0\0"];
        assert_eq!(heads, expected, "{CHANGED_BYTES}");
    }

    proptest! {
        #[test]
        fn frames_are_parsed_at_every_split_of_the_stream(
            kinds in prop::collection::vec((0..3usize, 0..=FILLER), 1..40),
            cuts in prop::collection::vec(1..5000usize, 1..50),
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (kind, length) in kinds {
                let kind = [KIND_FILLER, KIND_REQUEST, KIND_RESPONSE][kind];
                let length = if kind == KIND_FILLER { length } else { 0 };
                bytes.extend(head(kind, length));
                // Filler may hold anything, heads among it.
                bytes.extend(head(KIND_RESPONSE, 0).iter().cycle().take(length));
                expected.extend((kind != KIND_FILLER).then_some(kind));
            }
            let mut frames = FrameParser::default();
            let mut message = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                prop_assert!(frames.parse(now, |kind| message.push(kind)).is_ok());
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(message, expected);
        }
    }

    #[test]
    fn invalid_frames_are_rejected() {
        for bytes in [head(7, 0), head(KIND_FILLER, FILLER + 1), head(KIND_RESPONSE, 1)] {
            assert!(FrameParser::default().parse(&bytes, |_| ()).is_err());
        }
    }
}
