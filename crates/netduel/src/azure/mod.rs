//! `netduel azure`: beds on Azure through the user's own `az`. Templates, calls and their errors are in `netduel-azure`.
mod bed_file;
mod deployed;
mod document;
mod host_keys;
pub mod known;
pub mod old;
mod prices;
pub mod resumed;
mod run;
pub mod session;
mod shown;
mod shutdown;
mod sizes;
mod up;

use std::path::Path;

use netduel_azure::az::Az;
use netduel_azure::deployment::groups::Group;
use netduel_azure::deployment::{BedError, DatedPrice, Foreign, Subscription, budget, groups};
use netduel_azure::tags::Tags;
use netduel_azure::template;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{self, Bed, Layout};
use netduel_report::json::bed::{CheckedBed, VmPrice};

use crate::cli::azure::{AzureCommand, BedArg};
use crate::confirmation::confirmed;
use crate::console::{print, print_exact, print_json, print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
pub use bed_file::check_fit;
use bed_file::read_bed;
use deployed::{Remedies, Wanted, choose, doing};
use document::print_beds;
use prices::CheckPrice;
use session::{az, failed, now_unix_s};

/// Runs the command.
pub fn command(command: &AzureCommand) -> Result<(), Failure> {
    if !asks_azure(command) {
        old::warn_of_noted();
    }
    match command {
        AzureCommand::Schema => print_json(&bed::schema()),
        AzureCommand::Sizes { kind, json } => sizes::command(*kind, json.json),
        AzureCommand::Check { bed, price, json } => check(bed, *price, json.json),
        AzureCommand::Template { bed } => {
            let text = template::text(&template::template(&read_bed(bed)?)).kind(Kind::Internal)?;
            print_exact(&text)
        }
        AzureCommand::Up { bed, ssh_from, json } => up::command(bed, ssh_from, json.json),
        AzureCommand::Down { bed, confirmation, with_everything, no_wait, subscription, json } => {
            let deletion =
                Deletion { yes: confirmation.yes, with_everything: *with_everything, waits: !no_wait };
            down(bed.as_ref(), subscription.subscription.as_deref(), deletion, json.json)
        }
        AzureCommand::Run(args) => run::command(args),
        AzureCommand::List { subscription, json } => list(subscription.as_deref(), json.json),
    }
}

/// Whether a command asks Azure for its beds: it then warns of those that Azure has.
fn asks_azure(command: &AzureCommand) -> bool {
    match command {
        AzureCommand::Up { .. }
        | AzureCommand::Down { .. }
        | AzureCommand::Run(_)
        | AzureCommand::List { .. } => true,
        AzureCommand::Check { .. }
        | AzureCommand::Template { .. }
        | AzureCommand::Sizes { .. }
        | AzureCommand::Schema => false,
    }
}

fn check(path: &Path, looks_up_price: bool, json: bool) -> Result<(), Failure> {
    let bed = read_bed(path)?;
    let file = path.display().to_string();
    let price = if looks_up_price { prices::look_up(&bed)? } else { prices::without_network(&bed) };
    warn_of_budget(&bed, price.as_ref().filter(|price| !price.is_estimate).map(|price| &price.dated));
    if json {
        let price = price.as_ref().map(|CheckPrice { dated, is_estimate }| VmPrice {
            of_vm: &dated.of_vm,
            read_unix_s: dated.read_unix_s,
            is_estimate: *is_estimate,
        });
        return print_json(&CheckedBed::of(&file, &bed, price.as_ref(), &program::origin()));
    }
    print_lines(&shown::checked(&file, &bed, price.as_ref(), looks_up_price))
}

/// Warns of a bed that `up` would refuse now because of its budget, as far as its price is known.
fn warn_of_budget(bed: &Bed, price: Option<&DatedPrice>) {
    let Some(DatedPrice { of_vm, .. }) = price else { return };
    let price = Some(of_vm.times(Layout::of(bed).vms.len() as f64));
    let (now, lead_min) = (now_unix_s(), ShutdownTime::CREATION_MIN);
    let tags = Tags { price, ..Tags::of(bed, now) };
    if let Err(error) = budget::check(&tags, &bed.size.name, &bed.region, now, lead_min) {
        tell(&format!("warning: `netduel azure up` would refuse the bed: {error}"));
    }
}

/// How a bed is deleted.
#[derive(Debug, Clone, Copy)]
struct Deletion {
    yes: bool,
    /// Also resources of others in its group.
    with_everything: bool,
    waits: bool,
}

fn down(
    bed: Option<&BedArg>,
    subscription: Option<&str>,
    deletion: Deletion,
    json: bool,
) -> Result<(), Failure> {
    let Wanted { name, subscription_of_file } = Wanted::of(bed)?;
    let doing = doing("delete", name.as_deref());
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    let wanted = subscription.or(subscription_of_file.as_deref());
    let subscription = Subscription::find(az, wanted).map_err(|error| failed(&doing, error))?;
    let several = format!("name one, for example `{}`", subscription.down("NAME"));
    let remedies = Remedies { none: "name another subscription with --subscription", several: &several };
    let (group, tags) = choose(az, name.as_deref(), &subscription, &doing, &remedies)?;
    let name = tags.bed.as_str();
    if deletion.yes && tags.is_of_other(subscription.user.as_deref()) {
        return Err(failed(&doing, BedError::OfOther { bed: name.to_owned() })
            .remedy("repeat the command in a terminal without --yes, which asks"));
    }
    old::warn(az, &subscription, Some(name), now_unix_s());
    let foreign = groups::foreign(az, &group, name, &subscription);
    let foreign = foreign.map_err(|error| failed(&doing, error.into()))?;
    if deletion.yes && !deletion.with_everything && !foreign.is_empty() {
        return Err(failed(&doing, BedError::Foreign { group: group.name, foreign }).remedy(format!(
            "move them to another group with `{}`, or add --with-everything, which deletes them too",
            subscription.command("az resource move")
        )));
    }
    let question = question(&tags, &group, &subscription, &foreign);
    if !deletion.yes && !confirmed("netduel azure down", &question)? {
        return if json { print_beds(Vec::new(), Vec::new()) } else { print("nothing was deleted\n") };
    }
    groups::delete(az, &group, &subscription, deletion.waits).map_err(|error| {
        let failure = failed(&doing, error.into());
        match failure.kind {
            Kind::Interrupted => {
                let list = subscription.list();
                failure.remedy(format!("Azure may continue the deletion; `{list}` shows what is left"))
            }
            _ => failure,
        }
    })?;
    host_keys::forget(name);
    known::forget(name);
    if json {
        return print_beds(Vec::new(), vec![name.to_owned()]);
    }
    if deletion.waits {
        return print(&format!("the bed {name} is deleted\n"));
    }
    let list = subscription.list();
    print(&format!("Azure deletes the bed {name}; `{list}` shows it until it is gone\n"))
}

/// What is asked before a bed is deleted.
fn question(tags: &Tags, group: &Group, subscription: &Subscription, foreign: &Foreign) -> String {
    let others = if foreign.is_empty() { String::new() } else { format!(", also {foreign}") };
    let is_of_other = tags.is_of_other(subscription.user.as_deref());
    format!(
        "Delete the bed {}{}, resource group {} in {} of {}, with everything in it{others}?",
        tags.bed,
        if is_of_other { ", which another user created" } else { "" },
        group.name,
        group.location,
        subscription.name
    )
}

fn list(wanted: Option<&str>, json: bool) -> Result<(), Failure> {
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    let subscription = Subscription::find(az, wanted).map_err(|error| failed("list the beds", error))?;
    let beds = groups::list(az, &subscription).map_err(|error| failed("list the beds", error.into()))?;
    known::forget_gone(&subscription, |bed| beds.iter().any(|(_, tags)| tags.bed == bed));
    let now = now_unix_s();
    if json {
        old::warn_of(&beds, &subscription, now);
        let beds = beds.iter().map(|(group, tags)| shown::listed_bed(group, tags, now));
        return print_beds(beds.collect(), Vec::new());
    }
    if beds.is_empty() {
        return print(&format!("there is no bed in the subscription {}\n", subscription.name));
    }
    let user = subscription.user.as_deref();
    let line = |(group, tags): &(Group, Tags)| shown::listed(group, tags, user, now);
    let lines: Vec<String> = beds.iter().map(line).collect();
    print_lines(&lines.concat())?;
    old::warn_of(&beds, &subscription, now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn question_names_the_resources_of_others_and_another_creator() {
        let (name, location) = ("netduel-x".to_owned(), "westeurope".to_owned());
        let group = Group { name, location, tags: None, properties: None };
        let user = Some("me".to_owned());
        let subscription = Subscription { id: "1".to_owned(), name: "mine".to_owned(), named: None, user };
        let pairs = BTreeMap::from([("netduel".to_owned(), "x".to_owned())]);
        let tags = Tags::read(&pairs).expect("a bed");
        let asked = |foreign: &[&str]| {
            let foreign = Foreign(foreign.iter().map(|name| (*name).to_owned()).collect());
            question(&tags, &group, &subscription, &foreign)
        };
        let all = "Delete the bed x, resource group netduel-x in westeurope of mine, with everything in it";
        assert_eq!(asked(&[]), format!("{all}?"));
        let others = asked(&["VM web", "disk data"]);
        assert_eq!(
            others,
            format!("{all}, also 2 resources that netduel did not create: VM web, disk data?")
        );
        let of_other = Tags { owner: Some("other".to_owned()), ..tags.clone() };
        let text = question(&of_other, &group, &subscription, &Foreign::default());
        assert!(text.starts_with("Delete the bed x, which another user created, resource group"), "{text}");
    }
}
