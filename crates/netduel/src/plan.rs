//! `netduel plan`: check a plan, print the schema.
use netduel_model::plan::ResolvedPlan;

use crate::cli::PlanCommand;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::run::{print, read_plan};

/// Runs the command.
pub fn command(command: &PlanCommand) -> Result<(), Failure> {
    match command {
        PlanCommand::Schema => {
            let schema = netduel_model::plan::schema();
            print(&format!("{}\n", serde_json::to_string_pretty(&schema).kind(Kind::Internal)?))
        }
        PlanCommand::Check { plan, json } => {
            let (_, resolved) = read_plan(plan)?;
            if *json {
                return print(&format!(
                    "{}\n",
                    serde_json::to_string_pretty(&resolved).kind(Kind::Internal)?
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
                "{} is a good plan: {}\n  arms       {} (baseline {})\n  workloads  {}\n  trials     {} in a block, {} to {} blocks, \
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

/// Says before anything is run that no verdict can come of it, however large a difference is.
pub fn warn_of_few_blocks(plan: &ResolvedPlan) {
    if let Some((verdicts, needed)) = plan.too_few_blocks() {
        let verdicts =
            if verdicts == 1 { "1 verdict needs".to_owned() } else { format!("{verdicts} verdicts need") };
        eprintln!(
            "warning: {verdicts} at least {needed} blocks before even a difference in every block is evidence, and the plan has {} at \
             most: raise blocks_max, or ask for fewer metrics",
            plan.design.blocks_max
        );
    }
}
