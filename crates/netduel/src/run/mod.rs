//! `netduel run`: a plan from a file, or a stored run that goes on.
mod outcome;
mod path_events;
mod progress;
mod surroundings;

use std::io::Write as _;
use std::path::Path;

use netduel_control::coordinator;
use netduel_lab::Lab;
use netduel_model::ids::RunId;
use netduel_model::plan::{self, ResolvedPlan};
use netduel_store::{Store, StoreError};

use crate::cli::{RunArgs, StoreArgs};
use crate::exit::{Failure, Kind, OrFail as _};

use outcome::finish;
pub use outcome::{page_layout, run_failure, table, write_whole};
use progress::Progress;
pub use surroundings::{RunSource, System, agent_argv, build_lab, keeper_command};

/// Where and how a run reports.
pub struct Output<'a> {
    /// Folder for report.html.
    pub folder: Option<&'a Path>,
    /// One JSON document on standard output.
    pub json: bool,
}

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<(), Failure> {
    let store = open_store(&args.store)?;
    let output = Output { folder: args.out.as_deref(), json: args.json };
    if let Some(name) = &args.resume {
        let id = store.read(name).map_err(store_failure)?.header.id;
        // The run is taken before any host is started: another process may be writing it.
        let (run, writer) = store.resume(&id).map_err(store_failure)?;
        let plan = run.header.plan.clone();
        let lab = build_lab(&plan)?;
        return execute(&plan, RunSource::Resumed(Box::new((run, writer))), store, lab, &output);
    }
    let path = args.plan.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "no plan was named"))?;
    let (text, mut plan) = read_plan(path)?;
    if args.aa {
        plan = plan.into_aa();
    }
    if args.seed.is_some() {
        plan.design.seed = args.seed;
    }
    crate::plan::warn_of_few_blocks(&plan);
    let lab = build_lab(&plan)?;
    execute(&plan, RunSource::New { plan_text: text }, store, lab, &output)
}

/// Reads and checks a plan.
pub fn read_plan(path: &Path) -> Result<(String, ResolvedPlan), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::message(Kind::Usage, format!("failed to read the plan {}: {error}", path.display()))
    })?;
    let plan = plan::parse(&text, &path.display().to_string()).kind(Kind::Usage)?;
    Ok((text, plan))
}

/// A store's error with its exit code: a name that fits no run is the caller's mistake, not the store's.
pub fn store_failure(error: StoreError) -> Failure {
    let kind = match &error {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => Kind::Usage,
        _ => Kind::Store,
    };
    Failure::new(kind, error)
}

/// Opens the store that the words name, or the user's.
pub fn open_store(args: &StoreArgs) -> Result<Store, Failure> {
    let folder = args.store.clone().or_else(|| Store::default_dir(|name| std::env::var_os(name))).ok_or_else(|| {
        Failure::message(
            Kind::Usage,
            "failed to choose a folder for the store: neither XDG_DATA_HOME nor HOME is set; name one with --store DIR",
        )
    })?;
    Store::open(&folder).kind(Kind::Store)
}

/// Runs a plan in its lab to its end, takes the lab down and reports the run.
pub fn execute(
    plan: &ResolvedPlan,
    source: RunSource,
    store: Store,
    lab: Option<Lab>,
    output: &Output<'_>,
) -> Result<(), Failure> {
    let mut progress = Progress::new(plan);
    let mut system = System::new(plan, source, store, lab, |event| progress.event(event))?;
    let result = coordinator::run(plan, &mut system);
    let closed = system.close();
    progress.close();
    drop(closed.lab);
    finish(result, &closed.store, closed.id.as_ref(), output)
}

/// Prints a text on standard output; a reader that has gone (`| head`) is not an error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::message(Kind::Environment, format!("failed to write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// The command that goes on with a run.
pub fn resume_hint(id: &RunId) -> String {
    format!("netduel run --resume {id}")
}
