//! Probes each way and TCP streams while somebody takes the path away: which threads an end needs for it. It takes nothing away
//! itself.
//!
//! The probes are a paced flow of datagrams each way, by the engines of `udp-stream`, whose receiver keeps every arrival. The
//! streams are those of `tcp-stream`; a thread reads their counters ten times as often as the supervisor.
use netduel_model::failover::{FINE_INTERVAL_NS, Failover, FailoverReport, PROBES_MAX};
use netduel_model::ids::Token;
use netduel_model::sample::IntervalSample;
use netduel_model::workload::{Direction, Role, Timing, Traffic, UdpOffload};
use netduel_sys::clock;

use crate::control::Control;
use crate::job::Job;
use crate::lane;
use crate::peer::Needs;
use crate::sockets::Sockets;
use crate::tcp_settings::TcpSettings;
use crate::tcp_stream;
use crate::udp_jobs;
use crate::udp_send::UdpSettings;
use crate::worker::Worker;

/// Arrivals that are kept of `count` probes: some come more than once.
fn room(count: u64) -> usize {
    (count.min(PROBES_MAX) * 2) as usize + 4096
}

/// What it needs of sockets and counters: the last lane is the probes'.
pub(crate) fn needs(settings: &Failover) -> Needs {
    let bulk = settings.streams;
    Needs { tcp: bulk, udp: 1, later: 0, lanes: bulk + 1, bulk, accounted: bulk }
}

/// Whether an end sends bulk data and whether it receives some.
pub(crate) fn directions(settings: &Failover, role: Role) -> (bool, bool) {
    if settings.streams == 0 {
        return (false, false);
    }
    let Failover { direction, .. } = settings;
    match role {
        Role::Client => (direction.client_sends(), direction.server_sends()),
        Role::Server => (direction.server_sends(), direction.client_sends()),
    }
}

/// The jobs of an end: probes first, so that the bulk data does not delay their start.
pub(crate) fn jobs(
    settings: &Failover,
    timing: Timing,
    role: Role,
    token: Token,
    pins: &[u16],
    sockets: &Sockets,
) -> Vec<Job> {
    let probe_lane = settings.streams as usize;
    let size = settings.size.0;
    let probes = UdpSettings {
        sends_apart: false,
        size: size as usize,
        rate_bps: Some(settings.rate.0.saturating_mul(size).saturating_mul(8)),
        flows: 1,
        offload: UdpOffload::None,
        datagrams: None,
        window: None,
        timing,
        trace: room(timing.duration.0.saturating_mul(settings.rate.0) / 1_000_000_000),
    };
    let mut jobs = udp_jobs::jobs_from(probe_lane, (true, true), probes, (role, token), pins, &sockets.udp);
    let (sends, receives) = directions(settings, role);
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
        let work = Box::new(move |worker: &mut Worker| {
            worker.fine_series = fine_series(&worker.control, timing.duration.0);
        });
        jobs.push(Job { stream: probe_lane, thread: probe_lane, work });
    }
    jobs
}

/// Reads what was received every [`FINE_INTERVAL_NS`] for the duration; once for all the intervals that a late thread missed, since
/// several reads at one moment would tell of a rate of zero that nobody saw.
fn fine_series(control: &Control, duration_ns: u64) -> Vec<IntervalSample> {
    let started = control.started_ns();
    let count = duration_ns / FINE_INTERVAL_NS;
    let mut series = Vec::with_capacity(count as usize);
    let (mut last_bytes, mut last_ns) = (0, 0);
    let mut index = 1;
    while index <= count {
        clock::sleep_until(started + index * FINE_INTERVAL_NS);
        if control.is_cut() {
            break;
        }
        let bytes = lane::total(control.bulk_received()).bytes;
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

/// The number of the first interval that ends after a time.
fn after(now_ns: u64) -> u64 {
    now_ns / FINE_INTERVAL_NS + 1
}

/// What the threads of an end recorded; absent of other traffic.
pub(crate) fn report(traffic: &Traffic, control: &Control, workers: &mut [Worker]) -> Option<FailoverReport> {
    let Traffic::Failover(settings) = traffic else { return None };
    let started_ns = control.started_ns();
    let mut report = FailoverReport {
        started_ns,
        probes_sent: control.sent[settings.streams as usize].read().messages,
        ..FailoverReport::default()
    };
    for worker in workers {
        report.series.append(&mut worker.fine_series);
        if let Some(trace) = worker.datagrams.iter_mut().find_map(|count| count.trace.take()) {
            report.arrivals = trace.arrivals(started_ns);
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::{FINE_INTERVAL_NS, after};

    #[test]
    fn intervals_that_a_late_thread_missed_are_not_made_up_for() {
        // Woken at 35 ms for the end of the first: the next read is at 40 ms.
        let numbers = [FINE_INTERVAL_NS, FINE_INTERVAL_NS * 7 / 2, FINE_INTERVAL_NS * 4 - 1].map(after);
        assert_eq!(numbers, [2, 4, 4]);
    }
}
