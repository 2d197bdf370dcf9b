//! `--redact` and the names of stored runs and baseline files: errors and warnings count runs that a command does not read, and files that
//! cannot be read have numbers in place of their names. Errors of an inspection show no name of its hosts.
use std::collections::BTreeSet;

use crate::redaction::{name_the_user, store_runs_of_arms_in_two_cases, stored_run_of_hosts};
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
        ("by-other", "it has 3 runs of other names; `netduel runs` lists them"),
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

/// A store with a run of the user, and two files of the user that are no runs.
fn store_with_unreadable_runs() -> Bench {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "of-mallory7", "6.18.44");
    name_the_user(&bench, "of-mallory7");
    for run in ["by-mallory7", "from-mallory7"] {
        std::fs::write(bench.store().join(format!("{run}.netduel")), "not a run\n").unwrap();
    }
    bench
}

#[test]
fn run_files_that_cannot_be_read_have_numbers_in_place_of_their_names() {
    let bench = store_with_unreadable_runs();
    for (command, code, shown) in [
        (&["runs"][..], 0, &["file-1\n    unreadable: failed to read ", "/file-2.netduel: "][..]),
        (&["runs", "--json"], 0, &["\"file-1\"", "/file-2.netduel: "]),
        (&["runs", "verify"], 5, &["file-1: failed to read ", "file-2: ", "of-user-1: "]),
        (&["runs", "verify", "--json"], 5, &["\"file-1\"", "\"file-2\"", "\"of-user-1\""]),
        (&["runs", "verify", "by-mallory7"], 5, &["file-1: failed to read ", "/file-1.netduel: "]),
        (&["runs", "du"], 0, &["  file-1\n", "  file-2\n", "  of-user-1\n"]),
        (&["runs", "du", "--json"], 0, &["\"file-1\"", "\"of-user-1\""]),
        (&["runs", "tag", "from-mallory7", "--no-title"], 5, &["/file-2.netduel: "]),
        (&["runs", "import", "./mallory7-sent"], 5, &["/file-3.netduel: "]),
        (&["report", "by-mallory7"], 5, &["/file-1.netduel: "]),
        (&["report", "by-mallory7", "--json"], 5, &["/file-1.netduel: "]),
        (&["compare", "of-mallory7", "from-mallory7"], 5, &["/file-1.netduel: "]),
        (&["history", "from-mallory7"], 5, &["/file-1.netduel: "]),
        (&["runs", "baseline", "from-mallory7"], 5, &["/file-1.netduel: "]),
    ] {
        std::fs::write(bench.path().join("mallory7-sent"), "not a run\n").unwrap();
        let plain = bench.run(command).expect_code(code);
        assert!((plain.stdout + &plain.stderr).contains(USER), "{command:?} has nothing to hide");
        let hidden = bench.run([command, &["--redact"]].concat()).expect_code(code);
        let text = hidden.stdout + &hidden.stderr;
        for part in shown {
            assert!(text.contains(part), "{command:?} has no {part:?}: {text}");
        }
        assert!(!text.contains(USER), "{command:?}: {text}");
    }
}

#[test]
fn errors_about_what_is_compared_show_no_name_of_a_run() {
    let bench = Bench::new();
    for run in ["of-mallory7", "after"] {
        crate::compare::stored_run(&bench, run, "6.18.44");
    }
    name_the_user(&bench, "of-mallory7");
    bench.run(["runs", "baseline", "of-mallory7", "--out", "mallory7.json"]).expect_code(0);
    std::fs::write(bench.path().join("by-mallory7.json"), "no baseline\n").unwrap();
    for (command, code, shown) in [
        // No run shows that the words of the name are a name.
        (&["compare", "by-mallory7.json", "after"][..], 5, "the baseline file-1.json: it is no JSON"),
        (&["compare", "after", "./by-mallory7.json", "--json"], 5, "baseline ./file-1.json: it is no JSON"),
        (&["compare", "for-mallory7.json", "of-mallory7"], 9, "the baseline for-user-1.json: No such file"),
        (&["compare", "of-mallory7", "for-mallory7.json"], 9, "the baseline for-user-1.json: No such file"),
        (&["compare", "no-mallory7", "of-mallory7"], 9, "failed to find run `no-user-1`"),
        (&["compare", "no-mallory7", "mallory7.json"], 9, "failed to find run `no-user-1`"),
        (&["compare", "mallory7.json", "after"], 2, "failed to redact user-1.json: a baseline keeps its"),
        (&["compare", "after", "mallory7.json", "--json"], 2, "failed to redact user-1.json: "),
    ] {
        let hidden = bench.run([command, &["--redact"]].concat()).expect_code(code);
        let text = hidden.stdout + &hidden.stderr;
        assert!(text.contains(shown), "{command:?} has no {shown:?}: {text}");
        assert!(!text.contains(USER), "{command:?}: {text}");
    }
    // Without the option the file is named as the command line names it.
    let plain = bench.run(["compare", "after", "by-mallory7.json"]).expect_code(5).stderr;
    assert!(plain.contains("failed to read the baseline by-mallory7.json: it is no JSON"), "{plain}");
}

#[test]
fn changes_of_stored_runs_show_no_name() {
    let bench = store_with_unreadable_runs();
    bench.run(["runs", "export", "of-mallory7", "--out", "mallory7.netduel"]).expect_code(0);
    for (command, code, shown) in [
        (
            &["runs", "tag", "of-mallory7", "--title", "for mallory7", "--note", "by=mallory7"][..],
            0,
            "of-user-1: for user-1  by=user-1\n",
        ),
        (&["runs", "tag", "of-mallory7", "--note", "by=mallory7", "--json"], 0, "\"for user-1\""),
        (&["runs", "tag", "of-mallory7", "--unset", "none"], 2, "the run of-user-1 has no note none"),
        (&["runs", "rename", "of-mallory7", "with-mallory7"], 0, "renamed of-user-1 to with-user-1\n"),
        (&["runs", "rename", "with-mallory7", "of-mallory7", "--json"], 0, "\"with-user-1\""),
        (&["runs", "import", "mallory7.netduel"], 5, "the store has another run of this name"),
        (&["runs", "import", "mallory7.netduel", "--name", "2nd-mallory7"], 0, "imported 2nd-user-1, "),
        (&["runs", "import", "mallory7.netduel", "--name", "2nd-mallory7", "--json"], 0, "\"2nd-user-1\""),
        (&["runs", "verify", "./mallory7.netduel"], 0, "user-1: "),
        (&["runs", "rm", "2nd-mallory7"], 2, "add --yes"),
        (&["runs", "rm", "2nd-mallory7", "by-mallory7", "--yes"], 0, "deleted 2nd-user-1\ndeleted file-1\n"),
        (&["runs", "rm", "from-mallory7", "--yes", "--json"], 0, "\"file-1\""),
    ] {
        let hidden = bench.run([command, &["--redact"]].concat()).expect_code(code);
        let text = hidden.stdout + &hidden.stderr;
        assert!(text.contains(shown), "{command:?} has no {shown:?}: {text}");
        assert!(!text.contains(USER), "{command:?}: {text}");
    }
}

/// No record shows the user, so that only the number of the file hides the name.
#[test]
fn error_of_a_new_name_that_is_taken_shows_no_name_of_a_file_that_cannot_be_read() {
    let bench = Bench::new();
    crate::compare::stored_run(&bench, "plain", "6.18.44");
    std::fs::write(bench.store().join("by-mallory7.netduel"), "not a run\n").unwrap();
    let command = &["runs", "rename", "by-", "plain"][..];
    let plain = bench.run(command).expect_code(5).stderr;
    assert!(plain.contains("by-mallory7.netduel: another run has the name plain"), "{plain}");
    let hidden = bench.run([command, &["--redact"]].concat()).expect_code(5).stderr;
    assert!(hidden.contains("/file-1.netduel: another run has the name plain"), "{hidden}");
    assert!(!hidden.contains(USER), "{hidden}");
}

#[test]
fn error_of_a_condition_has_pseudonyms_in_the_names_of_arms() {
    let bench = Bench::new();
    for run in ["before", "after"] {
        let path = stored_run_of_hosts(&bench, run, ["sendhost7", "recvhost7"]);
        let text = std::fs::read_to_string(&path).unwrap();
        let named = text.replace("\"name\":\"accelerated\"", "\"name\":\"via-sendhost7\"");
        std::fs::write(&path, named.replace("\"arm\":\"accelerated\"", "\"arm\":\"via-sendhost7\"")).unwrap();
    }
    let gate = ["--redact", "--fail-if", "latency-p50 on nowhere > 5 %"];
    let refused = bench.run([&["compare", "before", "after"], &gate[..]].concat()).expect_code(2).stderr;
    assert!(refused.contains("synthetic, via-host-") && !refused.contains("sendhost7"), "{refused}");
}

#[test]
fn errors_of_conditions_have_two_names_for_arms_that_differ_by_the_case_of_a_host() {
    let bench = Bench::new();
    store_runs_of_arms_in_two_cases(&bench);
    for (command, arm) in
        [(&["compare", "before", "after"][..], "nowhere"), (&["report", "before"], "via-SendHost7")]
    {
        let condition = format!("latency-p50 on {arm} > 5 %");
        let gate = ["--redact", "--fail-if", condition.as_str()];
        let refused = bench.run([command, &gate[..]].concat()).expect_code(2).stderr;
        assert!(!refused.to_lowercase().contains("sendhost7"), "{refused}");
        let words = refused.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let arms: BTreeSet<&str> = words.filter(|word| word.starts_with("via-host-")).collect();
        assert_eq!(arms.len(), 2, "{command:?}: {refused}");
    }
}

#[test]
fn errors_of_an_inspection_show_no_name_of_its_hosts() {
    let bench = Bench::new();
    let plan = bench.plan(
        "name = \"x\"\nquestion = \"?\"\n[hosts.sendhost7]\nlaunch = \"local\"\n[hosts.recvhost7]\nlaunch = \"local\"\n\
         addresses = [\"10.1.2.3\"]\n[[arms]]\nname = \"one\"\nclient = \"sendhost7\"\nserver = \"recvhost7\"\n\
         [[workloads]]\nname = \"rr\"\ntype = \"tcp-rr\"\n[design]\naa = true\n",
    );
    let plan = plan.to_str().unwrap();
    for (words, code, shown) in [
        (&["inspect", "--plan", plan, "thirdhost7"][..], 2, &["has no host host-", "; it has host-"][..]),
        (
            &["inspect", "sendhost7:1"],
            10,
            &["no pairing with host-1:1", "`netduel pair -`", "reach it as ssh:host-1"],
        ),
        (&["inspect", "netns:sendhost7", "netns:sendhost7"], 2, &["netns:host-1 is named twice"]),
        (&["inspect", "lab:sendhost7/recvhost7"], 7, &["lab:host-1/host-2: there is no lab host-1;"]),
        (&["inspect", "ssh:mallory7@sendhost7", "sendhost7/1"], 2, &["\"host-1/1\""]),
    ] {
        let plain = bench.run(words).expect_code(code).stderr;
        assert!(plain.contains("host7"), "{words:?} has nothing to hide: {plain}");
        let hidden = bench.run([words, &["--redact"]].concat()).expect_code(code).stderr;
        for part in shown {
            assert!(hidden.contains(part), "{words:?} has no {part:?}: {hidden}");
        }
        assert!(!hidden.contains("host7") && !hidden.contains(USER), "{words:?}: {hidden}");
    }
}
