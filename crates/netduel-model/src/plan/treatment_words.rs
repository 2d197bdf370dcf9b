//! Treatments in words, for reports, progress and errors. It changes and checks nothing.
use super::resolved::TreatmentAction;
use super::tuning::CoreChoice;
use crate::shell;
use crate::units::plural;

impl TreatmentAction {
    /// The change in words: `tso of eth0 off`.
    pub fn words(&self) -> String {
        match self {
            Self::Path { path } => format!("lab path {}", path.word()),
            Self::Offload { interface, feature, enabled } => {
                format!("{feature} of {interface} {}", if *enabled { "on" } else { "off" })
            }
            Self::Mtu { interface, mtu } => format!("MTU {mtu} B on {interface}"),
            Self::Sysctl { name, value } => format!("{name} = {value}"),
            Self::Vf { interface } => format!("virtual function of {interface} down"),
            Self::Pci { interface } => format!("PCI function of {interface} removed from the bus"),
            Self::Queues { interface, queues } => format!("{} on {interface}", plural(*queues, "queue")),
            Self::Rss { interface, table } => format!("RSS table {table} on {interface}"),
            Self::Ring { interface, ring, descriptors } => {
                format!("{} ring of {descriptors} descriptors on {interface}", ring.word())
            }
            Self::Coalesce { interface, parameter, value } => {
                let value = match (parameter.starts_with("adaptive-"), value) {
                    (true, 0) => "off".to_owned(),
                    (true, _) => "on".to_owned(),
                    (false, value) => value.to_string(),
                };
                format!("interrupt coalescing {parameter} {value} on {interface}")
            }
            Self::Rps { interface, cores } => {
                format!("receive packet steering (RPS) of {interface} {}", core_words(cores))
            }
            Self::Xps { interface, cores } => {
                format!("transmit packet steering (XPS) of {interface} {}", core_words(cores))
            }
            Self::IrqAffinity { interface, cores } => {
                format!("interrupts of {interface} served {}", core_words(cores))
            }
            Self::AzureNic { nic, accelerated, .. } => {
                format!("accelerated networking of {nic} {}", if *accelerated { "on" } else { "off" })
            }
            Self::AzurePlacement { vm, group, .. } => format!("{vm} in the proximity group {group}"),
            Self::Command { command, .. } => format!("`{}`", shell::line(command)),
        }
    }
}

/// Cores of a steering treatment: `off`, `round-robin over all cores`, `on cores 0-1`.
fn core_words(choice: &CoreChoice) -> String {
    match choice {
        CoreChoice::Off => "off".to_owned(),
        CoreChoice::Spread => "round-robin over all cores".to_owned(),
        CoreChoice::Cores { cores } if cores.len() == 1 => format!("on core {choice}"),
        CoreChoice::Cores { .. } => format!("on cores {choice}"),
    }
}
