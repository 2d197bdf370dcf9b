//! Settings of testpmd: defaults, and what goes together with it.
use crate::dpdk::DpdkSettings;
use crate::packet_path::{PacketEngine, PacketPath, PacketReceiver};
use crate::plan::problem::{Problems, key_path};
use crate::plan::settings::{DpdkSpec, SettingsSpec};
use crate::workload::terms::Family;

/// The settings with every default; none when testpmd is neither generator nor receiver and the plan has no `dpdk` table.
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

/// Notes what does not go together. `at`: where a key is written.
pub(super) fn check(
    packets: &PacketPath,
    family: Family,
    at: &dyn Fn(&str) -> String,
    problems: &mut Problems<'_>,
) {
    let Some(dpdk) = &packets.dpdk else { return };
    if dpdk.program.is_empty() {
        let allowed = format!("leave it out for `{}`", DpdkSettings::PROGRAM);
        problems.add(&key_path(&at("dpdk"), "program"), "is empty", allowed);
    }
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
