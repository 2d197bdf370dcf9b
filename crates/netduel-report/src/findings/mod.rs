//! Findings: rules over the snapshots of a host or of a pair of hosts that name faults of the network configuration.
//!
//! A fact that is missing in a snapshot causes no finding, but a host of which no fact could be read has one. Nothing here changes a host; the commands are for a person to read
//! and to run.
mod acceleration;
mod bed;
mod bed_route;
mod bed_sysctl;
mod counters;
mod drivers;
mod finding;
mod link;
mod machine;
mod nic;
mod pair;
mod queues;
mod size;

use netduel_model::snapshot::HostSnapshot;

pub use acceleration::{Acceleration, accelerations};
pub use bed::{BedFinding, of_bed, see_bed};
pub(crate) use counters::is_limit;
pub(crate) use drivers::product;
pub use finding::{Finding, Severity};
pub use machine::HostContext;
pub(crate) use nic::{is_hardware, ports_of, queue_count};
pub use pair::PairContext;

/// Findings of one host, most severe first.
pub fn of_host(host: &HostSnapshot, context: &HostContext) -> Vec<Finding> {
    let mut found = acceleration::find(host);
    found.extend(link::find(host));
    found.extend(queues::find(host));
    found.extend(machine::find(host, context));
    found.extend(counters::find(host));
    found.extend(size::find(host));
    sorted(found)
}

/// Findings of a pair of hosts, most severe first.
pub fn of_pair(client: &HostSnapshot, server: &HostSnapshot, context: &PairContext) -> Vec<Finding> {
    sorted(pair::find(client, server, context))
}

fn sorted(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| finding.severity);
    found
}
