//! Facts of hosts, findings of each host, and findings of each pair, for `netduel inspect`, for the start of a run, and for
//! reports.
mod inspection;
mod text;

pub(crate) use inspection::HostFindings;
pub use inspection::{InspectedHost, InspectedPair, Inspection};
pub use text::text;
