//! What hosts are and what is wrong with them, for `netduel inspect`, for a run that begins, and for the pages of a report: facts, findings
//! of each host, findings of each pair.
mod inspection;
mod text;

pub use inspection::{InspectedHost, InspectedPair, Inspection};
pub use text::text;
