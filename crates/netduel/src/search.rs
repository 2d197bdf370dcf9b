//! The search for a rate, as a coordinator asks for it: the plan's words in, the arithmetic of `netduel_stats::search`, words out.
use netduel_control::coordinator::Seeker;
use netduel_model::search::{
    Search as Asked, SearchAsk, SearchCount, SearchEnd, SearchGoal, SearchPurpose, SearchResult, SearchState,
    SearchStep,
};
use netduel_model::units::Nanos;
use netduel_stats::search::{
    Ask, Budget, End, Goal, GoalResult, GoalState, Next, Outcome, Purpose, Search, Settings,
};

/// A search under way.
struct Rates {
    search: Search,
    goals: Vec<SearchGoal>,
    end: Option<SearchEnd>,
}

/// Begins a search that may take this long.
///
/// # Errors
/// What is wrong with its goals. A plan that was checked has none such.
pub fn begin(asked: &Asked, most: Nanos) -> Result<Box<dyn Seeker>, String> {
    let goals = asked.goals.iter().map(goal).collect();
    let budget = Budget { trials: asked.trials_max, spent_ns: most.0 };
    let search = Search::new(Settings { goals, max_load: None, budget })
        .map_err(|error| format!("failed to begin a search: {error}"))?;
    Ok(Box::new(Rates { search, goals: asked.goals.clone(), end: None }))
}

impl Seeker for Rates {
    fn wanted(&mut self) -> Option<SearchAsk> {
        match self.search.wanted() {
            Next::Measure(ask) => Some(SearchAsk {
                load: ask.load,
                duration: Nanos(ask.duration_ns),
                goal: ask.goal as u32,
                purpose: match ask.purpose {
                    Purpose::Maximum => SearchPurpose::Maximum,
                    Purpose::Narrow => SearchPurpose::Narrow,
                    Purpose::Confirm => SearchPurpose::Confirm,
                },
            }),
            Next::Ended(end) => {
                self.end = Some(match end {
                    End::Complete => SearchEnd::Complete,
                    End::Budget => SearchEnd::Budget,
                    End::NothingSent => SearchEnd::NothingSent,
                });
                None
            }
        }
    }

    fn record(&mut self, ask: SearchAsk, count: SearchCount) -> SearchStep {
        let purpose = match ask.purpose {
            SearchPurpose::Maximum => Purpose::Maximum,
            SearchPurpose::Narrow => Purpose::Narrow,
            SearchPurpose::Confirm => Purpose::Confirm,
        };
        let asked = Ask { load: ask.load, duration_ns: ask.duration.0, goal: ask.goal as usize, purpose };
        let SearchCount { sent, received, elapsed_ns, spent_ns, .. } = count;
        let step = self.search.record(asked, Outcome { sent, received, elapsed_ns, spent_ns });
        let allowed = self.goals.get(ask.goal as usize).map_or(0.0, |goal| goal.loss_ratio);
        SearchStep {
            ask,
            count,
            load: step.trial.load,
            offered: step.offered,
            loss_ratio: step.trial.loss_ratio,
            fell_short: step.fell_short,
            high_loss: step.trial.loss_ratio > allowed,
        }
    }

    fn found(&mut self) -> (Vec<SearchResult>, Option<SearchEnd>) {
        (self.search.results().iter().map(result).collect(), self.end)
    }
}

fn goal(goal: &SearchGoal) -> Goal {
    Goal {
        final_trial_ns: goal.final_trial.0,
        duration_sum_ns: goal.duration_sum.0,
        loss_ratio: goal.loss_ratio,
        exceed_ratio: goal.exceed_ratio,
        width: goal.width,
        initial_trial_ns: goal.initial_trial.0,
    }
}

fn result(result: &GoalResult) -> SearchResult {
    SearchResult {
        state: match result.state {
            GoalState::Regular => SearchState::Regular,
            GoalState::MaxLoadReached => SearchState::MaxLoadReached,
            GoalState::MinLoadFails => SearchState::MinLoadFails,
            GoalState::Unfinished => SearchState::Unfinished,
        },
        lower: result.bounds.lower,
        upper: result.bounds.upper,
        narrowed_lower: result.narrowed.lower,
        narrowed_upper: result.narrowed.upper,
        conditional_throughput: result.conditional_throughput,
        limited_by_generator: result.limited_by_generator,
    }
}

#[cfg(test)]
mod tests {
    use netduel_model::search::{SearchPreset, TRIALS_MAX};

    use super::*;

    #[test]
    fn every_goal_with_a_name_can_be_searched_for_and_found() {
        for preset in
            [SearchPreset::NoDrop, SearchPreset::PartialDrop, SearchPreset::Rfc2544, SearchPreset::Tst009]
        {
            let asked = Asked { goals: vec![preset.goal()], trials_max: TRIALS_MAX };
            let mut rates = begin(&asked, Nanos(u64::MAX)).unwrap();
            // A path that carries a million packets a second, and a generator of three.
            while let Some(ask) = rates.wanted() {
                let seconds = ask.duration.0 as f64 / 1e9;
                let sent = ask.load.map_or(3e6, |load| load as f64) * seconds;
                let count = SearchCount {
                    sent: sent as u64,
                    received: sent.min(1e6 * seconds) as u64,
                    elapsed_ns: ask.duration.0,
                    spent_ns: ask.duration.0,
                    late_p99_ns: None,
                };
                let step = rates.record(ask, count);
                assert_eq!(step.high_loss, step.loss_ratio > preset.goal().loss_ratio);
            }
            let (results, end) = rates.found();
            assert_eq!((results[0].state, end), (SearchState::Regular, Some(SearchEnd::Complete)));
            let (lower, upper) = (results[0].lower.unwrap() as f64, results[0].upper.unwrap() as f64);
            let truth = 1e6 / (1.0 - preset.goal().loss_ratio);
            assert!(lower <= truth + 1.0 && truth <= upper + 1.0, "{results:?}");
        }
    }
}
