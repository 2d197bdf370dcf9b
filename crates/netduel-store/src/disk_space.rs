//! Reserves disk space for the next trial before it runs, so that a full disk is detected before the trial and not after it.
use std::fs::File;
use std::io;

use netduel_model::plan::ResolvedPlan;
use netduel_model::workload::SAMPLE_INTERVAL_NS;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

/// The parts that every trial has: two observations with driver counters, and histograms of at most some thousand pairs.
const BASE_BYTES: u64 = 1 << 20;
/// A sample of a series as JSON: four numbers with their names, of which those of a trial of a day have 45 digits at most.
const SAMPLE_BYTES: u64 = 96;
/// Samples of one interval: there are four such series (sent and received at both ends) and one of round trips.
const INTERVAL_BYTES: u64 = 5 * SAMPLE_BYTES;
/// The reports of a stream at both ends, each with the kernel's account of the connection.
const STREAM_BYTES: u64 = 2 * 1024;

/// A stored arrival of a probe: three numbers of 8 digits; each may arrive twice.
const ARRIVAL_BYTES: u64 = 2 * 27;
/// A second of the fine series of a failover, at both ends.
const FINE_BYTES: u64 = 2 * 100 * SAMPLE_BYTES;

/// Disk space that the largest trial of a plan may need, bytes.
pub(crate) fn trial_bytes_max(plan: &ResolvedPlan) -> u64 {
    let workloads = plan.arms.iter().flat_map(|arm| &arm.workloads);
    let largest = workloads.map(|workload| {
        let facts = workload.traffic.facts();
        let streams = facts.sockets.count();
        let seconds = workload.timing.duration.0 / 1_000_000_000 + 1;
        let fine = if facts.events.is_empty() { 0 } else { FINE_BYTES };
        // The plan of a changed run file may have any number.
        let each_second = facts.arrivals_stored.saturating_mul(ARRIVAL_BYTES).saturating_add(fine);
        let kept = each_second.saturating_mul(seconds);
        let intervals = workload.timing.duration.0 / SAMPLE_INTERVAL_NS + 1;
        let reports = streams.saturating_mul(STREAM_BYTES);
        intervals.saturating_mul(INTERVAL_BYTES).saturating_add(reports).saturating_add(kept)
    });
    largest.max().unwrap_or_default().saturating_add(BASE_BYTES)
}

/// Reserves space beyond the end of a file without changing its length. On a file system without reservation only the free space is checked,
/// which another program may use before the trial is stored.
pub(crate) fn reserve(file: &File, end: u64, bytes: u64) -> io::Result<()> {
    // Not every file system compares a reservation with the limit, and a record beyond it is refused when the trial has been made.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| end.saturating_add(bytes) > limit) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    // A signal (Ctrl-C) during the call must not fail it: the coordinator decides how a run is interrupted.
    match retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes)) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => check_free(file, bytes),
        Err(error) => Err(error.into()),
    }
}

fn check_free(file: &File, bytes: u64) -> io::Result<()> {
    let filesystem = fstatvfs(file)?;
    // A file system without blocks (ramfs, some network file systems) does not report its free space.
    let tells = filesystem.f_blocks > 0;
    if tells && filesystem.f_bavail.saturating_mul(filesystem.f_frsize) < bytes {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use netduel_model::sample::{IntervalSample, RoundTripSample};
    use netduel_model::units::{Nanos, PerSecond};
    use netduel_model::workload::Traffic;

    use super::*;

    #[test]
    fn sample_of_a_trial_of_a_day_fits_into_its_space() {
        let (end_ns, length_ns) = (86_400_000_000_000, 9_999_999_999);
        let flow = IntervalSample { end_ns, length_ns, bytes: 99_999_999_999, messages: 9_999_999_999 };
        let trips = RoundTripSample { end_ns, count: 9_999_999_999, p50_ns: length_ns, max_ns: length_ns };
        let texts = [serde_json::to_string(&flow), serde_json::to_string(&trips)];
        for text in texts.map(|text| text.expect("JSON")) {
            // A separator is behind it.
            assert!((text.len() as u64) < SAMPLE_BYTES, "{text}");
        }
    }

    #[test]
    fn space_for_the_largest_numbers_of_a_plan_is_the_largest() {
        let text = include_str!("../../../plans/failover.toml");
        let mut plan = netduel_model::plan::parse(text, "plans/failover.toml").expect("a valid plan");
        let before = trial_bytes_max(&plan);
        for workload in plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
            workload.timing.duration = Nanos(u64::MAX);
            if let Traffic::Failover(settings) = &mut workload.traffic {
                settings.rate = PerSecond(u64::MAX);
            }
        }
        assert_eq!((before < u64::MAX / 2, trial_bytes_max(&plan)), (true, u64::MAX));
    }
}
