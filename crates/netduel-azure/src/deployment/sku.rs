//! Whether Azure offers the size of a bed where the bed is to be, and whether the quota is sufficient: before anything is created.
use netduel_model::bed::layout::suits;
use netduel_model::bed::{Bed, Layout};
use netduel_model::size::{self, Size};
use serde::Deserialize;
use serde_json::Value;

use super::error::BedError;
use super::subscription::Subscription;
use crate::az::cause::Quota;
use crate::az::{Az, ask, or_default};

/// The quota of Spot VMs of all sizes.
const SPOT_QUOTA: &str = "lowPriorityCores";
/// The quota of all sizes of a region, without Spot VMs.
const REGIONAL_QUOTA: &str = "cores";

/// The names of the quotas that count the VMs of a bed, whose size has a quota of this name.
pub fn quotas<'f>(bed: &Bed, family: &'f str) -> Vec<&'f str> {
    if bed.is_spot { vec![SPOT_QUOTA] } else { vec![family, REGIONAL_QUOTA] }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sku {
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    family: String,
    #[serde(default, deserialize_with = "or_default")]
    location_info: Vec<LocationInfo>,
    #[serde(default, deserialize_with = "or_default")]
    restrictions: Vec<Restriction>,
    #[serde(default, deserialize_with = "or_default")]
    capabilities: Vec<Capability>,
}

#[derive(Debug, Deserialize)]
struct LocationInfo {
    #[serde(default, deserialize_with = "or_default")]
    zones: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Restriction {
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    kind: String,
    #[serde(default, deserialize_with = "or_default")]
    reason_code: String,
    #[serde(rename = "restrictionInfo", default, deserialize_with = "or_default")]
    info: RestrictionInfo,
}

#[derive(Debug, Default, Deserialize)]
struct RestrictionInfo {
    #[serde(default, deserialize_with = "or_default")]
    zones: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Capability {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    name: UsageName,
    // Numbers, or texts with digits, by the version of az.
    current_value: Value,
    limit: Value,
}

#[derive(Debug, Deserialize)]
struct UsageName {
    value: String,
}

impl Sku {
    fn capability(&self, name: &str) -> Option<&str> {
        self.capabilities.iter().find(|one| one.name == name).map(|one| one.value.as_str())
    }

    /// Why it is not offered where the bed is to be; `None` when it is.
    fn refusal(&self, zone: Option<&str>) -> Option<String> {
        for restriction in &self.restrictions {
            let is_everywhere = restriction.kind == "Location";
            let is_there = zone.is_some_and(|zone| restriction.info.zones.iter().any(|one| one == zone));
            if is_everywhere || is_there {
                return Some(format!("the subscription is restricted ({})", restriction.reason_code));
            }
        }
        let has_zone =
            |zone: &str| self.location_info.iter().flat_map(|info| &info.zones).any(|one| one == zone);
        zone.filter(|zone| !has_zone(zone)).map(|zone| format!("the size is not in zone {zone}"))
    }
}

/// Checks the size against what Azure offers; the name of its quota.
///
/// # Errors
/// [`BedError`] when it is not offered, lacks accelerated networking or NICs, or `az` fails.
pub fn check(
    az: &mut dyn Az,
    bed: &Bed,
    layout: &Layout,
    subscription: &Subscription,
) -> Result<String, BedError> {
    let words = ["vm", "list-skus", "--location", &bed.region, "--size", &bed.size.name];
    // Without `--all` az omits sizes that the subscription may not use, and the reason with them.
    let words = [&words[..], &["--resource-type", "virtualMachines", "--all"]].concat();
    let skus: Vec<Sku> = ask(az, &subscription.within(&words))?;
    let zone = bed.zone.map(|zone| zone.to_string());
    let found = skus.iter().find(|sku| sku.name.eq_ignore_ascii_case(&bed.size.name));
    let offered = match found {
        None => Err("the region does not have it, or not for this subscription".to_owned()),
        Some(sku) => sku.refusal(zone.as_deref()).map_or(Ok(sku), Err),
    };
    let sku = offered.map_err(|reason| BedError::NotOffered {
        size: bed.size.name.clone(),
        place: zone.map_or_else(|| bed.region.clone(), |zone| format!("{}, zone {zone}", bed.region)),
        subscription: subscription.name.clone(),
        reason,
    })?;
    let nics = layout.vms.iter().map(|vm| vm.nics.len()).max().unwrap_or_default() as u32;
    let proposed = || -> Vec<String> {
        let fits = |size: &Size| suits(bed.kind, size) && size.nics >= nics;
        let sizes = size::proposed(bed.size.vcpus, fits);
        sizes.iter().filter(|size| size.name != bed.size.name).map(|size| size.name.clone()).collect()
    };
    let (size, region) = (bed.size.name.clone(), bed.region.clone());
    let is_refused = sku.capability("AcceleratedNetworkingEnabled") == Some("False");
    if is_refused && layout.nics().any(|nic| nic.is_accelerated) {
        return Err(BedError::NotAccelerated { size, region, proposed: proposed() });
    }
    let most: Option<u32> = sku.capability("MaxNetworkInterfaces").and_then(|text| text.parse().ok());
    if let Some(most) = most.filter(|most| *most < nics) {
        return Err(BedError::TooFewNics { size, region, most, needed: nics, proposed: proposed() });
    }
    Ok(sku.family.clone())
}

/// Checks that the quota of a family of sizes has enough vCPUs left for the VMs of a layout, those that are missing. A quota that Azure does not
/// list is no limit that netduel knows.
///
/// # Errors
/// [`BedError::Quota`] with the number to request, or when `az` fails.
pub fn check_quota(
    az: &mut dyn Az,
    bed: &Bed,
    layout: &Layout,
    subscription: &Subscription,
    family: &str,
) -> Result<(), BedError> {
    let words = ["vm", "list-usage", "--location", &bed.region];
    let usages: Vec<Usage> = ask(az, &subscription.within(&words))?;
    let families = quotas(bed, family);
    let required = u64::from(layout.vcpus(bed));
    for usage in
        usages.iter().filter(|usage| families.iter().any(|one| usage.name.value.eq_ignore_ascii_case(one)))
    {
        let (Some(current), Some(limit)) = (number(&usage.current_value), number(&usage.limit)) else {
            continue;
        };
        if current.saturating_add(required) > limit {
            return Err(BedError::Quota(Quota {
                name: usage.name.value.clone(),
                region: bed.region.clone(),
                limit,
                usage: current,
                required,
            }));
        }
    }
    Ok(())
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
