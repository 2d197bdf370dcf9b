//! What a search tries and found, in words.
use netduel_model::search::{
    Search, SearchAsk, SearchEnd, SearchGoal, SearchReport, SearchResult, SearchState, SearchStep,
};
use netduel_model::units::{human_nanos, human_si};
use netduel_stats::summary;

use super::text::{percent, percent_exact, plain};
use crate::analysis::{ArmSearch, WorkloadAnalysis};

/// The title of what a report says of searches.
pub const TITLE: &str = "Rate search";

/// A rate of packets.
pub fn rate(packets_per_second: f64) -> String {
    human_si(packets_per_second, "pps")
}

/// What is searched for, for the settings of a workload.
pub(super) fn settings(search: &Search) -> String {
    let goals: Vec<&str> = search.goals.iter().map(|goal| goal.name.as_str()).collect();
    format!("search for {}", goals.join(" and "))
}

/// The load of a step.
pub fn load(step: &SearchStep) -> String {
    rate(step.load as f64)
}

/// What is tried now.
pub fn tries(ask: &SearchAsk) -> String {
    match ask.load {
        Some(load) => format!("trying {} for {}", rate(load as f64), ask.duration),
        None => format!("trying the most for {}", ask.duration),
    }
}

/// What was tried, and what became of it: `trying 1.24 Mpps for 1 s: lost 0.02 %`.
pub fn tried(step: &SearchStep) -> String {
    let lost = lost(step);
    let lost = if step.count.sent == step.count.received {
        "lost nothing".to_owned()
    } else {
        format!("lost {lost}")
    };
    let sent = match step.ask.load {
        None => format!(", sent {}", rate(step.offered)),
        Some(_) if step.fell_short => format!(", sent only {}", rate(step.offered)),
        Some(_) => String::new(),
    };
    format!("{}: {lost}{sent}", tries(&step.ask))
}

/// Share of the packets that were sent and did not arrive.
pub fn lost(step: &SearchStep) -> String {
    let (sent, received) = (step.count.sent, step.count.received);
    percent(sent.saturating_sub(received) as f64 / sent.max(1) as f64)
}

/// How searches are judged.
pub(super) fn rule() -> String {
    "Terms and arithmetic of RFC 9971 (MLRsearch). A load is a lower bound when enough of its trials of the goal's length lose no \
     more than the goal allows, an upper bound when it cannot become one any more; the figure is the conditional throughput: packets \
     per second that arrive at the highest lower bound beneath all upper bounds. What the generator did not send of a load counts as \
     lost when it is more than half of the width."
        .to_owned()
}

/// A goal in one line.
pub fn goal(goal: &SearchGoal) -> String {
    let lost = if goal.loss_ratio == 0.0 {
        "nothing".to_owned()
    } else {
        format!("{} at most", percent_exact(goal.loss_ratio))
    };
    let exceed = match goal.exceed_ratio {
        0.0 => "every one of them".to_owned(),
        share => format!("all but {} of them", percent_exact(share)),
    };
    format!(
        "{}: trials of {}, {} in all at a load, {exceed} losing {lost}; bounds within {}",
        plain(&goal.name),
        goal.final_trial,
        goal.duration_sum,
        percent_exact(goal.width)
    )
}

/// What was found by a result.
pub fn found(result: &SearchResult) -> String {
    let bound = |bound: Option<u64>| bound.map_or("?".to_owned(), |load| rate(load as f64));
    match (result.state, result.lower) {
        (SearchState::Regular, _) => {
            let by =
                if result.limited_by_generator { "; the generator cannot send the upper one" } else { "" };
            format!("between {} and {}{by}", bound(result.lower), bound(result.upper))
        }
        (SearchState::MaxLoadReached, _) => {
            format!("{} or more: no loss at what the generator sends at most", bound(result.lower))
        }
        (SearchState::MinLoadFails, _) => {
            format!("none: too much is lost even at {}", bound(result.upper))
        }
        (SearchState::Unfinished, Some(lower)) => {
            format!("{} or more: the search ended before it was narrowed down", rate(lower as f64))
        }
        (SearchState::Unfinished, None) => match result.narrowed_lower {
            Some(_) => format!(
                "unfinished: short trials alone say between {} and {}",
                bound(result.narrowed_lower),
                bound(result.narrowed_upper)
            ),
            None => "unfinished: nothing is known".to_owned(),
        },
    }
}

/// What a search cost: `17 trials in 24 s`.
pub fn cost(report: &SearchReport) -> String {
    let spent_ns: u64 = report.steps.iter().map(|step| step.count.spent_ns).sum();
    let trials = report.steps.len();
    let plural = if trials == 1 { "" } else { "s" };
    let end = match report.end {
        SearchEnd::Complete => "",
        SearchEnd::Budget => ", and then its time or number of trials was used up",
        SearchEnd::NothingSent => ", in which nothing was sent",
        SearchEnd::Failed => ", and then one failed",
    };
    format!("{trials} trial{plural} in {}{end}", human_nanos(spent_ns as f64))
}

/// How well the generator kept to the rates, over the steps of the searches.
fn pacing<'a>(steps: impl Iterator<Item = &'a SearchStep> + Clone) -> Option<String> {
    let kept = steps.clone().filter(|step| !step.fell_short);
    let errors = kept.filter_map(SearchStep::pacing_error).map(f64::abs);
    let worst = errors.reduce(f64::max)?;
    let late: Vec<f64> = steps
        .filter(|step| !step.fell_short)
        .filter_map(|step| Some(step.count.late_p99_ns? as f64))
        .collect();
    let late = summary::median(&late).map_or(String::new(), |late| {
        format!(", and in the middle trial 99 of 100 bursts left no more than {} late", human_nanos(late))
    });
    Some(format!("rates were kept to {}{late}", percent(worst)))
}

/// Sentences on the searches of a workload, each goal and each arm; empty when it is none.
pub fn sentences(workload: &WorkloadAnalysis) -> Vec<String> {
    let mut sentences = Vec::new();
    for arm in &workload.arms {
        let Some(search) = &arm.search else { continue };
        if sentences.is_empty() {
            sentences.extend(search.goals.iter().map(goal));
        }
        for (index, goal) in search.goals.iter().enumerate() {
            sentences.push(format!(
                "{}, {}: {}",
                plain(arm.arm.as_str()),
                plain(&goal.name),
                states(search, index)
            ));
        }
        let steps = search.trials.iter().flat_map(|(_, report)| &report.steps);
        let pacing = pacing(steps).map_or(String::new(), |pacing| format!("; {pacing}"));
        sentences.push(format!("{}: {}{pacing}", plain(arm.arm.as_str()), costs(search)));
    }
    if !sentences.is_empty() {
        sentences.push(
            "packets, CPU, paths and limits are told of one trial of each search: at the lower bound of its first goal, or its last"
                .to_owned(),
        );
    }
    sentences
}

/// What one search found, each goal with its name, and what it cost.
pub fn of_trial(search: &Search, report: &SearchReport) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = search
        .goals
        .iter()
        .zip(&report.results)
        .map(|(goal, result)| {
            let arrives = result
                .conditional_throughput
                .map_or(String::new(), |throughput| format!("{} arrive; ", rate(throughput)));
            (plain(&goal.name), format!("{arrives}{}", found(result)))
        })
        .collect();
    let pacing = pacing(report.steps.iter()).map_or(String::new(), |pacing| format!("; {pacing}"));
    rows.push(("search".to_owned(), format!("{}{pacing}", cost(report))));
    rows
}

/// The bounds of a goal over the searches of an arm.
fn states(search: &ArmSearch, goal: usize) -> String {
    let results = search.results(goal);
    if let [result] = results.as_slice() {
        return found(result);
    }
    let count = |state: SearchState| results.iter().filter(|result| result.state == state).count();
    let mut parts = Vec::new();
    let regular: Vec<&&SearchResult> =
        results.iter().filter(|result| result.state == SearchState::Regular).collect();
    if !regular.is_empty() {
        let lower = regular.iter().filter_map(|result| result.lower).min();
        let upper = regular.iter().filter_map(|result| result.upper).max();
        let ends = [lower, upper].map(|load| load.map_or("?".to_owned(), |load| rate(load as f64)));
        parts.push(format!("bounds from {} to {} in {} searches", ends[0], ends[1], regular.len()));
        match regular.iter().filter(|result| result.limited_by_generator).count() {
            0 => {}
            limited => parts.push(format!("the generator could not send the upper one in {limited}")),
        }
    }
    for (state, words) in [
        (SearchState::MaxLoadReached, "no limit beneath what the generator sends at most"),
        (SearchState::MinLoadFails, "too much lost even at the lowest rate"),
        (SearchState::Unfinished, "unfinished"),
    ] {
        match count(state) {
            0 => {}
            count => parts.push(format!("{words} in {count}")),
        }
    }
    parts.join("; ")
}

fn costs(search: &ArmSearch) -> String {
    if let [(_, report)] = search.trials.as_slice() {
        return cost(report);
    }
    let steps: usize = search.trials.iter().map(|(_, report)| report.steps.len()).sum();
    let all = search.trials.iter().flat_map(|(_, report)| &report.steps);
    let spent_ns: u64 = all.map(|step| step.count.spent_ns).sum();
    let searches = search.trials.len();
    format!(
        "{searches} searches of {:.0} trials and {} each on average",
        steps as f64 / searches as f64,
        human_nanos(spent_ns as f64 / searches as f64)
    )
}
