//! The local ports that connections to one peer share: how many there are, and what to say when they are too few.
use std::fs;

use crate::error::LoadError;

/// How long the kernel keeps a port of the side that closed first (`TCP_TIMEWAIT_LEN`, include/net/tcp.h), seconds.
const TIME_WAIT_S: u64 = 60;

const PATH: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The remark, for this host's range of ports.
pub(crate) fn exhausted() -> String {
    match read() {
        Some((first, last)) => describe(first, last),
        None => format!("no local port was free for this peer, and {PATH} cannot be read"),
    }
}

/// Refuses more connections to one port of one peer than this host has ports for.
pub(crate) fn check(connections: u64) -> Result<(), LoadError> {
    match read() {
        Some((first, last)) if connections > last - first + 1 => {
            Err(LoadError::LocalPorts { needed: connections, first, last })
        }
        // What cannot be read is found out by connecting.
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
        "no local port was free for this peer: net.ipv4.ip_local_port_range {first} to {last} holds {ports}. A transaction takes \
         one while it lasts; one that this side closes first, because it failed or was given up, for {TIME_WAIT_S} s more, so \
         {} of those a second can go on for ever. Widen the range, or lower `outstanding` or `request_rate`",
        ports / TIME_WAIT_S
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_read_and_says_how_many_a_second_it_allows() {
        assert_eq!(range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(range("60999 32768"), None);
        assert_eq!(range("x"), None);
        let text = describe(32_768, 60_999);
        assert!(text.contains("holds 28232") && text.contains("470 of those a second"), "{text}");
    }
}
