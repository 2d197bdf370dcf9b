//! CPU time: the values that agents report for their process and their host, and the derived cost per gigabyte, against the
//! kernel's own accounts, which the test samples with the time of each reading.
//!
//! Busy time is the time of all cores that is neither idle nor steal, as `/proc/stat` has it. The classes of that work are an estimate where
//! the kernel samples at the timer tick (CONFIG_TICK_CPU_ACCOUNTING). The run time of processes (`cpuacct.usage`) is exact, but excludes
//! soft interrupts on an idle core. Both are printed beside it, and their difference is not an error of the measurement.
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use netduel_model::metric::Metric;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::Workload;
use netduel_report::analysis::value_of;
use netduel_sys::clock;
use netduel_sys::namespace::{self, Kind};
use netduel_test_support::not_compared;
use rustix::process::Pid;

use super::bed::{Hosts, Namespace, prefer_this_thread, received_bytes, skipped_without_root, turn};
use crate::support::Bench;

/// Tolerance between a measured value and the kernel's account.
const TOLERANCE: f64 = 0.02;
/// Work of a core that no class has, up to which it counts as rounding in a trial, seconds.
const ROUNDING_S: f64 = 0.02;
/// Time between two readings, nanoseconds.
const PERIOD_NS: u64 = 5_000_000;
/// A longer time between two readings does not show when a trial began or ended, nanoseconds.
const GAP_NS: u64 = 3 * PERIOD_NS;
/// What `vb` receives before and between the trials of a run, at most, bytes.
const BETWEEN_BYTES: u64 = 100_000;

/// The kernel's accounts at a time, nanoseconds since an arbitrary start.
#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    at_ns: u64,
    /// All cores: user, system and interrupts of `/proc/stat`.
    classes: u64,
    /// All cores: idle, waiting for IO and steal of `/proc/stat`.
    idle: u64,
    /// All processes, exact; 0 where this account is not mounted.
    tasks: u64,
    /// Both agents: `utime` and `stime` of `/proc/PID/stat`.
    agents: u64,
    /// What interface `vb` received, bytes.
    bytes: u64,
}

struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Reading>>,
}

impl Sampler {
    /// Samples in namespace `side`, and finds the agents among the processes of `bench`.
    fn start(side: &Namespace, bench: Arc<Bench>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, inside) = (Arc::clone(&stop), side.descriptor());
        let (first, started) = channel();
        let thread = std::thread::spawn(move || {
            namespace::enter(Kind::Net, inside.as_fd()).unwrap();
            prefer_this_thread();
            let mut agents: Vec<(Pid, u64)> = Vec::new();
            let mut readings = Vec::new();
            let mut is_last = false;
            while !is_last {
                // One more reading after the end.
                is_last = stopped.load(Ordering::Relaxed);
                if agents.len() < 2 {
                    agents = bench.find(&["netduel", "agent"]).into_iter().map(|pid| (pid, 0)).collect();
                }
                for (pid, used) in &mut agents {
                    // The CPU time of an ended process no longer changes.
                    *used = process_ns(*pid).unwrap_or(*used);
                }
                let at_ns = clock::monotonic_ns();
                let [classes, idle] = host_ns();
                readings.push(Reading {
                    at_ns,
                    classes,
                    idle,
                    tasks: exact_ns().unwrap_or(0),
                    agents: agents.iter().map(|(_, used)| used).sum(),
                    bytes: received_bytes("vb"),
                });
                // The creator waits for the first reading only.
                let _ = first.send(());
                clock::sleep_until(clock::monotonic_ns() + PERIOD_NS);
            }
            readings
        });
        started.recv().unwrap();
        Self { stop, thread }
    }

    fn finish(self) -> Vec<Reading> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second()
}

/// User, nice, system, irq and softirq, and idle, iowait and steal of the line of all cores.
fn host_ns() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u64> =
        text.lines().next().unwrap().split_whitespace().skip(1).map(|field| field.parse().unwrap()).collect();
    [&[0, 1, 2, 5, 6][..], &[3, 4, 7]]
        .map(|of| of.iter().map(|index| fields[*index]).sum::<u64>() * tick_ns())
}

/// Fields 14 and 15 of a process's `stat`; absent when it has ended.
fn process_ns(pid: Pid) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let mut after_name = text.rsplit(')').next()?.split_whitespace().skip(14 - 3);
    let mut next = || after_name.next()?.parse::<u64>().ok();
    Some((next()? + next()?) * tick_ns())
}

/// The exact account of all processes: from version 1 of control groups. Version 2 uses the values of `/proc/stat` at its root.
fn exact_ns() -> Option<u64> {
    std::fs::read_to_string("/sys/fs/cgroup/cpuacct/cpuacct.usage").ok()?.trim().parse().ok()
}

/// The account at a time, interpolated between two readings.
fn at(readings: &[Reading], ns: u64, of: fn(&Reading) -> u64) -> f64 {
    let next = readings.partition_point(|reading| reading.at_ns < ns).clamp(1, readings.len() - 1);
    let (before, after) = (&readings[next - 1], &readings[next]);
    let share = (ns as f64 - before.at_ns as f64) / (after.at_ns - before.at_ns) as f64;
    of(before) as f64 + share.clamp(0.0, 1.0) * (of(after) as f64 - of(before) as f64)
}

/// The reported values of the agents and the accounts for the same time; sums over the compared trials.
#[derive(Debug, Default)]
struct Sums {
    trials: u32,
    process: [f64; 2],
    host: [f64; 2],
    classes: f64,
    tasks: f64,
    /// What may be rounding in both accounts of the host.
    rounding: f64,
    per_gigabyte: [f64; 2],
}

#[test]
fn cpu_time_agrees_with_the_kernels_accounts() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Arc::new(Bench::new()), Hosts::on_a_wire());
    let sampler = Sampler::start(&hosts.b, Arc::clone(&bench));
    let stream = "[[workloads]]\nname = \"work\"\ntype = \"tcp-stream\"\nengine = \"copy\"\ncongestion = \"cubic\"\nduration = \"2 s\"";
    let run = hosts.run(&bench, stream, 2);
    let readings = sampler.finish();
    let mut sums = Sums::default();
    let mut before = readings[0].bytes;
    for trial in &run.trials {
        before = add(&mut sums, &readings, before, trial, &run.header.plan.arms[0].workloads[0]);
    }
    bench.assert_nothing_left();
    if sums.trials == 0 {
        not_compared("CPU time: readings were late when every trial began or ended");
        return;
    }
    let off = |[read, known]: [f64; 2]| read / known - 1.0;
    let rounding = sums.rounding / sums.host[1];
    if rounding > TOLERANCE {
        not_compared("CPU time of the host: its cores are so many that rounding exceeds the tolerance");
        return;
    }
    let [process, host, per_gigabyte] = [sums.process, sums.host, sums.per_gigabyte];
    println!(
        "processes: read {:.3} s, the kernel says {:.3} s ({:+.2} %)\nhost: read {:.3} s, the kernel says {:.3} s ({:+.2} %, {:.2} % \
         may be rounding); its classes have {:.3} s, processes alone, exactly: {:.3} s\nper gigabyte: read {:.4} s, the kernel's accounts say {:.4} s ({:+.2} %)",
        process[0],
        process[1],
        off(process) * 100.0,
        host[0],
        host[1],
        off(host) * 100.0,
        rounding * 100.0,
        sums.classes,
        sums.tasks,
        per_gigabyte[0] / f64::from(sums.trials),
        per_gigabyte[1] / f64::from(sums.trials),
        off(per_gigabyte) * 100.0
    );
    for (pair, rounding) in [(process, 0.0), (host, rounding), (per_gigabyte, rounding)] {
        assert!(off(pair).abs() <= TOLERANCE + rounding, "{sums:?}");
    }
}

/// Adds a trial whose traffic starts after `vb` received `before` bytes, unless readings were late when it began or ended; returns that
/// number for the next trial.
fn add(sums: &mut Sums, readings: &[Reading], before: u64, trial: &Trial, workload: &Workload) -> u64 {
    let ends: Vec<&TrialEnd> = [&trial.client, &trial.server].into_iter().flatten().collect();
    // The server's observation starts first and ends last, so the report uses it for a shared machine.
    let server = trial.server.as_ref().unwrap();
    let carried = server.observation.interfaces.iter().find(|interface| interface.name == "vb").unwrap();
    let next = before + carried.rx_bytes;
    let first = readings.partition_point(|reading| reading.bytes <= before + BETWEEN_BYTES);
    let started_ns = readings[first].at_ns - server.report.received.as_ref().unwrap().first_ns.unwrap();
    let ended_ns = started_ns + server.observation.wall_ns;
    let after = |ns: u64| readings.partition_point(|reading| reading.at_ns < ns);
    // A thread that loses its core within a reading has values of different times: then the next reading is late.
    let is_late = |index: usize| {
        let around = readings.get(index.saturating_sub(2)..index + 2);
        around.is_none_or(|around| around.windows(2).any(|two| two[1].at_ns - two[0].at_ns > GAP_NS))
    };
    if [after(started_ns), first, after(ended_ns)].into_iter().any(is_late) {
        println!("not compared, readings were late when the trial began or ended");
        return next;
    }
    sums.trials += 1;
    let known = |of: fn(&Reading) -> u64| (at(readings, ended_ns, of) - at(readings, started_ns, of)) / 1e9;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let process =
        ends.iter().map(|end| end.observation.process.user_ns + end.observation.process.system_ns).sum();
    sums.process[0] += seconds(process);
    sums.process[1] += known(|reading| reading.agents);
    let cores = server.observation.cores.len() as f64;
    let busy = cores * seconds(server.observation.wall_ns) - known(|reading| reading.idle);
    sums.host[0] += seconds(server.observation.busy_ns());
    sums.host[1] += busy;
    sums.classes += known(|reading| reading.classes);
    sums.rounding += cores * ROUNDING_S;
    sums.tasks += known(|reading| reading.tasks);
    let gigabytes = server.report.received.as_ref().unwrap().bytes as f64 / 1e9;
    sums.per_gigabyte[0] += value_of(Metric::CpuPerGigabyte, workload, trial, true).unwrap();
    sums.per_gigabyte[1] += busy / gigabytes;
    next
}
