//! Whether the guest of a VM has the sysctls that the file of its bed sets. Those that no snapshot has are not compared.
use netduel_model::bed::{BedVm, Sysctls};
use netduel_model::shell;
use netduel_model::snapshot::HostSnapshot;

use super::finding::{Finding, Severity};

/// A finding for each sysctl of the bed that has another value in the guest.
pub(super) fn find(sysctls: &Sysctls, vm: &BedVm, host: &HostSnapshot) -> Vec<Finding> {
    let differs = |(name, value): (&String, &String)| {
        let seen = host.sysctls.get(name)?;
        // The kernel separates numbers by tabs.
        let is_same = seen.split_whitespace().eq(value.split_whitespace());
        (!is_same).then(|| finding(vm, name, value, seen))
    };
    sysctls.0.iter().filter_map(differs).collect()
}

fn finding(vm: &BedVm, name: &str, value: &str, seen: &str) -> Finding {
    let title = format!("{} has another {name} than the file of the bed", vm.name);
    Finding::new("bed-sysctl", Severity::Warning, title)
        .seen(format!("the file of the bed: {name} = {value}"))
        .seen(format!("the host: {name} = {seen}"))
        .why("the VM is not tuned as the report of the bed states")
        .remedy("look for errors with `cloud-init status --long`; an earlier run may have changed it, too")
        .command(format!("sysctl -w {}", shell::word(&format!("{name}={value}"))))
}
