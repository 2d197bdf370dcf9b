//! netduel's engines against other tools, side by side on one path: `cargo xtask bench peers`.
//!
//! Everything runs in two network namespaces with one veth between them, inside a pid namespace: however this program ends, the
//! kernel ends every process and namespace that it made. Each printed value has the other tool's value of the same minute beside
//! it. This is a tool of the workspace and not part of the product.
#![forbid(unsafe_code)]

mod arguments;
mod campaign;
mod cases;
mod cost;
mod document;
mod end;
mod hosts;
mod launch;
mod machine;
mod metric;
mod outcome;
mod record;
mod stage;
mod summary;
mod table;
mod tool;

use std::io::{self, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use arguments::Arguments;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((word, rest)) if word == end::WORD => end::run(rest),
        Some((word, rest)) if word == stage::WORD => inside(rest),
        _ => outside(&words),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The outer program.
fn outside(words: &[String]) -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if arguments.list {
        print(&table::cases())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.write_docs {
        document::write(&arguments.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    cases::chosen(&arguments.only)?;
    stage::enter(words, arguments.lifeline)
}

/// The inner program: pid 1 of the new namespaces, with the same arguments.
fn inside(words: &[String]) -> Result<ExitCode> {
    stage::settle()?;
    let name = std::iter::once("peers").map(String::from);
    let arguments = Arguments::parse_from(name.chain(words.iter().cloned()));
    let record = campaign::run(&arguments)?;
    print(&format!("{}\nraw figures: {}\n", table::whole(&record), arguments.json.display()))?;
    // A missed target is a result; a tool that is installed but cannot be measured is a failure.
    let is_whole = record.results.iter().all(|result| result.failures.is_empty());
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints a text on standard output. A closed reader (`| head`) is not an error.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("failed to write to standard output")
        }
        _ => Ok(()),
    }
}
