//! `tcp-rr`: round trips over one TCP connection.
use netduel_model::workload::RoundTrip;

use crate::end_context::EndContext;
use crate::job::Job;
use crate::round_trip::{self, Settings};

/// The jobs of an end.
pub(super) fn jobs(settings: &RoundTrip, end: &EndContext<'_>) -> Vec<Job> {
    round_trip::tcp_jobs(Settings::new(settings, end.timing()), end.role, &end.sockets.tcp[0])
}
