//! NICs and VMs of Azure that treatments change: their state, the changes, and the way back. Any NIC or VM that the user's `az` may change, not
//! only those of beds. Nothing is verified in a guest here.
use std::time::Duration;

use netduel_model::resource_name::is_subscription;
use netduel_sys::clock::realtime_ns;
use serde::Deserialize;

use crate::az::cause::Cause;
use crate::az::{Az, CallError, ask, mac};

/// Time limit of stopping or starting a VM, and of changing a resource: Azure answers when it is done.
pub(crate) const CHANGE_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Codes of Azure for a resource that does not exist. Others with this end say nothing of the resource, as that for a subscription which
/// the present login cannot see.
const GONE: [&str; 3] = ["ResourceNotFound", "ResourceGroupNotFound", "NotFound"];

/// Where resources are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The subscription, by id or name; the current one of `az` when absent.
    pub subscription: Option<String>,
    /// The resource group.
    pub group: String,
}

impl Place {
    fn within<'w>(&'w self, words: &[&'w str], name: &'w str) -> Vec<&'w str> {
        let own = ["--resource-group", &self.group, "--name", name];
        let subscription = self.subscription.iter().flat_map(|id| ["--subscription", id]);
        words.iter().copied().chain(own).chain(subscription).collect()
    }
}

/// A VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its resource group, which may be another one than that of its NIC.
    pub place: Place,
    /// Its name.
    pub name: String,
}

/// The state of a NIC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nic {
    /// Whether Azure claims that accelerated networking is on.
    pub accelerated: bool,
    /// Its MAC address, lower case with colons; absent before its VM has run for the first time.
    pub mac: Option<String>,
    /// The VM that it is attached to.
    pub machine: Option<Machine>,
    /// The id of its subscription.
    pub subscription: Option<String>,
}

/// The placement of a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The id of its proximity placement group; `None` when it is in none.
    pub group: Option<String>,
    /// The id of its subscription.
    pub subscription: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownNic {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    enable_accelerated_networking: Option<bool>,
    #[serde(default)]
    mac_address: Option<String>,
    #[serde(default)]
    virtual_machine: Option<Reference>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownMachine {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    proximity_placement_group: Option<Reference>,
    #[serde(default)]
    availability_set: Option<Reference>,
}

/// The state of a NIC.
///
/// # Errors
/// Errors of `az`.
pub fn nic(az: &mut dyn Az, place: &Place, name: &str) -> Result<Nic, CallError> {
    let shown: ShownNic = ask(az, &place.within(&["network", "nic", "show"], name))?;
    Ok(Nic {
        accelerated: shown.enable_accelerated_networking.unwrap_or(false),
        mac: shown.mac_address.as_deref().map(mac),
        machine: shown.virtual_machine.and_then(|vm| machine(&vm.id, place)),
        subscription: shown.id.as_deref().and_then(subscription),
    })
}

/// The subscription of an id, `/subscriptions/S/resourceGroups/...`.
fn subscription(id: &str) -> Option<String> {
    let (kind, rest) = id.strip_prefix('/')?.split_once('/')?;
    let (name, _) = rest.split_once('/')?;
    (kind.eq_ignore_ascii_case("subscriptions") && is_subscription(name)).then(|| name.to_owned())
}

/// The VM of an id, `/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/NAME`.
fn machine(id: &str, place: &Place) -> Option<Machine> {
    let parts: Vec<&str> = id.split('/').collect();
    let [.., groups, group, _, _, _, name] = parts.as_slice() else { return None };
    if !groups.eq_ignore_ascii_case("resourceGroups") {
        return None;
    }
    let place = Place { group: (*group).to_owned(), ..place.clone() };
    Some(Machine { place, name: (*name).to_owned() })
}

/// Switches accelerated networking of a NIC, and reads it back.
///
/// # Errors
/// Errors of `az`; [`CallError::NotTaken`] when the NIC is as it was.
pub fn set_accelerated(az: &mut dyn Az, place: &Place, name: &str, on: bool) -> Result<Nic, CallError> {
    let value = if on { "true" } else { "false" };
    let words = place.within(&["network", "nic", "update"], name);
    let words = [&words[..], &["--accelerated-networking", value]].concat();
    az.call(&words, CHANGE_LIMIT)?;
    let now = nic(az, place, name)?;
    if now.accelerated == on {
        return Ok(now);
    }
    Err(CallError::NotTaken { nic: name.to_owned(), wanted: if on { "on" } else { "off" } })
}

fn shown(az: &mut dyn Az, machine: &Machine) -> Result<ShownMachine, CallError> {
    ask(az, &machine.place.within(&["vm", "show"], &machine.name))
}

/// The placement of a VM.
///
/// # Errors
/// Errors of `az`.
pub fn placement(az: &mut dyn Az, machine: &Machine) -> Result<Placed, CallError> {
    let ShownMachine { id, proximity_placement_group, .. } = shown(az, machine)?;
    let group = proximity_placement_group.map(|group| group.id);
    Ok(Placed { group, subscription: id.as_deref().and_then(subscription) })
}

/// The name of the availability set of a VM; `None` when it is in none.
///
/// # Errors
/// Errors of `az`.
pub fn availability_set(az: &mut dyn Az, machine: &Machine) -> Result<Option<String>, CallError> {
    let name = |set: Reference| set.id.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(shown(az, machine)?.availability_set.map(name))
}

/// Puts a stopped VM into a proximity placement group, by id or by its name in the group of the VM, or out of any, and reads it back.
///
/// # Errors
/// Errors of `az`; [`CallError::NotPlaced`] when the VM is not there afterwards.
pub fn set_placement(az: &mut dyn Az, machine: &Machine, group: Option<&str>) -> Result<(), CallError> {
    let words = machine.place.within(&["vm", "update"], &machine.name);
    // az 2.91 sends what it is given, and Azure takes an id only.
    let id = match group {
        Some(name) if !name.contains('/') => {
            let shown: Reference = ask(az, &machine.place.within(&["ppg", "show"], name))?;
            Some(shown.id)
        }
        group => group.map(str::to_owned),
    };
    let change = match &id {
        Some(id) => ["--ppg", id],
        None => ["--remove", "proximityPlacementGroup"],
    };
    az.call(&[&words[..], &change].concat(), CHANGE_LIMIT)?;
    let now = placement(az, machine)?.group;
    if is_same_placement(now.as_deref(), id.as_deref()) {
        return Ok(());
    }
    let (name, group) = (&machine.name, "proximity placement group");
    let doing = match &id {
        Some(id) => format!("put {name} into the {group} {id}"),
        None => format!("take {name} out of its {group}"),
    };
    let found = now.map_or_else(|| format!("no {group}"), |now| format!("the {group} {now}"));
    Err(CallError::NotPlaced { doing, found })
}

/// Stops a VM and gives its host back (deallocate); returns when it is done. A stopped VM stays so.
///
/// # Errors
/// Errors of `az`.
pub fn stop(az: &mut dyn Az, machine: &Machine) -> Result<(), CallError> {
    az.call(&machine.place.within(&["vm", "deallocate"], &machine.name), CHANGE_LIMIT).map(drop)
}

/// Starts a VM; returns when it runs. A running VM stays so.
///
/// # Errors
/// Errors of `az`.
pub fn start(az: &mut dyn Az, machine: &Machine) -> Result<(), CallError> {
    az.call(&machine.place.within(&["vm", "start"], &machine.name), CHANGE_LIMIT).map(drop)
}

/// Whether two placements are the same; each is a name or an id. Groups of one name may be in several resource groups.
pub fn is_same_placement(one: Option<&str>, other: Option<&str>) -> bool {
    let are_ids = [one, other].iter().flatten().all(|group| group.contains('/'));
    let part = |group: &str| {
        let own = if are_ids { group } else { group.rsplit('/').next().unwrap_or_default() };
        own.to_ascii_lowercase()
    };
    one.map(part) == other.map(part)
}

/// Whether a daily shutdown has passed, after which no VM is started: it would run until the next one. `shutdown_unix_s` is in seconds since
/// 1970-01-01T00:00:00Z; absent for a VM without a shutdown.
pub fn is_past(shutdown_unix_s: Option<u64>) -> bool {
    shutdown_unix_s.is_some_and(|shutdown| realtime_ns() / 1_000_000_000 >= shutdown)
}

/// Returns accelerated networking of a NIC to a state. `stops`: its VM is stopped for it, and started again unless its shutdown
/// [is past](is_past) by then. A NIC that is gone is no error: its bed was deleted.
///
/// # Errors
/// Errors of `az`.
pub fn restore_nic(
    az: &mut dyn Az,
    place: &Place,
    name: &str,
    accelerated: bool,
    stops: bool,
    shutdown_unix_s: Option<u64>,
) -> Result<(), CallError> {
    let Some(now) = unless_gone(nic(az, place, name))? else { return Ok(()) };
    if now.accelerated == accelerated {
        return Ok(());
    }
    match now.machine.filter(|_| stops) {
        None => set_accelerated(az, place, name, accelerated).map(drop),
        Some(machine) => while_stopped(az, &machine, shutdown_unix_s, |az| {
            set_accelerated(az, place, name, accelerated).map(drop)
        }),
    }
}

/// Returns a VM to a proximity placement group or to none. It is started again unless its shutdown [is past](is_past) by then. A VM that is gone
/// is no error.
///
/// # Errors
/// Errors of `az`.
pub fn restore_placement(
    az: &mut dyn Az,
    machine: &Machine,
    group: Option<&str>,
    shutdown_unix_s: Option<u64>,
) -> Result<(), CallError> {
    let Some(now) = unless_gone(placement(az, machine))? else { return Ok(()) };
    if is_same_placement(now.group.as_deref(), group) {
        return Ok(());
    }
    while_stopped(az, machine, shutdown_unix_s, |az| set_placement(az, machine, group))
}

/// Starts a VM that may have been stopped, unless its shutdown [is past](is_past). A VM that is gone is no error.
///
/// # Errors
/// Errors of `az`.
pub fn restore_running(
    az: &mut dyn Az,
    machine: &Machine,
    shutdown_unix_s: Option<u64>,
) -> Result<(), CallError> {
    if is_past(shutdown_unix_s) {
        return Ok(());
    }
    unless_gone(start(az, machine)).map(drop)
}

/// Stops a VM, does something, and starts it, also when that failed; not after its shutdown.
fn while_stopped(
    az: &mut dyn Az,
    machine: &Machine,
    shutdown_unix_s: Option<u64>,
    change: impl FnOnce(&mut dyn Az) -> Result<(), CallError>,
) -> Result<(), CallError> {
    stop(az, machine)?;
    let changed = change(az);
    if is_past(shutdown_unix_s) {
        return changed;
    }
    let started = start(az, machine);
    changed.and(started)
}

fn unless_gone<T>(result: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CallError::Failed { cause: Cause::Other { code: Some(code), .. }, .. })
            if GONE.contains(&code.as_str()) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
