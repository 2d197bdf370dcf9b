//! Facts of an arm that its settings do not fix: where its traffic goes, and which path it must use. Arms are matched elsewhere.
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
