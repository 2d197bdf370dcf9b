//! A bed as it is written in TOML: its keys and words. Types are checked when it is read, sense by `check`.
//!
//! The doc comments are the descriptions in the JSON Schema and in the guide: they speak to the bed's author.
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sysctls::Sysctls;
use crate::plan::shape::shape;
use crate::plan::value::choices;
use crate::word::word;

shape! {
    /// A netduel bed: VMs on Azure that `netduel azure up` deploys and `netduel azure down` deletes.
    pub struct BedSpec {
        /// Short name; the resource group is `netduel-NAME`. 1 to 24 of a-z 0-9 -, beginning with a letter, not ending with `-`.
        required name: String,
        /// The region as `az account list-locations` names it, for example `westeurope`.
        required region: String,
        /// The size of all VMs as Azure names it, for example `Standard_DS4_v2`.
        required size: String,
        /// The type of bed. Default `two-nic`.
        optional kind as "type": BedType,
        /// The subscription, by id or name. Default: the current one of `az`.
        optional subscription: String,
        /// The availability zone of all VMs, 1 to 3. Default: none in particular.
        optional zone: u32,
        /// The operating system. Default `ubuntu-24.04`.
        optional image: Image,
        /// How close the VMs are to each other. Default `none`.
        optional placement: Placement,
        /// The IP versions of the test networks. Default `ipv4`.
        optional families: Families,
        /// 1: both ends of a test network are in one subnet. 2: each end has a subnet of its own. Default 1.
        optional subnets: u32,
        /// File with the public key that may log in by ssh as `netduel`; a path that begins with `~/` is below your home folder.
        /// Default `~/.ssh/id_ed25519.pub`.
        optional ssh_key: String,
        /// IPv4 address prefixes that may connect by ssh, for example `["192.0.2.1/32"]`: the address with which this machine appears to
        /// Azure. At least /16 long; no private address, which Azure never sees; no IPv6, because all public addresses of a bed are IPv4.
        /// Default: `--ssh-from` of the command line, or else the address of this machine where it is public; without one nothing is
        /// deployed.
        optional ssh_from: Vec<String>,
        /// Spot VMs: cheaper, and Azure may evict them at any time. Default `false`.
        optional spot: bool,
        /// Time of day, UTC, at which Azure shuts the VMs down, for example `"19:00"`; `"off"`: never. Default `"19:00"`.
        optional shutdown: String,
        /// The most that the VMs may cost until the next shutdown (24 h with `"off"`), for example `"20 EUR"`: `netduel azure up` and
        /// `netduel azure run --start` refuse a more expensive bed, and one whose price is unknown. A shutdown in less than an hour may
        /// miss new VMs, and one in less than 10 minutes VMs that start: the one of the next day counts. The currency is the
        /// one in which prices are shown. Default: no limit, US dollars.
        optional budget: String,
        /// Sysctls that cloud-init sets in each VM at its first boot, by name, for example `{ "net.core.rmem_max" = "134217728" }`: those that a
        /// treatment of a plan may change without further permission, but none of a single interface. At most 256 bytes together.
        /// Default: none.
        optional sysctls: Sysctls,
    }
}

/// Defines the types of beds. The doc comment of a type is its description in the JSON Schema and its meaning in the help.
macro_rules! bed_types {
    ($(#[doc = $doc:literal] $(#[$attribute:ident])? $variant:ident,)+) => {
        /// A type of bed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum BedType {
            $(#[doc = $doc] $(#[$attribute])? $variant,)+
        }

        impl BedType {
            /// What a bed of the type is, a sentence without its full stop.
            pub fn meaning(self) -> &'static str {
                let sentence = match self {
                    $(Self::$variant => $doc,)+
                };
                sentence.trim().trim_end_matches('.')
            }
        }
    };
}

bed_types! {
    /// Two VMs, each with a synthetic and an accelerated NIC in two test networks: both arms on the same hosts at the same time.
    #[default]
    TwoNic,
    /// Four VMs: one pair with accelerated networking and one without.
    TwoPairs,
    /// Two VMs with one test NIC each, whose accelerated networking a plan switches between arms.
    Toggle,
    /// Two VMs, each with a NIC for management and an accelerated one for DPDK.
    Dpdk,
    /// Two VMs, each with an accelerated test NIC and a second one beside it that is not attached.
    HotAdd,
}

impl BedType {
    /// All types.
    pub const ALL: [Self; 5] = [Self::TwoNic, Self::TwoPairs, Self::Toggle, Self::Dpdk, Self::HotAdd];

    /// Whether an arm is without accelerated networking.
    pub fn has_synthetic_arm(self) -> bool {
        matches!(self, Self::TwoNic | Self::TwoPairs | Self::Toggle)
    }

    /// Whether it has an empty proximity placement group, into which the treatment `azure-placement` moves VMs.
    pub fn has_spare_proximity_group(self) -> bool {
        self == Self::Toggle
    }
}

impl fmt::Display for BedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(word(self))
    }
}

/// How close the VMs of a bed are to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
// A host has a placement, too, of cores: the reference page of the documents has one part for each name.
#[schemars(rename = "BedPlacement")]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Wherever Azure puts them, also on one host.
    #[default]
    None,
    /// An availability set: on different hosts.
    AvailabilitySet,
    /// A proximity placement group: in one data center.
    ProximityGroup,
    /// A size whose VM has its host to itself.
    IsolatedSize,
}

/// The IP versions of the test networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Families {
    /// IPv4 only.
    #[default]
    Ipv4,
    /// IPv4 and IPv6. Azure has no NIC without IPv4.
    DualStack,
}

/// The operating system of the VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Image {
    /// Ubuntu 24.04 LTS.
    #[default]
    #[serde(rename = "ubuntu-24.04")]
    Ubuntu2404,
    /// Debian 12.
    #[serde(rename = "debian-12")]
    Debian12,
    /// Azure Linux 3.
    #[serde(rename = "azure-linux-3")]
    AzureLinux3,
    /// Windows Server 2022. Refused: netduel has no agent for Windows.
    #[serde(rename = "windows-server-2022")]
    WindowsServer2022,
}

choices!(BedType, Families, Image, Placement);
