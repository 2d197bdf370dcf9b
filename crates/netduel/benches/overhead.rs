//! Cost of control and observation in a trial, as a share of one core: CPU time of the coordinator and both agents with almost no
//! traffic, per second of trial. Subtracting a run with few trials from one with many removes the start-up.
use std::process::{Command, Stdio};

/// Length of one trial's traffic, seconds.
const TRIAL_S: f64 = 1.0;
/// Blocks of two trials in the short and in the long run.
const BLOCKS: (u32, u32) = (2, 12);
/// Pairs of a short and a long run.
const PAIRS: usize = 5;

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
}

/// Runs a plan of `blocks` blocks on this machine and returns the CPU seconds of all its processes.
fn cpu_seconds_of_run(blocks: u32) -> f64 {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let plan = folder.path().join("plan.toml");
    let text = format!(
        "name = \"overhead\"\nquestion = \"What does an idle trial cost?\"\n\
         [hosts.a]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n[hosts.b]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n\
         [[arms]]\nname = \"idle\"\nclient = \"a\"\nserver = \"b\"\n\
         [[workloads]]\nname = \"idle\"\ntype = \"udp-rr\"\nduration = \"{TRIAL_S} s\"\nrequest_rate = \"5 /s\"\n\
         [design]\naa = true\nblocks_min = {blocks}\nblocks_max = {blocks}\n"
    );
    std::fs::write(&plan, text).expect("the plan can be written");
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
    // Exit code 6: an idle trial has no verdict, which is irrelevant here.
    assert!(matches!(status.code(), Some(0 | 6)), "the run failed: {status}");
    children_cpu_seconds() - before
}

/// CPU time of all children that have ended, and of theirs (`/proc/self/stat`, fields 16 and 17, in clock ticks).
fn children_cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let field = |number: usize| -> f64 {
        after_name.split_whitespace().nth(number - 3).and_then(|text| text.parse().ok()).unwrap_or(0.0)
    };
    (field(16) + field(17)) / rustix::param::clock_ticks_per_second() as f64
}
