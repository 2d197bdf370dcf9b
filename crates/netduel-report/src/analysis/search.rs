//! What searches for a rate found: the figure of a trial, and all that an arm's trials did.
use netduel_model::metric::Metric;
use netduel_model::search::{SearchGoal, SearchReport, SearchResult};
use netduel_model::trial::Trial;
use netduel_model::workload::Workload;

/// The searches of an arm.
#[derive(Debug, Clone)]
pub struct ArmSearch {
    /// What they looked for.
    pub goals: Vec<SearchGoal>,
    /// Each valid trial: its block, and what it did and found. At least one.
    pub trials: Vec<(u32, SearchReport)>,
}

impl ArmSearch {
    /// The results for a goal, in the order of the trials.
    pub fn results(&self, goal: usize) -> Vec<&SearchResult> {
        self.trials.iter().filter_map(|(_, report)| report.results.get(goal)).collect()
    }

    /// The trial that stands for all: the one in the middle by what it found for the first goal, the lower of two.
    pub fn middle(&self) -> Option<&(u32, SearchReport)> {
        let found = |report: &SearchReport| {
            report.results.first().and_then(|result| result.conditional_throughput).unwrap_or(0.0)
        };
        let mut ordered: Vec<&(u32, SearchReport)> = self.trials.iter().collect();
        ordered.sort_by(|(_, one), (_, other)| found(one).total_cmp(&found(other)));
        ordered.get(ordered.len().saturating_sub(1) / 2).copied()
    }
}

/// The goals of a workload that searches.
fn goals(workload: &Workload) -> Option<&[SearchGoal]> {
    let search = workload.traffic.packets()?.search.as_ref()?;
    Some(&search.goals)
}

/// The searches of an arm's valid trials; absent for other workloads, and without any.
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

/// Packets per second that arrive at the highest rate that was found good. Absent when none was.
pub(super) fn rate(metric: Metric, workload: &Workload, trial: &Trial) -> Option<f64> {
    result(metric, workload, trial)?.conditional_throughput
}

/// Whether the rate that a trial found may be higher.
pub(super) fn is_at_least(metric: Metric, workload: &Workload, trial: &Trial) -> bool {
    result(metric, workload, trial)
        .is_some_and(|result| result.conditional_throughput.is_some() && result.is_at_least())
}
