//! A warning before runs that the daily shutdown of their bed may end. Nothing is refused: the estimate is rough, and runs may end earlier.
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::plan::{ResolvedPlan, TreatmentAction};

use super::session::now_unix_s;
use crate::console::tell;

/// Time of a switch of a NIC with its verification in the guest, seconds.
const SWITCH_S: f64 = 20.0;
/// Time of a change of the placement of a VM, seconds: it is stopped and started, which takes some minutes.
const MOVE_S: f64 = 180.0;

/// Warns when runs that begin now may reach the next shutdown of their bed.
pub fn warn<'p>(
    bed: &str,
    shutdown: Option<ShutdownTime>,
    plans: impl IntoIterator<Item = &'p ResolvedPlan>,
) {
    let runs_s: f64 = plans.into_iter().map(longest_s).sum();
    if let Some(warning) = shutdown.and_then(|time| warning(bed, time, now_unix_s(), runs_s)) {
        tell(&warning);
    }
}

fn warning(bed: &str, time: ShutdownTime, now_unix_s: u64, runs_s: f64) -> Option<String> {
    let left_s = time.next_unix_s(now_unix_s).saturating_sub(now_unix_s);
    (runs_s >= left_s as f64).then(|| {
        format!(
            "warning: the daily shutdown of the bed {bed} at {time} UTC is in {} min, and its runs may take {:.0} min: it stops the VMs, and the \
             run then fails; begin earlier, or name a later `shutdown` in the bed file and repeat `netduel azure up`",
            left_s / 60,
            (runs_s / 60.0).ceil()
        )
    })
}

/// The longest time that a run may be expected to take, seconds. In each block a NIC is switched for its arm, and a VM is moved and returned.
fn longest_s(plan: &ResolvedPlan) -> f64 {
    let treatments = plan.arms.iter().flat_map(|arm| &arm.treatments);
    let changes = treatments.map(|treatment| match treatment.action {
        TreatmentAction::AzureNic { .. } => SWITCH_S,
        TreatmentAction::AzurePlacement { .. } => 2.0 * MOVE_S,
        _ => 0.0,
    });
    let changes_s: f64 = changes.sum();
    let blocks = f64::from(plan.design.blocks_max);
    let block_s = crate::plan::block_s(plan);
    // Arms of a crossover exchange their hosts once.
    if plan.design.crossover {
        return blocks * block_s + changes_s;
    }
    let block_s = block_s + changes_s;
    // No block begins after the budget, and one that has begun is finished.
    let all_s = blocks * block_s;
    plan.design.budget.map_or(all_s, |budget| all_s.min(budget.as_secs_f64() + block_s))
}

#[cfg(test)]
mod tests {
    use netduel_model::plan;
    use netduel_model::units::Nanos;

    use super::*;

    /// 2026-11-22T18:30:07Z.
    const NOW_UNIX_S: u64 = 1_795_372_207;

    fn plan(name: &str) -> ResolvedPlan {
        let path = format!("{}/../../plans/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        plan::parse(&text, name).unwrap_or_else(|errors| panic!("{errors}"))
    }

    #[test]
    fn run_that_may_reach_the_shutdown_is_warned_of() {
        let warned = |runs_s: f64| warning("x", ShutdownTime::DEFAULT, NOW_UNIX_S, runs_s);
        assert_eq!(warned(1700.0), None);
        let text = warned(1800.0).unwrap();
        assert!(text.contains("bed x at 19:00 UTC is in 29 min, and its runs may take 30 min: "), "{text}");
    }

    #[test]
    fn time_of_a_run_has_the_stops_of_its_vms() {
        let mut plan = plan("azure-latency.toml");
        let traffic_s = crate::plan::block_s(&plan) * f64::from(plan.design.blocks_max);
        let all_s = longest_s(&plan);
        assert!(traffic_s < 1800.0 && all_s > 3600.0, "{traffic_s} {all_s}");
        // One block.
        plan.design.budget = Some(Nanos(0));
        assert!(longest_s(&plan) < 3600.0, "{}", longest_s(&plan));
    }
}
