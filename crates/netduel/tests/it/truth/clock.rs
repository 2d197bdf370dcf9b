//! Steps of the wall clock within trials are detected, reported, and change no value. The clock is off by 0.2 s for about the length
//! of two trials per run, and is restored from the monotonic clock, even if the test fails.
use netduel_model::run::Run;
use netduel_sys::clock;
use netduel_test_support::skip;
use rustix::time::{ClockId, Timespec, clock_settime};

use super::bed::{Hosts, received_bytes, skipped_without_root, stored, turn};
use super::cap::{check_run, tcp};
use super::delay::GIVEN_UP_NS;
use crate::support::{Bench, UnderWay, until};

const STEP_NS: i64 = 200_000_000;
/// Tolerance between a measured step and the actual one: both are read at slightly different times.
const TOLERANCE_NS: u64 = 10_000_000;
/// No round trip through two sockets and a device is shorter, nanoseconds.
const SHORTEST_NS: u64 = 1_000;

/// The wall clock relative to the monotonic clock, to be restored at the end.
struct WallClock {
    offset_ns: u64,
}

impl WallClock {
    fn keep() -> Self {
        Self { offset_ns: clock::realtime_ns() - clock::monotonic_ns() }
    }

    /// Sets the clock to its undisturbed time plus an offset.
    fn set_beside(&self, ns: i64) -> rustix::io::Result<()> {
        let now = (clock::monotonic_ns() + self.offset_ns).saturating_add_signed(ns);
        let time = Timespec {
            tv_sec: (now / 1_000_000_000).cast_signed(),
            tv_nsec: (now % 1_000_000_000).cast_signed(),
        };
        clock_settime(ClockId::Realtime, time)
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        // A clock that could not be set was not changed.
        let _ = self.set_beside(0);
    }
}

/// Whether the clock may be set here; prints the reason if not.
fn skipped_without_the_right() -> bool {
    if skipped_without_root() {
        return true;
    }
    let refused = WallClock::keep().set_beside(0).is_err();
    if refused {
        skip("the wall clock cannot be set here: CAP_SYS_TIME is missing");
    }
    refused
}

/// Runs four trials: a step forward in the first and the third, back in the others, each when the server's host has received
/// `begun_bytes` of the trial. A time after the last trial would be before this one on a busy machine. About a second of the trial is
/// left for a late step; if one is later, the other two trials still have theirs.
fn run_with_steps(hosts: &Hosts, bench: &Bench, workload: &str, begun_bytes: u64) -> Run {
    let wall = WallClock::keep();
    let mut under_way = UnderWay::start(bench.netduel(hosts.words(bench, workload, 2)));
    let steps = [("run truth-", STEP_NS), ("trial   1/", 0), ("trial   2/", STEP_NS), ("trial   3/", 0)];
    for (line, beside) in steps {
        under_way.wait_for(line);
        let has_begun = hosts.b.inside(|| {
            let begun = received_bytes("vb") + begun_bytes;
            // A step that is too late for the last trial finds the run at its end.
            until(|| received_bytes("vb") >= begun || under_way.child.try_wait().unwrap().is_some())
        });
        assert!(has_begun, "no traffic after {line:?}");
        wall.set_beside(beside).unwrap();
    }
    let finished = under_way.finish();
    drop(wall);
    let run = stored(bench, &finished);
    let read: Vec<i64> =
        run.trials.iter().map(|trial| trial.client.as_ref().unwrap().observation.clock_step_ns).collect();
    println!("steps as they were read: {read:?} ns");
    for made in [STEP_NS, -STEP_NS] {
        assert!(
            read.iter().any(|read| read.abs_diff(made) < TOLERANCE_NS),
            "no step of {made} ns in {read:?}"
        );
    }
    let report = bench.run(["report", "last"]).stdout;
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("clock step: the wall clock of host a was stepped by"), "{report}");
    run
}

#[test]
fn clock_step_does_not_change_rates() {
    if skipped_without_the_right() {
        return;
    }
    let _turn = turn();
    // The rate is compared with the token bucket, as without steps: an error of 0.2 s would be 20 % of the window.
    check_run(&tcp("100mbit", 1e8, 131_072), |hosts, bench, workload| {
        // Within the steady window, 0.32 s after the start.
        run_with_steps(hosts, bench, workload, 4_000_000)
    });
}

#[test]
fn clock_step_does_not_change_round_trips() {
    if skipped_without_the_right() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    let workload = "[[workloads]]\nname = \"trips\"\ntype = \"udp-rr\"\nduration = \"1 s\"\nwarmup = \"0 ms\"\ncooldown = \"0 ms\"";
    let run = run_with_steps(&hosts, &bench, workload, 50_000);
    for trial in &run.trials {
        let client = trial.client.as_ref().unwrap();
        let report = client.report.round_trips.as_ref().unwrap();
        // In a closed loop the round trips add up to the trial, less the time in which the client had no core. A round trip affected by
        // a step would make the sum too long by a fifth of the trial, or wrap, or be zero.
        let sum: u64 = report.histogram.pairs.iter().map(|(value, count)| value * count).sum();
        println!("{} round trips add up to {:.1} ms of 1000", report.histogram.count, sum as f64 / 1e6);
        let last = client.report.received.as_ref().unwrap().last_ns.unwrap();
        assert!(sum as f64 <= last as f64 * 1.001, "{sum} ns of round trips in {last} ns");
        assert!(report.histogram.min >= SHORTEST_NS, "a round trip of {} ns", report.histogram.min);
        assert_eq!(report.histogram.count, report.responses);
        assert_eq!(report.responses + report.timeouts, report.requests);
        // A request times out when the server has no core for so long. Then its time is part of the trial, besides the round trips.
        let (whole, wall) = (sum + report.timeouts * GIVEN_UP_NS, client.observation.wall_ns);
        assert!(whole as f64 <= wall as f64 * 1.001, "{} timeouts in {wall} ns", report.timeouts);
    }
    bench.assert_nothing_left();
}
