//! This program itself: where its file is, and what it calls itself.
use std::path::PathBuf;

use netduel_lab::KeeperCommand;

use crate::exit::{Failure, Kind};

/// The file of the running program, to start agents and keepers of the very same version.
pub fn path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// How this program starts the keeper of a lab.
pub fn keeper_command() -> KeeperCommand {
    KeeperCommand { program: path(), words: vec!["lab-keeper".to_owned()] }
}

/// Where this program keeps what is neither a run nor a setting: identity and pairings.
pub fn state_folder() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("XDG_STATE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(folder("HOME")?.join(".local/state")))
        .map(|path| path.join("netduel"))
        .ok_or_else(|| {
            let text = "failed to choose a folder for pairings: neither XDG_STATE_HOME nor HOME is set; set one of them, or do without: `netduel serve --ephemeral`, and `--pairing-file FILE` with a quick test";
            Failure::message(Kind::Environment, text)
        })
}

/// Name and version, for example `netduel 0.1.0`.
pub fn name_and_version() -> String {
    format!("netduel {}", env!("CARGO_PKG_VERSION"))
}
