//! Waits until the queueing disciplines of this network namespace have sent what they held. Must not know of trials.
use std::collections::BTreeMap;
use std::time::Duration;

use netduel_sys::clock::{monotonic_ns, sleep_until};

use crate::error::HostError;
use crate::link::links;
use crate::netlink::RouteSocket;
use crate::queueing;
use crate::source::LinkSource as _;

/// How long what a trial left in the queues of a host may take to leave. Full queues of a NIC hold 20480 buffers of up to 64 KiB, which take
/// some 10 s at 1 Gbit/s.
pub const DRAIN_PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks, nanoseconds. The kernel does not notify about queues.
const LOOK_NS: u64 = 2_000_000;

/// Packets that wait to be sent, by interface; only interfaces with such packets.
///
/// # Errors
/// When netlink cannot be opened or queried.
pub fn queued_packets() -> Result<BTreeMap<String, u32>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "netlink", cause })?;
    queued(&mut socket)
}

fn queued(socket: &mut RouteSocket) -> Result<BTreeMap<String, u32>, HostError> {
    let mut list = Vec::new();
    // A kernel without queueing disciplines has none.
    let waiting = socket.queueing(&mut list).map(|()| queueing::queued(&list)).unwrap_or_default();
    if waiting.is_empty() {
        return Ok(BTreeMap::new());
    }
    socket.links(&mut list).map_err(|cause| HostError::List { what: "links", cause })?;
    let links = links(&list);
    let name = |index: u32| links.iter().find(|link| link.index == index).map(|link| link.name.clone());
    Ok(waiting.into_iter().filter_map(|(index, packets)| Some((name(index)?, packets))).collect())
}

/// Waits until every interface has had an empty queue once: then it has sent what it held at the call. The result is what other interfaces
/// hold when the time is over; empty when all were drained.
///
/// # Errors
/// As [`queued_packets`].
pub fn wait_for_drained_queues(within: Duration) -> Result<BTreeMap<String, u32>, HostError> {
    let mut socket = RouteSocket::open().map_err(|cause| HostError::Open { what: "netlink", cause })?;
    let deadline = monotonic_ns().saturating_add(within.as_nanos() as u64);
    let mut left = queued(&mut socket)?;
    while !left.is_empty() && monotonic_ns() < deadline {
        sleep_until(monotonic_ns().saturating_add(LOOK_NS));
        let now = queued(&mut socket)?;
        // What an interface queues after it was empty once is other traffic.
        left = now.into_iter().filter(|(name, _)| left.contains_key(name)).collect();
    }
    Ok(left)
}
