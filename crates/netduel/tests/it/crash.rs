//! kill -9 of any one process: nothing is left behind, finished trials are kept.
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};

use crate::gate::Gate;
use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, UnderWay, short_plan, signal, until, wait_gone};

fn started(bench: &Bench) -> UnderWay {
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 200\nblocks_max = 200"));
    let mut under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap()]));
    under_way.wait_for("trial   4/");
    under_way
}

fn stored_trials(bench: &Bench) -> u64 {
    let runs = bench.run(["runs", "--json"]).expect_code(0).json();
    runs["runs"][0]["trials"].as_u64().unwrap()
}

#[test]
fn signal_before_the_plan_is_read_ends_a_run_with_a_document() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 200\nblocks_max = 200"));
    std::fs::remove_file(&plan).unwrap();
    let made = Command::new("mkfifo").arg(&plan).status().unwrap();
    assert!(made.success());
    // With a writer that sends nothing, and without one.
    for (stop, has_writer) in [(Signal::INT, true), (Signal::TERM, true), (Signal::INT, false)] {
        let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap(), "--json"]));
        let status = format!("/proc/{}/status", under_way.child.id());
        // The program reads its plan when the FIFO can be opened without waiting for a reader.
        let mut gate = None;
        let open =
            || OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(&plan);
        if has_writer {
            assert!(
                until(|| open().is_ok_and(|file| gate.replace(file).is_none())),
                "the plan was never read"
            );
        }
        // The handler is there before the plan is known.
        assert!(until(|| catches(&status, stop)), "{stop:?} would end the program without a document");
        signal(under_way.pid(), stop);
        let run = under_way.finish().expect_code(130);
        assert_eq!(run.json()["document"], "netduel.error", "{}", run.stdout);
        bench.assert_nothing_left();
    }
}

/// Whether a process handles a signal (`SigCgt` in proc_pid_status(5), a mask of which bit 0 is signal 1).
fn catches(status: &str, signal: Signal) -> bool {
    let status = std::fs::read_to_string(status).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

#[test]
fn killed_coordinator_leaves_nothing_behind_and_keeps_finished_trials() {
    let bench = Bench::new();
    let under_way = started(&bench);
    signal(under_way.pid(), Signal::KILL);
    assert_eq!(under_way.finish().code, None);
    bench.assert_nothing_left();
    assert!(stored_trials(&bench) >= 4);
    let text = bench.run(["report", "last"]).expect_code(0).stdout;
    assert!(text.contains("--resume"), "the report does not say that the run can go on:\n{text}");
}

#[test]
fn removed_store_ends_the_run_at_the_next_record_and_its_trials_are_kept() {
    let bench = Bench::new();
    let under_way = started(&bench);
    std::fs::remove_dir_all(bench.store()).unwrap();
    let run = under_way.finish().expect_code(5);
    assert!(
        run.stderr.contains("removed or moved the file") && run.stderr.contains("--resume"),
        "{}",
        run.stderr
    );
    let finished = run.stderr.lines().filter(|line| line.starts_with("trial ")).count() as u64;
    // The record of the last trial was not stored when the loss was found; it may not have been shown.
    let stored = stored_trials(&bench);
    assert!(finished >= 4 && (finished..=finished + 1).contains(&stored), "{stored}: {}", run.stderr);
    let mut resumed = UnderWay::start(bench.netduel(["run", "--resume", "last"]));
    resumed.wait_for(&format!("trial {:>3}/", stored / 2 * 2 + 1));
    signal(resumed.pid(), Signal::INT);
    resumed.finish().expect_code(130);
    bench.assert_nothing_left();
}

#[test]
fn moved_store_ends_the_run_with_the_place_of_its_trials() {
    let bench = Bench::new();
    let under_way = started(&bench);
    let elsewhere = bench.path().join("elsewhere");
    std::fs::rename(bench.store(), &elsewhere).unwrap();
    let run = under_way.finish().expect_code(5);
    assert!(run.stderr.contains(elsewhere.to_str().unwrap()), "{}", run.stderr);
    bench.run(["report", "last", "--store", "elsewhere"]).expect_code(0);
    bench.assert_nothing_left();
}

#[test]
fn killed_agent_is_restarted_and_the_run_continues() {
    let bench = Bench::new();
    let mut under_way = started(&bench);
    let agents = bench.find(&["agent"]);
    let agent = agents.iter().find(|pid| {
        // The process inside the lab, not the wrapper.
        bench.find(&["lab", "exec"]).iter().all(|wrapper| wrapper != *pid)
    });
    signal(*agent.expect("no agent runs"), Signal::KILL);
    // A trial fails only when one was running.
    under_way.wait_for(" is ready");
    under_way.wait_for("accelerated  round trip");
    signal(under_way.pid(), Signal::INT);
    under_way.finish().expect_code(130);
    bench.assert_nothing_left();
}

#[test]
fn killed_lab_keeper_ends_the_run_with_a_clear_message() {
    let bench = Bench::new();
    let under_way = started(&bench);
    let keeper = *bench.find(&["lab-keeper"]).first().expect("no keeper runs");
    signal(keeper, Signal::KILL);
    assert!(wait_gone(keeper));
    let run: Finished = under_way.finish();
    assert!(matches!(run.code, Some(4 | 7)), "exit code {:?}\n{}", run.code, run.stderr);
    assert!(run.stderr.contains("--resume"), "{}", run.stderr);
    bench.assert_nothing_left();
    assert!(stored_trials(&bench) >= 4);
}

#[test]
fn results_are_printed_although_the_lab_cannot_end() {
    let bench = Bench::new();
    // The third block waits.
    let mut gate = Gate::open_for(&bench, 2);
    let plan = bench.plan(&short_plan(&gate.arms(), LATENCY, "blocks_min = 8\nblocks_max = 8"));
    // As in a container whose first process does not reap: the kernel keeps the lab's first process until every other one is reaped.
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "sh",
        "-c",
    ]);
    command.arg(
        "{ timeout --foreground -s KILL 600 \"$0\" run \"$1\"; echo \"code $?\" >&2; } & exec sleep 54322 >/dev/null 2>&1",
    );
    command.arg(env!("CARGO_BIN_EXE_netduel")).arg(plan).current_dir(bench.path()).stdin(Stdio::null());
    bench.mark(&mut command);
    let mut under_way = UnderWay::start(command);
    under_way.wait_for("trial   4/");
    // Of the server, which does not wait at the gate.
    let launchers = bench.find(&["lab", "exec", "b"]);
    // Between the launcher and the agent: it is the agent's parent outside of the lab.
    let between =
        launchers.iter().find(|pid| parent(**pid).is_some_and(|parent| launchers.contains(&parent)));
    signal(*between.expect("no agent runs"), Signal::KILL);
    gate.let_pass(32);
    under_way.wait_for("code ");
    signal(*bench.find(&["sleep", "54322"]).first().expect("the first process"), Signal::KILL);
    let run = under_way.finish();
    assert!(run.stderr.contains("code 0\n"), "{}", run.stderr);
    assert!(run.stdout.contains("details: netduel report"), "{}", run.stdout);
    assert!(run.stderr.contains("warning: failed to remove lab"), "{}", run.stderr);
    bench.assert_nothing_left();
}

/// The parent of a process (`PPid` in proc_pid_status(5)).
fn parent(pid: Pid) -> Option<Pid> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    Pid::from_raw(status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?)
}

#[test]
fn run_that_waits_for_a_silent_host_stops_at_once_with_a_message() {
    for stop in [Signal::INT, Signal::TERM, Signal::HUP] {
        stopped_by(stop);
    }
}

fn stopped_by(stop: Signal) {
    let bench = Bench::new();
    // The agent's arguments become those of the shell, which ignores them.
    let mute =
        "launch = \"command\"\ncommand = [\"sh\", \"-c\", \"exec sleep 54321\"]\naddresses = [\"127.0.0.1\"]";
    let plan = format!(
        "name = \"mute\"\nquestion = \"q?\"\n[hosts.a]\n{mute}\n[hosts.b]\n{mute}\n[[arms]]\nname = \"one\"\nclient = \"a\"\n\
         server = \"b\"\n[[workloads]]\nname = \"w\"\ntype = \"tcp-rr\"\n[design]\naa = true\n"
    );
    let plan = bench.plan(&plan);
    // A suite that runs below nohup(1) passes on its ignored SIGHUP, which netduel respects.
    let mut run = Command::new("env");
    run.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_netduel"), "run", plan.to_str().unwrap()]);
    bench.mark(&mut run);
    let under_way = UnderWay::start(run);
    assert!(until(|| bench.find(&["sleep", "54321"]).len() >= 2), "the hosts were not started");
    signal(under_way.pid(), stop);
    let run = under_way.finish().expect_code(130);
    assert!(run.stderr.contains("stopped by the user before the first trial"), "{}", run.stderr);
    bench.assert_nothing_left();
}
