//! `tcp-stream`: which threads move its bytes.
use netduel_model::workload::{Direction, TcpStream};

use crate::end_context::EndContext;
use crate::error::LoadError;
use crate::job::Job;
use crate::tcp_settings::TcpSettings;
use crate::{tcp_epoll, tcp_stream, thread_count};

/// The jobs of an end.
pub(super) fn jobs(stream: &TcpStream, end: &EndContext<'_>) -> Result<Vec<Job>, LoadError> {
    let settings = TcpSettings {
        engine: stream.engine,
        block: stream.block.0 as usize,
        rate_bps: stream.rate.map(|rate| rate.0),
        streams: stream.streams,
        volume: stream.tuning.volume.map(|volume| volume.0),
        window: stream.tuning.window.map(|window| window.0 as usize),
        duration_ns: end.timing().duration.0,
        both: stream.direction == Direction::Both,
    };
    let connections = &end.sockets.tcp;
    if stream.engine.has_thread_each(stream.streams) {
        return Ok(tcp_stream::jobs(end.directions(), settings, connections));
    }
    let threads = thread_count::of(connections.len(), end.pins());
    tcp_epoll::jobs(end.directions(), settings, connections, threads)
        .map_err(|error| LoadError::system("make the connections non-blocking", error))
}
