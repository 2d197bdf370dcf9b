//! Which hosts have a change that could not be undone. It undoes nothing.
use std::collections::{BTreeMap, BTreeSet};

use netduel_model::ids::HostName;
use netduel_model::warning::Warning;

use super::error::RunError;

/// Changes that could not be undone, by host: each with how to undo it by hand.
#[derive(Default)]
pub(super) struct NotRestored(BTreeMap<HostName, BTreeSet<String>>);

impl NotRestored {
    /// Notes a change and returns its warning. An agent tries again at its end, and so does the next one: a repeated failure has its
    /// warning.
    pub(super) fn note(&mut self, host: &HostName, detail: String) -> Option<Warning> {
        let is_new = self.0.entry(host.clone()).or_default().insert(detail.clone());
        is_new.then(|| Warning::UndoFailed { host: host.clone(), detail, reports: 1 })
    }

    /// The hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &HostName> {
        self.0.keys()
    }

    /// The first host as the error of a run.
    pub(super) fn error(&self) -> Option<RunError> {
        let (host, left) = self.0.first_key_value()?;
        let left = left.iter().map(String::as_str).collect::<Vec<_>>().join("; ");
        Some(RunError::NotRestored { host: host.clone(), left })
    }
}
