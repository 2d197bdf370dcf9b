//! The local port range that all connections to one peer share: its size, and errors when it is too small.
use std::fs;

use crate::error::LoadError;

/// How long the kernel keeps a port of the side that closed first (`TCP_TIMEWAIT_LEN`, include/net/tcp.h), seconds.
const TIME_WAIT_S: u64 = 60;

const PATH: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The remark about exhausted ports, with this host's range.
pub(crate) fn exhausted() -> String {
    match read() {
        Some((first, last)) => describe(first, last),
        None => format!("no local port was free for this peer, and {PATH} cannot be read"),
    }
}

/// Rejects more connections to one port of a peer than this host has local ports.
pub(crate) fn check(connections: u64) -> Result<(), LoadError> {
    match read() {
        Some((first, last)) if connections > last - first + 1 => {
            Err(LoadError::LocalPorts { needed: connections, first, last })
        }
        // An unreadable range shows when connecting.
        _ => Ok(()),
    }
}

fn read() -> Option<(u64, u64)> {
    range(&fs::read_to_string(PATH).ok()?)
}

fn range(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (first <= last).then_some((first, last))
}

fn describe(first: u64, last: u64) -> String {
    let ports = last - first + 1;
    format!(
        "no local port was free for this peer: net.ipv4.ip_local_port_range {first} to {last} has {ports} ports. Each transaction in \
         flight uses one. A transaction that fails or times out keeps its port for {TIME_WAIT_S} s more, so the range suffices for \
         {ports} of these in {TIME_WAIT_S} s. Widen the range, or lower `outstanding` or `request_rate`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remark_names_how_many_transactions_the_range_suffices_for() {
        assert_eq!(range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(range("60999 32768"), None);
        assert_eq!(range("x"), None);
        let text = describe(32_768, 60_999);
        assert!(text.contains("has 28232 ports") && text.contains("for 28232 of these in 60 s"), "{text}");
    }
}
