//! `netduel report` and `netduel runs`: what is in the store. Nothing here measures.
use std::io::{IsTerminal as _, Write as _};

use netduel_model::run::{Annotations, RunEnd};
use netduel_store::{RunContents, RunSummary, Store};

use crate::cli::stored::{Format, ReportArgs, RunsAction, RunsArgs};
use crate::console::{print, print_json};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::report_file::{Destination, render};
use crate::run_store::{open_store, resume_hint, store_failure};

/// `netduel report`.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let format = if args.json { Some(Format::Json) } else { args.format };
    let destination = args.out.as_ref().map(|out| Destination::of(out, format)).transpose()?;
    if destination.is_none() {
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &args.run)?;
    }
    let store = open_store(&args.store)?;
    let run = store.read(&args.run).map_err(store_failure)?;
    let analysis = netduel_report::analyse_run(&run);
    if let Some(destination) = destination {
        destination.write(&render(&run, &analysis, destination.format)?)?;
        return print(&format!("{}\n", destination.path.display()));
    }
    let format = format.unwrap_or(Format::Text);
    print(&render(&run, &analysis, format)?)?;
    if format == Format::Text {
        // A file from elsewhere is written by no run of this store.
        let own = store.id_of(&args.run).ok();
        let in_use = own.as_ref().is_some_and(|id| store.is_in_use(id));
        let id = own.unwrap_or(run.header.id);
        print(&State::of(run.end.as_ref(), in_use).hint(&resume_hint(&id)))?;
    }
    Ok(())
}

/// A page of half a megabyte is unreadable on a terminal.
fn refuse_page_on_a_terminal(format: Option<Format>, is_terminal: bool, run: &str) -> Result<(), Failure> {
    if format == Some(Format::Html) && is_terminal {
        let text = format!(
            "an HTML page is not printed to a terminal; write it to a file: netduel report {run} --out report.html"
        );
        return Err(Failure::message(Kind::Usage, text));
    }
    Ok(())
}

/// `netduel runs`.
pub fn runs(args: &RunsArgs) -> Result<(), Failure> {
    if let Some(RunsAction::Rm { runs, yes, store }) = &args.action {
        return remove(&open_store(store)?, runs, *yes);
    }
    let runs = open_store(&args.store)?.list().kind(Kind::Store)?;
    if args.json.json {
        let documents: Vec<serde_json::Value> = runs.iter().map(document).collect();
        return print_json(&documents);
    }
    if runs.is_empty() {
        return print("no run is stored; make one with `netduel demo`\n");
    }
    let lines: Vec<String> = runs.iter().map(line).collect();
    print(&(lines.join("\n") + "\n"))
}

/// `netduel runs rm`: all names are resolved before the first run is deleted.
fn remove(store: &Store, names: &[String], yes: bool) -> Result<(), Failure> {
    let mut ids = Vec::new();
    for name in names {
        let id = store.id_of(name).map_err(store_failure)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if !yes && !confirmed(&ids)? {
        return print("nothing was deleted\n");
    }
    for id in &ids {
        store.remove(id.as_str()).map_err(store_failure)?;
        print(&format!("deleted {id}\n"))?;
    }
    Ok(())
}

/// Asks on the terminal; refuses without one.
fn confirmed(ids: &[netduel_model::ids::RunId]) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        let text = "netduel runs rm asks before it deletes, and standard input is not a terminal: add --yes";
        return Err(Failure::message(Kind::Usage, text));
    }
    let names: Vec<&str> = ids.iter().map(netduel_model::ids::RunId::as_str).collect();
    eprint!("Delete {} for good? [y/N] ", names.join(", "));
    // The question is on a terminal that may have gone; then no answer comes either.
    drop(std::io::stderr().flush());
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).kind(Kind::Environment)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Whether a run is finished, and whether it can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A process is writing it.
    Running,
    /// Finished.
    Done,
    /// Stopped by the user, or its coordinator was killed.
    Stopped,
    /// A failure ended it.
    Failed,
}

impl State {
    fn of(end: Option<&RunEnd>, in_use: bool) -> Self {
        match end {
            _ if in_use => Self::Running,
            Some(RunEnd::PrecisionReached | RunEnd::BlockLimitReached | RunEnd::BudgetReached) => Self::Done,
            Some(RunEnd::Interrupted) | None => Self::Stopped,
            Some(RunEnd::Failed { .. }) => Self::Failed,
        }
    }

    fn of_contents(contents: &RunContents) -> Self {
        Self::of(contents.end.as_ref(), contents.in_use)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }

    /// What can be done with it, as a line of its own.
    fn hint(self, resume: &str) -> String {
        match self {
            Self::Running => "This run is still running.\n".to_owned(),
            Self::Done => String::new(),
            Self::Stopped | Self::Failed => format!("Resume with: {resume}\n"),
        }
    }
}

/// A run in the listing for scripts.
fn document(run: &RunSummary) -> serde_json::Value {
    let path = run.path.display().to_string();
    match &run.contents {
        Ok(contents) => serde_json::json!({
            "id": run.id,
            "path": path,
            "question": contents.header.plan.question,
            "title": contents.header.annotations.title,
            "notes": contents.header.annotations.notes,
            "overrides": contents.header.annotations.overrides,
            "started_unix_ms": contents.header.started_unix_ms,
            "trials": contents.trials,
            "state": State::of_contents(contents).word(),
            "end": contents.end,
            "torn": contents.torn.is_some(),
        }),
        Err(error) => serde_json::json!({ "id": run.id, "path": path, "error": error.to_string() }),
    }
}

/// A run in the listing for people.
fn line(run: &RunSummary) -> String {
    match &run.contents {
        Ok(contents) => {
            let state = State::of_contents(contents);
            let resume = match state {
                State::Running | State::Done => String::new(),
                State::Stopped | State::Failed => format!(" ({})", resume_hint(&run.id)),
            };
            let Annotations { title, notes, .. } = &contents.header.annotations;
            let title = title.as_ref().unwrap_or(&contents.header.plan.question);
            let head = format!("{:<40} {:>5} trials  {}{resume}", run.id, contents.trials, state.word());
            let notes = notes.iter().map(|(key, value)| format!("{key}={value}"));
            [head, title.clone()].into_iter().chain(notes).collect::<Vec<_>>().join("  ")
        }
        Err(error) => format!("{:<40} unreadable: {error}", run.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_are_neither_running_nor_done_can_be_resumed() {
        let failed = RunEnd::Failed { detail: "x".to_owned() };
        for (end, in_use, state, resumable) in [
            (None, true, State::Running, false),
            // A resumed run has the end of its first part until its file says that it goes on.
            (Some(&RunEnd::Interrupted), true, State::Running, false),
            (None, false, State::Stopped, true),
            (Some(&RunEnd::Interrupted), false, State::Stopped, true),
            (Some(&failed), false, State::Failed, true),
            (Some(&RunEnd::BlockLimitReached), false, State::Done, false),
        ] {
            assert_eq!(State::of(end, in_use), state);
            assert_eq!(state.hint("netduel run --resume x").contains("--resume"), resumable, "{state:?}");
        }
    }

    #[test]
    fn html_is_refused_on_a_terminal_only() {
        for (format, is_terminal, refused) in [
            (Some(Format::Html), true, true),
            (Some(Format::Html), false, false),
            (Some(Format::Md), true, false),
            (None, true, false),
        ] {
            let result = refuse_page_on_a_terminal(format, is_terminal, "last");
            assert_eq!(result.is_err(), refused, "{format:?}");
        }
    }

    #[test]
    fn anything_but_yes_is_no() {
        assert!(is_yes("y\n") && is_yes(" YES\n"));
        assert!(!is_yes("") && !is_yes("\n") && !is_yes("yep\n"));
    }
}
