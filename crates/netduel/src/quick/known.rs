//! The pairings of this user: one file each, readable only by this user, so that a secret is typed once and appears in no plan,
//! stored run or list of processes.
use std::fmt::Display;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use netduel_model::socket_name::SocketName;
use netduel_report::json::envelope::Document as _;
use netduel_report::json::listing::{PairedServer, PairingAction, Pairings};

use super::string_input::{self, STDIN, TEXT_LEN_MAX};
use crate::cli::pair::{PairAction, PairArgs};
use crate::console::{print, print_json};
use crate::exit::{Failure, Kind};
use crate::output_file::{self, Readers};
use crate::program;
use netduel_model::pairing::Pairing;

/// The folder of the pairings.
fn folder() -> Result<PathBuf, Failure> {
    program::state_folder().map(|folder| folder.join("pairings"))
}

fn file_of(name: &SocketName) -> Result<PathBuf, Failure> {
    Ok(folder()?.join(name.to_string()))
}

/// Reads a pairing string from a file that only its owner may read.
pub fn read(path: &Path) -> Result<Pairing, Failure> {
    let text_of = |why: &dyn Display| format!("failed to read the pairing {}: {why}", path.display());
    let failed = |why: String| Failure::message(Kind::Usage, text_of(&why));
    let unread = |error: std::io::Error| Failure::caused(Kind::Usage, text_of(&error), error);
    let metadata = std::fs::metadata(path).map_err(unread)?;
    if !metadata.is_file() {
        return Err(failed("it is not a regular file".to_owned()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let why = format!("other users can read it and use the pairing; run `chmod 600 {}`", path.display());
        return Err(failed(why));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed("it belongs to another user".to_owned()));
    }
    if metadata.len() > TEXT_LEN_MAX {
        return Err(failed(format!("it is longer than {TEXT_LEN_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(unread)?;
    text.trim().parse::<Pairing>().map_err(|error| failed(error.to_string()))
}

/// The stored pairing with the server at `name`; absent when there is none.
pub fn find(name: &SocketName) -> Result<Option<Pairing>, Failure> {
    let path = file_of(name)?;
    if path.exists() { read(&path).map(Some) } else { Ok(None) }
}

/// Stores a pairing under `name`, replacing an older one.
pub fn keep(name: &SocketName, pairing: &Pairing) -> Result<PathBuf, Failure> {
    let path = file_of(name)?;
    let folder = folder()?;
    let failed = |what: &str, path: &Path, error: std::io::Error| {
        let text = format!(
            "failed to {what} {}: {error}; name a file with the pairing with --pairing-file",
            path.display()
        );
        Failure::caused(Kind::Store, text, error)
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(|error| failed("make", &folder, error))?;
    output_file::replace(&path, format!("{pairing}\n").as_bytes(), Readers::Owner)
        .map_err(|error| failed("write", &path, error))?;
    Ok(path)
}

/// Deletes a pairing; `false` when there was none.
pub fn forget(name: &SocketName) -> Result<bool, Failure> {
    let path = file_of(name)?;
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => {
            let text = format!("failed to remove {}: {error}", path.display());
            Err(Failure::caused(Kind::Store, text, error))
        }
    }
}

/// The names of all stored pairings.
pub fn list() -> Result<Vec<SocketName>, Failure> {
    let folder = folder()?;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let text = format!("failed to list {}: {error}", folder.display());
            return Err(Failure::caused(Kind::Store, text, error));
        }
    };
    // Files without a valid server name are ignored.
    let mut names: Vec<SocketName> =
        entries.filter_map(|entry| SocketName::parse(entry.ok()?.file_name().to_str()?)).collect();
    names.sort();
    Ok(names)
}

fn print_pairings(action: PairingAction, servers: &[SocketName]) -> Result<(), Failure> {
    let paired = |name: &SocketName| PairedServer {
        name: name.to_string(),
        host: name.host().to_owned(),
        port: name.port(),
    };
    let envelope = Pairings::envelope(&program::origin());
    print_json(&Pairings { envelope, action, pairings: servers.iter().map(paired).collect() })
}

/// `netduel pair`.
pub fn command(args: &PairArgs) -> Result<(), Failure> {
    let PairAction { string, list: is_list, forget: forgotten } = &args.action;
    let json = args.json.json;
    if *is_list {
        let servers = list()?;
        if json {
            return print_pairings(PairingAction::List, &servers);
        }
        if servers.is_empty() {
            return print(
                "no pairing is stored; run `netduel serve` on the other host, and use the string that it prints\n",
            );
        }
        let lines: Vec<String> = servers.iter().map(|name| format!("{name}\n")).collect();
        return print(&lines.concat());
    }
    if let Some(host) = forgotten {
        let name = SocketName::parse(host)
            .ok_or_else(|| Failure::message(Kind::Usage, format!("{host:?} is not HOST or HOST:PORT")))?;
        if forget(&name)? {
            if json {
                return print_pairings(PairingAction::Deleted, &[name]);
            }
            return print(&format!("deleted the pairing with {name}\n"));
        }
        return Err(Failure::message(Kind::NotPaired, format!("there is no pairing with {name}"))
            .remedy("`netduel pair --list` shows all"));
    }
    let pairing = match string.as_deref() {
        Some(STDIN) | None => string_input::read_stdin()?,
        Some(text) => text.trim().parse().map_err(|error| Failure::message(Kind::Usage, error))?,
    };
    let name = pairing.server.clone();
    let path = keep(&name, &pairing)?;
    if json {
        return print_pairings(PairingAction::Stored, &[name]);
    }
    print(&format!("paired with {name}; stored in {}\n", path.display()))
}
