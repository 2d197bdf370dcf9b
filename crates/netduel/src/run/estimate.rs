//! Estimates the remaining time of a run. Pure: the time comes from the caller, and nothing is printed here.
use netduel_model::plan::ResolvedPlan;

/// Estimates the rest of a run from the trials of this process, and before the first one from the plan.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Traffic of an average trial, nanoseconds.
    planned_trial_ns: u64,
    trials_per_block: u32,
    /// Remaining budget at the start of this process.
    budget_ns: Option<u64>,
    started_ns: u64,
    /// Number of trials finished before this process started.
    done_before: u32,
    total: u32,
}

impl Estimate {
    /// For a run of this plan that starts now, or resumes with `done_before` of `total` trials and `used_ns` of its budget used.
    pub fn new(plan: &ResolvedPlan, now_ns: u64, used_ns: u64, (done_before, total): (u32, u32)) -> Self {
        let trials = plan.arms.iter().flat_map(|arm| &arm.workloads);
        let block_ns: u64 = trials.map(|workload| workload.timing.duration.0).fold(0, u64::saturating_add);
        let trials_per_block = plan.trials_per_block().max(1);
        Self {
            planned_trial_ns: block_ns / u64::from(trials_per_block),
            trials_per_block,
            budget_ns: plan.design.budget.map(|budget| budget.0.saturating_sub(used_ns)),
            started_ns: now_ns,
            done_before,
            total,
        }
    }

    /// Time since this process started or resumed the run.
    pub fn elapsed_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.started_ns)
    }

    /// The remaining time with `done` trials finished: for all trials, or until the budget ends if that is earlier. No block
    /// starts after the budget, but a started block is finished.
    pub fn left_ns(&self, now_ns: u64, done: u32) -> u64 {
        let elapsed = self.elapsed_ns(now_ns);
        let own = done.saturating_sub(self.done_before);
        let trial_ns = if own == 0 { self.planned_trial_ns } else { elapsed / u64::from(own) };
        let all = u64::from(self.total.saturating_sub(done)).saturating_mul(trial_ns);
        let Some(budget) = self.budget_ns else { return all };
        let block_ns = trial_ns.saturating_mul(u64::from(self.trials_per_block)).max(1);
        let blocks = budget.div_ceil(block_ns);
        all.min(blocks.saturating_mul(block_ns).saturating_sub(elapsed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Blocks of four trials of a second each.
    fn estimate(budget_s: Option<u64>, done_before: u32) -> Estimate {
        Estimate {
            planned_trial_ns: S,
            trials_per_block: 4,
            budget_ns: budget_s.map(|seconds| seconds * S),
            started_ns: 100 * S,
            done_before,
            total: 84,
        }
    }

    #[test]
    fn budget_bounds_the_time_left_from_the_beginning() {
        // 84 trials of 1 s, and a budget of 50 s: the last block starts at 48 s.
        assert_eq!(estimate(Some(50), 0).left_ns(100 * S, 0), 52 * S);
        assert_eq!(estimate(Some(50), 0).left_ns(140 * S, 40), 12 * S);
        assert_eq!(estimate(None, 0).left_ns(100 * S, 0), 84 * S);
        // A trial takes 2 s including its overhead: 7 blocks of 8 s.
        assert_eq!(estimate(Some(50), 0).left_ns(108 * S, 4), 48 * S);
    }

    #[test]
    fn resumed_run_is_judged_by_the_trials_of_its_own() {
        // 40 trials were finished before; the first 4 of this process took 2 s each.
        assert_eq!(estimate(None, 40).left_ns(108 * S, 44), 80 * S);
        assert_eq!(estimate(None, 40).left_ns(100 * S, 40), 44 * S);
        assert_eq!(estimate(None, 84).left_ns(100 * S, 84), 0);
    }
}
