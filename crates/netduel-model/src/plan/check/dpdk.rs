//! Settings of testpmd: ranges, defaults, and what goes together with it.
use crate::dpdk::{DESCRIPTORS, DpdkSettings, QUEUES_MOST};
use crate::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, key_path};
use crate::plan::spec::{DpdkSpec, SettingsSpec, WorkloadType};
use crate::workload::Family;

/// Notes values that are out of range.
pub(super) fn check_ranges(
    settings: &SettingsSpec,
    kind: WorkloadType,
    path: &str,
    problems: &mut Problems<'_>,
) {
    let Some(dpdk) = settings.dpdk.as_ref().filter(|_| kind == WorkloadType::Pps) else { return };
    let path = key_path(path, "dpdk");
    for (key, queues) in [("queues", dpdk.queues), ("receive_queues", dpdk.receive_queues)] {
        if let Some(queues) = queues.filter(|queues| !(1..=QUEUES_MOST).contains(queues)) {
            let allowed = format!("1 to {QUEUES_MOST} is allowed, and no more than the port has");
            problems.add(&key_path(&path, key), format!("is {queues}"), allowed);
        }
    }
    if let Some(descriptors) = dpdk.descriptors.filter(|descriptors| !DESCRIPTORS.contains(descriptors)) {
        let allowed = format!("{} to {} is allowed", DESCRIPTORS.start(), DESCRIPTORS.end());
        problems.add(&key_path(&path, "descriptors"), format!("is {descriptors}"), allowed);
    }
    if dpdk.program.as_deref() == Some("") {
        let allowed = format!("leave it out for `{}`", DpdkSettings::PROGRAM);
        problems.add(&key_path(&path, "program"), "is empty", allowed);
    }
}

/// The settings of a workload with those of an arm laid over them, key by key.
pub(super) fn overlaid(workload: Option<&DpdkSpec>, arm: Option<&DpdkSpec>) -> Option<DpdkSpec> {
    let (Some(workload), Some(arm)) = (workload, arm) else { return arm.or(workload).cloned() };
    Some(DpdkSpec {
        program: arm.program.clone().or_else(|| workload.program.clone()),
        device: arm.device.clone().or_else(|| workload.device.clone()),
        queues: arm.queues.or(workload.queues),
        receive_queues: arm.receive_queues.or(workload.receive_queues),
        descriptors: arm.descriptors.or(workload.descriptors),
        huge_pages: arm.huge_pages.or(workload.huge_pages),
        args: arm.args.clone().or_else(|| workload.args.clone()),
    })
}

/// The settings with every default; none where testpmd has no part and nothing is said of it.
pub(super) fn resolve(
    settings: &SettingsSpec,
    engine: PacketEngine,
    receiver: PacketReceiver,
) -> Option<DpdkSettings> {
    let has_part = engine == PacketEngine::Dpdk || receiver == PacketReceiver::Dpdk;
    let spec = match &settings.dpdk {
        Some(spec) => spec.clone(),
        None if has_part => DpdkSpec::default(),
        None => return None,
    };
    let queues = spec.queues.unwrap_or(1);
    Some(DpdkSettings {
        program: spec.program.unwrap_or_else(|| DpdkSettings::PROGRAM.to_owned()),
        device: spec.device.unwrap_or_default(),
        queues,
        receive_queues: spec.receive_queues.unwrap_or(queues),
        descriptors: spec.descriptors,
        huge_pages: spec.huge_pages.unwrap_or(false),
        args: spec.args.unwrap_or_default(),
    })
}

/// Notes what does not go together in an arm. `at`: where a key is written.
pub(super) fn check_arm(
    packets: &PacketPath,
    family: Family,
    at: &dyn Fn(&str) -> String,
    problems: &mut Problems<'_>,
) {
    let Some(dpdk) = &packets.dpdk else { return };
    let (sends, receives) = (packets.engine == PacketEngine::Dpdk, packets.receiver == PacketReceiver::Dpdk);
    if !sends && !receives {
        let allowed = "set `generator` or `receiver` to \"dpdk\", or leave the table out";
        problems.add(&at("dpdk"), "is given where testpmd has no part", allowed);
        return;
    }
    if sends && !receives {
        let wrong = format!("is \"{}\" for the generator `dpdk`", packets.receiver.word());
        let allowed = "its packets carry neither the trial's magic nor a number, so only the receiver `dpdk`, which counts all, can take them";
        problems.add(&at("receiver"), wrong, allowed);
    }
    if sends && family == Family::Ipv6 {
        let allowed = "use IPv4: testpmd's packets have no other head";
        problems.add(&at("family"), "is \"ipv6\" for the generator `dpdk`", allowed);
    }
    if !(dpdk.device.has_interface() || sends && receives) {
        let wrong = format!("has the device `{}`, which only testpmd speaks", dpdk.device);
        let allowed = "use it at both ends, or another device";
        problems.add(&key_path(&at("dpdk"), "device"), wrong, allowed);
    }
}
