//! Results of rate searches: the value of a trial, and all searches of an arm.
use netduel_model::metric::Metric;
use netduel_model::search::{SearchGoal, SearchReport, SearchResult};
use netduel_model::trial::Trial;
use netduel_model::workload::Workload;

/// The searches of an arm.
#[derive(Debug, Clone)]
pub struct ArmSearch {
    /// The search settings.
    pub goals: Vec<SearchGoal>,
    /// Block, steps and results of each valid trial. At least one.
    pub trials: Vec<(u32, SearchReport)>,
}

impl ArmSearch {
    /// The results for a goal, in the order of the trials.
    pub fn results(&self, goal: usize) -> Vec<&SearchResult> {
        self.trials.iter().filter_map(|(_, report)| report.results.get(goal)).collect()
    }

    /// The representative trial: the median by the result for the first goal (the lower of two).
    pub fn middle(&self) -> Option<&(u32, SearchReport)> {
        let found = |report: &SearchReport| {
            report.results.first().and_then(|result| result.conditional_throughput).unwrap_or(0.0)
        };
        let mut ordered: Vec<&(u32, SearchReport)> = self.trials.iter().collect();
        ordered.sort_by(|(_, one), (_, other)| found(one).total_cmp(&found(other)));
        ordered.get(ordered.len().saturating_sub(1) / 2).copied()
    }
}

/// The goals of a search workload.
fn goals(workload: &Workload) -> Option<&[SearchGoal]> {
    let search = workload.traffic.facts().packets?.search.as_ref()?;
    Some(&search.goals)
}

/// The searches of an arm's valid trials; absent for other workloads and without trials.
pub(super) fn of_arm(workload: &Workload, trials: &[&Trial]) -> Option<ArmSearch> {
    let goals = goals(workload)?.to_vec();
    let report = |trial: &&Trial| Some((trial.slot.block, trial.search.clone()?));
    let trials: Vec<(u32, SearchReport)> = trials.iter().filter_map(report).collect();
    (!trials.is_empty()).then_some(ArmSearch { goals, trials })
}

/// The result of a trial for the first goal that yields the metric.
fn result<'a>(metric: Metric, workload: &Workload, trial: &'a Trial) -> Option<&'a SearchResult> {
    let goal = goals(workload)?.iter().position(|goal| goal.metric() == metric)?;
    trial.search.as_ref()?.results.get(goal)
}

/// Packets per second received at the highest rate that met the goal; absent when none did.
pub(super) fn rate(metric: Metric, workload: &Workload, trial: &Trial) -> Option<f64> {
    result(metric, workload, trial)?.conditional_throughput
}

/// Whether a search has no value because it found no rate that meets the goal: the lowest one failed, or the search ended first.
pub(super) fn has_no_rate(metric: Metric, workload: &Workload, trial: &Trial) -> bool {
    result(metric, workload, trial).is_some_and(|result| result.conditional_throughput.is_none())
}

/// Whether the result is a lower bound: the highest tested rate met the goal.
pub(super) fn is_at_least(metric: Metric, workload: &Workload, trial: &Trial) -> bool {
    result(metric, workload, trial)
        .is_some_and(|result| result.conditional_throughput.is_some() && result.is_at_least())
}
