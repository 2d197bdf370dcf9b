//! Where a host runs: the provider, what it says of the machine, and what the guest can know of the one beneath it.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The provider of the machine on which a host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Microsoft Azure: chassis asset tag 7783-7084-3265-9085-8269-3286-77.
    Azure,
    /// Amazon EC2.
    Aws,
    /// Google Compute Engine.
    Gcp,
    /// Hyper-V without the tag of Azure.
    HyperV,
    /// VMware.
    Vmware,
    /// KVM without a known cloud.
    Kvm,
    /// QEMU without evidence of KVM: it may emulate the processor.
    Qemu,
    /// Xen without a known cloud.
    Xen,
    /// Another hypervisor, or one that does not name itself.
    OtherHypervisor,
    /// No hypervisor.
    BareMetal,
}

impl Provider {
    /// The name that people use.
    pub fn words(self) -> &'static str {
        match self {
            Self::Azure => "Azure",
            Self::Aws => "AWS",
            Self::Gcp => "Google Cloud",
            Self::HyperV => "Hyper-V",
            Self::Vmware => "VMware",
            Self::Kvm => "KVM",
            Self::Qemu => "QEMU",
            Self::Xen => "Xen",
            Self::OtherHypervisor => "a hypervisor that does not name itself",
            Self::BareMetal => "no hypervisor",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The provider, and the data of its metadata service about the machine. A field is absent when the service did not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cloud {
    /// The provider.
    pub provider: Provider,
    /// By what the provider was recognized, for example `chassis asset tag 7783-...`.
    pub evidence: String,
    /// Size or machine type, for example `Standard_DS4_v2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Zone as the subscription sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Zone as the provider sees it, the same for all subscriptions (Azure `physicalZone`, AWS `availability-zone-id`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_zone: Option<String>,
    /// The machine's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Placement group, availability set or scale set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// Fault domain within it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domain: Option<String>,
    /// The physical host: Hyper-V's key-value pool, a dedicated host's id, or GCP's `physical_host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_host: Option<String>,
    /// Image: publisher, offer and version as the provider writes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why the metadata service did not answer; absent when it answered or the provider has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_failure: Option<String>,
}
