//! Output of a finished run: verdicts, report, the command to continue, and the exit code.
use std::path::PathBuf;

use netduel_control::coordinator::RunError;
use netduel_model::ids::RunId;
use netduel_model::publication::Publication;
use netduel_model::run::{Run, RunEnd};
use netduel_report::analysis::Analysis;
use netduel_report::checks::Checks;
use netduel_report::document;
use netduel_report::json::report::ReportDocument;

use crate::cli::shared::{GateArgs, LiveArgs};
use crate::console::{print, print_json, print_lines, tell};
use crate::exit::{Failure, Kind};
use crate::gate;
use crate::pipeline;
use crate::program;
use crate::redaction;
use crate::report_file::{Destination, conclude, summary, text, write, write_each};
use crate::run::surroundings::Closed;
use crate::run_store::{command_of, for_store, resume_command};

/// Destinations and form of a run's output.
pub struct Output {
    /// The report files.
    pub out: Vec<Destination>,
    /// One JSON document on standard output.
    pub json: bool,
    /// No progress.
    pub quiet: bool,
    /// Whether the run is shown on the whole terminal.
    pub live: LiveArgs,
    /// The whole report on standard output, not only the verdicts.
    pub verbose: bool,
    /// Conditions under which the run fails.
    pub gate: GateArgs,
    /// What this command line says of the author, which `--redact` leaves as it is; the logo of a plan is no part of it.
    pub publication: Publication,
}

impl Output {
    /// Checks before the first trial that the reports can be written.
    pub fn check(&self) -> Result<(), Failure> {
        self.out.iter().try_for_each(Destination::check)
    }

    /// The report files, absolute paths.
    pub fn reports(&self) -> Vec<PathBuf> {
        self.out.iter().map(Destination::absolute).collect()
    }
}

/// Prints and writes all output of a finished run, and selects its exit code.
pub fn finish(result: Result<RunEnd, RunError>, closed: &Closed, output: &Output) -> Result<(), Failure> {
    let explain = |failure: Failure| match &closed.unchanged {
        Some(unchanged) => unchanged.explain(failure),
        None => failure,
    };
    let Some(id) = &closed.id else {
        return match result.map_err(|error| explain(run_failure(error)))? {
            RunEnd::Interrupted => Err(explain(stopped_before_trials())),
            _ => Ok(()),
        };
    };
    let run = match (closed.store.read(id.as_str()), &result) {
        (Ok(run), _) => run,
        // What ended the run, for example a removed store, says where its trials are.
        (Err(_), Err(_)) => return result.map(drop).map_err(run_failure),
        (Err(error), Ok(_)) => return Err(Failure::new(Kind::Store, error)),
    };
    let analysis = netduel_report::analyse_run(&run);
    let shown = if run.trials.is_empty() {
        tell("No trial was finished.");
        Ok(())
    } else {
        with_pseudonyms(&run, &analysis, output, |run, analysis, checks| show(run, analysis, checks, output))
    };
    let ended = match (result, &closed.unchanged) {
        (Ok(end), _) if end.is_regular() => judge(&run, &analysis, output),
        (Ok(RunEnd::Interrupted), Some(unchanged)) => {
            let text = "stopped by the user before a new trial was finished";
            Err(unchanged.explain(Failure::message(Kind::Interrupted, text)))
        }
        (Err(error), Some(unchanged)) => Err(unchanged.explain(run_failure(error))),
        (result, _) => Err(ended_early(result, &run)),
    };
    conclude(ended, shown)
}

/// Why a run is not complete, with the command that continues it.
fn ended_early(result: Result<RunEnd, RunError>, run: &Run) -> Failure {
    let id = &run.header.id;
    // The resumed run writes the same report, whose path is in the run.
    let resume = resume_command(id);
    match result {
        Ok(RunEnd::Failed { detail }) => Failure::message(Kind::Host, detail)
            .remedy(format!("correct the cause, then continue with `{resume}`")),
        Ok(_) => Failure::message(
            Kind::Interrupted,
            format!("stopped by the user: {} finished trials are kept", run.trials.len()),
        )
        .remedy(format!("continue with `{resume}`")),
        // The run may be complete.
        Err(error @ RunError::NotRestored { .. }) => run_failure(error).remedy(format!(
            "the trials before are kept; when the host is restored, complete the run with `{resume}`"
        )),
        Err(error) => {
            let failure = run_failure(error);
            let kept = if run.trials.is_empty() { "" } else { "finished trials are kept; " };
            Failure {
                error: failure.error.context(format!("the run {id} stopped; {kept}continue with `{resume}`")),
                ..failure
            }
        }
    }
}

/// A run that is resumed, as long as nothing is added to it.
#[derive(Debug, Clone)]
pub struct Unchanged {
    id: RunId,
    /// Whether it ended by a rule of its plan, so that its user need not continue it.
    is_over: bool,
}

impl Unchanged {
    /// The run as it is in the store.
    pub fn of(run: &Run) -> Self {
        let is_over = run.end.as_ref().is_some_and(RunEnd::is_regular);
        Self { id: run.header.id.clone(), is_over }
    }

    /// Why nothing was added to it.
    pub fn explain(&self, failure: Failure) -> Failure {
        let id = &self.id;
        let next =
            if self.is_over { String::new() } else { format!("; continue with `{}`", resume_command(id)) };
        let text = if failure.kind == Kind::Interrupted {
            format!("the run {id} is unchanged{next}")
        } else {
            format!("failed to resume the run {id}, which is unchanged{next}")
        };
        Failure { error: failure.error.context(text), ..failure }
    }
}

/// Whether a complete run passes: its conditions, and data in every comparison.
fn judge(run: &Run, analysis: &Analysis, output: &Output) -> Result<(), Failure> {
    let decided = gate::of_run(&output.gate, run, analysis, &report_command(run));
    with_pseudonyms(run, analysis, output, |run, analysis, checks| {
        pipeline::announce(checks, &document::of_run(run, analysis), decided.as_ref());
        Ok(())
    })?;
    if let Some(line) = decided? {
        tell(&line);
    }
    Ok(())
}

/// The command that prints the report of a stored run.
fn report_command(run: &Run) -> String {
    command_of(&["report", run.header.id.as_str()])
}

/// Shows the run, with pseudonyms when the user wants them. What decides about the exit code has its names.
fn with_pseudonyms(
    run: &Run,
    analysis: &Analysis,
    output: &Output,
    show: impl FnOnce(&Run, &Analysis, &Checks) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let command = redaction::text(&report_command(run));
    if !redaction::is_on() {
        let checks = Checks::of_run(run, analysis, output.gate.rules());
        return show(run, analysis, &Checks { command, ..checks });
    }
    let mut seen = redaction::run(run.clone())?;
    // What this command line says of the author is meant to be shown.
    seen.header.annotations.publication = output.publication.over(&seen.header.annotations.publication);
    let gate = gate::shown(&output.gate, [&run.header.plan, &seen.header.plan]);
    let analysis = netduel_report::analyse_run(&seen);
    let checks = Checks::of_run(&seen, &analysis, gate.rules());
    show(&seen, &analysis, &Checks { command, ..checks })
}

fn show(run: &Run, analysis: &Analysis, checks: &Checks, output: &Output) -> Result<(), Failure> {
    let printed = if output.json {
        print_json(&ReportDocument::of(run, analysis, &program::origin()))
    } else {
        print(&if output.verbose { text(run, analysis) } else { summary(run, analysis) })
    };
    // Also when the standard output is full.
    let (written, result) = write_each(&output.out, |destination| {
        write(run, analysis, checks, destination).map(|_| vec![destination.path.clone()])
    });
    let named = |file: &PathBuf| say(output.json, &format!("Report:  {}", file.display()));
    let printed = printed.and_then(|()| written.iter().try_for_each(named));
    result.map_err(|failure| {
        // The run is finished and stored: only its report is missing.
        let id = &run.header.id;
        failure.remedy(format!(
            "the run is stored; write its report elsewhere with `{}`",
            for_store(&format!("netduel report {id} --out PATH"))
        ))
    })?;
    printed?;
    say(output.json, &format!("Evidence, advice and details: {}", report_command(run)))
}

/// Standard output is reserved for the JSON document, if there is one.
fn say(json: bool, line: &str) -> Result<(), Failure> {
    if json {
        tell(line);
        return Ok(());
    }
    print_lines(&redaction::text(&format!("{line}\n")))
}

/// A signal came before the first trial.
pub fn stopped_before_trials() -> Failure {
    Failure::message(Kind::Interrupted, "stopped by the user before the first trial")
}

/// The exit code of a run that failed.
pub fn run_failure(error: RunError) -> Failure {
    Failure::new(error.kind().into(), error)
}
