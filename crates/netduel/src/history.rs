//! `netduel history`: one plan over its stored runs. Nothing is measured here.
use std::io::IsTerminal as _;

use netduel_model::run::RunHeader;
use netduel_report::history::{History, PastRun, Selection};
use netduel_report::json::history::HistoryDocument;
use netduel_report::{analyse_run, document, html, markdown, terminal};
use netduel_store::Store;

use crate::cli::stored::{Format, HistoryArgs};
use crate::console::{json, page_layout, print, print_exact, print_json, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
use crate::report_file::{Destination, refuse_page_on_a_terminal};
use crate::run_store::{command_of, open_store, store_failure};

/// `netduel history`.
pub fn command(args: &HistoryArgs) -> Result<(), Failure> {
    let format = if args.json { Some(Format::Json) } else { args.format };
    let destination =
        args.out.as_ref().map(|out| Destination::among(out, format, Format::is_of_histories)).transpose()?;
    let shown = destination.as_ref().map_or(format, |destination| Some(destination.format));
    let shown = shown.unwrap_or(Format::Text);
    if !shown.is_of_histories() {
        let text = format!("failed to write a history as .{}: it has no such format", shown.extension());
        return Err(Failure::message(Kind::Usage, text).remedy("use text, html, md or json"));
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
    destination.write(&render(&history, shown)?)?;
    print(&format!("{}\n", destination.path.display()))
}

/// The named run and the earlier runs of its plan that have the notes.
fn read(store: &Store, args: &HistoryArgs) -> Result<Vec<PastRun>, Failure> {
    let newest = store.read(&args.run).map_err(store_failure)?;
    let (plan, started) = (newest.header.plan.name.clone(), newest.header.started_unix_ms);
    let is_asked_for = |header: &RunHeader| {
        let notes = &header.annotations.notes;
        header.plan.name == plan && args.notes.iter().all(|(key, value)| notes.get(key) == Some(value))
    };
    if !is_asked_for(&newest.header) {
        let text = format!(
            "failed to show a history: the run {} does not have all of these notes",
            newest.header.id
        );
        return Err(Failure::message(Kind::Usage, text)
            .remedy("name a run that has them; `netduel runs` lists notes"));
    }
    let mut runs = Vec::new();
    for summary in store.list().kind(Kind::Store)? {
        let contents = match &summary.contents {
            Ok(contents) => contents,
            Err(error) => {
                tell(&format!("warning: {} is left out: {error}", summary.id));
                continue;
            }
        };
        let is_earlier = contents.header.started_unix_ms <= started && summary.id != newest.header.id;
        // A copy of a run is no further run, and one in progress has no value yet.
        let is_own = summary.copy_of.is_none() && !contents.in_use;
        if !is_earlier || !is_own || !is_asked_for(&contents.header) {
            continue;
        }
        match store.read(summary.id.as_str()) {
            Ok(run) => runs.push(PastRun::of(&run, &analyse_run(&run))),
            Err(error) => tell(&format!("warning: {} is left out: {error}", summary.id)),
        }
    }
    runs.push(PastRun::of(&newest, &analyse_run(&newest)));
    Ok(runs)
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
        Format::Json => json(&HistoryDocument::of(history, &program::origin()))?,
        Format::Html => html::page(&document),
        Format::Md => markdown::page(&document),
        _ => terminal::report(&document, width, colour),
    })
}
