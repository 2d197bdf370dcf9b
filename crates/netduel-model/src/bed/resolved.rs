//! A bed that makes sense, with every default written out: what is deployed.
use super::money::Money;
use super::prefix::Prefix;
use super::shutdown::ShutdownTime;
use super::spec::{BedType, Families, Image, Placement};
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
    /// Prefixes that may connect by ssh; empty when the command line has to name them.
    pub ssh_from: Vec<Prefix>,
    /// Whether Azure may evict the VMs.
    pub is_spot: bool,
    /// When the VMs shut down; `None` for never.
    pub shutdown: Option<ShutdownTime>,
    /// The most that the bed may cost until its next shutdown.
    pub budget: Option<Money>,
}

impl Bed {
    /// File of the public key when a bed names none.
    pub const SSH_KEY: &str = "~/.ssh/id_ed25519.pub";
    /// The user of the VMs.
    pub const USER: &str = "netduel";

    /// Name of the resource group of a bed.
    pub fn group_of(name: &str) -> String {
        format!("netduel-{name}")
    }

    /// Name of its resource group.
    pub fn group(&self) -> String {
        Self::group_of(&self.name)
    }
}
