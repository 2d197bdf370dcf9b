//! The document that every command with `--json` prints when it fails without a result.
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope, ErrorInfo, Origin};
use super::parts::Interval;

/// A failed command: any command with `--json` that ends without a result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ErrorDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The error.
    pub error: ErrorInfo,
    /// Intervals of a quick test until the error; empty for other commands.
    pub intervals: Vec<Interval>,
}

impl Document for ErrorDocument {
    const NAME: &'static str = "netduel.error";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

impl ErrorDocument {
    /// Of an error.
    pub fn of(error: ErrorInfo, intervals: Vec<Interval>, origin: &Origin) -> Self {
        Self { envelope: Self::envelope(origin), error, intervals }
    }
}
