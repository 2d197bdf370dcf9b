//! Documents of `netduel azure`: a checked bed, and beds that exist.
use std::net::IpAddr;

use netduel_model::bed::layout::{End, Nic, Vm, suits};
use netduel_model::bed::money::Money;
use netduel_model::bed::{Bed, BedType, Families, Image, Layout, Placement};
use netduel_model::size::Size;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, Origin, iso_8601};
use super::facts::Sysctl;

/// Seconds of an hour, the time of a price.
const HOUR_S: f64 = 3600.0;

/// A checked bed: `netduel azure check --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CheckedBed {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// File of the bed.
    pub file: String,
    /// Name of the bed.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: BedType,
    /// Name of its resource group.
    pub group: String,
    /// Subscription, by id or name; null for the current one of `az`.
    pub subscription: Option<String>,
    /// Region.
    pub region: String,
    /// Availability zone; null for none in particular.
    pub zone: Option<u32>,
    /// Operating system.
    pub image: Image,
    /// How close the VMs are to each other.
    pub placement: Placement,
    /// IP versions of the test networks.
    pub families: Families,
    /// Sysctls that cloud-init sets in each VM; empty when the file has none.
    pub sysctls: Vec<Sysctl>,
    /// Size of all VMs.
    pub size: BedSize,
    /// vCPUs of all VMs: what the quota must have left.
    pub vcpus: u32,
    /// The VMs; each two that follow one another are a pair.
    pub vms: Vec<BedVm>,
    /// Prefixes that may connect by ssh; empty when the file names none.
    pub ssh_from: Vec<String>,
    /// Whether Azure may evict the VMs.
    pub spot: bool,
    /// Time of the daily shutdown, UTC, for example `19:00`; null for none.
    pub shutdown: Option<String>,
    /// The most that the VMs may cost from their creation or start until the next shutdown that they cannot miss, or in 24 h when `shutdown` is null;
    /// null for no limit.
    pub budget: Option<Price>,
    /// Price of all VMs for an hour as it was looked up last, or else the list price, in US dollars; null when neither is known. Check needs no
    /// network: only with `--price` it looks the price up.
    pub price_per_hour: Option<Price>,
    /// Whether it is a list price of netduel's own table, an estimate; false when it was looked up, and without a price.
    pub price_is_estimate: bool,
    /// When it was looked up, or when Azure gave the list price, UTC; null without a price.
    pub price_read: Option<String>,
    /// The same, milliseconds since 1970-01-01T00:00:00Z.
    pub price_read_unix_ms: Option<u64>,
}

/// A known price of a VM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VmPrice<'p> {
    /// One VM for an hour.
    pub of_vm: &'p Money,
    /// When Azure gave it, seconds since 1970-01-01T00:00:00Z.
    pub read_unix_s: u64,
    /// Whether it is a list price of netduel's own table, and was not looked up.
    pub is_estimate: bool,
}

/// What the VMs of a bed cost during a run, an estimate: without their creation and start, the time after the run, disks, addresses and traffic.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BedCost {
    /// Shortest time that the run is expected to take: the fewest blocks, with the stops of VMs that it needs.
    pub time_min_ns: u64,
    /// Longest time that the run is expected to take: the most blocks, with the stops of VMs that it may need.
    pub time_max_ns: u64,
    /// What all VMs cost in the shortest time; null without a price.
    pub cost_min: Option<Price>,
    /// What all VMs cost in the longest time; null without a price.
    pub cost_max: Option<Price>,
    /// Price of all VMs for an hour as it was looked up last, or else the list price, in US dollars; null when neither is known.
    pub price_per_hour: Option<Price>,
    /// Whether it is a list price of netduel's own table, an estimate; false when it was looked up, and without a price.
    pub price_is_estimate: bool,
    /// When it was looked up, or when Azure gave the list price, UTC; null without a price.
    pub price_read: Option<String>,
    /// The same, milliseconds since 1970-01-01T00:00:00Z.
    pub price_read_unix_ms: Option<u64>,
}

impl BedCost {
    /// Of a bed with so many VMs, all of which run during the shortest and the longest time of a run in seconds, with what is known of its price.
    pub fn of(vms: usize, times_s: [f64; 2], price: Option<&VmPrice<'_>>) -> Self {
        let of_all = price.map(|price| price.of_vm.times(vms as f64));
        let cost = |time_s: f64| of_all.as_ref().map(|price| Price::of(&price.times(time_s / HOUR_S)));
        let read_unix_ms = price.map(|price| price.read_unix_s.saturating_mul(1000));
        let [time_min_ns, time_max_ns] = times_s.map(|time_s| (time_s * 1e9) as u64);
        let [cost_min, cost_max] = times_s.map(cost);
        Self {
            time_min_ns,
            time_max_ns,
            cost_min,
            cost_max,
            price_per_hour: of_all.as_ref().map(Price::of),
            price_is_estimate: price.is_some_and(|price| price.is_estimate),
            price_read: read_unix_ms.map(iso_8601),
            price_read_unix_ms: read_unix_ms,
        }
    }
}

impl Document for CheckedBed {
    const NAME: &'static str = "netduel.bed";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A size of VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BedSize {
    /// As Azure names it.
    pub name: String,
    /// vCPUs of a VM.
    pub vcpus: u32,
    /// NICs of a VM at most.
    pub nics: u32,
    /// What all NICs of a VM send together at most.
    pub limit_bps: u64,
    /// NICs of a VM with accelerated networking at most.
    pub accelerated_nics: u32,
    /// Whether accelerated networking can be off.
    pub can_be_synthetic: bool,
    /// Whether a VM has its host to itself.
    pub isolated: bool,
    /// Types of beds that can have VMs of this size.
    pub bed_types: Vec<BedType>,
    /// Page and date of these figures.
    pub source: String,
    /// Why the limit may be wrong, or for whom it holds; null where nothing is known against it.
    pub doubt: Option<String>,
    /// Name of the quota that counts its vCPUs; null where it is not known.
    pub quota_family: Option<String>,
}

/// A VM of a bed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BedVm {
    /// Its name.
    pub name: String,
    /// Whether it is the client of its pair; the other VM is the server.
    pub is_client: bool,
    /// Its NICs.
    pub nics: Vec<BedNic>,
}

/// A NIC of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BedNic {
    /// Its name.
    pub name: String,
    /// What it is for: `management`, `synthetic`, `accelerated`, `test` or `spare`.
    pub used_for: String,
    /// Its subnet.
    pub subnet: String,
    /// Whether accelerated networking is on at first.
    pub accelerated: bool,
    /// Whether ssh reaches the VM through it.
    pub ssh: bool,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Price {
    /// The amount, in whole units of the currency.
    pub amount: f64,
    /// The currency by its three letters.
    pub currency: String,
}

impl Price {
    /// An amount of the model.
    pub fn of(money: &Money) -> Self {
        Self { amount: money.amount, currency: money.currency.clone() }
    }

    /// The amount as the model has it.
    pub fn money(&self) -> Money {
        Money { amount: self.amount, currency: self.currency.clone() }
    }
}

/// Sizes of VMs that netduel knows: `netduel azure sizes --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BedSizes {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The sizes, those of a series in order; with `--type` those that a bed of the type can have.
    pub sizes: Vec<BedSize>,
}

impl Document for BedSizes {
    const NAME: &'static str = "netduel.sizes";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// Beds that exist: `netduel azure list`, `up` and `down` with `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BedsDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// With `list` every bed of the subscription; with `up` the bed that was created; with `down` none.
    pub beds: Vec<DeployedBed>,
    /// Names of the beds that `down` deletes; empty for other commands and when the user refused.
    pub removed: Vec<String>,
}

impl Document for BedsDocument {
    const NAME: &'static str = "netduel.beds";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A bed that exists.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeployedBed {
    /// Name.
    pub name: String,
    /// Name of its resource group.
    pub group: String,
    /// Region.
    pub region: String,
    /// When it was created: ISO 8601, UTC; null when its tags do not say it.
    pub created: Option<String>,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub created_unix_ms: Option<u64>,
    /// Price of all VMs for an hour; null when it is unknown.
    pub price_per_hour: Option<Price>,
    /// What the VMs have cost if they ran since then without a shutdown; null when price or time are unknown.
    pub cost_at_most: Option<Price>,
    /// Time of the daily shutdown, UTC, or `off`; null when its tags do not say it.
    pub shutdown: Option<String>,
    /// Whether Azure is deleting it; false except with `list`.
    pub is_being_deleted: bool,
    /// Its VMs with their addresses; empty except with `up`.
    pub hosts: Vec<BedHost>,
}

/// A VM that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BedHost {
    /// Its name.
    pub name: String,
    /// Destination for ssh, for example `netduel@192.0.2.7`.
    pub ssh: String,
    /// Its NICs.
    pub nics: Vec<BedHostNic>,
}

/// A NIC that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BedHostNic {
    /// Its name.
    pub name: String,
    /// Its addresses, IPv4 first.
    pub addresses: Vec<IpAddr>,
}

impl CheckedBed {
    /// Of a bed of a file, with what is known of its price.
    pub fn of(file: &str, bed: &Bed, price: Option<&VmPrice<'_>>, origin: &Origin) -> Self {
        let layout = Layout::of(bed);
        let read_unix_ms = price.map(|price| price.read_unix_s.saturating_mul(1000));
        let sysctl = |(name, value): (&String, &String)| Sysctl { name: name.clone(), value: value.clone() };
        Self {
            envelope: Self::envelope(origin),
            file: file.to_owned(),
            name: bed.name.clone(),
            kind: bed.kind,
            group: bed.group(),
            subscription: bed.subscription.clone(),
            region: bed.region.clone(),
            zone: bed.zone,
            image: bed.image,
            placement: bed.placement,
            families: bed.families,
            sysctls: bed.sysctls.0.iter().map(sysctl).collect(),
            size: BedSize::of(bed.size),
            vcpus: layout.vcpus(bed),
            vms: layout.vms.iter().map(BedVm::of).collect(),
            ssh_from: bed.ssh_from.iter().map(ToString::to_string).collect(),
            spot: bed.is_spot,
            shutdown: bed.shutdown.map(|time| time.to_string()),
            budget: bed.budget.as_ref().map(Price::of),
            price_per_hour: price.map(|price| Price::of(&price.of_vm.times(layout.vms.len() as f64))),
            price_is_estimate: price.is_some_and(|price| price.is_estimate),
            price_read: read_unix_ms.map(iso_8601),
            price_read_unix_ms: read_unix_ms,
        }
    }
}

impl BedSizes {
    /// Of these sizes.
    pub fn of<'s>(sizes: impl IntoIterator<Item = &'s Size>, origin: &Origin) -> Self {
        Self { envelope: Self::envelope(origin), sizes: sizes.into_iter().map(BedSize::of).collect() }
    }
}

impl BedSize {
    fn of(size: &Size) -> Self {
        Self {
            name: size.name.clone(),
            vcpus: size.vcpus,
            nics: size.nics,
            limit_bps: size.rate().0,
            accelerated_nics: size.accelerated_nics_max(),
            can_be_synthetic: size.can_be_synthetic(),
            isolated: size.is_isolated,
            bed_types: BedType::ALL.into_iter().filter(|kind| suits(*kind, size)).collect(),
            source: size.source(),
            doubt: Some(size.doubt.clone()).filter(|doubt| !doubt.is_empty()),
            quota_family: size.quota_family().map(str::to_owned),
        }
    }
}

impl BedVm {
    fn of(vm: &Vm) -> Self {
        let is_client = vm.end == End::Client;
        Self { name: vm.name.clone(), is_client, nics: vm.nics.iter().map(BedNic::of).collect() }
    }
}

impl BedNic {
    fn of(nic: &Nic) -> Self {
        Self {
            name: nic.name.clone(),
            used_for: nic.used_for.to_string(),
            subnet: nic.subnet.clone(),
            accelerated: nic.is_accelerated,
            ssh: nic.has_public_address,
        }
    }
}
