//! Baseline files: a repository holds them, which may come from another person.
use netduel_report::baseline::Baseline;
use netduel_store::format::{FORMAT, upgrade};

/// Parses a baseline.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Baseline::parse(text, FORMAT, upgrade) {
        Ok(baseline) => assert!(!baseline.header().id.as_str().is_empty(), "a run has a name"),
        Err(error) => {
            let length = error.to_string().chars().count();
            assert!((1..1000).contains(&length), "an invalid baseline has a short reason");
        }
    }
}
