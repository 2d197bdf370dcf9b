//! Output of a standing server: its pairing strings, and a line for each test, as text or as lines of JSON.
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use netduel_model::sample::EndReport;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::Workload;
use netduel_report::json::serve::{Moved, ServerEvent, ServerEventKind, ServerPairing};
use netduel_report::words;

use super::refusals::Refusals;
use crate::console::{print, print_json_line};
use crate::exit::Failure;
use crate::program;
use netduel_model::pairing::Pairing;

fn now_unix_ms() -> u64 {
    netduel_sys::clock::realtime_ns() / 1_000_000
}

/// The output. A closed reader does not end the server.
pub struct Log {
    json: bool,
    refusals: Mutex<Refusals>,
    failures: Mutex<Refusals>,
}

/// The lines of a client that is refused, or whose test fails: a client that does so without end does not fill the log.
fn limited(printed: &Mutex<Refusals>, why: &str) -> Vec<String> {
    // No code panics while it holds the lock, so a poisoned one still guards a whole value.
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    printed.take(why, netduel_sys::clock::monotonic_ns())
}

impl Log {
    /// As JSON or as text.
    pub fn new(json: bool) -> Self {
        Self { json, refusals: Mutex::default(), failures: Mutex::default() }
    }

    /// Prints that the server is ready.
    #[expect(clippy::unused_self, reason = "a log is what prints")]
    pub fn ready(&self, address: SocketAddr, pairings: &[Pairing]) -> Result<(), Failure> {
        let pairing = |pairing: &Pairing| ServerPairing {
            host: pairing.server.host().to_owned(),
            port: pairing.server.port(),
            string: pairing.to_string(),
        };
        let pairings = pairings.iter().map(pairing).collect();
        print_json_line(&ServerEvent::of(ServerEventKind::Ready { address, pairings }, &program::origin()))
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
            event(ServerEventKind::test(peer, workload, ways, others));
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
        text.push('\n');
        line(&text);
    }

    /// Prints a test that started and has no result.
    pub fn failed(&self, peer: SocketAddr, workload: &Workload, why: &str) {
        for why in limited(&self.failures, why) {
            if self.json {
                event(ServerEventKind::failed(peer, workload, &why));
            } else {
                let settings = words::workload(workload);
                line(&format!("{peer}  {settings}; no result: {}\n", words::plain(&why)));
            }
        }
    }

    /// Prints a rejected client or a refused request.
    pub fn refused(&self, peer: SocketAddr, why: &str) {
        for why in limited(&self.refusals, why) {
            if self.json {
                event(ServerEventKind::refused(peer, &why));
            } else {
                line(&format!("{peer}  refused: {}\n", words::plain(&why)));
            }
        }
    }
}

/// Prints a line for people.
fn line(text: &str) {
    drop(print(&format!("{}  {text}", words::date_and_time(now_unix_ms()))));
}

/// Prints a line of JSON. A reader that has gone does not end the server.
fn event(event: ServerEventKind) {
    drop(print_json_line(&ServerEvent::of(event, &program::origin())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_and_failures_are_limited_apart() {
        let log = Log::new(false);
        for kind in [&log.refusals, &log.failures] {
            assert_eq!((0..1000).flat_map(|_| limited(kind, "no")).count(), 30);
        }
    }
}
