//! A bed as Azure shows it now: its VMs with their state, NICs, addresses and flags. Asked anew for each use, because the portal can change
//! everything; the outputs of the deployment are those of its day.
use std::collections::BTreeMap;
use std::net::IpAddr;

use netduel_model::bed::layout::NicUse;
use netduel_model::bed::{Bed, BedNic, BedVm, Placement, RunBed, VmFacts};
use serde::Deserialize;

use super::error::BedError;
use super::groups::Group;
use super::progress::FAILED_LOOKS_MAX;
use super::subscription::Subscription;
use crate::az::{Az, CALL_LIMIT, CallError, ask, looks_of, mac, or_default};
use crate::tags::{self, Tags};

/// The state of a VM that runs, and the states on the way there, as Azure names them.
const RUNNING: &str = "VM running";
const ON_THE_WAY: [&str; 2] = ["VM starting", "VM creating"];
/// The option with which `az vm list` shows states and public addresses.
const DETAILS: [&str; 1] = ["--show-details"];
/// Time limit of a start of VMs, minutes, without the time of the calls.
pub const LIMIT_MIN: u64 = 10;

/// A deployed bed.
#[derive(Debug, Clone, PartialEq)]
pub struct Inventory {
    /// What Azure claims.
    pub bed: RunBed,
    /// The state of each VM by its name, as Azure names it: `VM running`.
    pub states: BTreeMap<String, String>,
}

impl Inventory {
    /// Those of the VMs that do not run, each with its state.
    pub fn not_running<'a>(&'a self, vms: impl IntoIterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
        let state = |vm: &'a str| self.states.get(vm).map_or("unknown", String::as_str);
        vms.into_iter().map(|vm| (vm, state(vm))).filter(|(_, state)| *state != RUNNING).collect()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Machine {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    tags: BTreeMap<String, String>,
    #[serde(default)]
    location: Option<String>,
    #[serde(default)]
    vm_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    zones: Vec<String>,
    #[serde(default)]
    hardware_profile: Option<HardwareProfile>,
    #[serde(default)]
    os_profile: Option<OsProfile>,
    #[serde(default)]
    network_profile: Option<NetworkProfile>,
    #[serde(default)]
    proximity_placement_group: Option<Reference>,
    #[serde(default)]
    availability_set: Option<Reference>,
    #[serde(default, deserialize_with = "or_default")]
    power_state: String,
    #[serde(default, deserialize_with = "or_default")]
    public_ips: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HardwareProfile {
    #[serde(default)]
    vm_size: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OsProfile {
    #[serde(default)]
    admin_username: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NetworkProfile {
    #[serde(default, deserialize_with = "or_default")]
    network_interfaces: Vec<Reference>,
}

#[derive(Debug, Clone, Deserialize)]
struct Reference {
    #[serde(default, deserialize_with = "or_default")]
    id: String,
}

impl Reference {
    /// The last part of the id: the name of the resource.
    fn name(&self) -> &str {
        self.id.rsplit('/').next().unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    name: String,
    #[serde(default)]
    mac_address: Option<String>,
    #[serde(default)]
    enable_accelerated_networking: Option<bool>,
    #[serde(default)]
    virtual_machine: Option<Reference>,
    #[serde(default, deserialize_with = "or_default")]
    ip_configurations: Vec<IpConfiguration>,
}

#[derive(Debug, Deserialize)]
struct IpConfiguration {
    // Releases of `az` differ in the letters.
    #[serde(default, rename = "privateIPAddress", alias = "privateIpAddress")]
    private_address: Option<IpAddr>,
    #[serde(default, rename = "publicIPAddress", alias = "publicIpAddress")]
    public_address: Option<Reference>,
    #[serde(default)]
    subnet: Option<Reference>,
}

impl Interface {
    /// The VM that has it, or for which it lies ready: netduel names it after that VM.
    fn vm(&self) -> Option<&str> {
        match &self.virtual_machine {
            Some(vm) => Some(vm.name()),
            None => NicUse::of_nic(&self.name).and_then(|_| Some(self.name.rsplit_once('-')?.0)),
        }
    }

    fn claimed(&self, public_address: Option<IpAddr>) -> BedNic {
        let configurations = &self.ip_configurations;
        let has_public = configurations.iter().any(|one| one.public_address.is_some());
        let mut addresses: Vec<IpAddr> =
            configurations.iter().filter_map(|one| one.private_address).collect();
        addresses.sort_by_key(IpAddr::is_ipv6);
        BedNic {
            name: self.name.clone(),
            network: NicUse::of_nic(&self.name).map(NicUse::network),
            subnet: configurations.iter().find_map(|one| Some(one.subnet.as_ref()?.name().to_owned())),
            addresses,
            public_address: public_address.filter(|_| has_public),
            mac: self.mac_address.as_deref().map(mac),
            is_accelerated: self.enable_accelerated_networking.unwrap_or(false),
            is_attached: self.virtual_machine.is_some(),
            seen: None,
        }
    }
}

impl Machine {
    fn claimed(&self, interfaces: &[Interface]) -> BedVm {
        // A bed has one public address for each VM.
        let public = self.public_ips.split(',').find_map(|text| text.trim().parse::<IpAddr>().ok());
        let order: Vec<&str> = self
            .network_profile
            .iter()
            .flat_map(|profile| &profile.network_interfaces)
            .map(Reference::name)
            .collect();
        let place = |nic: &Interface| order.iter().position(|name| nic.name.eq_ignore_ascii_case(name));
        let mut own: Vec<&Interface> = interfaces
            .iter()
            .filter(|nic| nic.vm().is_some_and(|vm| vm.eq_ignore_ascii_case(&self.name)))
            .collect();
        own.sort_by_key(|nic| place(nic).unwrap_or(usize::MAX));
        let placement = self.proximity_placement_group.as_ref().or(self.availability_set.as_ref());
        BedVm {
            name: self.name.clone(),
            user: self.os_profile.as_ref().and_then(|profile| profile.admin_username.clone()),
            claimed: VmFacts {
                id: self.vm_id.as_deref().map(str::to_ascii_lowercase),
                size: self.hardware_profile.as_ref().and_then(|profile| profile.vm_size.clone()),
                region: self.location.clone(),
                zone: self.zones.first().cloned(),
                placement: placement.map(|group| group.name().to_owned()),
                physical_host: None,
            },
            seen: None,
            nics: own.iter().map(|nic| nic.claimed(public)).collect(),
        }
    }
}

/// How close the VMs are to each other. A size whose VM has its host to itself is recognized by the table of sizes.
fn placement(machines: &[Machine]) -> Placement {
    let is_isolated = |machine: &Machine| {
        let size = machine.hardware_profile.as_ref().and_then(|profile| profile.vm_size.as_deref());
        size.and_then(netduel_model::size::named).is_some_and(|size| size.is_isolated)
    };
    if machines.iter().any(|machine| machine.proximity_placement_group.is_some()) {
        Placement::ProximityGroup
    } else if machines.iter().any(|machine| machine.availability_set.is_some()) {
        Placement::AvailabilitySet
    } else if machines.iter().any(is_isolated) {
        Placement::IsolatedSize
    } else {
        Placement::None
    }
}

/// The VMs of a resource group. Without [`DETAILS`] they have neither states nor public addresses, and `az` makes fewer requests.
fn machines(
    az: &mut dyn Az,
    group: &str,
    subscription: &Subscription,
    options: &[&str],
) -> Result<Vec<Machine>, CallError> {
    let words = [&["vm", "list", "--resource-group", group][..], options].concat();
    ask(az, &subscription.within(&words))
}

/// A VM in the group of a bed, also one that does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Existing {
    /// Its name.
    pub name: String,
    /// Whether it has the tag of the bed: netduel created it.
    pub is_tagged: bool,
}

/// The VMs in the group of a bed.
///
/// # Errors
/// Errors of `az`.
pub fn existing(az: &mut dyn Az, bed: &Bed, subscription: &Subscription) -> Result<Vec<Existing>, CallError> {
    let machines = machines(az, &bed.group(), subscription, &[])?;
    let is_tagged = |machine: &Machine| machine.tags.get(tags::BED).is_some_and(|name| *name == bed.name);
    let existing =
        machines.into_iter().map(|machine| Existing { is_tagged: is_tagged(&machine), name: machine.name });
    Ok(existing.collect())
}

/// The VMs of a bed that neither run nor start, by name, each with its state as Azure names it: a deployment starts no VM that exists. A VM without a
/// state is not among them.
///
/// # Errors
/// Errors of `az`.
pub fn stopped(
    az: &mut dyn Az,
    bed: &Bed,
    subscription: &Subscription,
) -> Result<Vec<(String, String)>, CallError> {
    let runs = |state: &str| state.is_empty() || state == RUNNING || ON_THE_WAY.contains(&state);
    let machines = machines(az, &bed.group(), subscription, &DETAILS)?;
    let states = machines.into_iter().map(|machine| (machine.name, machine.power_state));
    let mut stopped: Vec<(String, String)> = states.filter(|(_, state)| !runs(state)).collect();
    stopped.sort();
    Ok(stopped)
}

/// Looks up the VMs and NICs of a bed that [`find`](super::groups::find) or [`list`](super::groups::list) found.
///
/// # Errors
/// Errors of `az`.
pub fn look_up(
    az: &mut dyn Az,
    group: &Group,
    tags: &Tags,
    subscription: &Subscription,
) -> Result<Inventory, BedError> {
    let machines = machines(az, &group.name, subscription, &DETAILS)?;
    let words = ["network", "nic", "list", "--resource-group", &group.name];
    let interfaces: Vec<Interface> = ask(az, &subscription.within(&words))?;
    let mut vms: Vec<BedVm> = machines.iter().map(|machine| machine.claimed(&interfaces)).collect();
    vms.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Inventory {
        bed: RunBed {
            name: tags.bed.clone(),
            kind: tags.kind,
            group: group.name.clone(),
            region: group.location.clone(),
            placement: placement(&machines),
            created_unix_s: tags.created_unix_s,
            price_per_hour: tags.price.clone(),
            price_read_unix_s: tags.price_read_unix_s,
            template_sha256: tags.template_sha256.clone(),
            file: tags.file(&group.location).map(|bed| bed.file_text()),
            vms,
        },
        states: machines.into_iter().map(|machine| (machine.name, machine.power_state)).collect(),
    })
}

/// Starts VMs, all at the same time, and waits until they run. Those that are starting already are only awaited. A lost connection is awaited,
/// because Azure works on without it.
///
/// # Errors
/// [`BedError::NotStarted`], [`BedError::StartInterrupted`], and errors of `az`.
pub fn start(
    az: &mut dyn Az,
    of: (&Group, &Tags),
    subscription: &Subscription,
    inventory: &Inventory,
    vms: &[String],
) -> Result<Inventory, BedError> {
    started(az, of, subscription, inventory, vms).map_err(|error| match error {
        BedError::Call(CallError::Interrupted { .. }) => start_interrupted(subscription),
        error => error,
    })
}

fn start_interrupted(subscription: &Subscription) -> BedError {
    BedError::StartInterrupted { command: subscription.command("netduel azure run --start") }
}

fn started(
    az: &mut dyn Az,
    (group, tags): (&Group, &Tags),
    subscription: &Subscription,
    inventory: &Inventory,
    vms: &[String],
) -> Result<Inventory, BedError> {
    let names = || vms.iter().map(String::as_str);
    for (vm, state) in inventory.not_running(names()) {
        if !ON_THE_WAY.contains(&state) {
            let words = ["vm", "start", "--resource-group", &group.name, "--name", vm, "--no-wait"];
            az.call(&subscription.within(&words), CALL_LIMIT)?;
        }
    }
    let mut failed_looks = 0;
    for _ in 0..looks_of(LIMIT_MIN) {
        match look_up(az, group, tags, subscription) {
            Ok(now) if now.not_running(names()).is_empty() => return Ok(now),
            Ok(_) => failed_looks = 0,
            Err(BedError::Call(error)) if error.is_transient() && failed_looks < FAILED_LOOKS_MAX => {
                failed_looks += 1;
            }
            Err(error) => return Err(error),
        }
        if !az.pause() {
            return Err(start_interrupted(subscription));
        }
    }
    let command = format!("az vm list --resource-group {} --show-details", group.name);
    let command = subscription.command(&command);
    Err(BedError::NotStarted { bed: tags.bed.clone(), minutes: LIMIT_MIN, command })
}
