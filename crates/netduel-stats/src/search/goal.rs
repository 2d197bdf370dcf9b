//! What a search looks for: the attributes of a search goal of RFC 9971.
//!
//! Checks that a goal makes sense; decides nothing about loads. The goals that have a name are the plan's.

/// One search goal (RFC 9971, section 4.6.7). Names are the standard's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// Final trial duration, nanoseconds: certain trials must be this long before a load is a lower bound. Above 0.
    pub final_trial_ns: u64,
    /// Duration sum, nanoseconds: how much of such trials a load needs at most. Not below `final_trial_ns`, so that evidence is not
    /// bought cheaper than one trial.
    pub duration_sum_ns: u64,
    /// Loss ratio: a trial that loses more is a high-loss trial. 0 to below 1.
    pub loss_ratio: f64,
    /// Exceed ratio: the share of high-loss trials, by duration, that a lower bound may have. 0 to below 1.
    pub exceed_ratio: f64,
    /// Width: how far the bounds may be apart at the end, as a share of the upper one. Above 0, below 1; the standard asks for
    /// no less than the loss ratio.
    pub width: f64,
    /// Initial trial duration, nanoseconds: no trial for this goal is shorter. Above 0, at most `final_trial_ns`.
    pub initial_trial_ns: u64,
}

/// What is wrong with a goal.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum GoalError {
    /// A duration of 0.
    #[error("a trial of 0 s measures nothing")]
    NoDuration,
    /// Trials would begin longer than they end.
    #[error("the initial trial duration is longer than the final one")]
    InitialTooLong,
    /// Less evidence than one trial.
    #[error("the duration sum is shorter than one final trial")]
    SumTooShort,
    /// Not a share of packets.
    #[error("the loss ratio {0} is not within 0 to 1, 1 excluded")]
    LossRatio(f64),
    /// Not a share of trials.
    #[error("the exceed ratio {0} is not within 0 to 1, 1 excluded")]
    ExceedRatio(f64),
    /// No end, or no search.
    #[error("the width {0} is not within 0 to 1, both excluded")]
    Width(f64),
    /// A rate with more loss could come out below one with less (RFC 9971, section 6.6.2).
    #[error("the width {width} is narrower than the loss ratio {loss_ratio}")]
    NarrowerThanLoss {
        /// Of the goal.
        width: f64,
        /// Of the goal.
        loss_ratio: f64,
    },
}

impl Goal {
    /// Whether the goal can be searched for.
    pub fn check(&self) -> Result<(), GoalError> {
        let share = |value: f64| (0.0..1.0).contains(&value);
        if self.final_trial_ns == 0 || self.initial_trial_ns == 0 {
            Err(GoalError::NoDuration)
        } else if self.initial_trial_ns > self.final_trial_ns {
            Err(GoalError::InitialTooLong)
        } else if self.duration_sum_ns < self.final_trial_ns {
            Err(GoalError::SumTooShort)
        } else if !share(self.loss_ratio) {
            Err(GoalError::LossRatio(self.loss_ratio))
        } else if !share(self.exceed_ratio) {
            Err(GoalError::ExceedRatio(self.exceed_ratio))
        } else if !share(self.width) || self.width == 0.0 {
            Err(GoalError::Width(self.width))
        } else if self.width < self.loss_ratio {
            Err(GoalError::NarrowerThanLoss { width: self.width, loss_ratio: self.loss_ratio })
        } else {
            Ok(())
        }
    }

    /// The stages of a search for it: the goal with shorter trials, each at least `STRIDE` times shorter than the next, one
    /// of which decides a load; the goal itself is the last.
    pub(super) fn stages(&self) -> Vec<Self> {
        /// Longest stride from one trial duration to the next. Where loss depends on the duration, a stage finds out with trials
        /// of its length what the next would pay this many times as much for.
        const STRIDE: f64 = 8.0;
        let span = self.final_trial_ns as f64 / self.initial_trial_ns as f64;
        let strides = (span.ln() / STRIDE.ln()).ceil() as i32;
        let shorter = (0..strides).map(|stage| {
            let factor = span.powf(f64::from(stage) / f64::from(strides));
            let trial_ns = (self.initial_trial_ns as f64 * factor) as u64;
            Self { final_trial_ns: trial_ns, duration_sum_ns: trial_ns, initial_trial_ns: trial_ns, ..*self }
        });
        shorter.chain([*self]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const SHORT: Goal = Goal {
        final_trial_ns: 2 * S,
        duration_sum_ns: 6 * S,
        loss_ratio: 0.0,
        exceed_ratio: 0.5,
        width: 0.01,
        initial_trial_ns: S / 2,
    };
    const LONG: Goal =
        Goal { final_trial_ns: 60 * S, duration_sum_ns: 120 * S, initial_trial_ns: S, ..SHORT };

    #[test]
    fn a_goal_that_makes_no_sense_is_refused_with_the_reason() {
        let goal = SHORT;
        assert_eq!(goal.check(), Ok(()));
        for (wrong, expected) in [
            (Goal { initial_trial_ns: 0, ..goal }, GoalError::NoDuration),
            (Goal { initial_trial_ns: goal.final_trial_ns + 1, ..goal }, GoalError::InitialTooLong),
            (Goal { duration_sum_ns: goal.final_trial_ns - 1, ..goal }, GoalError::SumTooShort),
            (Goal { loss_ratio: 1.0, ..goal }, GoalError::LossRatio(1.0)),
            (Goal { exceed_ratio: -0.1, ..goal }, GoalError::ExceedRatio(-0.1)),
            (Goal { width: 0.0, ..goal }, GoalError::Width(0.0)),
            (
                Goal { loss_ratio: 0.02, ..goal },
                GoalError::NarrowerThanLoss { width: 0.01, loss_ratio: 0.02 },
            ),
        ] {
            assert_eq!(wrong.check(), Err(expected));
        }
        assert!(Goal { loss_ratio: f64::NAN, ..goal }.check().is_err());
    }

    #[test]
    fn stages_grow_from_the_initial_to_the_final_trial() {
        let seconds = |goal: Goal| -> Vec<f64> {
            goal.stages().iter().map(|stage| (stage.final_trial_ns as f64 / 1e8).round() / 10.0).collect()
        };
        assert_eq!(seconds(SHORT), [0.5, 2.0]);
        assert_eq!(seconds(LONG), [1.0, 7.7, 60.0]);
        assert_eq!(seconds(Goal { initial_trial_ns: 60 * S, ..LONG }), [60.0]);
        assert_eq!(LONG.stages().last(), Some(&LONG));
    }
}
