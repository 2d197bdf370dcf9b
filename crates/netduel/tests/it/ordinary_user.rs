//! Without root: an ordinary user builds the lab, runs the comparison and leaves nothing behind.
use netduel_test_support::{copy_program, not_compared, skip};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, short_plan, verdicts};

#[test]
fn ordinary_user_runs_a_comparison() {
    if !rustix::process::geteuid().is_root() {
        // As an ordinary user, the other tests of this crate cover it.
        return skip("the tests run as an ordinary user already");
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = bench.path().join("netduel");
    copy_program(env!("CARGO_BIN_EXE_netduel"), &program);
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 12\nblocks_max = 12"));
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.arg("run").arg(&plan).args(["--json", "--out", "out"]).current_dir(bench.path());
    bench.mark(&mut command);
    let run = Finished::from(command.output().unwrap());
    if run.code == Some(3) && run.stderr.contains("user namespace") {
        return skip("user namespaces are switched off here");
    }
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let verdicts = verdicts(&run.json());
    let (metric, tone, words) = verdicts.iter().find(|(metric, ..)| metric == "latency-p50").unwrap();
    // Other programs can widen the spread beyond the difference, or stall a trial, whose values are then bounds.
    if tone == "open" {
        assert!(words.starts_with("inconclusive"), "{words}");
        not_compared(format!("{metric}: {words}"));
    } else {
        assert_eq!(tone, "better", "{metric}: {words}");
    }
    assert!(bench.path().join("out/report.html").exists());
    bench.assert_nothing_left();
}

#[test]
fn namespace_that_a_user_may_not_enter_ends_a_run_with_the_permission() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a named network namespace");
    }
    let name = format!("netduel-it-{}-locked", std::process::id());
    let ip = |action: &str| Command::new("ip").args(["netns", action, &name]).output();
    let made = ip("add");
    if !made.as_ref().is_ok_and(|made| made.status.success()) {
        return skip(format!("`ip netns add`: {made:?}"));
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = bench.path().join("netduel");
    copy_program(env!("CARGO_BIN_EXE_netduel"), &program);
    let plan = bench.plan(&format!(
        "name = \"locked\"\nquestion = \"Is it locked?\"\n\
         [hosts.a]\nlaunch = \"netns\"\nnetns = \"{name}\"\n\
         [hosts.b]\nlaunch = \"local\"\naddresses = [\"127.0.0.1\"]\n\
         [[arms]]\nname = \"x\"\nclient = \"a\"\nserver = \"b\"\n{LATENCY}\n\
         [design]\naa = true\nblocks_min = 2\nblocks_max = 2\n"
    ));
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.arg("run").arg(&plan).current_dir(bench.path());
    bench.mark(&mut command);
    let run = Finished::from(command.output().unwrap());
    let removed = ip("delete");
    let run = run.expect_code(3);
    let expected = [name.as_str(), "host a", "CAP_SYS_ADMIN", "run netduel as root"];
    assert!(expected.iter().all(|word| run.stderr.contains(word)), "{}", run.stderr);
    assert!(!run.stderr.contains("vanished"), "{}", run.stderr);
    assert!(removed.is_ok_and(|removed| removed.status.success()));
    bench.assert_nothing_left();
}
