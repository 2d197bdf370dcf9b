//! Resource groups that are beds: found by their tag, deleted when they have it; and what others put into them.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netduel_model::bed::{Bed, Layout};
use netduel_model::json_text::quoted;
use serde::Deserialize;

use super::error::BedError;
use super::resources::{Foreign, shown};
use super::subscription::Subscription;
use crate::az::{Az, CALL_LIMIT, CallError, ask, or_default};
use crate::tags::{self, Tags};
use crate::template::{MACHINE, SCHEDULE, schedule_name};

/// Time limit of a deletion that is awaited: Azure deletes the VMs, then their NICs, then the networks.
pub(super) const DELETION_LIMIT: Duration = Duration::from_secs(45 * 60);

/// A resource group as `az` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its region.
    pub location: String,
    /// Its tags.
    #[serde(default)]
    pub tags: Option<BTreeMap<String, String>>,
    /// What Azure does with it.
    #[serde(default)]
    pub properties: Option<GroupProperties>,
}

/// What Azure does with a resource group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupProperties {
    /// `Succeeded`, or what Azure does now, for example `Deleting`.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_state: String,
}

impl Group {
    /// Whether Azure deletes it: nothing can be created in it, and it is gone some minutes later.
    pub fn is_being_deleted(&self) -> bool {
        self.properties.as_ref().is_some_and(|properties| properties.provisioning_state == "Deleting")
    }

    /// Its tags as those of a bed; `None` when it is none.
    pub fn bed(&self) -> Option<Tags> {
        Tags::read(self.tags.as_ref()?)
    }
}

/// The resource group with the name of a bed; `None` when there is none.
///
/// # Errors
/// [`BedError::NotOurs`] when it is not the bed, and errors of `az`.
pub fn find(az: &mut dyn Az, bed: &str, subscription: &Subscription) -> Result<Option<Group>, BedError> {
    let group = Bed::group_of(bed);
    let exists: bool = ask(az, &subscription.within(&["group", "exists", "--name", &group]))?;
    if !exists {
        return Ok(None);
    }
    let words = subscription.within(&["group", "show", "--name", &group]);
    let found: Group = ask(az, &words)?;
    // `down` deletes the group that this answer names.
    if !found.name.eq_ignore_ascii_case(&group) {
        let reason = format!("it shows the resource group {}", quoted(&found.name));
        return Err(CallError::Answer { command: crate::az::shown(&words), reason }.into());
    }
    match found.bed() {
        Some(tags) if tags.bed == bed => Ok(Some(found)),
        _ => Err(BedError::NotOurs { group, bed: bed.to_owned() }),
    }
}

/// All beds of a subscription, by name. Others may use the tag, too: the group of a bed has the name of the bed.
///
/// # Errors
/// Errors of `az`.
pub fn list(az: &mut dyn Az, subscription: &Subscription) -> Result<Vec<(Group, Tags)>, CallError> {
    let groups: Vec<Group> = ask(az, &subscription.within(&["group", "list", "--tag", tags::BED]))?;
    let mut beds: Vec<(Group, Tags)> =
        groups.into_iter().filter_map(|group| group.bed().map(|tags| (group, tags))).collect();
    beds.retain(|(group, tags)| group.name.eq_ignore_ascii_case(&Bed::group_of(&tags.bed)));
    beds.sort_by(|(left, _), (right, _)| left.name.cmp(&right.name));
    Ok(beds)
}

/// A resource as `az` shows it in a list of all types.
#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    tags: BTreeMap<String, String>,
}

impl Resource {
    fn is_disk(&self) -> bool {
        self.kind.eq_ignore_ascii_case("Microsoft.Compute/disks")
    }

    /// The resource that it is a part of, for example the VM of an extension, by type and name in lower case.
    fn parent(&self) -> Option<(String, String)> {
        let ((kind, _), (name, _)) = (self.kind.rsplit_once('/')?, self.name.rsplit_once('/')?);
        Some((kind.to_ascii_lowercase(), name.to_ascii_lowercase()))
    }
}

/// The resources in the group of a bed that netduel did not create: they lack the tag of the bed, and are neither a part of a resource that has it
/// nor the system disk of a VM, which Azure creates, nor the daily shutdown of a VM of the bed: earlier versions created it without tags.
///
/// # Errors
/// Errors of `az`.
pub fn foreign(
    az: &mut dyn Az,
    group: &Group,
    bed: &str,
    subscription: &Subscription,
) -> Result<Foreign, CallError> {
    let words = ["resource", "list", "--resource-group", &group.name];
    let resources: Vec<Resource> = ask(az, &subscription.within(&words))?;
    let (own, mut others): (Vec<Resource>, Vec<Resource>) =
        resources.into_iter().partition(|one| one.tags.get(tags::BED).is_some_and(|name| name == bed));
    let own: BTreeSet<(String, String)> =
        own.iter().map(|one| (one.kind.to_ascii_lowercase(), one.name.to_ascii_lowercase())).collect();
    others.retain(|one| one.parent().is_none_or(|parent| !own.contains(&parent)));
    others.retain(|one| !is_shutdown_of(one, &own));
    if others.iter().any(Resource::is_disk) {
        let words = ["vm", "list", "--resource-group", &group.name];
        let words = [&words[..], &["--query", "[].storageProfile.osDisk.name"]].concat();
        let system: Vec<String> = ask(az, &subscription.within(&words))?;
        let is_system = |one: &Resource| system.iter().any(|name| name.eq_ignore_ascii_case(&one.name));
        others.retain(|one| !(one.is_disk() && is_system(one)));
    }
    Ok(Foreign(others.iter().map(|one| shown(&one.kind, &one.name)).collect()))
}

/// Those of the VMs of a bed, by its layout, that Azure shuts down daily.
///
/// # Errors
/// Errors of `az`.
pub fn with_shutdown(
    az: &mut dyn Az,
    bed: &Bed,
    layout: &Layout,
    subscription: &Subscription,
) -> Result<Vec<String>, CallError> {
    let group = bed.group();
    let words = ["resource", "list", "--resource-group", &group];
    let mut resources: Vec<Resource> = ask(az, &subscription.within(&words))?;
    resources.retain(|one| one.kind.eq_ignore_ascii_case(SCHEDULE));
    let is_shut_down = |vm: &&String| {
        let schedule = schedule_name(vm);
        resources.iter().any(|one| one.name.eq_ignore_ascii_case(&schedule))
    };
    Ok(layout.vms.iter().map(|vm| &vm.name).filter(is_shut_down).cloned().collect())
}

/// Whether a resource shuts one of these VMs down daily; types and names of `own` are in lower case.
fn is_shutdown_of(one: &Resource, own: &BTreeSet<(String, String)>) -> bool {
    let is_of = |vm: &str| one.name.eq_ignore_ascii_case(&schedule_name(vm));
    one.kind.eq_ignore_ascii_case(SCHEDULE)
        && own.iter().any(|(kind, name)| kind.eq_ignore_ascii_case(MACHINE) && is_of(name))
}

/// Deletes a bed that [`find`] found, with everything in its group. With `waits` it returns when the group is gone.
///
/// # Errors
/// Errors of `az`.
pub fn delete(
    az: &mut dyn Az,
    group: &Group,
    subscription: &Subscription,
    waits: bool,
) -> Result<(), CallError> {
    let mut words = subscription.within(&["group", "delete", "--name", &group.name, "--yes"]);
    if !waits {
        words.push("--no-wait");
    }
    az.call(&words, if waits { DELETION_LIMIT } else { CALL_LIMIT }).map(drop)
}
