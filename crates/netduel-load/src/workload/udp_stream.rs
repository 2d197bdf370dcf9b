//! `udp-stream`: which threads move its datagrams.
use netduel_model::workload::UdpStream;

use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;
use crate::udp_jobs;
use crate::udp_send::UdpSettings;

/// The jobs of an end.
pub(super) fn jobs(flows: &UdpStream, end: &EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    let settings = UdpSettings::of_flows(flows, end.timing(), false);
    udp_jobs::checked(settings, end)
}
