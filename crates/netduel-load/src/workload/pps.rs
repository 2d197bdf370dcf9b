//! `pps`: which threads make and receive its packets, with sockets or by kernel bypass.
use netduel_model::workload::Pps;

use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;
use crate::udp_jobs;
use crate::udp_send::UdpSettings;

/// The jobs of an end.
pub(super) fn jobs(packets: &Pps, mut end: EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    let settings = UdpSettings::of_flows(&packets.udp, end.timing(), end.is_unsegmented);
    match end.raw.take() {
        Some(raw) => Ok(raw.jobs(settings, end.token, &end.sockets.udp)),
        None => udp_jobs::checked(settings, &end),
    }
}
