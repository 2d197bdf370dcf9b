//! `netduel run`: runs a plan from a file, or resumes a stored run.
mod estimate;
mod lines;
mod outcome;
mod path_events;
mod progress;
mod surroundings;

use std::path::Path;

use netduel_lab::Lab;
use netduel_model::plan::{self, ResolvedPlan};
use netduel_store::Store;

use crate::cli::run::RunArgs;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::report_file::Destination;
use crate::run_store::{open_store, store_failure};

use outcome::finish;
pub use outcome::{Output, run_failure};
use progress::Progress;
pub use surroundings::{PlanPolicy, RunSource, System, SystemClock, agent_argv, build_lab, host_problems};

/// Runs the command.
pub fn command(args: &RunArgs) -> Result<(), Failure> {
    let store = open_store(&args.outcome.store)?;
    let out = args.out.as_ref().map(|out| Destination::of(out, None)).transpose()?;
    let output = Output {
        out,
        json: args.outcome.json.json,
        quiet: args.outcome.quiet.quiet,
        verbose: args.outcome.verbose,
    };
    if let Some(name) = &args.resume {
        let id = store.read(name).map_err(store_failure)?.header.id;
        // The run is locked before any host is started: another process may be writing it.
        let (run, writer) = store.resume(&id).map_err(store_failure)?;
        let plan = run.header.plan.clone();
        let lab = build_lab(&plan)?;
        return execute(&plan, RunSource::Resumed(Box::new((run, writer))), store, lab, &output);
    }
    let path = args.plan.as_deref().ok_or_else(|| Failure::message(Kind::Usage, "no plan was named"))?;
    let (text, mut plan) = read_plan_with(path, &args.set)?;
    if args.aa {
        plan = plan.into_aa();
    }
    if args.seed.is_some() {
        plan.design.seed = args.seed;
    }
    crate::plan::warn_of_few_blocks(&plan);
    let lab = build_lab(&plan)?;
    let source = RunSource::New { plan_text: text, annotations: args.outcome.tags.annotations(&args.set) };
    execute(&plan, source, store, lab, &output)
}

/// Reads and checks a plan.
pub fn read_plan(path: &Path) -> Result<(String, ResolvedPlan), Failure> {
    read_plan_with(path, &[])
}

/// Reads and checks a plan with overrides, each KEY=VALUE or WORKLOAD.KEY=VALUE.
fn read_plan_with(path: &Path, overrides: &[String]) -> Result<(String, ResolvedPlan), Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let text = format!("failed to read the plan {}: {error}", path.display());
        Failure::caused(Kind::Usage, text, error)
    })?;
    let plan = plan::parse_with(&text, &path.display().to_string(), overrides).kind(Kind::Usage)?;
    Ok((text, plan))
}

/// Runs the plan in its lab to its end, removes the lab and reports the run.
pub fn execute(
    plan: &ResolvedPlan,
    source: RunSource,
    store: Store,
    lab: Option<Lab>,
    output: &Output,
) -> Result<(), Failure> {
    let mut progress = Progress::new(plan, source.earlier_trials(), output.quiet);
    let system = System::new(plan, source, store, lab)?;
    let (result, closed) = system.run(&mut PlanPolicy(plan), |event| progress.event(event));
    progress.close();
    drop(closed.lab);
    finish(result, &closed.store, closed.id.as_ref(), output)
}
