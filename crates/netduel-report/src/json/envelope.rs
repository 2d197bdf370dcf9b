//! What every JSON document begins with, and the times and errors in it. Nothing here reads a clock: the caller does.
use schemars::JsonSchema;
use serde::Serialize;

use crate::words;

/// Which program makes a document, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Version of the program, for example `0.1.0`.
    pub program_version: String,
    /// Wall clock, milliseconds since the Unix epoch.
    pub created_unix_ms: u64,
}

/// A type of document: its name and the version of its keys.
pub trait Document: Serialize + JsonSchema {
    /// Name, for example `netduel.report`.
    const NAME: &'static str;
    /// Version. A removed or renamed key, another type of a value or another unit needs the next one.
    const VERSION: u32;
    /// The newest version that a release of netduel prints; 0 when none prints the document. It only gains keys; a newer version may change.
    const RELEASED: u32;

    /// What a document of this type begins with.
    fn envelope(origin: &Origin) -> Envelope {
        Envelope {
            document: Self::NAME,
            version: Self::VERSION,
            program_version: origin.program_version.clone(),
            created: iso_8601(origin.created_unix_ms),
            created_unix_ms: origin.created_unix_ms,
        }
    }
}

/// The first keys of every document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Envelope {
    /// Type of the document.
    pub document: &'static str,
    /// Version of this type of document.
    pub version: u32,
    /// Version of the netduel that made the document.
    pub program_version: String,
    /// When the document was made: ISO 8601, UTC.
    pub created: String,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub created_unix_ms: u64,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorInfo {
    /// The error in words, as on standard error: what failed, to what, why, and the remedy.
    pub message: String,
    /// The innermost cause, for example an error of the operating system; null when the message has no separate cause.
    pub cause: Option<String>,
    /// Exit code of the command; see exit-codes.md.
    pub exit_code: i32,
}

/// A time as ISO 8601 in UTC with milliseconds: `2026-11-21T10:30:07.250Z`.
pub fn iso_8601(unix_ms: u64) -> String {
    let seconds = words::date_and_time(unix_ms);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), unix_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_8601_with_milliseconds() {
        assert_eq!(iso_8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_8601(1_795_343_407_045), "2026-11-22T10:30:07.045Z");
    }
}
