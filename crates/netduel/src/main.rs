//! The netduel program: the command line, exit codes, and the wiring of the other crates. Nothing is measured here.
#![forbid(unsafe_code)]

mod agent;
mod azure;
mod cli;
mod compare;
mod confirmation;
mod console;
mod demo;
mod exit;
mod expected_time;
mod figure;
mod gate;
mod history;
mod input_file;
mod inspect;
mod kept_files;
mod lab;
mod manual;
mod named_namespace;
mod output_file;
mod pdf;
mod pipeline;
mod plan;
mod program;
mod provider;
mod publication;
mod quick;
mod redaction;
mod report_file;
mod run;
mod run_changes;
mod run_store;
mod serve;
mod shown_runs;
mod signal;
mod ssh;
mod stored;

use std::panic::UnwindSafe;

use clap::Parser as _;

use cli::{Cli, Command};
use exit::{Failure, Kind};
use netduel_agent::treatment::Keeper;
use netduel_sys::local_bind::LocalBind;
use netduel_sys::memory::EndingAllocator;

/// Without memory the environment lacks something, as without a thread.
#[global_allocator]
static ALLOCATOR: EndingAllocator<{ Kind::Environment as i32 }> = EndingAllocator;

fn main() {
    ALLOCATOR.end_without_memory_for_threads();
    netduel_sys::name_lookup::load_no_service();
    std::process::exit(unless_panicked(run));
}

/// The exit code of `run`; that of a bug when it panics.
fn unless_panicked(run: impl FnOnce() -> i32 + UnwindSafe) -> i32 {
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        // A display of the whole terminal is gone, and its messages would be lost.
        console::release();
        // The panic is already on standard error.
        console::tell("netduel: this is a bug in netduel; report it with the message above");
        Kind::Internal as i32
    })
}

/// Runs the command line and returns the exit code.
fn run() -> i32 {
    // Before anything else: until then other users see a pairing string among the arguments.
    if let Err(failure) = quick::string_input::hide() {
        let code = exit_code_of(&failure);
        print_unparsed(&failure);
        return code;
    }
    if let Err(failure) = signal::outlive_file_limit() {
        return exit_code_of(&failure);
    }
    let cli = match Cli::try_parse().map_err(cli::unknown::with_visible_suggestions) {
        Ok(cli) => cli,
        // Help and version are no errors.
        Err(error) if !error.use_stderr() => {
            let printed = console::print_help(&error);
            return printed.map_or_else(|failure| exit_code_of(&failure), |()| 0);
        }
        Err(error) => {
            let text = error.render().to_string();
            let bounded = console::bounded_lines(&text);
            if console::is_safe(&text) && bounded == text {
                drop(error.print());
            } else {
                console::tell(bounded.trim_end());
            }
            print_unparsed(&Failure::message(Kind::Usage, bounded.trim()));
            return Kind::Usage as i32;
        }
    };
    dispatch(&cli.command).unwrap_or_else(|failure| {
        let code = exit_code_of(&failure);
        if cli::json::prints_document(&cli.command) {
            console::print_json_error(&failure, matches!(cli.command, Command::Serve(_)));
        }
        code
    })
}

/// Prints the failure of a command line that was not parsed as the document or the event that its arguments request.
fn print_unparsed(failure: &Failure) {
    if cli::json::are_events_asked_for(std::env::args_os()) {
        quick::print_failure_event(failure);
    } else if cli::json::is_asked_for(std::env::args_os()) {
        console::print_json_error(failure, cli::json::is_stream(std::env::args_os()));
    }
}

/// Prints a failure.
fn exit_code_of(failure: &Failure) -> i32 {
    console::tell(&format!("netduel: {failure}"));
    failure.kind as i32
}

/// Runs a command; `Ok` contains the exit code of commands that return another program's exit code.
fn dispatch(command: &Command) -> Result<i32, Failure> {
    if command.measures() {
        // From the beginning: a signal before the first trial ends the command as one during a trial does.
        signal::interrupted().map_err(|error| signal::unheard("Ctrl-C", error))?;
    }
    if command.measures() || matches!(command, Command::Lab(_)) {
        program::check_path()?;
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
        Command::Link { at, bind } => quick::link(at, bind.bind.as_ref().unwrap_or(&LocalBind::ANY))?,
        Command::Inspect(args) => inspect::command(args)?,
        Command::Plan(command) => plan::command(command)?,
        Command::Lab(command) => return lab::command(command),
        Command::Azure(command) => azure::command(command)?,
        Command::Report(args) => stored::report(args)?,
        Command::Compare(args) => compare::command(args)?,
        Command::History(args) => history::command(args)?,
        Command::Runs(args) => stored::runs(args)?,
        Command::Agent { checksum: true, .. } => agent::print_checksum()?,
        Command::Agent { bind, .. } => agent::command(bind.bind.clone())?,
        Command::Completions { shell } => manual::completions(*shell)?,
        Command::Man { folder } => manual::pages(folder)?,
        Command::Complete { what, of, store } => manual::names(*what, of.as_deref(), store)?,
        Command::LabKeeper { words } => return Ok(netduel_lab::keeper_main(words)),
        Command::AzureUndo(command) => provider::undo::command(command)?,
        Command::UndoGuard { coordinator, no_names } => {
            let (keeper, lasting) = if *coordinator {
                (Keeper::Coordinator, program::undo_folder())
            } else {
                (Keeper::Agent, None)
            };
            return Ok(netduel_agent::treatment::guard_main(keeper, lasting, !*no_names));
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_ends_with_the_code_of_a_bug() {
        assert_eq!(unless_panicked(|| panic!("a bug")), Kind::Internal as i32);
        assert_eq!(unless_panicked(|| 7), 7);
    }
}
