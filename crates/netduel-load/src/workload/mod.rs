//! The table of workloads: which jobs an end runs for its settings. The only place of this crate that lists the types: a new one is
//! a file and a line.
mod failover;
mod icmp_rr;
mod loaded_latency;
mod pps;
mod tcp_crr;
mod tcp_rr;
mod tcp_stream;
mod udp_rr;
mod udp_stream;

use netduel_model::workload::Traffic;

use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;

/// The jobs of an end.
///
/// # Errors
/// When the host or the path cannot carry the workload.
pub(crate) fn jobs(end: EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    match &end.workload.traffic {
        Traffic::TcpStream(settings) => tcp_stream::jobs(settings, &end),
        Traffic::UdpStream(settings) => udp_stream::jobs(settings, &end),
        Traffic::Pps(settings) => pps::jobs(settings, end),
        Traffic::TcpRr(settings) => Ok(tcp_rr::jobs(settings, &end)),
        Traffic::UdpRr(settings) => Ok(udp_rr::jobs(settings, &end)),
        Traffic::IcmpRr(settings) => Ok(icmp_rr::jobs(settings, &end)),
        Traffic::TcpCrr(settings) => Ok(tcp_crr::jobs(settings, &end)),
        Traffic::LoadedLatency(settings) => Ok(loaded_latency::jobs(settings, &end)),
        Traffic::Failover(settings) => Ok(failover::jobs(settings, &end)),
    }
}
