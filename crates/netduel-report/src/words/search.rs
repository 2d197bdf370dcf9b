//! Steps and results of a rate search, in words.
use netduel_model::search::{
    Search, SearchEnd, SearchGoal, SearchInput, SearchReport, SearchResult, SearchState, SearchStep,
};
use netduel_model::units::{human_nanos, human_si, plural};
use netduel_stats::summary;

use super::text::{percent, percent_exact, plain};
use crate::analysis::{ArmSearch, WorkloadAnalysis};
use crate::total::Total;

/// The heading of searches.
pub const TITLE: &str = "Rate search";

/// A rate of packets.
pub fn rate(packets_per_second: f64) -> String {
    human_si(packets_per_second, "pps")
}

/// The load of a step.
pub fn load(step: &SearchStep) -> String {
    rate(step.load as f64)
}

/// The current step: `trying 1.24 Mpps for 1 s`.
pub fn tries(ask: &SearchInput) -> String {
    match ask.load {
        Some(load) => format!("trying {} for {}", rate(load as f64), ask.duration),
        None => format!("trying the maximum for {}", ask.duration),
    }
}

/// A step with its result: `trying 1.24 Mpps for 1 s: 0.02 % lost`.
pub fn tried(step: &SearchStep) -> String {
    let lost = lost(step);
    let lost =
        if step.output.sent == step.output.received { "no loss".to_owned() } else { format!("{lost} lost") };
    let sent = match step.input.load {
        None => format!(", sent {}", rate(step.offered_load)),
        // Packets that were not sent count as lost.
        Some(_) if step.generator_limited => {
            return format!(
                "{}: not reached, the generator sent {}; {lost}",
                tries(&step.input),
                rate(step.offered_load)
            );
        }
        Some(_) => String::new(),
    };
    format!("{}: {lost}{sent}", tries(&step.input))
}

/// Lost packets as a share of sent packets.
pub fn lost(step: &SearchStep) -> String {
    let (sent, received) = (step.output.sent, step.output.received);
    percent(sent.saturating_sub(received) as f64 / sent.max(1) as f64)
}

/// The rules of searches.
pub(super) fn rule() -> String {
    "Terms and arithmetic of RFC 9971 (MLRsearch), whose trials are called steps here. A load is a lower bound when enough of its \
     full-length steps lose no more than the goal allows, and an upper bound when it can no longer become one. The result is the conditional throughput: packets received per \
     second at the highest lower bound below all upper bounds. Packets that the generator failed to send count as lost when they exceed \
     half of the goal's width."
        .to_owned()
}

/// A goal in one line.
pub fn goal(goal: &SearchGoal) -> String {
    let lost = if goal.loss_ratio == 0.0 {
        "no loss".to_owned()
    } else {
        format!("loss of at most {}", percent_exact(goal.loss_ratio))
    };
    let exceed = match goal.exceed_ratio {
        0.0 => "in all of them".to_owned(),
        share => format!("in at least {} of them", percent_exact(1.0 - share)),
    };
    format!(
        "{}: steps of {}, {} in total per load, {lost} {exceed}; bounds within {}",
        plain(&goal.name),
        goal.final_trial,
        goal.duration_sum,
        percent_exact(goal.width)
    )
}

/// The bounds of a result.
pub fn found(result: &SearchResult) -> String {
    let bound = |bound: Option<u64>| bound.map_or("?".to_owned(), |load| rate(load as f64));
    match (result.state, result.lower) {
        (SearchState::Regular, _) => {
            let by =
                if result.generator_limited { "; the generator cannot reach the upper bound" } else { "" };
            format!("between {} and {}{by}", bound(result.lower), bound(result.upper))
        }
        (SearchState::MaxLoadReached, _) => {
            format!("at least {}: the goal is met at the maximum rate of the generator", bound(result.lower))
        }
        (SearchState::MinLoadFails, _) => {
            format!("none: loss above the goal even at {}", bound(result.upper))
        }
        (SearchState::Unfinished, Some(lower)) => {
            format!("at least {}: the search ended before it found an upper bound", rate(lower as f64))
        }
        (SearchState::Unfinished, None) => match result.narrowed_lower {
            Some(_) => format!(
                "unfinished: between {} and {} by short steps only",
                bound(result.narrowed_lower),
                bound(result.narrowed_upper)
            ),
            None => "unfinished: no bound found".to_owned(),
        },
    }
}

/// Number and time of the steps of a search: `17 steps in 24 s`.
pub fn cost(report: &SearchReport) -> String {
    let spent_ns: u64 = report.steps.iter().map(|step| step.output.effective_duration_ns).total();
    let steps = plural(report.steps.len(), "step");
    let end = match report.end {
        SearchEnd::Complete => "",
        SearchEnd::Budget => " (stopped: limit of time or steps reached)",
        SearchEnd::NothingSent => " (stopped: the generator sent no packets)",
        SearchEnd::Failed => " (stopped: a step failed)",
    };
    format!("{steps} in {}{end}", human_nanos(spent_ns as f64))
}

/// Accuracy of the generator over the steps of the searches.
fn pacing<'a>(steps: impl Iterator<Item = &'a SearchStep> + Clone) -> Option<String> {
    let kept = steps.clone().filter(|step| !step.generator_limited);
    let errors = kept.filter_map(SearchStep::pacing_error).map(f64::abs);
    let worst = errors.reduce(f64::max)?;
    let late: Vec<f64> = steps
        .filter(|step| !step.generator_limited)
        .filter_map(|step| Some(step.output.pacing_error_p99_ns? as f64))
        .collect();
    let late = summary::median(&late).map_or(String::new(), |late| {
        format!(", p99 lateness of bursts {} (median over steps)", human_nanos(late))
    });
    Some(format!("rate error at most {}{late}", percent(worst)))
}

/// Sentences on the searches of a workload, per goal and arm; empty without a search.
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
            "packets, CPU, paths and bottlenecks are those of one step of each search: the one at the lower bound of its first goal, else its last"
                .to_owned(),
        );
    }
    sentences
}

/// The result of one search, per goal, with number and time of its steps.
pub fn of_trial(search: &Search, report: &SearchReport) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = search
        .goals
        .iter()
        .zip(&report.results)
        .map(|(goal, result)| {
            let arrives = result
                .conditional_throughput
                .map_or(String::new(), |throughput| format!("{} received; ", rate(throughput)));
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
        match regular.iter().filter(|result| result.generator_limited).count() {
            0 => {}
            limited => parts.push(format!("the generator could not reach the upper bound in {limited}")),
        }
    }
    for (state, words) in [
        (SearchState::MaxLoadReached, "the goal is met at the maximum rate of the generator"),
        (SearchState::MinLoadFails, "loss above the goal even at the lowest rate"),
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
    let spent_ns: u64 = all.map(|step| step.output.effective_duration_ns).total();
    let searches = search.trials.len();
    format!(
        "{searches} searches, on average {:.0} steps in {}",
        steps as f64 / searches as f64,
        human_nanos(spent_ns as f64 / searches as f64)
    )
}
