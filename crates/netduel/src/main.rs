//! The netduel program: the command line, exit codes, and the wiring of the other crates. Nothing is measured here.
#![forbid(unsafe_code)]

mod agent;
mod cli;
mod console;
mod demo;
mod exit;
mod figure;
mod inspect;
mod lab;
mod manual;
mod named_namespace;
mod plan;
mod program;
mod quick;
mod report_file;
mod run;
mod run_store;
mod serve;
mod signal;
mod stored;

use clap::Parser as _;

use cli::{Cli, Command};
use exit::{Failure, Kind, OrFail as _};
use netduel_sys::local_bind::LocalBind;

fn main() {
    // Before anything else: until then other users see a pairing string among the arguments.
    if let Err(failure) = quick::string_input::hide() {
        console::tell(&format!("netduel: {failure}"));
        std::process::exit(failure.kind as i32);
    }
    let cli = Cli::try_parse().map_err(cli::unknown::with_visible_suggestions).unwrap_or_else(|error| {
        let text = error.render().to_string();
        if error.use_stderr() && !console::is_safe(&text) {
            console::tell(text.trim_end());
        } else {
            drop(error.print());
        }
        // Help and version are no errors; clap prints each where it belongs.
        if !error.use_stderr() {
            std::process::exit(0);
        }
        if cli::json::is_asked_for(std::env::args_os()) {
            let failure = Failure::message(Kind::Usage, error.render().to_string().trim());
            console::print_json_error(&failure, cli::json::is_stream(std::env::args_os()));
        }
        std::process::exit(Kind::Usage as i32);
    });
    let code = match dispatch(&cli.command) {
        Ok(code) => code,
        Err(failure) => {
            console::tell(&format!("netduel: {failure}"));
            if cli::json::prints_document(&cli.command) {
                console::print_json_error(&failure, matches!(cli.command, Command::Serve(_)));
            }
            failure.kind as i32
        }
    };
    std::process::exit(code);
}

/// Runs a command; `Ok` contains the exit code of commands that return another program's exit code.
fn dispatch(command: &Command) -> Result<i32, Failure> {
    if command.measures() {
        // From the beginning: a signal before the first trial ends the command as one during a trial does.
        signal::interrupted().kind(Kind::Environment)?;
    }
    match command {
        Command::Demo(args) => demo::command(args)?,
        Command::Run(args) => run::command(args)?,
        Command::Tcp(args) => quick::tcp(args)?,
        Command::Udp(args) => quick::udp(args)?,
        Command::Pps(args) => quick::packets(args)?,
        Command::Rr(args) => quick::round_trip(args)?,
        Command::Crr(args) => quick::connections(args)?,
        Command::Serve(args) => serve::command(args)?,
        Command::Pair(args) => quick::pair(args)?,
        Command::Link { at, bind } => quick::link(at, bind.as_ref().unwrap_or(&LocalBind::ANY))?,
        Command::Inspect(args) => inspect::command(args)?,
        Command::Plan(command) => plan::command(command)?,
        Command::Lab(command) => return lab::command(command),
        Command::Report(args) => stored::report(args)?,
        Command::Runs(args) => stored::runs(args)?,
        Command::Agent { bind } => agent::command(bind.clone())?,
        Command::Completions { shell } => manual::completions(*shell)?,
        Command::Man { folder } => manual::pages(folder)?,
        Command::Complete { what } => manual::names(*what)?,
        Command::LabKeeper { words } => return Ok(netduel_lab::keeper_main(words)),
        Command::UndoGuard => return Ok(netduel_agent::treatment::guard_main()),
    }
    Ok(0)
}
