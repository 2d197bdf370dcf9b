//! Facts that a bed adds to its hosts: what the provider claims of a VM and its NICs, which its guest may be unable to show. It compares
//! nothing.
use std::collections::BTreeSet;

use netduel_model::bed::{BedNetwork, BedVm, RunBed, VmFacts};
use netduel_model::word::word;

/// Names of facts about the placement of a VM. Every run on a bed has the first.
const BED_PLACEMENT: &str = "bed placement";
const REGION: &str = "claimed region";
const ZONE: &str = "claimed zone";
const PLACEMENT: &str = "claimed placement group";
const PHYSICAL_HOST: &str = "claimed physical host";
/// How the name of the fact about the NIC in a network begins.
const ACCELERATED: &str = "accelerated networking in the network";

/// Whether a fact of a host is one of its bed. A run without a bed does not know them.
pub(super) fn is_of_bed(name: &str) -> bool {
    [BED_PLACEMENT, REGION, ZONE, PLACEMENT, PHYSICAL_HOST].contains(&name) || name.starts_with(ACCELERATED)
}

/// Where a VM is.
pub(super) fn placement(bed: &RunBed, vm: &BedVm) -> Vec<(&'static str, Option<String>)> {
    let VmFacts {
        region,
        zone,
        placement,
        physical_host,
        // The plan of the run has it.
        size: _,
        // Each deployment has another.
        id: _,
    } = &vm.claimed;
    vec![
        (BED_PLACEMENT, Some(word(&bed.placement).to_owned())),
        (REGION, Some(region.as_ref().unwrap_or(&bed.region).clone())),
        (ZONE, zone.clone()),
        (PLACEMENT, placement.clone()),
        (PHYSICAL_HOST, physical_host.clone()),
    ]
}

/// Whether the NIC of a VM in each network has accelerated networking.
pub(super) fn accelerated(vm: &BedVm) -> Vec<(String, Option<String>)> {
    let networks: BTreeSet<BedNetwork> = vm.nics.iter().filter_map(|nic| nic.network).collect();
    let of_network = |network: BedNetwork| {
        let state = if vm.nic_in(network)?.is_accelerated { "on" } else { "off" };
        Some((format!("{ACCELERATED} {network}"), Some(state.to_owned())))
    };
    networks.into_iter().filter_map(of_network).collect()
}
