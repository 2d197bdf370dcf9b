//! `netduel runs tag|rename|export|import|du|verify`: what a user and a colleague do with stored runs.
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{FlockOperation, flock};

use crate::support::{Bench, Finished, stored};

#[test]
fn title_and_notes_are_set_shown_and_removed() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let tagged = bench
        .run(["runs", "tag", "last", "--title", "after the update", "--note", "kernel=6.8", "--json"])
        .expect_code(0)
        .json();
    assert_eq!((&tagged["action"], &tagged["title"]), (&"tagged".into(), &"after the update".into()));
    let listed = bench.run(["runs"]).expect_code(0).stdout;
    assert!(listed.contains("after the update") && listed.contains("kernel=6.8"), "{listed}");
    let report = bench.run(["report", "last"]).expect_code(0).stdout;
    assert!(report.contains("after the update"), "{report}");
    let missing = bench.run(["runs", "tag", "last", "--unset", "colour"]).expect_code(2);
    assert!(missing.stderr.contains("has no note colour; it has kernel"), "{}", missing.stderr);
    let gone = bench.run(["runs", "tag", "last", "--unset", "kernel", "--no-title"]).expect_code(0).stdout;
    assert_eq!(gone, "old-1: no title\n");
    bench.run(["runs", "tag", "last"]).expect_code(2);
    bench.run(["runs", "tag", "nothing", "--no-title", "-J"]).expect_code(9).json();
    bench.run(["runs", "verify"]).expect_code(0);
}

#[test]
fn every_command_warns_of_newer_runs_that_last_leaves_out() {
    let bench = Bench::new();
    let own = stored(&bench, "old-1");
    let text = fs::read_to_string(&own).unwrap();
    let (before, start) = text.split_once("\"started_unix_ms\":").unwrap();
    let after = start.trim_start_matches(|c: char| c.is_ascii_digit());
    let later = format!("{before}\"started_unix_ms\":4102444800000{after}");
    fs::write(bench.store().join("future-1.netduel"), later).unwrap();
    fs::write(bench.store().join("damaged-1.netduel"), "no run").unwrap();
    for words in [
        &["report", "last"][..],
        &["compare", "last", "old-1"],
        &["history", "last"],
        &["runs", "baseline", "last"],
        &["runs", "export", "last", "--out", "exported.netduel"],
        &["runs", "tag", "last", "--title", "a title"],
        &["runs", "verify", "last"],
        &["runs", "rename", "last", "old-2"],
        &["runs", "rm", "last", "--yes"],
    ] {
        let stderr = bench.run(words).stderr;
        for part in ["leaves out 1 run whose start is in the future", "1 run file that cannot be read"] {
            assert!(stderr.contains(part), "{words:?}: no {part:?} in {stderr}");
        }
    }
    let named = bench.run(["report", "future-1"]).expect_code(0).stderr;
    assert!(!named.contains("leaves out"), "{named}");
}

#[test]
fn run_is_renamed_unless_the_name_is_taken_or_it_is_in_use() {
    let bench = Bench::new();
    let path = stored(&bench, "old-1");
    stored(&bench, "old-2");
    let taken = bench.run(["runs", "rename", "old-1", "old-2"]).expect_code(5).stderr;
    assert!(taken.contains("failed to rename run") && !taken.contains("resume"), "{taken}");
    let own = bench.run(["runs", "rename", "old-1", "old-1"]).expect_code(2).stderr;
    assert!(own.contains("it has this name already"), "{own}");
    bench.run(["runs", "rename", "old-1", "../x"]).expect_code(2);
    // Names that commands take for something else: the run could not be reached, or another one would be deleted.
    for name in ["last", "x.netduel", "x.json"] {
        let refused = bench.run(["runs", "rename", "old-1", name]).expect_code(2);
        assert!(
            refused.stderr.contains("in every command") || refused.stderr.contains("for a file"),
            "{}",
            refused.stderr
        );
    }
    let writer = File::open(&path).unwrap();
    flock(&writer, FlockOperation::LockExclusive).unwrap();
    bench.run(["runs", "rename", "old-1", "new"]).expect_code(5);
    drop(writer);
    let renamed = bench.run(["runs", "rename", "old-1", "new", "--json"]).expect_code(0).json();
    assert_eq!((&renamed["id"], &renamed["former_id"]), (&"new".into(), &"old-1".into()));
    assert!(!path.exists());
    bench.run(["report", "new"]).expect_code(0);
}

#[test]
fn colleague_opens_and_imports_an_exported_run() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let exported = bench.run(["runs", "export", "old-1"]).expect_code(0).stdout;
    assert!(exported.contains("netduel report ./old-1.netduel"), "{exported}");
    let taken = bench.run(["runs", "export", "old-1"]).expect_code(5);
    assert!(taken.stderr.contains("--out"), "{}", taken.stderr);
    let file = bench.path().join("old-1.netduel");
    // Users who could read the former file cannot read the new one.
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    bench.run(["runs", "export", "old-1", "--out", "old-1.netduel"]).expect_code(0);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let colleague = Bench::new();
    fs::copy(bench.path().join("old-1.netduel"), colleague.path().join("theirs.netduel")).unwrap();
    let report = colleague.run(["report", "./theirs.netduel"]).expect_code(0).stdout;
    assert!(report.contains("Verdict"), "{report}");
    // A printed command finds the store that the option names.
    let elsewhere = ["runs", "import", "theirs.netduel", "--name", "theirs", "--store", "else where"];
    let printed = colleague.run(elsewhere).expect_code(0).stdout;
    assert!(printed.ends_with("netduel report theirs --store 'else where'\n"), "{printed}");
    let imported = colleague.run(["runs", "import", "theirs.netduel", "--json"]).expect_code(0).json();
    assert_eq!((&imported["action"], &imported["was_there"]), (&"imported".into(), &false.into()));
    let again = colleague.run(["runs", "import", "theirs.netduel"]).expect_code(0).stdout;
    assert!(again.contains("was in the store before"), "{again}");
    let id = imported["id"].as_str().unwrap();
    colleague.run(["runs", "tag", id, "--title", "mine"]).expect_code(0);
    let other = colleague.run(["runs", "import", "theirs.netduel"]).expect_code(5);
    assert!(
        other.stderr.contains("another run of this name") && other.stderr.contains("--name"),
        "{}",
        other.stderr
    );
    colleague.run(["runs", "import", "theirs.netduel", "--name", "theirs"]).expect_code(0);
    assert_eq!(colleague.run(["runs", "--json"]).json()["runs"].as_array().unwrap().len(), 2);
    fs::write(colleague.path().join("notes"), "not a run").unwrap();
    colleague.run(["runs", "import", "notes"]).expect_code(5);
}

#[test]
fn printed_command_opens_an_exported_run_whatever_its_file_is_called() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    for (out, command) in [
        ("for-you", "netduel report ./for-you"),
        ("for you.netduel", "netduel report 'for you.netduel'"),
        ("for-you.netduel", "netduel report for-you.netduel"),
    ] {
        let printed = bench.run(["runs", "export", "old-1", "--out", out]).expect_code(0).stdout;
        assert!(printed.ends_with(&format!("open it with: {command}\n")), "{printed}");
        let mut shell = Command::new("sh");
        let program = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        shell.args(["-c", command]).current_dir(bench.path());
        bench.mark(&mut shell);
        let opened = Finished::from(shell.env("PATH", path).output().unwrap()).expect_code(0).stdout;
        assert!(opened.contains("Verdict"), "{opened}");
    }
}

#[test]
fn renamed_run_is_imported_under_the_name_that_it_was_given() {
    let (bench, colleague) = (Bench::new(), Bench::new());
    stored(&bench, "old-1");
    bench.run(["runs", "rename", "old-1", "before-the-update"]).expect_code(0);
    bench.run(["runs", "export", "last", "--out", "for-you.netduel"]).expect_code(0);
    fs::copy(bench.path().join("for-you.netduel"), colleague.path().join("theirs.netduel")).unwrap();
    let imported = colleague.run(["runs", "import", "theirs.netduel", "--json"]).expect_code(0).json();
    assert_eq!(imported["id"], "before-the-update");
    colleague.run(["report", "before-the-update"]).expect_code(0);
    let again = bench.run(["runs", "import", "for-you.netduel"]).expect_code(0).stdout;
    assert!(again.contains("was in the store before"), "{again}");
}

#[test]
fn imported_run_whose_name_means_another_run_needs_another_name() {
    let bench = Bench::new();
    let path = crate::compare::stored_run(&bench, "last", "6.18.44");
    fs::rename(path, bench.path().join("theirs")).unwrap();
    let refused = bench.run(["runs", "import", "theirs"]).expect_code(5).stderr;
    assert!(refused.contains("newest run in every command") && refused.contains("--name"), "{refused}");
    assert!(bench.run(["runs", "--json"]).expect_code(0).json()["runs"].as_array().unwrap().is_empty());
    stored(&bench, "earlier");
    let imported = bench.run(["runs", "import", "theirs", "--name", "theirs"]).expect_code(0).stderr;
    assert!(imported.contains("`last` is theirs now"), "{imported}");
    bench.run(["report", "theirs"]).expect_code(0);
}

#[test]
fn copy_of_an_incomplete_run_file_is_made_with_a_warning() {
    let bench = Bench::new();
    let path = stored(&bench, "old-1");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let warned = "warning: incomplete run file: the last record";
    let exported = bench.run(["runs", "export", "old-1", "--out", "copy.netduel"]).expect_code(0).stderr;
    assert!(exported.contains(warned), "{exported}");
    fs::copy(&path, bench.path().join("incomplete")).unwrap();
    for answer in ["imported theirs", "was in the store before"] {
        let imported = bench.run(["runs", "import", "incomplete", "--name", "theirs"]).expect_code(0);
        assert!(imported.stdout.contains(answer), "{}", imported.stdout);
        assert!(imported.stderr.contains(warned), "{}", imported.stderr);
    }
    // The copies have whole records only.
    bench.run(["runs", "verify", "theirs"]).expect_code(0);
    let copy = bench.run(["runs", "import", "copy.netduel", "--name", "copy"]).expect_code(0).stderr;
    assert!(!copy.contains("warning"), "{copy}");
}

#[test]
fn disk_space_and_soundness_have_documents() {
    let bench = Bench::new();
    let none = bench.run(["runs", "verify"]).expect_code(0).stderr;
    assert!(none.contains("no run is stored in "), "{none}");
    let path = stored(&bench, "old-1");
    let usage = bench.run(["runs", "du", "--json"]).expect_code(0).json();
    assert_eq!(usage["runs"][0]["bytes"], fs::metadata(&path).unwrap().len());
    assert_eq!(usage["disk_bytes"], usage["runs"][0]["disk_bytes"]);
    let text = bench.run(["runs", "du"]).expect_code(0).stdout;
    assert!(text.contains("old-1") && text.contains("are free"), "{text}");
    assert_eq!(bench.run(["runs", "verify", "-J"]).expect_code(0).json()["runs"][0]["is_sound"], true);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let torn = bench.run(["runs", "verify", "-J"]).expect_code(5).json();
    assert_eq!((&torn["runs"][0]["is_sound"], &torn["runs"][0]["torn"]), (&false.into(), &true.into()));
}
