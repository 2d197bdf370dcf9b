//! Errors about files that are read and written state the operation, the file, the cause and what to do.
use std::fs::{File, Permissions, create_dir, read_dir, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::process::{Command, Stdio};

use netduel_test_support::skip;

use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, short_plan, stored};

/// Where the text of the kernel's error ends.
const CAUSE: &str = "(os error ";

/// Fails unless an error states its cause and then what to do.
#[track_caller]
fn assert_has_remedy(finished: &Finished, words: &[&str]) {
    let error = finished.stderr.trim_end();
    let (doing, rest) = error.split_once(CAUSE).unwrap_or_else(|| panic!("{words:?}: no cause in {error}"));
    assert!(doing.contains("failed to "), "{words:?}: {error}");
    let remedy = rest.split_once("); ").map_or("", |(_, remedy)| remedy);
    assert!(remedy.contains(' '), "{words:?}: no remedy in {error}");
}

#[test]
fn file_that_cannot_be_read_has_a_remedy() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    create_dir(bench.path().join("folder")).unwrap();
    for words in [
        &["run", "missing.toml"][..],
        &["plan", "check", "missing.toml"],
        &["plan", "check", "folder"],
        &["azure", "check", "missing.toml"],
        &["tcp", "far", "--pairing-file", "missing"],
        &["compare", "missing.json", "old-1"],
        &["report", "last", "--commentary", "missing.md"],
        &["report", "last", "--logo", "missing.png"],
        &["report", "./missing.netduel"],
        &["runs", "import", "missing.netduel"],
    ] {
        let finished = bench.run(words);
        assert_ne!(finished.code, Some(0), "{words:?}");
        assert_has_remedy(&finished, words);
    }
}

#[test]
fn input_to_which_a_link_of_another_user_leads_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a link of another user");
    }
    let bench = Bench::new();
    let (run, plan) = (stored(&bench, "old-1"), bench.plan(&short_plan(TWO_PATHS, LATENCY, "")));
    let everybody = bench.path().join("everybody");
    create_dir(&everybody).unwrap();
    set_permissions(&everybody, Permissions::from_mode(0o1777)).unwrap();
    let words = bench.path().join("words.md");
    std::fs::write(&words, "confidential").unwrap();
    let links = [(&words, "words.md"), (&words, "words.json"), (&plan, "plan.toml"), (&run, "run.netduel")]
        .map(|(target, name)| (target, everybody.join(name)));
    for (target, link) in &links {
        symlink(target, link).unwrap();
        lchown(link, Some(65_534), Some(65_534)).unwrap();
    }
    let report = ["report", "old-1", "--commentary", "everybody/words.md", "--out", "page.html"];
    for (words, code) in [
        (&report[..], 2),
        (&["report", "old-1", "--logo", "everybody/words.md"], 2),
        (&["plan", "check", "everybody/plan.toml"], 2),
        (&["run", "everybody/plan.toml"], 2),
        (&["azure", "check", "everybody/words.md"], 2),
        (&["tcp", "far", "--pairing-file", "everybody/words.md"], 2),
        (&["compare", "everybody/words.json", "old-1"], 5),
        (&["report", "everybody/run.netduel"], 5),
        (&["runs", "import", "everybody/run.netduel", "--name", "new"], 5),
    ] {
        let refused = bench.run(words).expect_code(code);
        let is_named = refused.stderr.contains("a link of another user leads to it; name the file itself");
        assert!(is_named, "{words:?}: {}", refused.stderr);
    }
    assert!(!bench.path().join("page.html").exists());
    // The owner of the folder, here root itself, may link.
    for (_, link) in &links {
        lchown(link, Some(0), Some(0)).unwrap();
    }
    bench.run(report).expect_code(0);
    assert!(std::fs::read_to_string(bench.path().join("page.html")).unwrap().contains("confidential"));
    bench.run(["plan", "check", "everybody/plan.toml"]).expect_code(0);
    bench.run(["report", "everybody/run.netduel"]).expect_code(0);
}

#[test]
fn limit_of_file_sizes_is_named_by_every_command_that_writes_a_file() {
    let bench = Bench::new();
    let run = stored(&bench, "old-1");
    let before = std::fs::read(&run).unwrap();
    let limited = |words: &[&str], out: Stdio| {
        let mut command = Command::new("sh");
        let script = "ulimit -f 0 && exec \"$0\" \"$@\"";
        command.args(["-c", script, env!("CARGO_BIN_EXE_netduel")]).args(words);
        command.current_dir(bench.path()).stdin(Stdio::null()).stdout(out).stderr(Stdio::piped());
        bench.mark(&mut command);
        Finished::from(command.spawn().unwrap().wait_with_output().unwrap()).expect_code(5)
    };
    for words in [
        &["man", "pages"][..],
        &["report", "last", "--out", "report.html"],
        &["runs", "baseline", "last", "--out", "baseline.json"],
        &["runs", "export", "last"],
        &["runs", "tag", "last", "--title", "x"],
        &["runs", "import", run.to_str().unwrap(), "--name", "other"],
        &["serve", "-p", "0"],
    ] {
        let finished = limited(words, Stdio::piped());
        let error = &finished.stderr;
        assert!(error.contains("raise the limit of file sizes (`ulimit -f`"), "{words:?}: {error}");
    }
    for words in [&["plan", "schema"][..], &["runs", "--json"], &["report", "last"]] {
        let out = File::create(bench.path().join("out")).unwrap();
        let finished = limited(words, out.into());
        let expected = "failed to write to standard output: File too large (os error 27); raise the limit";
        assert!(finished.stderr.contains(expected), "{words:?}: {}", finished.stderr);
    }
    // Nothing is half written: the run is as it was, and no draft is left beside it.
    assert_eq!(std::fs::read(&run).unwrap(), before);
    assert_eq!(read_dir(bench.store()).unwrap().count(), 1);
    bench.run(["runs", "verify"]).expect_code(0);
}
