//! What a standing server prints: how to reach it, and a line for each test. For people, or as lines of JSON.
use std::fmt::Write as _;
use std::net::SocketAddr;

use netduel_model::sample::EndReport;
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::Workload;
use netduel_report::words;
use serde_json::json;

use crate::console::print;
use crate::exit::Failure;
use crate::quick::pairing::Pairing;

fn now_unix_ms() -> u64 {
    netduel_sys::clock::realtime_ns() / 1_000_000
}

/// Prints. A reader that has gone does not end the server.
pub struct Log {
    json: bool,
}

impl Log {
    /// As JSON, or for people.
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// The server can be reached.
    #[expect(clippy::unused_self, reason = "a log is what prints")]
    pub fn ready(&self, address: SocketAddr, pairings: &[Pairing]) -> Result<(), Failure> {
        let pairings: Vec<_> = pairings
            .iter()
            .map(|pairing| json!({ "host": pairing.host, "port": pairing.port, "string": pairing.to_string() }))
            .collect();
        print(&format!("{}\n", json!({ "event": "ready", "address": address, "pairings": pairings })))
    }

    /// A test is over; so many of others ran beside it.
    pub fn tested(&self, peer: SocketAddr, workload: &Workload, report: &EndReport, others: u32) {
        let moved = |flow: &Option<netduel_model::sample::Flow>| {
            flow.as_ref().map(|flow| {
                let span = flow.last_ns.unwrap_or(0).saturating_sub(flow.first_ns.unwrap_or(0)) as f64 / 1e9;
                (flow.bytes, if span > 0.0 { flow.bytes as f64 * 8.0 / span } else { 0.0 })
            })
        };
        let (received, sent) = (moved(&report.received), moved(&report.sent));
        if self.json {
            let way = |flow: Option<(u64, f64)>| {
                flow.map(|(bytes, rate)| json!({ "bytes": bytes, "bits_per_second": rate }))
            };
            self.line(&format!(
                "{}\n",
                json!({
                    "event": "test", "client": peer, "settings": words::workload(workload),
                    "received": way(received), "sent": way(sent), "concurrent_tests": others,
                })
            ));
            return;
        }
        let mut text = format!("{peer}  {}", words::workload(workload));
        for (word, flow) in [("received", received), ("sent", sent)] {
            if let Some((bytes, rate)) = flow.filter(|(bytes, _)| *bytes > 0) {
                let _ = write!(text, "; {word} {} at {}", human_si(bytes as f64, "B"), human_bit_rate(rate));
            }
        }
        if others > 0 {
            let _ = write!(text, "; {others} other tests at the same time");
        }
        text.push('\n');
        self.line(&text);
    }

    /// A test was begun and has no result.
    pub fn failed(&self, peer: SocketAddr, workload: &Workload, why: &str) {
        let settings = words::workload(workload);
        if self.json {
            let event = json!({ "event": "failed", "client": peer, "settings": settings, "why": why });
            self.line(&format!("{event}\n"));
        } else {
            self.line(&format!("{peer}  {settings}; no result: {}\n", words::plain(why)));
        }
    }

    /// A client was rejected, or a request of it was refused.
    pub fn refused(&self, peer: SocketAddr, why: &str) {
        if self.json {
            self.line(&format!("{}\n", json!({ "event": "refused", "client": peer, "why": why })));
        } else {
            self.line(&format!("{peer}  refused: {}\n", words::plain(why)));
        }
    }

    fn line(&self, text: &str) {
        // A line of JSON has what programs need; the time of day is for the eye.
        let time =
            if self.json { String::new() } else { format!("{}  ", words::date_and_time(now_unix_ms())) };
        drop(print(&format!("{time}{text}")));
    }
}
