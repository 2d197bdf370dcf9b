//! How large the plan of a stored run may be: a run file may be from elsewhere. A plan that a user writes has limits of its own.
use crate::metric::Metric;
use crate::plan::limits::TRIALS_PER_BLOCK_MAX;
use crate::plan::resolved::ResolvedPlan;
use crate::workload::Workload;

/// Hosts, arms, workloads, workloads of all arms, and events of a workload at most: more than any plan that was run, also if later versions allow
/// more. They are looked for in lists.
const STORED_MAX: usize = 4 * TRIALS_PER_BLOCK_MAX;
/// Metrics of a workload at most. A report has a table for each.
const METRICS_MAX: usize = 4 * Metric::ALL.len();

impl ResolvedPlan {
    /// What the plan of a stored run has too many of, in words; `None` for one that a user can have written.
    pub fn excess(&self) -> Option<String> {
        let of_arms = self.arms.iter().map(|arm| arm.workloads.len()).fold(0, usize::saturating_add);
        let largest = |count: fn(&Workload) -> usize| {
            self.arms.iter().flat_map(|arm| &arm.workloads).map(count).max().unwrap_or(0)
        };
        let counts = [
            ("hosts", self.hosts.len(), STORED_MAX),
            ("arms", self.arms.len(), STORED_MAX),
            ("workloads", self.workloads.len(), STORED_MAX),
            ("workloads of arms", of_arms, STORED_MAX),
            ("metrics of a workload", largest(|workload| workload.metrics.len()), METRICS_MAX),
            ("events of a workload", largest(|workload| workload.traffic.facts().events.len()), STORED_MAX),
        ];
        let (what, count, most) = counts.into_iter().find(|(_, count, most)| count > most)?;
        Some(format!("its plan has {count} {what}, and {most} are allowed"))
    }
}
