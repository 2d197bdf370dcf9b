//! The JSON Schema of a bed.
use serde_json::Value;

use super::check::{SUBNETS_MAX, ZONE_MAX};
use super::spec::BedSpec;

/// The JSON Schema (2020-12) of a bed, for editors and for the guide. It knows keys, types and ranges; what goes together with what only
/// [`parse`](super::parse) knows.
pub fn schema() -> Value {
    let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<BedSpec>().to_value();
    for (key, most) in [("zone", ZONE_MAX), ("subnets", SUBNETS_MAX)] {
        schema["properties"][key]["minimum"] = 1.into();
        schema["properties"][key]["maximum"] = most.into();
    }
    schema
}
