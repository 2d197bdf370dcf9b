//! Runs are found by name, prefix, path and `last`; the error of an unknown name lists similar ones.
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use netduel_model::run::{Run, RunEnd};
use netduel_model::warning::Warning;
use netduel_store::format::FORMAT;
use netduel_store::{PassedOver, Store, StoreError};

use crate::sample;

fn store_with(runs: &[(&str, u64)]) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path().join("made/for/it")).expect("the folder is created");
    for (id, started_unix_ms) in runs {
        let mut header = sample::header("x");
        header.id = netduel_model::ids::RunId::new(*id).expect("a name");
        header.started_unix_ms = *started_unix_ms;
        store.create(&header).expect("a run is created");
    }
    (folder, store)
}

#[test]
fn run_is_found_by_name_prefix_path_and_last() {
    let (_folder, store) = store_with(&[("demo-1", 30), ("demo-12", 20), ("aa-1", 10)]);
    let found = |name: &str| store.read(name).expect("it is there").header.id.to_string();
    assert_eq!(found("demo-1"), "demo-1");
    assert_eq!(found("demo-12"), "demo-12");
    assert_eq!(found("aa"), "aa-1");
    assert_eq!(found("last"), "demo-1");
    let path = store.folder().join("aa-1.netduel");
    assert_eq!(found(path.to_str().expect("a plain path")), "aa-1");
    let listed: Vec<_> = store.list().expect("a listing").iter().map(|run| run.id.to_string()).collect();
    assert_eq!(listed, ["demo-1", "demo-12", "aa-1"]);

    // A copied file is read from any place under any name.
    let elsewhere = tempfile::tempdir().expect("a folder");
    let copy = elsewhere.path().join("from a colleague.netduel");
    std::fs::copy(&path, &copy).expect("it can be copied");
    assert_eq!(found(copy.to_str().expect("a plain path")), "aa-1");
}

#[test]
fn run_that_starts_in_the_future_is_marked_and_never_the_last() {
    let (_folder, store) = store_with(&[("own-1", 20), ("far-1", sample::YEAR_2100_UNIX_MS), ("own-2", 30)]);
    std::fs::write(store.folder().join("bad-1.netduel"), "not a run").expect("it can be written");
    assert_eq!(store.read("last").expect("it is there").header.id.as_str(), "own-2");
    let marks = |store: &Store| -> Vec<(String, Option<bool>)> {
        let runs = store.list().expect("a listing").into_iter();
        runs.map(|run| (run.id.to_string(), run.contents.ok().map(|run| run.starts_in_future))).collect()
    };
    let of = |id: &str, mark: Option<bool>| (id.to_owned(), mark);
    let own = [of("own-2", Some(false)), of("own-1", Some(false))];
    let others = [of("far-1", Some(true)), of("bad-1", None)];
    assert_eq!(marks(&store), [&own[..], &others[..]].concat());
    assert_eq!(store.passed_over().expect("a listing"), PassedOver { in_future: 1, unread: 1 });
    let bad = std::fs::File::open(store.folder().join("bad-1.netduel")).expect("it is there");
    bad.set_modified(SystemTime::UNIX_EPOCH).expect("its time can be set");
    let passed_over = store.passed_over().expect("a listing");
    assert_eq!(passed_over.unread, 0, "it was written before the last run was begun");
    for (id, _) in &own {
        store.remove(id).expect("it is there");
    }
    let error = store.read("last").expect_err("it starts in the future");
    assert!(matches!(error, StoreError::NoLast { .. }), "{error}");
    assert_eq!(store.read("far").expect("it is there").header.id.as_str(), "far-1");
}

/// As when an imported run named a day to come, and that day has come.
#[test]
fn run_whose_start_is_later_than_its_file_counts_from_when_the_file_was_written() {
    let (_folder, store) = store_with(&[("theirs", 40_000), ("own", 30_000)]);
    let last = || store.read("last").expect("it is there").header.id.to_string();
    assert_eq!(last(), "theirs");
    let file = std::fs::File::open(store.folder().join("theirs.netduel")).expect("it is there");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(20)).expect("its time can be set");
    assert_eq!(last(), "own");
}

#[test]
fn last_of_runs_that_cannot_be_read_is_an_error_about_one() {
    let (_folder, store) = store_with(&[("demo-1", 30)]);
    std::fs::write(store.folder().join("demo-1.netduel"), "not a run").expect("it can be damaged");
    let error = store.read("last").expect_err("it cannot be read").to_string();
    assert!(error.contains("demo-1.netduel") && !error.contains("did you mean"), "{error}");
}

#[test]
fn unknown_and_ambiguous_names_are_reported_with_candidates() {
    let (_folder, store) = store_with(&[("demo-1", 30), ("demo-2", 20), ("aa-1", 10)]);
    let ambiguous = store.read("demo").expect_err("two").to_string();
    assert!(ambiguous.contains("demo-1, demo-2") && ambiguous.contains("write more"), "{ambiguous}");
    for (wanted, near) in [
        ("dmeo-1", "did you mean demo-1? `"),
        ("demo-77", "did you mean demo-1 or demo-2? `"),
        ("zzzzzzzz", "no run has a similar name; `netduel runs` lists all"),
    ] {
        let missing = store.read(wanted).expect_err("none").to_string();
        assert!(missing.contains(near), "{missing}");
    }
    let (_folder, empty) = store_with(&[]);
    for wanted in ["last", "demo", ""] {
        let error = empty.read(wanted).expect_err("none");
        assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("there is none yet"), "{error}");
    }
    let missing = empty.resume(&netduel_model::ids::RunId::new("demo-1").expect("a name")).expect_err("none");
    assert!(matches!(missing, StoreError::NotFound { .. }), "{missing}");
}

#[test]
fn path_without_a_file_is_an_error_of_its_own_with_the_remedy() {
    let (folder, store) = store_with(&[("demo-1", 30)]);
    std::fs::write(folder.path().join("file"), "").expect("written");
    for name in ["missing.netduel", "missing", "file/missing.netduel"] {
        let path = folder.path().join(name);
        let error = store.read(path.to_str().expect("a plain path")).expect_err("no file");
        assert!(matches!(error, StoreError::NoFile { .. }), "{error}");
        assert!(error.to_string().ends_with("`netduel runs` lists the runs of the store"), "{error}");
    }
}

#[test]
fn renamed_run_is_found_listed_and_resumed_by_the_name_of_its_file() {
    let (_folder, store) = store_with(&[("demo-1", 30)]);
    let path = |name: &str| store.folder().join(format!("{name}.netduel"));
    std::fs::rename(path("demo-1"), path("kept")).expect("it can be renamed");
    let listed = store.list().expect("a listing").remove(0);
    let header = listed.contents.expect("it can be read").header;
    assert_eq!((listed.id.as_str(), header.id.as_str(), listed.copy_of), ("kept", "kept", None));
    assert_eq!(store.read("last").expect("it is there").header.id.as_str(), "kept");
    let (run, mut writer) = store.resume(&listed.id).expect("it can be resumed");
    assert_eq!(run.header.id.as_str(), "kept");
    writer.trial(&sample::trial(0)).expect("stored");
    drop(writer);
    assert_eq!(store.read("kept").expect("it is there").trials.len(), 1);
}

#[test]
fn copy_of_a_stored_run_is_marked_and_comes_after_it() {
    let (_folder, store) = store_with(&[("demo-1", 30), ("aa-1", 10)]);
    let path = |name: &str| store.folder().join(format!("{name}.netduel"));
    // Sorted by its name alone, the copy would come first.
    std::fs::copy(path("demo-1"), path("a-copy")).expect("it can be copied");
    let copies = |store: &Store| -> Vec<(String, Option<String>)> {
        let runs = store.list().expect("a listing").into_iter();
        runs.map(|run| (run.id.to_string(), run.copy_of.map(|id| id.to_string()))).collect()
    };
    let of = |id: &str, original: Option<&str>| (id.to_owned(), original.map(str::to_owned));
    assert_eq!(copies(&store), [of("demo-1", None), of("a-copy", Some("demo-1")), of("aa-1", None)]);
    assert_eq!(store.read("last").expect("it is there").header.id.as_str(), "demo-1");
    // Without the original it is a renamed run.
    store.remove("demo-1").expect("it is there");
    assert_eq!(copies(&store), [of("a-copy", None), of("aa-1", None)]);
}

#[test]
fn what_is_no_file_is_listed_as_a_run_that_cannot_be_read() {
    let (_folder, store) = store_with(&[("demo-1", 30)]);
    let path = |name: &str| store.folder().join(format!("{name}.netduel"));
    for (name, target) in [("link-1", "nowhere"), ("loop-1", "loop-1.netduel")] {
        std::os::unix::fs::symlink(target, path(name)).expect("a link");
    }
    std::fs::create_dir(path("folder-1")).expect("a folder");
    // A reader of the pipe would wait for ever.
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe-1"), kind, mode, 0).expect("a pipe");
    let listed = store.list().expect("a listing");
    let names: Vec<_> = listed.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(names, ["demo-1", "folder-1", "link-1", "loop-1", "pipe-1"]);
    for (run, what) in listed.iter().skip(1).zip(["a folder", "a link", "a link", "a pipe"]) {
        let error = run.contents.as_ref().expect_err("no run").to_string();
        assert!(error.contains(&format!("it is {what}")) && error.contains("out of the store"), "{error}");
        // It is found by its name, and neither read, written nor deleted.
        let name = run.id.as_str();
        for error in [
            store.read(name).map(drop),
            store.verify(name).map(drop),
            store.resume(&run.id).map(drop),
            store.remove(name).map(drop),
            store.annotate(name, |_| {}).map(drop),
        ] {
            assert!(matches!(error, Err(StoreError::NotARun { .. })), "{name}: {error:?}");
        }
        store.usage(&run.id).expect("it has a size");
    }
    // A link with another error has its cause, not a missing target.
    std::os::unix::fs::symlink("x".repeat(300), path("long-1")).expect("a link");
    let error = store.read("long-1").expect_err("no run");
    assert!(matches!(&error, StoreError::Io { .. }) && error.to_string().contains("too long"), "{error}");
    assert_eq!(store.read("last").expect("it is there").header.id.as_str(), "demo-1");
}

#[test]
fn unwritable_folder_is_found_before_a_run() {
    let (folder, store) = store_with(&[]);
    store.check_writable().expect("it can be written");
    assert_eq!(std::fs::read_dir(store.folder()).expect("a listing").count(), 0);
    std::fs::remove_dir_all(folder.path()).expect("removed");
    let error = store.check_writable().expect_err("it is gone").to_string();
    assert!(error.starts_with("failed to create "), "{error}");
}

#[test]
fn stored_records_are_read_back_in_order() {
    let (_folder, store) = store_with(&[]);
    let header = sample::header("all");
    let mut writer = store.create(&header).expect("a run is created");
    let warning = Warning::SharedMachine {
        client: netduel_model::ids::HostName::new("a").expect("a name"),
        server: netduel_model::ids::HostName::new("b").expect("a name"),
    };
    writer.reserve().expect("there is room");
    writer.trial(&sample::trial(0)).expect("stored");
    writer.warning(&warning).expect("stored");
    writer.end(&RunEnd::Interrupted).expect("stored");
    let listed = store.list().expect("a listing").remove(0).contents.expect("it can be read");
    assert_eq!((listed.trials, listed.end), (1, Some(RunEnd::Interrupted)));
    drop(writer);

    let (run, mut writer) = store.resume(&header.id).expect("it can be resumed");
    assert_eq!((run.trials.len(), run.end), (1, Some(RunEnd::Interrupted)));
    writer.trial(&sample::trial(1)).expect("stored");
    assert_eq!(store.read("last").expect("it can be read").end, None);
    writer.end(&RunEnd::BudgetReached).expect("stored");
    let expected = Run {
        header,
        trials: vec![sample::trial(0), sample::trial(1)],
        warnings: vec![warning],
        end: Some(RunEnd::BudgetReached),
    };
    assert_eq!(store.read("all").expect("it can be read"), expected);
}

#[test]
fn unreadable_record_is_rejected_before_it_is_written() {
    let (_folder, store) = store_with(&[]);
    let mut writer = store.create(&sample::header("nan")).expect("a run is created");
    let mut bad = sample::trial(0);
    bad.client.as_mut().expect("an end").report.datagrams =
        Some(netduel_model::sample::DatagramReport { jitter_ns: Some(1.0), ..Default::default() });
    writer.trial(&bad).expect("a finite number is stored");
    let warning = Warning::OutlierBlock {
        arm: netduel_model::ids::ArmName::new("a").expect("a name"),
        workload: netduel_model::ids::WorkloadName::new("w").expect("a name"),
        metric: netduel_model::metric::Metric::Loss,
        block: 0,
        ratio_to_median: f64::NAN,
    };
    let error = writer.warning(&warning).expect_err("not a number");
    assert!(matches!(error, StoreError::Record { .. }), "{error}");
    writer.trial(&sample::trial(1)).expect("stored");
    assert_eq!(store.read("nan").expect("it can be read").trials.len(), 2);
}

#[test]
fn other_files_newer_formats_and_damage_are_distinguished() {
    let (_folder, store) = store_with(&[("good-1", 10)]);
    let write = |name: &str, text: &str| {
        let path = store.folder().join(name);
        std::fs::write(&path, text).expect("a file can be written");
        store.read(path.to_str().expect("a plain path")).expect_err("it is no good").to_string()
    };
    assert!(write("empty.netduel", "").contains("it is empty"));
    assert!(write("cut.netduel", "{\"netduel\":\"run\",\"form").contains("its first line is incomplete"));
    for (name, text) in
        [("text.netduel", "hello\nworld\n"), ("object.netduel", "{}"), ("line.netduel", "{}\n")]
    {
        let error = write(name, text);
        assert!(
            error.contains("it is not the file of a netduel run: its first line is no header of a run"),
            "{error}"
        );
    }
    for format in ["\"three\"", "0", "-1", "1.5", "4294967296"] {
        let error = write("number.netduel", &format!("{{\"netduel\":\"run\",\"format\":{format}}}\n"));
        assert!(
            error.contains(&format!("says format {format}, and a format is a whole number from 1")),
            "{error}"
        );
    }
    assert!(write("other.netduel", "{\"netduel\":\"wire\",\"format\":1}\n").contains("says `wire`"));
    let next = FORMAT + 1;
    let newer = write(
        "newer.netduel",
        &format!("{{\"netduel\":\"run\",\"format\":{next},\"whatever\":{{}}}}\n{{\"colour\":1}}\n"),
    );
    let message = format!("it has format {next}, written by a newer netduel, and netduel ");
    assert!(
        newer.contains(&message) && newer.contains(&format!("reads formats 1 to {FORMAT}; update")),
        "{newer}"
    );
    // A later build of the same version.
    let program = netduel_model::PROGRAM;
    let same = write(
        "same.netduel",
        &format!("{{\"netduel\":\"run\",\"format\":{next},\"header\":{{\"program\":\"{program}\"}}}}\n"),
    );
    assert!(same.contains("use the build of ") && !same.contains("update to"), "{same}");
    assert!(
        write("bare.netduel", "{\"netduel\":\"run\",\"format\":1}\n")
            .contains("at line 1: the header of the run is damaged (its content is not that of format 1: ")
    );

    let good = std::fs::read_to_string(store.folder().join("good-1.netduel")).expect("it is there");
    let damaged = |name: &str, lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(store.folder().join(name), format!("{good}{}", lines.concat()))
            .expect("it can be written");
        let found = store.verify(store.folder().join(name).to_str().expect("a plain path"));
        found.expect("it can be read").damaged.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let resumed = sample::with_checksum("{\"resumed\":{\"trials\":0}}");
    assert_eq!(damaged("middle.netduel", &["garbage", &resumed]), ["line 2: its checksum is missing"]);
    let unknown = damaged("unknown.netduel", &[&sample::with_checksum("{\"colour\":1}")]);
    let wrong = format!("line 2: its content is not that of format {FORMAT}: unknown variant `colour`, ");
    assert!(unknown[0].starts_with(&wrong) && !unknown[0].contains("column"), "{unknown:?}");

    // None of this hides the valid run.
    assert_eq!(store.read("last").expect("it is there").header.id.as_str(), "good-1");
    let listed = store.list().expect("a listing");
    assert_eq!((listed.len(), listed.iter().filter(|run| run.contents.is_ok()).count()), (13, 3));
}

#[test]
fn byte_order_mark_and_line_ends_of_windows_are_named_as_the_damage() {
    let (folder, store) = store_with(&[("good-1", 10)]);
    let good = std::fs::read_to_string(store.folder().join("good-1.netduel")).expect("it is there");
    let path = folder.path().join("edited.netduel");
    let name = path.to_str().expect("a plain path");
    let error = |text: String| {
        std::fs::write(&path, text).expect("it can be written");
        store.read(name).expect_err("another program changed it").to_string()
    };
    let marked = error(format!("\u{feff}{good}"));
    assert!(
        marked.contains(": it begins with a byte order mark, ") && marked.contains("; remove"),
        "{marked}"
    );
    let error = error(good.replace('\n', "\r\n"));
    assert!(error.contains(" at line 1: ") && error.contains("(it ends with CR LF, "), "{error}");
    assert!(error.ends_with("; restore the file from a copy"), "{error}");
    // Lines that were added later.
    let end = sample::with_checksum("{\"end\":{\"reason\":\"interrupted\"}}");
    std::fs::write(&path, format!("{good}{end}\r\n")).expect("it can be written");
    let found = store.verify(name).expect("it can be read").damaged;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].reason.starts_with("it ends with CR LF"), "{found:?}");
}

#[test]
fn trials_that_do_not_belong_to_the_run_are_named_and_left_out() {
    let (_folder, store) = store_with(&[]);
    let mut writer = store.create(&sample::header("mixed")).expect("a run is created");
    let own = [sample::trial(0), sample::trial(1)];
    // Of another run of the plan, whose order is another one, and of another plan.
    let (mut moved, mut unknown) = (sample::trial(1), sample::trial(1));
    moved.slot.position = 5;
    unknown.slot.arm = sample::arm("unknown");
    for trial in own.iter().chain([&moved, &unknown]) {
        writer.trial(trial).expect("stored");
    }
    writer.end(&RunEnd::BudgetReached).expect("stored");
    let run = store.read("mixed").expect("it can be read");
    assert_eq!((run.trials.as_slice(), &run.end), (&own[..], &Some(RunEnd::BudgetReached)));
    let Some(Warning::RecordsDamaged { lines, detail }) = run.warnings.first() else {
        panic!("{:?}", run.warnings)
    };
    assert_eq!(lines, &[4, 5]);
    assert!(detail.contains("block 2 has another trial of synthetic in bulk"), "{detail}");
    let found = store.verify("mixed").expect("it can be read");
    let named: Vec<String> = found.foreign.iter().map(ToString::to_string).collect();
    assert!(named[1].starts_with("line 5: ") && named[1].ends_with("no arm unknown"), "{named:?}");
    assert_eq!((found.trials, found.damaged.len(), found.missing), (2, 0, None));
    let listed = store.list().expect("a listing").remove(0).contents.expect("it can be read");
    assert_eq!((listed.trials, listed.damaged), (2, 2));
}

#[test]
fn block_whose_records_were_removed_is_named() {
    let (_folder, store) = store_with(&[]);
    let mut writer = store.create(&sample::header("gap")).expect("a run is created");
    for block in [0, 2] {
        writer.trial(&sample::trial(block)).expect("stored");
    }
    let run = store.read("gap").expect("it can be read");
    assert_eq!((run.trials.len(), run.warnings.len()), (2, 1));
    let words = run.warnings[0].to_string();
    assert!(words.starts_with("incomplete run file: it has no trial of block 2, although"), "{words}");
    let missing = store.verify("gap").expect("it can be read").missing;
    assert!(missing.is_some_and(|missing| words.contains(&missing)));
}

#[test]
fn fields_of_a_later_program_are_ignored() {
    let (_folder, store) = store_with(&[]);
    let mut writer = store.create(&sample::header("fields")).expect("a run is created");
    writer.trial(&sample::trial(0)).expect("stored");
    let path = writer.path().to_owned();
    drop(writer);
    let text = std::fs::read_to_string(&path).expect("it is there");
    let text = text
        .replacen(&format!("\"format\":{FORMAT},"), &format!("\"format\":{FORMAT},\"colour\":[1],"), 1)
        .replace("{\"slot\":{", "{\"shape\":null,\"slot\":{\"corner\":4,");
    assert!(text.contains("corner") && text.contains("colour"));
    let lines: Vec<String> = text.lines().map(|line| sample::with_checksum(line) + "\n").collect();
    std::fs::write(&path, lines.concat()).expect("it can be written");
    assert_eq!(store.read("fields").expect("it can be read").trials, [sample::trial(0)]);
}

#[test]
fn default_folder_follows_the_environment() {
    let folder = |variables: &[(&str, &str)]| {
        Store::default_dir(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        })
    };
    let all = [("NETDUEL_STORE", "here"), ("XDG_DATA_HOME", "/data"), ("HOME", "/home-of-user")];
    assert_eq!(folder(&all), Some(PathBuf::from("here")));
    assert_eq!(folder(&all[1..]), Some(PathBuf::from("/data/netduel")));
    assert_eq!(folder(&all[2..]), Some(PathBuf::from("/home-of-user/.local/share/netduel")));
    let empty = [("NETDUEL_STORE", ""), ("XDG_DATA_HOME", "relative"), ("HOME", "/home-of-user")];
    assert_eq!(folder(&empty), Some(PathBuf::from("/home-of-user/.local/share/netduel")));
    assert_eq!(folder(&[]), None);
    // It would be another store in each current folder.
    assert_eq!(folder(&[("XDG_DATA_HOME", "relative"), ("HOME", "home")]), None);
}

#[test]
fn impossible_folder_is_reported_with_the_operation() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for folder in [file.path().to_owned(), file.path().join("below")] {
        let error = Store::open(folder).expect_err("a file is no folder").to_string();
        assert!(error.starts_with("failed to create the store's folder "), "{error}");
        assert!(error.ends_with("choose another folder with --store"), "{error}");
    }
}

#[test]
fn run_is_removed_unless_it_is_being_written() {
    let (folder, store) = store_with(&[("demo-1", 30), ("demo-2", 20), ("aa-1", 10)]);
    let (_, writer) = store.resume(&netduel_model::ids::RunId::new("demo-1").expect("a name")).expect("free");
    let error = store.remove("last").expect_err("it is being written");
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    let in_use = |store: &Store| -> Vec<bool> {
        let runs = store.list().expect("a listing");
        runs.iter().filter_map(|run| Some(run.contents.as_ref().ok()?.in_use)).collect()
    };
    assert_eq!(in_use(&store), [true, false, false]);
    drop(writer);
    assert_eq!(in_use(&store), [false; 3]);
    assert_eq!(store.remove("aa").expect("it is there").to_string(), "aa-1");
    assert!(matches!(store.remove("demo"), Err(StoreError::Ambiguous { .. })));
    // A file outside the store is not deleted, even if it has a run's name.
    let elsewhere = folder.path().join("demo-2.netduel");
    std::fs::copy(store.folder().join("demo-2.netduel"), &elsewhere).expect("it can be copied");
    let error = store.remove(elsewhere.to_str().expect("a plain path")).expect_err("not in the store");
    assert!(matches!(error, StoreError::NotFound { .. }), "{error}");
    assert!(elsewhere.exists());
    assert_eq!(store.list().expect("a listing").len(), 2);
}
