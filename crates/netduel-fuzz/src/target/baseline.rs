//! Baseline files: a repository holds them, which may come from another person.
use netduel_report::baseline::Baseline;
use netduel_store::format::upgrade;

/// Parses a baseline.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Baseline::parse(text, upgrade) {
        Ok(baseline) => assert!(!baseline.header().id.as_str().is_empty(), "a run has a name"),
        Err(error) => assert!(!error.to_string().is_empty(), "an invalid baseline has a reason"),
    }
}
