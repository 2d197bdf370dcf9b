//! Firewall facts: nftables, iptables, connection tracking. Counts only.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use netduel_model::snapshot::Firewall;

use crate::file::whole;
use crate::source::FilterSource;

/// The firewall tables of a network namespace; absent when unknown. `release`: of the kernel. `sysctls`: those of the snapshot.
pub(crate) fn filter(
    root: &Path,
    release: Option<&str>,
    sysctls: &BTreeMap<String, String>,
    source: &mut dyn FilterSource,
) -> Option<Firewall> {
    let network = root.join("proc/thread-self/net");
    // Of both families; a table of both is listed once.
    let tables: BTreeSet<String> = ["ip_tables_names", "ip6_tables_names"]
        .iter()
        .filter_map(|file| whole(&network.join(file)))
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let connections = |name: &str| sysctls.get(name)?.parse::<u64>().ok();
    let tracked = connections("net.netfilter.nf_conntrack_count");
    let found = Firewall {
        nft_rules: if has_nftables(root, release) { source.rules().ok() } else { Some(0) },
        iptables: tables.into_iter().collect(),
        conntrack: tracked.zip(connections("net.netfilter.nf_conntrack_max")),
    };
    (found != Firewall::default()).then_some(found)
}

/// Whether the kernel has nftables now. A query would load the module, and a reader must not change a host.
fn has_nftables(root: &Path, release: Option<&str>) -> bool {
    // A kernel without modules cannot load it later.
    let Some(loaded) = whole(&root.join("proc/modules")) else { return true };
    if loaded.lines().any(|line| line.starts_with("nf_tables ")) {
        return true;
    }
    let list = format!("lib/modules/{}/modules.builtin", release.unwrap_or_default());
    let builtin = whole(&root.join(list)).unwrap_or_default();
    builtin.lines().any(|line| line.ends_with("/nf_tables.ko"))
}
