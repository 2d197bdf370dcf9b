//! This program: its file, its name and version, and its folders.
use std::path::PathBuf;

use netduel_lab::KeeperCommand;
use netduel_report::json::envelope::Origin;

use crate::exit::{Failure, Kind};
use crate::quick::pairing::Pairing;

/// The file of the running program, which starts agents and keepers of exactly this version.
pub fn path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// The command line, for a stored run. A pairing string is a secret and is replaced by its host and port.
pub fn command_line() -> Vec<String> {
    std::env::args().map(|word| without_secret(&word)).collect()
}

fn without_secret(word: &str) -> String {
    match word.parse::<Pairing>() {
        Ok(pairing) => pairing.server.to_string(),
        Err(_) if Pairing::looks_like(word) => "PAIRING".to_owned(),
        Err(_) => word.to_owned(),
    }
}

/// The command that starts the keeper of a lab.
pub fn keeper_command() -> KeeperCommand {
    KeeperCommand { program: path(), words: vec!["lab-keeper".to_owned()] }
}

/// The folder for data that is neither a run nor a setting: identity and pairings.
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
    fn stored_command_contains_no_pairing_secret() {
        let server = netduel_model::socket_name::SocketName::new("10.0.0.2", 5210).expect("a host");
        let pairing = Pairing { server, fingerprint: [7; 32], secret: [9; 16] };
        assert_eq!(without_secret(&pairing.to_string()), "10.0.0.2:5210");
        // Damaged, but it contains most of the secret.
        let damaged = format!("{pairing}0");
        assert_eq!(without_secret(&damaged), "PAIRING");
        assert_eq!(without_secret("--save"), "--save");
    }
}
