//! Failures as they are sent to the coordinator: a kind, and a message that completes "failed to ...". It knows no work.
use netduel_control::agent::{FailureKind, WorkError};
use netduel_load::{Cause, LoadError};

use crate::error_chain::chain;

/// The host lacks a requirement.
pub(crate) fn environment(error: impl std::error::Error) -> WorkError {
    WorkError { kind: FailureKind::Environment, message: format!("failed to {}", chain(&error)) }
}

/// This host cannot do what the plan requires.
pub(crate) fn usage(message: String) -> WorkError {
    WorkError { kind: FailureKind::Usage, message }
}

/// The traffic failed, or could not start.
#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
pub(crate) fn traffic(error: LoadError) -> WorkError {
    let kind = match error.cause() {
        Cause::Settings => FailureKind::Usage,
        Cause::Host => FailureKind::Environment,
        Cause::Traffic => FailureKind::Traffic,
    };
    WorkError { kind, message: format!("failed to {}", chain(&error)) }
}

/// A request came out of order: a bug in coordinator or agent.
pub(crate) fn misplaced(what: &str, needs: &str) -> WorkError {
    WorkError { kind: FailureKind::Internal, message: format!("{what} was requested before {needs}") }
}
