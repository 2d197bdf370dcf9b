//! `loaded-latency`: round trips on a path that is first idle and then loaded, in one trial. Defines the threads of an end.
//!
//! Connections, in this order: those that make the load; one that makes load and carries in-band round trips; the standing
//! connection of transactions; one for the probes, when they use TCP. The client's clock defines the start of the load. The server
//! takes the arrival of the first probe for the client's start, so that the order and the delay of the two starts do not shift load
//! into the idle part.
use std::net::TcpStream;
use std::sync::Arc;

use netduel_model::sample::RoundTripReport;
use netduel_model::units::Nanos;
use netduel_model::workload::{Direction, LoadedLatency, ProbeProtocol, Role, RoundTrip, Timing, Wait};
use netduel_sys::clock;

use crate::counted::Counted;
use crate::end_context::EndContext;
use crate::in_band::{self, Phase};
use crate::job::Job;
use crate::pacing::Schedule;
use crate::stream_counter::StreamCounter;
use crate::tcp_settings::TcpSettings;
use crate::tcp_stream;
use crate::worker::Worker;
use crate::{round_trip, transaction};

/// Transactions on new connections, and in-band requests, per second each. draft-ietf-ippm-responsiveness allows 100 probes/s, half
/// of each kind.
const RESPONSIVENESS_RATE: u64 = 50;
/// Outstanding transactions, at most: at 50/s each may take 0.6 s.
const FOREIGN_THREADS: usize = LoadedLatency::FOREIGN_CONNECTIONS as usize;
/// Bytes of a request on a new connection, and of its response.
const FOREIGN_BYTES: usize = 64;
/// A probe counts as lost after this time, nanoseconds: long queues are the subject of the measurement.
const PROBE_LOST_AFTER_NS: u64 = 2_000_000_000;
/// How often the server's senders look for the first probe, nanoseconds.
const LOOK_NS: u64 = 1_000_000;

/// Indices of the first connection and stream of each kind.
#[derive(Clone, Copy)]
struct StreamIndices {
    in_band: usize,
    standing: usize,
    tcp_probe: usize,
    probe_stream: usize,
    foreign_stream: usize,
}

fn indices(settings: &LoadedLatency) -> StreamIndices {
    let streams = settings.streams as usize;
    StreamIndices {
        in_band: streams,
        standing: streams + 1,
        tcp_probe: streams + 2,
        probe_stream: streams + 1,
        foreign_stream: streams + 2,
    }
}

/// The jobs of an end.
pub(super) fn jobs(settings: &LoadedLatency, end: &EndContext<'_>) -> Vec<Job> {
    let indices = indices(settings);
    let mut jobs = probe_jobs(settings, end, indices);
    jobs.extend(load_jobs(settings, end, indices));
    jobs.extend(in_band_jobs(settings, end, indices));
    jobs.extend(separate_connection_jobs(settings, end, indices));
    jobs
}

fn sends(direction: Direction, role: Role) -> bool {
    match role {
        Role::Client => direction.client_sends(),
        Role::Server => direction.server_sends(),
    }
}

/// Small messages through both parts.
fn probe_jobs(settings: &LoadedLatency, end: &EndContext<'_>, indices: StreamIndices) -> Vec<Job> {
    let EndContext { role, token, sockets, .. } = *end;
    let timing = end.timing();
    let probe = RoundTrip {
        size: settings.size,
        outstanding: 1,
        wait: Wait::Block,
        rate: Some(settings.rate),
        timestamps: false,
        congestion: None,
    };
    let mut probe = round_trip::Settings::new(&probe, loaded_part(settings, timing));
    probe.idle = Some(Timing { duration: settings.idle, ..timing });
    probe.lost_after_ns = PROBE_LOST_AFTER_NS;
    let mut jobs = match settings.probe {
        ProbeProtocol::Udp => round_trip::udp_jobs(probe, role, token, &sockets.udp[0]),
        ProbeProtocol::Tcp => round_trip::tcp_jobs(probe, role, &sockets.tcp[indices.tcp_probe]),
    };
    for job in &mut jobs {
        job.streams = vec![indices.probe_stream];
        job.thread += indices.probe_stream;
    }
    jobs
}

/// The timing of the loaded part: the idle part counts as warm-up.
fn loaded_part(settings: &LoadedLatency, timing: Timing) -> Timing {
    Timing { warmup: Nanos(settings.idle.0.saturating_add(timing.warmup.0)), ..timing }
}

/// Waits until the load begins, and returns the start time of the client, nanoseconds of the monotonic clock.
fn wait_for_load(worker: &Worker, role: Role, probe_stream: usize, idle_ns: u64) -> u64 {
    let mut origin = worker.control.started_ns();
    if role == Role::Server {
        let first = |counter: &StreamCounter| counter.span().map(|span| span.0);
        while worker.control.is_running() {
            if let Some(first) = first(&worker.control.received[probe_stream]) {
                origin = first;
                break;
            }
            clock::sleep_until(clock::monotonic_ns() + LOOK_NS);
        }
    }
    // When the end is no longer running, the sender notices it, too, and ends its direction.
    let _ = worker.sleep_until(origin.saturating_add(idle_ns));
    origin
}

/// The streams of the load.
fn load_jobs(settings: &LoadedLatency, end: &EndContext<'_>, indices: StreamIndices) -> Vec<Job> {
    let EndContext { role, sockets, .. } = *end;
    let timing = end.timing();
    let other = if role == Role::Client { Role::Server } else { Role::Client };
    let (idle_ns, duration_ns) = (settings.idle.0, timing.duration.0);
    let stream = TcpSettings {
        rate_bps: None,
        volume: None,
        window: None,
        streams: settings.streams,
        engine: settings.engine,
        block: settings.block.0 as usize,
        duration_ns,
        both: settings.direction == Direction::Both,
    };
    let mut jobs = Vec::new();
    for (index, connection) in sockets.tcp[..settings.streams as usize].iter().enumerate() {
        if sends(settings.direction, other) {
            let connection = Arc::clone(connection);
            jobs.push(Job::infallible(index, index, move |worker| {
                tcp_stream::receive(worker, &connection, stream)
            }));
        }
        if sends(settings.direction, role) {
            let connection = Arc::clone(connection);
            jobs.push(Job::infallible(index, index, move |worker| {
                let origin = wait_for_load(worker, role, indices.probe_stream, idle_ns);
                let late_ns = origin.saturating_sub(worker.control.started_ns());
                let stream = TcpSettings { duration_ns: duration_ns.saturating_add(late_ns), ..stream };
                tcp_stream::send(worker, &connection, stream)
            }));
        }
    }
    jobs
}

/// The connection that makes load and carries round trips in its data.
fn in_band_jobs(settings: &LoadedLatency, end: &EndContext<'_>, indices: StreamIndices) -> Vec<Job> {
    let EndContext { role, sockets, .. } = *end;
    let timing = end.timing();
    let connection: Arc<TcpStream> = Arc::clone(&sockets.tcp[indices.in_band]);
    let makes_load = sends(settings.direction, role);
    let (idle_ns, duration_ns) = (settings.idle.0, timing.duration.0);
    let steady = settings.loaded_window(&timing);
    let rate = RESPONSIVENESS_RATE.min(settings.rate.0);
    let phase = move |origin: u64| Phase {
        load: origin + idle_ns..origin.saturating_add(duration_ns),
        sends: makes_load,
        requests: (role == Role::Client).then(|| Schedule::per_second(origin + idle_ns, rate)),
        steady: origin + steady.start..origin + steady.end,
    };
    let shared = in_band::shared();
    let mut jobs = Vec::new();
    if makes_load || role == Role::Client {
        let (connection, shared, phase) = (Arc::clone(&connection), Arc::clone(&shared), phase);
        jobs.push(Job::infallible(indices.in_band, indices.in_band, move |worker| {
            let origin = wait_for_load(worker, role, indices.probe_stream, idle_ns);
            in_band::send(worker, &connection, &phase(origin), &shared);
            Counted::Nothing
        }));
    }
    jobs.push(Job::infallible(indices.in_band, indices.in_band, move |worker| {
        let phase = phase(worker.control.started_ns());
        in_band::receive(worker, &connection, &phase, &shared)
    }));
    jobs
}

/// Transactions on new connections while the load runs.
fn separate_connection_jobs(
    settings: &LoadedLatency,
    end: &EndContext<'_>,
    indices: StreamIndices,
) -> Vec<Job> {
    let EndContext { role, token, sockets, .. } = *end;
    let timing = end.timing();
    let foreign = transaction::Settings {
        request: FOREIGN_BYTES,
        response: FOREIGN_BYTES,
        wait: Wait::Block,
        rate: Some(RESPONSIVENESS_RATE.min(settings.rate.0)),
        from_ns: settings.idle.0,
        timing: loaded_part(settings, timing),
        token,
        stream: indices.foreign_stream,
    };
    let standing = Arc::clone(&sockets.tcp[indices.standing]);
    match role {
        Role::Client => transaction::client_jobs(
            foreign,
            None,
            FOREIGN_THREADS,
            sockets.peer.clone(),
            standing,
            separate_connections_counted,
        ),
        Role::Server => transaction::server_jobs(foreign, None, FOREIGN_THREADS, sockets, standing),
    }
}

fn separate_connections_counted(report: RoundTripReport) -> Counted {
    report.parts.map_or(Counted::Nothing, |parts| Counted::Foreign(Box::new(parts)))
}
