//! The names of messages in errors: their tags in the protocol.
use serde::Serialize;

/// The tag of a message; empty for what has none.
pub(super) fn name_of(message: &impl Serialize) -> String {
    let message = serde_json::to_value(message).unwrap_or_default();
    message["type"].as_str().unwrap_or_default().to_owned()
}
