//! Each bottleneck is created and must be reported: a window, a buffer, a core, a queue, a cap, a burst, a dropping policy, a
//! program that is stopped repeatedly; and "unknown" when nothing shows the cause.
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_model::observation::CoreTime;
use netduel_model::run::Run;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::Role;
use netduel_report::analysis::{Cause, Limit, limit_of};
use netduel_sys::clock;
use netduel_test_support::not_compared;
use rustix::process::{Pid, Signal};

use super::bed::{Hosts, Namespace, prefer_this_thread, skipped_without_root, turn, wire};
use super::hop::Hop;
use super::queue::cap;
use crate::support::{Bench, signal_those_left};

/// Delay of each frame in a hop, nanoseconds: a path on which windows and buffers matter.
const HOLD_NS: u64 = 5_000_000;
/// An end whose threads waited for a core for a smaller share of their time had enough CPU time.
const WAITED_LITTLE: f64 = 0.2;
/// From this share of its time on, a core had no time left.
const FULL: f64 = 0.9;
/// Number of spinning programs beside the tested one, with the same priority.
const SPINNERS: usize = 8;
/// Duration for which a program is stopped, and then runs, nanoseconds.
const STOPPED_NS: u64 = 200_000_000;
const RUNNING_NS: u64 = 50_000_000;

/// A receive buffer that is large for these paths, and full soon after the program stops reading.
const BUFFER: &str = "4096 131072 4194304";

fn stream(settings: &str) -> String {
    format!(
        "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\ncongestion = \"cubic\"\nduration = \"1500 ms\"\n\
         warmup = \"200 ms\"\ncooldown = \"0 ms\"\n{settings}\n"
    )
}

/// The bottleneck of each trial, printed.
fn limits(run: &Run) -> Vec<Limit> {
    let workload = &run.header.plan.arms[0].workloads[0];
    let limits: Vec<Limit> =
        run.trials.iter().map(|trial| limit_of(workload, trial, true, None).unwrap()).collect();
    for limit in &limits {
        println!("{:?}: {}", limit.cause, limit.evidence.join("; "));
    }
    limits
}

/// The trials must report this cause. Where all cores were busy, CPU contention is also correct, but not in all trials.
#[track_caller]
fn named(run: &Run, cause: Cause) {
    let right = |(trial, limit): &(&Trial, &Limit)| {
        limit.cause == cause || (are_all_cores_full(trial) && is_core(limit.cause))
    };
    named_or(run, cause, right, is_starved);
}

/// As [`named`], for traffic that cannot fill a core: where one was full, other programs filled it. Then an unknown cause is also correct,
/// because a thread that waits for its core uses neither its buffer nor its window. A sender that does not run often enough to empty a bucket
/// of tokens has a rate without a fall: then only the cap shows.
#[track_caller]
fn slow_named(run: &Run, cause: Cause) {
    let right = |(trial, limit): &(&Trial, &Limit)| {
        let is_cap_of_bucket = cause == Cause::TokenBucket && limit.cause == Cause::RateCap;
        let is_of_others = is_core(limit.cause) || limit.cause == Cause::Unknown || is_cap_of_bucket;
        limit.cause == cause || (is_disturbed(trial) && is_of_others)
    };
    named_or(run, cause, right, is_disturbed);
}

#[track_caller]
fn named_or(
    run: &Run,
    cause: Cause,
    right: impl Fn(&(&Trial, &Limit)) -> bool,
    is_hopeless: fn(&Trial) -> bool,
) {
    let limits = limits(run);
    few_but(run, &limits, right);
    if limits.iter().any(|limit| limit.cause == cause) {
        return;
    }
    assert!(run.trials.iter().all(is_hopeless), "{cause:?} was never named: {limits:?}");
    not_compared(format!("{cause:?}: in every trial other programs had the cores"));
}

/// At least three of four trials must be correct: other load of this machine may disturb one.
#[track_caller]
fn few_but(run: &Run, limits: &[Limit], right: impl Fn(&(&Trial, &Limit)) -> bool) {
    let wrong: Vec<&Limit> =
        run.trials.iter().zip(limits).filter(|pair| !right(pair)).map(|(_, limit)| limit).collect();
    assert!(wrong.len() * 4 <= limits.len(), "{wrong:?}");
}

/// Whether other programs had a core: traffic that cannot fill one found it full, or waited for it.
fn is_disturbed(trial: &Trial) -> bool {
    is_starved(trial) || ends(trial).any(|end| end.observation.cores.iter().any(|core| is_full(end, core)))
}

/// Whether other programs may have used the cores.
fn are_all_cores_full(trial: &Trial) -> bool {
    is_starved(trial) || ends(trial).any(|end| end.observation.cores.iter().all(|core| is_full(end, core)))
}

/// Whether a core had no time left. Stolen time was not available either.
fn is_full(end: &TrialEnd, core: &CoreTime) -> bool {
    core.idle_ns as f64 <= end.observation.wall_ns as f64 * (1.0 - FULL)
}

fn ends(trial: &Trial) -> impl Iterator<Item = &TrialEnd> {
    [&trial.client, &trial.server].into_iter().flatten()
}

/// Whether threads of an end waited for a core for a large share of their time.
fn is_starved(trial: &Trial) -> bool {
    ends(trial).any(|end| waited(end) > WAITED_LITTLE)
}

fn waited(end: &TrialEnd) -> f64 {
    end.report.thread_use.unwrap().run_delay_ns as f64 / end.observation.wall_ns as f64
}

fn is_core(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::SenderCore
            | Cause::ReceiverCore
            | Cause::ClientCore
            | Cause::ServerCore
            | Cause::SoftirqCore
            | Cause::AllCores
            | Cause::CpuContention
    )
}

/// Writes a sysctl of a namespace's network stack.
fn sysctl(side: &Namespace, name: &str, value: &str) {
    side.inside(|| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap());
}

#[test]
fn receive_window_send_buffer_and_unknown_bottleneck_are_distinguished() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let ((window, _w), (buffer, _b), (other, _o)) =
        (Hop::between_hosts(HOLD_NS), Hop::between_hosts(HOLD_NS), Hop::between_hosts(HOLD_NS));
    sysctl(&window.b, "tcp_rmem", "4096 16384 16384");
    sysctl(&buffer.a, "tcp_wmem", "4096 8192 8192");
    // At most ten segments in flight: no kernel counter reports it.
    other.a.must("ip route replace 10.77.0.0/24 dev va src 10.77.0.1 cwnd lock 10");
    let run = |hosts: &Hosts, settings: &str| {
        let bench = Bench::new();
        let run = hosts.run(&bench, &stream(settings), 2);
        bench.assert_nothing_left();
        run
    };
    slow_named(&run(&window, ""), Cause::ReceiveWindow);
    // An engine that writes as applications do: the kernel counts the buffer as the limit only when a write waits for it.
    slow_named(&run(&buffer, "engine = \"copy\""), Cause::SendBuffer);
    let unknown = run(&other, "");
    let limits = limits(&unknown);
    // A busy machine may also be reported; and the hop may have lost frames while it waited for a core, which the counters of
    // both ends then show.
    let right = |(trial, limit): &(&Trial, &Limit)| {
        matches!(limit.cause, Cause::Unknown | Cause::Switch) || (is_disturbed(trial) && is_core(limit.cause))
    };
    few_but(&unknown, &limits, right);
    if limits.iter().all(|limit| limit.cause != Cause::Unknown) {
        assert!(unknown.trials.iter().all(is_disturbed), "{limits:?}");
        not_compared("unknown bottleneck: other programs used all cores in every trial");
    }
    assert!(limits.iter().all(|limit| !limit.evidence.is_empty()), "{limits:?}");
}

#[test]
fn rate_cap_and_burst_allowance_are_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    cap(&hosts.a, "va", "100mbit", 131_072);
    let run = hosts.run(&bench, &stream(""), 2);
    slow_named(&run, Cause::RateCap);
    let text = bench.run(["report", "last"]).stdout;
    // The cause of an arm is that of most trials; if other load disturbed one, the counts may be even.
    let capped: Vec<bool> = limits(&run).iter().map(|limit| limit.cause == Cause::RateCap).collect();
    let all_capped = capped.iter().all(|is_capped| *is_capped);
    assert!(!capped.contains(&true) || text.contains("a rate cap"), "{text}");
    assert!(!all_capped || text.contains("Both arms are at a rate cap"), "{text}");
    // A bucket of 20 MB, which takes a second to empty at 200 Mbit/s, refilled before every trial.
    let mut hosts = Hosts::on_a_wire();
    hosts.arm = "treatments = [{ on = \"client\", command = [\"tc\", \"qdisc\", \"replace\", \"dev\", \"va\", \"root\", \"tbf\", \"rate\", \
                 \"50mbit\", \"burst\", \"20mb\", \"limit\", \"16mb\", \"peakrate\", \"200mbit\", \"minburst\", \"70kb\"], undo = [\"tc\", \
                 \"qdisc\", \"del\", \"dev\", \"va\", \"root\"] }]"
        .to_owned();
    let run = hosts.run(&bench, &stream(""), 2);
    slow_named(&run, Cause::TokenBucket);
    bench.assert_nothing_left();
}

/// Hosts with a bridge between them, in its own namespace.
fn with_a_switch() -> (Hosts, Namespace) {
    let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
    let middle = Namespace::new();
    wire(&hosts.a, "va", &middle, "pa");
    wire(&middle, "pb", &hosts.b, "vb");
    middle.must("ip link add switch type bridge mcast_snooping 0");
    for port in ["pa", "pb"] {
        middle.must(&format!("ip link set {port} master switch"));
    }
    middle.must("ip link set switch up");
    hosts.address();
    (hosts, middle)
}

#[test]
fn dropping_policy_on_the_path_is_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, (hosts, middle)) = (Bench::new(), with_a_switch());
    middle.must("nft add table bridge lossy");
    middle.must("nft add chain bridge lossy forward { type filter hook forward priority 0 ; }");
    middle.must("nft add rule bridge lossy forward numgen inc mod 50 0 drop");
    let run = hosts.run(&bench, &stream(""), 2);
    named(&run, Cause::Switch);
    bench.assert_nothing_left();
}

/// Programs that use a whole core until this is dropped.
struct Spinning(Vec<Child>);

impl Spinning {
    fn on(core: u16) -> Self {
        let spin = |_| {
            Command::new("nice")
                .args(["-n", "-15", "taskset", "-c", &core.to_string(), "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Self((0..SPINNERS).map(spin).collect())
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn pinned_end_on_a_loaded_core_is_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    sysctl(&hosts.b, "tcp_rmem", BUFFER);
    let _spinning = Spinning::on(1);
    let pinned = |client: u16, server: u16| {
        stream(&format!("engine = \"copy\"\npin_client = [{client}]\npin_server = [{server}]"))
    };
    for (cores, loaded, cause) in
        [((0, 1), Role::Server, Cause::ReceiverCore), ((1, 0), Role::Client, Cause::SenderCore)]
    {
        let run = hosts.run(&bench, &pinned(cores.0, cores.1), 2);
        for (trial, limit) in run.trials.iter().zip(limits(&run)) {
            // If the other core is as busy, the other end is limited as much; then either is correct.
            let other = trial.end(if loaded == Role::Server { Role::Client } else { Role::Server }).unwrap();
            let waited = waited(other);
            let right = limit.cause == cause || (waited > WAITED_LITTLE && is_core(limit.cause));
            assert!(right, "{cause:?}, the other end waited {waited:.2} of its time: {limit:?}");
        }
    }
    bench.assert_nothing_left();
}

#[test]
fn slow_reader_and_slow_writer_are_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    sysctl(&hosts.b, "tcp_rmem", BUFFER);
    let reading = stopping_over_and_over(&bench, &hosts.b, || hosts.run(&bench, &stream(""), 2));
    named(&reading, Cause::ReceiverProgram);
    let writing = stopping_over_and_over(&bench, &hosts.a, || hosts.run(&bench, &stream(""), 2));
    named(&writing, Cause::Application);
    bench.assert_nothing_left();
}

/// Runs `work` while the agent of a namespace is repeatedly stopped and continued.
fn stopping_over_and_over<T>(bench: &Bench, side: &Namespace, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            prefer_this_thread();
            while !done.load(Ordering::Relaxed) {
                // Every agent of a run is stopped in turn: one may end before the next starts.
                let Some(agent) = agent_in(bench, side) else { continue };
                while !done.load(Ordering::Relaxed) && is_there(agent) {
                    for (how, pause_ns) in [(Signal::STOP, STOPPED_NS), (Signal::CONT, RUNNING_NS)] {
                        signal_those_left([agent], how);
                        clock::sleep_until(clock::monotonic_ns() + pause_ns);
                    }
                }
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn is_there(pid: Pid) -> bool {
    std::path::Path::new(&format!("/proc/{}/exe", pid.as_raw_nonzero())).read_link().is_ok()
}

/// The agent in a namespace.
fn agent_in(bench: &Bench, side: &Namespace) -> Option<Pid> {
    let inside = std::fs::read_link(side.path()).ok()?;
    bench.find(&["netduel", "agent"]).into_iter().find(|pid| {
        std::fs::read_link(format!("/proc/{}/ns/net", pid.as_raw_nonzero())).is_ok_and(|own| own == inside)
    })
}

#[test]
fn single_receive_queue_on_a_saturated_core_is_reported() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let bench = Bench::new();
    let hosts = Hosts { a: Namespace::new(), b: Namespace::new(), proven: true, arm: String::new() };
    let one = "numtxqueues 1 numrxqueues 1";
    hosts.a.must(&format!("ip link add va {one} type veth peer name vb {one} netns {}", hosts.b.path()));
    for (side, name) in [(&hosts.a, "va"), (&hosts.b, "vb")] {
        side.must(&format!("ip link set {name} addrgenmode none"));
        side.must(&format!("ip link set {name} up"));
    }
    hosts.address();
    // Core 1 processes every packet and evaluates rules for it.
    let steer = Command::new("nsenter")
        .arg(format!("--net={}", hosts.b.path()))
        .args(["--", "unshare", "-m", "sh", "-c"])
        .arg("mount -t sysfs none /sys && echo 2 > /sys/class/net/vb/queues/rx-0/rps_cpus")
        .status()
        .unwrap();
    assert!(steer.success());
    hosts.b.must("nft add table ip work");
    hosts.b.must("nft add chain ip work input { type filter hook prerouting priority -300 ; }");
    for _ in 0..20 {
        let rules = vec!["add rule ip work input udp dport 1 drop"; 50].join(" ; ");
        hosts.b.must(&format!("nft {rules}"));
    }
    let flood = "[[workloads]]\nname = \"flood\"\ntype = \"udp-stream\"\nsize = \"64 B\"\noffload = \"none\"\nduration = \"1500 ms\"\npin_client = [0]\n\
                 pin_server = [0]\nwarmup = \"200 ms\"\ncooldown = \"0 ms\"\n";
    named(&hosts.run(&bench, flood, 2), Cause::SingleQueue);
    bench.assert_nothing_left();
}
