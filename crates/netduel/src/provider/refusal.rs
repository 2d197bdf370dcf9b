//! Errors of `az` as those of the provider: which of them a stop of the VM may cure.
use netduel_agent::treatment::TreatmentError;
use netduel_azure::az::CallError;
use netduel_azure::az::cause::Cause;
use netduel_azure::resource::Place;
use netduel_control::coordinator::ProviderError;

use super::home::Home;
use crate::exit::chain;

/// Codes of Azure for a change that it does not make while the VM runs. No stop of a VM cures others, as a missing permission, a lock, a policy
/// or another operation that has not ended.
const OF_RUNNING_VMS: [&str; 2] = ["NicInUse", "OperationNotAllowed"];

/// An error of `az` in a change. What Azure refuses of a running VM may be allowed when it is stopped. `words` are those of the change.
pub(super) fn refused(error: CallError, words: &str) -> ProviderError {
    let may_be_cured = match &error {
        CallError::NotTaken { .. }
        | CallError::NotPlaced { .. }
        | CallError::Failed { cause: Cause::Unchangeable { .. }, .. } => true,
        CallError::Failed { cause: Cause::Other { code: Some(code), .. }, .. } => {
            OF_RUNNING_VMS.contains(&code.as_str())
        }
        _ => false,
    };
    if may_be_cured {
        return ProviderError::WhileRunning(error.to_string());
    }
    match failed(error) {
        ProviderError::Failed(reason) => ProviderError::Failed(format!("{words}: {reason}")),
        other => other,
    }
}

/// A refusal of a change although the VM was stopped, with what may show the reason. `place` is that of the resource.
pub(super) fn with_log(error: ProviderError, place: &Place, home: &Home) -> ProviderError {
    match error {
        ProviderError::WhileRunning(reason) => {
            let log = format!("az monitor activity-log list --resource-group {}", place.group);
            ProviderError::WhileRunning(format!("{reason}; `{}` may show why", home.command(&log)))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_that_may_show_the_reason_is_that_of_the_named_subscription() {
        let place = Place { subscription: Some("2".to_owned()), group: "g".to_owned() };
        for (named, command) in [
            (None, "`az monitor activity-log list --resource-group g`"),
            (Some("paid"), "`az monitor activity-log list --resource-group g --subscription paid`"),
        ] {
            let home = Home { named: named.map(str::to_owned), ..Home::default() };
            let error = with_log(ProviderError::WhileRunning("no".to_owned()), &place, &home);
            assert_eq!(error.to_string(), format!("no; {command} may show why"));
        }
    }

    #[test]
    fn stop_of_a_vm_is_for_refusals_that_it_may_cure() {
        let stops = |cause: Cause| {
            let error = CallError::Failed { command: "az".to_owned(), cause };
            matches!(refused(error, "n on"), ProviderError::WhileRunning(_))
        };
        let coded = |code: &str| Cause::Other { code: Some(code.to_owned()), message: "x".to_owned() };
        for code in ["NicInUse", "OperationNotAllowed"] {
            assert!(stops(coded(code)), "{code}");
        }
        assert!(stops(Cause::Unchangeable { message: "x".to_owned(), down: None }));
        for code in [
            "AnotherOperationInProgress",
            "AuthorizationFailed",
            "RequestDisallowedByPolicy",
            "ResourceNotFound",
            "ScopeLocked",
        ] {
            assert!(!stops(coded(code)), "{code}");
        }
        assert!(!stops(Cause::Throttled { message: "x".to_owned() }));
        assert!(!stops(Cause::Other { code: None, message: "x".to_owned() }));
        assert!(matches!(
            refused(CallError::NotTaken { nic: "n".to_owned(), wanted: "on" }, "n on"),
            ProviderError::WhileRunning(_)
        ));
    }
}
