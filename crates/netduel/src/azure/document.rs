//! Prints beds as a JSON document.
use netduel_report::json::bed::{BedsDocument, DeployedBed};
use netduel_report::json::envelope::Document as _;

use crate::console::print_json;
use crate::exit::Failure;
use crate::program;

/// Beds that exist, and names of those that were removed.
pub fn print_beds(beds: Vec<DeployedBed>, removed: Vec<String>) -> Result<(), Failure> {
    print_json(&BedsDocument { envelope: BedsDocument::envelope(&program::origin()), beds, removed })
}
