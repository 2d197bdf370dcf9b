//! Comparisons between runs that do not exist: what the first run judges, and another run has no verdict on. Nothing is decided here.
use netduel_model::ids::{ArmName, WorkloadName};

use crate::analysis::MetricAnalysis;
use crate::analysis::compare::{RunComparison, RunVerdict, Subject, Unmatched};
use crate::words;

/// A metric of a workload of an arm in which a run is not compared with the first one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Missing<'a> {
    /// Position of the run.
    pub(crate) run: usize,
    /// The arm of the first run.
    pub(crate) arm: &'a ArmName,
    /// Its workload.
    pub(crate) workload: &'a WorkloadName,
    /// The metric, as the first run judges it.
    pub(crate) metric: &'a MetricAnalysis,
}

/// Each of them, in the order of the first run.
pub(crate) fn of<'a>(comparison: &'a RunComparison<'_>) -> Vec<Missing<'a>> {
    let Some(first) = comparison.runs.first() else { return Vec::new() };
    let mut missing = Vec::new();
    for workload in &first.analysis.workloads {
        for metric in &workload.judged {
            for arm in &workload.arms {
                let of_run = move |run| Missing { run, arm: &arm.arm, workload: &workload.name, metric };
                let all = (1..comparison.runs.len()).map(of_run);
                missing.extend(all.filter(|one| !one.is_compared(comparison)));
            }
        }
    }
    missing
}

impl Missing<'_> {
    fn is_compared(&self, comparison: &RunComparison<'_>) -> bool {
        let is_own = |one: &&Subject| one.arm == *self.arm && one.workload.name == *self.workload;
        let is_it = |one: &RunVerdict| one.run == self.run && one.metric == self.metric.metric;
        comparison.subjects.iter().filter(is_own).flat_map(|subject| &subject.verdicts).any(is_it)
    }

    /// Whether the arm or the workload is not compared for this reason.
    fn is_by(&self, one: &Unmatched) -> bool {
        one.run == self.run
            && one.arm.as_ref().is_none_or(|arm| arm == self.arm)
            && one.workload.as_ref().is_none_or(|workload| workload == self.workload)
    }

    /// Why there is no verdict: `not compared: arm accelerated: A has it, B does not`.
    pub(crate) fn reason(&self, comparison: &RunComparison<'_>) -> String {
        match comparison.unmatched.iter().find(|one| self.is_by(one)) {
            Some(one) => format!("not compared: {}", words::compare::unmatched(comparison, one)),
            None => "not compared".to_owned(),
        }
    }
}
