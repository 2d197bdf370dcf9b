//! Facts of an arm that its settings do not fix: where its traffic goes, which path it must use, and the names that a bed gave to what it
//! changes. Arms are matched elsewhere.
use std::collections::BTreeSet;

use netduel_model::plan::Arm;
use netduel_model::plan::spec::PathKind;
use netduel_model::workload::Role;

const NONE: &str = "none";

/// The addresses at which the client reaches the server.
pub(super) fn server_addresses(arm: &Arm) -> String {
    let addresses: Vec<String> = arm.server_addresses.iter().map(ToString::to_string).collect();
    if addresses.is_empty() { "those of the host".to_owned() } else { addresses.join(", ") }
}

/// The path and the interfaces that must carry its bytes.
pub(super) fn required_path(arm: &Arm) -> String {
    let path = arm.expect_path.map(|path| {
        String::from(match path {
            PathKind::Vf => "virtual function at both ends",
            PathKind::Synthetic => "synthetic NIC at both ends",
        })
    });
    let interface = |role: Role| Some(format!("{role} {}", arm.expected(role)?));
    let required: Vec<String> = path.into_iter().chain(Role::ALL.into_iter().filter_map(interface)).collect();
    if required.is_empty() { NONE.to_owned() } else { required.join(", ") }
}

/// The maximum rate that the plan states.
pub(super) fn expected_rate(arm: &Arm) -> String {
    arm.expect_mbps.map_or_else(|| NONE.to_owned(), |rate| format!("{rate} Mbit/s"))
}

/// The interfaces that its treatments and events change at each end; absent when they change none.
pub(super) fn changed_interfaces(arm: &Arm) -> Option<String> {
    let at_end = |role: Role| {
        let treatments = arm.treatments.iter().filter(|treatment| treatment.on.includes(role));
        let events = arm.workloads.iter().flat_map(|workload| workload.traffic.facts().events);
        let events = events.filter(|event| event.on.includes(role));
        let of_treatments = treatments.filter_map(|treatment| treatment.action.interface());
        let names = of_treatments.chain(events.filter_map(|event| event.interface.as_deref()));
        let names: Vec<&str> = names.collect::<BTreeSet<&str>>().into_iter().collect();
        (!names.is_empty()).then(|| format!("{role} {}", names.join(" and ")))
    };
    let ends: Vec<String> = Role::ALL.into_iter().filter_map(at_end).collect();
    (!ends.is_empty()).then(|| ends.join(", "))
}

/// The resource groups of what it changes at the provider; absent when it changes nothing there.
pub(super) fn resource_groups(arm: &Arm) -> Option<String> {
    let groups: BTreeSet<&str> =
        arm.treatments.iter().filter_map(|treatment| treatment.action.resource_group()).collect();
    let groups: Vec<&str> = groups.into_iter().collect();
    (!groups.is_empty()).then(|| groups.join(", "))
}
