//! Cost of control and observation in a trial, as a share of one core: CPU time of the coordinator and both agents with almost no
//! traffic, per second of trial. Subtracting a run with few trials from one with many removes the start-up.
//! And the cost of the live view on a large terminal: CPU time of its thread, and what it adds to all processes of a run. It
//! draws from the coordinator's events, so that the traffic does not matter.
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use netduel_sys::clock::monotonic_ns;
use netduel_sys::pty::Pty;
use rustix::termios::{Winsize, tcsetwinsize};

/// Length of one trial's traffic, seconds.
const TRIAL_S: f64 = 1.0;
/// Blocks of two trials in the short and in the long run.
const BLOCKS: (u32, u32) = (2, 12);
/// Pairs of a short and a long run.
const PAIRS: usize = 5;
/// Terminal of the live view: the largest one that its tests have.
const TERMINAL: Winsize = Winsize { ws_row: 60, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 };
/// Blocks of a run for the cost of the live view: in its twelve seconds a clock tick of 10 ms is 0.08 % of a core.
const VIEW_BLOCKS: u32 = 6;
/// Pairs of a run with the live view and one without it.
const VIEW_PAIRS: usize = 5;
/// Share of one core that the live view may use. Trials of one second have more blocks, trials and comparisons per second than
/// real ones.
const VIEW_MAX: f64 = 0.01;

fn main() {
    let mut shares: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let (short, long) = (cpu_seconds_of_run(BLOCKS.0), cpu_seconds_of_run(BLOCKS.1));
            (long - short) / (f64::from(BLOCKS.1 - BLOCKS.0) * 2.0 * TRIAL_S)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    let percent = |share: f64| share * 100.0;
    println!(
        "overhead: control and observers use {:.2} % of one core in a trial, both hosts and the coordinator together \
         [{:.2}, {:.2}], n = {PAIRS}; asked for: under 1 %",
        percent(shares[PAIRS / 2]),
        percent(shares[0]),
        percent(shares[PAIRS - 1]),
    );
    println!("figure control-and-observers-share-of-core {:.3} %", percent(shares[PAIRS / 2]));
    let ViewCost { thread, added } = cost_of_live_view();
    println!(
        "live view: its thread uses {:.2} % of one core [{:.2}, {:.2}], n = {VIEW_PAIRS} runs; \
         asked for: under 1 %",
        percent(thread[VIEW_PAIRS / 2]),
        percent(thread[0]),
        percent(thread[VIEW_PAIRS - 1]),
    );
    println!("figure live-view-cpu-share {:.3} %", percent(thread[VIEW_PAIRS / 2]));
    println!(
        "live view: adds {:.2} % of one core to all processes of a run, against its progress bars [{:.2}, {:.2}], \
         n = {VIEW_PAIRS} pairs; asked for: under 1 %",
        percent(added[VIEW_PAIRS / 2]),
        percent(added[0]),
        percent(added[VIEW_PAIRS - 1]),
    );
    println!("figure live-view-added-share {:.3} %", percent(added[VIEW_PAIRS / 2]));
    let most = percent(VIEW_MAX);
    let median = thread[VIEW_PAIRS / 2];
    assert!(median <= VIEW_MAX, "the thread of the live view uses more than {most} % of one core");
    // The difference of two runs has their noise: one of five pairs shows that it can be less.
    assert!(added[0] <= VIEW_MAX, "the live view adds more than {most} % of one core in each pair of runs");
}

/// Writes the plan of an idle run of `blocks` blocks.
fn plan_in(folder: &Path, blocks: u32) -> PathBuf {
    let plan = folder.join("plan.toml");
    let text = format!(
        "name = \"overhead\"\nquestion = \"What does an idle trial cost?\"\n\
         [hosts.a]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n[hosts.b]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n\
         [[arms]]\nname = \"idle\"\nclient = \"a\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"idle\"\ntype = \"udp-rr\"\nduration = \"{TRIAL_S} s\"\nrequest_rate = \"5 /s\"\n\
         [design]\naa = true\nblocks_min = {blocks}\nblocks_max = {blocks}\n"
    );
    std::fs::write(&plan, text).expect("the plan can be written");
    plan
}

/// Exit code 6: an idle trial has no verdict, which is irrelevant here.
fn assert_ended(status: ExitStatus) {
    assert!(matches!(status.code(), Some(0 | 6)), "the run failed: {status}");
}

/// Runs a plan of `blocks` blocks on this machine and returns the CPU seconds of all its processes.
fn cpu_seconds_of_run(blocks: u32) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let plan = plan_in(folder.path(), blocks);
    let before = children_cpu_seconds();
    let status = Command::new(env!("CARGO_BIN_EXE_netduel"))
        .arg("run")
        .arg(&plan)
        .arg("--store")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the program can be started");
    assert_ended(status);
    children_cpu_seconds() - before
}

/// The CPU time of a thread at a time, both in seconds.
#[derive(Clone, Copy)]
struct Look {
    at_s: f64,
    cpu_s: f64,
}

/// A run on a terminal.
struct Watched {
    /// CPU time of all its processes, as a share of its time.
    share: f64,
    /// The thread of the live view at its first frame and at its last one; absent without a view.
    looks: Option<[Look; 2]>,
}

impl Watched {
    /// CPU time of the live view's thread from its first frame to its last one, as a share of the time between them.
    fn share_of_thread(&self) -> f64 {
        let [first, last] = self.looks.expect("the live view has a thread");
        let elapsed_s = last.at_s - first.at_s;
        assert!(elapsed_s > TRIAL_S, "the live view ended before the run");
        (last.cpu_s - first.cpu_s) / elapsed_s
    }
}

/// What the live view costs, as shares of one core in ascending order.
struct ViewCost {
    /// CPU time of its thread, for each run with it.
    thread: Vec<f64>,
    /// What it adds to all processes of a run, for each pair.
    added: Vec<f64>,
}

/// Measures pairs of a run with the live view and one without it, which has the progress bars that a terminal has then. The two
/// change places from pair to pair.
fn cost_of_live_view() -> ViewCost {
    let run = |option: &str| run_on_terminal(VIEW_BLOCKS, option);
    let mut cost = ViewCost { thread: Vec::new(), added: Vec::new() };
    for pair in 0..VIEW_PAIRS {
        let (with, without) = if pair.is_multiple_of(2) {
            let with = run("--live");
            (with, run("--no-live"))
        } else {
            let without = run("--no-live");
            (run("--live"), without)
        };
        cost.thread.push(with.share_of_thread());
        cost.added.push(with.share - without.share);
    }
    cost.thread.sort_by(f64::total_cmp);
    cost.added.sort_by(f64::total_cmp);
    cost
}

/// Runs a plan of `blocks` blocks with `--live` or `--no-live` on a terminal that is read as fast as it is written.
fn run_on_terminal(blocks: u32, option: &str) -> Watched {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let Pty { user, program } = Pty::open().expect("a pseudo-terminal is available");
    tcsetwinsize(&program, TERMINAL).expect("a terminal has a size");
    // The view needs a controlling terminal. `setsid` takes its standard input for that, and becomes the program.
    let mut command = Command::new("setsid");
    command
        .args(["--ctty", env!("CARGO_BIN_EXE_netduel"), "run", option])
        .arg(plan_in(folder.path(), blocks))
        .arg("--store")
        .arg(folder.path())
        .env_remove("NO_COLOR")
        .envs([("TERM", "xterm-256color"), ("LC_ALL", "C.UTF-8")])
        .stdin(program.try_clone().expect("a descriptor is available"))
        .stdout(Stdio::null())
        .stderr(program);
    let (started_ns, before_s) = (monotonic_ns(), children_cpu_seconds());
    let mut child = command.spawn().expect("failed to start `setsid`: install util-linux");
    // It holds copies of the program's end, which would keep reading from ending.
    drop(command);
    let (mut user, mut part) = (File::from(user), [0; 4096]);
    let mut shown: Vec<u8> = Vec::new();
    let mut looks: Option<[Look; 2]> = None;
    // EIO: no process has the program's end open any more.
    while let Ok(length @ 1..) = user.read(&mut part) {
        shown.extend(&part[..length]);
        if let Some(cpu_s) = cpu_seconds_of_thread(child.id(), "live view") {
            let look = Look { at_s: monotonic_ns() as f64 / 1e9, cpu_s };
            looks = Some([looks.map_or(look, |[first, _]| first), look]);
        }
    }
    assert_ended(child.wait().expect("the run can be waited for"));
    let elapsed_s = (monotonic_ns() - started_ns) as f64 / 1e9;
    let has_view = String::from_utf8_lossy(&shown).contains("q stop");
    assert_eq!(has_view, option == "--live", "the live view is shown with --live only");
    Watched { share: (children_cpu_seconds() - before_s) / elapsed_s, looks }
}

/// CPU time of all children that have ended, and of theirs.
fn children_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    cpu_seconds(&stat, [16, 17])
}

/// CPU time of the thread with this name; absent when the process has none.
fn cpu_seconds_of_thread(process: u32, name: &str) -> Option<f64> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let is_named = |folder: &PathBuf| {
        std::fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    };
    let thread = threads.flatten().map(|thread| thread.path()).find(is_named)?;
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    Some(cpu_seconds(&stat, [14, 15]))
}

/// The sum of two times of a line of `/proc/PID/stat`, which are in clock ticks (proc_pid_stat(5)).
fn cpu_seconds(stat: &str, fields: [usize; 2]) -> f64 {
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |number: usize| -> f64 {
        after_name.split_whitespace().nth(number - 3).and_then(|text| text.parse().ok()).unwrap_or(0.0)
    };
    fields.into_iter().map(field).sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
}
