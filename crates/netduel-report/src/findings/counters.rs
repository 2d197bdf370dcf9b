//! Driver counters of provider limits and of devices that could not keep up. They count from the load of the driver, so they
//! show that it happened, not when; each trial records its own difference.
use netduel_model::shell;
use netduel_model::snapshot::{HostSnapshot, Interface};

use super::finding::{Finding, Severity};
use crate::total::Total;

/// Fewer refused packets since the load of the driver can come from its start.
const REFUSED_MIN: u64 = 1000;

/// Counters of packets that a paravirtual or virtual device refused.
const REFUSED: [&str; 10] = [
    "tx_busy",
    "tx_dropped",
    "tx_no_memory",
    "tx_no_space",
    "tx_send_full",
    "tx_timeouts",
    "rx_no_memory",
    "rx_out_of_buffer",
    "rx_buf_alloc_fail",
    "vf_tx_dropped",
];

pub(super) fn find(host: &HostSnapshot) -> Vec<Finding> {
    let found = host.interfaces.iter().flat_map(|interface| [limited(interface), refused(interface)]);
    found.flatten().collect()
}

/// `name 12, other 3` of the counters that are not 0.
fn counted(interface: &Interface, chosen: impl Fn(&str) -> bool) -> Option<String> {
    let counted: Vec<String> = interface
        .device
        .counters
        .iter()
        .filter(|(name, count)| **count > 0 && chosen(name))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// Whether a counter rises when a provider limits traffic: ENA's allowances except the link-local one, which covers name and
/// metadata services, and rate limits of virtio, whose driver counts bytes (`tx_hw_ratelimit_bytes`).
pub(crate) fn is_limit(name: &str) -> bool {
    let ends = ["_allowance_exceeded", "ratelimit_bytes", "ratelimit_packets", "hw_drop_ratelimits"];
    ends.iter().any(|end| name.ends_with(end)) && !name.contains("linklocal")
}

fn limited(interface: &Interface) -> Option<Finding> {
    let counted = counted(interface, is_limit)?;
    let name = &interface.name;
    Some(
        Finding::new(
            "provider-limit",
            Severity::Warning,
            format!("the provider has limited the traffic of {name}"),
        )
        .on(name)
        .seen(format!("since driver load: {counted}"))
        .why("at this limit a measurement shows the size of the machine, not the path")
        .remedy("compare the counters before and after a trial; if they rise, lower the rate or use a larger size")
        .command(format!("ethtool -S {name} | grep -E 'allowance|ratelimit'", name = shell::word(name))),
    )
}

fn refused(interface: &Interface) -> Option<Finding> {
    let ours = |name: &str| REFUSED.contains(&name);
    let all: u64 =
        interface.device.counters.iter().filter(|(name, _)| ours(name)).map(|(_, count)| count).total();
    let counted = counted(interface, ours).filter(|_| all >= REFUSED_MIN)?;
    let name = &interface.name;
    Some(
        Finding::new(
            "device-pushed-back",
            Severity::Note,
            format!("{name} has refused packets"),
        )
        .on(name)
        .seen(format!("since driver load: {counted}"))
        .why("packets were delayed or dropped between the kernel and the device")
        .remedy("compare the counters before and after a trial; if they rise, use longer rings or more queues")
        .command(format!("ethtool -S {name}", name = shell::word(name))),
    )
}
