//! Driver counters that tell of a provider's limit, or of a device that could not keep up. They count since the driver was loaded,
//! so they say that it happened, not that it happens now; each trial has its own difference.
use netduel_model::snapshot::{HostSnapshot, Interface};

use super::finding::{Finding, Severity};

/// So many since the driver was loaded are no accident of its start.
const PUSHED_BACK_MANY: u64 = 1000;

/// Counters of a paravirtual or virtual device that had no room for a packet.
const PUSHED_BACK: [&str; 10] = [
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
    let found = host.interfaces.iter().flat_map(|interface| [limited(interface), pushed_back(interface)]);
    found.flatten().collect()
}

/// `name 12, other 3` of the counters that are not 0.
fn told(interface: &Interface, chosen: impl Fn(&str) -> bool) -> Option<String> {
    let counted: Vec<String> = interface
        .device
        .counters
        .iter()
        .filter(|(name, count)| **count > 0 && chosen(name))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

/// Whether a counter rises when a provider holds traffic back: ENA's allowances, but for the link-local one, which is about name and
/// metadata services; and rate limits of virtio, whose driver tells their bytes (`tx_hw_ratelimit_bytes`).
pub(crate) fn is_limit(name: &str) -> bool {
    let ends = ["_allowance_exceeded", "ratelimit_bytes", "ratelimit_packets", "hw_drop_ratelimits"];
    ends.iter().any(|end| name.ends_with(end)) && !name.contains("linklocal")
}

fn limited(interface: &Interface) -> Option<Finding> {
    let counted = told(interface, is_limit)?;
    let name = &interface.name;
    Some(
        Finding::new(
            "provider-limit",
            Severity::Warning,
            format!("the provider has held back packets of {name} at its limit"),
        )
        .on(name)
        .seen(format!("since the driver was loaded: {counted}"))
        .why("what is measured at such a limit is the size of the machine and not the path")
        .remedy("watch the counters during a trial; if they grow, ask for less, or take a larger size")
        .command(format!("ethtool -S {name} | grep -E 'allowance|ratelimit'")),
    )
}

fn pushed_back(interface: &Interface) -> Option<Finding> {
    let ours = |name: &str| PUSHED_BACK.contains(&name);
    let all: u64 =
        interface.device.counters.iter().filter(|(name, _)| ours(name)).map(|(_, count)| count).sum();
    let counted = told(interface, ours).filter(|_| all >= PUSHED_BACK_MANY)?;
    let name = &interface.name;
    Some(
        Finding::new(
            "device-pushed-back",
            Severity::Note,
            format!("{name} had no room for packets at times"),
        )
        .on(name)
        .seen(format!("since the driver was loaded: {counted}"))
        .why("packets waited or were dropped between the kernel and the device")
        .remedy("watch the counters during a trial; longer rings or more queues help when they grow")
        .command(format!("ethtool -S {name}")),
    )
}
