//! What hosts are and what is wrong with them, for `netduel inspect`, for a run that begins, and for the pages of a report: facts, findings
//! of each host, findings of each pair.
mod inspection;
mod json;
mod text;

pub use inspection::{InspectedHost, InspectedPair, Inspection};
pub use json::{FORMAT_VERSION, document};
pub(crate) use json::{host as host_document, pair as pair_document};
pub use text::text;
