//! What is wrong, or worth knowing, with the network of a host or of a pair of hosts: pure rules over snapshots.
//!
//! A rule speaks only when the facts are there: what a host did not tell leads to no finding. Nothing here changes a host; the
//! commands are for a person to read and to run.
mod acceleration;
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
pub(crate) use counters::is_limit;
pub use finding::{Finding, Severity};
pub use machine::HostContext;
pub(crate) use nic::{is_hardware, ports_of, queue_count};
pub use pair::PairContext;

/// What is found on one host, the gravest first.
pub fn of_host(host: &HostSnapshot, context: &HostContext) -> Vec<Finding> {
    let mut found = acceleration::find(host);
    found.extend(link::find(host));
    found.extend(queues::find(host));
    found.extend(machine::find(host, context));
    found.extend(counters::find(host));
    found.extend(size::find(host));
    sorted(found)
}

/// What is found between two hosts that talk to each other, the gravest first.
pub fn of_pair(client: &HostSnapshot, server: &HostSnapshot, context: &PairContext) -> Vec<Finding> {
    sorted(pair::find(client, server, context))
}

fn sorted(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| finding.severity);
    found
}
