//! The value of one trial for a progress line, derived as in the report.
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_report::analysis::{Machines, value_of};

/// The trial's value in the metric's unit; absent when the trial lacks it.
pub fn trial_value(plan: &ResolvedPlan, trial: &Trial, metric: Metric) -> Option<f64> {
    let arm = plan.arm(&trial.slot.arm)?;
    let workload = arm.workload(&trial.slot.workload)?;
    value_of(metric, workload, trial, Machines::new(plan, None).shared(&arm.pair))
}
