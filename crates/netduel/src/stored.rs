//! `netduel report` and `netduel runs`: the content of the store. Nothing is measured here.
use std::io::IsTerminal as _;
use std::path::Path;

use netduel_model::ids::RunId;
use netduel_model::run::{Annotations, Run, RunEnd, RunHeader};
use netduel_model::units::{human_si, plural};
use netduel_report::analysis::Analysis;
use netduel_report::checks::Checks;
use netduel_report::document::verdicts::Sides;
use netduel_report::html::Paper;
use netduel_report::json::envelope::{Document as _, iso_8601};
use netduel_report::json::listing::{self, Note, RemovedRuns, RunState, RunsDocument, StoredRun};
use netduel_report::json::report::ReportDocument;
use netduel_report::{baseline, document, words};
use netduel_store::format::FORMAT;
use netduel_store::{RunSummary, Store};

use crate::cli::publication::PrintingArgs;
use crate::cli::shared::named_place;
use crate::cli::stored::{Format, ReportArgs, RunsAction, RunsArgs};
use crate::confirmation::confirmed;
use crate::console::{json, print, print_json, print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::gate;
use crate::pipeline;
use crate::program;
use crate::publication;
use crate::redaction;
use crate::report_file::{
    Destination, check_printing, conclude, destinations, formats, print_text, refuse_files_as_text,
    refuse_page_on_a_terminal, render, write, write_and_print,
};
use crate::run_changes;
use crate::run_store::{NextStep, command_of, note_run, open_store, store_failure};
use crate::shown_runs::{ShownRuns, learn, number, number_file, numbered, without_trials};

/// `netduel report`.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let format = args.output.format(args.format);
    let destinations = destinations(args.output.places(), format, |_| true, &args.printing)?;
    check_printing(!destinations.is_empty(), &args.printing, "report.pdf")?;
    let store = open_store(&args.store)?;
    if destinations.is_empty() {
        let command = command_of(&["report", &args.run]);
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &command)?;
        refuse_files_as_text(format, &command)?;
    }
    note_run(&store, &args.run);
    let mut run = store.read(&args.run).map_err(store_failure)?;
    // The author of this command line takes the place of the stored one, whose name may be in the run's texts.
    redaction::learn_run(&run)?;
    // Before an error names arms: two of them may differ in the upper and lower case of a host only.
    redaction::learn_plan(&run.header.plan)?;
    gate::check(&args.gate, &run.header.plan, Sides::Arms)?;
    let own = publication::of_options(&args.publication, args.title.as_ref())?;
    run.header.annotations.publication = own.over(&run.header.annotations.publication);
    publication::tell_adjustments(&own);
    // Conditions name arms and workloads as the user does.
    let judged = netduel_report::analyse_run(&run);
    let command = report_command(&store, &args.run);
    let decided = if args.gate.fail_if.is_empty() {
        Ok(None)
    } else {
        gate::of_run(&args.gate, &run, &judged, &command)
    };
    let plan = run.header.plan.clone();
    let mut run = redaction::run(run)?;
    if redaction::is_on() {
        // What this command line says of the author is meant to be shown.
        run.header.annotations.publication = own.over(&run.header.annotations.publication);
    }
    let analysis = if redaction::is_on() { netduel_report::analyse_run(&run) } else { judged };
    let gate = gate::shown(&args.gate, [&plan, &run.header.plan]);
    let checks = Checks::of_run(&run, &analysis, gate.rules());
    let checks = Checks { command: redaction::text(&command), ..checks };
    let shown = formats(&destinations, format);
    if shown.iter().any(|format| !format.is_document()) {
        for warning in analysis.warnings.iter().filter(|warning| warning.leaves_trials_out()) {
            tell(&format!("warning: {warning}"));
        }
    }
    if shown.contains(&Format::Github) {
        pipeline::summarize(&checks, &document::of_run(&run, &analysis), decided.as_ref());
    }
    let written = if destinations.is_empty() {
        print_report(args, &store, (&run, &analysis, &checks), format.unwrap_or(Format::Text))
    } else {
        write_and_print(&destinations, |destination| write(&run, &analysis, &checks, destination))
    };
    conclude(decided.map(|line| line.iter().for_each(|line| tell(line))), written)
}

/// The command that prints the report of a run, also when another run is the last one, or of a file outside of the store.
fn report_command(store: &Store, name: &str) -> String {
    match store.id_of(name) {
        Ok(id) => command_of(&["report", id.as_str()]),
        Err(_) => command_of(&["report", name]),
    }
}

/// Prints a report on standard output.
fn print_report(
    args: &ReportArgs,
    store: &Store,
    (run, analysis, checks): (&Run, &Analysis, &Checks),
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Json {
        return print_json(&ReportDocument::of(run, analysis, &program::origin()));
    }
    let text = render(run, analysis, checks, (format, Paper::default()))?;
    print_text(&text, format)?;
    if format == Format::Text {
        // A file outside of the store is not being written by a run.
        let own = store.id_of(&args.run).ok();
        let in_use = own.as_ref().is_some_and(|id| store.is_in_use(id));
        let header = RunHeader { id: own.unwrap_or_else(|| run.header.id.clone()), ..run.header.clone() };
        let hint = hint(state(run.end.as_ref(), in_use), &NextStep::of(&header));
        print_lines(&redaction::text(&hint))?;
    }
    Ok(())
}

/// `netduel runs baseline`.
fn baseline(store: &Store, name: &str, out: Option<&Path>) -> Result<(), Failure> {
    let out = named_place(out);
    out.map_or(Ok(()), refuse_another_format)?;
    note_run(store, name);
    let run = redaction::run(store.read(name).map_err(store_failure)?)?;
    let analysis = netduel_report::analyse_run(&run);
    let document = baseline::document(&run, &analysis, FORMAT, &program::origin(), redaction::is_on());
    let Some(out) = out else { return print_json(&document) };
    Destination { path: out.to_owned(), format: Format::Json, printing: PrintingArgs::default() }
        .write(&json(&document)?)?;
    print(&redaction::text(&format!("{}\n", out.display())))
}

/// A baseline is JSON: a file with the extension of another format would not be what its name says.
fn refuse_another_format(out: &Path) -> Result<(), Failure> {
    let named = out.extension().and_then(|extension| Format::of_extension(extension.to_str()?));
    let Some(other) = named.filter(|format| *format != Format::Json) else { return Ok(()) };
    let text = format!("failed to write a baseline as .{}: it has no such format", other.extension());
    Err(Failure::message(Kind::Usage, text).remedy("use .json"))
}

/// `netduel runs`.
pub fn runs(args: &RunsArgs) -> Result<(), Failure> {
    redaction::begin(args.action.as_ref().map_or(args.redact.redact, RunsAction::is_redacted));
    match &args.action {
        Some(RunsAction::Rm { runs, confirmation, json, store, .. }) => {
            return remove(&open_store(store)?, runs, confirmation.yes, json.json);
        }
        Some(RunsAction::Baseline { run, out, store, .. }) => {
            return baseline(&open_store(store)?, run, out.as_deref());
        }
        Some(action) => return run_changes::command(action),
        None => {}
    }
    let store = open_store(&args.store)?;
    let mut runs = store.list().kind(Kind::Store)?;
    let folder = store.folder().display();
    let usage = runs.iter().filter_map(|run| store.usage(&run.id).ok());
    let bytes = usage.map(|usage| usage.disk_bytes).fold(0, u64::saturating_add);
    if redaction::is_on() {
        // A name has one pseudonym in all runs, and is known before the first of them is shown.
        learn(&runs)?;
        runs.iter_mut().for_each(number_unread);
    }
    if args.json.json {
        let envelope = RunsDocument::envelope(&program::origin());
        let runs = runs.iter().map(stored_run).collect::<Result<_, Failure>>()?;
        return print_json(&RunsDocument { envelope, runs });
    }
    if runs.is_empty() {
        let text = format!("no run is stored in {folder}; make one with `netduel demo`\n");
        return print(&redaction::text(&text));
    }
    let lines: Vec<String> = runs.iter().map(lines).collect();
    let text = format!("{}Folder: {folder} ({})\n", lines.concat(), human_si(bytes as f64, "B"));
    print_lines(&redaction::text(&text))
}

/// Puts the number of a run file that cannot be read in place of its name.
fn number_unread(run: &mut RunSummary) {
    let Err(error) = &mut run.contents else { return };
    number_file(error);
    let name = number(&run.path);
    run.path = numbered(&run.path, &name);
    // It is a name like any other.
    if let Ok(id) = RunId::new(name) {
        run.id = id;
    }
}

/// `netduel runs rm`: all names are resolved before the first run is deleted.
fn remove(store: &Store, names: &[String], yes: bool, json: bool) -> Result<(), Failure> {
    let shown = ShownRuns::of(store)?;
    let mut ids = Vec::new();
    for name in names {
        note_run(store, name);
        let id = store.id_of(name).map_err(store_failure)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if !yes && !is_confirmed(&ids, &shown)? {
        return if json { print_removed(&[]) } else { print("nothing was deleted\n") };
    }
    let mut removed = Vec::new();
    let mut result = Ok(());
    for id in &ids {
        result = store.remove(id.as_str()).map(drop).map_err(store_failure);
        if result.is_err() {
            break;
        }
        let name = shown.name(id);
        if !json {
            print(&format!("deleted {name}\n"))?;
        }
        removed.push(name);
    }
    // Without a deleted run the error is the document.
    if json && !removed.is_empty() {
        print_removed(&removed)?;
    }
    result
}

fn print_removed(removed: &[String]) -> Result<(), Failure> {
    print_json(&RemovedRuns {
        envelope: RemovedRuns::envelope(&program::origin()),
        removed: removed.to_vec(),
    })
}

/// Asks whether these runs are to be deleted.
fn is_confirmed(ids: &[RunId], shown: &ShownRuns) -> Result<bool, Failure> {
    let names: Vec<String> = ids.iter().map(|id| shown.name(id)).collect();
    confirmed("netduel runs rm", &format!("Delete {} permanently?", names.join(", ")))
}

/// Whether a run is finished, and whether it can be resumed.
fn state(end: Option<&RunEnd>, in_use: bool) -> RunState {
    match end {
        _ if in_use => RunState::Running,
        Some(RunEnd::PrecisionReached | RunEnd::BlockLimitReached | RunEnd::BudgetReached) => RunState::Done,
        Some(RunEnd::Interrupted) | None => RunState::Stopped,
        Some(RunEnd::Failed { .. }) => RunState::Failed,
    }
}

/// The possible next command for a run, on its own line.
fn hint(state: RunState, next: &NextStep) -> String {
    match state {
        RunState::Running => "This run is still running.\n".to_owned(),
        RunState::Done => String::new(),
        RunState::Stopped | RunState::Failed => format!("{}\n", next.line()),
    }
}

/// A run in the listing for scripts.
fn stored_run(run: &RunSummary) -> Result<StoredRun, Failure> {
    let contents = run.contents.as_ref().ok();
    let seen = contents.map(|contents| redaction::run(without_trials(contents))).transpose()?;
    let header = seen.as_ref().map(|run| &run.header);
    let annotations = header.map(|header| header.annotations.clone()).unwrap_or_default();
    Ok(StoredRun {
        id: redaction::text(run.id.as_str()),
        copy_of: run.copy_of.as_ref().map(|original| redaction::text(original.as_str())),
        path: redaction::text(&run.path.display().to_string()),
        error: run.contents.as_ref().err().map(|error| redaction::text(&error.to_string())),
        question: header.map(|header| header.plan.question.clone()),
        title: annotations.title,
        notes: Note::all(&annotations.notes),
        overrides: annotations.overrides,
        started: header.map(|header| iso_8601(header.started_unix_ms)),
        started_unix_ms: header.map(|header| header.started_unix_ms),
        trials: contents.map(|contents| contents.trials),
        state: contents.map(|contents| state(contents.end.as_ref(), contents.in_use)),
        end: seen.as_ref().and_then(|run| run.end.as_ref()).map(listing::RunEnd::of),
        torn: contents.map(|contents| contents.torn.is_some()),
        damaged_records: contents.map(|contents| contents.damaged),
    })
}

/// A run in the listing for people: a line with name, trials and state; below it title and notes, and the next command.
fn lines(run: &RunSummary) -> String {
    let contents = match &run.contents {
        Ok(contents) => contents,
        // The error quotes the file, whose line break must not look like another run.
        Err(error) => return format!("{}\n    unreadable: {}\n", run.id, words::plain(&error.to_string())),
    };
    let state = state(contents.end.as_ref(), contents.in_use);
    let trials = plural(contents.trials, "trial");
    let copy = run.copy_of.as_ref().map(|original| format!(", copy of {original}")).unwrap_or_default();
    let head = format!("{:<40}  {trials:>12}  {}{copy}", run.id, state.word());
    let Annotations { title, notes, .. } = &contents.header.annotations;
    let title = title.as_ref().unwrap_or(&contents.header.plan.question).clone();
    let notes = notes.iter().map(|(key, value)| format!("{key}={value}"));
    // Another person may have written the run file, and so the title.
    let about = words::plain(&std::iter::once(title).chain(notes).collect::<Vec<_>>().join("  "));
    let next = hint(state, &NextStep::of(&contents.header));
    let next =
        if next.is_empty() || state == RunState::Running { String::new() } else { format!("    {next}") };
    let damage = match contents.damaged {
        0 => String::new(),
        1 => "    1 record is damaged and left out: netduel runs verify\n".to_owned(),
        records => format!("    {records} records are damaged and left out: netduel runs verify\n"),
    };
    let future = if contents.starts_in_future {
        let date = words::date(contents.header.started_unix_ms);
        format!("    its start, {date}, is in the future: it is not `last`\n")
    } else {
        String::new()
    };
    // The last record of a run in progress may be written now.
    let torn = match contents.torn.filter(|_| !contents.in_use) {
        Some(_) => "    the last record is incomplete and left out\n",
        None => "",
    };
    format!("{head}\n    {about}\n{future}{damage}{torn}{next}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_runs_can_be_resumed() {
        let failed = RunEnd::Failed { detail: "x".to_owned() };
        for (end, in_use, expected, resumable) in [
            (None, true, RunState::Running, false),
            // A resumed run has the end of its first part until its file records the continuation.
            (Some(&RunEnd::Interrupted), true, RunState::Running, false),
            (None, false, RunState::Stopped, true),
            (Some(&RunEnd::Interrupted), false, RunState::Stopped, true),
            (Some(&failed), false, RunState::Failed, true),
            (Some(&RunEnd::BlockLimitReached), false, RunState::Done, false),
        ] {
            assert_eq!(state(end, in_use), expected);
            let next = NextStep::Resume("netduel run --resume x".to_owned());
            assert_eq!(hint(expected, &next).contains("--resume"), resumable, "{expected:?}");
        }
    }
}
