//! A bed that makes sense, with every default written out: what is deployed.
use super::money::Money;
use super::prefix::Prefix;
use super::shutdown::ShutdownTime;
use super::spec::{BedSpec, BedType, Families, Image, Placement};
use super::sysctls::Sysctls;
use crate::size::Size;

/// A checked bed.
#[derive(Debug, Clone, PartialEq)]
pub struct Bed {
    /// Short name.
    pub name: String,
    /// Region.
    pub region: String,
    /// The size of all VMs.
    pub size: &'static Size,
    /// The type of bed.
    pub kind: BedType,
    /// Id or name of the subscription; `None` for the current one of `az`.
    pub subscription: Option<String>,
    /// Availability zone.
    pub zone: Option<u32>,
    /// Operating system.
    pub image: Image,
    /// How close the VMs are to each other.
    pub placement: Placement,
    /// IP versions of the test networks.
    pub families: Families,
    /// Subnets of each test network, 1 or 2.
    pub subnets: u32,
    /// File of the public key.
    pub ssh_key: String,
    /// Prefixes that may connect by ssh; empty when the file names none.
    pub ssh_from: Vec<Prefix>,
    /// Whether Azure may evict the VMs.
    pub is_spot: bool,
    /// When the VMs shut down; `None` for never.
    pub shutdown: Option<ShutdownTime>,
    /// The most that the VMs may cost from their creation or start until the next shutdown that they cannot miss, or in a day without one.
    pub budget: Option<Money>,
    /// Sysctls that cloud-init sets in each VM.
    pub sysctls: Sysctls,
}

impl Bed {
    /// File of the public key when a bed names none.
    pub const SSH_KEY: &str = "~/.ssh/id_ed25519.pub";
    /// The user of the VMs.
    pub const USER: &str = "netduel";
    /// The proximity placement group of a bed that has one.
    pub const PROXIMITY_GROUP: &str = "netduel-proximity";
    /// The availability set of a bed that has one.
    pub const AVAILABILITY_SET: &str = "netduel-availability";

    /// Name of the resource group of a bed.
    pub fn group_of(name: &str) -> String {
        format!("netduel-{name}")
    }

    /// Name of its resource group.
    pub fn group(&self) -> String {
        Self::group_of(&self.name)
    }

    /// Its keys with every default written out, without those of the user who deploys it: the subscription, the public key and the prefixes for
    /// ssh. The template follows from these keys alone.
    pub fn spec(&self) -> BedSpec {
        BedSpec {
            name: Some(self.name.clone()),
            region: Some(self.region.clone()),
            size: Some(self.size.name.clone()),
            kind: Some(self.kind),
            subscription: None,
            zone: self.zone,
            image: Some(self.image),
            placement: Some(self.placement),
            families: Some(self.families),
            subnets: Some(self.subnets),
            ssh_key: None,
            ssh_from: None,
            spot: Some(self.is_spot),
            shutdown: Some(
                self.shutdown.map_or_else(|| ShutdownTime::OFF.to_owned(), |time| time.to_string()),
            ),
            // All digits of the amount: a rounded limit is another one.
            budget: self.budget.as_ref().map(Money::exact),
            sysctls: Some(self.sysctls.clone()).filter(|sysctls| !sysctls.0.is_empty()),
        }
    }

    /// The text of a bed file with the keys of [`spec`](Self::spec), which [`parse`](super::parse) reads back.
    pub fn file_text(&self) -> String {
        // TOML has every text, small number, flag and table of texts. The only table is the last key: what follows a table belongs to it.
        toml::to_string(&self.spec()).unwrap_or_default()
    }
}
