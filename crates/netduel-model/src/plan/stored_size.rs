//! How large the plan of a stored run may be: a run file may be from elsewhere. A plan that a user writes has limits of its own.
use crate::plan::limits::TRIALS_PER_BLOCK_MAX;
use crate::plan::resolved::ResolvedPlan;

/// Hosts, arms, workloads, and workloads of all arms at most: more than any plan that was run, also if later versions allow more. They are
/// looked for in lists.
const STORED_MAX: usize = 4 * TRIALS_PER_BLOCK_MAX;

impl ResolvedPlan {
    /// What the plan of a stored run has too many of, in words; `None` for one that a user can have written.
    pub fn excess(&self) -> Option<String> {
        let of_arms = self.arms.iter().map(|arm| arm.workloads.len()).fold(0, usize::saturating_add);
        let counts = [
            ("hosts", self.hosts.len()),
            ("arms", self.arms.len()),
            ("workloads", self.workloads.len()),
            ("workloads of arms", of_arms),
        ];
        let (what, count) = counts.into_iter().find(|(_, count)| *count > STORED_MAX)?;
        Some(format!("its plan has {count} {what}, and {STORED_MAX} are allowed"))
    }
}
