//! `udp-rr`: round trips as UDP datagrams.
use netduel_model::workload::RoundTrip;

use crate::end_context::EndContext;
use crate::job::Job;
use crate::round_trip::{self, Settings};

/// The jobs of an end.
pub(super) fn jobs(settings: &RoundTrip, end: &EndContext<'_>) -> Vec<Job> {
    round_trip::udp_jobs(Settings::new(settings, end.timing()), end.role, end.token, &end.sockets.udp[0])
}
