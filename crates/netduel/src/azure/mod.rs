//! `netduel azure`: beds on Azure through the user's own `az`. Templates, calls and their errors are in `netduel-azure`.
mod deployed;
pub mod old;
mod prices;
mod run;
mod shown;
mod up;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use netduel_azure::az::cause::Cause;
use netduel_azure::az::process::AzProcess;
use netduel_azure::az::{Az, CallError};
use netduel_azure::deployment::{BedError, Subscription, groups};
use netduel_azure::template;
use netduel_model::bed::{self, Bed, RunBed};
use netduel_model::plan::ResolvedPlan;
use netduel_model::plan::on_bed::BedFault;
use netduel_report::json::bed::{BedsDocument, CheckedBed, DeployedBed};
use netduel_report::json::envelope::Document as _;

use crate::cli::azure::{AzureCommand, BedArg};
use crate::confirmation::confirmed;
use crate::console::{print, print_exact, print_json, print_lines};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::ssh::known_hosts_of_bed;
use crate::{program, signal};

/// Longest bed file, bytes: a hundred times that of one with every key.
const BED_LEN_MAX: usize = 64 << 10;

/// Runs the command.
pub fn command(command: &AzureCommand) -> Result<(), Failure> {
    match command {
        AzureCommand::Schema => print_json(&bed::schema()),
        AzureCommand::Check { bed, json } => check(bed, json.json),
        AzureCommand::Template { bed } => {
            let text = template::text(&template::template(&read_bed(bed)?)).kind(Kind::Internal)?;
            print_exact(&text)
        }
        AzureCommand::Up { bed, ssh_from, json } => up::command(bed, ssh_from, json.json),
        AzureCommand::Down { bed, yes, no_wait, subscription, json } => {
            let (name, subscription) = match bed {
                BedArg::Name(name) => (name.clone(), subscription.subscription.clone()),
                BedArg::File(path) => {
                    let bed = read_bed(path)?;
                    (bed.name, subscription.subscription.clone().or(bed.subscription))
                }
            };
            down(&name, subscription.as_deref(), Deletion { yes: *yes, waits: !no_wait }, json.json)
        }
        AzureCommand::Run(args) => run::command(args),
        AzureCommand::List { subscription, json } => list(subscription.subscription.as_deref(), json.json),
    }
}

/// The user's `az`, stopped by the signals that stop a command.
fn az() -> Result<AzProcess, Failure> {
    let is_over = signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    Ok(AzProcess::new(is_over))
}

/// The time, seconds since 1970-01-01T00:00:00Z.
fn now_unix_s() -> u64 {
    netduel_sys::clock::realtime_ns() / 1_000_000_000
}

/// An error for `main`; `doing` completes "failed to ...".
fn failed(doing: &str, error: BedError) -> Failure {
    Failure::caused(kind(&error), format!("failed to {doing}: {error}"), error)
}

/// The exit code of an error.
fn kind(error: &BedError) -> Kind {
    match error {
        BedError::Interrupted
        | BedError::StartInterrupted
        | BedError::Call(CallError::Interrupted { .. }) => Kind::Interrupted,
        BedError::Version { .. }
        | BedError::Call(
            CallError::Start { .. }
            | CallError::Failed { cause: Cause::Login { .. } | Cause::Version { .. }, .. },
        ) => Kind::Environment,
        _ => Kind::Bed,
    }
}

/// Reads a text file of limited length.
fn read_text(what: &str, path: &Path, limit: usize) -> Result<String, Failure> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() > limit {
            return Err(std::io::Error::other(format!("it is longer than {limit} bytes")));
        }
        String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8 text"))
    };
    read().map_err(|error| {
        let text = format!("failed to read the {what} {}: {error}", path.display());
        Failure::caused(Kind::Usage, text, error)
    })
}

/// Reads and checks a bed.
pub fn read_bed(path: &Path) -> Result<Bed, Failure> {
    let text = read_text("bed", path, BED_LEN_MAX)?;
    bed::parse(&text, &path.display().to_string()).kind(Kind::Usage)
}

/// Refuses a plan that needs what a bed does not have.
pub fn check_fit(path: &Path, plan: &ResolvedPlan, bed: &RunBed) -> Result<(), Failure> {
    plan.fits_bed(bed).map_err(|faults| misfit(path, &faults))
}

/// What a plan needs and the bed does not have.
fn misfit(path: &Path, faults: &[BedFault]) -> Failure {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Failure::message(Kind::Usage, format!("{} does not fit the bed: {}", path.display(), lines.join("; ")))
}

fn check(path: &Path, json: bool) -> Result<(), Failure> {
    let bed = read_bed(path)?;
    let file = path.display().to_string();
    if json {
        return print_json(&CheckedBed::of(&file, &bed, &program::origin()));
    }
    print_lines(&shown::checked(&file, &bed, prices::known(&bed).as_ref()))
}

/// How a bed is deleted.
#[derive(Debug, Clone, Copy)]
struct Deletion {
    yes: bool,
    waits: bool,
}

fn down(name: &str, wanted: Option<&str>, deletion: Deletion, json: bool) -> Result<(), Failure> {
    let doing = format!("delete the bed {name}");
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    let subscription = Subscription::find(az, wanted).map_err(|error| failed(&doing, error))?;
    old::warn(az, &subscription, Some(name), now_unix_s());
    let found = groups::find(az, name, &subscription).map_err(|error| failed(&doing, error))?;
    let Some(group) = found else {
        let (bed, subscription) = (name.to_owned(), subscription.name);
        return Err(failed(&doing, BedError::NoBed { bed, subscription }));
    };
    let question = format!(
        "Delete the bed {name}, resource group {} in {} of {}, with everything in it?",
        group.name, group.location, subscription.name
    );
    if !deletion.yes && !confirmed("netduel azure down", &question)? {
        return if json { print_beds(Vec::new(), Vec::new()) } else { print("nothing was deleted\n") };
    }
    groups::delete(az, &group, &subscription, deletion.waits).map_err(|error| {
        let failure = failed(&doing, error.into());
        match failure.kind {
            Kind::Interrupted => {
                failure.remedy("Azure may continue the deletion; `netduel azure list` shows what is left")
            }
            _ => failure,
        }
    })?;
    forget_host_keys(name);
    if json {
        return print_beds(Vec::new(), vec![name.to_owned()]);
    }
    if deletion.waits {
        return print(&format!("the bed {name} is deleted\n"));
    }
    print(&format!("Azure deletes the bed {name}; `netduel azure list` shows it until it is gone\n"))
}

/// Removes the host keys of a bed: the next one of this name has others.
fn forget_host_keys(bed: &str) {
    if let Ok(file) = known_hosts_of_bed(bed) {
        // There is none before the first run on the bed.
        drop(std::fs::remove_file(file));
    }
}

fn list(wanted: Option<&str>, json: bool) -> Result<(), Failure> {
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    let subscription = Subscription::find(az, wanted).map_err(|error| failed("list the beds", error))?;
    let beds = groups::list(az, &subscription).map_err(|error| failed("list the beds", error.into()))?;
    let now = now_unix_s();
    if json {
        let beds = beds.iter().map(|(group, tags)| shown::deployed(&group.name, &group.location, tags, now));
        return print_beds(beds.collect(), Vec::new());
    }
    if beds.is_empty() {
        return print(&format!("there is no bed in the subscription {}\n", subscription.name));
    }
    let lines: Vec<String> =
        beds.iter().map(|(group, tags)| shown::listed(&group.location, tags, now)).collect();
    print_lines(&lines.concat())?;
    old::warn_of(beds.iter().map(|(_, tags)| tags), now);
    Ok(())
}

fn print_beds(beds: Vec<DeployedBed>, removed: Vec<String>) -> Result<(), Failure> {
    print_json(&BedsDocument { envelope: BedsDocument::envelope(&program::origin()), beds, removed })
}
