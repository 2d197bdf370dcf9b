//! `netduel run`: runs a plan from a file, or resumes a stored run.
mod estimate;
mod lines;
mod live;
mod outcome;
mod path_events;
mod progress;
mod rate;
mod surroundings;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use netduel_control::coordinator::Provider;
use netduel_lab::Lab;
use netduel_model::plan::{self, Permissions, ResolvedPlan, TEXT_LEN_MAX, TreatmentAction};
use netduel_model::run::{Annotations, RunHeader};
use netduel_report::document::verdicts::Sides;
use netduel_report::words;
use netduel_store::{RunWriter, Store, StoreError};

use crate::azure::{refuse_vms, resumed};
use crate::cli::run::RunArgs;
use crate::console::tell;
use crate::exit::{Failure, Kind, OrFail as _, no_thread, unread};
use crate::gate;
use crate::input_file;
use crate::kept_files;
use crate::provider::{self, Home};
use crate::publication;
use crate::redaction;
use crate::report_file::{Destination, check_printing, destinations};
use crate::run_store::{NextStep, command_of, note_run, open_store, store_failure, writable_store};
use crate::signal;
use crate::ssh::SshHosts;

pub use live::Live;
pub use outcome::{Output, run_failure, stopped_before_trials};
use outcome::{Unchanged, finish};
use progress::{Display, Progress};
pub use surroundings::{
    PlanPolicy, RunSource, System, SystemClock, agent_argv, build_lab, host_problems, remove_lab, ssh_hosts,
};

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<(), Failure> {
    redaction::begin(args.outcome.redact.redact);
    let permissions = args.permissions.permissions();
    let store = match &args.resume {
        // A store without the run is not created.
        Some(_) => open_store(&args.outcome.store)?,
        None => writable_store(&args.outcome.store)?,
    };
    let out = destinations(args.out.iter().map(PathBuf::as_path), None, |_| true, &args.printing)?;
    check_printing(!out.is_empty() || args.resume.is_some(), &args.printing, "report.pdf")?;
    let mut output = Output {
        out,
        json: args.outcome.json.json,
        quiet: args.outcome.quiet.quiet,
        live: args.outcome.live,
        verbose: args.outcome.verbose,
        gate: args.gate.clone(),
        publication: publication::of_options(&args.publication, None)?,
    };
    let remote = &args.remote_program;
    let ssh = SshHosts::new(&remote.remote_program, remote.remote_folder.as_deref(), output.quiet);
    let provider = |plan: &ResolvedPlan, home: Home| {
        let is_quiet = args.outcome.quiet.quiet;
        provider::of(plan, args.deallocate.allow_deallocate, home, is_quiet)
    };
    if let Some(name) = &args.resume {
        note_run(&store, name);
        let id = store.id_of(name).map_err(|error| not_resumed(name, error))?;
        // A refused run stays as it is.
        let header = store.header(&id).map_err(store_failure)?;
        redaction::learn(&header)?;
        check_printing(!output.out.is_empty() || header.report.is_some(), &args.printing, "report.pdf")?;
        refuse_quick_test(&header)?;
        refuse_stored_plan(&header, permissions)?;
        gate::check(&output.gate, &header.plan, Sides::Arms)?;
        store.check_writable().kind(Kind::Store)?;
        let home = resumed::home(&header)?;
        // The run is locked before any host is started: another process may be writing it.
        let (run, writer) = store.resume(&id).map_err(store_failure)?;
        refuse_changed(&header, &run.header)?;
        if output.out.is_empty() {
            output.out = stored_reports(&run.header, &writer, args)?;
        }
        output.check()?;
        redaction::learn_run(&run)?;
        if !output.quiet {
            tell(&resumed_line(&run.header));
        }
        let plan = run.header.plan.clone();
        let provider = provider(&plan, home)?;
        let lab = announced_lab(&plan, output.quiet).map_err(|error| Unchanged::of(&run).explain(error))?;
        let source = RunSource::Resumed(Box::new((run, writer)));
        return execute(&plan, source, store, Around { lab, ssh, provider }, &output);
    }
    let path = args.plan.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "no plan was named"))?;
    let (text, plan) = new_plan(path, args, permissions)?;
    gate::check(&output.gate, &plan, Sides::Arms)?;
    let own = publication::of_run(&output.publication, &plan, (&text, path))?;
    output.check()?;
    let provider = provider(&plan, Home::default())?;
    let annotations = args.outcome.tags.annotations(&args.overrides.set);
    crate::plan::warn_of_few_blocks(&plan);
    let lab = announced_lab(&plan, output.quiet)?;
    let source = RunSource::New {
        plan_text: text,
        annotations: Annotations { publication: own, ..annotations },
        reports: output.reports(),
        bed: None,
    };
    execute(&plan, source, store, Around { lab, ssh, provider }, &output)
}

/// The plan of a new run, with the options that change it.
fn new_plan(
    path: &Path,
    args: &RunArgs,
    permissions: Permissions,
) -> Result<(String, ResolvedPlan), Failure> {
    let (text, mut plan) = read_plan(path, &args.overrides.set, permissions)?;
    if args.aa {
        plan = plan.into_aa();
    }
    if args.seed.is_some() {
        plan.design.seed = args.seed;
    }
    redaction::learn_plan(&plan)?;
    refuse_vms(path, &plan)?;
    Ok((text, plan))
}

/// The report files of a run that is resumed without `--out`. The file of the run names them: an imported one has none, and that of another user
/// is not obeyed.
fn stored_reports(
    header: &RunHeader,
    writer: &RunWriter,
    args: &RunArgs,
) -> Result<Vec<Destination>, Failure> {
    let files: Vec<&str> = header.report_files().collect();
    if files.is_empty() {
        return Ok(Vec::new());
    }
    if !writer.is_of_this_user().kind(Kind::Store)? {
        let text = format!(
            "failed to resume {}: its file belongs to another user, and names the files of its reports",
            header.id
        );
        return Err(Failure::message(Kind::Usage, text)
            .remedy("name the files yourself, for example --out report.html"));
    }
    if !args.outcome.quiet.quiet {
        tell(&format!("reports: the run writes {} again", files.join(", ")));
    }
    destinations(files.into_iter().map(Path::new), None, |_| true, &args.printing)
}

/// The name of a run to resume is not one of the store: it may be that of a file, as in reports.
fn not_resumed(name: &str, error: StoreError) -> Failure {
    if matches!(error, StoreError::NotFound { .. }) && Path::new(name).is_file() {
        let text = format!("failed to resume {name}: it is a file, and a run is resumed in the store");
        let command = command_of(&["runs", "import", name]);
        return Failure::message(Kind::NoSuchRun, text).remedy(format!("import it first: {command}"));
    }
    store_failure(error)
}

/// What a run has around it on this machine.
pub struct Around {
    /// The lab of the plan.
    pub lab: Option<Lab>,
    /// Hosts that are reached by ssh.
    pub ssh: SshHosts,
    /// The provider of the hosts' machines.
    pub provider: Box<dyn Provider>,
}

/// Builds the plan's lab, if it has one, and tells what was built.
pub fn announced_lab(plan: &ResolvedPlan, quiet: bool) -> Result<Option<Lab>, Failure> {
    let started_ns = netduel_sys::clock::monotonic_ns();
    let lab = build_lab(plan)?;
    if lab.is_some() && !quiet {
        let built_s = (netduel_sys::clock::monotonic_ns() - started_ns) as f64 / 1e9;
        tell(&lab_line(plan, built_s));
    }
    Ok(lab)
}

/// The paths of the lab that the arms use.
fn lab_line(plan: &ResolvedPlan, built_s: f64) -> String {
    let mut paths: Vec<&str> = Vec::new();
    for treatment in plan.arms.iter().flat_map(|arm| &arm.treatments) {
        if let TreatmentAction::Path { path } = &treatment.action {
            let word = path.word();
            if !paths.contains(&word) {
                paths.push(word);
            }
        }
    }
    let paths = match paths.as_slice() {
        [] => String::new(),
        [one] => format!(", with the path {one} between them"),
        [rest @ .., last] => format!(", with the paths {} and {last} between them", rest.join(", ")),
    };
    format!("lab: guests a and b are up{paths} ({built_s:.1} s)")
}

/// A quick test has one trial and keeps its options, such as -B, in its command line only.
fn refuse_quick_test(header: &RunHeader) -> Result<(), Failure> {
    match NextStep::of(header) {
        NextStep::Resume(_) => Ok(()),
        NextStep::Repeat(command) => Err(Failure::message(
            Kind::Usage,
            format!("failed to resume {}: a quick test has one trial", header.id),
        )
        .remedy(format!("repeat it with `{command}`"))),
    }
}

/// Refuses a stored plan that does what is not permitted, or has what no plan file may have: the run file may be from elsewhere.
fn refuse_stored_plan(header: &RunHeader, permissions: Permissions) -> Result<(), Failure> {
    if let Some(wrong) = header.plan.misplaced_word() {
        let text = format!("failed to resume {}: {wrong}", header.id);
        let remedy = "no plan file may have this, so the run file was changed; run a plan that you have read";
        return Err(Failure::message(Kind::Usage, text).remedy(remedy));
    }
    let Some((host, forbidden)) = permissions.refuse(&header.plan) else { return Ok(()) };
    let text = format!("failed to resume {}: its plan {} (host {host})", header.id, forbidden.wrong);
    Err(Failure::message(Kind::Usage, text).remedy(forbidden.allowed))
}

/// Refuses a run whose file was changed between its two readings: what runs is what was judged.
fn refuse_changed(judged: &RunHeader, run: &RunHeader) -> Result<(), Failure> {
    if judged == run {
        return Ok(());
    }
    let text = format!("failed to resume {}: another program changed its file at the same time", judged.id);
    Err(Failure::message(Kind::Store, text)
        .remedy("repeat the command when no other program changes the run"))
}

/// Which run is resumed, and its plan: `last` and the beginning of a name do not show it. Another person may have written the run file.
fn resumed_line(header: &RunHeader) -> String {
    let ResolvedPlan { name, question, .. } = &header.plan;
    let date = words::date(header.started_unix_ms);
    words::plain(&format!("resuming the run {} of {date}: plan {name}, {question}", header.id))
}

/// Reads and checks a plan with overrides, each KEY=VALUE or WORKLOAD.KEY=VALUE.
pub fn read_plan(
    path: &Path,
    overrides: &[String],
    permissions: Permissions,
) -> Result<(String, ResolvedPlan), Failure> {
    let opened = path.to_owned();
    // A device may have no end, and a pipe may never have a writer.
    let read = signal::unless_interrupted(move || {
        let mut bytes = Vec::new();
        input_file::open_any(&opened)?.take(TEXT_LEN_MAX.0 + 1).read_to_end(&mut bytes).map(|_| bytes)
    });
    let read = read.map_err(|error| no_thread("read the plan", error))?.ok_or_else(stopped_before_trials)?;
    if read.as_ref().is_ok_and(|bytes| bytes.len() as u64 > TEXT_LEN_MAX.0) {
        return Err(Failure::message(
            Kind::Usage,
            format!("failed to read the plan {}: it is longer than {TEXT_LEN_MAX}", path.display()),
        )
        .remedy("name a plan, a TOML file"));
    }
    kept_files::note_input(path);
    let text = read.and_then(input_file::text_of).map_err(|error| {
        let doing = format!("read the plan {}", path.display());
        unread(Kind::Usage, doing, error, "name another plan, a TOML file")
    })?;
    let plan = plan::parse_with(&text, &path.display().to_string(), overrides, permissions);
    let plan = plan.map_err(|errors| {
        redaction::learn_plan_text(&text);
        let message = format!("{errors}\n{}; nothing was run", errors.count());
        Failure::caused(Kind::Usage, message, errors)
    })?;
    Ok((text, plan))
}

/// Runs the plan in its lab to its end, removes the lab and reports the run.
pub fn execute(
    plan: &ResolvedPlan,
    source: RunSource,
    store: Store,
    around: Around,
    output: &Output,
) -> Result<(), Failure> {
    let earlier = source.earlier_trials();
    let mut system = System::new(plan, source, store, around.lab)?;
    system.ssh = around.ssh;
    system.provider = around.provider;
    let live = Live::open(output.live, output.quiet, plan, &earlier);
    let display = if live.is_some() { Display::Elsewhere } else { Display::of_stderr(output.quiet) };
    let mut progress = Progress::new(plan, earlier, output.quiet, display);
    let mut policy = PlanPolicy { plan, controls: live.as_ref().map(Live::controls).unwrap_or_default() };
    let (result, closed) = system.run(&mut policy, |event| {
        progress.event(event);
        if let Some(live) = &live {
            live.event(event);
        }
    });
    progress.close();
    if let Some(live) = live {
        live.close();
    }
    // The results first: nothing of them depends on the end of the lab.
    let finished = finish(result, &closed, output);
    remove_lab(closed.lab);
    finished
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> RunHeader {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
        Store::at("/nonexistent").read(golden).expect("a run").header
    }

    #[test]
    fn run_whose_file_was_changed_after_it_was_judged_is_refused() {
        let judged = header();
        assert!(refuse_changed(&judged, &judged.clone()).is_ok());
        let mut changed = judged.clone();
        changed.plan.arms.truncate(1);
        let refused = refuse_changed(&judged, &changed).expect_err("another plan");
        assert_eq!(refused.kind, Kind::Store);
    }

    #[test]
    fn resumed_run_is_named_with_its_date_and_plan_in_one_line() {
        let mut header = header();
        header.plan.question = "faster?\n\u{1b}[2J".to_owned();
        let line = resumed_line(&header);
        let start =
            "resuming the run golden-20261121-104501-7f3a of 2026-11-21 10:45 UTC: plan golden, faster? ";
        assert!(line.starts_with(start) && !line.contains(char::is_control), "{line:?}");
    }
}
