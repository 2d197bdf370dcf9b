//! Output of a standing server: its pairing strings, and a line for each test, as text or as lines of JSON. A thread of its own prints the
//! lines, so that a reader that does not read them, for example a stopped terminal, delays no client. Lines that are not printed are
//! counted in one that is.
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use netduel_model::sample::EndReport;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::Workload;
use netduel_report::json::serve::{Moved, ServerEvent, ServerEventKind, ServerPairing};
use netduel_report::words;
use netduel_sys::clock;

use super::print_limit::{PrintLimit, Unprinted};
use crate::console::{print, print_json_line};
use crate::exit::{Failure, no_thread};
use crate::program;
use netduel_model::pairing::Pairing;

/// Maximum number of lines that wait for the reader of the output.
const WAITING_MAX: usize = 1024;
/// How often the numbers of lines that were not printed are printed, nanoseconds.
const COUNTED_EVERY_NS: u64 = 60_000_000_000;
/// How long an ending server waits for the reader of its output.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

fn now_unix_ms() -> u64 {
    clock::realtime_ns() / 1_000_000
}

/// The output. A closed reader does not end the server.
pub struct Log {
    json: bool,
    shared: Arc<Shared>,
    /// To the thread that prints; `None` wakes it.
    lines: SyncSender<Option<Line>>,
    /// Disconnected when that thread has ended.
    ended: Mutex<Receiver<()>>,
}

/// State of the log and its thread.
#[derive(Default)]
struct Shared {
    counts: Mutex<Counts>,
    is_closing: AtomicBool,
}

impl Shared {
    /// No code panics while it holds the lock, so a poisoned one still guards a whole value.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The limits of failures and of refusals: a client whose tests fail, or that is refused, without end does not fill the log.
#[derive(Default)]
struct Counts {
    failures: PrintLimit,
    refusals: PrintLimit,
    unprinted: Unprinted,
}

/// What a line is about.
#[derive(Debug, Clone, Copy)]
enum About {
    Test,
    Failure,
    Refusal,
}

impl Counts {
    fn admits(&mut self, about: About, now_ns: u64) -> bool {
        match about {
            About::Test => true,
            About::Failure => self.failures.admits(now_ns),
            About::Refusal => self.refusals.admits(now_ns),
        }
    }

    fn leave_out(&mut self, about: About) {
        let count = match about {
            About::Test => &mut self.unprinted.tests,
            About::Failure => &mut self.unprinted.failed,
            About::Refusal => &mut self.unprinted.refused,
        };
        *count = count.saturating_add(1);
    }
}

/// A line with the time of its event.
enum Line {
    /// For people.
    Text(String),
    /// For programs.
    Event(Box<ServerEvent>),
}

impl Log {
    /// As JSON or as text.
    pub fn start(json: bool) -> Result<Self, Failure> {
        Self::printing(json, print_line).map_err(|error| no_thread("print the log", error))
    }

    /// A log whose thread passes each line to `print`.
    fn printing(json: bool, print: impl FnMut(Line) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let (thread, ended) = channel::<()>();
        let own = Arc::clone(&shared);
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            print_all(&waiting, json, &own, print);
            drop(thread);
        })?;
        Ok(Self { json, shared, lines, ended: Mutex::new(ended) })
    }

    /// Prints that the server is ready.
    #[expect(clippy::unused_self, reason = "a log is what prints")]
    pub fn ready(
        &self,
        address: SocketAddr,
        pairings: &[Pairing],
        warning: Option<String>,
    ) -> Result<(), Failure> {
        let pairing = |pairing: &Pairing| ServerPairing {
            host: pairing.server.host().to_owned(),
            port: pairing.server.port(),
            string: pairing.to_string(),
        };
        let pairings = pairings.iter().map(pairing).collect();
        let ready = ServerEventKind::Ready { address, pairings, warning };
        print_json_line(&ServerEvent::of(ready, &program::origin()))
    }

    /// Prints a finished test, with the number of concurrent tests.
    pub fn tested(&self, peer: SocketAddr, workload: &Workload, report: &EndReport, others: u32) {
        let moved = |flow: &Option<netduel_model::sample::Flow>| {
            flow.as_ref().map(|flow| {
                let span = flow.last_ns.unwrap_or(0).saturating_sub(flow.first_ns.unwrap_or(0)) as f64 / 1e9;
                (flow.bytes, if span > 0.0 { flow.bytes as f64 * 8.0 / span } else { 0.0 })
            })
        };
        let (received, sent) = (moved(&report.received), moved(&report.sent));
        if self.json {
            let ways = [received, sent].map(|flow| {
                flow.map(|(bytes, rate)| Moved { bytes, rate_bps: (rate > 0.0).then_some(rate) })
            });
            self.pass_on(About::Test, || event(ServerEventKind::test(peer, workload, ways, others)));
            return;
        }
        let mut text = format!("{peer}  {}", words::workload(workload));
        for (word, flow) in [("received", received), ("sent", sent)] {
            if let Some((bytes, rate)) = flow.filter(|(bytes, _)| *bytes > 0) {
                let _ = write!(
                    text,
                    "; {word} {} at {} over the whole test",
                    human_si(bytes as f64, "B"),
                    human_bit_rate(rate)
                );
            }
        }
        if others > 0 {
            let _ = write!(text, "; {others} other tests at the same time");
        }
        self.pass_on(About::Test, || line(&text));
    }

    /// Prints a test that started and has no result.
    pub fn failed(&self, peer: SocketAddr, workload: &Workload, why: &str) {
        self.pass_on(About::Failure, || {
            if self.json {
                return event(ServerEventKind::failed(peer, workload, why));
            }
            line(&format!("{peer}  {}; no result: {}", words::workload(workload), words::plain(why)))
        });
    }

    /// Prints a rejected client or a refused request.
    pub fn refused(&self, peer: SocketAddr, why: &str) {
        self.pass_on(About::Refusal, || {
            if self.json {
                return event(ServerEventKind::refused(peer, why));
            }
            line(&format!("{peer}  refused: {}", words::plain(why)))
        });
    }

    /// Prints the lines that wait, and how many were not printed. Returns also when their reader does not read, after some seconds.
    pub fn close(&self) {
        self.shared.is_closing.store(true, Ordering::SeqCst);
        // Without room the thread is awake.
        let _ = self.lines.try_send(None);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(CLOSE_LIMIT);
    }

    /// Passes a line to the thread that prints. A line beyond its limit, or without room, is counted.
    fn pass_on(&self, about: About, line: impl FnOnce() -> Line) {
        let is_admitted = self.shared.counts().admits(about, clock::monotonic_ns());
        if is_admitted && self.lines.try_send(Some(line())).is_ok() {
            return;
        }
        self.shared.counts().leave_out(about);
    }
}

/// Prints the lines until the log is closed, and once a minute and at the end how many were not printed.
fn print_all(lines: &Receiver<Option<Line>>, json: bool, shared: &Shared, mut print: impl FnMut(Line)) {
    let mut due_ns = clock::monotonic_ns().saturating_add(COUNTED_EVERY_NS);
    loop {
        let is_closing = shared.is_closing.load(Ordering::SeqCst);
        let left_ns = if is_closing { 0 } else { due_ns.saturating_sub(clock::monotonic_ns()) };
        let is_over = match lines.recv_timeout(Duration::from_nanos(left_ns)) {
            Ok(Some(line)) => {
                print(line);
                false
            }
            Ok(None) => false,
            Err(RecvTimeoutError::Timeout) => is_closing,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if is_over || clock::monotonic_ns() >= due_ns {
            let unprinted = std::mem::take(&mut shared.counts().unprinted);
            if let Some(line) = line_of(unprinted, json) {
                print(line);
            }
            due_ns = clock::monotonic_ns().saturating_add(COUNTED_EVERY_NS);
        }
        if is_over {
            return;
        }
    }
}

/// The line with the numbers of those that were not printed, if there are any.
fn line_of(unprinted: Unprinted, json: bool) -> Option<Line> {
    let words = unprinted.words()?;
    if !json {
        return Some(line(&words));
    }
    let Unprinted { tests, failed, refused } = unprinted;
    Some(event(ServerEventKind::NotPrinted { tests, failed, refused }))
}

/// A line for people, with the time.
fn line(text: &str) -> Line {
    Line::Text(format!("{}  {text}\n", words::date_and_time(now_unix_ms())))
}

/// A line of JSON.
fn event(event: ServerEventKind) -> Line {
    Line::Event(Box::new(ServerEvent::of(event, &program::origin())))
}

/// Prints a line. A reader that has gone does not end the server.
fn print_line(line: Line) {
    drop(match line {
        Line::Text(text) => print(&text),
        Line::Event(event) => print_json_line(&*event),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of lines about a client, and the sums of those that were not printed.
    fn counted(lines: &Receiver<Line>) -> (u64, Unprinted) {
        let (mut printed, mut unprinted) = (0, Unprinted::default());
        for line in lines {
            match line {
                Line::Event(event) => match event.event {
                    ServerEventKind::NotPrinted { tests, failed, refused } => {
                        unprinted.tests += tests;
                        unprinted.failed += failed;
                        unprinted.refused += refused;
                    }
                    _ => printed += 1,
                },
                Line::Text(_) => printed += 1,
            }
        }
        (printed, unprinted)
    }

    #[test]
    fn refusals_and_failures_are_limited_apart() {
        let (printed, lines) = channel();
        let log = Log::printing(true, move |line| drop(printed.send(line))).expect("a thread");
        for about in [About::Failure, About::Refusal] {
            (0..1000).for_each(|_| log.pass_on(about, || line("no")));
        }
        log.close();
        let (printed, unprinted) = counted(&lines);
        assert!(unprinted.failed > 0 && unprinted.refused > 0 && printed >= 60, "{printed} {unprinted:?}");
        assert_eq!(printed + unprinted.failed + unprinted.refused, 2000);
    }

    #[test]
    fn reader_that_does_not_read_delays_no_client() {
        let (release, gate) = channel::<()>();
        let (printed, lines) = channel();
        let log = Log::printing(true, move |line| {
            // Disconnected when the reader goes on.
            let _ = gate.recv();
            drop(printed.send(line));
        });
        let log = log.expect("a thread");
        let tests = 3 * WAITING_MAX;
        (0..tests).for_each(|_| log.pass_on(About::Test, || line("tested")));
        drop(release);
        log.close();
        let (printed, unprinted) = counted(&lines);
        assert!(printed >= WAITING_MAX as u64 && unprinted.tests > 0, "{printed} {unprinted:?}");
        assert_eq!(printed + unprinted.tests, tests as u64);
    }

    #[test]
    fn line_for_people_has_the_number_of_those_that_were_not_printed() {
        let (printed, lines) = channel();
        let log = Log::printing(false, move |line| drop(printed.send(line))).expect("a thread");
        (0..1000).for_each(|_| log.pass_on(About::Failure, || line("no")));
        log.close();
        let last = lines.iter().last();
        let Some(Line::Text(text)) = last else { panic!("no text") };
        assert!(text.ends_with(" further failures were not printed\n"), "{text}");
    }
}
