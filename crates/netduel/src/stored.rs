//! `netduel report` and `netduel runs`: what is in the store.
use netduel_model::run::{Run, RunEnd};
use netduel_store::RunSummary;

use crate::cli::{Format, ReportArgs, RunsArgs};
use crate::exit::{Failure, Kind, OrFail as _};
use crate::run::{open_store, print, resume_hint, store_failure, table, write_whole};

/// `netduel report`.
pub fn report(args: &ReportArgs) -> Result<(), Failure> {
    let store = open_store(&args.store)?;
    let run = store.read(&args.run).map_err(store_failure)?;
    let format = if args.json { Format::Json } else { args.format };
    let text = render(&run, format)?;
    match &args.out {
        Some(path) => {
            write_whole(path, text.as_bytes())?;
            print(&format!("{}\n", path.display()))
        }
        None => print(&text),
    }
}

fn render(run: &Run, format: Format) -> Result<String, Failure> {
    let analysis = netduel_report::analyse_run(run);
    Ok(match format {
        Format::Text => {
            let open = matches!(run.end, None | Some(RunEnd::Interrupted | RunEnd::Failed { .. }));
            let hint =
                if open { format!("Go on with: {}\n", resume_hint(&run.header.id)) } else { String::new() };
            table(&analysis) + &hint
        }
        Format::Html => netduel_report::html::page(run, &analysis),
        Format::Md => netduel_report::markdown::page(run, &analysis),
        Format::Csv => netduel_report::csv::trials(run),
        Format::Json => {
            let document = netduel_report::json::document(run, &analysis);
            format!("{}\n", serde_json::to_string_pretty(&document).kind(Kind::Internal)?)
        }
    })
}

/// `netduel runs`.
pub fn runs(args: &RunsArgs) -> Result<(), Failure> {
    let runs = open_store(&args.store)?.list().kind(Kind::Store)?;
    if args.json {
        let documents: Vec<serde_json::Value> = runs.iter().map(document).collect();
        return print(&format!("{}\n", serde_json::to_string_pretty(&documents).kind(Kind::Internal)?));
    }
    if runs.is_empty() {
        return print("no run is stored; make one with `netduel demo`\n");
    }
    let lines: Vec<String> = runs.iter().map(line).collect();
    print(&(lines.join("\n") + "\n"))
}

/// A run in the listing for scripts.
fn document(run: &RunSummary) -> serde_json::Value {
    let path = run.path.display().to_string();
    match &run.contents {
        Ok(contents) => serde_json::json!({
            "id": run.id,
            "path": path,
            "question": contents.header.plan.question,
            "started_unix_ms": contents.header.started_unix_ms,
            "trials": contents.trials,
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
            let end = match &contents.end {
                Some(RunEnd::PrecisionReached | RunEnd::BlocksDone | RunEnd::BudgetUsed) => "done".to_owned(),
                Some(RunEnd::Interrupted) | None => format!("can go on: {}", resume_hint(&run.id)),
                Some(RunEnd::Failed { .. }) => format!("failed, can go on: {}", resume_hint(&run.id)),
            };
            format!("{:<40} {:>5} trials  {end}  {}", run.id, contents.trials, contents.header.plan.question)
        }
        Err(error) => format!("{:<40} unreadable: {error}", run.id),
    }
}
