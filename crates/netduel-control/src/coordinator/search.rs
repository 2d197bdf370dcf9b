//! A trial that is a search: many short steps between the same two agents, under one application of the arm's treatments.
//! [`RateSearch`] chooses rates and judges results; this file runs traffic and counts.
use std::collections::BTreeMap;

use netduel_model::event::Event;
use netduel_model::plan::Arm;
use netduel_model::sample::EndReport;
use netduel_model::search::{
    Search, SearchEnd, SearchGoal, SearchInput, SearchOutput, SearchReport, SearchStep,
};
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::units::Nanos;
use netduel_model::workload::{Role, Timing, Traffic, Workload};
use netduel_stats::histogram::Histogram;
use netduel_stats::search::{Next, RateSearch};

use super::conductor::Conductor;
use super::error::{PlanFault, RunError, TrialError};
use super::trial::path_of;

/// Steps whose ends may become those of the trial.
#[derive(Default)]
struct Kept {
    /// By load: the last step that [`stands_for`] the first goal.
    good: BTreeMap<u64, (u32, [TrialEnd; 2])>,
    last: Option<(u32, [TrialEnd; 2])>,
}

impl Conductor<'_> {
    /// Searches, and returns the ends of the step that represents the search. After a failed step, earlier results are kept.
    pub(super) fn search(
        &mut self,
        arm: &Arm,
        workload: &Workload,
        search: &Search,
        trial: &mut Trial,
    ) -> Result<[TrialEnd; 2], TrialError> {
        let mut rates =
            RateSearch::new(search.clone(), workload.timing.duration).map_err(PlanFault::Search)?;
        let mut kept = Kept::default();
        let stopped = self.steps(arm, (workload, search), &mut rates, &mut kept);
        let results = rates.results();
        let lower = results.first().and_then(|result| result.lower);
        let shown = match stopped {
            Ok(Stop::Over(_)) => lower.and_then(|load| kept.good.remove(&load)).or(kept.last),
            _ => kept.last,
        };
        let end = match stopped {
            Ok(Stop::Over(end)) => end,
            _ => SearchEnd::Failed,
        };
        let (index, ends) = shown.unzip();
        trial.search = Some(SearchReport { steps: rates.into_steps(), results, end, stored_step: index });
        stopped?;
        ends.ok_or(PlanFault::SearchTooShort.into())
    }

    fn steps(
        &mut self,
        arm: &Arm,
        (workload, search): (&Workload, &Search),
        rates: &mut RateSearch,
        kept: &mut Kept,
    ) -> Result<Stop, TrialError> {
        loop {
            let ask = match rates.wanted() {
                Next::Measure(ask) => ask,
                Next::Ended(end) => return Ok(Stop::Over(end)),
            };
            self.tell(Event::SearchTries { input: ask });
            let start_ns = self.hosts.clock.now_ns();
            self.hosts.clock.wait(search.settle());
            let of_step = step(workload, ask);
            let [client, server] = self.once(arm, &of_step)?;
            let effective_duration_ns = self.hosts.clock.now_ns().saturating_sub(start_ns);
            let count = count(&of_step.traffic, ask, [&client.report, &server.report], effective_duration_ns);
            let count = count.map_err(|missing| {
                let host = arm.pair.host(missing.end).clone();
                RunError::Incomplete { host, count: missing.count }
            })?;
            let index = rates.steps().len() as u32;
            let step = rates.record(ask, count);
            let is_good = search.goals.first().is_some_and(|goal| stands_for(goal, &step));
            self.tell(Event::SearchTried { step: step.clone() });
            let is_wrong = !path_of(self.hosts.plan, arm, workload, [&client, &server]).1.is_empty();
            if is_good {
                kept.good.insert(step.load, (index, [client.clone(), server.clone()]));
            }
            kept.last = Some((index, [client, server]));
            if is_wrong {
                // The last step becomes the trial's, whose path is judged again.
                return Ok(Stop::WrongPath);
            }
        }
    }
}

/// Whether a step may represent the result of a goal. Each step counts for every goal. `high_loss` is relative to the goal that requested
/// the step, so it is not used here.
fn stands_for(goal: &SearchGoal, step: &SearchStep) -> bool {
    step.input.load.is_some() && step.input.duration >= goal.final_trial && step.loss_ratio <= goal.loss_ratio
}

/// Why the search stops.
#[derive(Clone, Copy)]
enum Stop {
    /// The search is over.
    Over(SearchEnd),
    /// The bytes of a step took the wrong path.
    WrongPath,
}

/// The workload of one step.
fn step(workload: &Workload, ask: SearchInput) -> Workload {
    let mut workload = workload.clone();
    workload.timing = Timing { duration: ask.duration, warmup: Nanos(0), cooldown: Nanos(0) };
    workload.traffic.set_step(ask.load);
    workload
}

/// A count that the report of an end lacks.
struct Missing {
    end: Role,
    count: &'static str,
}

/// The counts of both ends in a step.
fn count(
    traffic: &Traffic,
    ask: SearchInput,
    [client, server]: [&EndReport; 2],
    effective_duration_ns: u64,
) -> Result<SearchOutput, Missing> {
    let direction = traffic.facts().bulk.expect("a workload that can search sends packets");
    let mut count = SearchOutput {
        sent: 0,
        received: 0,
        elapsed_ns: 0,
        effective_duration_ns,
        pacing_error_p99_ns: None,
    };
    let ends = [(Role::Client, client), (Role::Server, server)];
    let directions = [(direction.client_sends(), ends), (direction.server_sends(), [ends[1], ends[0]])];
    for (_, [(from, sender), (to, receiver)]) in directions.into_iter().filter(|(sends, _)| *sends) {
        let sent = sender.sent.as_ref().ok_or(Missing { end: from, count: "sent packets" })?;
        count.sent = count.sent.saturating_add(sent.messages);
        let received = receiver.datagrams.as_ref().ok_or(Missing { end: to, count: "received packets" })?;
        count.received = count.received.saturating_add(received.unique);
        let moved_ns = sent.last_ns.zip(sent.first_ns).map_or(0, |(last, first)| last.saturating_sub(first));
        // A paced sender follows its schedule for the whole duration. One that fell behind sent the rest after the end, and so offered a
        // lower rate.
        let least_ns = ask.load.map_or(0, |_| ask.duration.0);
        count.elapsed_ns = count.elapsed_ns.max(moved_ns).max(least_ns);
        let late = sender.datagrams_sent.as_ref().and_then(|report| report.pacing_error.as_ref());
        // A record that contradicts itself is that of an end without a percentile.
        let late = late.and_then(|record| Histogram::from_record(record).ok()?.percentile(99.0));
        count.pacing_error_p99_ns = count.pacing_error_p99_ns.max(late);
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use netduel_model::sample::{DatagramReport, Flow};
    use netduel_model::search::{SearchPreset, SearchPurpose};

    use super::*;

    /// Counts are an agent's: a wrong one must not end the program.
    #[test]
    fn counts_beyond_the_range_of_a_number_are_the_largest() {
        let plan = include_str!("../../../../plans/pps.toml");
        let mut plan = netduel_model::plan::parse(plan, "pps.toml").expect("a valid plan");
        let traffic = &mut plan.arms[0].workloads[0].traffic;
        if let Traffic::Pps(settings) = traffic {
            settings.udp.direction = netduel_model::workload::Direction::Both;
        }
        let end = |role| {
            let mut report = EndReport::new(role);
            report.sent = Some(Flow { messages: u64::MAX, ..Flow::default() });
            report.datagrams = Some(DatagramReport { unique: u64::MAX, ..DatagramReport::default() });
            report
        };
        let ask = SearchInput { load: None, duration: Nanos(1), goal: 0, purpose: SearchPurpose::Maximum };
        let ends = [&end(Role::Client), &end(Role::Server)];
        let count = count(traffic, ask, ends, 1).ok().expect("no count is missing");
        assert_eq!((count.sent, count.received), (u64::MAX, u64::MAX));
    }

    #[test]
    fn step_represents_a_goal_by_the_loss_ratio_of_that_goal() {
        let step = |goal, duration, lost, load| SearchStep {
            input: SearchInput { load, duration, goal, purpose: SearchPurpose::Confirm },
            output: SearchOutput {
                sent: 100,
                received: 100,
                elapsed_ns: 1,
                effective_duration_ns: 1,
                pacing_error_p99_ns: None,
            },
            load: 1000,
            offered_load: 1000.0,
            loss_ratio: lost,
            generator_limited: false,
            high_loss: false,
        };
        let goal = SearchPreset::NoDrop.goal();
        let (full, short, load) = (goal.final_trial, goal.initial_trial, Some(1000));
        assert!(stands_for(&goal, &step(0, full, 0.0, load)));
        assert!(stands_for(&goal, &step(1, full, 0.0, load)));
        assert!(!stands_for(&goal, &step(1, full, 0.004, load)), "little enough for another goal");
        assert!(!stands_for(&goal, &step(0, short, 0.0, load)));
        assert!(!stands_for(&goal, &step(0, full, 0.0, None)));
    }
}
