//! The commands of the lab.
use std::process::Command;

use netduel_test_support::skip;

use crate::support::{Bench, Finished, STREAM, TWO_PATHS, short_plan};

#[test]
fn lab_starts_runs_commands_changes_path_and_stops() {
    let bench = Bench::new();
    let name = format!("it-{}", std::process::id());
    let up = bench.run(["lab", "up", "--lab", &name, "--rules", "10"]).expect_code(0);
    assert!(up.stdout.contains(&format!("netduel lab down --lab {name}")), "{}", up.stdout);
    // The name as in earlier versions has the same meaning.
    let again = bench.run(["lab", "up", &name]).expect_code(7);
    assert!(again.stderr.contains("is up already"), "{}", again.stderr);
    let completed = bench.run(["complete", "labs"]).expect_code(0).stdout;
    assert!(completed.lines().any(|lab| lab == name), "{completed}");
    let address =
        bench.run(["lab", "exec", "--lab", &name, "a", "--", "cat", "/proc/net/fib_trie"]).expect_code(0);
    assert!(address.stdout.contains("10.77.0.1"), "{}", address.stdout);
    assert_eq!(bench.run(["lab", "exec", "--lab", &name, "b", "--", "sh", "-c", "exit 9"]).code, Some(9));
    let path = bench.run(["lab", "path", "--lab", &name, "accelerated"]).expect_code(0);
    assert!(
        path.stdout.contains(&format!("lab {name}: the path between guests a and b is accelerated")),
        "{}",
        path.stdout
    );
    let path = bench.run(["lab", "path", "--lab", &name, "accelerated", "--json"]).expect_code(0).json();
    let path = &path["labs"][0];
    assert_eq!((&path["name"], &path["path"]), (&name.as_str().into(), &"accelerated".into()));
    let status = bench.run(["lab", "status", "--json"]).expect_code(0);
    let labs = status.json();
    let own = labs["labs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|lab| lab["name"] == name.as_str())
        .expect("the lab is not listed");
    assert_eq!(own["path"], "accelerated");
    let down = bench.run(["lab", "down", "--lab", &name, "--json"]).expect_code(0).json();
    assert_eq!(down["removed"], serde_json::json!([name]));
    let again = bench.run(["lab", "down", "--lab", &name, "--json"]).expect_code(7).json();
    assert_eq!((&again["document"], &again["error"]["exit_code"]), (&"netduel.error".into(), &7.into()));
    let gone = bench.run(["lab", "exec", "--lab", &name, "a", "--", "true"]).expect_code(7);
    assert!(gone.stderr.contains("lab up"), "{}", gone.stderr);
    bench.assert_nothing_left();
}

#[test]
fn two_labs_run_concurrently() {
    let bench = Bench::new();
    let names = [format!("one-{}", std::process::id()), format!("two-{}", std::process::id())];
    for name in &names {
        bench.run(["lab", "up", name, "--rules", "0"]).expect_code(0);
    }
    for name in &names {
        bench
            .run(["lab", "exec", "--lab", name, "a", "--", "grep", "-q", "eth0", "/proc/net/dev"])
            .expect_code(0);
        bench.run(["lab", "down", name]).expect_code(0);
    }
    bench.assert_nothing_left();
}

/// Containers that share a network namespace have processes of the same number, and the name of a run's lab contains that.
#[test]
fn run_whose_lab_name_is_taken_takes_another() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, STREAM, "blocks_min = 2\nblocks_max = 2"));
    let script = "\"$0\" lab up --lab run-short-$$ --rules 0 && exec \"$0\" run \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_netduel")]).arg(plan).current_dir(bench.path());
    bench.mark(&mut command);
    let run = Finished::from(command.output().unwrap());
    assert!(matches!(run.code, Some(0 | 6)), "{:?}: {}", run.code, run.stderr);
    let name = run.stdout.split_whitespace().find(|word| word.starts_with("run-short-")).unwrap();
    bench.run(["lab", "down", "--lab", name]).expect_code(0);
    bench.assert_nothing_left();
}

#[test]
fn lab_without_the_permission_ends_with_the_code_of_the_environment() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give up a single capability");
    }
    let bench = Bench::new();
    // It may make namespaces, and no interface in them.
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-net_admin").arg(env!("CARGO_BIN_EXE_netduel"));
    command.args(["lab", "up", "--lab", &format!("it-denied-{}", std::process::id())]);
    command.current_dir(bench.path());
    bench.mark(&mut command);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return skip(format!("setpriv cannot be run: {error}")),
    };
    let denied = Finished::from(output).expect_code(3);
    assert!(denied.stderr.contains("CAP_NET_ADMIN"), "{}", denied.stderr);
    bench.assert_nothing_left();
}
