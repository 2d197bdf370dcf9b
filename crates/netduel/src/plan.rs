//! `netduel plan`: check a plan, print the schema.
use netduel_model::plan::ResolvedPlan;
use netduel_report::json::plan::CheckedPlan;

use crate::cli::PlanCommand;
use crate::console::{print, print_json};
use crate::exit::Failure;
use crate::program;
use crate::run::read_plan;

/// Runs the command.
pub fn command(command: &PlanCommand) -> Result<(), Failure> {
    match command {
        PlanCommand::Schema => print_json(&netduel_model::plan::schema()),
        PlanCommand::Check { plan, json } => {
            let (_, resolved) = read_plan(plan)?;
            if json.json {
                return print_json(&CheckedPlan::of(
                    &plan.display().to_string(),
                    &resolved,
                    &program::origin(),
                ));
            }
            let design = &resolved.design;
            let arms: Vec<&str> = resolved.arms.iter().map(|arm| arm.name.as_str()).collect();
            let workloads: Vec<&str> =
                resolved.workloads.iter().map(netduel_model::ids::WorkloadName::as_str).collect();
            let traffic_s: f64 = resolved
                .arms
                .iter()
                .flat_map(|arm| &arm.workloads)
                .map(|workload| workload.timing.duration.as_secs_f64())
                .sum();
            print(&format!(
                "{} is a valid plan: {}\n  arms       {} (baseline {})\n  workloads  {}\n  trials     {} in a block, {} to {} blocks, \
                 {:.0} s to {:.0} s of traffic\n",
                plan.display(),
                resolved.question,
                arms.join(", "),
                arms.first().unwrap_or(&"none"),
                workloads.join(", "),
                resolved.trials_per_block(),
                design.blocks_min,
                design.blocks_max,
                traffic_s * f64::from(design.blocks_min),
                traffic_s * f64::from(design.blocks_max),
            ))?;
            warn_of_few_blocks(&resolved);
            Ok(())
        }
    }
}

/// Warns before the run when its blocks cannot yield a verdict for any difference.
pub fn warn_of_few_blocks(plan: &ResolvedPlan) {
    if let Some((verdicts, needed)) = plan.too_few_blocks() {
        let verdicts =
            if verdicts == 1 { "1 verdict needs".to_owned() } else { format!("{verdicts} verdicts need") };
        crate::console::tell(&format!(
            "warning: {verdicts} at least {needed} blocks before even a difference in every block is significant, and the plan allows {}: \
             raise blocks_max, or list fewer metrics",
            plan.design.blocks_max
        ));
    }
}
