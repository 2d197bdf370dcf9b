//! `netduel history`: one plan over its stored runs. Nothing is measured here.
use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::str::FromStr;

use netduel_model::run::{Run, RunHeader};
use netduel_model::units::plural;
use netduel_report::history::{History, PastRun, Selection};
use netduel_report::html::Paper;
use netduel_report::json::history::HistoryDocument;
use netduel_report::{analyse_run, document};
use netduel_store::{LAST, RunContents, RunSummary, Store, StoreError};

use crate::cli::stored::{Format, HistoryArgs};
use crate::console::{json, print_json, tell};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::program;
use crate::redaction;
use crate::report_file::{
    check_printing, destinations, formats, page, print_text, refuse_page_on_a_terminal, write_and_print,
};
use crate::run_store::{command_of, note_run, open_store, store_failure};

/// `netduel history`.
pub fn command(args: &HistoryArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let format = args.output.format(args.format);
    let destinations = destinations(args.output.places(), format, Format::is_document, &args.printing)?;
    check_printing(!destinations.is_empty(), &args.printing, "report.pdf")?;
    if let Some(other) = formats(&destinations, format).iter().find(|format| !format.is_document()) {
        return Err(no_such_format(*other));
    }
    let store = open_store(&args.store)?;
    if destinations.is_empty() {
        let command = command_of(&["history", &args.run]);
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &command)?;
    }
    note_run(&store, &args.run);
    let runs = read(&store, args)?;
    let (workload, arm) = (shown(args.workload.as_ref()), shown(args.arm.as_ref()));
    let selection = Selection { metric: args.metric, workload, arm };
    let history = match History::of(runs, &selection) {
        Some(history) if !history.series.is_empty() => history,
        other => return Err(no_value(args, other.as_ref())),
    };
    if destinations.is_empty() {
        return print_as(&history, format.unwrap_or(Format::Text));
    }
    write_and_print(&destinations, |destination| {
        let text = render(&history, destination.format, destination.paper())?;
        destination.write(&text).map(|()| vec![destination.path.clone()])
    })
}

fn no_such_format(format: Format) -> Failure {
    let text = format!("failed to write a history as .{}: it has no such format", format.extension());
    Failure::message(Kind::Usage, text).remedy(format!("use {}", Format::names(Format::is_document)))
}

/// Most runs without a value that an error names.
const WITHOUT_VALUE_MAX: usize = 2;

/// The error of a history without a value, with the reason where results of valid trials were too bad for one.
fn no_value(args: &HistoryArgs, history: Option<&History>) -> Failure {
    let known = history.map(|history| history.without_point.as_slice()).unwrap_or_default();
    let named: Vec<&str> = known.iter().take(WITHOUT_VALUE_MAX).map(String::as_str).collect();
    let reason = if named.is_empty() { String::new() } else { format!(": {}", named.join("; ")) };
    let more = match known.len() - named.len() {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let text = format!("failed to show a history: no run has a value{}{reason}{more}", selected(args));
    Failure::message(Kind::NoVerdict, redaction::text(&text))
        .remedy("`netduel report RUN` lists metrics, workloads and arms")
}

/// What the options select, in words for an error.
fn selected(args: &HistoryArgs) -> String {
    let metric = args.metric.map(|metric| format!("the metric {}", metric.key()));
    let workload = args.workload.as_ref().map(|workload| format!("the workload {workload}"));
    let arm = args.arm.as_ref().map(|arm| format!("the arm {arm}"));
    let parts: Vec<String> = [metric, workload, arm].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" of {}", parts.join(" and ")) }
}

/// A name of an arm or a workload as the runs that were read have it: with `--redact` it has a pseudonym in place of the name of a host within it.
fn shown<N: Clone + ToString + FromStr>(name: Option<&N>) -> Option<N> {
    let name = name?;
    Some(redaction::text(&name.to_string()).parse().unwrap_or_else(|_| name.clone()))
}

/// The named run and the earlier runs of its plan that have the notes.
fn read(store: &Store, args: &HistoryArgs) -> Result<Vec<PastRun>, Failure> {
    let listed = store.list().kind(Kind::Store)?;
    let newest = newest(store, &listed, args)?;
    let Earlier { runs: earlier, left_out } = Earlier::among(&listed, &newest.header, args);
    if redaction::is_on() {
        // A name has one pseudonym in all runs, and is known before the first of them is shown.
        redaction::learn_run(&newest)?;
        earlier
            .iter()
            .filter_map(|run| store.read(run.id.as_str()).ok())
            .try_for_each(|run| redaction::learn_run(&run))?;
    }
    // The run of a file may be stored as well.
    let is_file = matches!(store.id_of(&args.run), Err(StoreError::NotFound { .. }));
    let is_newest = |contents: &RunContents| contents.header.is_of_same_run(&newest.header);
    let stored = listed.iter().find(|one| is_file && one.contents.as_ref().is_ok_and(is_newest));
    let own = stored.map(|own| format!("warning: {} counts once: {} is the same run", own.id, args.run));
    for warning in own.iter().chain(&left_out) {
        tell(&redaction::text(warning));
    }
    let mut runs = Vec::new();
    for run in &earlier {
        match store.read(run.id.as_str()) {
            Ok(run) => runs.push(reduced(run)?),
            Err(error) => tell(&redaction::text(&format!("warning: {} is left out: {error}", run.id))),
        }
    }
    runs.push(reduced(newest)?);
    Ok(runs)
}

/// The runs of the store that belong to a history beside the named one.
struct Earlier<'a> {
    /// Their headers, with the names of their files.
    runs: Vec<&'a RunHeader>,
    /// Why others of the plan do not, in words: files that cannot be read, and those of a run that counts already.
    left_out: Vec<String>,
}

impl<'a> Earlier<'a> {
    fn among(listed: &'a [RunSummary], newest: &RunHeader, args: &HistoryArgs) -> Self {
        let mut earlier = Self { runs: Vec::new(), left_out: Vec::new() };
        let mut unnamed = 0_u32;
        // Of a run and its copies the run counts, where it has the notes.
        let (own, copies): (Vec<_>, Vec<_>) = listed.iter().partition(|one| one.copy_of.is_none());
        for summary in own.into_iter().chain(copies) {
            match &summary.contents {
                // What is in it is not known, and so is what its name says.
                Err(_) if redaction::is_on() => unnamed = unnamed.saturating_add(1),
                Err(error) => {
                    earlier.left_out.push(format!("warning: {} is left out: {error}", summary.id));
                }
                // One in progress has no value yet.
                Ok(contents) if !contents.in_use => earlier.add(&contents.header, newest, args),
                Ok(_) => {}
            }
        }
        if unnamed > 0 {
            let runs = plural(unnamed, "run");
            let command = command_of(&["runs", "verify"]);
            let text = format!("warning: left out: {runs} that cannot be read; `{command}` shows why");
            earlier.left_out.push(text);
        }
        earlier
    }

    /// Adds a run that belongs to the history. The file of the named run is no further run, and a copy of a run is none.
    fn add(&mut self, header: &'a RunHeader, newest: &RunHeader, args: &HistoryArgs) {
        let is_earlier = header.started_unix_ms <= newest.started_unix_ms;
        let is_of_plan = header.plan.name == newest.plan.name;
        let is_newest = header.id == newest.id && header.is_of_same_run(newest);
        if !is_earlier || !is_of_plan || !has_notes(header, args) || is_newest {
            return;
        }
        let counts = |one: &&RunHeader| one.is_of_same_run(header);
        let known = [newest].into_iter().find(counts).or_else(|| self.runs.iter().copied().find(counts));
        match known {
            Some(known) => {
                let (id, known) = (&header.id, &known.id);
                self.left_out.push(format!("warning: {id} is left out: it is the same run as {known}"));
            }
            None => self.runs.push(header),
        }
    }
}

/// The named run, whose plan is shown: `last` is the last one with the notes, and so is the beginning of several names.
fn newest(store: &Store, listed: &[RunSummary], args: &HistoryArgs) -> Result<Run, Failure> {
    let of_notes = if args.notes.is_empty() { None } else { newest_of(listed.iter(), args) };
    let name = match of_notes {
        Some(summary) if args.run == LAST => summary.id.as_str(),
        _ => args.run.as_str(),
    };
    let newest = match store.read(name) {
        Err(StoreError::Ambiguous { wanted, matches }) => {
            let fitting = listed.iter().filter(|one| matches.iter().any(|name| name == one.id.as_str()));
            let fitting: Vec<&RunSummary> = fitting.collect();
            refuse_several_plans(&wanted, &fitting)?;
            let readable = || fitting.iter().copied().find(|one| one.contents.is_ok());
            match newest_of(fitting.iter().copied(), args).or_else(readable) {
                Some(summary) => store.read(summary.id.as_str()),
                None => Err(StoreError::Ambiguous { wanted, matches }),
            }
        }
        read => read,
    };
    let newest = newest.map_err(store_failure)?;
    if has_notes(&newest.header, args) {
        return Ok(newest);
    }
    redaction::learn(&newest.header)?;
    let id = &newest.header.id;
    let notes: Vec<String> = args.notes.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let notes = redaction::text(&notes.join(" "));
    let (who, remedy) = if args.run == LAST {
        let remedy = "copies, runs in progress and runs that start in the future do not count; `netduel runs` lists notes";
        ("no run has".to_owned(), remedy)
    } else {
        (format!("the run {id} does not have"), "name a run that has them; `netduel runs` lists notes")
    };
    let text = format!("failed to show a history: {who} all of the notes {notes}");
    Err(Failure::message(Kind::Usage, text).remedy(remedy))
}

/// The newest run with the notes that is neither a copy nor in progress, and does not start in the future. `runs`: the newest first.
fn newest_of<'a>(
    mut runs: impl Iterator<Item = &'a RunSummary>,
    args: &HistoryArgs,
) -> Option<&'a RunSummary> {
    runs.find(|summary| {
        let is_begun = |contents: &RunContents| !contents.in_use && !contents.starts_in_future;
        let is_of_notes = |contents: &RunContents| is_begun(contents) && has_notes(&contents.header, args);
        summary.copy_of.is_none() && summary.contents.as_ref().is_ok_and(is_of_notes)
    })
}

/// Most plans that an error names.
const PLANS_MAX: usize = 8;

/// A history is one of one plan: the beginning of names of runs of several plans selects none of them.
fn refuse_several_plans(wanted: &str, fitting: &[&RunSummary]) -> Result<(), Failure> {
    let headers = fitting.iter().filter_map(|one| Some(&one.contents.as_ref().ok()?.header));
    let headers: Vec<&RunHeader> = headers.collect();
    let plans: BTreeSet<&str> = headers.iter().map(|header| header.plan.name.as_str()).collect();
    if plans.len() < 2 {
        return Ok(());
    }
    // The error has their names.
    headers.iter().try_for_each(|header| redaction::learn(*header))?;
    let names: Vec<&str> = plans.iter().copied().take(PLANS_MAX).collect();
    let more = match plans.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "failed to show a history: names of runs of {} plans begin with `{wanted}`: {}{more}",
        plans.len(),
        names.join(", ")
    );
    Err(Failure::message(Kind::NoSuchRun, text).remedy("write more of the name of a run"))
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
    if format == Format::Json {
        return print_json(&HistoryDocument::of(history, &program::origin()));
    }
    print_text(&render(history, format, Paper::default())?, format)
}

/// A history in a format. `paper` is that of a PDF.
fn render(history: &History, format: Format, paper: Paper) -> Result<String, Failure> {
    if format == Format::Json {
        return json(&HistoryDocument::of(history, &program::origin()));
    }
    page(&document::of_history(history), format, paper).ok_or_else(|| no_such_format(format))
}
