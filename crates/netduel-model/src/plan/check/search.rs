//! The search of `pps`: its goals with every default, and what makes none.
use crate::packet_path::{PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::spec::{SearchGoalSpec, SearchSpec, WorkloadSpec, WorkloadType};
use crate::search::{Search, SearchGoal, SearchPreset, TRIALS_MAX};
use crate::units::{Bytes, Nanos, Percent};
use crate::workload::{Direction, Traffic};

/// A trial shorter than this is mostly its beginning and its end.
const TRIAL_LEAST: Nanos = Nanos::from_millis(100);
const TRIAL_MOST: Nanos = Nanos(3_600_000_000_000);
const SETTLE_MOST: Nanos = Nanos(60_000_000_000);
const SUM_MOST: Nanos = Nanos(24 * 3_600_000_000_000);
/// Narrower than pacing and clocks allow.
const WIDTH_LEAST: Percent = Percent(0.05);
const WIDTH_MOST: Percent = Percent(50.0);
/// Of each socket, when the plan does not say: some 700 packets. A large buffer takes for seconds what the program does not, and a
/// trial of 2 s would lose nothing at a rate that cannot last.
const WINDOW: Bytes = Bytes(256 << 10);

/// The goals that are written, with their defaults.
fn resolve(search: &SearchSpec) -> Search {
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
pub(super) fn duration(search: &SearchSpec) -> Nanos {
    const BESIDE: u64 = 60_000_000_000;
    let sums: u64 = resolve(search).goals.iter().map(|goal| goal.duration_sum.0).fold(0, u64::saturating_add);
    Nanos(sums.saturating_mul(10).saturating_add(BESIDE).min(SUM_MOST.0))
}

/// Has each trial of a workload search, when its plan says so.
pub(super) fn lay(workload: &WorkloadSpec, traffic: &mut Traffic) {
    if let (Some(search), Traffic::Pps(pps)) = (&workload.search, traffic) {
        pps.packets.search = Some(resolve(search));
        pps.udp.tuning.window = pps.udp.tuning.window.or(Some(WINDOW));
    }
}

/// Notes goals that make no sense.
pub(super) fn check(workload: &WorkloadSpec, path: &str, problems: &mut Problems<'_>) {
    let Some(search) = &workload.search else { return };
    let path = key_path(path, "search");
    if workload.kind.is_some_and(|kind| kind != WorkloadType::Pps) {
        problems.add(&path, "is a key of another type", "only pps searches for a rate");
    }
    let resolved = resolve(search);
    if resolved.goals.is_empty() {
        problems.add(&path, "is empty", "name at least one goal, for example \"no-drop\"");
    }
    for (index, goal) in resolved.goals.iter().enumerate() {
        let element = element_path(&path, index);
        if resolved.goals[..index].contains(goal) {
            problems.add(&element, "is there twice", "name each goal once");
        }
        if let SearchSpec::Goals(_) = search {
            check_goal(goal, &element, problems);
        }
    }
}

fn check_goal(goal: &SearchGoal, path: &str, problems: &mut Problems<'_>) {
    let trial = goal.final_trial;
    if trial < TRIAL_LEAST || trial > TRIAL_MOST {
        let allowed = format!("\"{TRIAL_LEAST}\" to \"{TRIAL_MOST}\" is allowed");
        return problems.add(&key_path(path, "final_trial"), format!("is \"{trial}\""), allowed);
    }
    let mut range = |key: &str, value: Nanos, (least, most): (Nanos, Nanos), why: &str| {
        if value < least || value > most {
            let allowed = format!("\"{least}\" to \"{most}\" is allowed: {why}");
            problems.add(&key_path(path, key), format!("is \"{value}\""), allowed);
        }
    };
    range("initial_trial", goal.initial_trial, (TRIAL_LEAST, trial), "no longer than `final_trial`");
    range("settle", goal.settle, (Nanos(0), SETTLE_MOST), "after a longer one a trial says nothing else");
    let why = "a load is not decided by less than one `final_trial`";
    range("duration_sum", goal.duration_sum, (trial, SUM_MOST), why);
    let mut share = |key: &str, value: f64, range: std::ops::Range<f64>, allowed: &str| {
        if !range.contains(&value) {
            problems.add(&key_path(path, key), format!("is {}", Percent(value * 100.0)), allowed);
        }
    };
    share("loss_ratio", goal.loss_ratio, 0.0..0.5, "0 % to less than 50 % is allowed");
    share("exceed_ratio", goal.exceed_ratio, 0.0..1.0, "0 % to less than 100 % is allowed");
    let allowed = format!(
        "{WIDTH_LEAST} to {WIDTH_MOST} is allowed, and no less than `loss_ratio`: a rate with more loss could come out lower \
         than one with less (RFC 9971)"
    );
    let least = WIDTH_LEAST.fraction().max(goal.loss_ratio);
    share("width", goal.width, least..WIDTH_MOST.fraction() + f64::EPSILON, &allowed);
}

/// Notes a search by what cannot be paced, beside a rate, both ways at once, or without loss where losses cannot be told.
pub(super) fn check_arm(
    packets: &PacketPath,
    (direction, has_rate): (Direction, bool),
    at: &impl Fn(&str) -> String,
    problems: &mut Problems<'_>,
) {
    let Some(search) = &packets.search else { return };
    if !packets.engine.keeps_a_rate() {
        let wrong = format!("is asked of the generator `{}`, which cannot be paced", packets.engine.word());
        let allowed = "a search tries rates: use the generator `xdp` or `socket`, or leave `search` out to find the most";
        problems.add(&at("search"), wrong, allowed);
    } else if packets.receiver == PacketReceiver::Dpdk
        && search.goals.iter().any(|goal| goal.loss_ratio == 0.0)
    {
        let wrong =
            "is for a rate without loss with the receiver `dpdk`, which counts whatever reaches its port";
        let allowed = "a packet of another would stand for a lost one: use the receiver `socket`, `xdp` or `count`, or goals with a \
                       `loss_ratio`, such as \"partial-drop\"";
        problems.add(&at("search"), wrong, allowed);
    }
    if direction == Direction::Both {
        let wrong = "is \"both\" for a search, whose rate is that of one direction";
        problems.add(&at("direction"), wrong, "use `up` or `down`, in a workload each");
    }
    if has_rate {
        let allowed = "a search chooses its rates: set one of packet_rate, search";
        problems.add(&at("packet_rate"), "stands beside `search`", allowed);
    }
}
