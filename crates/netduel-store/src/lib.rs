//! Runs on disk: format, versions, crash safety.
