//! `netduel compare`: stored runs set against each other. Nothing is measured here.
use std::io::IsTerminal as _;

use netduel_model::run::Run;
use netduel_report::analysis::Analysis;
use netduel_report::analysis::compare::{RunComparison, compare};
use netduel_report::document::verdicts::Sides;
use netduel_report::json::compare::CompareDocument;
use netduel_report::{analyse_run, document, html, markdown, terminal};

use crate::cli::stored::{CompareArgs, Format};
use crate::console::{json, page_layout, print, print_exact, print_json, tell};
use crate::exit::{Failure, Kind};
use crate::gate;
use crate::program;
use crate::redaction;
use crate::report_file::{Destination, no_pdf_on_standard_output, refuse_page_on_a_terminal};
use crate::run_store::{open_store, store_failure};

/// `netduel compare`.
pub fn command(args: &CompareArgs) -> Result<(), Failure> {
    redaction::begin(args.redact.redact);
    let format = if args.json { Some(Format::Json) } else { args.format };
    let destination =
        args.out.as_ref().map(|out| Destination::of(out, format)?.printed(&args.printing)).transpose()?;
    let shown = destination.as_ref().map_or(format, |destination| Some(destination.format));
    if shown == Some(Format::Csv) {
        return Err(no_csv());
    }
    if destination.is_none() {
        let command = format!("netduel compare {} {}", args.first, args.others.join(" "));
        refuse_page_on_a_terminal(format, std::io::stdout().is_terminal(), &command)?;
    }
    let store = open_store(&args.store)?;
    let names: Vec<&String> = std::iter::once(&args.first).chain(&args.others).collect();
    let runs = names.iter().map(|name| store.read(name).map_err(store_failure));
    let runs: Vec<Run> = runs.collect::<Result<_, Failure>>()?;
    refuse_one_run_twice(&names, &runs)?;
    if let Some(first) = runs.first() {
        gate::check(&args.gate, &first.header.plan, Sides::Runs)?;
    }
    // Conditions name arms and workloads as the user does.
    let analyses = analysed(&runs);
    let judged = compare(&sides(&runs, &analyses));
    let redacted = if redaction::is_on() { redaction::runs(runs.clone())? } else { Vec::new() };
    let redacted_analyses = analysed(&redacted);
    let shown = redaction::is_on().then(|| compare(&sides(&redacted, &redacted_analyses)));
    let comparison = shown.as_ref().unwrap_or(&judged);
    match destination {
        Some(destination) => {
            let text = match destination.format {
                Format::Pdf => html::printed(&document::of_runs(comparison), destination.paper()),
                format => render(comparison, format)?,
            };
            destination.write(&text)?;
            print(&redaction::text(&format!("{}\n", destination.path.display())))?;
        }
        None => print_as(comparison, format.unwrap_or(Format::Text))?,
    }
    let passed = match gate::decide(&args.gate, |condition| condition.of_runs(&judged)) {
        Err(failure) if failure.kind == Kind::Gate => return Err(failure),
        other => other,
    };
    if comparison.has_data() {
        return passed.map(|line| line.iter().for_each(|line| tell(line)));
    }
    Err(Failure::message(
        Kind::NoVerdict,
        "failed to compare all values of the runs: no arm and workload is in both with the same settings, or one has no valid value",
    )
    .remedy("the sections \"Not compared\" and \"Verdicts\" name them; compare runs of the same plan"))
}

fn analysed(runs: &[Run]) -> Vec<Analysis> {
    runs.iter().map(analyse_run).collect()
}

/// Each run with its analysis.
fn sides<'r>(runs: &'r [Run], analyses: &'r [Analysis]) -> Vec<(&'r Run, &'r Analysis)> {
    runs.iter().zip(analyses).collect()
}

fn no_csv() -> Failure {
    Failure::message(Kind::Usage, "failed to make a table of a comparison: it has no format csv")
        .remedy("use text, html, md or json; `netduel report RUN --format csv` has the values of one run")
}

/// A run against itself is not two independent samples, and would look like evidence of no difference.
fn refuse_one_run_twice(names: &[&String], runs: &[Run]) -> Result<(), Failure> {
    let named: Vec<(&&String, &Run)> = names.iter().zip(runs).collect();
    for (place, (name, run)) in named.iter().enumerate() {
        let same = named.iter().skip(place + 1).find(|(_, other)| other.header.id == run.header.id);
        if let Some((other, _)) = same {
            let id = &run.header.id;
            let text = format!("failed to compare {name} with {other}: both are the run {id}");
            return Err(
                Failure::message(Kind::Usage, text).remedy("name different runs; `netduel runs` lists all")
            );
        }
    }
    Ok(())
}

/// Prints a comparison on standard output.
fn print_as(comparison: &RunComparison<'_>, format: Format) -> Result<(), Failure> {
    match format {
        Format::Json => print_json(&CompareDocument::of(comparison, &program::origin())),
        // A page has scripts of its own, and is refused on a terminal.
        Format::Html => print_exact(&render(comparison, format)?),
        Format::Text | Format::Md | Format::Csv | Format::Pdf => print(&render(comparison, format)?),
    }
}

/// A comparison in a format.
fn render(comparison: &RunComparison<'_>, format: Format) -> Result<String, Failure> {
    let (width, colour) = page_layout();
    Ok(match format {
        Format::Csv => return Err(no_csv()),
        Format::Pdf => return Err(no_pdf_on_standard_output()),
        Format::Text => terminal::report(&document::of_runs(comparison), width, colour),
        Format::Html => html::page(&document::of_runs(comparison)),
        Format::Md => markdown::page(&document::of_runs(comparison)),
        Format::Json => json(&CompareDocument::of(comparison, &program::origin()))?,
    })
}
