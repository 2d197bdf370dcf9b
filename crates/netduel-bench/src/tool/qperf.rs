//! qperf: `tcp_lat` and `udp_lat` print the mean one-way time, half a round trip, so it is doubled. `-uu` prints whole bytes per
//! second and nanoseconds, so that no prefix has to be parsed. The server forks for each test and reaps the child afterwards;
//! `quit` comes later, so that the child's CPU time is included in the server's.
use std::process::Command;

use anyhow::{Result, ensure};

use super::ran::{Ran, number_after};
use crate::hosts::SERVER;
use crate::launch::{Protocol, Site};
use crate::outcome::{Latency, Reading};

const PORT: u16 = 19_765;

/// One run.
pub fn run(site: &Site<'_>, test: &str, size: Option<u32>, seconds: u32) -> Result<Ran> {
    let server = site.start_server(Command::new("qperf"), Protocol::Tcp, PORT)?;
    let mut client = Command::new("qperf");
    client.args([&SERVER.to_string(), "-t", &seconds.to_string(), "-uu", "-e", "9"]);
    if let Some(size) = size {
        client.args(["-m", &size.to_string()]);
    }
    client.arg(test);
    let client = site.run_client(client)?;
    let mut quit = Command::new("qperf");
    quit.args([&SERVER.to_string(), "quit"]);
    site.run_client(quit)?;
    let server = server.finish()?;
    let reading = read(&client.text, f64::from(seconds))?;
    Ok(Ran { reading, client_cpu_s: client.cpu_s, server_cpu_s: server.cpu_s })
}

/// Parses its output: `bw = N bytes/sec` or `latency = N ns`.
fn read(text: &str, seconds: f64) -> Result<Reading> {
    let value = |key: &str, unit: &str| -> Result<Option<f64>> {
        let Some(line) = text.lines().find(|line| line.trim_start().starts_with(key)) else {
            return Ok(None);
        };
        ensure!(line.trim_end().ends_with(unit), "`{}` is not in {unit}", line.trim());
        number_after(line, "=").map(Some)
    };
    let bytes = value("bw", " bytes/sec")?.map(|rate| (rate * seconds) as u64);
    let round_trip = value("latency", " ns")?.map(|one_way| one_way * 2.0);
    let latency = round_trip.map(|mean_ns| Latency { mean_ns, ..Latency::default() });
    ensure!(bytes.is_some() || latency.is_some(), "it printed neither a bandwidth nor a latency");
    let delivered = round_trip.map(|mean_ns| (seconds * 1e9 / mean_ns) as u64);
    Ok(Reading { seconds, bytes, delivered, latency, ..Reading::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_way_is_doubled() {
        let reading = read("tcp_lat:\n    latency  =  26723.7 ns\n", 2.0).unwrap();
        assert!((reading.latency.unwrap().mean_ns - 53447.4).abs() < 1e-6);
        assert_eq!((reading.delivered, reading.bytes), (Some(37_419), None));
    }

    #[test]
    fn bandwidth_is_in_bytes() {
        let reading = read("tcp_bw:\n    bw  =  3735093248 bytes/sec\n", 2.0).unwrap();
        assert_eq!((reading.bytes, reading.latency), (Some(7_470_186_496), None));
    }

    #[test]
    fn unexpected_unit_is_not_parsed() {
        assert!(read("tcp_lat:\n    latency  =  26.3 us\n", 2.0).is_err());
        assert!(read("failed to connect\n", 2.0).is_err());
    }
}
