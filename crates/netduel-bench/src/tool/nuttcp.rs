//! nuttcp: a server for one test in the foreground (`-1` alone goes to the background, where its CPU time is lost to the parent),
//! `-fparse` from the client. The rate is the receiver's; a megabyte is 2^20 bytes.
use std::process::Command;

use anyhow::Result;

use super::ran::{Ran, number_after};
use crate::hosts::SERVER;
use crate::launch::{Protocol, Site};
use crate::outcome::Reading;

const PORT: u16 = 5000;

/// One run. Without `-R0` nuttcp limits datagrams to 1 Mbit/s.
pub fn run(site: &Site<'_>, options: &[&str], seconds: u32) -> Result<Ran> {
    let port = format!("-P{PORT}");
    let mut server = Command::new("nuttcp");
    server.args(["-S", "-1", "--nofork", &port]);
    let server = site.start_server(server, Protocol::Tcp, PORT)?;
    let mut client = Command::new("nuttcp");
    client.args([&port, &format!("-T{seconds}"), "-fparse"]).args(options).arg(SERVER.to_string());
    let client = site.run_client(client)?;
    let server = server.finish()?;
    Ok(Ran { reading: read(&client.text)?, client_cpu_s: client.cpu_s, server_cpu_s: server.cpu_s })
}

/// Parses its output: `megabytes=M real_seconds=S ...`, for datagrams also `drop=D pkt=P`.
fn read(text: &str) -> Result<Reading> {
    let seconds = number_after(text, "real_seconds=")?;
    let sent = number_after(text, "pkt=").ok().map(|packets| packets as u64);
    let delivered = match sent {
        Some(sent) => Some(sent.saturating_sub(number_after(text, "drop=")? as u64)),
        None => None,
    };
    let bytes = (number_after(text, "megabytes=")? * f64::from(1 << 20)).round() as u64;
    Ok(Reading { seconds, bytes: Some(bytes), sent, delivered, ..Reading::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_datagrams_are_not_counted_as_delivered() {
        let text = "megabytes=13.8546 real_seconds=1.00 rate_Mbps=116.3769 tx_cpu=99 rx_cpu=21 drop=1203 pkt=228196 data_loss=0.52700\n";
        let reading = read(text).unwrap();
        assert_eq!((reading.sent, reading.delivered), (Some(228_196), Some(226_993)));
        let bytes = reading.bytes.unwrap();
        assert!(bytes.abs_diff(226_993 * 64) < 100, "{bytes}");
    }

    #[test]
    fn tcp_output_has_bytes_only() {
        let text = "megabytes=2981.0000 real_seconds=1.00 rate_Mbps=25008.0910 tx_cpu=97 rx_cpu=37 retrans=0 rtt_ms=0.06\n";
        let expected = Reading { seconds: 1.0, bytes: Some(2981 << 20), ..Reading::default() };
        assert_eq!(read(text).unwrap(), expected);
        assert!(read("nuttcp-t: Error: connect: Connection refused\n").is_err());
    }
}
