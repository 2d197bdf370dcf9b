//! Beds: the text of a file that a user may have from elsewhere.
use netduel_model::bed::{self, Layout, RunBed};

/// Parses a bed, and lays a valid one out.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match bed::parse(text, "bed.toml") {
        Ok(bed) => {
            let layout = Layout::of(&bed);
            assert_eq!(layout.vms.len(), RunBed::planned(&bed).vms.len(), "a run has the VMs of its bed");
        }
        Err(errors) => assert!(!errors.to_string().is_empty(), "an invalid bed has a reason"),
    }
}
