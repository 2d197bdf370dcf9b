//! `az` for what has to be done in the end, as an undo: a call is repeated after a lost connection, and while Azure works on the same resource.
use std::time::Duration;

use netduel_sys::clock::monotonic_ns;

use super::cause::Cause;
use super::{Az, CallError};

/// Codes of Azure while another operation on the same resource, or on one that it needs, has not ended: as after an `az` that was killed, whose
/// operation goes on without it.
const CONFLICTS: [&str; 5] = [
    "AnotherOperationInProgress",
    "Conflict",
    "OperationPreempted",
    "ReferencedResourceNotProvisioned",
    "RetryableError",
];

/// `az` whose calls are repeated while their error may pass.
pub struct Patient<'a> {
    az: &'a mut dyn Az,
    end_ns: u64,
}

impl<'a> Patient<'a> {
    /// Repeats calls until this time from now on has passed, for all calls together. Each call has its own limit.
    pub fn new(az: &'a mut dyn Az, patience: Duration) -> Self {
        let patience_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        Self { az, end_ns: monotonic_ns().saturating_add(patience_ns) }
    }

    /// Whether a call with this error is repeated; waits until then.
    fn repeats(&mut self, error: &CallError) -> bool {
        (error.is_transient() || is_conflict(error)) && monotonic_ns() < self.end_ns && self.az.pause()
    }
}

impl Az for Patient<'_> {
    fn call(&mut self, words: &[&str], limit: Duration) -> Result<String, CallError> {
        loop {
            match self.az.call(words, limit) {
                Err(error) if self.repeats(&error) => {}
                ended => return ended,
            }
        }
    }

    fn pause(&mut self) -> bool {
        self.az.pause()
    }
}

/// Whether Azure refused a call because of another operation that has not ended.
fn is_conflict(error: &CallError) -> bool {
    let CallError::Failed { cause, .. } = error else { return false };
    match cause {
        Cause::Hidden => true,
        Cause::Other { code: Some(code), .. } => CONFLICTS.contains(&code.as_str()),
        _ => false,
    }
}
