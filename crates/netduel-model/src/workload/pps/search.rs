//! The search of `pps`: its goals with every default, and what makes none.
use crate::packet_path::{PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::search::{SearchGoalSpec, SearchSpec};
use crate::search::{Search, SearchGoal, SearchPreset, TRIALS_MAX};
use crate::units::{Nanos, Percent};
use crate::workload::setting::{self, Range};
use crate::workload::terms::Direction;

/// The goals that are written, with their defaults.
pub(crate) fn resolve(search: &SearchSpec) -> Search {
    let goals = match search {
        SearchSpec::Presets(presets) => presets.iter().map(|preset| preset.goal()).collect(),
        SearchSpec::Goals(goals) => {
            goals.iter().enumerate().map(|(index, goal)| resolve_goal(goal, index)).collect()
        }
    };
    Search { goals, trials_max: TRIALS_MAX }
}

fn resolve_goal(spec: &SearchGoalSpec, index: usize) -> SearchGoal {
    let preset = spec.like.unwrap_or(SearchPreset::NoDrop).goal();
    let share = |given: Option<Percent>, preset: f64| given.map_or(preset, Percent::fraction);
    let final_trial = spec.final_trial.unwrap_or(preset.final_trial);
    // What follows from a trial that is given keeps its proportion to it.
    let scaled = |of: Nanos| {
        let factor = final_trial.0 as f64 / preset.final_trial.0 as f64;
        Nanos((of.0 as f64 * factor).round() as u64)
    };
    let loss_ratio = share(spec.loss_ratio, preset.loss_ratio);
    SearchGoal {
        name: format!("goal-{}", index + 1),
        final_trial,
        duration_sum: spec.duration_sum.unwrap_or(scaled(preset.duration_sum)),
        loss_ratio,
        exceed_ratio: share(spec.exceed_ratio, preset.exceed_ratio),
        width: share(spec.width, preset.width.max(loss_ratio)),
        initial_trial: spec.initial_trial.unwrap_or(preset.initial_trial.min(final_trial)),
        settle: spec.settle.unwrap_or(preset.settle),
    }
}

/// How long a search may take when the plan does not say: most take a tenth of it.
pub(crate) fn duration(search: &SearchSpec) -> Nanos {
    const BESIDE: u64 = 60_000_000_000;
    let sums: u64 = resolve(search).goals.iter().map(|goal| goal.duration_sum.0).fold(0, u64::saturating_add);
    Nanos(sums.saturating_mul(10).saturating_add(BESIDE).min(setting::DURATION_SUM_MOST))
}

/// Notes goals that make no sense. `path`: where the search stands.
pub(super) fn check_goals(search: &SearchSpec, path: &str, problems: &mut Problems<'_>) {
    let resolved = resolve(search);
    if resolved.goals.is_empty() {
        problems.add(path, "is empty", "name at least one goal, for example \"no-drop\"");
    }
    for (index, goal) in resolved.goals.iter().enumerate() {
        let element = element_path(path, index);
        if resolved.goals[..index].contains(goal) {
            problems.add(&element, "is listed twice", "name each goal once");
        }
        if let SearchSpec::Goals(_) = search {
            check_goal(goal, &element, problems);
        }
    }
}

/// Notes a search whose first step does not fit into its time: it would try no rate. `path`: where the duration stands.
pub(super) fn check_time(search: &SearchSpec, duration: Nanos, path: &str, problems: &mut Problems<'_>) {
    let Some(first) = resolve(search).goals.iter().map(|goal| goal.initial_trial).min() else { return };
    if first > duration {
        let wrong = format!("is \"{duration}\", shorter than the first step of the search, \"{first}\"");
        let allowed = "raise `duration`, leave it out, or set a shorter `initial_trial` in a goal; a search needs many steps";
        problems.add(path, wrong, allowed);
    }
}

fn check_goal(goal: &SearchGoal, path: &str, problems: &mut Problems<'_>) {
    for setting in setting::SEARCH_GOAL {
        let (Some(range), Some(value)) = (setting.range, goal.number(setting.key)) else { continue };
        let (range, why) = if range.contains(value) { part(range, setting.key, goal) } else { (range, "") };
        if !range.contains(value) {
            let wrong = format!("is {}", range.unit.toml(value));
            problems.add(&key_path(path, setting.key), wrong, format!("{}{why}", range.allowed()));
            if setting.key == "final_trial" {
                // The bounds of others follow from it.
                return;
            }
        }
    }
}

/// The part of a range that is left beside the other keys of a goal, and why.
fn part(range: Range, key: &str, goal: &SearchGoal) -> (Range, &'static str) {
    let final_trial = goal.final_trial.0;
    match key {
        "initial_trial" => (Range { most: final_trial, ..range }, ": no longer than `final_trial`"),
        "duration_sum" => {
            let why = ": a load is not decided by less than one `final_trial`";
            (Range { least: final_trial, ..range }, why)
        }
        "width" => {
            let least = range.least.max(goal.number("loss_ratio").unwrap_or_default());
            let why = ", and no less than `loss_ratio`: a rate with more loss could come out lower than one with less (RFC 9971)";
            (Range { least, ..range }, why)
        }
        _ => (range, ""),
    }
}

/// Reports a search with a generator that keeps no rate, with a rate, in both directions, or without loss with a receiver that cannot
/// count losses exactly.
pub(super) fn check(
    packets: &PacketPath,
    (direction, has_rate): (Direction, bool),
    at: &impl Fn(&str) -> String,
    problems: &mut Problems<'_>,
) {
    let Some(search) = &packets.search else { return };
    if !packets.engine.keeps_a_rate() {
        let wrong = format!("needs a generator that keeps a rate; `{}` does not", packets.engine.word());
        let allowed = "use the generator `xdp` or `socket`; without `search`, a trial measures the highest packet rate of this generator";
        problems.add(&at("search"), wrong, allowed);
    } else if packets.receiver == PacketReceiver::Dpdk
        && search.goals.iter().any(|goal| goal.loss_ratio == 0.0)
    {
        let wrong =
            "needs an exact loss count, but the receiver `dpdk` counts all packets that reach its port";
        let allowed = "a packet of another program hides a lost one: use the receiver `socket`, `xdp` or `count`, or goals with a \
                       `loss_ratio`, such as \"partial-drop\"";
        problems.add(&at("search"), wrong, allowed);
    }
    if direction == Direction::Both {
        let wrong = "is \"both\", but a search measures the rate of one direction";
        problems.add(&at("direction"), wrong, "use one workload with `up` and one with `down`");
    }
    if has_rate {
        let allowed = "a search chooses its rates; set one of packet_rate, search";
        problems.add(&at("packet_rate"), "conflicts with `search`", allowed);
    }
}
