//! `netduel azure`: beds on Azure through the user's own `az`. Templates, calls and their errors are in `netduel-azure`.
mod bed_file;
pub mod cost;
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
use netduel_azure::deployment::{BedError, DatedPrice, Foreign, Subscription, budget, currency, groups};
use netduel_azure::tags::Tags;
use netduel_azure::template;
use netduel_model::bed::shutdown::ShutdownTime;
use netduel_model::bed::{self, Bed, Layout};
use netduel_report::json::bed::CheckedBed;

use crate::cli::azure::{AzureCommand, BedArg};
use crate::confirmation::confirmed;
use crate::console::{print, print_exact, print_json, print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
use bed_file::read_bed;
pub use bed_file::{check_fit, refuse_vms};
use deployed::{Chosen, Remedies, Wanted, choose, doing};
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
    if let Some(warning) = price.as_ref().and_then(|price| budget_warning(&bed, price, now_unix_s())) {
        tell(&warning);
    }
    if json {
        let price = price.as_ref().map(CheckPrice::of_vm);
        return print_json(&CheckedBed::of(&file, &bed, price.as_ref(), &program::origin()));
    }
    print_lines(&shown::checked(&file, &bed, price.as_ref(), looks_up_price))
}

/// The warning of a bed that `up` would refuse because of its budget at a time in seconds since 1970-01-01T00:00:00Z, by the price of a VM. By a
/// list price it is an estimate; there is none in the currency of every budget.
fn budget_warning(bed: &Bed, price: &CheckPrice, now_unix_s: u64) -> Option<String> {
    let CheckPrice { dated: DatedPrice { of_vm, read_unix_s }, is_estimate } = price;
    if *is_estimate && of_vm.currency != currency(bed) {
        return None;
    }
    let price = Some(of_vm.times(Layout::of(bed).vms.len() as f64));
    let tags = Tags { price, ..Tags::of(bed, now_unix_s) };
    let lead_min = ShutdownTime::CREATION_MIN;
    let error = budget::check(&tags, &bed.size.name, &bed.region, now_unix_s, lead_min).err()?;
    let source = format!("by the list price of {} ", shown::day(*read_unix_s));
    let source = if *is_estimate { source.as_str() } else { "" };
    Some(format!("warning: {source}`netduel azure up` would refuse the bed: {error}"))
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
    let Chosen { group, tags, listed } = choose(az, name.as_deref(), &subscription, &doing, &remedies)?;
    let name = tags.bed.as_str();
    if deletion.yes && tags.is_of_other(subscription.user.as_deref()) {
        return Err(failed(&doing, BedError::OfOther { bed: name.to_owned() })
            .remedy("repeat the command in a terminal without --yes, which asks"));
    }
    old::warn(az, &subscription, listed, Some(name), now_unix_s());
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

    use netduel_azure::deployment::list_price;

    use super::*;

    #[test]
    fn bed_that_exceeds_its_budget_by_the_list_price_is_warned_of_in_the_currency_of_the_budget() {
        let text = include_str!("../../../../beds/dpdk.toml");
        // 2026-11-22T10:30:07Z, eight and a half hours before the shutdown.
        let warned = |text: &str, is_estimate: bool| {
            let bed = bed::parse(text, "dpdk.toml").unwrap_or_else(|errors| panic!("{errors}"));
            let dated = list_price::of_vm(&bed).expect("a list price");
            budget_warning(&bed, &CheckPrice { dated, is_estimate }, 1_795_343_407)
        };
        let refused = "`netduel azure up` would refuse the bed: the bed costs 354.13 USD until its shutdown in 8.5 h (41.66 USD an hour), and its \
                       budget is 100.00 USD; ";
        let estimate = warned(text, true).expect("a warning");
        let start = format!("warning: by the list price of 2026-06-18 {refused}");
        assert!(estimate.starts_with(&start), "{estimate}");
        let looked_up = warned(text, false).expect("a warning");
        assert!(looked_up.starts_with(&format!("warning: {refused}")), "{looked_up}");
        assert_eq!(warned(&text.replace("100 USD", "1000 USD"), true), None);
        assert_eq!(warned(&text.replace("100 USD", "100 EUR"), true), None);
    }

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
