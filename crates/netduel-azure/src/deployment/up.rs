//! Creates a bed: checks that cost nothing first, then the group, then the deployment.
use std::path::Path;
use std::time::Duration;

use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{Bed, Layout};

use super::error::BedError;
use super::groups::{self, Group};
use super::price::{self, Answer, DatedPrice};
use super::progress::NAME;
use super::subscription::Subscription;
use super::{budget, inventory, progress, sku};
use crate::az::cause::Cause;
use crate::az::{Az, CALL_LIMIT, CallError};
use crate::tags::Tags;
use crate::template;

/// Time limit of the request for a deployment: Azure checks the template before it answers.
const REQUEST_LIMIT: Duration = Duration::from_secs(300);

/// What is known before a bed is created.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Where it will be.
    pub subscription: Subscription,
    /// The tags of the group, with the time of the first creation.
    pub tags: Tags,
    /// Whether a part of it exists already.
    pub exists: bool,
    /// The names of tags of its group that have a value and shall have none.
    pub dropped: Vec<&'static str>,
    /// The price of a VM; `None` when it is unknown.
    pub price: Option<DatedPrice>,
    /// Whether prices cannot be looked up now; the price is an earlier one then.
    pub is_price_earlier: bool,
}

/// Checks everything that can be checked before anything is created. `unix_s` is the time, seconds since 1970-01-01T00:00:00Z.
///
/// # Errors
/// [`BedError`] with the first reason why the bed cannot be created.
pub fn prepare(az: &mut dyn Az, bed: &Bed, unix_s: u64) -> Result<Prepared, BedError> {
    prepare_with(az, bed, unix_s, None)
}

/// As [`prepare`], with an earlier price of the same size, region and currency, for the case that the service cannot be reached.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_with(
    az: &mut dyn Az,
    bed: &Bed,
    unix_s: u64,
    earlier: Option<DatedPrice>,
) -> Result<Prepared, BedError> {
    let subscription = Subscription::find(az, bed.subscription.as_deref())?;
    let existing = groups::find(az, &bed.name, &subscription)?;
    if existing.as_ref().is_some_and(Group::is_being_deleted) {
        return Err(BedError::BeingDeleted { bed: bed.name.clone() });
    }
    if let Some(Group { location, .. }) = existing.as_ref().filter(|group| group.location != bed.region) {
        let (found, region) = (location.clone(), bed.region.clone());
        return Err(BedError::Region { bed: bed.name.clone(), found, region });
    }
    let layout = Layout::of(bed);
    let family = sku::check(az, bed, &layout, &subscription)?;
    let mut missing = layout.clone();
    if existing.is_some() {
        // VMs that exist are in use already, also where they are deallocated.
        let names = inventory::existing(az, bed, &subscription)?;
        missing.vms.retain(|vm| !names.iter().any(|name| name.eq_ignore_ascii_case(&vm.name)));
    }
    if !missing.vms.is_empty() {
        sku::check_quota(az, bed, &missing, &subscription, &family)?;
    }
    let (dated, is_price_earlier) = match price::of_vm(az, bed)? {
        Answer::Price(of_vm) => (Some(DatedPrice { of_vm, read_unix_s: unix_s }), false),
        Answer::NoPrice => (None, false),
        Answer::Unreachable => (earlier, true),
    };
    let price = dated.as_ref().map(|price| price.of_vm.times(layout.vms.len() as f64));
    let created = existing.as_ref().and_then(Group::bed).and_then(|tags| tags.created_unix_s);
    let tags = Tags {
        price,
        price_read_unix_s: dated.as_ref().map(|price| price.read_unix_s),
        template_sha256: template::sha256(bed),
        ..Tags::of(bed, created.unwrap_or(unix_s))
    };
    budget::check(&tags, &bed.size.name, &bed.region, unix_s, ShutdownTime::CREATION_MIN)?;
    let of_group = existing.as_ref().and_then(|group| group.tags.as_ref());
    let dropped = of_group.map(|of_group| tags.dropped_from(of_group)).unwrap_or_default();
    let exists = existing.is_some();
    Ok(Prepared { subscription, tags, exists, dropped, price: dated, is_price_earlier })
}

/// Creates the group with its tags, or changes the tags of the group that exists. `az group create` would also remove all others from that: the
/// tags of its user, or of a policy. A merge removes none, so that a tag without a value takes the place of one that the bed has no more.
fn tag_group(az: &mut dyn Az, bed: &Bed, prepared: &Prepared) -> Result<(), CallError> {
    let Prepared { subscription, tags, exists, dropped, .. } = prepared;
    let group = bed.group();
    let dropped = dropped.iter().map(|name| (*name, String::new()));
    let pairs = tags.pairs().into_iter().chain(dropped);
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}={value}")).collect();
    let id = format!("/subscriptions/{}/resourceGroups/{group}", subscription.id);
    let create = ["group", "create", "--name", &group, "--location", &bed.region, "--tags"];
    let merge = ["tag", "update", "--resource-id", &id, "--operation", "Merge", "--tags"];
    let words = if *exists { merge } else { create };
    let words: Vec<&str> = words.into_iter().chain(pairs.iter().map(String::as_str)).collect();
    az.call(&subscription.within(&words), CALL_LIMIT).map(drop)
}

/// Tags the group and requests the deployment; [`watch`](progress::watch) waits for it. Both files exist, and their paths are absolute.
///
/// # Errors
/// [`BedError::Failed`] with the causes of a refused deployment, [`BedError::Interrupted`], and errors of `az`.
pub fn create(
    az: &mut dyn Az,
    bed: &Bed,
    prepared: &Prepared,
    template: &Path,
    parameters: &Path,
) -> Result<(), BedError> {
    tag_group(az, bed, prepared)?;
    let group = bed.group();
    let (template, parameters) = (template.to_string_lossy(), format!("@{}", parameters.to_string_lossy()));
    let words = ["deployment", "group", "create", "--resource-group", &group, "--name", NAME];
    let files = ["--template-file", &template, "--parameters", &parameters, "--no-wait"];
    let words = [&words[..], &files[..]].concat();
    match az.call(&prepared.subscription.within(&words), REQUEST_LIMIT) {
        Ok(_) => Ok(()),
        Err(CallError::Interrupted { .. }) => Err(BedError::Interrupted),
        Err(error @ CallError::Failed { cause: Cause::Hidden, .. }) => {
            let failures = progress::hidden_failures(az, bed, &prepared.subscription);
            Err(if failures.is_empty() { error.into() } else { BedError::Failed(failures) })
        }
        Err(CallError::Failed { command, cause }) => {
            Err(CallError::Failed { command, cause: cause.of_bed(bed) }.into())
        }
        Err(error) => Err(error.into()),
    }
}
