//! Plans: the text of a file that a user may have from elsewhere.
use netduel_model::plan;

/// Parses a plan. A valid plan is the same after it was stored and read.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match plan::parse(text, "plan.toml") {
        Ok(plan) => {
            let stored = serde_json::to_string(&plan).expect("a plan can be stored");
            let read = serde_json::from_str(&stored).expect("a stored plan can be read");
            assert_eq!(plan, read);
        }
        Err(errors) => assert!(!errors.to_string().is_empty(), "an invalid plan has a reason"),
    }
}
