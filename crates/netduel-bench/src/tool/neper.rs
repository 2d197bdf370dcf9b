//! neper's `tcp_crr`: a server for one test; `key=value` lines from the client. Its latency begins with the request on an open
//! connection, so it is not that of a transaction and is not compared.
use std::process::Command;

use anyhow::Result;

use super::ran::{Ran, number_after};
use crate::hosts::SERVER;
use crate::launch::{Protocol, Site};
use crate::outcome::Reading;

/// Port of its control connection.
const PORT: u16 = 12_866;

/// One run. Options apply to both ends. Without `--logtostderr` each end writes a log file into the current folder.
pub fn run(site: &Site<'_>, options: &[&str], seconds: u32) -> Result<Ran> {
    let length = seconds.to_string();
    let command = || {
        let mut command = Command::new("tcp_crr");
        command.args(["--logtostderr", "-l", &length]).args(options);
        command
    };
    let server = site.start_server(command(), Protocol::Tcp, PORT)?;
    let mut client = command();
    client.args(["-c", "-H", &SERVER.to_string()]);
    let client = site.run_client(client)?;
    let server = server.finish()?;
    let reading = read(&client.text, f64::from(seconds))?;
    Ok(Ran { reading, client_cpu_s: client.cpu_s, server_cpu_s: server.cpu_s })
}

/// Parses its output. The count is of the whole test, as netduel's.
fn read(text: &str, seconds: f64) -> Result<Reading> {
    let transactions = number_after(text, "num_transactions=")? as u64;
    Ok(Reading { seconds, sent: Some(transactions), delivered: Some(transactions), ..Reading::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_counted_and_latency_is_not_parsed() {
        let text = "total_run_time=10\nnum_transactions=91234\nlatency_min=0.000012000\nthroughput=9123.40\n";
        let reading = read(text, 10.0).unwrap();
        assert_eq!((reading.sent, reading.delivered), (Some(91_234), Some(91_234)));
        assert_eq!(reading.latency, None);
        assert!(read("total_run_time=10\n", 10.0).is_err());
    }
}
