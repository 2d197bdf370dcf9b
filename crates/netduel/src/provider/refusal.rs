//! Errors of `az` as those of the provider: which of them a stop of the VM may cure.
use netduel_agent::treatment::TreatmentError;
use netduel_azure::az::CallError;
use netduel_azure::az::cause::Cause;
use netduel_control::coordinator::ProviderError;

use super::Resource;
use crate::exit::chain;

/// An error of `az` in a change. What Azure refuses of a running VM may be allowed when it is stopped.
pub(super) fn refused(error: CallError) -> ProviderError {
    match error {
        CallError::NotTaken { .. }
        | CallError::NotPlaced { .. }
        | CallError::Failed {
            cause: Cause::Other { code: Some(_), .. } | Cause::Unchangeable { .. }, ..
        } => ProviderError::WhileRunning(error.to_string()),
        error => failed(error),
    }
}

/// A refusal of a change although the VM was stopped, with what may show the reason.
pub(super) fn with_log(error: ProviderError, resource: &Resource) -> ProviderError {
    let (Resource::Placement { place, .. } | Resource::Nic { place, .. }) = resource;
    match error {
        ProviderError::WhileRunning(reason) => ProviderError::WhileRunning(format!(
            "{reason}; `az monitor activity-log list --resource-group {}` may show why",
            place.group
        )),
        other => other,
    }
}

/// An error of `az`.
pub(super) fn failed(error: CallError) -> ProviderError {
    match error {
        CallError::Interrupted { .. } => ProviderError::Interrupted,
        error => ProviderError::Failed(error.to_string()),
    }
}

/// Nothing is changed without a guard.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(super) fn guardless(error: TreatmentError) -> ProviderError {
    ProviderError::Failed(format!("failed to {}", chain(&error)))
}
