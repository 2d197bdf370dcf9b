//! Steps of the wall clock within trials are detected, reported, and change no value. The clock is off by 0.2 s for about one
//! second per run, and is restored from the monotonic clock, even if the test fails.
use netduel_model::run::Run;
use netduel_sys::clock;
use netduel_test_support::skip;
use rustix::time::{ClockId, Timespec, clock_settime};

use super::bed::{Hosts, skipped_without_root, stored, turn};
use super::cap::{check_run, tcp};
use crate::support::{Bench, UnderWay};

const STEP_NS: i64 = 200_000_000;
/// Tolerance between a measured step and the actual one: both are read at slightly different times.
const TOLERANCE_NS: u64 = 10_000_000;

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

/// Runs four trials of about `trial_ms`: a step forward near the end of the first and the third, back near the beginning of the
/// others.
fn run_with_steps(hosts: &Hosts, bench: &Bench, workload: &str, trial_ms: u64) -> Run {
    let wall = WallClock::keep();
    let mut under_way = UnderWay::start(bench.netduel(hosts.words(bench, workload, 2)));
    let steps = [
        ("run truth-", 60, STEP_NS),
        ("trial   1/", 30, 0),
        ("trial   2/", 60, STEP_NS),
        ("trial   3/", 30, 0),
    ];
    for (line, percent, beside) in steps {
        under_way.wait_for(line);
        clock::sleep_until(clock::monotonic_ns() + trial_ms * percent * 10_000);
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
        run_with_steps(hosts, bench, workload, 1300)
    });
}

#[test]
fn clock_step_does_not_change_round_trips() {
    if skipped_without_the_right() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    let workload = "[[workloads]]\nname = \"trips\"\ntype = \"udp-rr\"\nduration = \"600 ms\"\nwarmup = \"0 ms\"\ncooldown = \"0 ms\"";
    let run = run_with_steps(&hosts, &bench, workload, 600);
    for trial in &run.trials {
        let report = trial.client.as_ref().unwrap().report.round_trips.as_ref().unwrap();
        // In a closed loop the round trips add up to the trial. A round trip affected by a step would make the sum too long by a
        // third of the trial, or wrap.
        let sum: u64 = report.histogram.pairs.iter().map(|(value, count)| value * count).sum();
        println!("{} round trips add up to {:.1} ms of 600", report.histogram.count, sum as f64 / 1e6);
        let last = trial.client.as_ref().unwrap().report.received.as_ref().unwrap().last_ns.unwrap();
        assert!(
            sum as f64 <= last as f64 * 1.001 && sum >= last / 4 * 3,
            "{sum} ns of round trips in {last} ns"
        );
        assert_eq!(report.timeouts, 0);
    }
    bench.assert_nothing_left();
}
