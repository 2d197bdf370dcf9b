//! The threads of UDP flows: one per core, at most one per flow.
use std::net::UdpSocket;
use std::sync::Arc;

use netduel_model::workload::{Family, Role, UdpOffload};
use netduel_sys::udp;

use crate::datagram::{self, Kind, kinds};
use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;
use crate::thread_count;
use crate::udp_receive::{self, ReceiveFlow};
use crate::udp_send::{self, SendFlow, UdpSettings};
use crate::worker::Worker;

/// The jobs of the flows of an end: receivers first, so that they start first.
///
/// # Errors
/// [`LoadError::DatagramTooLarge`] when the datagrams do not fit the path's MTU.
pub(crate) fn checked(settings: UdpSettings, end: &EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    let directions = end.directions();
    if directions.0 {
        check_mtu(settings, &end.sockets.udp)?;
    }
    // The server starts first. What it sent at once would overflow the sockets of a client that does not read yet, and count as lost.
    let follows_peer = directions == (true, true) && end.role == Role::Server;
    Ok(jobs_from(0, directions, UdpSettings { follows_peer, ..settings }, end))
}

/// The jobs of flows whose stream indices start at `first_stream`.
pub(crate) fn jobs_from(
    first_stream: usize,
    (sends, receives): (bool, bool),
    settings: UdpSettings,
    end: &EndContext<'_>,
) -> Vec<Job> {
    let (token, connections) = (end.token, &end.sockets.udp);
    let ((data_out, end_out), (data_in, end_in)) = kinds(end.role);
    let threads = thread_count::of(connections.len(), end.pins());
    let sending = UdpSettings {
        offload: if settings.is_unsegmented { UdpOffload::None } else { settings.offload },
        ..settings
    };
    let flows = |thread: usize, data, end| {
        connections.iter().enumerate().skip(thread).step_by(threads).map(move |(stream, socket)| {
            let magic = |kind| datagram::magic(token, stream as u32, kind);
            (first_stream + stream, Arc::clone(socket), magic(data), magic(end))
        })
    };
    let mut jobs = Vec::new();
    for thread in 0..threads {
        let thread_flows = (thread..connections.len()).step_by(threads);
        let streams: Vec<usize> = thread_flows.map(|flow| first_stream + flow).collect();
        if receives {
            let flows: Vec<ReceiveFlow> = flows(thread, data_in, end_in)
                .enumerate()
                .map(|(index, (stream, socket, magic, end_magic))| {
                    let flow = (thread + index * threads) as u32;
                    let probe_magic = datagram::magic(token, flow, Kind::SegmentationProbe);
                    ReceiveFlow { stream, socket, magic, end_magic, probe_magic }
                })
                .collect();
            let work = Box::new(move |worker: &mut Worker| udp_receive::receive(worker, flows, settings));
            let (streams, thread) = (streams.clone(), first_stream + thread);
            jobs.push(Job { streams, thread, follows_peer: false, work });
        }
        if sends {
            let flows: Vec<SendFlow> = flows(thread, data_out, end_out)
                .map(|(stream, socket, magic, end_magic)| SendFlow { stream, socket, magic, end_magic })
                .collect();
            let work = Box::new(move |worker: &mut Worker| udp_send::send(worker, flows, sending, None));
            let follows_peer = settings.follows_peer;
            jobs.push(Job { streams, thread: first_stream + thread, follows_peer, work });
        }
    }
    jobs
}

/// Rejects datagrams that the kernel cannot segment for this path: with `UDP_SEGMENT` each must fit the MTU.
fn check_mtu(settings: UdpSettings, connections: &[Arc<UdpSocket>]) -> Result<(), LoadError> {
    if settings.is_unsegmented || settings.offload == UdpOffload::None {
        return Ok(());
    }
    for socket in connections {
        let of_socket = |error| LoadError::system("read the MTU of the path (IP_MTU)", error);
        let family = match socket.local_addr().map_err(of_socket)? {
            std::net::SocketAddr::V4(_) => Family::Ipv4,
            // IPv4 in an IPv6 socket has the smaller headers; the send call reports what is too large.
            std::net::SocketAddr::V6(address) if address.ip().to_ipv4_mapped().is_some() => Family::Ipv4,
            std::net::SocketAddr::V6(_) => Family::Ipv6,
        };
        let mtu = udp::path_mtu(socket).map_err(of_socket)?;
        let most = mtu.saturating_sub(family.udp_headers()) as usize;
        if settings.size > most {
            return Err(LoadError::DatagramTooLarge { size: settings.size, mtu, most });
        }
    }
    Ok(())
}
