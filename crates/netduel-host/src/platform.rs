//! The provider of the machine: DMI, the folders of the hypervisor, the kernel log. No network access.
use std::path::Path;

use netduel_model::snapshot::{Cloud, Provider};

use crate::file::{field, line, whole};
use crate::kernel_log;
use crate::key_value_pool;

/// The chassis tag of every Azure machine
/// (<https://github.com/canonical/cloud-init/blob/main/cloudinit/sources/azure/identity.py>).
const AZURE_TAG: &str = "7783-7084-3265-9085-8269-3286-77";

/// Strings of DMI and the hypervisor; a missing one is empty.
pub(crate) struct Identity {
    vendor: String,
    product: String,
    tag: String,
    /// `product_uuid`, which only root may read.
    pub machine_uuid: String,
    /// `/sys/hypervisor/uuid`.
    hypervisor_uuid: String,
    /// `/sys/hypervisor/type`.
    xen: String,
    /// Whether the processor reports a hypervisor.
    guest: Option<bool>,
}

impl Identity {
    pub(crate) fn read(root: &Path, cpuinfo: &str) -> Self {
        let dmi = |name: &str| line(&root.join("sys/class/dmi/id").join(name)).unwrap_or_default();
        let hypervisor = |name: &str| line(&root.join("sys/hypervisor").join(name)).unwrap_or_default();
        Self {
            vendor: dmi("sys_vendor"),
            product: dmi("product_name"),
            tag: dmi("chassis_asset_tag"),
            machine_uuid: dmi("product_uuid"),
            hypervisor_uuid: hypervisor("uuid"),
            xen: hypervisor("type"),
            guest: is_guest(cpuinfo),
        }
    }

    /// The provider and the evidence, most certain first.
    fn provider(&self) -> Option<(Provider, String)> {
        let Self { vendor, product, tag, .. } = self;
        let is_ec2 = |uuid: &&String| uuid.to_ascii_lowercase().starts_with("ec2");
        let by_vendor = || format!("DMI vendor {vendor}");
        Some(if tag == AZURE_TAG {
            (Provider::Azure, format!("chassis asset tag {tag}"))
        } else if vendor == "Amazon EC2" {
            (Provider::Aws, by_vendor())
        } else if let Some(uuid) = [&self.machine_uuid, &self.hypervisor_uuid].into_iter().find(is_ec2) {
            (Provider::Aws, format!("machine UUID {uuid}"))
        } else if product == "Google Compute Engine" {
            (Provider::Gcp, format!("DMI product {product}"))
        } else if vendor.starts_with("VMware") {
            (Provider::Vmware, by_vendor())
        } else if vendor == "Microsoft Corporation" && product == "Virtual Machine" {
            (Provider::HyperV, format!("DMI vendor {vendor}, product {product}, without Azure's tag"))
        } else if vendor == "Xen" || self.xen == "xen" {
            (Provider::Xen, if vendor == "Xen" { by_vendor() } else { "/sys/hypervisor/type xen".to_owned() })
        } else if product.contains("KVM") {
            (Provider::Kvm, format!("DMI vendor {vendor}, product {product}"))
        } else if vendor == "QEMU" || product.starts_with("Standard PC") {
            (Provider::Qemu, format!("DMI vendor {vendor}, product {product}"))
        } else {
            let (provider, flag) = if self.guest? {
                (Provider::OtherHypervisor, "the processor has the flag `hypervisor`")
            } else {
                (Provider::BareMetal, "the processor has no flag `hypervisor`")
            };
            (provider, flag.to_owned())
        })
    }
}

/// Whether the processor reports a hypervisor (`hypervisor` among the flags); absent where flags are not listed, as
/// on Arm.
fn is_guest(cpuinfo: &str) -> Option<bool> {
    field(cpuinfo, "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The provider, and the hypervisor with its build.
pub(crate) fn cloud(root: &Path, identity: &Identity) -> (Option<Cloud>, Option<String>) {
    let Some((mut provider, mut evidence)) = identity.provider() else { return (None, None) };
    if provider == Provider::BareMetal {
        return (Some(of(provider, evidence)), None);
    }
    let log = kernel_log::hypervisor(root);
    let hypervisor = log.as_ref().map(kernel_log::Hypervisor::words).or_else(|| xen_version(root));
    // A small virtual machine monitor has no DMI, but the kernel knows the interface of the hypervisor.
    if provider == Provider::OtherHypervisor
        && let Some((known, clock)) = by_clock(root)
    {
        (provider, evidence) = (known, format!("the kernel has the clock source {clock}"));
    }
    // The firmware of QEMU is the same with and without KVM.
    if provider == Provider::Qemu {
        if log.as_ref().is_some_and(|log| log.words() == Provider::Kvm.words()) {
            (provider, evidence) = (Provider::Kvm, format!("{evidence}, kernel log KVM"));
        } else if let Some((Provider::Kvm, clock)) = by_clock(root) {
            (provider, evidence) = (Provider::Kvm, format!("{evidence}, clock source {clock}"));
        }
    }
    let mut cloud = of(provider, evidence);
    if matches!(provider, Provider::Azure | Provider::HyperV) {
        let pool = key_value_pool::read(root);
        let value = |name: &str| pool.get(name).filter(|value| !value.is_empty()).cloned();
        cloud.physical_host = value("PhysicalHostNameFullyQualified").or_else(|| value("PhysicalHostName"));
        cloud.instance = value("VirtualMachineId").or_else(|| value("VirtualMachineName"));
    }
    (Some(cloud), hypervisor)
}

/// The hypervisor whose clock the kernel can read (drivers/clocksource, arch/x86/kernel/kvmclock.c).
fn by_clock(root: &Path) -> Option<(Provider, String)> {
    let folder = root.join("sys/devices/system/clocksource/clocksource0");
    let clocks = line(&folder.join("available_clocksource"))?;
    clocks.split_whitespace().find_map(|clock| {
        let provider = match clock {
            "kvm-clock" => Provider::Kvm,
            "xen" => Provider::Xen,
            _ if clock.starts_with("hyperv_clocksource") => Provider::HyperV,
            _ => return None,
        };
        Some((provider, clock.to_owned()))
    })
}

/// A machine of a provider, of which nothing else is known yet.
pub(crate) fn of(provider: Provider, evidence: String) -> Cloud {
    Cloud {
        provider,
        evidence,
        size: None,
        region: None,
        zone: None,
        physical_zone: None,
        instance: None,
        placement: None,
        fault_domain: None,
        physical_host: None,
        image: None,
        metadata_failure: None,
    }
}

/// `Xen 4.17.2` from `/sys/hypervisor/version`.
fn xen_version(root: &Path) -> Option<String> {
    let folder = root.join("sys/hypervisor");
    if line(&folder.join("type"))? != "xen" {
        return None;
    }
    let part = |name: &str| line(&folder.join("version").join(name));
    let (major, minor) = (part("major")?, part("minor")?);
    Some(format!("Xen {major}.{minor}{}", part("extra").unwrap_or_default()))
}

/// Vendor, product and chassis tag of DMI, unchanged, for example `Microsoft Corporation / Virtual Machine /
/// 7783-7084-3265-9085-8269-3286-77`. Machines without DMI name themselves in the device tree.
pub(crate) fn platform(root: &Path, identity: &Identity) -> Option<String> {
    let Identity { vendor, product, tag, .. } = identity;
    let mut parts = vec![vendor.as_str(), product, tag];
    parts.retain(|part| !part.is_empty());
    if !parts.is_empty() {
        return Some(parts.join(" / "));
    }
    let model = whole(&root.join("proc/device-tree/model"))?;
    Some(model.trim().trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(vendor: &str, product: &str, tag: &str) -> Identity {
        let [vendor, product, tag] = [vendor, product, tag].map(str::to_owned);
        let [machine_uuid, hypervisor_uuid, xen] = [const { String::new() }; 3];
        Identity { vendor, product, tag, machine_uuid, hypervisor_uuid, xen, guest: Some(true) }
    }

    #[test]
    fn each_provider_is_known_by_its_own_mark() {
        let microsoft = ("Microsoft Corporation", "Virtual Machine");
        let named = [
            (identity(microsoft.0, microsoft.1, AZURE_TAG), Provider::Azure),
            (identity(microsoft.0, microsoft.1, "1234-5678"), Provider::HyperV),
            (identity("Amazon EC2", "m7i.large", ""), Provider::Aws),
            (
                Identity { hypervisor_uuid: "EC2e1916-9099".into(), ..identity("Xen", "HVM domU", "") },
                Provider::Aws,
            ),
            (identity("Google", "Google Compute Engine", ""), Provider::Gcp),
            (identity("VMware, Inc.", "VMware Virtual Platform", "No Asset Tag"), Provider::Vmware),
            (identity("Xen", "HVM domU", ""), Provider::Xen),
            (Identity { xen: "xen".into(), ..identity("", "", "") }, Provider::Xen),
            (identity("QEMU", "Standard PC (Q35 + ICH9, 2009)", ""), Provider::Qemu),
            (identity("Red Hat", "KVM", ""), Provider::Kvm),
            (identity("", "", ""), Provider::OtherHypervisor),
            (
                Identity { guest: Some(false), ..identity("Dell Inc.", "PowerEdge R750", "") },
                Provider::BareMetal,
            ),
        ];
        for (identity, provider) in named {
            let (seen, evidence) = identity.provider().unwrap();
            assert_eq!(seen, provider, "{} {}", identity.vendor, identity.product);
            assert!(!evidence.is_empty());
        }
        let unknown = Identity { guest: None, ..identity("Ampere", "Altra", "") };
        assert_eq!(unknown.provider(), None, "without the flags a hypervisor is unknown");
    }
}
