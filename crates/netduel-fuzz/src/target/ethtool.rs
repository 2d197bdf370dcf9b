//! Answers of network drivers to ethtool requests.
use std::io;

use netduel_sys::ethtool::{Answer, Ethtool};
use netduel_sys::netlink::{RTM_NEWLINK, Request};

use super::host::check_snapshot;

/// `IFLA_IFNAME`.
const NAME: u16 = 3;
/// Bytes of `struct ifinfomsg`.
const LINK_BODY_LEN: usize = 16;

/// Calls every reader, and takes a snapshot of a host with one such device.
pub(crate) fn run(bytes: &[u8]) {
    let mut ethtool = Ethtool::answered_by(driver(bytes)).expect("address space");
    let name = "eth0";
    // Each answer is a fact or an error; only a panic is a fault.
    let _ = ethtool.driver(name);
    let _ = ethtool.speed(name);
    let _ = ethtool.features(name);
    let _ = ethtool.channels(name);
    let _ = ethtool.rings(name);
    let _ = ethtool.coalesce(name);
    let _ = ethtool.rss(name);
    let _ = ethtool.receive_rings(name);
    if let Ok(names) = ethtool.statistic_names(name) {
        let mut values = Vec::new();
        if ethtool.statistics(name, names.len(), &mut values).is_ok() {
            assert!(values.is_empty() || values.len() == names.len(), "values without names");
        }
    }
    let mut body = [0; LINK_BODY_LEN];
    body[4] = 2;
    check_snapshot(Request::new(RTM_NEWLINK, 0, &body).text(NAME, name).finish(0), driver(bytes));
}

/// A driver whose answers are pieces of the input. A byte before each is its length in words of 4 bytes; a length of 0 is an error.
fn driver(bytes: &[u8]) -> Answer {
    let (bytes, mut at) = (bytes.to_vec(), 0);
    Box::new(move |memory| {
        let rest = bytes.get(at..).unwrap_or_default();
        let (words, rest) = rest.split_first().ok_or(io::ErrorKind::Unsupported)?;
        let length = usize::from(*words) * 4;
        at += 1 + length;
        if length == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // The command stays, as with a driver.
        for (to, from) in memory[4..].iter_mut().zip(rest.iter().take(length)) {
            *to = *from;
        }
        Ok(())
    })
}
