//! sockperf ping-pong: `--full-rtt`, because the default is half a round trip. Output is text with colours.
use std::process::Command;

use anyhow::{Context, Result};

use super::ran::{Ran, number_after, plain};
use crate::hosts::SERVER;
use crate::launch::{Protocol, Site};
use crate::outcome::{Latency, Reading};

const PORT: u16 = 11_111;

/// One run. Options apply to both ends: `--tcp`, and how they wait; `-m` is for the client only.
pub fn run(site: &Site<'_>, options: &[&str], seconds: u32) -> Result<Ran> {
    let address = SERVER.to_string();
    let protocol = if options.contains(&"--tcp") { Protocol::Tcp } else { Protocol::Udp };
    let mut server = Command::new("sockperf");
    server.args(["server", "-i", &address]).args(without_size(options));
    let server = site.start_server(server, protocol, PORT)?;
    let mut client = Command::new("sockperf");
    client.args(["ping-pong", "-i", &address, "-t", &seconds.to_string(), "--full-rtt"]).args(options);
    let client = site.run_client(client)?;
    // It serves until it is terminated.
    let server = server.stop()?;
    let reading = read(&client.text)?;
    // The client pauses for about two seconds before and after its test, while a busy-polling server uses a core. The server has
    // one thread, so its CPU time beyond the length of the test is not part of the test.
    let server_cpu_s = server.cpu_s.min(reading.seconds);
    Ok(Ran { reading, client_cpu_s: client.cpu_s, server_cpu_s })
}

/// The options without `-m SIZE`.
fn without_size<'a>(options: &[&'a str]) -> Vec<&'a str> {
    let at = options.iter().position(|option| *option == "-m").unwrap_or(options.len());
    options
        .iter()
        .enumerate()
        .filter(|(index, _)| !(at..at + 2).contains(index))
        .map(|(_, option)| *option)
        .collect()
}

/// Parses its output. The percentiles are of the valid duration (without warm-up and tail), the count is of the whole run.
fn read(text: &str) -> Result<Reading> {
    let text: String = text.lines().map(|line| plain(line) + "\n").collect();
    let total = text.lines().find(|line| line.contains("[Total Run]")).context("it printed no total")?;
    let micros = |key: &str| number_after(&text, key).map(|micros| micros * 1000.0);
    let latency = Latency {
        p50_ns: Some(micros("percentile 50.000")?),
        p99_ns: Some(micros("percentile 99.000")?),
        mean_ns: micros("avg-rtt=")?,
    };
    Ok(Reading {
        seconds: number_after(total, "RunTime=")?,
        sent: Some(number_after(total, "SentMessages=")? as u64),
        delivered: Some(number_after(total, "ReceivedMessages=")? as u64),
        latency: Some(latency),
        ..Reading::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of sockperf 3.7.
    const TEXT: &str = "sockperf: \u{1b}[2;35m== version #3.7-no.git == \u{1b}[0m\n\
        sockperf: [Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=18442; ReceivedMessages=18441\n\
        sockperf: [Valid Duration] RunTime=0.550 sec; SentMessages=8565; ReceivedMessages=8565\n\
        sockperf: \u{1b}[2;35m====> avg-rtt=64.220 (std-dev=16.245)\u{1b}[0m\n\
        sockperf: Summary: Round trip is 64.220 usec\n\
        sockperf: ---> percentile 99.999 =  977.439\n\
        sockperf: ---> percentile 99.000 =   98.516\n\
        sockperf: ---> percentile 50.000 =   62.492\n";

    #[test]
    fn round_trips_and_total_count_are_parsed() {
        let reading = read(TEXT).unwrap();
        assert_eq!((reading.sent, reading.delivered), (Some(18_442), Some(18_441)));
        let latency = reading.latency.unwrap();
        assert_eq!((latency.p50_ns, latency.p99_ns), (Some(62_492.0), Some(98_516.0)));
        assert!((latency.mean_ns - 64_220.0).abs() < 1e-6);
    }

    #[test]
    fn a_test_without_observations_is_an_error() {
        let text = "sockperf: [Total Run] RunTime=1.0 sec; SentMessages=1; ReceivedMessages=0\nsockperf: No messages were received";
        assert!(read(text).is_err());
    }

    #[test]
    fn message_size_is_a_client_option_only() {
        assert_eq!(without_size(&["--tcp", "-m", "14", "--nonblocked"]), ["--tcp", "--nonblocked"]);
        assert_eq!(without_size(&["-m", "64"]), [""; 0]);
        assert_eq!(without_size(&["--tcp"]), ["--tcp"]);
    }
}
