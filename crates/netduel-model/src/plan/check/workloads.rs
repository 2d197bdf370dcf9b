//! Workloads: their times, metrics and names, and how an arm's settings are laid over them.
use std::collections::BTreeSet;
use std::ops::Range;

use crate::ids::WorkloadName;
use crate::metric::Metric;
use crate::plan::cores::CoresSpec;
use crate::plan::problem::{Problems, element_path, key_path, one_of};
use crate::plan::spec::{ArmSpec, PlanSpec, SettingsSpec, WorkloadSpec};
use crate::units::Nanos;
use crate::workload::given::{Given, Places};
use crate::workload::{DURATION, DURATION_DEFAULT, PinAuto, Timing, Traffic, Workload, search_duration};

use super::{frames, settings};

const WARMUP_LEAST: Nanos = Nanos::from_millis(100);

/// The workloads one by one, those of several sizes of frames once for each, with their places in the plan.
pub(super) fn written(spec: &PlanSpec) -> Vec<(usize, WorkloadSpec)> {
    let workloads = spec.workloads.as_deref().unwrap_or_default();
    let each = |(index, workload)| frames::by_frames(workload).into_iter().map(move |one| (index, one));
    workloads.iter().enumerate().flat_map(each).collect()
}

/// Checks every workload by itself, as it is without any arm; gives their names in order.
pub(super) fn check(spec: &PlanSpec, problems: &mut Problems<'_>) -> Option<Vec<WorkloadName>> {
    let workloads = spec.workloads.as_ref()?;
    if workloads.is_empty() {
        problems.add("workloads", "has no workload", "write at least one table [[workloads]]");
    }
    for (index, workload) in workloads.iter().enumerate() {
        frames::check(workload, &element_path("workloads", index), problems);
    }
    let all = written(spec);
    let mut names = BTreeSet::new();
    for (index, workload) in &all {
        let path = element_path("workloads", *index);
        if let Some(name) = &workload.name
            && !names.insert(name)
        {
            let wrong = format!("is \"{name}\", which another workload is named already");
            problems.add(&key_path(&path, "name"), wrong, "give each workload a name of its own");
        }
        check_duration(workload, &path, problems);
        let Some(kind) = workload.kind else { continue };
        settings::check_belong(workload, kind, &path, problems);
        settings::check_ranges(&workload.settings, kind, &path, problems);
        let traffic = Traffic::resolve(kind, &given(workload, &workload.settings));
        check_timing(workload, timing(workload, &traffic), &path, problems);
        check_metrics(workload, &traffic, &path, problems);
    }
    all.iter().map(|(_, workload)| workload.name.clone()).collect()
}

/// The workload as an arm runs it. `path` and `arm_path`: the tables of both.
pub(super) fn resolve(
    (workload, path): (&WorkloadSpec, &str),
    (arm, arm_path): (&ArmSpec, &str),
    problems: &mut Problems<'_>,
) -> Option<Workload> {
    let set = arm.set.clone().unwrap_or_default();
    let effective = settings::overlaid(&workload.settings, &set);
    let set_path = key_path(arm_path, "set");
    let own: Vec<&str> = [workload.given(), workload.settings.given()].concat();
    let places = Places { workload: (path, own), arm: (&set_path, set.given()) };
    let given = given(workload, &effective);
    let traffic = Traffic::resolve(workload.kind?, &given);
    traffic.check(&given, &places, problems);
    check_metrics_of_streams(workload, &traffic, path, problems);
    let timing = timing(workload, &traffic);
    check_parts(&traffic, timing, &places, problems);
    check_requests_due(&traffic, timing, &places, problems);
    let metrics = workload.metrics.clone().unwrap_or_else(|| traffic.facts().default_metrics);
    let resolved = Workload {
        name: workload.name.clone()?,
        traffic,
        timing,
        family: effective.family.unwrap_or_default(),
        pin_client: effective.pin_client.as_ref().map(CoresSpec::list).unwrap_or_default(),
        pin_server: effective.pin_server.as_ref().map(CoresSpec::list).unwrap_or_default(),
        pin_auto: PinAuto {
            client: effective.pin_client == Some(CoresSpec::Auto),
            server: effective.pin_server == Some(CoresSpec::Auto),
        },
        dscp: effective.dscp.and_then(|dscp| u8::try_from(dscp).ok()),
        metrics,
    };
    settings::check_together(&resolved, &places, problems);
    Some(resolved)
}

/// Where a key of a workload stands, as an arm runs it.
pub(super) fn place_of(
    key: &str,
    (workload, path): (&WorkloadSpec, &str),
    (arm, arm_path): (&ArmSpec, &str),
) -> String {
    let set = arm.set.as_ref().map(SettingsSpec::given).unwrap_or_default();
    let set_path = key_path(arm_path, "set");
    Places { workload: (path, workload.settings.given()), arm: (&set_path, set) }.at(key)
}

fn given<'a>(workload: &'a WorkloadSpec, settings: &'a SettingsSpec) -> Given<'a> {
    Given { settings, search: workload.search.as_ref(), duration: duration(workload) }
}

fn duration(workload: &WorkloadSpec) -> Nanos {
    let searched = workload.search.as_ref().map(search_duration);
    workload.duration.or(searched).unwrap_or(DURATION_DEFAULT)
}

/// Times with their defaults, which follow the shortest part of the workload.
fn timing(workload: &WorkloadSpec, traffic: &Traffic) -> Timing {
    let duration = duration(workload);
    let facts = traffic.facts();
    let (mut warmup, mut cooldown) =
        ((duration.0 / 10).max(WARMUP_LEAST.0).min(duration.0 / 2), duration.0 / 20);
    if let Some(Nanos(idle)) = facts.load_begins {
        let shorter = idle.min(duration.0.saturating_sub(idle));
        (warmup, cooldown) = (warmup.min(shorter / 3), cooldown.min(shorter / 10));
    }
    if facts.search().is_some() {
        // Each of its trials counts from the first packet to the last.
        (warmup, cooldown) = (0, 0);
    }
    Timing {
        duration,
        warmup: workload.warmup.unwrap_or(Nanos(warmup)),
        cooldown: workload.cooldown.unwrap_or(Nanos(cooldown)),
    }
}

/// Notes a workload of two parts of which one is cut away as a whole.
fn check_parts(traffic: &Traffic, timing: Timing, places: &Places<'_>, problems: &mut Problems<'_>) {
    let facts = traffic.facts();
    let (Some(idle), Some(window)) = (facts.load_begins, facts.idle_window(&timing)) else { return };
    if [window, facts.steady_window(&timing)].iter().all(|window| window.start < window.end) {
        return;
    }
    let Timing { duration, warmup, cooldown } = timing;
    let loaded = Nanos(duration.0.saturating_sub(idle.0));
    let wrong = format!(
        "leaves nothing to measure: warmup \"{warmup}\" and cooldown \"{cooldown}\" of an idle part of \"{idle}\" and a loaded part \
         of \"{loaded}\""
    );
    let key = if places.is_of_workload("warmup") { "warmup" } else { "duration" };
    let allowed = "together warmup and cooldown must be shorter than each of the parts";
    problems.add(&places.at(key), wrong, allowed);
}

/// Notes an open loop of which no request is due while round trips are counted: it has no result, however good the path is.
fn check_requests_due(traffic: &Traffic, timing: Timing, places: &Places<'_>, problems: &mut Problems<'_>) {
    let facts = traffic.facts();
    let Some(rate) = facts.request_rate().filter(|rate| rate.0 > 0) else { return };
    let mut windows = [Some(facts.steady_window(&timing)), facts.idle_window(&timing)].into_iter().flatten();
    let is_missed = |window: &Range<u64>| window.start < window.end && facts.requests_due(window) == Some(0);
    let Some(window) = windows.find(is_missed) else { return };
    let wrong = format!(
        "is \"{rate}\", so that no request is due between {} and {} after the start, where round trips are counted",
        Nanos(window.start),
        Nanos(window.end)
    );
    let allowed = "raise `request_rate` or `duration`, or shorten `warmup` and `cooldown`";
    problems.add(&places.at("request_rate"), wrong, allowed);
}

fn check_duration(workload: &WorkloadSpec, path: &str, problems: &mut Problems<'_>) {
    let Some(range) = DURATION.range else { return };
    let duration = duration(workload);
    if !range.contains(duration.0) {
        problems.add(
            &key_path(path, "duration"),
            format!("is {}", range.unit.toml(duration.0)),
            range.allowed(),
        );
    }
}

fn check_timing(workload: &WorkloadSpec, timing: Timing, path: &str, problems: &mut Problems<'_>) {
    let Timing { duration, warmup, cooldown } = timing;
    let is_in_range = DURATION.range.is_none_or(|range| range.contains(duration.0));
    if is_in_range && warmup.0.saturating_add(cooldown.0) >= duration.0 {
        let is_overridden = |key: &&str| problems.is_overridden(&key_path(path, key));
        let key = if let Some(overridden) = ["duration", "warmup", "cooldown"].into_iter().find(is_overridden)
        {
            overridden
        } else if workload.warmup.is_some() {
            "warmup"
        } else if workload.cooldown.is_some() {
            "cooldown"
        } else {
            "duration"
        };
        let wrong = format!(
            "leaves nothing to measure: warmup \"{warmup}\" and cooldown \"{cooldown}\" of duration \"{duration}\""
        );
        problems.add(
            &key_path(path, key),
            wrong,
            "together warmup and cooldown must be shorter than duration",
        );
    }
}

/// Notes metrics of the streams beside the probes of a failover that has none: no trial would have a value.
fn check_metrics_of_streams(
    workload: &WorkloadSpec,
    traffic: &Traffic,
    path: &str,
    problems: &mut Problems<'_>,
) {
    let facts = traffic.facts();
    if facts.probes.is_none() || facts.bulk.is_some() {
        return;
    }
    let path = key_path(path, "metrics");
    let metrics = workload.metrics.iter().flatten().enumerate();
    for (index, metric) in
        metrics.filter(|(_, metric)| matches!(metric, Metric::RecoveryTime | Metric::Throughput))
    {
        let wrong = format!("\"{}\" is measured with streams, and `streams` is 0", metric.key());
        problems.add(
            &element_path(&path, index),
            wrong,
            "set `streams` to 1 or more, or leave the metric out",
        );
    }
}

fn check_metrics(workload: &WorkloadSpec, traffic: &Traffic, path: &str, problems: &mut Problems<'_>) {
    let Some(metrics) = &workload.metrics else { return };
    let path = key_path(path, "metrics");
    let possible = traffic.facts().possible_metrics;
    let allowed = || format!("allowed: {}", one_of(possible.iter().map(|metric: &Metric| metric.key())));
    if metrics.is_empty() {
        problems.add(&path, "is empty", format!("{}; or leave `metrics` out", allowed()));
    }
    for (index, metric) in metrics.iter().enumerate() {
        let path = element_path(&path, index);
        let (key, kind) = (metric.key(), traffic.kind().word());
        if !possible.contains(metric) {
            problems.add(&path, format!("\"{key}\" is not a metric of {kind}"), allowed());
        } else if metrics[..index].contains(metric) {
            problems.add(&path, format!("\"{key}\" is listed twice"), "name each metric once");
        }
    }
}
