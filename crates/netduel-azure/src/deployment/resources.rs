//! Resources as messages name them: by kind and name. Nothing is asked here.
use std::fmt;

use netduel_model::units::plural;

/// Resources that are named at most.
const NAMED_MAX: usize = 10;
/// The kind of a VM.
const VM: &str = "VM";

/// A resource for people, for example `VM vm1`, by its type in ARM and its name.
pub(super) fn shown(kind: &str, name: &str) -> String {
    let kind = match kind.rsplit('/').next().unwrap_or_default() {
        "virtualMachines" => VM,
        "networkInterfaces" => "NIC",
        "virtualNetworks" => "network",
        "networkSecurityGroups" => "security group",
        "publicIPAddresses" => "address",
        "availabilitySets" => "availability set",
        "proximityPlacementGroups" => "proximity group",
        "schedules" => "schedule",
        "disks" => "disk",
        other => other,
    };
    format!("{kind} {name}")
}

/// Whether this is a VM as [`shown`] names it.
pub(super) fn is_vm(resource: &str) -> bool {
    resource.split(' ').next() == Some(VM)
}

/// Resources in the group of a bed that netduel did not create, each by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Foreign(pub Vec<String>);

impl Foreign {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = self.0.iter().take(NAMED_MAX).map(String::as_str).collect();
        let count = plural(self.0.len(), "resource");
        write!(f, "{count} that netduel did not create: {}", named.join(", "))?;
        match self.0.len().saturating_sub(NAMED_MAX) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_list_of_resources_ends_with_their_count() {
        let of = |count: usize| Foreign((0..count).map(|number| format!("disk d{number}")).collect());
        assert_eq!(of(1).to_string(), "1 resource that netduel did not create: disk d0");
        let text = of(12).to_string();
        assert!(text.starts_with("12 resources ") && text.ends_with("disk d9 and 2 more"), "{text}");
    }
}
