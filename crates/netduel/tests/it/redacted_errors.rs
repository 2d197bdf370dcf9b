//! `--redact` and the names of stored runs that a command does not read: its errors and warnings count them.
use crate::support::Bench;

/// A user in the names of runs. No run shows that it is one.
const USER: &str = "mallory7";

#[test]
fn errors_about_names_of_runs_show_no_name_of_another_run() {
    let bench = Bench::new();
    for run in ["by-mallory7-1", "by-mallory7-2", "plain"] {
        crate::compare::stored_run(&bench, run, "6.18.44");
    }
    for (wanted, words) in [
        ("by-", "the names of 2 runs begin so; write more of its name; `netduel runs` lists them"),
        ("by-nobody", "it has 3 runs of other names; `netduel runs` lists them"),
    ] {
        for command in [
            &["report", wanted][..],
            &["report", wanted, "--json"],
            &["compare", "plain", wanted],
            &["compare", wanted, "plain", "--json"],
            &["history", wanted],
            &["runs", "export", wanted],
            &["runs", "baseline", wanted],
            &["run", "--resume", wanted],
        ] {
            // The beginning of several names is the newest of these runs in a history.
            if command[0] == "history" && wanted == "by-" {
                continue;
            }
            let plain = bench.run(command).expect_code(9);
            assert!((plain.stdout + &plain.stderr).contains(USER), "{command:?} has nothing to hide");
            let hidden = bench.run([command, &["--redact"]].concat()).expect_code(9);
            let text = hidden.stdout + &hidden.stderr;
            assert!(text.contains(words), "{command:?}: {text}");
            assert!(!text.contains(USER), "{command:?}: {text}");
        }
    }
}

#[test]
fn warning_about_runs_that_cannot_be_read_shows_no_name() {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "plain", "6.18.44");
    std::fs::write(bench.store().join("by-mallory7.netduel"), "not a run\n").unwrap();
    let plain = bench.run(["history", "plain"]).expect_code(0).stderr;
    assert!(plain.contains("by-mallory7 is left out"), "{plain}");
    let hidden = bench.run(["history", "plain", "--redact"]).expect_code(0);
    assert!(
        hidden.stderr.contains("left out: 1 run that cannot be read; `netduel runs verify` shows why"),
        "{}",
        hidden.stderr
    );
    let text = hidden.stdout + &hidden.stderr;
    assert!(!text.contains(USER), "{text}");
}
