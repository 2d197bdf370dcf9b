//! What a plan may do: it is shown before a run, and a user can forbid programs and permit sysctls.
use std::path::{Path, PathBuf};

use netduel_model::ids::{HostName, RunId};
use netduel_model::plan::spec::Side;
use netduel_model::plan::{Launch, SshHost, Treatment, TreatmentAction};
use netduel_model::run::Run;
use netduel_store::{Store, bytes_of};
use netduel_test_support::skip;

use crate::support::{Bench, LATENCY, TWO_PATHS, short_plan};

/// A plan that runs a program at every place where a plan can name one; each would create the file `ran`.
fn plan_with_programs(bench: &Bench) -> String {
    let ran = bench.path().join("ran").display().to_string();
    format!(
        r#"name = "programs"
question = "Does it run them?"
[hosts.near]
launch = "local"
[hosts.far]
launch = "command"
command = ["touch", "{ran}"]
addresses = ["127.0.0.1"]
[[arms]]
name = "plain"
client = "near"
server = "far"
[[arms]]
name = "changed"
client = "near"
server = "far"
treatments = [
  {{ on = "client", command = ["touch", "{ran}"], undo = ["rm", "-f", "a b"] }},
  {{ on = "client", sysctl = "net.ipv4.tcp_sack", value = "1" }},
]
[[workloads]]
name = "packets"
type = "pps"
generator = "dpdk"
dpdk = {{ program = "{ran}", args = ["--burst=64"] }}
[[workloads]]
name = "moved"
type = "failover"
duration = "3 s"
events = [{{ at = "1 s", do = "command", interface = "eth0", command = ["touch", "{ran}"], undo = ["rmdir", "{ran}"] }}]
"#
    )
}

#[test]
fn plan_with_programs_is_refused_before_anything_starts() {
    let bench = Bench::new();
    let plan = bench.plan(&plan_with_programs(&bench));
    let plan = plan.to_str().unwrap();
    for words in [
        &["run", plan, "--no-commands"][..],
        &["plan", "check", plan, "--no-commands"],
        &["inspect", "--plan", plan, "--no-commands"],
    ] {
        let refused = bench.run(words).expect_code(2);
        for place in [
            "plan.toml:7: hosts.far.command: runs `touch ",
            "plan.toml:18: arm \"changed\", treatment 1, command: runs `touch ",
            "plan.toml:25: workload \"packets\", dpdk.program: runs `",
            "plan.toml:25: workload \"packets\", dpdk.args: runs `dpdk-testpmd --burst=64`",
            "plan.toml:30: workload \"moved\", event 1, command: runs `touch ",
        ] {
            assert!(refused.stderr.contains(place), "{words:?}: {place:?} is not in\n{}", refused.stderr);
        }
        assert!(refused.stderr.contains("leave out --no-commands"), "{}", refused.stderr);
        assert!(!bench.path().join("ran").exists(), "{words:?} ran a program");
    }
    // Nothing else is wrong with it: without the option its launcher is started.
    bench.run(["run", plan]).expect_code(4);
    assert!(bench.path().join("ran").exists());
    bench.assert_nothing_left();
}

#[test]
fn checked_plan_lists_what_a_run_does_on_each_host() {
    let bench = Bench::new();
    let plan = bench.plan(&plan_with_programs(&bench));
    let ran = bench.path().join("ran").display().to_string();
    let checked = bench.run(["plan", "check", plan.to_str().unwrap()]).expect_code(0);
    for line in [
        format!("far: reached by `touch {ran}`"),
        "near: this machine".to_owned(),
        format!("near: command `touch {ran}`, undone by `rm -f 'a b'`"),
        format!("near: command `{ran} --burst=64`"),
        format!("near: command `touch {ran}`, undone by `rmdir {ran}`"),
        "near: sysctl net.ipv4.tcp_sack = 1".to_owned(),
    ] {
        assert!(checked.stdout.contains(&line), "{line:?} is not in\n{}", checked.stdout);
    }
    let uses =
        bench.run(["plan", "check", plan.to_str().unwrap(), "--json"]).expect_code(0).json()["uses"].clone();
    assert_eq!(uses[0]["launch"]["prefix"], serde_json::json!(["touch", ran]));
    assert_eq!(uses[1]["commands"][2]["command"], serde_json::json!(["touch", ran]));
    assert_eq!(uses[1]["commands"][2]["undo"], serde_json::json!(["rm", "-f", "a b"]));
    assert_eq!(uses[1]["commands"][1]["undo"], serde_json::json!(["rmdir", ran]));
    assert_eq!(uses[1]["commands"][0]["undo"], serde_json::Value::Null);
    assert_eq!(uses[1]["sysctls"], serde_json::json!([{ "name": "net.ipv4.tcp_sack", "value": "1" }]));
    assert!(!bench.path().join("ran").exists(), "a check ran a program");
}

#[test]
fn sysctl_outside_of_the_network_needs_a_permission() {
    let bench = Bench::new();
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let text = plan_with_programs(&bench).replace("net.ipv4.tcp_sack", "kernel.core_pattern");
    let plan = bench.plan(&text);
    let plan = plan.to_str().unwrap();
    for words in [&["run", plan][..], &["plan", "check", plan]] {
        let refused = bench.run(words).expect_code(2);
        let place = "plan.toml:19: arm \"changed\", treatment 2, sysctl: changes \"kernel.core_pattern\"";
        assert!(refused.stderr.contains(place), "{}", refused.stderr);
        assert!(refused.stderr.contains("add --allow-sysctl"), "{}", refused.stderr);
    }
    let checked = bench.run(["plan", "check", plan, "--allow-sysctl"]).expect_code(0);
    assert!(checked.stdout.contains("near: sysctl kernel.core_pattern = 1"), "{}", checked.stdout);
    assert_eq!(std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap(), pattern);
}

#[test]
fn stored_plan_with_programs_is_not_resumed() {
    let bench = Bench::new();
    let arms = TWO_PATHS.replacen(
        "treatments = [{ path = \"synthetic\" }]",
        "treatments = [{ path = \"synthetic\" }, { command = [\"true\"], undo = [\"true\"] }]",
        1,
    );
    let plan = bench.plan(&short_plan(&arms, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    bench.run(["run", plan.to_str().unwrap(), "-q"]).expect_code(0);
    let file = std::fs::read_dir(bench.store()).unwrap().next().unwrap().unwrap().path();
    let stored = std::fs::read(&file).unwrap();
    let refused = bench.run(["run", "--resume", "last", "--no-commands"]).expect_code(2);
    assert!(
        refused.stderr.contains("its plan runs `true`") && refused.stderr.contains("(host a)"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read(&file).unwrap(), stored, "a refused run was changed");
    bench.assert_nothing_left();
}

/// Stores a run of two blocks of which the second is missing, changes it, and returns its file, which has sound checksums.
fn changed_run(bench: &Bench, change: impl FnOnce(&mut Run)) -> PathBuf {
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let run = bench.run(["run", plan.to_str().unwrap(), "-q"]);
    assert!(matches!(run.code, Some(0 | 6)), "{}", run.stderr);
    let mut run = Store::at(bench.store()).read("last").unwrap();
    run.trials.retain(|trial| trial.slot.block == 0);
    (run.warnings, run.end) = (Vec::new(), None);
    change(&mut run);
    let file = bench.store().join(format!("{}.netduel", run.header.id));
    std::fs::write(&file, bytes_of(&run).unwrap()).unwrap();
    file
}

/// The paths that a run file from elsewhere names.
fn name_reports(run: &mut Run, victim: &Path) {
    run.header.report = Some(victim.display().to_string());
    run.header.further_reports = vec![victim.with_extension("md").display().to_string()];
}

#[test]
fn imported_run_writes_no_report_that_its_file_names() {
    let bench = Bench::new();
    let victims = bench.path().join("victims");
    let file = changed_run(&bench, |run| name_reports(run, &victims.join("page.html")));
    std::fs::rename(&file, bench.path().join("theirs")).unwrap();
    bench.run(["runs", "import", "theirs"]).expect_code(0);
    let resumed = bench.run(["run", "--resume", "last"]);
    assert!(matches!(resumed.code, Some(0 | 6)), "{}", resumed.stderr);
    assert!(!resumed.stdout.contains("Report:"), "{}", resumed.stdout);
    assert!(!victims.exists(), "the run wrote where its file says");
    bench.assert_nothing_left();
}

#[test]
fn imported_run_of_the_future_is_not_resumed_in_place_of_the_own_one() {
    let bench = Bench::new();
    changed_run(&bench, |_| {});
    let mut run = Store::at(bench.store()).read("last").unwrap();
    let own = run.header.id.to_string();
    let ran = bench.path().join("ran");
    let words = |program: &str| vec![program.to_owned(), ran.display().to_string()];
    let action = TreatmentAction::Command { command: words("touch"), undo: words("stat") };
    run.header.plan.arms.first_mut().unwrap().treatments.push(Treatment { action, on: Side::Client });
    // The plan has this name, and the names of its runs begin with it.
    (run.header.id, run.header.started_unix_ms) = (RunId::new("short").unwrap(), 4_102_444_800_000);
    std::fs::write(bench.path().join("theirs"), bytes_of(&run).unwrap()).unwrap();
    let imported = bench.run(["runs", "import", "theirs"]).expect_code(0).stderr;
    for part in [
        "the start of short, 2100-01-01 00:00 UTC, is in the future",
        "the names of 1 other run begin with short,",
    ] {
        assert!(imported.contains(part), "{part:?} is not in\n{imported}");
    }
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("its start, 2100-01-01 00:00 UTC, is in the future"), "{listed}");
    let resumed = bench.run(["run", "--resume", "last"]);
    assert!(matches!(resumed.code, Some(0 | 6)), "{}", resumed.stderr);
    let named = format!("resuming the run {own} of ");
    let lines = ["warning: `last` leaves out 1 run ", named.as_str(), "lab: guests a and b are up"];
    let [warned, named, started] = lines.map(|line| resumed.stderr.find(line));
    assert!(warned.is_some() && warned < named && named < started, "{}", resumed.stderr);
    assert!(!ran.exists(), "the imported run was resumed");
    let deleted = bench.run(["runs", "rm", "last", "--yes"]).expect_code(0).stdout;
    assert_eq!(deleted, format!("deleted {own}\n"));
    let none = bench.run(["report", "last"]).expect_code(9).stderr;
    assert!(none.contains("start in the future"), "{none}");
    bench.assert_nothing_left();
}

#[test]
fn run_file_of_another_user_names_no_reports() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root gives a file to another user");
    }
    let bench = Bench::new();
    let victims = bench.path().join("victims");
    let file = changed_run(&bench, |run| name_reports(run, &victims.join("page.html")));
    std::os::unix::fs::chown(&file, Some(65_534), None).unwrap();
    let refused = bench.run(["run", "--resume", "last"]).expect_code(2);
    assert!(refused.stderr.contains("its file belongs to another user"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--out report.html"), "{}", refused.stderr);
    // With a place of this user's choice it is resumed.
    let resumed = bench.run(["run", "--resume", "last", "--out", "page.html"]);
    assert!(matches!(resumed.code, Some(0 | 6)), "{}", resumed.stderr);
    assert!(bench.path().join("page.html").is_file());
    assert!(!victims.exists(), "the run wrote where its file says");
    bench.assert_nothing_left();
}

#[test]
fn stored_plan_that_no_plan_file_may_have_is_not_resumed() {
    let bench = Bench::new();
    let host = HostName::new("a").unwrap();
    let ran = bench.path().join("ran");
    let option = SshHost::of(&format!("-oProxyCommand=touch {}", ran.display()));
    let sysctl = TreatmentAction::Sysctl { name: "kernel.core_pattern".to_owned(), value: "x".to_owned() };
    let file = changed_run(&bench, |run| {
        let arm = run.header.plan.arms.first_mut().unwrap();
        arm.treatments.push(Treatment { action: sysctl, on: Side::Client });
    });
    let refused = bench.run(["run", "--resume", "last"]).expect_code(2);
    for needle in ["its plan changes \"kernel.core_pattern\"", "add --allow-sysctl"] {
        assert!(refused.stderr.contains(needle), "{}", refused.stderr);
    }
    let mut run = Store::at(bench.store()).read("last").unwrap();
    run.header.plan.hosts.get_mut(&host).unwrap().launch = Launch::Ssh(option);
    std::fs::write(&file, bytes_of(&run).unwrap()).unwrap();
    let stored = std::fs::read(&file).unwrap();
    let refused = bench.run(["run", "--resume", "last", "--no-commands", "--allow-sysctl"]).expect_code(2);
    let expected = "the launcher of its host a has \"-oProxyCommand=touch ";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(!ran.exists(), "the run started a program");
    assert_eq!(std::fs::read(&file).unwrap(), stored, "a refused run was changed");
    bench.assert_nothing_left();
}
