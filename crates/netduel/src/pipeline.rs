//! Output for a workflow of GitHub: annotations on standard error, where they are beside no document, and the step summary. The texts are
//! not made here.
use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use netduel_report::checks::Checks;
use netduel_report::document::block::Document;
use netduel_report::github::{self, SUMMARY_BYTES_MAX};
use netduel_report::markdown;

use crate::console::{is_in_workflow, tell, tell_command};
use crate::exit::{Failure, Kind, unwritten};
use crate::{output_file, redaction};

/// The file of the step summary.
const SUMMARY_FILE: &str = "GITHUB_STEP_SUMMARY";

/// In a workflow of GitHub: annotations, and the report in the step summary. Does nothing elsewhere.
pub fn announce(checks: &Checks, document: &Document, decided: Result<&Option<String>, &Failure>) {
    if !is_in_workflow() {
        return;
    }
    for line in github::annotations(checks) {
        tell_command(&line);
    }
    summarize(checks, document, decided);
}

/// Adds the report to the step summary, if the environment names its file. A summary that cannot be written changes no result.
pub fn summarize(checks: &Checks, document: &Document, decided: Result<&Option<String>, &Failure>) {
    let Some(path) = env::var_os(SUMMARY_FILE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return;
    };
    let decision = match decided {
        Ok(line) => line.clone(),
        Err(failure) => Some(failure.to_string()),
    };
    let decision = decision.map(|text| redaction::text(&text));
    if let Err(error) = append(&path, &markdown::page(document), decision.as_deref(), &checks.command) {
        let doing = format!("write the step summary {}", path.display());
        let failure = unwritten(Kind::Store, doing, error, "let GITHUB_STEP_SUMMARY name another file");
        tell(&format!("warning: {failure}"));
    }
}

/// Earlier commands of the step may have written to the file.
fn append(path: &Path, markdown: &str, decision: Option<&str>, command: &str) -> io::Result<()> {
    let mut file = output_file::open_to_append(path)?;
    let written = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let room = SUMMARY_BYTES_MAX.saturating_sub(written);
    file.write_all(github::summary(markdown, decision, command, room).as_bytes())
}
