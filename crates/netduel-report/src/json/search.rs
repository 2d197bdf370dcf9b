//! What searches for a rate did and found, in JSON: the goals, and every search with its steps.
use serde_json::{Value, json};

use crate::analysis::ArmSearch;

/// The searches of an arm. The keys beneath are those of the stored record.
pub(super) fn arm(search: &ArmSearch) -> Value {
    json!({
        "goals": search.goals,
        "trials": search
            .trials
            .iter()
            .map(|(block, report)| json!({
                "block": block,
                "steps": report.steps,
                "results": report.results,
                "end": report.end,
                "shown": report.stored_step,
            }))
            .collect::<Vec<_>>(),
    })
}
