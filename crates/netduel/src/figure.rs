//! The value of one trial for a progress line, derived as in the report.
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_report::analysis::{Bound, Machines, bound_of, value_of};

/// The trial's value in the metric's unit, and whether it is a bound; absent when the trial lacks it.
pub fn trial_value(plan: &ResolvedPlan, trial: &Trial, metric: Metric) -> Option<(f64, Option<Bound>)> {
    let arm = plan.arm(&trial.slot.arm)?;
    let workload = arm.workload(&trial.slot.workload)?;
    let is_shared = Machines::new(plan, None).shared(trial);
    let value = value_of(metric, workload, trial, is_shared)?;
    Some((value, bound_of(metric, workload, trial, is_shared)))
}
