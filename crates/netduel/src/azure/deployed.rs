//! A bed that exists, for commands that use it: found by its name, by its file or as the only one, with its VMs running.
use netduel_azure::az::Az;
use netduel_azure::deployment::groups::Group;
use netduel_azure::deployment::{BedError, Inventory, Subscription, budget, groups, inventory};
use netduel_azure::tags::Tags;
use netduel_model::units::plural;

use super::bed_file::read_bed;
use super::session::{failed, now_unix_s};
use super::{known, old};
use crate::cli::azure::BedArg;
use crate::console::tell;
use crate::exit::{Failure, Kind};
use crate::provider::Home;
use crate::redaction;

/// A bed that the user wants, as far as the command line says it.
pub struct Wanted {
    /// Its name; the only bed when absent.
    pub name: Option<String>,
    /// The subscription that its file names.
    pub subscription_of_file: Option<String>,
}

impl Wanted {
    /// Of an argument, whose file is read.
    pub fn of(bed: Option<&BedArg>) -> Result<Self, Failure> {
        let (name, subscription_of_file) = match bed {
            None => (None, None),
            Some(BedArg::Name(name)) => (Some(name.clone()), None),
            Some(BedArg::File(path)) => {
                let bed = read_bed(path)?;
                (Some(bed.name), bed.subscription)
            }
        };
        Ok(Self { name, subscription_of_file })
    }
}

/// What is done with a bed, for "failed to ...": `delete the bed x`.
pub fn doing(verb: &str, name: Option<&str>) -> String {
    name.map_or_else(|| format!("{verb} the bed"), |name| format!("{verb} the bed {name}"))
}

/// What to do where a command without a name does not find one bed.
pub struct Remedies<'t> {
    /// There is none.
    pub none: &'t str,
    /// There are several.
    pub several: &'t str,
}

/// A bed that was chosen.
pub struct Chosen {
    /// Its group.
    pub group: Group,
    /// Its tags.
    pub tags: Tags,
    /// All beds of the subscription; absent where the bed was found by its name.
    pub listed: Option<Vec<(Group, Tags)>>,
}

/// The bed with a name; without a name the only one, of those that no other user created and that Azure is not deleting if there are such.
pub fn choose(
    az: &mut dyn Az,
    name: Option<&str>,
    subscription: &Subscription,
    doing: &str,
    remedies: &Remedies<'_>,
) -> Result<Chosen, Failure> {
    let failed = |error: BedError| failed(doing, error);
    let (group, listed) = if let Some(name) = name {
        let found = groups::find(az, name, subscription).map_err(|error| match error {
            BedError::NotOurs { .. } => {
                failed(error).remedy(format!("`{}` shows all beds", subscription.list()))
            }
            error => failed(error),
        })?;
        let group = found.ok_or_else(|| {
            known::forget_gone(subscription, |other| other != name);
            let (bed, list) = (name.to_owned(), subscription.list());
            failed(BedError::NoBed { bed, subscription: subscription.name.clone(), list })
        })?;
        (group, None)
    } else {
        let beds = groups::list(az, subscription).map_err(|error| failed(error.into()))?;
        known::forget_gone(subscription, |bed| beds.iter().any(|(_, tags)| tags.bed == bed));
        let user = subscription.user.as_deref();
        let own = preferred(beds.clone(), |(_, tags)| !tags.is_of_other(user));
        let group = only(preferred(own, |(group, _)| !group.is_being_deleted()), subscription, remedies)?;
        (group, Some(beds))
    };
    // A group that was found has the tag.
    let tags =
        group.bed().ok_or_else(|| Failure::message(Kind::Internal, "the group of the bed has no tag"))?;
    Ok(Chosen { group, tags, listed })
}

/// A bed with what Azure claims of it.
pub struct Deployed {
    subscription: Subscription,
    group: Group,
    tags: Tags,
    /// What Azure claims.
    pub inventory: Inventory,
}

impl Deployed {
    /// Finds the bed; without a wish the only one of the subscription. Warns of an old one.
    pub fn find(
        az: &mut dyn Az,
        wanted: Option<&BedArg>,
        subscription: Option<&str>,
    ) -> Result<Self, Failure> {
        let Wanted { name, subscription_of_file } = Wanted::of(wanted)?;
        let doing = doing("find", name.as_deref());
        let failed = |error: BedError| failed(&doing, error);
        let subscription = subscription.or(subscription_of_file.as_deref());
        // Errors have these names before the bed is known.
        name.as_deref().into_iter().chain(subscription).for_each(redaction::learn_resource);
        let subscription = Subscription::find(az, subscription).map_err(failed)?;
        redaction::learn_resource(&subscription.name);
        let none = "create one with `netduel azure up BED.toml`";
        let remedies = Remedies { none, several: "name one with --bed" };
        let Chosen { group, tags, listed } = choose(az, name.as_deref(), &subscription, &doing, &remedies)?;
        redaction::learn_resource(&tags.bed);
        if group.is_being_deleted() {
            return Err(failed(BedError::BeingDeleted { bed: tags.bed, list: subscription.list() }));
        }
        old::warn(az, &subscription, listed, None, now_unix_s());
        let inventory = inventory::look_up(az, &group, &tags, &subscription).map_err(failed)?;
        Ok(Self { subscription, group, tags, inventory })
    }

    /// Where its resources are, and when its VMs shut down.
    pub fn home(&self) -> Home {
        Home {
            subscription: Some(self.subscription.id.clone()),
            named: self.subscription.named.clone(),
            group: Some(self.group.name.clone()),
            shutdown: self.tags.shutdown_time(),
            deployed: self.inventory.bed.deployed_nics(),
            ..Home::default()
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.tags.bed
    }

    /// Whether it was created in the last quarter of an hour, in which the VMs may still boot.
    pub fn is_new(&self) -> bool {
        const NEW_S: u64 = 15 * 60;
        self.tags.created_unix_s.is_some_and(|created| now_unix_s().saturating_sub(created) < NEW_S)
    }

    /// Looks at it again, and then as [`ensure_running`](Self::ensure_running): an earlier plan, another program or the daily shutdown may have
    /// changed it.
    pub fn refresh_running(
        &mut self,
        az: &mut dyn Az,
        vms: &[String],
        starts: bool,
    ) -> Result<bool, Failure> {
        let looked = inventory::look_up(az, &self.group, &self.tags, &self.subscription);
        self.inventory =
            looked.map_err(|error| failed(&format!("look at the bed {}", self.name()), error))?;
        self.ensure_running(az, vms, starts)
    }

    /// Sees to it that VMs run, and returns whether some had to be started, which only happens when the user wants it.
    pub fn ensure_running(&mut self, az: &mut dyn Az, vms: &[String], starts: bool) -> Result<bool, Failure> {
        let stopped: Vec<(String, String)> = self
            .inventory
            .not_running(vms.iter().map(String::as_str))
            .into_iter()
            .map(|(vm, state)| (vm.to_owned(), state.to_owned()))
            .collect();
        if stopped.is_empty() {
            return Ok(false);
        }
        let bed = self.name().to_owned();
        if !starts {
            let failure = failed("run plans", BedError::Stopped { bed, vms: stopped });
            return Err(failure.remedy(start_remedy(&self.tags)));
        }
        let doing = format!("start the bed {bed}");
        self.keeps_budget().map_err(|error| {
            failed(&doing, error).remedy("repeat `netduel azure up` after a change of the bed file")
        })?;
        let names: Vec<&str> = stopped.iter().map(|(vm, _)| vm.as_str()).collect();
        tell(&format!("starting {} of the bed {bed}", names.join(", ")));
        let started =
            inventory::start(az, (&self.group, &self.tags), &self.subscription, &self.inventory, vms);
        self.inventory = started.map_err(|error| {
            let is_unanswered = matches!(error, BedError::Call(_));
            let failure = failed(&doing, error);
            if is_unanswered {
                failure.remedy("VMs whose start Azure accepted continue to start")
            } else {
                failure
            }
        })?;
        Ok(true)
    }

    /// Checks the budget of its last `up` for VMs that start now.
    fn keeps_budget(&self) -> Result<(), BedError> {
        let bed = &self.inventory.bed;
        let size = bed.vms.iter().find_map(|vm| vm.claimed.size.as_deref()).unwrap_or("a VM");
        budget::check(&self.tags, size, &bed.region, now_unix_s(), inventory::LIMIT_MIN)
    }
}

/// What to do about VMs that do not run, with what they cost then.
fn start_remedy(tags: &Tags) -> String {
    match tags.shutdown_time() {
        Some(time) => format!(
            "start them with --start (the daily shutdown is at {time} UTC); they cost money until the next shutdown"
        ),
        None => "start them with --start; they cost money while they run".to_owned(),
    }
}

/// Those beds that are preferred; all when there is none.
fn preferred(beds: Vec<(Group, Tags)>, is_preferred: impl Fn(&(Group, Tags)) -> bool) -> Vec<(Group, Tags)> {
    let (preferred, others): (Vec<_>, Vec<_>) = beds.into_iter().partition(is_preferred);
    if preferred.is_empty() { others } else { preferred }
}

/// The only bed.
fn only(
    beds: Vec<(Group, Tags)>,
    subscription: &Subscription,
    remedies: &Remedies<'_>,
) -> Result<Group, Failure> {
    let names: Vec<String> = beds.iter().map(|(_, tags)| tags.bed.clone()).collect();
    let mut groups = beds.into_iter().map(|(group, _)| group);
    match (groups.next(), groups.next()) {
        (Some(group), None) => Ok(group),
        (None, _) => {
            let text =
                format!("failed to find a bed: there is none in the subscription {}", subscription.name);
            Err(Failure::message(Kind::Bed, text).remedy(remedies.none))
        }
        (Some(_), Some(_)) => {
            // A name may be too short to be replaced in a text.
            let beds = if redaction::is_on() { plural(names.len(), "bed") } else { names.join(", ") };
            let text = format!("failed to choose a bed: the subscription {} has {beds}", subscription.name);
            Err(Failure::message(Kind::Usage, text).remedy(remedies.several))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn remedy_of_stopped_vms_names_a_shutdown_only_where_the_bed_has_one() {
        let remedy = |shutdown: &str| {
            let pairs = [("netduel", "x"), ("netduel-shutdown", shutdown)];
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            start_remedy(&Tags::read(&BTreeMap::from(pairs)).expect("a bed"))
        };
        let daily = remedy("19:00");
        assert!(daily.contains("at 19:00 UTC") && daily.ends_with("until the next shutdown"), "{daily}");
        for other in ["off", "", "x"] {
            assert_eq!(remedy(other), "start them with --start; they cost money while they run");
        }
    }
}
