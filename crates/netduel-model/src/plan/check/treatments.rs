//! Treatments: each has exactly one change, with the keys that this change needs and no others.
use std::borrow::Cow;

use crate::plan::problem::{Problems, element_path, key_path, one_of};
use crate::plan::resolved::{Treatment, TreatmentAction};
use crate::plan::spec::{LabPath, Side, TreatmentSpec};
use crate::sysctl;
use crate::workload::{Role, TREATMENT};

use super::values::{check_command, check_interface, check_table};
use super::{provider, tuning};

/// Characters of the name of an offload at most: `ETH_GSTRING_LEN` in include/uapi/linux/ethtool.h, less the final zero byte.
const FEATURE_LEN_MAX: usize = 31;

/// The keys of which a treatment has exactly one.
pub(super) const KINDS: [&str; 16] = [
    "path",
    "offload",
    "mtu",
    "sysctl",
    "vf",
    "pci",
    "queues",
    "rss",
    "ring",
    "coalesce",
    "rps",
    "xps",
    "irq_affinity",
    "azure-nic",
    "azure-placement",
    "command",
];

/// What the hosts of an arm are, as far as it matters to its treatments.
#[derive(Clone, Copy)]
pub(super) struct HostsOfArm {
    /// Whether both are guests of the lab; absent when that is not known because of another problem.
    pub in_lab: Option<bool>,
    /// Whether one is a VM of a bed, where the NIC follows from the network of the arm.
    pub on_bed: bool,
}

/// The treatments of an arm that could be resolved.
pub(super) fn resolve(
    specs: &[TreatmentSpec],
    path: &str,
    hosts: HostsOfArm,
    problems: &mut Problems<'_>,
) -> Vec<Treatment> {
    let mut treatments: Vec<Treatment> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let path = element_path(path, index);
        let written: Vec<&str> =
            KINDS.into_iter().filter(|key| problems.is_written(&key_path(&path, key))).collect();
        match written[..] {
            [kind] => {
                check_companions(&path, kind, hosts, problems);
                if kind == "path" {
                    check_path(spec, &path, hosts.in_lab, problems);
                }
            }
            [] => {
                problems.add(&path, "has no change", format!("exactly one of {} is needed", one_of(KINDS)));
                continue;
            }
            _ => {
                let wrong = format!("has {} changes: {}", written.len(), written.join(", "));
                problems.add(
                    &path,
                    wrong,
                    format!("exactly one of {}; write one treatment for each", one_of(KINDS)),
                );
                continue;
            }
        }
        if let Some(interface) = &spec.interface {
            check_interface(problems, &key_path(&path, "interface"), interface);
        }
        let Some(action) = resolve_action(&on_nic_of_arm(spec, hosts), &path, problems) else { continue };
        let another_path = matches!(action, TreatmentAction::Path { .. })
            && treatments.iter().any(|other| matches!(other.action, TreatmentAction::Path { .. }));
        let treatment = Treatment { action, on: spec.on.unwrap_or_default() };
        if another_path {
            problems.add(&key_path(&path, "path"), "is the second path of this arm", "an arm has one path");
        } else {
            check_target(&path, &treatment, &treatments, problems);
        }
        treatments.push(treatment);
    }
    treatments
}

/// The treatment with what stands for its interface until the guests are known, where it names none and the hosts are VMs of a bed.
fn on_nic_of_arm(spec: &TreatmentSpec, hosts: HostsOfArm) -> Cow<'_, TreatmentSpec> {
    if !hosts.on_bed || spec.interface.is_some() {
        return Cow::Borrowed(spec);
    }
    Cow::Owned(TreatmentSpec { interface: Some(TreatmentAction::NIC_OF_ARM.to_owned()), ..spec.clone() })
}

/// Refuses a second change of one thing at one end: only the last would be in force.
fn check_target(path: &str, treatment: &Treatment, earlier: &[Treatment], problems: &mut Problems<'_>) {
    let is_at_one_end = |other: &&Treatment| {
        [Role::Client, Role::Server]
            .into_iter()
            .any(|role| treatment.on.includes(role) && other.on.includes(role))
    };
    let mut others = earlier.iter().filter(is_at_one_end);
    let Some(other) = others.find(|other| other.action.overlaps(&treatment.action)) else { return };
    let (Some(target), Some(earlier)) = (treatment.action.target(), other.action.target()) else { return };
    let wrong = if target == earlier {
        format!("changes {target} a second time in this arm")
    } else {
        format!("changes {target}, which overlaps {earlier} in this arm")
    };
    problems.add(path, wrong, "keep one of the two, or give each an end of its own with `on`");
}

/// The path that the treatments choose.
pub(super) fn lab_path(treatments: &[Treatment]) -> Option<LabPath> {
    treatments.iter().find_map(|treatment| match treatment.action {
        TreatmentAction::Path { path } => Some(path),
        _ => None,
    })
}

/// Whether a treatment takes the virtual function away.
pub(super) fn moves(treatments: &[Treatment]) -> bool {
    treatments.iter().any(|treatment| treatment.action.takes_function())
}

/// Notes keys that this kind of change needs and that are missing, and those that it has no use for.
fn check_companions(path: &str, kind: &str, hosts: HostsOfArm, problems: &mut Problems<'_>) {
    let needed: &[&str] = match kind {
        "offload" | "ring" | "coalesce" => &["interface", "value"],
        "sysctl" => &["value"],
        "command" => &["undo"],
        "path" => &[],
        "azure-nic" => &["accelerated"],
        "azure-placement" => &["vm"],
        _ => &["interface"],
    };
    // That of the bed when the hosts are VMs of one.
    let optional: &[&str] = if kind.starts_with("azure-") { &["resource-group"] } else { &[] };
    for companion in ["interface", "value", "undo", "accelerated", "vm", "resource-group"] {
        let key = key_path(path, companion);
        let (is_needed, is_written) = (needed.contains(&companion), problems.is_written(&key));
        if optional.contains(&companion) {
            continue;
        }
        let is_of_bed = companion == "interface" && hosts.on_bed;
        if is_needed && !is_written && !is_of_bed {
            let allowed = match companion {
                "interface" => "name the interface, for example interface = \"eth0\"",
                "undo" => "write the command that undoes the change, as a list of words",
                "accelerated" => "set accelerated = true or accelerated = false",
                "vm" => "name the VM, for example vm = \"vm1\"",
                _ if matches!(kind, "ring" | "coalesce") => {
                    "write the number as text, for example value = \"64\""
                }
                _ if kind == "offload" => "set value = \"on\" or value = \"off\"",
                _ => "write the value as text, for example value = \"1\"",
            };
            problems.add(&key, format!("is missing, but `{kind}` needs it"), allowed);
        } else if !is_needed && is_written {
            let allowed = if needed.is_empty() {
                "remove it".to_owned()
            } else {
                format!("remove it; `{kind}` takes {}", one_of(needed.iter().copied()))
            };
            problems.add(&key, format!("has no meaning for `{kind}`"), allowed);
        }
    }
}

fn check_path(spec: &TreatmentSpec, path: &str, in_lab: Option<bool>, problems: &mut Problems<'_>) {
    if in_lab == Some(false) {
        let wrong = "changes the lab's path, but not both hosts of this arm are guests of the lab";
        problems.add(&key_path(path, "path"), wrong, "use hosts with launch = \"lab\" at both ends");
    }
    if matches!(spec.on, Some(Side::Client | Side::Server)) {
        let wrong = "names one host, but a path is changed at both";
        problems.add(&key_path(path, "on"), wrong, "remove it, or set on = \"both\"");
    }
}

/// The action of a treatment with one kind; `None` when a part of it is missing or unreadable.
fn resolve_action(spec: &TreatmentSpec, path: &str, problems: &mut Problems<'_>) -> Option<TreatmentAction> {
    if spec.azure_nic.is_some() || spec.azure_placement.is_some() {
        return provider::resolve(spec, path, problems);
    }
    if let Some(lab_path) = spec.path {
        return Some(TreatmentAction::Path { path: lab_path });
    }
    if let Some(feature) = &spec.offload {
        return resolve_offload(spec, feature, path, problems);
    }
    if let Some(mtu) = spec.mtu {
        check_table(problems, path, TREATMENT, |key| (key == "mtu").then_some(mtu.into()));
        return Some(TreatmentAction::Mtu { interface: spec.interface.clone()?, mtu });
    }
    if let Some(name) = &spec.sysctl {
        check_sysctl(name, path, problems);
        let value = spec.value.clone()?;
        check_sysctl_value(&value, &key_path(path, "value"), problems);
        return Some(TreatmentAction::Sysctl { name: name.clone(), value });
    }
    let Some(command) = spec.command.clone() else { return tuning::resolve(spec, path, problems) };
    check_command(problems, &key_path(path, "command"), &command);
    let undo = spec.undo.clone()?;
    check_command(problems, &key_path(path, "undo"), &undo);
    Some(TreatmentAction::Command { command, undo })
}

fn resolve_offload(
    spec: &TreatmentSpec,
    feature: &str,
    path: &str,
    problems: &mut Problems<'_>,
) -> Option<TreatmentAction> {
    let good = (1..=FEATURE_LEN_MAX).contains(&feature.len())
        && feature.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !good {
        let allowed = format!(
            "name it as `ethtool -k` does, with at most {FEATURE_LEN_MAX} characters, for example \"tx-tcp-segmentation\""
        );
        problems.add(&key_path(path, "offload"), format!("{feature:?} is not an offload feature"), allowed);
    }
    let enabled = match spec.value.as_deref()? {
        "on" => true,
        "off" => false,
        other => {
            let wrong = format!("is {other:?}, but an offload is switched");
            problems.add(&key_path(path, "value"), wrong, "allowed: `on` or `off`");
            return None;
        }
    };
    Some(TreatmentAction::Offload {
        interface: spec.interface.clone()?,
        feature: feature.to_owned(),
        enabled,
    })
}

fn check_sysctl_value(value: &str, path: &str, problems: &mut Problems<'_>) {
    if !sysctl::is_value(value) {
        let allowed = format!("1 to {} bytes of text in one line are allowed", sysctl::VALUE_LEN_MAX);
        problems.add(path, "is no value of a sysctl", allowed);
    }
}

/// A sysctl's name becomes a path under /proc/sys: it must not lead out of there. Its earlier value must be enough to restore the host.
fn check_sysctl(name: &str, path: &str, problems: &mut Problems<'_>) {
    if !sysctl::is_name(name) {
        let allowed = "write its dotted name, for example \"net.ipv4.tcp_window_scaling\"";
        problems.add(&key_path(path, "sysctl"), format!("{name:?} is not the name of a sysctl"), allowed);
    }
    if let Some(effect) = sysctl::effect_of(name) {
        let wrong =
            format!("{name:?} changes more than its value, so netduel could not restore the host: {effect}");
        let allowed = "use a `command` treatment with an `undo` of your own that restores it";
        problems.add(&key_path(path, "sysctl"), wrong, allowed);
    }
}
