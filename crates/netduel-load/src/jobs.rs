//! Which threads an end needs for a workload, and what each of them takes along and brings back.
use netduel_model::ids::Token;
use netduel_model::workload::{Direction, Role, Traffic, UdpStream, Workload};

use crate::error::LoadError;
use crate::job::Job;
use crate::packets::raw::Raw;
use crate::sockets::Sockets;
use crate::tcp_settings::TcpSettings;
use crate::udp_send::UdpSettings;
use crate::{failover, loaded, peer, round_trip, tcp_crowd, tcp_stream, transaction, udp_jobs};

/// The jobs of an end.
pub(crate) fn of(
    workload: &Workload,
    role: Role,
    token: Token,
    sockets: &Sockets,
    (raw, sends_apart): (Option<Raw>, bool),
) -> Result<Vec<Job>, LoadError> {
    Ok(match &workload.traffic {
        Traffic::TcpStream(stream) => {
            let settings = TcpSettings {
                engine: stream.engine,
                block: stream.block.0 as usize,
                rate_bps: stream.rate.map(|rate| rate.0),
                streams: stream.streams,
                volume: stream.tuning.volume.map(|volume| volume.0),
                window: stream.tuning.window.map(|window| window.0 as usize),
                duration_ns: workload.timing.duration.0,
                both: stream.direction == Direction::Both,
            };
            let directions = workload.traffic.facts().directions(role);
            if tcp_crowd::serves(settings) {
                let threads = udp_jobs::threads(sockets.tcp.len(), peer::pins(workload, role));
                return tcp_crowd::jobs(directions, settings, &sockets.tcp, threads)
                    .map_err(|error| LoadError::system("make the connections non-blocking", error));
            }
            tcp_stream::jobs(directions, settings, &sockets.tcp)
        }
        Traffic::UdpStream(settings) => flows(settings, workload, role, token, sockets, (raw, sends_apart))?,
        Traffic::Pps(settings) => flows(&settings.udp, workload, role, token, sockets, (raw, sends_apart))?,
        Traffic::TcpRr(settings) => {
            let settings = round_trip::Settings::new(settings, workload.timing);
            round_trip::tcp_jobs(settings, role, &sockets.tcp[0])
        }
        Traffic::UdpRr(settings) => {
            let settings = round_trip::Settings::new(settings, workload.timing);
            round_trip::udp_jobs(settings, role, token, &sockets.udp[0])
        }
        Traffic::Failover(settings) => failover::jobs(settings, workload, role, token, sockets),
        Traffic::LoadedLatency(settings) => loaded::jobs(settings, workload.timing, role, token, sockets),
        Traffic::TcpCrr(settings) => transaction::jobs(settings, workload.timing, role, token, sockets),
    })
}

/// The jobs of flows of datagrams; those of packets may be sent or received by kernel bypass.
fn flows(
    udp: &UdpStream,
    workload: &Workload,
    role: Role,
    token: Token,
    sockets: &Sockets,
    (raw, sends_apart): (Option<Raw>, bool),
) -> Result<Vec<Job>, LoadError> {
    let settings = UdpSettings {
        size: udp.size.0 as usize,
        rate_bps: udp.rate.map(|rate| rate.0),
        flows: udp.flows,
        offload: udp.offload,
        sends_apart,
        datagrams: udp.tuning.volume.map(|volume| volume.0.div_ceil(udp.size.0)),
        window: udp.tuning.window.map(|window| window.0 as usize),
        timing: workload.timing,
        trace: 0,
    };
    if let Some(raw) = raw {
        return Ok(raw.jobs(settings, token, &sockets.udp));
    }
    let directions = workload.traffic.facts().directions(role);
    if directions.0 {
        udp_jobs::check_mtu(settings, &sockets.udp)?;
    }
    Ok(udp_jobs::jobs(directions, settings, role, token, peer::pins(workload, role), &sockets.udp))
}
