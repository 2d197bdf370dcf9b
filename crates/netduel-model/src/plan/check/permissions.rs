//! What a plan does and the user who runs it does not permit: programs that it names, sysctls outside of the network.
use crate::dpdk::DpdkSettings;
use crate::plan::permissions::{Forbidden, Permissions};
use crate::plan::problem::{Problems, element_path, key_path};
use crate::plan::spec::{DpdkSpec, LaunchKind, PlanSpec, SettingsSpec, TreatmentSpec};

/// Notes each of them where it stands.
pub(super) fn check(spec: &PlanSpec, permissions: Permissions, problems: &mut Problems<'_>) {
    for (name, host) in spec.hosts.iter().flatten() {
        if host.launch == Some(LaunchKind::Command) {
            let path = key_path(&key_path("hosts", name), "command");
            let words = host.command.as_deref().unwrap_or_default();
            note(permissions.refuse_command(words), &path, problems);
        }
    }
    for (index, arm) in spec.arms.iter().flatten().enumerate() {
        let path = element_path("arms", index);
        for (index, treatment) in arm.treatments.iter().flatten().enumerate() {
            let path = element_path(&key_path(&path, "treatments"), index);
            check_treatment(treatment, permissions, &path, problems);
        }
        if let Some(set) = &arm.set {
            check_settings(set, permissions, &key_path(&path, "set"), problems);
        }
    }
    for (index, workload) in spec.workloads.iter().flatten().enumerate() {
        let path = element_path("workloads", index);
        check_settings(&workload.settings, permissions, &path, problems);
    }
}

fn check_settings(set: &SettingsSpec, permissions: Permissions, path: &str, problems: &mut Problems<'_>) {
    check_testpmd(set.dpdk.as_ref(), permissions, path, problems);
    for (index, event) in set.events.iter().flatten().enumerate() {
        if let Some(words) = &event.command {
            let path = element_path(&key_path(path, "events"), index);
            note(permissions.refuse_command(words), &key_path(&path, "command"), problems);
        }
    }
}

fn check_treatment(
    treatment: &TreatmentSpec,
    permissions: Permissions,
    path: &str,
    problems: &mut Problems<'_>,
) {
    if let Some(words) = &treatment.command {
        note(permissions.refuse_command(words), &key_path(path, "command"), problems);
    }
    if let Some(name) = &treatment.sysctl {
        note(permissions.refuse_sysctl(name), &key_path(path, "sysctl"), problems);
    }
}

fn check_testpmd(dpdk: Option<&DpdkSpec>, permissions: Permissions, path: &str, problems: &mut Problems<'_>) {
    let Some(dpdk) = dpdk else { return };
    let path = key_path(path, "dpdk");
    if let Some(program) = dpdk.program.as_ref().filter(|program| *program != DpdkSettings::PROGRAM) {
        note(
            permissions.refuse_command(std::slice::from_ref(program)),
            &key_path(&path, "program"),
            problems,
        );
    }
    if let Some(args) = dpdk.args.as_ref().filter(|args| !args.is_empty()) {
        let words: Vec<String> =
            std::iter::once(DpdkSettings::PROGRAM.to_owned()).chain(args.clone()).collect();
        note(permissions.refuse_command(&words), &key_path(&path, "args"), problems);
    }
}

fn note(forbidden: Option<Forbidden>, path: &str, problems: &mut Problems<'_>) {
    if let Some(Forbidden { wrong, allowed }) = forbidden {
        problems.add(path, wrong, allowed);
    }
}
