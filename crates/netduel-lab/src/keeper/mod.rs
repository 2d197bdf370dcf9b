//! The keeper of a lab, in up to three stages, each a new process of the same program:
//!
//! - `detach` (standing labs): leaves the session of its user, starts the guard, ends;
//! - `guard`: binds the lab's name, creates the user and pid namespaces, starts the init, waits for it;
//! - `init`: pid 1 of the lab. Builds it, answers requests, and ends for any of the reasons in `init.rs`.
//!
//! Standard input is the lifeline (guard) or a socket to the guard (init), standard output carries the report, standard error
//! the last output.
mod guard;
mod init;

use std::io::Write;
use std::process::{Command, Stdio};

use crate::error::LabError;
use crate::protocol::{Report, Task};

/// Name of a stage on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Leaves the session.
    Detach,
    /// Binds the name, creates the namespaces.
    Guard,
    /// Holds the lab.
    Init,
}

impl Stage {
    const fn word(self) -> &'static str {
        match self {
            Self::Detach => "detach",
            Self::Guard => "guard",
            Self::Init => "init",
        }
    }
}

/// Exit code for invalid arguments.
const EXIT_USAGE: i32 = 2;

/// Runs a stage of the keeper: call it for the hidden subcommand with the remaining arguments, and exit with the result. The
/// process must have one thread.
pub fn keeper_main(words: &[String]) -> i32 {
    let [stage, task] = words else {
        return misused("use `netduel lab --help`");
    };
    let Ok(task) = serde_json::from_str::<Task>(task) else {
        return misused("its task is invalid");
    };
    // For `ps` and `top`, which would show a program started as /proc/self/exe as "exe".
    let _ = rustix::thread::set_name(c"netduel-lab");
    let ended = match stage.as_str() {
        "detach" => detach(&task),
        "guard" => guard::run(&task),
        "init" => init::run(&task),
        _ => return misused(&format!("it has no stage {stage:?}")),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            report(&Report::Failed { error });
            1
        }
    }
}

/// The command was not started by netduel.
fn misused(how: &str) -> i32 {
    // Without a standard error the code says it.
    drop(writeln!(std::io::stderr(), "this is an internal command of netduel; {how}"));
    EXIT_USAGE
}

/// The command of a stage.
pub(crate) fn command(task: &Task, stage: Stage) -> Result<Command, LabError> {
    let json = serde_json::to_string(task)
        .map_err(|error| LabError::local("write the keeper's task")(std::io::Error::from(error)))?;
    let mut command = Command::new(&task.program);
    command.args(&task.words).arg(stage.word()).arg(json);
    Ok(command)
}

fn detach(task: &Task) -> Result<i32, LabError> {
    rustix::process::setsid().map_err(LabError::local("leave the session"))?;
    let mut guard = command(task, Stage::Guard)?;
    guard
        .stdin(Stdio::null())
        .spawn()
        .map_err(LabError::local(format!("start the keeper {}", task.program.display())))?;
    Ok(0)
}

/// Writes the report. It is lost when its reader has ended, which the lifeline also shows.
fn report(report: &Report) {
    let mut output = std::io::stdout().lock();
    let _ = serde_json::to_writer(&mut output, report)
        .map_err(std::io::Error::from)
        .and_then(|()| output.write_all(b"\n"))
        .and_then(|()| output.flush());
}
