//! Runs one command of a check: prints it first, and gives it no terminal for questions.
use std::ffi::OsStr;
use std::num::NonZero;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::workspace;

/// A `cargo` command in the root of the workspace, with empty stdin.
pub fn cargo<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(workspace::cargo());
    command.args(arguments).current_dir(workspace::root()).stdin(Stdio::null());
    // `cargo run` describes the package of xtask in these. Some build scripts read them, and would run again, with all crates that
    // depend on theirs, after each cargo command of a person.
    let described = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        name.to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    });
    for name in described {
        command.env_remove(name);
    }
    command
}

/// Prints the command, runs it and returns whether it succeeded.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    println!("$ {}", shown(command));
    let status = command.status().with_context(|| format!("failed to start `{}`", shown(command)))?;
    Ok(status.success())
}

/// Whether a program of this name answers to `--version`.
pub fn is_installed(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The number of cores that this process may use; 1 when the system does not say.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The command as typed by a person, without the folder of the program.
pub fn shown(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let settings = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={:?}", name.to_string_lossy(), value?.to_string_lossy()))
    });
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    settings.chain(std::iter::once(name)).chain(arguments).collect::<Vec<_>>().join(" ")
}
