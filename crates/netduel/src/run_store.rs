//! The store of this user, as commands open it; its errors with their exit codes.
use std::path::Path;

use netduel_model::ids::RunId;
use netduel_store::{Store, StoreError};

use crate::cli::shared::StoreArgs;
use crate::exit::{Failure, Kind, OrFail as _};

/// Opens the store that the options name, or the user's.
pub fn open_store(args: &StoreArgs) -> Result<Store, Failure> {
    let folder = args.store.clone().or_else(|| Store::default_dir(|name| std::env::var_os(name))).ok_or_else(|| {
        Failure::message(
            Kind::Usage,
            "failed to choose a folder for the store: neither XDG_DATA_HOME nor HOME is set; name one with --store DIR",
        )
    })?;
    Store::open(&folder).kind(Kind::Store)
}

/// A store error with its exit code: an unknown or ambiguous name is not a failure of the store.
pub fn store_failure(error: StoreError) -> Failure {
    let kind = match &error {
        StoreError::NotFound { .. } | StoreError::Ambiguous { .. } => Kind::NoSuchRun,
        _ => Kind::Store,
    };
    Failure::new(kind, error)
}

/// The command that resumes a run.
pub fn resume_hint(id: &RunId) -> String {
    resume_hint_to(id, None)
}

/// The command that resumes a run and writes its report to a file, which a run does not record.
pub fn resume_hint_to(id: &RunId, out: Option<&Path>) -> String {
    let out = out.map(|path| format!(" --out {}", path.display())).unwrap_or_default();
    format!("netduel run --resume {id}{out}")
}
