//! This program: its file, its name and version, and its folders.
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use netduel_azure::command::SUBSCRIPTION;
use netduel_lab::KeeperCommand;
use netduel_model::user_folder::UserFolder;
use netduel_report::json::envelope::Origin;

use crate::exit::{Failure, Kind};
use crate::quick::string_input;

/// The file of the running program, which starts agents and keepers of exactly this version.
pub fn path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Checks before anything is started that agents and keepers can be: the kernel names the running program in `/proc`.
pub fn check_path() -> Result<(), Failure> {
    std::env::current_exe().map(drop).map_err(|error| {
        let text = format!("failed to find the file of this program in /proc: {error}");
        Failure::caused(Kind::Environment, text, error)
            .remedy("mount /proc where netduel runs: `mount -t proc proc /proc`")
    })
}

/// The command line, for a stored run. A pairing string is a secret and is replaced by its host and port, and a subscription, which is the user's,
/// by a placeholder. Bytes that are no UTF-8, as a path may have, are replaced: a stored run is JSON.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    without_subscription(string_input::repeatable(words))
}

/// The words of a command with a placeholder in place of the subscription that its option names.
fn without_subscription(words: Vec<String>) -> Vec<String> {
    const OPTION: &str = "--subscription";
    let mut is_next = false;
    let shown = |word: String| {
        let is_value = std::mem::replace(&mut is_next, word == OPTION);
        if is_value {
            return SUBSCRIPTION.to_owned();
        }
        match word.strip_prefix(OPTION) {
            Some(value) if value.starts_with('=') => format!("{OPTION}={SUBSCRIPTION}"),
            _ => word,
        }
    };
    words.into_iter().map(shown).collect()
}

/// The command that starts the keeper of a lab.
pub fn keeper_command() -> KeeperCommand {
    KeeperCommand { program: path(), words: vec!["lab-keeper".to_owned()] }
}

/// What helps where a file of [`state_folder`] cannot be read or written.
pub const OTHER_STATE_FOLDER: &str = "set XDG_STATE_HOME to another folder";

/// The folder for data that is neither a run nor a setting: identity, pairings, templates of beds, records of changes of Azure.
pub fn state_folder() -> Result<PathBuf, Failure> {
    const FOLDERS: [UserFolder; 2] = [UserFolder::State, UserFolder::Home];
    let [state, home] = FOLDERS.map(|folder| folder.path(|name| std::env::var_os(name)));
    let state = state.or_else(|| Some(home?.join(".local/state")));
    state.map(|path| path.join("netduel")).ok_or_else(|| {
        let faults = UserFolder::faults(&FOLDERS, |name| std::env::var_os(name));
        let text = format!("failed to choose a folder for pairings and templates: {faults}");
        Failure::message(Kind::Environment, text).remedy(
            "set one of them to an absolute path, or do without: `netduel serve --ephemeral`, and `--pairing-file FILE` with a quick test",
        )
    })
}

/// The folder for the files of beds: each bed has a folder of its name there.
pub fn beds_folder() -> Result<PathBuf, Failure> {
    Ok(state_folder()?.join("azure"))
}

/// The folder for the records of changes to resources of Azure, which outlive a boot as the changes do; the folder around it is made. `None` where it
/// cannot be.
pub fn undo_folder() -> Option<PathBuf> {
    let folder = state_folder().ok()?;
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    Some(folder.join("undo"))
}

/// The origin in JSON documents: this version, and the time.
pub fn origin() -> Origin {
    Origin {
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        created_unix_ms: netduel_sys::clock::realtime_ns() / 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_command_has_no_subscription() {
        let shown = |line: &str| without_subscription(line.split(' ').map(str::to_owned).collect()).join(" ");
        let given = "netduel azure run a.toml --subscription 2222 --bed x";
        assert_eq!(shown(given), "netduel azure run a.toml --subscription SUBSCRIPTION --bed x");
        let given = "netduel azure run --subscription=2222 a.toml";
        assert_eq!(shown(given), "netduel azure run --subscription=SUBSCRIPTION a.toml");
        assert_eq!(shown("netduel run a.toml --seed 2222"), "netduel run a.toml --seed 2222");
    }
}
