//! `failover`: UDP probes in both directions and TCP streams while the path is interrupted. Defines the threads of an end; the
//! events are not caused here.
//!
//! The probes are a paced UDP flow in each direction, by the engines of `udp-stream`, whose receiver records every arrival. The
//! streams are those of `tcp-stream`; a thread reads their counters ten times as often as the supervisor.
use netduel_model::failover::{FINE_INTERVAL_NS, PROBES_MAX};
use netduel_model::sample::IntervalSample;
use netduel_model::workload::{Direction, Failover, UdpOffload};
use netduel_sys::clock;

use crate::control::Control;
use crate::counted::Counted;
use crate::end_context::EndContext;
use crate::job::Job;
use crate::stream_counter;
use crate::tcp_settings::TcpSettings;
use crate::tcp_stream;
use crate::udp_jobs;
use crate::udp_send::UdpSettings;
use crate::worker::Worker;

/// Capacity for the arrivals of `count` probes, with duplicates.
fn room(count: u64) -> usize {
    (count.min(PROBES_MAX) * 2) as usize + 4096
}

/// The jobs of an end: probes first, so that bulk data does not delay their start.
pub(super) fn jobs(settings: &Failover, end: &EndContext<'_>) -> Vec<Job> {
    let (timing, sockets) = (end.timing(), end.sockets);
    let probe_stream = settings.streams as usize;
    let size = settings.size.0;
    let probes = UdpSettings {
        is_unsegmented: false,
        size: size as usize,
        rate_bps: Some(settings.rate.0.saturating_mul(size).saturating_mul(8)),
        flows: 1,
        offload: UdpOffload::None,
        datagrams: None,
        window: None,
        timing,
        trace: room(timing.duration.0.saturating_mul(settings.rate.0) / 1_000_000_000),
        follows_peer: false,
    };
    let probe_jobs = udp_jobs::jobs_from(probe_stream, (true, true), probes, end).into_iter();
    let mut jobs: Vec<Job> = probe_jobs
        .map(|job| job.map(move |worker, counted| of_probes(worker, probe_stream, counted)))
        .collect();
    let (sends, receives) = end.directions();
    let stream = TcpSettings {
        engine: settings.engine,
        block: settings.block.0 as usize,
        rate_bps: None,
        volume: None,
        window: None,
        streams: settings.streams,
        duration_ns: timing.duration.0,
        both: settings.direction == Direction::Both,
    };
    jobs.extend(tcp_stream::jobs((sends, receives), stream, &sockets.tcp));
    if receives {
        jobs.push(Job::infallible(probe_stream, probe_stream, move |worker| {
            Counted::FineSeries(fine_series(&worker.control, timing.duration.0))
        }));
    }
    jobs
}

/// Reads the received bytes every [`FINE_INTERVAL_NS`] for the duration. A late thread reads once for all intervals that it missed:
/// several readings at one moment would show a rate of zero.
fn fine_series(control: &Control, duration_ns: u64) -> Vec<IntervalSample> {
    let started = control.started_ns();
    let count = duration_ns / FINE_INTERVAL_NS;
    let mut series = Vec::with_capacity(count as usize);
    let (mut last_bytes, mut last_ns) = (0, 0);
    let mut index = 1;
    while index <= count {
        clock::sleep_until(started + index * FINE_INTERVAL_NS);
        if control.is_aborted() {
            break;
        }
        let bytes = stream_counter::total(control.bulk_received()).bytes;
        let end_ns = clock::monotonic_ns() - started;
        series.push(IntervalSample {
            end_ns,
            length_ns: end_ns - last_ns,
            bytes: bytes - last_bytes,
            messages: 0,
        });
        (last_bytes, last_ns) = (bytes, end_ns);
        index = after(end_ns);
    }
    series
}

/// The number of the first interval that ends after `now_ns`.
fn after(now_ns: u64) -> u64 {
    now_ns / FINE_INTERVAL_NS + 1
}

/// Converts the result of a flow's sender or receiver to that of probes.
fn of_probes(worker: &Worker, probe_stream: usize, counted: Counted) -> Counted {
    match counted {
        Counted::SentDatagrams { count, .. } => {
            Counted::SentProbes { count, probes: worker.control.sent[probe_stream].read().messages }
        }
        Counted::ReceivedDatagrams { mut flows, .. } => {
            let trace = flows.iter_mut().find_map(|flow| flow.trace.take());
            let arrivals = trace.map(|trace| trace.arrivals(worker.control.started_ns())).unwrap_or_default();
            Counted::ReceivedProbes { flows, arrivals }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::{FINE_INTERVAL_NS, after};

    #[test]
    fn late_thread_skips_the_intervals_that_it_missed() {
        // Woken at 35 ms for the end of the first: the next read is at 40 ms.
        let numbers = [FINE_INTERVAL_NS, FINE_INTERVAL_NS * 7 / 2, FINE_INTERVAL_NS * 4 - 1].map(after);
        assert_eq!(numbers, [2, 4, 4]);
    }
}
