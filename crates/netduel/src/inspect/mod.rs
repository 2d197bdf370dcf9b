//! `netduel inspect`: facts and findings of hosts. Changes nothing on any host.
pub mod args;
mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netduel_control::coordinator::{self, Described};
use netduel_lab::Lab;
use netduel_model::event::Event;
use netduel_model::ids::HostName;
use netduel_model::plan::{Design, Host, Launch, Permissions, ResolvedPlan};
use netduel_model::publication::Publication;
use netduel_model::snapshot::HostSnapshot;
use netduel_model::units::Percent;
use netduel_report::document;
use netduel_report::findings::Severity;
use netduel_report::inspect::{self, Inspection};
use netduel_report::json::inspect::InspectDocument;

use crate::cli::shared::named_places;
use crate::cli::stored::Format;
use crate::console::{json, page_layout, print, print_json};
use crate::exit::{Failure, Kind, chain};
use crate::program;
use crate::redaction;
use crate::report_file::{Destination, check_printing, destinations, page, write_and_print};
use crate::run::{SystemClock, agent_argv, build_lab, read_plan, remove_lab};
use crate::ssh::{OnFailure, SshHosts};
use args::InspectArgs;
use target::Target;

/// Runs the command.
pub fn command(args: &InspectArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let files = files(args)?;
    let (inspection, failed) = match &args.plan {
        Some(path) => of_plan(path, args)?,
        None if args.hosts.is_empty() => (of_this_host(args)?, None),
        None => of_targets(args)?,
    };
    if files.is_empty() {
        show(&inspection, args)?;
    } else {
        write_and_print(&files, |file| write(&inspection, file))?;
    }
    if let (Some((name, reason)), Some(kind)) = (inspection.failed.first(), failed) {
        let others = match inspection.failed.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        return Err(Failure::message(kind, format!("{name} could not be inspected{others}: {reason}")));
    }
    if args.fail_on.is_failed_by(inspection.worst()) {
        let found = inspection.counted(Severity::Warning);
        let text = format!("found {found}; use --fail-on never to ignore findings");
        return Err(Failure::message(Kind::Findings, text));
    }
    Ok(())
}

/// The files of `--out`, which are checked before a host is read.
fn files(args: &InspectArgs) -> Result<Vec<Destination>, Failure> {
    let format = args.json.json.then_some(Format::Json);
    let places = named_places(&args.out);
    let destinations = destinations(places, format, Format::is_document, &args.printing)?;
    check_printing(!destinations.is_empty(), &args.printing, "hosts.pdf")?;
    if let Some(other) = destinations.iter().find(|one| !one.format.is_document()) {
        return Err(no_such_format(other.format));
    }
    destinations.iter().try_for_each(Destination::check)?;
    Ok(destinations)
}

fn no_such_format(format: Format) -> Failure {
    let text = format!("failed to write an inspection as .{}: it has no such format", format.extension());
    Failure::message(Kind::Usage, text).remedy(format!("use {}", Format::extensions(Format::is_document)))
}

/// Writes the inspection to a file, and returns its name.
fn write(inspection: &Inspection, destination: &Destination) -> Result<Vec<PathBuf>, Failure> {
    let text = match destination.format {
        Format::Json => json(&InspectDocument::of(inspection, &program::origin()))?,
        Format::Text => inspect::text(inspection, page_layout().0, false),
        format => {
            let document = document::of_inspection(inspection, program::origin().created_unix_ms);
            page(&document, format, destination.paper()).ok_or_else(|| no_such_format(format))?
        }
    };
    destination.write(&text)?;
    Ok(vec![destination.path.clone()])
}

fn show(inspection: &Inspection, args: &InspectArgs) -> Result<(), Failure> {
    if args.json.json {
        return print_json(&InspectDocument::of(inspection, &program::origin()));
    }
    let (width, colour) = page_layout();
    print(&inspect::text(inspection, width, colour))
}

/// This host, read by this process.
fn of_this_host(args: &InspectArgs) -> Result<Inspection, Failure> {
    let snapshot = netduel_agent::snapshot(!args.no_metadata)
        .map_err(|error| Failure::caused(Kind::Environment, format!("failed to {}", chain(&error)), error))?;
    let snapshot = redaction::value(snapshot)?;
    let name = snapshot.hostname.clone().unwrap_or_else(|| "this host".to_owned());
    Ok(Inspection::of_hosts(vec![(name, snapshot)]))
}

/// The hosts of a plan: all, or the named ones.
fn of_plan(path: &Path, args: &InspectArgs) -> Result<Inspected, Failure> {
    // Nothing is changed, so that no sysctl needs a permission.
    let permissions = Permissions { commands: !args.no_commands, every_sysctl: true };
    let (_, mut plan) = read_plan(path, &[], permissions)?;
    redaction::learn_plan(&plan)?;
    for name in &args.hosts {
        if !plan.hosts.keys().any(|host| host.as_str() == name) {
            let known: Vec<&str> = plan.hosts.keys().map(HostName::as_str).collect();
            let name = redaction::host(name);
            let text = format!("{} has no host {name}; it has {}", path.display(), known.join(", "));
            return Err(Failure::message(Kind::Usage, text));
        }
    }
    plan.hosts.retain(|host, _| args.hosts.is_empty() || args.hosts.iter().any(|name| name == host.as_str()));
    let in_lab = plan.hosts.values().any(|host| matches!(host.launch, Launch::Lab { .. }));
    let lab = if in_lab { build_lab(&plan)? } else { None };
    let remote = &args.remote_program;
    let mut ssh = SshHosts::new(&remote.remote_program, remote.remote_folder.as_deref(), args.json.json);
    let by_ssh = plan.hosts.iter().filter_map(|(name, host)| match &host.launch {
        Launch::Ssh(ssh) => Some((name, ssh)),
        _ => None,
    });
    // Failed hosts do not affect the others.
    drop(ssh.prepare(by_ssh, OnFailure::Continue));
    let lab_name = lab.as_ref().map(Lab::name);
    let argv = plan
        .hosts
        .iter()
        .map(|(name, host)| (name.clone(), agent_argv(name, host, lab_name, &mut ssh)))
        .collect();
    let Asked { hosts, failed, kind } = describe_hosts(&plan, &argv, &str::to_owned, !args.no_metadata)?;
    remove_lab(lab);
    let (hosts, plan) = (redaction::value(hosts)?, redaction::value(plan)?);
    let failed = failed.into_iter().map(|(name, reason)| (name.to_string(), reason));
    let failed = failed.map(|(name, reason)| (redaction::host(&name), redaction::text(&reason))).collect();
    Ok((Inspection { failed, ..Inspection::of_plan(&plan, &hosts) }, kind))
}

/// The hosts of a plan without a lab as they are now.
///
/// # Errors
/// The first host that cannot be inspected.
pub fn snapshots(
    plan: &ResolvedPlan,
    ssh: &mut SshHosts,
) -> Result<BTreeMap<HostName, HostSnapshot>, Failure> {
    let argv =
        plan.hosts.iter().map(|(name, host)| (name.clone(), agent_argv(name, host, None, ssh))).collect();
    let Asked { hosts, failed, kind } = describe_hosts(plan, &argv, &str::to_owned, true)?;
    match failed.into_iter().next().zip(kind) {
        Some(((host, reason), kind)) => {
            Err(Failure::message(kind, format!("{host} could not be inspected: {reason}")))
        }
        None => Ok(hosts),
    }
}

/// Hosts from the command line.
fn of_targets(args: &InspectArgs) -> Result<Inspected, Failure> {
    target::learn(&args.hosts);
    let targets = target::targets(&args.hosts)?;
    target::check_labs(&targets)?;
    let hosts = targets.keys().map(|name| {
        (
            name.clone(),
            Host {
                launch: Launch::Local,
                addresses: Vec::new(),
                data_ports: None,
                size: None,
                expect_mbps: None,
                vm: None,
                price_per_hour: None,
            },
        )
    });
    let plan = without_traffic(hosts.collect());
    let remote = &args.remote_program;
    let mut ssh = SshHosts::new(&remote.remote_program, remote.remote_folder.as_deref(), args.json.json);
    target::prepare(&targets, &mut ssh);
    let argv =
        targets.iter().map(|(name, target)| (name.clone(), target.checked_argv(name, &mut ssh))).collect();
    // The coordinator knows a host by a name that only resembles the argument.
    let in_arguments = |text: &str| {
        targets.iter().fold(text.to_owned(), |text, (name, target)| text.replace(name.as_str(), &target.word))
    };
    let Asked { hosts, failed, kind } = describe_hosts(&plan, &argv, &in_arguments, !args.no_metadata)?;
    let word = |name: &HostName| targets.get(name).map(Target::shown).unwrap_or_default();
    let hosts: Vec<(String, HostSnapshot)> =
        hosts.into_iter().map(|(name, snapshot)| (word(&name), snapshot)).collect();
    let hosts = redaction::value(hosts)?;
    let failed: Vec<(String, String)> =
        failed.into_iter().map(|(name, reason)| (word(&name), redaction::text(&reason))).collect();
    Ok((Inspection { failed, ..Inspection::of_hosts(hosts) }, kind))
}

/// A plan with hosts only.
fn without_traffic(hosts: BTreeMap<HostName, Host>) -> ResolvedPlan {
    ResolvedPlan {
        published: None,
        bed_type: None,
        name: "inspect".to_owned(),
        question: String::new(),
        report: Publication::default(),
        lab: None,
        hosts,
        arms: Vec::new(),
        workloads: Vec::new(),
        design: Design {
            blocks_min: 0,
            blocks_max: 0,
            budget: None,
            precision: Percent(5.0),
            equivalence: Percent(5.0),
            confidence: Percent(95.0),
            seed: None,
            aa: false,
            crossover: false,
        },
    }
}

/// An inspection, and the kind of its first failure.
type Inspected = (Inspection, Option<Kind>);

/// What the hosts answered.
struct Asked {
    /// Their snapshots.
    hosts: BTreeMap<HostName, HostSnapshot>,
    /// The failed hosts with the reason.
    failed: Vec<(HostName, String)>,
    /// The kind of the first failure.
    kind: Option<Kind>,
}

fn describe_hosts(
    plan: &ResolvedPlan,
    argv: &BTreeMap<HostName, Result<Vec<String>, String>>,
    in_arguments: &dyn Fn(&str) -> String,
    metadata: bool,
) -> Result<Asked, Failure> {
    let clock = SystemClock::new()?;
    let launcher = &mut |name: &HostName, _: &Host| {
        argv.get(name).cloned().unwrap_or_else(|| Err(format!("the command line has no host {name}")))
    };
    let listener = &mut |event| {
        if let Event::Warned { warning } = event {
            crate::console::tell(&in_arguments(&format!("netduel: {warning}")));
        }
    };
    let described: Described = coordinator::describe(plan, &clock, launcher, listener, metadata)
        .ok_or_else(|| Failure::message(Kind::Interrupted, "stopped by the user; nothing was changed"))?;
    let (mut hosts, mut failed, mut kind) = (BTreeMap::new(), Vec::new(), None);
    for (name, answer) in described {
        match answer {
            Ok(snapshot) => {
                hosts.insert(name, snapshot);
            }
            Err(error) => {
                kind.get_or_insert(error.kind().into());
                failed.push((name, in_arguments(&chain(&error))));
            }
        }
    }
    Ok(Asked { hosts, failed, kind })
}
