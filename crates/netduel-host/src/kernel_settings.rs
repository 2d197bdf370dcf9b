//! Settings of the kernel beside sysctls: boot parameters, transparent huge pages, SMT, and what it does against vulnerabilities of the CPU.
use std::collections::BTreeMap;
use std::path::Path;

use netduel_model::snapshot::KernelSettings;

use crate::file::{line, names_in, shown, whole};

/// Boot parameters that affect a network measurement (`Documentation/admin-guide/kernel-parameters.txt`): cores, memory, power, mitigations,
/// DMA. Others are not read: they can hold secrets.
const BOOT_PARAMETERS: [&str; 32] = [
    "amd_iommu",
    "amd_pstate",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "iommu.passthrough",
    "iommu.strict",
    "irqaffinity",
    "isolcpus",
    "kpti",
    "maxcpus",
    "mitigations",
    "nohz",
    "nohz_full",
    "nopti",
    "nosmt",
    "nospectre_v2",
    "numa_balancing",
    "preempt",
    "processor.max_cstate",
    "pti",
    "rcu_nocbs",
    "retbleed",
    "skew_tick",
    "spectre_v2",
    "transparent_hugepage",
    "tsc",
];

/// The settings; absent where the host shows none of them.
pub(crate) fn kernel_settings(root: &Path) -> Option<KernelSettings> {
    let settings = KernelSettings {
        boot_options: whole(&root.join("proc/cmdline"))
            .map(|text| boot_parameters(&text))
            .unwrap_or_default(),
        transparent_huge_pages: line(&root.join("sys/kernel/mm/transparent_hugepage/enabled"))
            .and_then(|text| chosen(&text)),
        smt: line(&root.join("sys/devices/system/cpu/smt/control")).map(|text| shown(&text)),
        vulnerabilities: vulnerabilities(&root.join("sys/devices/system/cpu/vulnerabilities")),
    };
    (settings != KernelSettings::default()).then_some(settings)
}

/// The known parameters in their order. The kernel takes `-` and `_` in their names for the same.
fn boot_parameters(command_line: &str) -> Vec<String> {
    let is_known = |word: &&str| {
        let name = word.split_once('=').map_or(*word, |(name, _)| name).replace('-', "_");
        BOOT_PARAMETERS.contains(&name.as_str())
    };
    command_line.split_whitespace().take_while(|word| *word != "--").filter(is_known).map(shown).collect()
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(shown(rest.split_once(']')?.0))
}

/// Each vulnerability by which the CPU is affected, and what the kernel does against it.
fn vulnerabilities(folder: &Path) -> BTreeMap<String, String> {
    let state = |name: String| {
        let state = shown(&line(&folder.join(&name))?);
        (state != "Not affected").then_some((name, state))
    };
    names_in(folder).into_iter().filter_map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_parameters_that_affect_results_are_read_and_no_other() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 token=secret isolcpus=2-3 hugepagesz=1G hugepages=4 rcu-nocbs=2-3 nosmt -- mitigations=off\n";
        assert_eq!(
            boot_parameters(line),
            ["isolcpus=2-3", "hugepagesz=1G", "hugepages=4", "rcu-nocbs=2-3", "nosmt"]
        );
    }

    #[test]
    fn settings_are_those_of_the_files_and_absent_without_any() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(kernel_settings(folder.path()), None);
        let write = |below: &str, text: &str| {
            let file = folder.path().join(below);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        write("sys/devices/system/cpu/smt/control", "notsupported\n");
        write("sys/devices/system/cpu/vulnerabilities/l1tf", "Not affected\n");
        write(
            "sys/devices/system/cpu/vulnerabilities/spectre_v2",
            "Mitigation: Retpolines; STIBP: disabled\n",
        );
        let seen = kernel_settings(folder.path()).unwrap();
        assert_eq!(
            (seen.transparent_huge_pages.as_deref(), seen.smt.as_deref()),
            (Some("madvise"), Some("notsupported"))
        );
        assert_eq!(seen.boot_options, [""; 0]);
        let vulnerabilities: Vec<(&str, &str)> =
            seen.vulnerabilities.iter().map(|(name, state)| (name.as_str(), state.as_str())).collect();
        assert_eq!(vulnerabilities, [("spectre_v2", "Mitigation: Retpolines; STIBP: disabled")]);
    }
}
