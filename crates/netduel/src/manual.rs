//! Shell completions and man pages, from the same definition as the parser.
use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::run::print;

/// Prints the completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "netduel", &mut text);
    print(&String::from_utf8(text).kind(Kind::Internal)?)
}

/// Writes a man page for the program and for each command.
pub fn pages(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Cli::command(), folder)).map_err(
        |error| {
            Failure::message(
                Kind::Environment,
                format!("failed to write man pages to {}: {error}", folder.display()),
            )
        },
    )?;
    print(&format!("man pages are in {}\n", folder.display()))
}
