//! A program in place of `az` for tests. It replays the answers in `answers.json` of the folder that `NETDUEL_FAKE_AZ` names, and appends each
//! command to `calls` there. It makes no request.
//!
//! `answers.json` has for the first words of a command a list of answers; the first one that applies is given. An answer may have: `when`
//! (applies only while this file exists, or all files of a list), `create` and `remove` (files), `run` (a command with its arguments), `out`,
//! `err`, `code`, and `hang` (never ends).
//!
//! As with Azure, a change that has begun is carried out also when `az` is killed: a process of another group does it. Commands wait for it.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

/// Set for the process that carries out a change.
const CARRIES_OUT: &str = "NETDUEL_FAKE_AZ_CARRIES_OUT";

fn main() -> io::Result<ExitCode> {
    let folder = std::env::var_os("NETDUEL_FAKE_AZ").expect("NETDUEL_FAKE_AZ names a folder");
    let folder = PathBuf::from(folder);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let command = words.join(" ");
    let carries_out = std::env::var_os(CARRIES_OUT).is_some();
    if !carries_out {
        let mut calls = OpenOptions::new().create(true).append(true).open(folder.join("calls"))?;
        writeln!(calls, "{command}")?;
    }
    // The process that carries out a change has it as standard input.
    let lock = if carries_out { None } else { Some(locked(&folder)?) };
    let answers: Value = serde_json::from_str(&fs::read_to_string(folder.join("answers.json"))?)?;
    let known = answers.as_object().into_iter().flatten();
    let fitting = known.filter(|(start, _)| command.starts_with(start.as_str()));
    let Some((_, given)) = fitting.max_by_key(|(start, _)| start.len()) else {
        writeln!(io::stderr(), "ERROR: the test has no answer to `{command}`")?;
        return Ok(ExitCode::from(99));
    };
    let exists = |file: &Value| file.as_str().is_none_or(|file| folder.join(file).exists());
    let applies = |answer: &&Value| match &answer["when"] {
        Value::Array(files) => files.iter().all(exists),
        file => exists(file),
    };
    let answer = given.as_array().into_iter().flatten().find(applies).expect("an answer that applies");
    let changes = ["create", "remove", "run"].iter().any(|key| !answer[key].is_null());
    match lock {
        None => {
            change(&folder, answer)?;
            return Ok(ExitCode::SUCCESS);
        }
        Some(lock) if changes => {
            let mut change = Command::new(std::env::current_exe()?);
            let status = change.args(&words).env(CARRIES_OUT, "1").stdin(lock).process_group(0).status()?;
            assert!(status.success(), "{change:?}");
        }
        Some(lock) => drop(lock),
    }
    if answer["hang"] == true {
        loop {
            std::thread::park();
        }
    }
    io::stdout().write_all(answer["out"].as_str().unwrap_or_default().as_bytes())?;
    io::stderr().write_all(answer["err"].as_str().unwrap_or_default().as_bytes())?;
    Ok(ExitCode::from(answer["code"].as_u64().unwrap_or_default() as u8))
}

/// The lock under which answers are chosen and changes carried out.
fn locked(folder: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(folder.join("lock"))?;
    file.lock()?;
    Ok(file)
}

/// Carries out the changes of an answer.
fn change(folder: &Path, answer: &Value) -> io::Result<()> {
    if let Some(file) = answer["create"].as_str() {
        fs::write(folder.join(file), "")?;
    }
    if let Some(file) = answer["remove"].as_str() {
        fs::remove_file(folder.join(file))?;
    }
    if let Some((program, arguments)) = answer["run"].as_array().and_then(|words| words.split_first()) {
        let mut command = Command::new(program.as_str().expect("a program"));
        command.args(arguments.iter().filter_map(Value::as_str)).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        assert!(command.status()?.success(), "{command:?}");
    }
    Ok(())
}
