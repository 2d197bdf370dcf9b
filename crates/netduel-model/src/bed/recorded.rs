//! What a run records of its bed: what the provider claims of its VMs and NICs, and what the guests showed before the first trial. Facts only;
//! what a disagreement means is decided elsewhere.
use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, Nic, Vm};
use super::money::Money;
use super::network::BedNetwork;
use super::resolved::Bed;
use super::spec::{BedType, Placement};
use super::sysctls::Sysctls;

/// The bed of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunBed {
    /// Its name.
    pub name: String,
    /// Its type; absent when it was deployed by other means.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<BedType>,
    /// The resource group.
    pub group: String,
    /// The region.
    pub region: String,
    /// How close the provider claims that its VMs are to each other.
    pub placement: Placement,
    /// When it was created, seconds since 1970-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_unix_s: Option<u64>,
    /// The price of all VMs for an hour as it was when the bed was created; absent when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Money>,
    /// When the price was looked up, seconds since 1970-01-01T00:00:00Z; absent in a bed of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_read_unix_s: Option<u64>,
    /// The SHA-256 of the ARM template of its last `netduel azure up`, in hexadecimal digits; absent in a bed of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_sha256: Option<String>,
    /// The text of a bed file with which it was deployed, every default written out, without the keys of its user (subscription, public key, prefixes for ssh); absent when the tags of the resource group do not have all keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its VMs by name, those too that the plan does not use.
    pub vms: Vec<BedVm>,
}

/// A VM of a bed. The hosts of the resolved plan name theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BedVm {
    /// Its name, for example `vm1`.
    pub name: String,
    /// The user for ssh; absent when the provider does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// What the provider claims.
    pub claimed: VmFacts,
    /// What the guest showed; absent for a VM that the plan does not use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<VmFacts>,
    /// Its NICs in the order of the provider, those too that are not attached.
    pub nics: Vec<BedNic>,
}

/// Facts of a VM. A fact is absent when its source does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VmFacts {
    /// The VM's own id (`vmId`), lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The size, for example `Standard_DS4_v2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// The region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The availability zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The proximity placement group, availability set or scale set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
    /// The physical host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_host: Option<String>,
}

/// A NIC of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BedNic {
    /// Name of its resource, for example `vm1-accelerated`.
    pub name: String,
    /// The network that it is in; absent for a NIC that netduel did not name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<BedNetwork>,
    /// The subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet: Option<String>,
    /// Its private addresses, IPv4 first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Its public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_address: Option<IpAddr>,
    /// Its MAC address, lower case with colons; absent before it was attached for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Whether the provider claims that accelerated networking is on.
    pub is_accelerated: bool,
    /// Whether it is attached to its VM.
    pub is_attached: bool,
    /// The interface of the guest with its MAC address, that of a bond or of `net_failover` when it is below one; absent when there is none, or the guest was not inspected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<SeenNic>,
}

/// A NIC as its guest shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeenNic {
    /// Name of the interface that has the addresses.
    pub interface: String,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Its virtual function; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vf: Option<SeenVf>,
}

/// The virtual function of a NIC as its guest shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenVf {
    /// Its interface, or its PCI address when it has none.
    pub name: String,
    /// Its driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// What it is, for example `Mellanox ConnectX-4 Lx VF`, or vendor and device of an unknown one as `15b3:1016`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it can carry traffic.
    pub state: VfUse,
}

/// Whether a virtual function can carry the traffic of its NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VfUse {
    /// It is paired, up, and has carried packets.
    Active,
    /// It is paired and up, and no counter shows whether it carries packets.
    Paired,
    /// It is paired and up, and has carried no packet.
    Idle,
    /// It is paired and down.
    Down,
    /// It is not below the interface that has the addresses.
    Unpaired,
    /// It has no driver.
    NoDriver,
    /// It has a driver and no interface in the network namespace.
    NoInterface,
}

impl VfUse {
    /// Whether the traffic of its NIC uses it.
    pub fn carries(self) -> bool {
        matches!(self, Self::Active | Self::Paired | Self::Idle)
    }
}

impl RunBed {
    /// What a bed will be, as far as its file says it: no addresses, ids or facts of guests.
    pub fn planned(bed: &Bed) -> Self {
        let nic = |nic: &Nic| BedNic {
            name: nic.name.clone(),
            network: Some(nic.used_for.network()),
            subnet: Some(nic.subnet.clone()),
            is_accelerated: nic.is_accelerated,
            is_attached: nic.is_attached(),
            ..BedNic::default()
        };
        let vm = |vm: &Vm| BedVm {
            name: vm.name.clone(),
            user: Some(Bed::USER.to_owned()),
            claimed: VmFacts {
                size: Some(bed.size.name.clone()),
                region: Some(bed.region.clone()),
                zone: bed.zone.map(|zone| zone.to_string()),
                ..VmFacts::default()
            },
            nics: vm.nics.iter().map(nic).collect(),
            ..BedVm::default()
        };
        Self {
            name: bed.name.clone(),
            kind: Some(bed.kind),
            group: bed.group(),
            region: bed.region.clone(),
            placement: bed.placement,
            created_unix_s: None,
            price_per_hour: None,
            price_read_unix_s: None,
            template_sha256: None,
            file: Some(bed.file_text()),
            vms: Layout::of(bed).vms.iter().map(vm).collect(),
        }
    }

    /// Whether it is known to have no proximity placement group of netduel.
    pub fn lacks_proximity_group(&self) -> bool {
        self.placement != Placement::ProximityGroup
            && self.kind.is_some_and(|kind| !kind.has_spare_proximity_group())
    }

    /// How close the VMs were to each other when the bed was deployed, as far as its file is known: a treatment may have moved them since, and a
    /// run that was killed may have left them there.
    pub fn deployed_placement(&self) -> Placement {
        self.deployed().map_or(self.placement, |bed| bed.placement)
    }

    /// Whether accelerated networking of a NIC is on, as the provider claims and as the bed was deployed. `None` where the two differ, as after a
    /// run that was killed, where the file is unknown, so that the claim may be the state of such a run, and for a NIC that the bed does not have.
    pub fn nic_state(&self, name: &str) -> Option<bool> {
        let claimed = *self.claimed_nics().get(name)?;
        (self.deployed_nics().get(name) == Some(&claimed)).then_some(claimed)
    }

    /// Whether accelerated networking of each NIC is on, as the provider claims, by name.
    pub fn claimed_nics(&self) -> BTreeMap<String, bool> {
        self.vms.iter().flat_map(|vm| &vm.nics).map(|nic| (nic.name.clone(), nic.is_accelerated)).collect()
    }

    /// Whether accelerated networking of each NIC was on when the bed was deployed, by name; empty when its file is unknown.
    pub fn deployed_nics(&self) -> BTreeMap<String, bool> {
        let Some(bed) = self.deployed() else { return BTreeMap::new() };
        let layout = Layout::of(&bed);
        layout.nics().map(|nic| (nic.name.clone(), nic.is_accelerated)).collect()
    }

    /// The sysctls that its file sets in each VM; none when the file is unknown.
    pub fn sysctls(&self) -> Sysctls {
        self.deployed().map(|bed| bed.sysctls).unwrap_or_default()
    }

    /// The bed of its file.
    fn deployed(&self) -> Option<Bed> {
        super::parse(self.file.as_deref()?, "the bed").ok()
    }

    /// The VM of a name.
    pub fn vm(&self, name: &str) -> Option<&BedVm> {
        self.vms.iter().find(|vm| vm.name == name)
    }
}

impl BedVm {
    /// The NIC in a network, an attached one before others.
    pub fn nic_in(&self, network: BedNetwork) -> Option<&BedNic> {
        self.nics.iter().filter(|nic| nic.network == Some(network)).min_by_key(|nic| !nic.is_attached)
    }

    /// The address for ssh.
    pub fn public_address(&self) -> Option<IpAddr> {
        self.nics.iter().find_map(|nic| nic.public_address)
    }
}
