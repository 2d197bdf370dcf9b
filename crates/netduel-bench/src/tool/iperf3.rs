//! iperf3: one server for one test (`-s -1`), JSON from the client. The receiver's figures are in `sum_received`.
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::ran::Ran;
use crate::hosts::SERVER;
use crate::launch::{Protocol, Site};
use crate::outcome::Reading;

const PORT: u16 = 5201;

/// One run.
pub fn run(site: &Site<'_>, options: &[&str], seconds: u32) -> Result<Ran> {
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1"]);
    let server = site.start_server(server, Protocol::Tcp, PORT)?;
    let mut client = Command::new("iperf3");
    client.args(["-c", &SERVER.to_string(), "-J", "-t", &seconds.to_string()]).args(options);
    let client = site.run_client(client)?;
    let server = server.finish()?;
    Ok(Ran { reading: read(&client.text)?, client_cpu_s: client.cpu_s, server_cpu_s: server.cpu_s })
}

/// Parses its JSON. For UDP, `packets` is the number sent, also in `sum_received`; the number received is without `lost_packets`.
fn read(text: &str) -> Result<Reading> {
    let json: Value = serde_json::from_str(text).context("its output is not JSON")?;
    if let Some(error) = json.get("error").and_then(Value::as_str) {
        bail!("it reports: {error}");
    }
    let end = json.get("end").context("its JSON has no `end`")?;
    let received = end.get("sum_received").context("its JSON has no `sum_received`")?;
    let number = |key: &str| received.get(key).and_then(Value::as_f64);
    let bytes = number("bytes").context("`sum_received` has no `bytes`")? as u64;
    let seconds = number("seconds").context("`sum_received` has no `seconds`")?;
    let sent = number("packets").map(|packets| packets as u64);
    let lost = number("lost_packets").map(|packets| packets as u64);
    let delivered = sent.zip(lost).map(|(sent, lost)| sent.saturating_sub(lost));
    Ok(Reading { seconds, bytes: Some(bytes), sent, delivered, ..Reading::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_of_datagrams_is_what_was_sent_without_what_was_lost() {
        let text = r#"{"end": {"sum": {"bytes": 1},
            "sum_sent": {"seconds": 1.0, "bytes": 16914560, "packets": 264290},
            "sum_received": {"seconds": 1.000153, "bytes": 16486976, "lost_packets": 6681, "packets": 264290}}}"#;
        let reading = read(text).unwrap();
        assert_eq!(
            (reading.bytes, reading.sent, reading.delivered),
            (Some(16_486_976), Some(264_290), Some(257_609))
        );
        assert!((reading.seconds - 1.000_153).abs() < 1e-9);
        assert_eq!(reading.delivered.unwrap() * 64, reading.bytes.unwrap());
    }

    #[test]
    fn a_stream_has_no_datagrams() {
        let text = r#"{"end": {"sum_received": {"seconds": 2.5, "bytes": 1000}}}"#;
        assert_eq!(read(text).unwrap(), Reading { seconds: 2.5, bytes: Some(1000), ..Reading::default() });
    }

    #[test]
    fn error_of_iperf3_is_reported() {
        let error = read(r#"{"start": {}, "end": {}, "error": "unable to connect"}"#).unwrap_err();
        assert!(error.to_string().contains("unable to connect"), "{error}");
        assert!(read("iperf3: error").is_err());
    }
}
