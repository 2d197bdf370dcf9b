//! Resource groups that are beds: found by their tag, deleted when they have it.
use std::collections::BTreeMap;
use std::time::Duration;

use netduel_model::bed::Bed;
use serde::Deserialize;

use super::error::BedError;
use super::subscription::Subscription;
use crate::az::{Az, CALL_LIMIT, CallError, ask};
use crate::tags::{self, Tags};

/// Time limit of a deletion that is awaited: Azure deletes the VMs, then their NICs, then the networks.
const DELETION_LIMIT: Duration = Duration::from_secs(45 * 60);

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
}

impl Group {
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
    let found: Group = ask(az, &subscription.within(&["group", "show", "--name", &group]))?;
    match found.bed() {
        Some(tags) if tags.bed == bed => Ok(Some(found)),
        _ => Err(BedError::NotOurs { group, bed: bed.to_owned() }),
    }
}

/// All beds of a subscription, by name.
///
/// # Errors
/// Errors of `az`.
pub fn list(az: &mut dyn Az, subscription: &Subscription) -> Result<Vec<(Group, Tags)>, CallError> {
    let groups: Vec<Group> = ask(az, &subscription.within(&["group", "list", "--tag", tags::BED]))?;
    let mut beds: Vec<(Group, Tags)> =
        groups.into_iter().filter_map(|group| group.bed().map(|tags| (group, tags))).collect();
    beds.sort_by(|(left, _), (right, _)| left.name.cmp(&right.name));
    Ok(beds)
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
