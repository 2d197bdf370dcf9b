//! What limits a trial is made so, and has to be named: a window, a buffer, a core, a queue, a cap, a burst, a policy that drops, a
//! program that is stopped over and over; and where nothing says what it is, "unknown".
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_model::observation::CoreTime;
use netduel_model::run::Run;
use netduel_model::trial::{Trial, TrialEnd};
use netduel_model::workload::Role;
use netduel_report::analysis::{Cause, Limit, limit_of};
use netduel_sys::clock;
use rustix::process::{Pid, Signal};

use super::bed::{Hosts, Namespace, prefer_this_thread, skipped_without_root, turn, wire};
use super::hop::Hop;
use super::queue::cap;
use crate::support::{Bench, signal};

/// What a hop holds each frame for, nanoseconds: a path on which windows and buffers matter.
const HOLD_NS: u64 = 5_000_000;
/// An end whose threads waited for a core for less than this share of their time had one.
const WAITED_LITTLE: f64 = 0.2;
/// From this share of all its cores' time on, a machine had none left.
const ALL_BUSY: f64 = 0.9;
/// Spinning programs beside the one that is looked at, as important as it is.
const SPINNERS: usize = 8;
/// How long a program is stopped and let run, nanoseconds.
const STOPPED_NS: u64 = 200_000_000;
const RUNNING_NS: u64 = 50_000_000;

/// A receive buffer that is large for these paths, and full soon after nobody reads.
const BUFFER: &str = "4096 131072 4194304";

fn stream(settings: &str) -> String {
    format!(
        "[[workloads]]\nname = \"stream\"\ntype = \"tcp-stream\"\ncongestion = \"cubic\"\nduration = \"3 s\"\n\
         warmup = \"200 ms\"\ncooldown = \"0 ms\"\n{settings}\n"
    )
}

/// What was found of each trial, printed.
fn limits(run: &Run) -> Vec<Limit> {
    let workload = &run.header.plan.arms[0].workloads[0];
    let limits: Vec<Limit> =
        run.trials.iter().map(|trial| limit_of(workload, trial, true, None).unwrap()).collect();
    for limit in &limits {
        println!("{:?}: {}", limit.cause, limit.evidence.join("; "));
    }
    limits
}

/// The trials have to name the cause. On a machine that does other things beside, an end may have waited for a core, which then is as
/// right; but not in all of them.
#[track_caller]
fn named(run: &Run, cause: Cause) {
    let limits = limits(run);
    let right = |(trial, limit): &(&Trial, &Limit)| {
        limit.cause == cause || (is_disturbed(trial) && is_core(limit.cause))
    };
    few_but(run, &limits, right);
    if run.trials.iter().all(is_starved) {
        println!("not judged: threads waited for cores that other programs had, in every trial");
        return;
    }
    assert!(limits.iter().any(|limit| limit.cause == cause), "{cause:?} was never named: {limits:?}");
}

/// All but one trial in four have to be right: what a neighbour of this machine did in one is not ours to say.
#[track_caller]
fn few_but(run: &Run, limits: &[Limit], right: impl Fn(&(&Trial, &Limit)) -> bool) {
    let wrong: Vec<&Limit> =
        run.trials.iter().zip(limits).filter(|pair| !right(pair)).map(|(_, limit)| limit).collect();
    assert!(wrong.len() * 4 <= limits.len(), "{wrong:?}");
}

/// Whether something else than the trial may have had the cores.
fn is_disturbed(trial: &Trial) -> bool {
    let full = |end: &TrialEnd| {
        let busy: u64 = end.observation.cores.iter().map(CoreTime::busy_ns).sum();
        busy as f64 >= end.observation.wall_ns as f64 * end.observation.cores.len() as f64 * ALL_BUSY
    };
    is_starved(trial) || [&trial.client, &trial.server].into_iter().flatten().any(full)
}

/// Whether threads of an end waited for a core for much of their time.
fn is_starved(trial: &Trial) -> bool {
    [&trial.client, &trial.server].into_iter().flatten().any(|end| waited(end) > WAITED_LITTLE)
}

fn waited(end: &TrialEnd) -> f64 {
    end.report.thread_use.unwrap().run_delay_ns as f64 / end.observation.wall_ns as f64
}

fn is_core(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::SenderCore | Cause::ReceiverCore | Cause::SoftirqCore | Cause::AllCores | Cause::CpuContention
    )
}

/// Writes a sysctl of a namespace's network stack.
fn sysctl(side: &Namespace, name: &str, value: &str) {
    side.inside(|| std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap());
}

#[test]
fn a_tiny_receive_window_a_small_send_buffer_and_what_nobody_tells_of_are_told_apart() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let ((window, _w), (buffer, _b), (other, _o)) =
        (Hop::between_hosts(HOLD_NS), Hop::between_hosts(HOLD_NS), Hop::between_hosts(HOLD_NS));
    sysctl(&window.b, "tcp_rmem", "4096 16384 16384");
    sysctl(&buffer.a, "tcp_wmem", "4096 8192 8192");
    // Ten segments under way at most: no counter of the kernel tells of it.
    other.a.must("ip route replace 10.77.0.0/24 dev va src 10.77.0.1 cwnd lock 10");
    let run = |hosts: &Hosts, settings: &str| {
        let bench = Bench::new();
        let run = hosts.run(&bench, &stream(settings), 2);
        bench.assert_nothing_left();
        run
    };
    named(&run(&window, ""), Cause::ReceiveWindow);
    // An engine that writes as programs do: the kernel counts the buffer as the limit only where a write waits for it.
    named(&run(&buffer, "engine = \"copy\""), Cause::SendBuffer);
    let unknown = run(&other, "");
    let limits = limits(&unknown);
    // Whether the whole machine was busy is known besides; and the hop, a program like others, may have lost frames when it had to
    // wait for a core, which the counters of both ends then say.
    let right = |(trial, limit): &(&Trial, &Limit)| {
        matches!(limit.cause, Cause::Unknown | Cause::Switch) || (is_disturbed(trial) && is_core(limit.cause))
    };
    few_but(&unknown, &limits, right);
    let is_told = |limit: &Limit| limit.cause == Cause::Unknown;
    assert!(limits.iter().any(is_told) || unknown.trials.iter().all(is_disturbed), "{limits:?}");
    assert!(limits.iter().all(|limit| !limit.evidence.is_empty()), "{limits:?}");
}

#[test]
fn a_cap_and_a_cap_with_a_burst_are_named() {
    if skipped_without_root() {
        return;
    }
    let _turn = turn();
    let (bench, hosts) = (Bench::new(), Hosts::on_a_wire());
    cap(&hosts.a, "va", "100mbit", 131_072);
    let run = hosts.run(&bench, &stream(""), 2);
    named(&run, Cause::RateCap);
    let text = bench.run(["report", "last"]).stdout;
    // An arm is told by most of its trials; where a neighbour had the cores in one, they may be even.
    let all_capped = limits(&run).iter().all(|limit| limit.cause == Cause::RateCap);
    assert!(text.contains("a rate cap"), "{text}");
    assert!(!all_capped || text.contains("Both arms are at a rate cap"), "{text}");
    // A bucket of 20 MB, which takes a second to empty at 200 Mbit/s, anew before every trial.
    let mut hosts = Hosts::on_a_wire();
    hosts.arm = "treatments = [{ on = \"client\", command = [\"tc\", \"qdisc\", \"replace\", \"dev\", \"va\", \"root\", \"tbf\", \"rate\", \
                 \"50mbit\", \"burst\", \"20mb\", \"limit\", \"16mb\", \"peakrate\", \"200mbit\", \"minburst\", \"70kb\"], undo = [\"tc\", \
                 \"qdisc\", \"del\", \"dev\", \"va\", \"root\"] }]"
        .to_owned();
    let run = hosts.run(&bench, &stream(""), 2);
    named(&run, Cause::TokenBucket);
    bench.assert_nothing_left();
}

/// Hosts with a bridge between them, in a namespace of its own.
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
fn a_policy_on_the_path_that_drops_is_named() {
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

/// Programs that use up one core until this goes.
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
            // One that has ended by itself is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_pinned_end_on_a_loaded_core_is_named() {
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
            // A machine whose other core is as busy limits the other end as much; then either is right.
            let other = trial.end(if loaded == Role::Server { Role::Client } else { Role::Server }).unwrap();
            let waited = waited(other);
            let right = limit.cause == cause || (waited > WAITED_LITTLE && is_core(limit.cause));
            assert!(right, "{cause:?}, the other end waited {waited:.2} of its time: {limit:?}");
        }
    }
    bench.assert_nothing_left();
}

#[test]
fn a_program_that_reads_slowly_and_one_that_writes_slowly_are_named() {
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

/// Runs `work` while the agent of a namespace is stopped and let go, over and over.
fn stopping_over_and_over<T>(bench: &Bench, side: &Namespace, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            prefer_this_thread();
            while !done.load(Ordering::Relaxed) {
                // Every agent of a run has its turn: one may be gone before the next is there.
                let Some(agent) = agent_in(bench, side) else { continue };
                while !done.load(Ordering::Relaxed) && is_there(agent) {
                    for (how, pause_ns) in [(Signal::STOP, STOPPED_NS), (Signal::CONT, RUNNING_NS)] {
                        signal(agent, how);
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

/// The agent that runs in a namespace.
fn agent_in(bench: &Bench, side: &Namespace) -> Option<Pid> {
    let inside = std::fs::read_link(side.path()).ok()?;
    bench.find(&["netduel", "agent"]).into_iter().find(|pid| {
        std::fs::read_link(format!("/proc/{}/ns/net", pid.as_raw_nonzero())).is_ok_and(|own| own == inside)
    })
}

#[test]
fn a_single_receive_queue_whose_core_does_all_the_work_is_named() {
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
    // Every packet is handed to core 1, and has rules to pass there.
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
