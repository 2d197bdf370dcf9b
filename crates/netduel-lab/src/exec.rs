//! Runs a program inside a host of a lab.
use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::Command;

use netduel_model::ids::LabName;
use netduel_sys::namespace::Kind;
use netduel_sys::process::{KeyboardSignalsIgnored, spawn_inside};

use crate::error::LabError;
use crate::handle::Lab;

/// Runs a program inside a host, with this process's standard streams and working directory, and waits for it. The program is in
/// the lab's pid namespace, sees `/proc` and `/sys` of its host, and is killed with the lab and with the calling process. Returns
/// its exit code, or 128 + the signal that killed it.
///
/// # Errors
/// [`LabError::NoSuchLab`], [`LabError::NoSuchHost`], [`LabError::NoProgram`] when the program is not installed, and [`LabError::Local`]
/// when it cannot be started for another reason.
pub fn exec(name: &LabName, host: &str, argv: &[OsString]) -> Result<i32, LabError> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(LabError::local("run a program in the lab: no program given")(
            std::io::Error::from_raw_os_error(crate::Errno::INVAL.0),
        ));
    };
    let (user, descriptors) = Lab::connect(name)?.entrance(host)?;
    let kinds = user.then_some(Kind::User).into_iter().chain([Kind::Pid, Kind::Net, Kind::Uts]);
    let namespaces = kinds.zip(descriptors).collect();
    let operation = format!("run {} in host {host} of lab {name}", program.display());
    let mut command = Command::new(program);
    command.args(arguments);
    let mut child = spawn_inside(&mut command, namespaces).map_err(|error| match error.kind() {
        ErrorKind::NotFound => LabError::NoProgram { operation: operation.clone() },
        _ => LabError::local(operation.clone())(error),
    })?;
    let _ignored = KeyboardSignalsIgnored::begin();
    let status = child.wait().map_err(LabError::local(operation))?;
    Ok(std::os::unix::process::ExitStatusExt::signal(&status)
        .map_or_else(|| status.code().unwrap_or(255), |signal| 128 + signal))
}
