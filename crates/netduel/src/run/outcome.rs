//! What a run leaves for the user: the verdict table, the report, the hint how to go on, the exit code.
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use netduel_control::coordinator::{RunError, RunErrorKind};
use netduel_model::ids::RunId;
use netduel_model::run::{Run, RunEnd};
use netduel_report::analysis::Analysis;
use netduel_store::Store;

use super::{Output, print, resume_hint};
use crate::exit::{Failure, Kind, OrFail as _};

/// Tables are laid out for this width when the terminal does not say.
const WIDTH_DEFAULT: usize = 110;

/// Prints and writes everything about a finished run, and gives it its exit code.
pub fn finish(
    result: Result<RunEnd, RunError>,
    store: &Store,
    id: Option<&RunId>,
    output: &Output<'_>,
) -> Result<(), Failure> {
    let Some(id) = id else {
        return match result.map_err(run_failure)? {
            RunEnd::Interrupted => {
                Err(Failure::message(Kind::Interrupted, "stopped by you before anything was measured"))
            }
            _ => Ok(()),
        };
    };
    let run = store.read(id.as_str()).kind(Kind::Store)?;
    let analysis = netduel_report::analyse_run(&run);
    if run.trials.is_empty() {
        eprintln!("No trial was finished.");
    } else {
        show(&run, &analysis, output)?;
    }
    match result {
        Ok(RunEnd::Interrupted) => Err(Failure::message(
            Kind::Interrupted,
            format!(
                "stopped by you: {} finished trials are kept; go on with `{}`",
                run.trials.len(),
                resume_hint(id)
            ),
        )),
        Ok(RunEnd::Failed { detail }) => Err(Failure::message(
            Kind::Host,
            format!("{detail}; go on with `{}` when it is mended", resume_hint(id)),
        )),
        Ok(_) if analysis.verdict_possible() => Ok(()),
        Ok(_) => Err(Failure::message(
            Kind::NoVerdict,
            "the run ended, but too few trials count for a verdict; the warnings above say why",
        )),
        Err(error) => {
            let failure = run_failure(error);
            Err(Failure {
                error: failure.error.context(format!(
                    "the run {id} stopped; finished trials are kept, go on with `{}`",
                    resume_hint(id)
                )),
                ..failure
            })
        }
    }
}

fn show(run: &Run, analysis: &Analysis, output: &Output<'_>) -> Result<(), Failure> {
    if output.json {
        let document = netduel_report::json::document(run, analysis);
        print(&format!("{}\n", serde_json::to_string_pretty(&document).kind(Kind::Internal)?))?;
    } else {
        print(&table(analysis))?;
    }
    if let Some(folder) = output.folder {
        let path = write_report(run, analysis, folder)?;
        say(output.json, &format!("Report:   {}", path.display()))?;
    }
    say(
        output.json,
        &format!(
            "Stored:   run {}  (netduel report {} --format md|json|csv|html)",
            run.header.id, run.header.id
        ),
    )
}

/// Standard output belongs to the JSON document when there is one.
fn say(json: bool, line: &str) -> Result<(), Failure> {
    if json {
        eprintln!("{line}");
        return Ok(());
    }
    print(&format!("{line}\n"))
}

/// Columns of this terminal, and whether colours are welcome.
pub fn page_layout() -> (usize, bool) {
    let width = terminal_size::terminal_size().map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0));
    (width, std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// The verdict table for this terminal.
pub fn table(analysis: &Analysis) -> String {
    let (width, colour) = page_layout();
    netduel_report::terminal::table(analysis, width, colour)
}

/// Writes `report.html` whole or not at all.
pub fn write_report(run: &Run, analysis: &Analysis, folder: &Path) -> Result<PathBuf, Failure> {
    let failed = |what: &str, path: &Path, error: &std::io::Error| {
        Failure::message(Kind::Store, format!("failed to {what} {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed("make the folder", folder, &error))?;
    let path = folder.join("report.html");
    write_whole(&path, netduel_report::html::page(run, analysis).as_bytes())?;
    Ok(path)
}

/// Writes a file beside its place and moves it there, so that nobody sees half of it.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let written = std::fs::write(&beside, content).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| {
        drop(std::fs::remove_file(&beside));
        Failure::message(
            Kind::Store,
            format!("failed to write {}: {error}; choose another place with --out", path.display()),
        )
    })
}

/// The exit code of a run that could not go on.
pub fn run_failure(error: RunError) -> Failure {
    let kind = match error.kind() {
        RunErrorKind::Usage => Kind::Usage,
        RunErrorKind::Environment => Kind::Environment,
        RunErrorKind::Host => Kind::Host,
        RunErrorKind::Store => Kind::Store,
        RunErrorKind::Internal => Kind::Internal,
    };
    Failure::new(kind, error)
}
