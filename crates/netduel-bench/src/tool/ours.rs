//! netduel's engines, each end in its own process (`end.rs`).
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use netduel_model::sample::{EndReport, HistogramRecord, LEFT_UNSENT};
use netduel_model::units::Nanos;
use netduel_model::workload::{TcpEngine, Workload};
use netduel_stats::histogram::Histogram;
use netduel_sys::clock;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::ran::Ran;
use crate::end;
use crate::launch::{Launched, Site};
use crate::outcome::{Latency, OpenLoop, Reading, Stall};

/// Excluded from the beginning of the round trips, nanoseconds; sockperf excludes 400 ms.
const WARMUP_NS: u64 = 400_000_000;

/// A netduel workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ours {
    /// Label in tables.
    pub name: &'static str,
    /// The traffic as an agent receives it: text, so that a new engine setting is a word here, and its default none.
    pub traffic: &'static str,
    /// Duration for which the server is stopped in the middle, milliseconds; 0 for no stall.
    pub stall_ms: u64,
}

/// A workload with this traffic and duration in seconds.
pub fn workload(traffic: &str, seconds: u32) -> Result<Value> {
    let mut traffic: Value = serde_json::from_str(traffic).context("the traffic of a case is not JSON")?;
    // The ratios are those of an engine as a user gets it: the default block is in the model.
    if traffic["type"] == "tcp-stream" && traffic["block"].is_null() {
        let engine: TcpEngine = serde_json::from_value(traffic["engine"].clone())
            .context("a TCP stream of a case names no engine")?;
        traffic["block"] = json!(engine.default_block());
    }
    let duration = Nanos(u64::from(seconds) * 1_000_000_000);
    Ok(json!({
        "name": "peers",
        "traffic": traffic,
        "timing": { "duration": duration, "warmup": Nanos(WARMUP_NS), "cooldown": Nanos(0) },
        "family": "ipv4",
        "pin_client": [],
        "pin_server": [],
        "metrics": [],
    }))
}

impl Ours {
    /// One run.
    pub fn run(&self, site: &Site<'_>, seconds: u32) -> Result<Ran> {
        let workload = workload(self.traffic, seconds)?.to_string();
        let duration_ns = u64::from(seconds) * 1_000_000_000;
        let program = std::env::current_exe().context("failed to find this program")?;
        let command = |role: &str| {
            let mut command = Command::new(&program);
            command.args([end::WORD, role, &workload]).stdin(Stdio::piped());
            command
        };
        let mut server = site.start(true, command("server"))?;
        let ports = server.line()?;
        let mut client = command("client");
        client.args(ports.split_whitespace());
        let mut client = site.start(false, client)?;
        ensure!(client.line()? == "started", "the client did not say that it started");
        let stall_ns = match self.stall_ms {
            0 => None,
            stall_ms => Some(stall(&server, clock::monotonic_ns() + duration_ns / 2, stall_ms * 1_000_000)?),
        };
        let client = client.finish()?;
        server.tell("finish")?;
        let server = server.finish()?;
        let report = |text: &str| serde_json::from_str::<EndReport>(text).context("an end gave no report");
        let (sender, receiver) = (report(&client.text)?, report(&server.text)?);
        let workload: Workload =
            serde_json::from_str(&workload).context("the workload is not one of the model")?;
        let reading = read(&sender, &receiver, &workload, stall_ns)?;
        Ok(Ran { reading, client_cpu_s: client.cpu_s, server_cpu_s: server.cpu_s })
    }
}

/// Stops the server at a point in time. Returns the duration of the stop, nanoseconds.
fn stall(server: &Launched, at_ns: u64, length_ns: u64) -> Result<u64> {
    clock::sleep_until(at_ns);
    server.freeze()?;
    let stopped = clock::monotonic_ns();
    clock::sleep_until(stopped + length_ns);
    let going = clock::monotonic_ns();
    server.signal(Signal::CONT)?;
    Ok(going - stopped)
}

/// Values from the reports of both ends.
fn read(
    client: &EndReport,
    server: &EndReport,
    workload: &Workload,
    stall_ns: Option<u64>,
) -> Result<Reading> {
    let seconds = workload.timing.duration.as_secs_f64();
    let mut reading = Reading { seconds, ..Reading::default() };
    let Some(trips) = &client.round_trips else {
        let received = server.received.as_ref().context("the server received nothing")?;
        reading.bytes = Some(received.bytes);
        if let Some(datagrams) = &server.datagrams {
            reading.sent = client.sent.as_ref().map(|sent| sent.messages);
            reading.delivered = Some(datagrams.unique);
        }
        return Ok(reading);
    };
    let histogram = histogram(&trips.histogram)?;
    let percentile = |p| histogram.percentile(p).map(|ns| ns as f64);
    reading.sent = Some(trips.requests);
    reading.delivered = Some(trips.responses);
    reading.latency = Some(Latency {
        p50_ns: percentile(50.0),
        p99_ns: percentile(99.0),
        mean_ns: histogram.mean().context("there was no round trip")?,
    });
    let rate = request_rate(workload);
    if let (Some(pacing), Some(rate)) = (&trips.pacing_error, rate) {
        let pacing = self::histogram(pacing)?;
        let percentile = |p| pacing.percentile(p).map(|ns| ns as f64).context("no request left");
        // Requests that left after the scheduled end were late: the value is the number sent until the last one left.
        let last_s = client.sent.as_ref().and_then(|sent| sent.last_ns).map_or(0.0, |ns| ns as f64 / 1e9);
        reading.open_loop = Some(OpenLoop {
            requests: trips.requests,
            scheduled: rate * seconds.max(last_s),
            pacing_p50_ns: percentile(50.0)?,
            pacing_p99_ns: percentile(99.0)?,
            left_unsent: Some(left_unsent(client, (rate * seconds) as u64, trips.requests)),
        });
    }
    if let Some(length_ns) = stall_ns {
        let half = length_ns / 2;
        let slow = trips.histogram.pairs.iter().filter(|(ns, _)| *ns > half).map(|(_, count)| count).sum();
        // In a closed loop one request is outstanding when the server stops.
        let slow_due = rate.map_or(1.0, |rate| rate * half as f64 / 1e9);
        let longest_ns = trips.histogram.max as f64;
        reading.stall = Some(Stall { length_ns: length_ns as f64, longest_ns, slow, slow_due });
    }
    Ok(reading)
}

/// Requests that the client reports as unsent. What is missing without such a report is not among them.
fn left_unsent(client: &EndReport, scheduled: u64, sent: u64) -> u64 {
    let is_reported = client.errors.iter().any(|error| error.error == LEFT_UNSENT);
    if is_reported { scheduled.saturating_sub(sent) } else { 0 }
}

fn histogram(record: &HistogramRecord) -> Result<Histogram> {
    Histogram::from_record(record).context("a histogram is not whole")
}

/// Requests per second of an open loop.
fn request_rate(workload: &Workload) -> Option<f64> {
    workload.traffic.facts().request_rate().map(|rate| rate.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netduel_model::sample::{ErrorCount, Flow, RoundTripReport};
    use netduel_model::workload::Role;

    #[test]
    fn stall_is_compared_with_the_scheduled_requests() {
        let traffic = r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"block","rate":"1 k/s"}"#;
        let workload: Workload = serde_json::from_value(workload(traffic, 2).unwrap()).unwrap();
        let mut client = EndReport::new(Role::Client);
        client.round_trips = Some(RoundTripReport {
            idle: None,
            parts: None,
            requests: 2000,
            responses: 2000,
            timeouts: 0,
            histogram: HistogramRecord {
                count: 2000,
                min: 10_000,
                max: 50_003_967,
                pairs: vec![(10_007, 1975), (30_015_487, 24), (50_003_967, 1)],
            },
            pacing_error: Some(HistogramRecord {
                count: 2000,
                min: 5,
                max: 7,
                pairs: vec![(5, 1999), (7, 1)],
            }),
            series: Vec::new(),
        });
        let reading = read(&client, &EndReport::new(Role::Server), &workload, Some(50_000_000)).unwrap();
        let stall = reading.stall.unwrap();
        assert_eq!((stall.slow, stall.slow_due), (25, 25.0));
        let open = reading.open_loop.unwrap();
        assert_eq!((open.requests, open.scheduled, open.pacing_p50_ns), (2000, 2000.0, 5.0));
    }

    #[test]
    fn requests_are_left_unsent_only_when_the_client_reports_it() {
        let mut client = EndReport::new(Role::Client);
        assert_eq!(left_unsent(&client, 2000, 1990), 0);
        client.errors.push(ErrorCount { call: "send".to_owned(), error: LEFT_UNSENT.to_owned(), count: 1 });
        assert_eq!(left_unsent(&client, 2000, 1990), 10);
    }

    #[test]
    fn overrun_counts_as_missed_schedule() {
        let traffic = r#"{"type":"tcp-rr","size":"14 B","outstanding":1,"wait":"block","rate":"1 k/s"}"#;
        let workload: Workload = serde_json::from_value(workload(traffic, 2).unwrap()).unwrap();
        let histogram = HistogramRecord { count: 2000, min: 5, max: 5, pairs: vec![(5, 2000)] };
        let scheduled = |last_ns| {
            let mut client = EndReport::new(Role::Client);
            client.sent = Some(Flow { last_ns: Some(last_ns), ..Flow::default() });
            client.round_trips = Some(RoundTripReport {
                idle: None,
                parts: None,
                requests: 2000,
                responses: 2000,
                timeouts: 0,
                histogram: histogram.clone(),
                pacing_error: Some(histogram.clone()),
                series: Vec::new(),
            });
            read(&client, &EndReport::new(Role::Server), &workload, None)
                .unwrap()
                .open_loop
                .unwrap()
                .scheduled
        };
        assert!((scheduled(1_999_000_000) - 2000.0).abs() < 1e-9);
        assert!((scheduled(2_500_000_000) - 2500.0).abs() < 1e-9);
    }

    #[test]
    fn an_end_that_received_nothing_is_an_error() {
        let traffic = r#"{"type":"tcp-stream","streams":1,"direction":"up","block":"1 MiB","engine":"lean"}"#;
        let workload: Workload = serde_json::from_value(workload(traffic, 1).unwrap()).unwrap();
        assert!(read(&EndReport::new(Role::Client), &EndReport::new(Role::Server), &workload, None).is_err());
    }
}
