//! Whether a bed makes sense, and its defaults. It does not stop at the first problem.
//!
//! Every text that becomes an argument of a program or a name of a resource is limited to plain characters here.
use super::layout::{accelerated_nics, suits};
use super::money::Money;
use super::prefix::Prefix;
use super::resolved::Bed;
use super::shutdown::ShutdownTime;
use super::spec::{BedSpec, BedType, Image, Placement};
use super::sysctls::check_sysctls;
use crate::nearest::nearest;
use crate::plan::problem::{Problems, element_path};
use crate::resource_name::{NAME_LEN_MAX, SUBSCRIPTION_LEN_MAX, is_name, is_subscription};
use crate::size::{self, Size};
use crate::word::word;

/// Longest name of a region.
const REGION_LEN_MAX: usize = 40;
/// Azure numbers the zones of a region from 1.
pub(super) const ZONE_MAX: u32 = 3;
/// One subnet for a test network, or one for each of its ends.
pub(super) const SUBNETS_MAX: u32 = 2;
/// Prefixes at most.
const PREFIXES_MAX: usize = 64;

/// Checks everything and resolves it; `None` when what is missing or unreadable leaves nothing to deploy.
pub(super) fn resolve(spec: &BedSpec, problems: &mut Problems<'_>) -> Option<Bed> {
    let kind = spec.kind.unwrap_or_default();
    let placement = spec.placement.unwrap_or_default();
    check_names(spec, problems);
    check_ranges(spec, problems);
    check_placement(spec, placement, problems);
    if spec.image == Some(Image::WindowsServer2022) {
        let wrong =
            format!("is \"{}\", and netduel has no agent for Windows yet", word(&Image::WindowsServer2022));
        problems.add(
            "image",
            wrong,
            format!("choose a Linux image, for example \"{}\"", word(&Image::default())),
        );
    }
    let size = resolve_size(spec, kind, placement, problems);
    let ssh_from = resolve_prefixes(spec, problems);
    let shutdown = resolve_shutdown(spec, problems);
    let budget = spec.budget.as_deref().and_then(|text| match text.parse::<Money>() {
        Ok(budget) => Some(budget),
        Err(error) => {
            refuse("budget", &error.to_string(), problems);
            None
        }
    });
    let sysctls = spec.sysctls.clone().unwrap_or_default();
    check_sysctls(&sysctls, problems);
    Some(Bed {
        name: spec.name.clone()?,
        region: spec.region.clone()?,
        size: size?,
        kind,
        subscription: spec.subscription.clone(),
        zone: spec.zone,
        image: spec.image.unwrap_or_default(),
        placement,
        families: spec.families.unwrap_or_default(),
        subnets: spec.subnets.unwrap_or(1),
        ssh_key: spec.ssh_key.clone().unwrap_or_else(|| Bed::SSH_KEY.to_owned()),
        ssh_from,
        is_spot: spec.spot.unwrap_or(false),
        shutdown,
        budget,
        sysctls,
    })
}

/// Notes an error of the form `WHAT IS WRONG: WHAT IS ALLOWED`.
fn refuse(key: &str, error: &str, problems: &mut Problems<'_>) {
    let (wrong, allowed) =
        error.rsplit_once(": ").unwrap_or((error, "`netduel azure schema` has the values"));
    problems.add(key, wrong, allowed);
}

fn check_names(spec: &BedSpec, problems: &mut Problems<'_>) {
    if let Some(name) = spec.name.as_deref().filter(|name| !is_name(name)) {
        let allowed = format!(
            "1 to {NAME_LEN_MAX} of a-z 0-9 - are allowed, beginning with a letter, not ending with -"
        );
        problems.add("name", format!("{name:?} is not the name of a bed"), allowed);
    }
    let is_region = |text: &&str| {
        (1..=REGION_LEN_MAX).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if let Some(region) = spec.region.as_deref().filter(|region| !is_region(region)) {
        let allowed = "write it as `az account list-locations` does, for example \"westeurope\"";
        problems.add("region", format!("{region:?} is not the name of a region"), allowed);
    }
    if let Some(text) = spec.subscription.as_deref().filter(|text| !is_subscription(text)) {
        let allowed = format!(
            "the id, or the name when it has 1 to {SUBSCRIPTION_LEN_MAX} letters, digits, spaces and . _ - ( ) and begins with a \
             letter or a digit"
        );
        problems.add("subscription", format!("{text:?} is not a subscription"), allowed);
    }
    if let Some(path) =
        spec.ssh_key.as_deref().filter(|path| path.is_empty() || path.contains(char::is_control))
    {
        problems.add("ssh_key", format!("{path:?} is not a file"), format!("for example {:?}", Bed::SSH_KEY));
    }
}

fn check_ranges(spec: &BedSpec, problems: &mut Problems<'_>) {
    for (key, value, most) in [("zone", spec.zone, ZONE_MAX), ("subnets", spec.subnets, SUBNETS_MAX)] {
        if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
            problems.add(key, format!("is {value}"), format!("1 to {most} is allowed"));
        }
    }
}

fn check_placement(spec: &BedSpec, placement: Placement, problems: &mut Problems<'_>) {
    if placement != Placement::AvailabilitySet {
        return;
    }
    if spec.zone.is_some() {
        let wrong =
            "is \"availability-set\", but the bed has a zone, and Azure has no availability set in a zone";
        problems.add("placement", wrong, "remove `zone`, or choose \"proximity-group\"");
    }
    if spec.spot == Some(true) {
        let wrong =
            "is \"availability-set\", but the VMs are Spot VMs, which Azure puts into no availability set";
        problems.add("placement", wrong, "remove `spot`, or choose \"proximity-group\"");
    }
}

fn resolve_size(
    spec: &BedSpec,
    kind: BedType,
    placement: Placement,
    problems: &mut Problems<'_>,
) -> Option<&'static Size> {
    let name = spec.size.as_deref()?;
    let Some(size) = size::named(name) else {
        let meant = nearest(name, size::table().iter().map(|size| size.name.as_str()));
        let meant = meant.map(|name| format!("did you mean \"{name}\"? ")).unwrap_or_default();
        let wrong = format!("is {name:?}, which is not in the table of sizes");
        let allowed = format!("{meant}choose one of those that `netduel azure sizes` lists");
        problems.add("size", wrong, allowed);
        return None;
    };
    let suited = || names(&size::proposed(size.vcpus, |size| suits(kind, size)));
    if kind.has_synthetic_arm() && !size.can_be_synthetic() {
        let wrong = format!(
            "is {}, which requires accelerated networking: a bed \"{}\" has no arm without it there",
            size.name,
            word(&kind)
        );
        problems.add("size", wrong, format!("sizes with both: {}", suited()));
    } else if accelerated_nics(kind, size) > size.accelerated_nics_max() {
        let wrong = format!(
            "is {}, which allows accelerated networking on {} NIC, and a bed \"{}\" has it on {} there",
            size.name,
            size.accelerated_nics_max(),
            word(&kind),
            accelerated_nics(kind, size)
        );
        problems.add("size", wrong, format!("sizes that fit: {}", suited()));
    }
    if placement == Placement::IsolatedSize && !size.is_isolated {
        let isolated: Vec<&Size> = size::table().iter().filter(|size| size.is_isolated).collect();
        let wrong = format!("is \"isolated-size\", but VMs of {} share their host", size.name);
        problems.add("placement", wrong, format!("sizes with a host to themselves: {}", names(&isolated)));
    }
    Some(size)
}

fn names(sizes: &[&Size]) -> String {
    sizes.iter().map(|size| size.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn resolve_prefixes(spec: &BedSpec, problems: &mut Problems<'_>) -> Vec<Prefix> {
    let texts = spec.ssh_from.as_deref().unwrap_or_default();
    if texts.len() > PREFIXES_MAX {
        problems.add(
            "ssh_from",
            format!("has {} prefixes", texts.len()),
            format!("at most {PREFIXES_MAX} are allowed"),
        );
        return Vec::new();
    }
    let mut prefixes = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match text.parse::<Prefix>() {
            Ok(prefix) => prefixes.push(prefix),
            Err(error) => refuse(&element_path("ssh_from", index), &error.to_string(), problems),
        }
    }
    prefixes
}

/// The time of the shutdown; `None` for `off`.
fn resolve_shutdown(spec: &BedSpec, problems: &mut Problems<'_>) -> Option<ShutdownTime> {
    match spec.shutdown.as_deref() {
        None => Some(ShutdownTime::DEFAULT),
        Some(ShutdownTime::OFF) => None,
        Some(text) => match text.parse::<ShutdownTime>() {
            Ok(time) => Some(time),
            Err(error) => {
                refuse("shutdown", &error.to_string(), problems);
                None
            }
        },
    }
}
