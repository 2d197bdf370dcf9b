//! Which trials of a file belong to its run: those that the schedule of its plan has, each at one position and once between two starts of
//! the run. It reads no file and judges no value.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::plan::ResolvedPlan;
use netduel_model::trial::{Slot, Trial};

/// The trials of a file that belong to its run, so far.
#[derive(Debug, Default)]
pub(crate) struct Belonging {
    /// The position of the first valid trial of a block, arm and workload. The order of a block is that of the run's seed, in every attempt.
    positions: BTreeMap<(u32, ArmName, WorkloadName), u32>,
    /// Slots and attempts since the run was started or resumed.
    since_start: BTreeSet<(Slot, u32)>,
}

impl Belonging {
    /// The run was resumed. A run that an earlier version resumed after damage has an attempt at a slot again.
    pub(crate) fn resumed(&mut self) {
        self.since_start.clear();
    }

    /// Why the next trial of the file is not one of the run.
    pub(crate) fn fault(&self, plan: &ResolvedPlan, trial: &Trial) -> Option<String> {
        let Slot { block, position, arm, workload } = &trial.slot;
        let Some(of_plan) = plan.arm(arm) else {
            return Some(format!("it does not belong to this run: the plan has no arm {arm}"));
        };
        if of_plan.workload(workload).is_none() {
            return Some(format!("it does not belong to this run: the plan has no workload {workload}"));
        }
        let (number, blocks_max) = (u64::from(*block) + 1, plan.design.blocks_max);
        if *block >= blocks_max {
            return Some(format!(
                "it does not belong to this run: it is of block {number}, and the last block of the plan is block {blocks_max}"
            ));
        }
        let is_moved = trial.is_valid()
            && self
                .positions
                .get(&(*block, arm.clone(), workload.clone()))
                .is_some_and(|known| known != position);
        (is_moved || self.since_start.contains(&(trial.slot.clone(), trial.attempt))).then(|| {
            format!("it does not belong to this run: block {number} has another trial of {arm} in {workload}")
        })
    }

    /// Adds a trial of the run.
    pub(crate) fn add(&mut self, trial: &Trial) {
        let Slot { block, position, arm, workload } = trial.slot.clone();
        self.since_start.insert((trial.slot.clone(), trial.attempt));
        if trial.is_valid() {
            self.positions.entry((block, arm, workload)).or_insert(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::trial::Validity;

    use super::*;

    /// Arms `synthetic` and `accelerated`, workloads `stream` and `requests`, ten blocks at most.
    fn plan() -> ResolvedPlan {
        let text = include_str!("../../../plans/demo.toml");
        netduel_model::plan::parse(text, "plans/demo.toml").expect("a valid plan")
    }

    fn trial([block, position, attempt]: [u32; 3], arm: &str, workload: &str) -> Trial {
        let (arm, workload) =
            (ArmName::new(arm).expect("a name"), WorkloadName::new(workload).expect("a name"));
        Trial::new(Slot { block, position, arm, workload }, attempt, 0)
    }

    /// As [`Belonging::fault`], and adds a trial of the run.
    fn next(belonging: &mut Belonging, plan: &ResolvedPlan, trial: &Trial) -> Option<String> {
        let fault = belonging.fault(plan, trial);
        if fault.is_none() {
            belonging.add(trial);
        }
        fault
    }

    #[test]
    fn trial_that_the_plan_does_not_have_does_not_belong() {
        let plan = plan();
        let mut belonging = Belonging::default();
        for (slot, arm, workload, words) in [
            ([0, 0, 0], "other", "stream", Some("the plan has no arm other")),
            ([0, 0, 0], "synthetic", "other", Some("the plan has no workload other")),
            (
                [u32::MAX, 0, 0],
                "synthetic",
                "stream",
                Some("it is of block 4294967296, and the last block of the plan is block 10"),
            ),
            ([10, 0, 0], "synthetic", "stream", Some("it is of block 11")),
            ([9, 0, 0], "synthetic", "stream", None),
        ] {
            let trial = trial(slot, arm, workload);
            let fault = next(&mut belonging, &plan, &trial);
            assert_eq!(fault.is_some(), words.is_some(), "{fault:?}");
            assert!(fault.unwrap_or_default().contains(words.unwrap_or_default()), "{words:?}");
        }
    }

    #[test]
    fn second_trial_of_an_arm_and_workload_in_a_block_does_not_belong() {
        let plan = plan();
        let mut belonging = Belonging::default();
        let first = trial([0, 2, 0], "synthetic", "stream");
        assert_eq!(next(&mut belonging, &plan, &first), None);
        let fault = next(&mut belonging, &plan, &trial([0, 1, 0], "synthetic", "stream"));
        assert!(
            fault.is_some_and(|fault| fault.contains("block 1 has another trial of synthetic in stream"))
        );
        // The same slot, as where the orders of two runs agree.
        assert!(next(&mut belonging, &plan, &first).is_some());
        assert_eq!(next(&mut belonging, &plan, &trial([0, 1, 0], "synthetic", "requests")), None);
        assert_eq!(next(&mut belonging, &plan, &trial([1, 1, 0], "synthetic", "stream")), None);
    }

    #[test]
    fn repeated_block_belongs_and_an_earlier_version_repeated_it_with_the_same_attempt() {
        let plan = plan();
        let mut belonging = Belonging::default();
        let excluded = Trial {
            validity: Validity::Failed { reason: "no answer".to_owned() },
            ..trial([0, 2, 0], "synthetic", "stream")
        };
        assert_eq!(next(&mut belonging, &plan, &excluded), None);
        assert_eq!(next(&mut belonging, &plan, &trial([0, 2, 1], "synthetic", "stream")), None);
        belonging.resumed();
        assert_eq!(next(&mut belonging, &plan, &trial([0, 2, 1], "synthetic", "stream")), None);
    }
}
