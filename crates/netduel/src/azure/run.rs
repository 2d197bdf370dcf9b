//! `netduel azure run`: plans on a deployed bed. Before each plan it compares what Azure claims with what the guests show.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netduel_azure::az::Az;
use netduel_control::coordinator::RunError;
use netduel_model::bed::RunBed;
use netduel_model::plan::ResolvedPlan;
use netduel_model::publication::Publication;
use netduel_report::document::verdicts::Sides;
use netduel_report::findings::{BedFinding, Severity, of_bed, see_bed};

use super::bed_file::{check_fit, check_hosts, misfit};
use super::deployed::Deployed;
use super::host_keys;
use super::session::az;
use super::shutdown;
use crate::cli::azure::AzureRunArgs;
use crate::cli::publication::PrintingArgs;
use crate::cli::shared::is_standard_output;
use crate::console::tell;
use crate::exit::{Failure, Kind};
use crate::provider::{self, Home};
use crate::report_file::{Destination, destinations};
use crate::run::{
    Around, Output, RunSource, announced_lab, execute, read_plan, run_failure, ssh_hosts,
    stopped_before_trials,
};
use crate::run_store::writable_store;
use crate::ssh::{NotPrepared, OnFailure, SshHosts};
use crate::{gate, inspect, redaction};

/// How long a VM that was started or created lately may take until ssh answers.
const BOOT_PATIENCE: Duration = Duration::from_secs(180);

/// A plan, checked as far as possible without a bed.
struct Planned {
    path: PathBuf,
    text: String,
    plan: ResolvedPlan,
    output: Output,
    /// Why `--set` or `--fail-if` does not suit it. `plan` is without the overrides when `--set` does not. A plan that does not fit the bed is
    /// skipped whatever this is.
    refusal: Option<Failure>,
}

/// Runs the command.
pub fn command(args: &AzureRunArgs) -> Result<(), Failure> {
    redaction::begin(args.outcome.redact.redact);
    let plans = read_plans(args)?;
    let mut az = az()?;
    let az: &mut dyn Az = &mut az;
    // Before the bed is read, whose NICs and VMs it changes: the run keeps what is read, and returns its NICs to that when it is resumed.
    let has_restored =
        plans.iter().any(|planned| planned.plan.has_provider_treatments()) && provider::restore_earlier()?;
    let mut deployed = Deployed::find(az, args.bed.as_ref(), args.subscription.subscription.as_deref())?;
    learn_names(&plans, &deployed.inventory.bed)?;
    let plans = fitting(plans, &deployed.inventory.bed)?;
    // A VM that is started for a plan that cannot run costs money.
    for Planned { path, plan, .. } in &plans {
        provider::check(plan, args.deallocate.allow_deallocate, &deployed.home()).map_err(|failure| {
            let whose = format!("failed to run {}", path.display());
            Failure { error: failure.error.context(whose), ..failure }
        })?;
    }
    let mut was_started = deployed.ensure_running(az, &vms_of(&plans), args.start)? || has_restored;
    host_keys::prepare(deployed.name())?;
    let count = plans.len();
    shutdown::warn(deployed.name(), deployed.home().shutdown, plans.iter().map(|planned| &planned.plan));
    let mut failures = Vec::new();
    for (index, planned) in plans.into_iter().enumerate() {
        let path = planned.path.clone();
        if count > 1 {
            tell(&format!("plan {} of {count}: {}", index + 1, path.display()));
        }
        let vms = vms_of([&planned]);
        let running = if index == 0 { Ok(false) } else { deployed.refresh_running(az, &vms, args.start) };
        let ended = running.and_then(|is_started| {
            was_started |= is_started;
            let patience = if was_started || deployed.is_new() { BOOT_PATIENCE } else { Duration::ZERO };
            run_one(planned, deployed.inventory.bed.clone(), deployed.home(), args, patience)
        });
        match ended {
            Ok(()) => {}
            Err(failure) if failure.kind == Kind::Interrupted || count == 1 => return Err(failure),
            Err(failure) => {
                tell(&format!("netduel: {}: {failure}", path.display()));
                failures.push((path, failure.kind));
            }
        }
    }
    let Some((_, kind)) = failures.first() else { return Ok(()) };
    let names: Vec<String> = failures.iter().map(|(path, _)| path.display().to_string()).collect();
    Err(Failure::message(*kind, format!("{} of {count} plans failed: {}", failures.len(), names.join(", "))))
}

/// Learns the names of the bed, and then decides how the arms and workloads of all plans are called: a name of the bed or of another plan may be
/// in them. Every message from here on has the names of the reports.
fn learn_names(plans: &[Planned], bed: &RunBed) -> Result<(), Failure> {
    redaction::learn(bed)?;
    plans.iter().try_for_each(|planned| redaction::learn_plan(&planned.plan))
}

/// The VMs of plans, each once.
fn vms_of<'p>(plans: impl IntoIterator<Item = &'p Planned>) -> Vec<String> {
    let vms = plans.into_iter().flat_map(|planned| planned.plan.vms()).map(|(_, vm)| vm.to_owned());
    vms.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Reads and checks all plans before anything is asked or started.
fn read_plans(args: &AzureRunArgs) -> Result<Vec<Planned>, Failure> {
    let is_one = args.plans.len() == 1;
    if args.outcome.json.json && !is_one {
        let text = "failed to print several runs as one JSON document";
        return Err(Failure::message(Kind::Usage, text).remedy("name one plan with --json, or write --out"));
    }
    let mut names = BTreeSet::new();
    let mut plans = Vec::new();
    for path in &args.plans {
        let (text, plan, unsuited) = read_with_overrides(path, args)?;
        redaction::learn_plan(&plan)?;
        check_hosts(path, &plan)?;
        if !names.insert(plan.name.clone()) {
            let text = format!(
                "failed to run {}: another of the plans is named {:?} as well",
                path.display(),
                plan.name
            );
            return Err(Failure::message(Kind::Usage, text).remedy("give each plan a name of its own"));
        }
        let refusal = unsuited.or_else(|| gate::check(&args.gate, &plan, Sides::Arms).err());
        let output = Output {
            out: reports(&args.out, is_one, &plan.name)?,
            json: args.outcome.json.json,
            quiet: args.outcome.quiet.quiet,
            live: args.outcome.live,
            verbose: args.outcome.verbose,
            gate: args.gate.clone(),
            publication: Publication::default(),
        };
        output.check()?;
        plans.push(Planned { path: path.clone(), text, plan, output, refusal });
    }
    // Options that suit no plan are wrong on every bed.
    if plans.iter().all(|planned| planned.refusal.is_some())
        && let Some(failure) = plans.iter_mut().find_map(|planned| planned.refusal.take())
    {
        return Err(failure);
    }
    Ok(plans)
}

/// A plan with the overrides. One of several to which these do not apply is read without them, with the reason: the bed may be of another type
/// than the plan.
fn read_with_overrides(
    path: &Path,
    args: &AzureRunArgs,
) -> Result<(String, ResolvedPlan, Option<Failure>), Failure> {
    let read = |overrides: &[String]| read_plan(path, overrides, args.permissions.permissions());
    match read(&args.overrides.set) {
        Ok((text, plan)) => Ok((text, plan, None)),
        Err(failure) if args.plans.len() == 1 || args.overrides.set.is_empty() => Err(failure),
        Err(failure) => match read(&[]) {
            Ok((text, plan)) => Ok((text, plan, Some(failure))),
            // It is wrong as it is written.
            Err(_) => Err(failure),
        },
    }
}

/// The plans whose type, VMs, networks and proximity placement group the bed has. Of several the others are skipped, with the reason.
fn fitting(plans: Vec<Planned>, bed: &RunBed) -> Result<Vec<Planned>, Failure> {
    let count = plans.len();
    let mut fitting = Vec::new();
    for mut planned in plans {
        match check_fit(&planned.path, &planned.text, &planned.plan, bed) {
            Ok(()) => {
                if let Some(failure) = planned.refusal.take() {
                    let whose = format!("failed to run {}", planned.path.display());
                    return Err(Failure { error: failure.error.context(whose), ..failure });
                }
                crate::plan::warn_of_few_blocks(&planned.plan);
                fitting.push(planned);
            }
            Err(failure) if count == 1 => return Err(failure),
            Err(failure) => tell(&format!("skipped: {failure}")),
        }
    }
    if fitting.is_empty() {
        let text = format!("failed to run plans: none of the {count} plans fits the bed {}", bed.name);
        return Err(Failure::message(Kind::Usage, text)
            .remedy("create a bed of the type that `bed_type` or the comments of a plan name"));
    }
    Ok(fitting)
}

/// The reports of a plan: at each `--out`, and with several plans in a folder there with the plan's name.
fn reports(outs: &[PathBuf], is_one: bool, name: &str) -> Result<Vec<Destination>, Failure> {
    let places = outs.iter().map(|out| place(out, is_one, name));
    let places: Vec<PathBuf> = places.collect::<Result<_, Failure>>()?;
    destinations(places.iter().map(PathBuf::as_path), None, |_| true, &PrintingArgs::default())
}

fn place(out: &Path, is_one: bool, name: &str) -> Result<PathBuf, Failure> {
    if is_one {
        return Ok(out.to_owned());
    }
    let is_file = out.extension().is_some() && !out.is_dir();
    if is_file || is_standard_output(out) {
        let text =
            format!("failed to write the reports of several plans to {}: it holds one report", out.display());
        return Err(Failure::message(Kind::Usage, text).remedy("name a folder with --out"));
    }
    // With the slash a name with a dot is a folder, too.
    Ok(out.join(format!("{name}/")))
}

/// Runs one plan: the guests are ready, are as Azure claims, and then carry traffic.
fn run_one(
    planned: Planned,
    mut bed: RunBed,
    home: Home,
    args: &AzureRunArgs,
    patience: Duration,
) -> Result<(), Failure> {
    let Planned { path, text, plan, output, refusal: _ } = planned;
    let store = writable_store(&args.outcome.store)?;
    let plan = plan.on_bed(&bed).map_err(|faults| misfit(&path, &text, &faults))?;
    // An earlier plan may have changed the bed.
    redaction::learn(&bed)?;
    redaction::learn_plan(&plan)?;
    let remote = &args.remote_program;
    let mut ssh = SshHosts::new(&remote.remote_program, remote.remote_folder.as_deref(), output.quiet);
    let mut progress = |line: &str| {
        if !output.quiet || line.starts_with("warning") {
            tell(line);
        }
    };
    ssh.wait_until_ready(ssh_hosts(&plan), patience, &mut progress)
        .map_err(|error| unreached(error, &bed))?;
    ssh.prepare(ssh_hosts(&plan), OnFailure::StopOthers).map_err(|error| unreached(error, &bed))?;
    let hosts = inspect::snapshots(&plan, &mut ssh)?;
    see_bed(&mut bed, &plan, &hosts);
    // The guests have shown more names.
    redaction::learn(&bed)?;
    redaction::learn(&hosts)?;
    judge(&of_bed(&bed, &plan, &hosts), &bed, &home, args.allow_disagreement)?;
    let plan =
        plan.with_interfaces_of(&bed).map_err(|faults| misfit(&path, &text, &faults))?.with_paths_of(&bed);
    redaction::learn_plan(&plan)?;
    if !output.quiet {
        announce(&plan, &bed);
    }
    let provider = provider::of(&plan, args.deallocate.allow_deallocate, home, output.quiet)?;
    let lab = announced_lab(&plan, output.quiet)?;
    let source = RunSource::New {
        plan_text: text,
        annotations: args.outcome.tags.annotations(&args.overrides.set),
        reports: output.reports(),
        bed: Some(Box::new(bed)),
    };
    execute(&plan, source, store, Around { lab, ssh, provider }, &output)
}

/// A VM that ssh does not reach, with what is special about beds.
fn unreached(error: NotPrepared, bed: &RunBed) -> Failure {
    match error {
        NotPrepared::Interrupted => stopped_before_trials(),
        NotPrepared::Failed { host, reason } => run_failure(RunError::NoLauncher { host, reason }).remedy(format!(
            "the bed {} accepts ssh with its public key from the prefixes of `ssh_from` only: `netduel azure up` with --ssh-from changes them",
            bed.name
        )),
    }
}

/// Shows what the guests contradict, and refuses to run when an arm depends on it.
fn judge(found: &[BedFinding], bed: &RunBed, home: &Home, is_allowed: bool) -> Result<(), Failure> {
    for BedFinding { vm, finding, .. } in
        found.iter().filter(|found| found.finding.severity <= Severity::Warning)
    {
        tell(&format!("{} at {vm}: {}", finding.severity.word(), finding.what));
        tell(&format!("  {}", finding.evidence.join("; ")));
        let command = finding.command.as_ref().map(|command| format!(": {}", home.command(command)));
        tell(&format!("  remedy: {}{}", finding.remedy, command.unwrap_or_default()));
    }
    let contradicts_arm = |one: &&BedFinding| one.is_of_arm && one.finding.severity == Severity::Problem;
    let contradictions: Vec<String> =
        found.iter().filter(contradicts_arm).map(|one| format!("{}: {}", one.vm, one.finding.what)).collect();
    if contradictions.is_empty() || is_allowed {
        return Ok(());
    }
    let text = format!(
        "the guests of the bed {} contradict what Azure claims: {}",
        bed.name,
        contradictions.join("; ")
    );
    Err(Failure::message(Kind::Bed, text)
        .remedy("correct it as shown above, or run the plan as it is with --allow-disagreement: the report then has a warning"))
}

/// Which NICs carry the traffic of each arm, and what must carry its bytes.
fn announce(plan: &ResolvedPlan, bed: &RunBed) {
    for arm in &plan.arms {
        let Some(network) = arm.network else { continue };
        let required = crate::plan::required_path(arm).unwrap_or_else(|| "no proof of path".to_owned());
        let addresses: Vec<String> = arm.server_addresses.iter().map(ToString::to_string).collect();
        tell(&format!(
            "arm {}: network {network} of the bed {}, server {}; {required}",
            arm.name,
            bed.name,
            addresses.join(", ")
        ));
    }
}
