//! The cores that ends selected for their threads, in words.
use netduel_model::observation::Placement;
use netduel_model::units::plural;

use crate::analysis::WorkloadAnalysis;

/// `2,4,6 (queues of eth0 on node 0)`.
pub fn placement(placement: &Placement) -> String {
    let cores: Vec<String> = placement.cores.iter().map(u16::to_string).collect();
    let cores = if cores.is_empty() { "none".to_owned() } else { cores.join(",") };
    format!("{cores} ({})", placement.reason)
}

/// Cores that each end of each arm selected; empty without `pin_client` or `pin_server` = "auto".
pub fn placements(workload: &WorkloadAnalysis) -> Vec<String> {
    let of_arm = |arm: &crate::analysis::ArmAnalysis| {
        let rows = arm.placements.iter().map(|placed| {
            let words = placement(&placed.placement);
            format!("{}: {}: {words}, {}", arm.arm, placed.role, plural(placed.trials, "trial"))
        });
        rows.collect::<Vec<_>>()
    };
    workload.arms.iter().flat_map(of_arm).collect()
}
