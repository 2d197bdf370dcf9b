//! Firewall facts: nftables, iptables, connection tracking. Counts only.
use std::collections::BTreeSet;
use std::path::Path;

use netduel_model::snapshot::Firewall;

use crate::file::{line, number, numbers_in, target_name, whole};
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

/// Whether irqbalance runs. Its absence is certain only where every process is visible: in the initial pid namespace, whose number is
/// fixed (`PROC_PID_INIT_INO`), and when processes of other users are readable.
pub(crate) fn irqbalance(root: &Path) -> Option<bool> {
    const FIRST_NAMESPACE: &str = "pid:[4026531836]";
    if irqbalance_process(&root.join("proc")).is_some() {
        return Some(true);
    }
    let namespace = target_name(&root.join("proc/self/ns/pid"));
    let sees_all = namespace.as_deref() == Some(FIRST_NAMESPACE) && line(&root.join("proc/1/comm")).is_some();
    sees_all.then_some(false)
}

/// The pid of a visible irqbalance process. `proc` is `/proc`.
pub fn irqbalance_process(proc: &Path) -> Option<u32> {
    let is_it = |process: &u32| line(&proc.join(format!("{process}/comm"))).as_deref() == Some("irqbalance");
    numbers_in(proc, "").into_iter().find(is_it)
}
