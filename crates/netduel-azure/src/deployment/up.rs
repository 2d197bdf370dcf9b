//! Creates a bed: checks that cost nothing first, then the group, then the deployment.
use std::path::Path;
use std::time::Duration;

use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{Bed, Layout};
use netduel_model::word::word;

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
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(300);

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

/// Checks everything that can be checked before anything is created. `unix_s` is the time, seconds since 1970-01-01T00:00:00Z. `earlier` is an
/// earlier price of the same size, region and currency, for the case that the service cannot be reached.
///
/// # Errors
/// [`BedError`] with the first reason why the bed cannot be created.
pub fn prepare(
    az: &mut dyn Az,
    bed: &Bed,
    unix_s: u64,
    earlier: Option<DatedPrice>,
) -> Result<Prepared, BedError> {
    let subscription = Subscription::find(az, bed.subscription.as_deref())?;
    let existing = groups::find(az, &bed.name, &subscription)?;
    if let Some(group) = &existing {
        check_group(group, bed, &subscription)?;
    }
    let layout = Layout::of(bed);
    let family = sku::check(az, bed, &layout, &subscription)?;
    let missing = if existing.is_some() { missing(az, bed, &layout, &subscription)? } else { layout.clone() };
    if !missing.vms.is_empty() {
        sku::check_quota(az, bed, &missing, &subscription, &family)?;
    }
    let (dated, is_price_earlier) = match price::of_vm(az, bed)? {
        Answer::Price(of_vm) => (Some(DatedPrice { of_vm, read_unix_s: unix_s }), false),
        Answer::NoPrice => (None, false),
        Answer::Unreachable(_) => (earlier, true),
    };
    let price = dated.as_ref().map(|price| price.of_vm.times(layout.vms.len() as f64));
    let before = existing.as_ref().and_then(Group::bed);
    let created = before.as_ref().and_then(|tags| tags.created_unix_s);
    let tags = Tags {
        owner: subscription.user.clone().or_else(|| before.and_then(|tags| tags.owner)),
        price,
        price_read_unix_s: dated.as_ref().map(|price| price.read_unix_s),
        template_sha256: template::sha256(bed),
        ..Tags::of(bed, created.unwrap_or(unix_s))
    };
    let kept = budget::check(&tags, &bed.size.name, &bed.region, unix_s, ShutdownTime::CREATION_MIN);
    kept.map_err(|error| match error {
        BedError::PriceUnknown { size, region } if is_price_earlier => {
            BedError::PriceUnreachable { size, region }
        }
        error => error,
    })?;
    let of_group = existing.as_ref().and_then(|group| group.tags.as_ref());
    let dropped = of_group.map(|of_group| tags.dropped_from(of_group)).unwrap_or_default();
    let exists = existing.is_some();
    Ok(Prepared { subscription, tags, exists, dropped, price: dated, is_price_earlier })
}

/// Checks that the bed of a group can become that of a file.
fn check_group(group: &Group, bed: &Bed, subscription: &Subscription) -> Result<(), BedError> {
    let name = bed.name.clone();
    if group.is_being_deleted() {
        return Err(BedError::BeingDeleted { bed: name, list: subscription.list() });
    }
    let tags = group.bed();
    if tags.as_ref().is_some_and(|tags| tags.is_of_other(subscription.user.as_deref())) {
        return Err(BedError::OfOther { bed: name });
    }
    let down = subscription.down(&name);
    if group.location != bed.region {
        let (found, region) = (group.location.clone(), bed.region.clone());
        return Err(BedError::Region { bed: name, found, region, down });
    }
    if let Some(found) = tags.and_then(|tags| tags.kind).filter(|kind| *kind != bed.kind) {
        return Err(BedError::Type { bed: name, found: word(&found), kind: word(&bed.kind), down });
    }
    Ok(())
}

/// The part of a layout whose VMs are missing in a bed that exists. VMs that exist are in use already, also where they are deallocated. A
/// deployment removes nothing: what the bed has beyond its file is refused, because it would cost money that no price counts.
fn missing(
    az: &mut dyn Az,
    bed: &Bed,
    layout: &Layout,
    subscription: &Subscription,
) -> Result<Layout, BedError> {
    let existing = inventory::existing(az, bed, subscription)?;
    let is_in_layout = |name: &str| layout.vms.iter().any(|vm| vm.name.eq_ignore_ascii_case(name));
    let surplus = existing.iter().filter(|one| one.is_tagged && !is_in_layout(&one.name));
    let mut surplus: Vec<String> = surplus.map(|one| one.name.clone()).collect();
    if !surplus.is_empty() {
        surplus.sort();
        let down = subscription.down(&bed.name);
        return Err(BedError::Surplus { bed: bed.name.clone(), vms: surplus, down });
    }
    if bed.shutdown.is_none() {
        let vms = groups::with_shutdown(az, bed, layout, subscription)?;
        if !vms.is_empty() {
            let off = format!("az vm auto-shutdown --off --resource-group {} --name VM", bed.group());
            let command = subscription.command(&off);
            return Err(BedError::KeepsShutdown { bed: bed.name.clone(), vms, command });
        }
    }
    let mut missing = layout.clone();
    missing.vms.retain(|vm| !existing.iter().any(|one| one.name.eq_ignore_ascii_case(&vm.name)));
    Ok(missing)
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

/// Requests the deployment and tags the group; [`watch`](progress::watch) waits for it. Both files exist, and their paths are absolute. `accepted`
/// is called when Azure has accepted the deployment, which it may refuse.
///
/// # Errors
/// [`BedError::Failed`] with the causes of a refused deployment, [`BedError::RequestInterrupted`], [`BedError::Interrupted`], and errors of `az`.
pub fn create(
    az: &mut dyn Az,
    bed: &Bed,
    prepared: &Prepared,
    template: &Path,
    parameters: &Path,
    accepted: &mut dyn FnMut(),
) -> Result<(), BedError> {
    if !prepared.exists {
        // First, so that a part of a bed is found by its tag.
        tag_group(az, bed, prepared)?;
    }
    deploy(az, bed, prepared, template, parameters)?;
    accepted();
    if prepared.exists {
        // Tags describe what was deployed: a refused template changes neither VMs nor price.
        tag_group(az, bed, prepared).map_err(|error| match error {
            CallError::Interrupted { .. } => BedError::Interrupted,
            error => error.into(),
        })?;
    }
    Ok(())
}

/// Requests the deployment.
fn deploy(
    az: &mut dyn Az,
    bed: &Bed,
    prepared: &Prepared,
    template: &Path,
    parameters: &Path,
) -> Result<(), BedError> {
    let group = bed.group();
    let (template, parameters) = (template.to_string_lossy(), format!("@{}", parameters.to_string_lossy()));
    let words = ["deployment", "group", "create", "--resource-group", &group, "--name", NAME];
    let files = ["--template-file", &template, "--parameters", &parameters, "--no-wait"];
    let words = [&words[..], &files[..]].concat();
    match az.call(&prepared.subscription.within(&words), REQUEST_LIMIT) {
        Ok(_) => Ok(()),
        Err(CallError::Interrupted { .. }) => {
            let show = format!("az deployment group show --resource-group {group} --name {NAME}");
            Err(BedError::RequestInterrupted { command: prepared.subscription.command(&show) })
        }
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
