//! `netduel history`: one plan over its stored runs. Nothing is measured here.
use std::io::IsTerminal as _;

use netduel_model::run::{Run, RunHeader};
use netduel_report::history::{History, PastRun, Selection};
use netduel_report::json::history::HistoryDocument;
use netduel_report::{analyse_run, document, html, markdown, terminal};
use netduel_store::{LAST, RunContents, RunSummary, Store};

use crate::cli::stored::{Format, HistoryArgs};
use crate::console::{json, page_layout, print, print_exact, print_json, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
use crate::redaction;
use crate::report_file::{Destination, check_printing, no_pdf_on_standard_output, refuse_page_on_a_terminal};
use crate::run_store::{command_of, open_store, store_failure};

/// `netduel history`.
pub fn command(args: &HistoryArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let format = args.output.format(args.format);
    let destination = args
        .output
        .place()
        .map(|out| Destination::among(out, format, Format::is_of_histories)?.printed(&args.printing))
        .transpose()?;
    check_printing(destination.is_some(), &args.printing, "report.pdf")?;
    let shown = destination.as_ref().map_or(format, |destination| Some(destination.format));
    let shown = shown.unwrap_or(Format::Text);
    if !shown.is_of_histories() {
        let text = format!("failed to write a history as .{}: it has no such format", shown.extension());
        return Err(Failure::message(Kind::Usage, text).remedy("use text, html, pdf, md or json"));
    }
    let store = open_store(&args.store)?;
    if destination.is_none() {
        let command = command_of(&["history", &args.run]);
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &command)?;
    }
    let runs = read(&store, args)?;
    let selection = Selection { metric: args.metric, workload: args.workload.clone(), arm: args.arm.clone() };
    let history = History::of(runs, &selection).filter(|history| !history.series.is_empty());
    let history = history.ok_or_else(|| {
        Failure::message(
            Kind::NoVerdict,
            "failed to show a history: no run has a value of this metric, workload and arm",
        )
        .remedy("`netduel report RUN` lists them")
    })?;
    let Some(destination) = destination else { return print_as(&history, shown) };
    let text = match destination.format {
        Format::Pdf => html::printed(&document::of_history(&history), destination.paper()),
        format => render(&history, format)?,
    };
    destination.write(&text)?;
    print(&redaction::text(&format!("{}\n", destination.path.display())))
}

/// The named run and the earlier runs of its plan that have the notes.
fn read(store: &Store, args: &HistoryArgs) -> Result<Vec<PastRun>, Failure> {
    let listed = store.list().kind(Kind::Store)?;
    let newest = newest(store, &listed, args)?;
    let (plan, started) = (newest.header.plan.name.clone(), newest.header.started_unix_ms);
    let is_asked_for = |header: &RunHeader| header.plan.name == plan && has_notes(header, args);
    let mut earlier: Vec<String> = Vec::new();
    let mut unreadable: Vec<String> = Vec::new();
    for summary in &listed {
        let contents = match &summary.contents {
            Ok(contents) => contents,
            Err(error) => {
                unreadable.push(format!("warning: {} is left out: {error}", summary.id));
                continue;
            }
        };
        let is_earlier = contents.header.started_unix_ms <= started && summary.id != newest.header.id;
        // A copy of a run is no further run, and one in progress has no value yet.
        let is_own = summary.copy_of.is_none() && !contents.in_use;
        if is_earlier && is_own && is_asked_for(&contents.header) {
            earlier.push(summary.id.to_string());
        }
    }
    if redaction::is_on() {
        // A name has one pseudonym in all runs, and is known before the first of them is shown.
        redaction::learn_run(&newest)?;
        earlier
            .iter()
            .filter_map(|name| store.read(name).ok())
            .try_for_each(|run| redaction::learn_run(&run))?;
    }
    for warning in &unreadable {
        tell(&redaction::text(warning));
    }
    let mut runs = Vec::new();
    for name in &earlier {
        match store.read(name) {
            Ok(run) => runs.push(reduced(run)?),
            Err(error) => tell(&redaction::text(&format!("warning: {name} is left out: {error}"))),
        }
    }
    runs.push(reduced(newest)?);
    Ok(runs)
}

/// The named run, whose plan is shown: `last` is the last one with the notes.
fn newest(store: &Store, listed: &[RunSummary], args: &HistoryArgs) -> Result<Run, Failure> {
    let of_notes = listed.iter().find(|summary| {
        let is_of_notes = |contents: &RunContents| !contents.in_use && has_notes(&contents.header, args);
        summary.copy_of.is_none() && summary.contents.as_ref().is_ok_and(is_of_notes)
    });
    let name = match of_notes {
        Some(summary) if args.run == LAST && !args.notes.is_empty() => summary.id.as_str(),
        _ => args.run.as_str(),
    };
    let newest = store.read(name).map_err(store_failure)?;
    if has_notes(&newest.header, args) {
        return Ok(newest);
    }
    let id = &newest.header.id;
    let text = format!("failed to show a history: the run {id} does not have all of these notes");
    Err(Failure::message(Kind::Usage, text).remedy("name a run that has them; `netduel runs` lists notes"))
}

/// Whether a run has all notes of the command line.
fn has_notes(header: &RunHeader, args: &HistoryArgs) -> bool {
    let notes = &header.annotations.notes;
    args.notes.iter().all(|(key, value)| notes.get(key) == Some(value))
}

/// What the history needs of a run: many whole runs would not fit into memory.
fn reduced(run: Run) -> Result<PastRun, Failure> {
    let run = redaction::run(run)?;
    Ok(PastRun::of(&run, &analyse_run(&run)))
}

fn print_as(history: &History, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => print_json(&HistoryDocument::of(history, &program::origin())),
        // A page has scripts of its own, and is refused on a terminal.
        Format::Html => print_exact(&render(history, format)?),
        _ => print(&render(history, format)?),
    }
}

fn render(history: &History, format: Format) -> Result<String, Failure> {
    let (width, colour) = page_layout();
    let document = document::of_history(history);
    Ok(match format {
        Format::Pdf => return Err(no_pdf_on_standard_output()),
        Format::Json => json(&HistoryDocument::of(history, &program::origin()))?,
        Format::Html => html::page(&document),
        Format::Md => markdown::page(&document),
        _ => terminal::report(&document, width, colour),
    })
}
