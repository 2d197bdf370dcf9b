//! Settings of workloads: which type has which, their ranges, and what an arm may override.
use crate::plan::problem::{Problems, key_path};
use crate::plan::spec::{SettingsSpec, WorkloadSpec, WorkloadType};
use crate::units::Nanos;
use crate::workload::given::{Given, Places, nested};
use crate::workload::{OutOfRange, Setting, Traffic, Workload};

use super::treatments;

/// The keys of the settings that a type of workload has.
fn of(kind: WorkloadType) -> impl Iterator<Item = &'static str> {
    kind.settings().iter().map(|setting| setting.key).filter(|key| !key.contains('.'))
}

/// Whether a type of workload has a setting.
pub(super) fn has(kind: WorkloadType, key: &str) -> bool {
    of(kind).any(|own| own == key)
}

/// Notes settings of a workload that its type does not have.
pub(super) fn check_belong(
    workload: &WorkloadSpec,
    kind: WorkloadType,
    path: &str,
    problems: &mut Problems<'_>,
) {
    let is_setting = |key: &&str| WorkloadType::ALL.iter().any(|kind| has(*kind, key));
    let given = workload.given().into_iter().filter(is_setting).chain(workload.settings.given());
    for key in given.filter(|key| !has(kind, key)) {
        let wrong = format!("is not a setting of {}", kind.word());
        let all: Vec<&str> = of(kind).collect();
        let allowed = format!("it has {}{}", all.join(", "), treatment_hint(key));
        problems.add(&key_path(path, key), wrong, allowed);
    }
}

/// Notes settings of an arm that no workload of the plan has.
pub(super) fn check_override(
    set: &SettingsSpec,
    kinds: &[WorkloadType],
    path: &str,
    problems: &mut Problems<'_>,
) {
    for key in set.given() {
        if kinds.is_empty() || kinds.iter().any(|kind| has(*kind, key)) {
            continue;
        }
        let all = kinds.iter().flat_map(|kind| kind.settings());
        let mut settings: Vec<&str> = all
            .filter(|setting| setting.is_overridable && !setting.key.contains('.'))
            .map(|setting| setting.key)
            .collect();
        settings.sort_unstable();
        settings.dedup();
        let wrong = "overrides a setting that no workload of this plan has";
        let allowed = format!("its workloads have {}{}", settings.join(", "), treatment_hint(key));
        problems.add(&key_path(path, key), wrong, allowed);
    }
}

/// What may have been meant by a setting whose key is also that of a treatment, as a clause of its own; else empty.
fn treatment_hint(key: &str) -> String {
    if !treatments::KINDS.contains(&key) {
        return String::new();
    }
    format!(
        "; `{key}` of an interface is a treatment of an arm: treatments = [{{ {key} = ..., interface = ... }}]"
    )
}

/// Notes values that are out of range for this type. Settings that the type does not have are passed over.
pub(super) fn check_ranges(
    settings: &SettingsSpec,
    kind: WorkloadType,
    path: &str,
    problems: &mut Problems<'_>,
) {
    for setting in kind.settings() {
        let (Some(range), Some(value)) = (setting.range, settings.number(setting.key)) else { continue };
        if !range.contains(value) {
            let out = OutOfRange { key: setting.key, value, range, beside: String::new() };
            note(setting, &out, kind, &nested(path, setting.key), problems);
        }
    }
    if has(kind, "congestion")
        && let Some(name) = &settings.congestion
    {
        // TCP_CA_NAME_MAX in include/net/tcp.h is 16 with the final zero byte.
        let good = (1..=15).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !good {
            let allowed =
                "name it as /proc/sys/net/ipv4/tcp_available_congestion_control does, for example \"cubic\"";
            problems.add(
                &key_path(path, "congestion"),
                format!("{name:?} is not a congestion control"),
                allowed,
            );
        }
    }
}

/// Notes a value that is out of its range.
fn note(setting: &Setting, out: &OutOfRange, kind: WorkloadType, path: &str, problems: &mut Problems<'_>) {
    let OutOfRange { value, range, beside, .. } = out;
    let advice = if setting.advice.is_empty() { String::new() } else { format!("; {}", setting.advice) };
    let allowed = format!("{} for {}{beside}{advice}", range.allowed(), kind.word());
    problems.add(path, format!("is {}", range.unit.toml(*value)), allowed);
}

/// Notes what is in the range of its setting, but not beside the other settings of an arm.
pub(super) fn check_together(workload: &Workload, places: &Places<'_>, problems: &mut Problems<'_>) {
    let Some(out) = workload.out_of_range() else { return };
    let kind = workload.traffic.kind();
    let setting = kind.settings().iter().find(|setting| setting.key == out.key);
    let Some(setting) = setting.filter(|setting| setting.range.is_some_and(|all| all.contains(out.value)))
    else {
        return;
    };
    note(setting, &out, kind, &places.at(out.key), problems);
}

/// The settings of a workload with those of an arm laid over them.
pub(super) fn overlaid(workload: &SettingsSpec, arm: &SettingsSpec) -> SettingsSpec {
    let dpdk = match (&workload.dpdk, &arm.dpdk) {
        (Some(workload), Some(arm)) => Some(arm.over(workload)),
        _ => None,
    };
    let mut effective = arm.over(workload);
    effective.dpdk = dpdk.or(effective.dpdk);
    effective
}

/// The traffic of a type with these settings and every default, for a workload of this duration.
pub fn traffic(settings: &SettingsSpec, kind: WorkloadType, duration: Nanos) -> Traffic {
    Traffic::resolve(kind, &Given { settings, search: None, duration })
}
