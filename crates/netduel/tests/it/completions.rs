//! Completions of names in the shells themselves.
use std::process::Command;

use netduel_test_support::skip;

use crate::support::{Bench, STREAM, stored};
use crate::tmux::Tmux;

/// A plan of two hosts, whose names differ from all others.
const PLAN: &str = r#"
name = "far"
question = "Which is faster?"
[hosts.alpha]
launch = "local"
[hosts.bravo]
launch = "ssh"
host = "bravo.example"
addresses = ["192.0.2.7"]
[[arms]]
name = "synthetic"
client = "alpha"
server = "bravo"
[[arms]]
name = "accelerated"
client = "alpha"
server = "bravo"
treatments = [{ offload = "tso", interface = "eth0", value = "on" }]
"#;

/// A test's folder with a run that has notes, another store with a run, a pairing, a plan and a bed.
fn bench() -> Bench {
    let bench = Bench::new();
    let run = stored(&bench, "old-1");
    let text = std::fs::read_to_string(&run).unwrap();
    let id = "\"id\":\"golden-20261121-104501-7f3a\",";
    assert!(text.contains(id));
    let notes = "\"annotations\":{\"notes\":{\"kernel\":\"6.8\",\"made\":\"by $(hand)\"}},";
    std::fs::write(&run, text.replacen(id, &format!("{id}{notes}"), 1)).unwrap();
    std::fs::create_dir(bench.path().join("other")).unwrap();
    std::fs::copy(&run, bench.path().join("other/there-1.netduel")).unwrap();
    let pairings = bench.path().join("state/netduel/pairings");
    std::fs::create_dir_all(&pairings).unwrap();
    std::fs::write(pairings.join("faraway:5210"), "").unwrap();
    bench.plan(&format!("{PLAN}{STREAM}"));
    // A bed that was deleted keeps its template.
    for (bed, file) in [("deployed", "parameters.json"), ("deleted", "template.json")] {
        let folder = bench.path().join("state/netduel/azure").join(bed);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), "{}").unwrap();
    }
    std::fs::write(bench.path().join("bed.toml"), "").unwrap();
    bench
}

/// What stands on the command line after the tabulator, for what was typed.
const CASES: [(&str, &str); 27] = [
    ("netduel report ol", "netduel report old-1"),
    ("netduel run --resume ol", "netduel run --resume old-1"),
    ("netduel runs tag ol", "netduel runs tag old-1"),
    ("netduel runs export ol", "netduel runs export old-1"),
    ("netduel runs rm ol", "netduel runs rm old-1"),
    ("netduel runs verify ol", "netduel runs verify old-1"),
    ("netduel runs rename ol", "netduel runs rename old-1"),
    ("netduel runs baseline ol", "netduel runs baseline old-1"),
    ("netduel tcp far", "netduel tcp faraway"),
    ("netduel tcp faraway:5", "netduel tcp faraway:5210"),
    ("netduel pair --forget far", "netduel pair --forget faraway"),
    ("netduel inspect --plan plan.toml br", "netduel inspect --plan plan.toml bravo"),
    ("netduel history --metric latency-p5", "netduel history --metric latency-p50"),
    ("netduel history old-1 --workload da", "netduel history old-1 --workload datagrams"),
    ("netduel history old-1 --arm acc", "netduel history old-1 --arm accelerated"),
    ("netduel report --store other the", "netduel report --store other there-1"),
    ("netduel compare last --store other the", "netduel compare last --store other there-1"),
    ("netduel compare old-1 pub", "netduel compare old-1 published:"),
    ("netduel compare old-1 published:azure-s", "netduel compare old-1 published:azure-stress-2018"),
    ("netduel history --note ker", "netduel history --note kernel=6.8"),
    ("netduel history --note kernel=", "netduel history --note kernel=6.8"),
    ("netduel azure down d", "netduel azure down deployed"),
    ("netduel azure down --yes d", "netduel azure down --yes deployed"),
    ("netduel azure down be", "netduel azure down bed.toml"),
    ("netduel azure run plan.toml --bed d", "netduel azure run plan.toml --bed deployed"),
    ("netduel plan check plan.toml --bed d", "netduel plan check plan.toml --bed deployed"),
    ("netduel azure check be", "netduel azure check bed.toml"),
];

fn assert_completes(shell: &str, set_up: &str) {
    let bench = bench();
    if Command::new(shell.split(' ').next().unwrap()).arg("--version").output().is_err() {
        return skip(format!("no {shell}"));
    }
    let Some(tmux) = Tmux::start(&bench, (120, 24), shell) else { return };
    tmux.send(&format!("{set_up}; clear; echo rea''dy"));
    tmux.press("Enter");
    tmux.wait_for("a prompt", |screen| screen.lines().any(|line| line.trim() == "ready"));
    for (typed, completed) in CASES {
        tmux.send(typed);
        tmux.press("Tab");
        tmux.wait_for(&format!("{completed} in {shell}"), |screen| screen.contains(completed));
        tmux.press("C-u");
        tmux.send("clear");
        tmux.press("Enter");
        tmux.wait_for("an empty screen", |screen| !screen.contains(typed));
    }
    // The plan is no note: what follows stands behind what was typed.
    tmux.send("netduel history --note pla");
    tmux.press("Tab");
    tmux.send("Z");
    tmux.wait_for("no file", |screen| screen.contains("netduel history --note plaZ"));
    tmux.press("C-u");
    // The options of the definition remain.
    tmux.send("netduel tcp --parall");
    tmux.press("Tab");
    tmux.wait_for("an option", |screen| screen.contains("netduel tcp --parallel"));
}

#[test]
fn bash_completes_names() {
    assert_completes("bash --norc", "source <(netduel completions bash)");
}

#[test]
fn zsh_completes_names() {
    assert_completes(
        "zsh -f",
        "PS1='$ '; autoload -U compinit; compinit -u -D; source <(netduel completions zsh)",
    );
}

#[test]
fn zsh_completes_names_from_a_file_in_its_path() {
    assert_completes(
        "zsh -f",
        "PS1='$ '; mkdir -p functions; netduel completions zsh > functions/_netduel; fpath+=($PWD/functions); autoload -U compinit; compinit -u -D",
    );
}

#[test]
fn fish_completes_names() {
    let bench = bench();
    if Command::new("fish").arg("--version").output().is_err() {
        return skip("no fish");
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap();
    let completed = |line: &str| {
        let script = format!("netduel completions fish | source; complete -C {line:?}");
        let mut command = Command::new("fish");
        command.args(["--no-config", "-c", &script]).current_dir(bench.path());
        command.env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()));
        command.env("HOME", bench.path());
        bench.mark(&mut command);
        let output = command.output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for (typed, whole) in CASES {
        let word = whole.rsplit(' ').next().unwrap();
        let found = completed(typed);
        assert!(found.lines().any(|line| line.starts_with(word)), "{typed}: {found}");
    }
    assert_eq!(completed("netduel history --note pla"), "", "no file is a note");
    assert!(completed("netduel tcp --parall").contains("--parallel"));
    let conditions = completed("netduel run plan.toml --fail-if ");
    assert!(conditions.contains("throughput on accelerated < -5 %"), "{conditions}");
    let conditions = completed("netduel compare old-1 last --fail-if ");
    assert!(conditions.contains("throughput on synthetic < -5 %"), "{conditions}");
    for command in ["report old-1", "azure run plan.toml"] {
        let conditions = completed(&format!("netduel {command} --fail-if "));
        assert!(conditions.contains("throughput on accelerated < -5 %"), "{command}: {conditions}");
        assert!(!conditions.contains(" on synthetic"), "{command}: {conditions}");
    }
    for line in ["netduel lab exec ", "netduel lab exec --lab local "] {
        let hosts = completed(line);
        assert!(hosts.lines().any(|host| host.starts_with("h2")), "{line}: {hosts}");
    }
}

#[test]
fn names_of_a_run_complete_options_of_history_and_compare() {
    let bench = bench();
    let names = |words: &[&str]| bench.run([&["complete"], words].concat()).expect_code(0).stdout;
    assert!(names(&["arms", "old-1"]).starts_with("synthetic\naccelerated\n"));
    assert_eq!(names(&["workloads", "there-1", "--store", "other"]), names(&["workloads"]));
    assert!(names(&["workloads"]).starts_with("bulk\ndatagrams\n"));
    assert!(names(&["metrics"]).lines().any(|metric| metric == "latency-p99"));
    assert_eq!(names(&["runs", "--store", "other"]), "last\nthere-1\n");
    assert!(names(&["compared"]).starts_with("last\nold-1\npublished:azure-stress-2018\n"));
    assert_eq!(names(&["notes"]), "kernel=6.8\n", "a shell would evaluate the other note");
    let conditions = names(&["run-conditions", "old-1"]);
    assert!(conditions.contains("throughput on synthetic < -5 %\n"), "{conditions}");
    let conditions = names(&["arm-conditions", "old-1"]);
    assert!(conditions.contains("throughput on accelerated < -5 %\n"), "{conditions}");
    assert!(!conditions.contains(" on synthetic"), "the baseline has no verdict: {conditions}");
    assert_eq!(names(&["lab-hosts"]), "a\nb\nh1\nh2\n");
    assert_eq!(names(&["beds"]), "deployed\n");
    bench.run(["complete", "arms", "no-such-run"]).expect_code(9);
}

#[test]
fn arms_of_a_plan_complete_conditions() {
    let bench = bench();
    let conditions = bench.run(["complete", "conditions", "plan.toml"]).expect_code(0).stdout;
    assert!(conditions.contains("throughput on accelerated < -5 %\n"), "{conditions}");
    assert!(!conditions.contains(" on synthetic"), "the baseline has no verdict: {conditions}");
    for condition in conditions.lines() {
        let checked = bench.run(["run", "missing.toml", "--fail-if", condition]).expect_code(2);
        assert!(checked.stderr.contains("missing.toml"), "{condition}: {}", checked.stderr);
    }
}
