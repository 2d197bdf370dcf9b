//! The value of one trial for a progress line, and the median of an arm so far, derived as in the report.
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::Trial;
use netduel_model::workload::{WorkUnit, Workload};
use netduel_report::analysis::{ArmValues, Bound, Machines, bound_of, is_too_bad, value_of};
use netduel_report::words;

/// The result of a valid trial in a metric.
#[derive(Debug, Clone, Copy)]
pub enum TrialResult {
    /// A value in the metric's unit, and what it bounds.
    Value(f64, Option<Bound>),
    /// Too bad for a value: worse than any.
    TooBad,
}

impl TrialResult {
    /// Absent where the trial shows no result, as without a counter.
    pub fn of(plan: &ResolvedPlan, trial: &Trial, metric: Metric) -> Option<Self> {
        let workload = settings(plan, trial)?;
        let is_shared = Machines::new(plan, None).shared(trial);
        match trial_value(plan, trial, metric) {
            Some((value, bound)) => Some(Self::Value(value, bound)),
            None => is_too_bad(metric, workload, trial, is_shared).then_some(Self::TooBad),
        }
    }

    /// Adds it to the results of its arm.
    pub fn keep_in(self, values: &mut ArmValues, block: u32) {
        match self {
            Self::Value(value, bound) => values.insert(block, (value, bound)),
            Self::TooBad => values.insert_without(block),
        }
    }
}

/// The trial's value in the metric's unit, and whether it is a bound; absent when the trial lacks it.
pub fn trial_value(plan: &ResolvedPlan, trial: &Trial, metric: Metric) -> Option<(f64, Option<Bound>)> {
    let workload = settings(plan, trial)?;
    let is_shared = Machines::new(plan, None).shared(trial);
    let value = value_of(metric, workload, trial, is_shared)?;
    Some((value, bound_of(metric, workload, trial, is_shared)))
}

/// The workload of a trial as its arm runs it.
fn settings<'p>(plan: &'p ResolvedPlan, trial: &Trial) -> Option<&'p Workload> {
    plan.arm(&trial.slot.arm)?.workload(&trial.slot.workload)
}

/// The median of an arm's results so far with its unit, and with a sign where it is a bound; `no value` where there is none, or the true one may
/// be lower or higher.
pub fn median_words(metric: Metric, unit: WorkUnit, values: &ArmValues) -> String {
    values.quantile(metric, 0.5).map_or_else(
        || "no value".to_owned(),
        |(median, bound)| words::metric_value_or_bound(metric, unit, median, bound),
    )
}

/// Makes a trial one in which nothing arrived of what was sent.
#[cfg(test)]
pub fn lose_all(trial: &mut Trial) {
    use netduel_model::sample::{DatagramReport, Flow};

    for end in [&mut trial.client, &mut trial.server].into_iter().flatten() {
        end.report.received = end.report.received.take().map(|_| Flow::default());
        end.report.datagrams = end.report.datagrams.take().map(|_| DatagramReport::default());
    }
}
