//! The store of this user, as commands open it; its errors with their exit codes.
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use netduel_model::ids::RunId;
use netduel_model::run::RunHeader;
use netduel_model::shell;
use netduel_model::units::plural;
use netduel_model::user_folder::UserFolder;
use netduel_report::words;
use netduel_store::{LAST, PassedOver, Store, StoreError, folder};

use crate::cli::shared::StoreArgs;
use crate::console::tell;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::kept_files;
use crate::redaction;
use crate::shown_runs::number_file;

/// The environment's name for the store.
const VARIABLE: &str = "NETDUEL_STORE";
/// The store that `--store` of this command line names.
static STORE_OPTION: OnceLock<PathBuf> = OnceLock::new();

/// The store that the options name, or the user's. No output of the command replaces its runs. Its folder is created when the first run is
/// stored; it is refused where a link of another user leads to it.
pub fn open_store(args: &StoreArgs) -> Result<Store, Failure> {
    let named = args.store.as_ref().filter(|named| !named.as_os_str().is_empty());
    if named.is_none()
        && args.store.is_some()
        && std::env::var_os(VARIABLE).is_none_or(|value| !value.is_empty())
    {
        return Err(
            Failure::message(Kind::Usage, "--store: it is empty").remedy("name a folder, or leave it out")
        );
    }
    let folder =
        named.cloned().or_else(|| Store::default_dir(|name| std::env::var_os(name))).ok_or_else(|| {
            let faults = UserFolder::faults(&Store::DEFAULTS, |name| std::env::var_os(name));
            Failure::message(Kind::Environment, format!("failed to choose a folder for the store: {faults}"))
                .remedy("set one of them to an absolute path, or name a folder with --store DIR")
        })?;
    // Another process finds the store of the environment again.
    if let Some(named) =
        named.filter(|named| std::env::var_os(VARIABLE).as_deref() != Some(named.as_os_str()))
    {
        STORE_OPTION.get_or_init(|| named.clone());
    }
    folder::check(&folder).map_err(|error| {
        let text = format!("failed to use {} as the store's folder: {error}", folder.display());
        Failure::caused(Kind::Store, text, error).remedy("choose another folder with --store")
    })?;
    kept_files::note_store(&folder);
    Ok(Store::at(folder))
}

/// A command that netduel prints for a run of the store in use: with the `--store` of this command line.
pub fn for_store(command: &str) -> String {
    STORE_OPTION.get().map_or_else(
        || command.to_owned(),
        |store| format!("{command} --store {}", shell::word(&store.to_string_lossy())),
    )
}

/// The command line of netduel with these words, for the store in use.
pub fn command_of(words: &[&str]) -> String {
    for_store(&format!("netduel {}", shell::line(words)))
}

/// A store error with its exit code: a path without a file and an unknown or ambiguous name are no failure of the store. With `--redact` a file
/// that cannot be read has a number in place of its name.
pub fn store_failure(mut error: StoreError) -> Failure {
    number_file(&mut error);
    if let Some(failure) = json_in_place_of_a_run(&error) {
        return failure;
    }
    if redaction::is_on()
        && let Some(failure) = without_other_names(&error)
    {
        return failure;
    }
    let kind = match &error {
        StoreError::NotFound { .. }
        | StoreError::NoFile { .. }
        | StoreError::NoLast { .. }
        | StoreError::Ambiguous { .. } => Kind::NoSuchRun,
        _ => Kind::Store,
    };
    Failure::new(kind, error)
}

/// What every command does first that takes the name of a run. No output of the command replaces the run's file. Where `last` leaves runs out,
/// a warning says so: one of them may be the newest, which was begun before the clock was set back, or whose file cannot be read.
pub fn note_run(store: &Store, name: &str) {
    // The command that follows has the error of a name without a run.
    if let Ok(file) = store.find(Path::new(name)) {
        kept_files::note_input(&file);
    }
    // The command that follows has the error of a store that cannot be read.
    let PassedOver { in_future, unread } =
        if name == LAST { store.passed_over().unwrap_or_default() } else { PassedOver::default() };
    let command = || command_of(&["runs"]);
    if in_future > 0 {
        let (runs, command) = (plural(in_future, "run"), command());
        tell(&format!(
            "warning: `last` leaves out {runs} whose start is in the future; `{command}` shows which"
        ));
    }
    if unread > 0 {
        let (files, command) = (plural(unread, "run file"), command());
        tell(&format!(
            "warning: `last` leaves out {files} that cannot be read and may be newer; `{command}` shows why"
        ));
    }
}

/// The failure of a JSON file that is named as a run. It is likely a baseline file, which only a comparison takes.
fn json_in_place_of_a_run(error: &StoreError) -> Option<Failure> {
    let (path, kind) = match error {
        StoreError::NotFound { wanted, .. } => (Path::new(wanted), Kind::NoSuchRun),
        StoreError::NotARun { path, .. } => (path.as_path(), Kind::Store),
        _ => return None,
    };
    let is_json = path.extension().is_some_and(|extension| extension == "json") && path.is_file();
    let text = format!("failed to read {} as a run: it is a JSON file", path.display());
    let remedy = "name a run or its file; of all commands only `netduel compare` takes a baseline file";
    is_json.then(|| Failure::message(kind, text).remedy(remedy))
}

/// The failure of a name that stands for no run, with the number of other runs in place of their names: these may have a name of a host or a
/// user in them that no run that was read has. Absent where the error has no such name.
fn without_other_names(error: &StoreError) -> Option<Failure> {
    let command = command_of(&["runs"]);
    let (text, remedy) = match error {
        StoreError::NotFound { wanted, folder, runs, .. } if *runs > 0 => (
            format!(
                "failed to find run `{wanted}` in {}: it has {} of other names",
                folder.display(),
                plural(*runs, "run")
            ),
            format!("`{command}` lists them"),
        ),
        StoreError::Ambiguous { wanted, matches } => (
            format!("failed to find run `{wanted}`: the names of {} begin so", plural(matches.len(), "run")),
            format!("write more of its name; `{command}` lists them"),
        ),
        _ => return None,
    };
    Some(Failure::message(Kind::NoSuchRun, text).remedy(remedy))
}

/// Opens the store for a new run: it can be written, or the error comes before any host is started.
pub fn writable_store(args: &StoreArgs) -> Result<Store, Failure> {
    let store = open_store(args)?;
    let store = Store::open(store.folder()).kind(Kind::Store)?;
    store.check_writable().kind(Kind::Store)?;
    Ok(store)
}

/// How to complete a run that has stopped.
#[derive(Debug, PartialEq, Eq)]
pub enum NextStep {
    /// The command that resumes it.
    Resume(String),
    /// The command of a quick test, which is repeated as a whole.
    Repeat(String),
}

impl NextStep {
    /// Of a stored run. A plan compares two arms at least; a quick test has one.
    pub fn of(header: &RunHeader) -> Self {
        if header.plan.compares() {
            Self::Resume(resume_command(&header.id))
        } else {
            Self::Repeat(words::own_command(&header.command))
        }
    }

    /// The step with its command, for a line of its own.
    pub fn line(&self) -> String {
        match self {
            Self::Resume(command) => format!("Resume with: {command}"),
            Self::Repeat(command) => format!("Repeat with: {command}"),
        }
    }
}

/// The command that resumes a run, and writes its reports where they were.
pub fn resume_command(id: &RunId) -> String {
    for_store(&format!("netduel run --resume {id}"))
}
