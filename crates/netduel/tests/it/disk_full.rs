//! A full disk and the limit of file sizes are detected before a trial, never after it.
use netduel_test_support::skip;
use std::process::Command;

use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, short_plan};

#[test]
fn full_disk_stops_the_run_before_a_trial_and_keeps_finished_trials() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 200\nblocks_max = 200"));
    // A small file system, in a mount namespace that ends with the command.
    let script = "mount -t tmpfs -o size=1300k tmpfs \"$1\" || exit 77; \"$2\" run \"$3\" --store \"$1\"; code=$?; \
                  \"$2\" runs --json --store \"$1\" > \"$4\" || exit 78; exit $code";
    let mountpoint = bench.path().join("small");
    std::fs::create_dir(&mountpoint).unwrap();
    let listing = bench.path().join("runs.json");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "--user", "sh", "-c", script, "sh"]);
    command.arg(&mountpoint).arg(env!("CARGO_BIN_EXE_netduel")).arg(&plan).arg(&listing);
    bench.mark(&mut command);
    let run = Finished::from(command.output().unwrap());
    if run.code == Some(77) {
        return skip("a tmpfs cannot be mounted in a user namespace here");
    }
    let run = run.expect_code(5);
    assert!(run.stderr.contains("full") && run.stderr.contains("--resume"), "{}", run.stderr);
    let finished = run.stderr.lines().filter(|line| line.starts_with("trial ")).count();
    let runs: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(listing).unwrap()).unwrap();
    let stored = runs["runs"][0]["trials"].as_u64().unwrap() as usize;
    assert!(finished > 0);
    assert_eq!(stored, finished, "a finished trial was lost");
    bench.assert_nothing_left();
}

#[test]
fn limit_of_file_sizes_stops_the_run_before_a_trial_and_keeps_finished_trials() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 200\nblocks_max = 200"));
    // In blocks of 512 bytes: half a MiB more than the space that is reserved for a trial.
    let script = "ulimit -f 3072 && exec \"$0\" run \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_netduel")]).arg(&plan).current_dir(bench.path());
    bench.mark(&mut command);
    let run = Finished::from(command.output().unwrap()).expect_code(5);
    let is_named = run.stderr.contains("raise the limit of file sizes (`ulimit -f`");
    assert!(is_named && run.stderr.contains("--resume"), "{}", run.stderr);
    let finished = run.stderr.lines().filter(|line| line.starts_with("trial ")).count();
    let runs = bench.run(["runs", "--json"]).expect_code(0).json();
    assert!(finished > 0);
    assert_eq!(runs["runs"][0]["trials"].as_u64(), Some(finished as u64), "a finished trial was lost");
    bench.run(["runs", "verify"]).expect_code(0);
    bench.assert_nothing_left();
}
