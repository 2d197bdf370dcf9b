//! Files that commands write: what a path names is not destroyed, no planted link is followed, and what cannot be written is found before the
//! first trial.
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, lchown, symlink};
use std::process::{Command, Stdio};

use netduel_test_support::skip;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::process::Signal;

use crate::compare::{stored_run, stored_slower_run};
use crate::support::{Bench, Finished, LATENCY, TWO_PATHS, UnderWay, short_plan, signal, stored, until};

#[test]
fn link_to_standard_output_stays_and_the_report_is_printed() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    // As /dev/stdout is one.
    let link = bench.path().join("stdout.md");
    symlink("/proc/self/fd/1", &link).unwrap();
    let words = ["report", "last", "--out", "stdout.md"];
    let printed = bench.run(words).expect_code(0).stdout;
    assert!(printed.starts_with("# ") && printed.ends_with("stdout.md\n"), "{printed}");
    // A file is neither replaced nor written from its beginning.
    let file = bench.path().join("file");
    let output = bench.netduel(words).stdout(File::create(&file).unwrap()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read_to_string(file).unwrap() == printed, "the file differs from what a pipe receives");
    assert!(fs::symlink_metadata(link).unwrap().is_symlink());
}

#[test]
fn pipe_takes_the_report_and_stays_a_pipe() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    let pipe = bench.path().join("pipe.md");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let mut reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
    let finished = bench.run(["report", "last", "--out", "pipe.md"]);
    let is_pipe = fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo();
    if !is_pipe || finished.code != Some(0) {
        // The reader would wait for ever.
        reader.kill().unwrap();
    }
    let text = String::from_utf8(reader.wait_with_output().unwrap().stdout).unwrap();
    finished.expect_code(0);
    assert!(is_pipe && text.starts_with("# "), "{text}");
}

#[test]
fn pipe_of_another_user_where_everybody_can_make_one_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a pipe of another user");
    }
    let bench = Bench::new();
    stored(&bench, "old-1");
    let everybody = bench.path().join("everybody");
    fs::create_dir(&everybody).unwrap();
    fs::set_permissions(&everybody, fs::Permissions::from_mode(0o1777)).unwrap();
    let pipe = everybody.join("pipe.md");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    // It reads whatever is written: a program that is not refused ends as well.
    let end = File::options().read(true).write(true).open(&pipe).unwrap();
    let mut reader = Command::new("cat");
    bench.mark(reader.stdin(end).stdout(Stdio::null()));
    let mut reader = reader.spawn().unwrap();
    lchown(&pipe, Some(65_534), Some(65_534)).unwrap();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, ""));
    for words in [&["report", "last"][..], &["runs", "export", "last"], &["run", plan.to_str().unwrap()]] {
        let refused = bench.run([words, &["--out", "everybody/pipe.md"]].concat()).expect_code(5).stderr;
        let has_reason = refused.contains("everybody/pipe.md is a pipe of another user");
        assert!(has_reason && !refused.contains("lab:"), "{words:?}: {refused}");
    }
    let mut command = bench.netduel(["report", "last", "--format", "github"]);
    let printed = Finished::from(command.env("GITHUB_STEP_SUMMARY", &pipe).output().unwrap()).expect_code(0);
    assert!(printed.stderr.contains("pipe of another user"), "{}", printed.stderr);
    reader.kill().unwrap();
    reader.wait().unwrap();
}

#[test]
fn wait_for_a_reader_of_a_pipe_ends_at_the_first_signal() {
    let bench = Bench::new();
    let pipe = bench.path().join("pipe.md");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 200\nblocks_max = 200"));
    let mut run = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap(), "--out", "pipe.md"]));
    run.wait_for("trial   4/");
    signal(run.pid(), Signal::INT);
    assert!(until(|| run.child.try_wait().unwrap().is_some()), "it waits on");
    let stopped = run.finish().expect_code(130);
    assert!(stopped.stderr.contains("no program reads this pipe"), "{}", stopped.stderr);
    bench.assert_nothing_left();
}

/// The devices are those of the bench: a program that replaced them would not take /dev/null from the machine.
#[test]
fn device_is_written_into_and_stays_a_device() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    // The numbers of /dev/null and /dev/full.
    for (name, minor, code) in [("null.md", 3, 0), ("full.md", 7, 5)] {
        let device = bench.path().join(name);
        let mode = Mode::from_raw_mode(0o600);
        let made = mknodat(CWD, &device, FileType::CharacterDevice, mode, makedev(1, minor));
        if made.is_err() || File::options().write(true).open(&device).is_err() {
            return skip("no device can be made in the folder of the test");
        }
        for words in [&["report", "last"][..], &["runs", "export", "last"]] {
            let finished = bench.run([words, &["--out", name]].concat()).expect_code(code);
            assert_eq!(finished.stderr.contains(name), code != 0, "{words:?}: {}", finished.stderr);
            let left = fs::symlink_metadata(&device).unwrap();
            assert!(left.file_type().is_char_device(), "{words:?} replaced {name}");
        }
    }
}

#[test]
fn link_planted_at_the_name_of_a_draft_is_not_followed() {
    let bench = Bench::new();
    stored(&bench, "old-1");
    fs::write(bench.path().join("victim"), "untouched").unwrap();
    // The shell becomes the program, so that the process id is known before.
    let mut command = Command::new("sh");
    command.args(["-c", "ln -s victim report.part-$$ && exec \"$0\" report last --out report.html"]);
    command.arg(env!("CARGO_BIN_EXE_netduel")).current_dir(bench.path());
    bench.mark(&mut command);
    Finished::from(command.output().unwrap()).expect_code(0);
    assert!(fs::read_to_string(bench.path().join("victim")).unwrap() == "untouched", "the link was followed");
    let page = fs::symlink_metadata(bench.path().join("report.html")).unwrap();
    assert!(page.is_file() && page.len() > 1000);
}

#[test]
fn link_planted_on_the_way_to_a_file_is_not_followed() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a link of another user");
    }
    let bench = Bench::new();
    stored(&bench, "old-1");
    let (everybody, victim) = (bench.path().join("everybody"), bench.path().join("victim"));
    fs::create_dir(&everybody).unwrap();
    fs::create_dir(&victim).unwrap();
    fs::set_permissions(&everybody, fs::Permissions::from_mode(0o1777)).unwrap();
    let link = everybody.join("reports");
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(65_534), Some(65_534)).unwrap();
    // A link of this user that leads through it, where the kernel refuses nothing.
    let unprotected = bench.path().join("unprotected");
    fs::create_dir(&unprotected).unwrap();
    fs::set_permissions(&unprotected, fs::Permissions::from_mode(0o777)).unwrap();
    symlink(&victim, unprotected.join("reports")).unwrap();
    lchown(unprotected.join("reports"), Some(65_534), Some(65_534)).unwrap();
    symlink("unprotected/reports", bench.path().join("latest")).unwrap();
    for words in [
        ["report", "last", "--out", "everybody/reports/report.html"].as_slice(),
        &["report", "last", "--out", "everybody/reports/new/report.html"],
        &["report", "last", "--out", "latest/report.html"],
        &["report", "last", "--out", "latest/new/report.html"],
        &["report", "last", "--out", "everybody/reports"],
        &["man", "everybody/reports"],
    ] {
        let refused = bench.run(words).expect_code(5);
        // The kernel refuses it itself where `fs.protected_symlinks` is on.
        let is_named =
            ["link of another user", "Permission denied"].iter().any(|why| refused.stderr.contains(why));
        assert!(is_named, "{words:?}: {}", refused.stderr);
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{words:?}");
    }
    let run = bench.store().join("old-1.netduel");
    for store in ["everybody/reports", "everybody/reports/new"] {
        let refused = bench.run(["runs", "import", run.to_str().unwrap(), "--store", store]).expect_code(5);
        assert!(refused.stderr.contains("link of another user"), "{}", refused.stderr);
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0, "{store}");
    }
    // A link of this user to a file leads through it, too.
    symlink("unprotected/reports/page.html", bench.path().join("page.html")).unwrap();
    fs::copy(&run, victim.join("old-1.netduel")).unwrap();
    fs::write(victim.join("page.html"), "untouched").unwrap();
    for words in [
        &["report", "last", "--out", "page.html"][..],
        &["report", "last", "--store", "everybody/reports"],
        &["runs", "rm", "old-1", "--yes", "--store", "everybody/reports"],
    ] {
        let refused = bench.run(words).expect_code(5);
        assert!(refused.stderr.contains("link of another user"), "{words:?}: {}", refused.stderr);
    }
    assert!(victim.join("old-1.netduel").exists());
    assert_eq!(fs::read_to_string(victim.join("page.html")).unwrap(), "untouched");
    // The owner of the folder, here root itself, may link.
    symlink(&victim, everybody.join("own")).unwrap();
    bench.run(["report", "last", "--out", "everybody/own/report.html"]).expect_code(0);
    assert!(victim.join("report.html").is_file());
}

#[test]
fn link_planted_at_the_step_summary_is_not_followed() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a link of another user");
    }
    let bench = Bench::new();
    stored(&bench, "old-1");
    let (victim, link) = (bench.path().join("victim"), bench.path().join("summary.md"));
    fs::write(&victim, "untouched").unwrap();
    symlink(&victim, &link).unwrap();
    lchown(&link, Some(65_534), Some(65_534)).unwrap();
    let mut command = bench.netduel(["report", "last", "--format", "github"]);
    let printed = Finished::from(command.env("GITHUB_STEP_SUMMARY", &link).output().unwrap()).expect_code(0);
    assert!(printed.stderr.contains("link of another user"), "{}", printed.stderr);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
}

#[test]
fn dash_is_standard_output_of_commands_that_print_their_document() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    let inspect = ["inspect", "--no-metadata", "--fail-on", "never", "--json"];
    for (words, beginning) in [
        (&["report", "before", "--format", "md"][..], "# "),
        (&["report", "before", "--json"], "{"),
        (&["report", "before", "--format", "html"], "<!DOCTYPE html>"),
        (&["compare", "before", "after", "--format", "md"], "# Comparison of 2 runs"),
        (&["history", "after", "--format", "md"], "# "),
        (&["runs", "baseline", "before"], "{"),
        (&inspect[..], "{"),
    ] {
        let printed = bench.run([words, &["--out", "-"]].concat()).expect_code(0).stdout;
        assert!(printed.starts_with(beginning), "{words:?}: {printed}");
    }
    let refused = bench.run(["report", "before", "--format", "pdf", "--out", "-"]).expect_code(2).stderr;
    assert!(refused.contains("a PDF is written to a file"), "{refused}");
    assert!(!bench.path().join("-").exists());
}

#[test]
fn dash_is_refused_where_standard_output_has_another_text() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    for words in [&["run", "no-plan.toml"][..], &["demo"], &["runs", "export", "before"]] {
        let refused = bench.run([words, &["--out", "-"]].concat()).expect_code(2).stderr;
        assert!(refused.contains("`--out -`"), "{words:?}: {refused}");
    }
    assert!(!bench.path().join("-").exists());
}

#[test]
fn out_that_cannot_be_replaced_is_refused_before_anything_is_started() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, ""));
    fs::create_dir_all(bench.path().join("taken/report.html")).unwrap();
    symlink("nowhere", bench.path().join("link.html")).unwrap();
    for (out, reason) in [("taken", "it is a folder"), ("link.html", "link to a missing file")] {
        let refused = bench.run(["run", plan.to_str().unwrap(), "--out", out]).expect_code(5);
        let has_reason = refused.stderr.contains(reason) && refused.stderr.contains("--out");
        assert!(has_reason && !refused.stderr.contains("lab:"), "{out}: {}", refused.stderr);
    }
    assert!(bench.run(["runs"]).stdout.contains("no run is stored"));
}

#[test]
fn output_that_the_command_reads_and_a_stored_run_are_refused_before_anything_is_written() {
    let bench = Bench::new();
    let run = stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.18.44");
    let at = |name: &str| bench.path().join(name);
    fs::copy(run, at("copy.netduel")).unwrap();
    fs::write(at("words.md"), "Words of the author.\n").unwrap();
    symlink("words.md", at("link.md")).unwrap();
    fs::rename(bench.plan(&short_plan(TWO_PATHS, LATENCY, "")), at("plan.html")).unwrap();
    bench.run(["runs", "baseline", "before", "--out", "base.json"]).expect_code(0);
    let inputs = [
        "store/before.netduel",
        "store/after.netduel",
        "copy.netduel",
        "words.md",
        "link.md",
        "plan.html",
        "base.json",
    ];
    let contents = || inputs.map(|name| fs::read(at(name)).unwrap());
    let names = || {
        let all = [bench.path().to_owned(), bench.store()].map(|folder| fs::read_dir(folder).unwrap());
        all.into_iter().flatten().map(|entry| entry.unwrap().path()).collect::<BTreeSet<_>>()
    };
    let unchanged = (contents(), names());
    for (words, read) in [
        (&["runs", "baseline", "before", "--out", "store/before.netduel"][..], "before.netduel"),
        (&["runs", "export", "before", "--redact", "--out", "store/before.netduel"], "before.netduel"),
        (&["runs", "export", "before", "--out", "store/after.netduel"], "a run in the store "),
        (&["runs", "export", "./copy.netduel", "--out", "store/../copy.netduel"], "copy.netduel"),
        (&["report", "./copy.netduel", "--format", "json", "--out", "copy.netduel"], "copy.netduel"),
        (&["report", "before", "--commentary", "words.md", "--out", "link.md"], "words.md"),
        (&["report", "before", "--commentary", "link.md", "--out", "words.md"], "link.md"),
        (
            &["report", "before", "--commentary", "words.md", "--out", "new.html", "--out", "words.md"],
            "words.md",
        ),
        (&["compare", "base.json", "after", "--out", "new.html", "--out", "base.json"], "base.json"),
        (&["run", "plan.html", "--out", "plan.html"], "plan.html"),
    ] {
        let refused = bench.run(words).expect_code(2).stderr;
        let out = words.last().unwrap();
        for part in
            [&*format!("failed to write {out}: it is the file "), read, "; choose another place with --out"]
        {
            assert!(refused.contains(part), "{words:?}: no {part:?} in {refused}");
        }
        assert!((contents(), names()) == unchanged, "{words:?} changed a file");
    }
}

#[test]
fn report_is_written_although_standard_output_is_full() {
    let bench = Bench::new();
    let plan = bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.netduel(["run", plan.to_str().unwrap(), "--out", "page.html"]);
    assert_eq!(command.stdout(full).status().unwrap().code(), Some(5));
    assert!(fs::metadata(bench.path().join("page.html")).unwrap().len() > 1000);
    bench.assert_nothing_left();
}

#[test]
fn several_files_are_written_each_in_the_format_of_its_extension() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_run(&bench, "after", "6.19.0");
    let outs = ["--out", "made.html", "--out", "made.json", "--out", "folder"];
    for command in [&["report", "before"][..], &["compare", "before", "after"], &["history", "before"]] {
        let printed = bench.run([command, &outs[..]].concat()).expect_code(0).stdout;
        assert_eq!(printed, "made.html\nmade.json\nfolder/report.html\n", "{command:?}");
        for (name, beginning) in
            [("made.html", "<!DOCTYPE html>"), ("made.json", "{"), ("folder/report.html", "<!DOCTYPE html>")]
        {
            let file = bench.path().join(name);
            assert!(fs::read_to_string(&file).unwrap().starts_with(beginning), "{command:?}: {name}");
            fs::remove_file(file).unwrap();
        }
        for (others, reason) in [
            (&["--out", "made.html", "--out", "./made.html"][..], "two --out name it"),
            (&["--out", "made.html", "--out", "made.json", "--json"], "--out names several"),
            (&["--out", "made.html", "--out", "made.md", "--format", "md"], "--out names several"),
            (&["--out", "made.html", "--out", "-"], "one of several reports to standard output"),
        ] {
            let refused = bench.run([command, others].concat()).expect_code(2);
            assert!(refused.stderr.contains(reason), "{command:?} {others:?}: {}", refused.stderr);
        }
        assert!(!bench.path().join("made.html").exists(), "nothing is written of what is refused");
    }
}

#[test]
fn file_that_cannot_be_written_is_named_and_the_others_are_written() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    let outs = ["--out", "/proc/x/first.html", "--out", "made.md", "--out", "/proc/x/last.json"];
    let failed = bench.run([&["report", "before"][..], &outs].concat()).expect_code(5);
    for name in ["failed to write /proc/x/first.html", "failed to write /proc/x/last.json"] {
        assert!(failed.stderr.contains(name), "{}", failed.stderr);
    }
    assert_eq!(failed.stdout, "made.md\n");
    assert!(bench.path().join("made.md").exists());
}

#[test]
fn regression_is_the_result_of_a_comparison_whose_file_cannot_be_written() {
    let bench = Bench::new();
    stored_run(&bench, "before", "6.18.44");
    stored_slower_run(&bench, "after");
    let words = ["compare", "before", "after", "--fail-if", "latency-p50 > 5 %", "--out", "/proc/x/a.html"];
    let failed = bench.run(words).expect_code(11);
    for part in ["failed to create the folder /proc/x", "failed by `latency-p50 > 5 %`"] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
}
