//! A treatment as the command that makes the change by hand, and words about settings. Nothing is run here.
use std::fmt::Write as _;

use netduel_model::plan::TreatmentAction;
use netduel_model::plan::tuning::{CoreChoice, RssSpread, core_list};
use netduel_model::run::RunHeader;
use netduel_model::shell;

/// What the `--set` of a run are called where they are one value.
pub const SETTINGS: &str = "settings of the command line";
/// What a person adds to commands of `az` in a report. A run does not keep the subscription of its resources: it is its user's.
pub const SUBSCRIPTION_OF_AZ: &str =
    "add --subscription to commands of `az` where their resources are not in its current subscription";

/// The settings of a run in place of those of its plan (`--set`) as one text; absent without any.
pub fn settings_of_command_line(header: &RunHeader) -> Option<String> {
    let settings = header.annotations.overrides.join("; ");
    (!settings.is_empty()).then_some(settings)
}

/// A change of a host as a command.
pub(super) fn setting(action: &TreatmentAction) -> String {
    let device = action.interface().map(shell::word).unwrap_or_default();
    let sys = |path: &str| format!("/sys/class/net/{device}/{path}");
    match action {
        TreatmentAction::Path { path } => format!("netduel lab path {}", path.word()),
        TreatmentAction::Offload { feature, enabled, .. } => {
            let value = if *enabled { "on" } else { "off" };
            format!("ethtool -K {device} {} {value}", shell::word(feature))
        }
        TreatmentAction::Mtu { mtu, .. } => format!("ip link set dev {device} mtu {mtu}"),
        TreatmentAction::Sysctl { name, value } => {
            format!("sysctl -w {}", shell::word(&format!("{name}={value}")))
        }
        TreatmentAction::Vf { .. } => {
            format!(
                "ip link set dev {device} down # the virtual function itself, if {device} is the interface above it"
            )
        }
        TreatmentAction::Pci { .. } => {
            format!("sh -c {}", shell::word(&format!("echo 1 > {}", sys("device/remove"))))
        }
        TreatmentAction::Queues { queues, .. } => format!("ethtool -L {device} combined {queues}"),
        TreatmentAction::Rss { table, .. } => match table {
            RssSpread::Default => format!("ethtool -X {device} default"),
            RssSpread::Equal { queues } => format!("ethtool -X {device} equal {queues}"),
            RssSpread::Weights { weights } => {
                let weights: Vec<String> = weights.iter().map(u32::to_string).collect();
                format!("ethtool -X {device} weight {}", weights.join(" "))
            }
        },
        TreatmentAction::Ring { ring, descriptors, .. } => {
            format!("ethtool -G {device} {} {descriptors}", ring.word())
        }
        TreatmentAction::Coalesce { parameter, value, .. } => {
            let value = match (parameter.starts_with("adaptive-"), value) {
                (true, 0) => "off".to_owned(),
                (true, _) => "on".to_owned(),
                (false, value) => value.to_string(),
            };
            format!("ethtool -C {device} {} {value}", shell::word(parameter))
        }
        TreatmentAction::Rps { cores, .. } => steering(&sys("queues/rx-*/rps_cpus"), cores),
        TreatmentAction::Xps { cores, .. } => steering(&sys("queues/tx-*/xps_cpus"), cores),
        TreatmentAction::IrqAffinity { cores, .. } => {
            let value = match cores {
                CoreChoice::Cores { cores } => core_list(cores),
                CoreChoice::Spread | CoreChoice::Off => "$((n % $(nproc)))".to_owned(),
            };
            let irqs = sys("device/msi_irqs");
            script(&format!(
                "n=0; for i in $(ls {irqs}); do echo {value} > /proc/irq/$i/smp_affinity_list; n=$((n + 1)); done"
            ))
        }
        TreatmentAction::AzureNic { nic, accelerated, .. } => {
            let (group, nic) = (group_of(action), shell::word(nic));
            format!(
                "az network nic update --resource-group {group} --name {nic} --accelerated-networking {accelerated}"
            )
        }
        TreatmentAction::AzurePlacement { vm, group: placement, .. } => {
            let (group, vm) = (group_of(action), shell::word(vm));
            let of_vm = format!("--resource-group {group} --name {vm}");
            let placement = shell::word(placement);
            format!(
                "az vm deallocate {of_vm} && az vm update {of_vm} --ppg {placement} && az vm start {of_vm}"
            )
        }
        TreatmentAction::Command { command, .. } => shell::line(command),
    }
}

/// The resource group of a treatment of Azure, for a shell.
fn group_of(action: &TreatmentAction) -> String {
    shell::word(action.resource_group().unwrap_or("GROUP"))
}

/// The masks of cores of all queues.
fn steering(files: &str, cores: &CoreChoice) -> String {
    let mask = match cores {
        CoreChoice::Off => "0".to_owned(),
        CoreChoice::Spread => "$(printf %x $((1 << n % $(nproc))))".to_owned(),
        CoreChoice::Cores { cores } => mask(cores),
    };
    script(&format!("n=0; for f in {files}; do echo {mask} > $f; n=$((n + 1)); done"))
}

fn script(text: &str) -> String {
    format!("sh -c {}", shell::word(text))
}

/// Cores as the kernel writes a mask: groups of 32 bits with commas, the highest first.
fn mask(cores: &[u16]) -> String {
    let groups = cores.iter().max().map_or(1, |most| usize::from(*most) / 32 + 1);
    let mut words = vec![0_u32; groups];
    for core in cores {
        words[usize::from(*core) / 32] |= 1 << (core % 32);
    }
    let mut text = format!("{:x}", words[groups - 1]);
    for word in words[..groups - 1].iter().rev() {
        // Writing to a String cannot fail.
        let _ = write!(text, ",{word:08x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_groups_of_32_bits() {
        assert_eq!([mask(&[0, 1]), mask(&[33]), mask(&[0, 64])], ["3", "2,00000000", "1,00000000,00000001"]);
    }
}
