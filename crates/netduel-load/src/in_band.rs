//! Round trips in the data of a connection that carries load: what somebody waits for who asks for the next thing on a
//! connection that is busy with the last one.
//!
//! Both directions of the connection are frames of 8 bytes and what follows them. The end that makes load sends filler; the
//! client puts a question between two fillers, and the server an answer between two of its own (or at once, where it makes
//! no load). TCP keeps order, so the k-th answer is to the k-th question, and questions leave on a schedule, so their times
//! are known without being sent. Nothing has priority.
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

use netduel_stats::histogram::Histogram;
use netduel_sys::socket::{self, Waiting};
use netduel_sys::{clock, pattern, tcp};

use crate::counted::Counted;
use crate::pacing::Schedule;
use crate::socket_error::is_transient;
use crate::worker::Worker;

/// Bytes of a frame's head: its kind and the length of what follows.
const HEAD: usize = 8;
/// Bytes of filler in a frame: a question waits for one frame at most before the kernel has it.
const FILLER: usize = 4 * 1024;
/// Bytes that the kernel keeps unsent at most. Without a limit it would take megabytes, and a question would wait behind all of
/// them in our own host; stacks that care for latency limit it so. With 16 KiB that part of the wait is 1.3 ms at 100 Mbit/s.
const UNSENT_BYTES: u32 = 16 * 1024;
/// Bytes taken in one call.
const READ_BYTES: usize = 128 * 1024;
/// Longest sleep in a call, so that an end can be cut.
const CALL_LIMIT: Duration = Duration::from_millis(20);

/// Kinds of frames.
const KIND_FILLER: u32 = 0x4644_4c4e;
const KIND_REQUEST: u32 = 0x5144_4c4e;
const KIND_RESPONSE: u32 = 0x4144_4c4e;

/// What both threads of an end need to know. Times are nanoseconds of the monotonic clock.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// When the load begins and ends.
    pub load: std::ops::Range<u64>,
    /// Whether this end makes load.
    pub sends: bool,
    /// The client's schedule of questions; the server has none.
    pub questions: Option<Schedule>,
    /// Questions that begin in it count.
    pub steady: std::ops::Range<u64>,
}

/// What the two threads of one end tell each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Questions that came and wait for an answer of the sending thread.
    owed: AtomicU64,
    /// Questions sent.
    asked: AtomicU64,
}

fn head(kind: u32, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&kind.to_le_bytes());
    head[4..].copy_from_slice(&(length as u32).to_le_bytes());
    head
}

/// The sending thread: load and answers, and at the client questions. An end without load and without questions has none.
pub(crate) fn send(worker: &mut Worker, stream: &TcpStream, part: &Part, shared: &Shared) {
    worker.errors.count_failure("setsockopt SO_SNDTIMEO", socket::limit_send_wait(stream, CALL_LIMIT));
    worker.errors.count_failure("setsockopt TCP_NOTSENT_LOWAT", tcp::limit_unsent(stream, UNSENT_BYTES));
    let mut filler = vec![0; HEAD + FILLER];
    pattern::fill(&mut filler);
    filler[..HEAD].copy_from_slice(&head(KIND_FILLER, FILLER));
    let (mut answered, mut asked) = (0, 0);
    while worker.control.is_running() && clock::monotonic_ns() < part.load.end {
        let mut sent = true;
        while sent && answered < shared.owed.load(SeqCst) {
            sent = send_frame(worker, stream, &head(KIND_RESPONSE, 0), part.sends);
            answered += 1;
        }
        if let Some(questions) = part.questions
            && clock::monotonic_ns() >= questions.due_ns(asked)
        {
            sent = sent && send_frame(worker, stream, &head(KIND_REQUEST, 0), part.sends);
            asked += 1;
            shared.asked.store(asked, Relaxed);
        }
        if part.sends {
            sent = sent && send_frame(worker, stream, &filler, true);
        } else if let Some(questions) = part.questions {
            sent = sent && worker.sleep_until(questions.due_ns(asked).min(part.load.end));
        }
        if !sent {
            break;
        }
    }
    // The peer reads to the end; ENOTCONN when it is gone.
    let _ = socket::shut_down_sending(stream);
}

/// Sends all of a frame; false when the connection is broken or the end is cut. It `counts` as load where this end makes some.
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
            Err(error) if is_transient(&error) => {
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

/// Cuts a stream of bytes into frames.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD],
    filled: usize,
    /// Bytes of the current filler that are to come.
    rest: usize,
}

/// A head that is none of ours.
struct Foreign;

impl Frames {
    /// Takes the next bytes, and calls `heard` with the kind of each question and answer.
    fn take(&mut self, mut bytes: &[u8], mut heard: impl FnMut(u32)) -> Result<(), Foreign> {
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
                (kind @ (KIND_REQUEST | KIND_RESPONSE), 0) => heard(kind),
                _ => return Err(Foreign),
            }
        }
        Ok(())
    }
}

/// The receiving thread: reads to the end of the stream.
pub(crate) fn receive(worker: &mut Worker, stream: &TcpStream, part: &Part, shared: &Shared) -> Counted {
    worker.errors.count_failure("setsockopt SO_RCVTIMEO", socket::limit_receive_wait(stream, CALL_LIMIT));
    let mut buffer = vec![0; READ_BYTES];
    let mut frames = Frames::default();
    let mut histogram = Histogram::new();
    let mut answers = 0;
    loop {
        let count = match socket::receive(stream, &mut buffer, Waiting::Block) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if is_transient(&error) => {
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
        let mut owed = 0;
        let taken = frames.take(&buffer[..count], |kind| match part.questions {
            Some(questions) if kind == KIND_RESPONSE => {
                let due = questions.due_ns(answers);
                if part.steady.contains(&due) {
                    histogram.record(now.saturating_sub(due));
                }
                answers += 1;
            }
            _ => owed += 1,
        });
        if taken.is_err() {
            worker.errors.count_event("recv", "bytes that are no frame of ours");
            worker.control.abort();
            break;
        }
        if !answer(worker, stream, part, shared, owed) {
            break;
        }
    }
    if part.questions.is_some() {
        let requests = shared.asked.load(Relaxed);
        return Counted::InBand { requests, histogram: histogram.to_record() };
    }
    if !part.sends {
        // Tells the client that no answer is to come; ENOTCONN when it is gone.
        let _ = socket::shut_down_sending(stream);
    }
    Counted::Nothing
}

/// Answers questions, or has the sending thread do it; false when the connection is broken.
fn answer(worker: &mut Worker, stream: &TcpStream, part: &Part, shared: &Shared, owed: u64) -> bool {
    if part.sends {
        shared.owed.fetch_add(owed, SeqCst);
        return true;
    }
    (0..owed).all(|_| send_frame(worker, stream, &head(KIND_RESPONSE, 0), false))
}

/// The two threads' common state.
pub(crate) fn shared() -> Arc<Shared> {
    Arc::new(Shared::default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_found_however_the_stream_is_cut(
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
            let mut frames = Frames::default();
            let mut heard = Vec::new();
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                prop_assert!(frames.take(now, |kind| heard.push(kind)).is_ok());
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(heard, expected);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [head(7, 0), head(KIND_FILLER, FILLER + 1), head(KIND_RESPONSE, 1)] {
            assert!(Frames::default().take(&bytes, |_| ()).is_err());
        }
    }
}
