//! How long a run still takes. Pure: the time of day comes from the caller, and nothing is shown here.
use netduel_model::plan::ResolvedPlan;

/// Estimates the rest of a run from the trials that this process ran, and until there are some from the plan.
#[derive(Debug, Clone)]
pub struct Estimate {
    /// Traffic of an average trial, nanoseconds.
    planned_trial_ns: u64,
    trials_per_block: u32,
    /// What is left of the budget at the start of this process.
    budget_ns: Option<u64>,
    started_ns: u64,
    /// Trials that were done before this process began.
    done_before: u32,
    total: u32,
}

impl Estimate {
    /// For a run of this plan that begins now, or goes on with `done_before` of `total` trials after `used_ns` of its budget.
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

    /// Time since the start of this process's part of the run.
    pub fn elapsed_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.started_ns)
    }

    /// The time that is left with `done` trials done: all trials, or the budget when that ends first. No block is begun after the
    /// budget, and one that was begun is finished.
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
        // 84 trials of a second, and a budget of 50 s: the last block is begun at 48 s.
        assert_eq!(estimate(Some(50), 0).left_ns(100 * S, 0), 52 * S);
        assert_eq!(estimate(Some(50), 0).left_ns(140 * S, 40), 12 * S);
        assert_eq!(estimate(None, 0).left_ns(100 * S, 0), 84 * S);
        // A trial takes two seconds with all that is around it: 7 blocks of 8 s.
        assert_eq!(estimate(Some(50), 0).left_ns(108 * S, 4), 48 * S);
    }

    #[test]
    fn resumed_run_is_judged_by_the_trials_of_its_own() {
        // 40 trials were done before; the first 4 of this process took 2 s each.
        assert_eq!(estimate(None, 40).left_ns(108 * S, 44), 80 * S);
        assert_eq!(estimate(None, 40).left_ns(100 * S, 40), 44 * S);
        assert_eq!(estimate(None, 84).left_ns(100 * S, 84), 0);
    }
}
