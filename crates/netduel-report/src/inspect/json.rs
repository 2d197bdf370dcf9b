//! An inspection as one JSON document. Fields are only ever added within a version; whatever else changes raises it.
use serde_json::{Value, json};

use super::{InspectedHost, InspectedPair, Inspection};
use crate::findings::accelerations;

/// Version of the document.
/// - 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// The document. `facts` is the snapshot as runs store it; ids of findings are stable.
pub fn document(inspection: &Inspection, program: &str) -> Value {
    let count = |severity| inspection.findings().filter(|(_, finding)| finding.severity == severity).count();
    json!({
        "format": "netduel-inspect",
        "format_version": FORMAT_VERSION,
        "program": program,
        "hosts": inspection.hosts.iter().map(host).collect::<Vec<_>>(),
        "pairs": inspection.pairs.iter().map(pair).collect::<Vec<_>>(),
        "failed": inspection.failed.iter().map(|(name, why)| json!({ "name": name, "reason": why })).collect::<Vec<_>>(),
        "counts": {
            "problem": count(crate::findings::Severity::Problem),
            "warning": count(crate::findings::Severity::Warning),
            "note": count(crate::findings::Severity::Note),
        },
    })
}

/// One host.
pub(crate) fn host(host: &InspectedHost) -> Value {
    let states: Vec<Value> = accelerations(&host.snapshot)
        .into_iter()
        .map(|(interface, state)| {
            let mut value = serde_json::to_value(&state).unwrap_or_default();
            if let Value::Object(fields) = &mut value {
                fields.insert("interface".to_owned(), Value::String(interface.name.clone()));
                fields.insert("text".to_owned(), Value::String(state.words()));
            }
            value
        })
        .collect();
    json!({
        "name": host.name,
        "place": host.place,
        "facts": host.snapshot,
        "accelerated_networking": states,
        "findings": host.findings,
    })
}

/// One pair.
pub(crate) fn pair(pair: &InspectedPair) -> Value {
    json!({ "client": pair.client, "server": pair.server, "findings": pair.findings })
}
