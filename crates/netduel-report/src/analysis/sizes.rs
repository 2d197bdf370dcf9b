//! The machine sizes of the hosts of a run, from the plan or the cloud.
use std::collections::BTreeSet;

use netduel_model::snapshot::HostSnapshot;

use super::result::Analysis;

/// The machine size that the hosts of a run have in common, from the plan or the cloud.
pub fn common_size(analysis: &Analysis) -> Option<String> {
    let mut sizes = of_hosts(analysis).into_iter();
    let first = sizes.next()??;
    sizes.all(|size| size.as_deref() == Some(first.as_str())).then_some(first)
}

/// The size of each host; that of the plan where no host has a snapshot, as in a baseline file.
fn of_hosts(analysis: &Analysis) -> Vec<Option<String>> {
    let hosts = &analysis.inspection.hosts;
    if hosts.is_empty() {
        return analysis.plan.hosts.values().map(|host| host.size.clone()).collect();
    }
    hosts.iter().map(|host| size_of(analysis, &host.name, &host.snapshot)).collect()
}

pub(crate) fn size_of(analysis: &Analysis, name: &str, host: &HostSnapshot) -> Option<String> {
    let planned = analysis.plan.hosts.iter().find(|(own, _)| own.as_str() == name);
    planned
        .and_then(|(_, host)| host.size.clone())
        .or_else(|| host.cloud.as_ref().and_then(|cloud| cloud.size.clone()))
}

/// The sizes of the hosts, each once, in the order of the hosts.
pub fn sizes(analysis: &Analysis) -> Vec<String> {
    let mut sizes: Vec<String> = of_hosts(analysis).into_iter().flatten().collect();
    let mut seen = BTreeSet::new();
    sizes.retain(|size| seen.insert(size.clone()));
    sizes
}
