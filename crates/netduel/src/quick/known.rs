//! The pairings of this user: one file each, readable only by this user, so that a secret is typed once and appears in no plan,
//! stored run or list of processes.
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use netduel_model::socket_name::{SERVE_PORT, SocketName};
use netduel_report::json::envelope::Document as _;
use netduel_report::json::listing::{PairedServer, PairingAction, Pairings};

use super::string_input::{self, STDIN, TEXT_LEN_MAX};
use crate::cli::pair::{PairAction, PairArgs};
use crate::console::{print, print_json, tell};
use crate::exit::{self, Failure, Kind};
use crate::input_file;
use crate::output_file::{self, Readers};
use crate::program;
use netduel_model::pairing::Pairing;

/// How to pair with a server.
pub const PAIR: &str = "run `netduel serve` there, and once `netduel pair -` here, which asks for the pairing string that it prints";
/// What helps where the file of a pairing cannot be used.
const ANOTHER: &str = "name another file with --pairing-file, or pair again with `netduel pair`";

/// The folder of the pairings.
fn folder() -> Result<PathBuf, Failure> {
    program::state_folder().map(|folder| folder.join("pairings"))
}

fn file_of(name: &SocketName) -> Result<PathBuf, Failure> {
    Ok(folder()?.join(name.to_string()))
}

/// Reads a pairing string from a file that only its owner may read.
pub fn read(path: &Path) -> Result<Pairing, Failure> {
    read_or(path, ANOTHER)
}

/// The same; `otherwise`: what helps where the file cannot be used.
fn read_or(path: &Path, otherwise: &str) -> Result<Pairing, Failure> {
    let doing = || format!("read the pairing {}", path.display());
    let failed = |why: &str| Failure::message(Kind::Usage, format!("failed to {}: {why}", doing()));
    let unread = |error: std::io::Error| exit::unread(Kind::Usage, doing(), error, otherwise);
    // What is judged is the opened file: the path may name another one at the next moment.
    let file = input_file::open(path).map_err(unread)?;
    let metadata = file.metadata().map_err(unread)?;
    if metadata.permissions().mode() & 0o077 != 0 {
        let failure = failed("other users can read it and use the pairing");
        return Err(failure.remedy(format!("run `chmod 600 {}`", path.display())));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed("it belongs to another user").remedy(otherwise));
    }
    let text = input_file::read_opened_text(file, TEXT_LEN_MAX as usize).map_err(unread)?;
    text.trim().parse::<Pairing>().map_err(|error| failed(&error.to_string()).remedy(otherwise))
}

/// The stored pairing with the server at `name`; absent when there is none.
pub fn find(name: &SocketName) -> Result<Option<Pairing>, Failure> {
    let path = file_of(name)?;
    if !path.exists() {
        return Ok(None);
    }
    // Its file is no argument of the command. A new pairing replaces it.
    let pairing = read_or(&path, &format!("pair again: {PAIR}"));
    pairing.map(Some).map_err(|failure| Failure { kind: Kind::Store, ..failure })
}

/// Stores a pairing under `name`, replacing an older one.
pub fn keep(name: &SocketName, pairing: &Pairing) -> Result<PathBuf, Failure> {
    let path = file_of(name)?;
    let folder = folder()?;
    let failed = |what: &str, path: &Path, error: std::io::Error| {
        let doing = format!("{what} {}", path.display());
        exit::unwritten(Kind::Store, doing, error, "name a file with the pairing with --pairing-file")
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

/// The error about a text that is no name of a server.
pub fn names_no_server(text: &str, problem: &str) -> Failure {
    let failure = Failure::message(Kind::Usage, format!("{text:?} {problem}"));
    match SocketName::remedy_for(text) {
        Some(remedy) => failure.remedy(remedy),
        None => failure,
    }
}

/// Deletes the pairing with a server, or the file of the folder with this name, with or without the default port: earlier
/// versions stored pairings under names that no server has now.
fn forget(text: &str) -> Result<PairedServer, Failure> {
    let server = SocketName::parse(text);
    let full = server.as_ref().map_or_else(|| format!("{text}:{SERVE_PORT}"), ToString::to_string);
    // A name that the folder lists leads to no other folder.
    let files = file_names()?;
    let Some(file) = [full.as_str(), text].into_iter().find(|name| files.iter().any(|file| file == name))
    else {
        return Err(match server {
            Some(name) => Failure::message(Kind::NotPaired, format!("there is no pairing with {name}"))
                .remedy("`netduel pair --list` shows all"),
            None => names_no_server(text, "is not HOST or HOST:PORT"),
        });
    };
    let path = folder()?.join(file);
    std::fs::remove_file(&path).map_err(|error| {
        let doing = format!("remove {}", path.display());
        exit::unwritten(Kind::Store, doing, error, program::OTHER_STATE_FOLDER)
    })?;
    let (host, port) = file.rsplit_once(':').unwrap_or((file, ""));
    let port = port.parse().unwrap_or(SERVE_PORT);
    Ok(match server {
        Some(name) => paired(&name),
        None => PairedServer { name: file.to_owned(), host: host.to_owned(), port },
    })
}

/// The names of all stored pairings with servers.
pub fn list() -> Result<Vec<SocketName>, Failure> {
    let mut names: Vec<SocketName> =
        file_names()?.iter().filter_map(|name| SocketName::parse(name)).collect();
    names.sort();
    Ok(names)
}

/// Warns of pairings that [`list`] leaves out because of their letters: each has the secret of a server.
fn warn_of_others() -> Result<(), Failure> {
    // A draft of a pairing begins with a dot.
    for name in file_names()?.iter().filter(|name| !name.starts_with('.')) {
        if let Some(remedy) = SocketName::remedy_for(name) {
            tell(&format!(
                "warning: the pairing {name:?} of an earlier version cannot be used; {remedy}; `netduel pair --forget` deletes it"
            ));
        }
    }
    Ok(())
}

/// The names of all files in the folder of the pairings, as far as they are text.
fn file_names() -> Result<Vec<String>, Failure> {
    let folder = folder()?;
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let doing = format!("list {}", folder.display());
            return Err(exit::unread(Kind::Store, doing, error, program::OTHER_STATE_FOLDER));
        }
    };
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

fn paired(name: &SocketName) -> PairedServer {
    PairedServer { name: name.to_string(), host: name.host().to_owned(), port: name.port() }
}

fn print_pairings(action: PairingAction, pairings: Vec<PairedServer>) -> Result<(), Failure> {
    let envelope = Pairings::envelope(&program::origin());
    print_json(&Pairings { envelope, action, pairings })
}

/// `netduel pair`.
pub fn command(args: &PairArgs) -> Result<(), Failure> {
    let PairAction { string, list: is_list, forget: forgotten } = &args.action;
    let json = args.json.json;
    if *is_list {
        let servers = list()?;
        warn_of_others()?;
        if json {
            return print_pairings(PairingAction::List, servers.iter().map(paired).collect());
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
        let server = forget(host)?;
        if json {
            return print_pairings(PairingAction::Deleted, vec![server]);
        }
        return print(&format!("deleted the pairing with {}\n", server.name));
    }
    let pairing = match string.as_deref() {
        Some(STDIN) | None => string_input::read_stdin()?,
        Some(text) => text.trim().parse().map_err(|error| Failure::message(Kind::Usage, error))?,
    };
    let name = pairing.server.clone();
    let path = keep(&name, &pairing)?;
    if json {
        return print_pairings(PairingAction::Stored, vec![paired(&name)]);
    }
    print(&format!("paired with {name}; stored in {}\n", path.display()))
}
