//! Firewall facts: nftables, iptables, connection tracking. Counts only.
use std::collections::BTreeSet;
use std::path::Path;

use netduel_model::snapshot::Firewall;

use crate::file::{line, number, whole};
use crate::source::FilterSource;

/// The firewall tables of a network namespace; absent when unknown.
pub(crate) fn filter(root: &Path, source: &mut dyn FilterSource) -> Option<Firewall> {
    let network = root.join("proc/thread-self/net");
    // Of both families; a table of both is listed once.
    let tables: BTreeSet<String> = ["ip_tables_names", "ip6_tables_names"]
        .iter()
        .filter_map(|file| whole(&network.join(file)))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let limits = root.join("proc/sys/net/netfilter");
    let tracked = number(&limits.join("nf_conntrack_count"));
    let found = Firewall {
        nft_rules: if has_nftables(root) { source.rules().ok() } else { Some(0) },
        iptables: tables.into_iter().collect(),
        conntrack: tracked.zip(number(&limits.join("nf_conntrack_max"))),
    };
    (found != Firewall::default()).then_some(found)
}

/// Whether the kernel has nftables now. A query would load the module, and a reader must not change a host.
fn has_nftables(root: &Path) -> bool {
    // A kernel without modules cannot load it later.
    let Some(loaded) = whole(&root.join("proc/modules")) else { return true };
    let release = line(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let builtin = whole(&root.join(format!("lib/modules/{release}/modules.builtin"))).unwrap_or_default();
    loaded.lines().any(|line| line.starts_with("nf_tables "))
        || builtin.lines().any(|line| line.ends_with("/nf_tables.ko"))
}
