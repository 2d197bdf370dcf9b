//! The attributes of a search goal of RFC 9971: validation, and the stages of its search. It selects no loads.
use netduel_model::search::SearchGoal;
use netduel_model::units::Nanos;

/// Errors of a goal.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// A duration of 0.
    #[error("a step of 0 s measures nothing")]
    NoDuration,
    /// Initial trials longer than final ones.
    #[error("the initial trial duration is longer than the final trial duration")]
    InitialTooLong,
    /// Less evidence than one trial.
    #[error("the duration sum is shorter than the final trial duration")]
    SumTooShort,
    /// Not a fraction of packets.
    #[error("the loss ratio {0} is not within 0 to 1, 1 excluded")]
    LossRatio(f64),
    /// Not a fraction of trials.
    #[error("the exceed ratio {0} is not within 0 to 1, 1 excluded")]
    ExceedRatio(f64),
    /// The width allows no end, or no search.
    #[error("the width {0} is not within 0 to 1, both excluded")]
    Width(f64),
    /// A rate with more loss could come out below one with less (RFC 9971, section 6.6.2).
    #[error("the width {width} is narrower than the loss ratio {loss_ratio}")]
    NarrowerThanLoss {
        /// Loss ratio of the goal with less loss.
        width: f64,
        /// Loss ratio of the other goal.
        loss_ratio: f64,
    },
}

/// Whether a search for the goal can end with a result.
pub(super) fn check(goal: &SearchGoal) -> Result<(), GoalError> {
    let share = |value: f64| (0.0..1.0).contains(&value);
    if goal.final_trial.0 == 0 || goal.initial_trial.0 == 0 {
        Err(GoalError::NoDuration)
    } else if goal.initial_trial > goal.final_trial {
        Err(GoalError::InitialTooLong)
    } else if goal.duration_sum < goal.final_trial {
        Err(GoalError::SumTooShort)
    } else if !share(goal.loss_ratio) {
        Err(GoalError::LossRatio(goal.loss_ratio))
    } else if !share(goal.exceed_ratio) {
        Err(GoalError::ExceedRatio(goal.exceed_ratio))
    } else if !share(goal.width) || goal.width == 0.0 {
        Err(GoalError::Width(goal.width))
    } else if goal.width < goal.loss_ratio {
        Err(GoalError::NarrowerThanLoss { width: goal.width, loss_ratio: goal.loss_ratio })
    } else {
        Ok(())
    }
}

/// The stages of a search for a goal: the goal with shorter trials, each at least `STRIDE` times shorter than the next, one of
/// which decides a load. The goal itself is last.
pub(super) fn stages(goal: &SearchGoal) -> Vec<SearchGoal> {
    /// Maximum ratio of consecutive trial durations. Where loss depends on the duration, a stage finds with its trials what the
    /// next stage would find at this multiple of the cost.
    const STRIDE: f64 = 8.0;
    let span = goal.final_trial.0 as f64 / goal.initial_trial.0 as f64;
    let strides = (span.ln() / STRIDE.ln()).ceil() as i32;
    let shorter = (0..strides).map(|stage| {
        let factor = span.powf(f64::from(stage) / f64::from(strides));
        let trial = Nanos((goal.initial_trial.0 as f64 * factor) as u64);
        SearchGoal { final_trial: trial, duration_sum: trial, initial_trial: trial, ..goal.clone() }
    });
    shorter.chain([goal.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use netduel_model::search::SearchPreset;

    use super::*;

    #[test]
    fn unreachable_goal_is_rejected_with_the_reason() {
        let goal = SearchPreset::NoDrop.goal();
        assert_eq!(check(&goal), Ok(()));
        let with = |change: &dyn Fn(&mut SearchGoal)| {
            let mut goal = goal.clone();
            change(&mut goal);
            check(&goal)
        };
        for (refused, expected) in [
            (with(&|goal| goal.initial_trial = Nanos(0)), GoalError::NoDuration),
            (with(&|goal| goal.initial_trial = Nanos(goal.final_trial.0 + 1)), GoalError::InitialTooLong),
            (with(&|goal| goal.duration_sum = Nanos(goal.final_trial.0 - 1)), GoalError::SumTooShort),
            (with(&|goal| goal.loss_ratio = 1.0), GoalError::LossRatio(1.0)),
            (with(&|goal| goal.exceed_ratio = -0.1), GoalError::ExceedRatio(-0.1)),
            (with(&|goal| goal.width = 0.0), GoalError::Width(0.0)),
            (
                with(&|goal| goal.loss_ratio = 0.02),
                GoalError::NarrowerThanLoss { width: 0.01, loss_ratio: 0.02 },
            ),
        ] {
            assert_eq!(refused, Err(expected));
        }
        assert!(with(&|goal| goal.loss_ratio = f64::NAN).is_err());
    }

    #[test]
    fn stages_grow_from_the_initial_to_the_final_trial() {
        let seconds = |goal: &SearchGoal| -> Vec<f64> {
            let tenths = |stage: &SearchGoal| (stage.final_trial.0 as f64 / 1e8).round() / 10.0;
            stages(goal).iter().map(tenths).collect()
        };
        let long = SearchPreset::Tst009.goal();
        assert_eq!(seconds(&SearchPreset::NoDrop.goal()), [0.5, 2.0]);
        assert_eq!(seconds(&long), [1.0, 7.7, 60.0]);
        assert_eq!(seconds(&SearchGoal { initial_trial: long.final_trial, ..long.clone() }), [60.0]);
        assert_eq!(stages(&long).last(), Some(&long));
    }
}
