//! A full disk is detected before a trial, and no stored record is lost.
use std::fs::File;
use std::io::Write;

use netduel_model::run::RunEnd;
use netduel_store::{Store, StoreError};
use netduel_test_support::skip;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::{child, sample};

/// Runs a child test on a small file system of the given type in its own mount namespace.
fn on_small_filesystem(kind: &str, test: &str) {
    if !rustix::process::geteuid().is_root() {
        return skip("mounting a small filesystem needs root");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mount =
        format!("mount -t {kind} -o size=6m none '{}' && exec \"$0\" \"$@\"", folder.path().display());
    let output = child::command(&["unshare", "--mount", "sh", "-c", &mount], test, folder.path()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return skip(format!("unshare cannot be run: {error}")),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("unshare failed") || errors.contains("mount:") {
        return skip(format!("a filesystem cannot be mounted here: {errors}"));
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}\n{errors}");
}

#[test]
fn full_disk_is_detected_before_a_trial_only() {
    on_small_filesystem("tmpfs", "full_disk::child_fills_the_disk");
}

#[test]
fn child_fills_the_disk() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(&folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("full")).expect("a run is created");
    let mut stored = 0;
    // The folder is small, so this ends with a failed reservation.
    let error = loop {
        match writer.reserve() {
            Ok(()) => writer.trial(&sample::long_trial(stored, 2000)).expect("there was room"),
            Err(error) => break error,
        }
        stored += 1;
    };
    assert!(stored > 3, "{stored}");
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("make room and resume the run"), "{error}");

    // Another program uses all free space. Trials without a reservation use up the last reservation; then one fails as a whole,
    // and can be repeated.
    let filler = folder.join("filler");
    let mut file = File::create(&filler).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    let error = loop {
        match writer.trial(&sample::long_trial(stored, 2000)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    let (run, torn) = store.read_with_note("last").expect("it can be read");
    assert_eq!((run.trials.len() as u32, torn), (stored, None));
    // The space of the failed trial is free again.
    while file.write_all(&[1; 4096]).is_ok() {}
    let another = store.create(&sample::header("another")).expect_err("no room");
    assert!(matches!(another, StoreError::FullAtStart { .. }), "{another}");
    // There is no run to resume, and its draft has another name than the run.
    let text = another.to_string();
    assert!(
        text.contains("/another-20")
            && text.contains(".netduel: the disk is full")
            && text.contains("start the run again"),
        "{text}"
    );
    assert_eq!(store.list().expect("a listing").len(), 1);

    drop(file);
    std::fs::remove_file(&filler).expect("it can be removed");
    writer.trial(&sample::trial(stored)).expect("there is room");
    writer.end(&RunEnd::Interrupted).expect("there is room");
    let run = store.read("last").expect("it can be read");
    assert_eq!((run.trials.len() as u32, run.end), (stored + 1, Some(RunEnd::Interrupted)));
}

#[test]
fn limit_of_file_sizes_is_detected_before_a_trial() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = child::command(&[], "full_disk::child_has_a_limit_of_file_sizes", folder.path()).output();
    let output = child.expect("the child runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
    let run = Store::at(folder.path()).read("last").expect("it can be read");
    assert_eq!((run.trials.len(), run.end), (1, Some(RunEnd::Interrupted)));
}

#[test]
fn child_has_a_limit_of_file_sizes() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("limited")).expect("a run is created");
    writer.reserve().expect("there is room");
    writer.trial(&sample::trial(0)).expect("there is room");
    let length = std::fs::metadata(writer.path()).expect("the file is there").len();
    // Room for the end, and not for a trial.
    let limit = Some(length + (64 << 10));
    setrlimit(Resource::Fsize, Rlimit { current: limit, maximum: limit }).expect("a limit may be lowered");
    let error = writer.reserve().expect_err("the limit is lower");
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().contains("the limit of file sizes"), "{error}");
    writer.end(&RunEnd::Interrupted).expect("there is room for the end");
}

#[test]
fn reservation_keeps_its_space_on_a_full_disk() {
    on_small_filesystem("tmpfs", "full_disk::child_keeps_its_room");
}

#[test]
fn child_keeps_its_room() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(&folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("kept")).expect("a run is created");
    writer.reserve().expect("there is room");
    let length = std::fs::metadata(writer.path()).expect("the file is there").len();
    let mut file = File::create(folder.join("filler")).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    writer.trial(&sample::long_trial(0, 2000)).expect("room was kept");
    writer.end(&RunEnd::BudgetReached).expect("room was kept");
    assert!(std::fs::metadata(writer.path()).expect("the file is there").len() > length + 100_000);
    assert_eq!(store.read("last").expect("it can be read").trials.len(), 1);
    // Unused reserved space is released.
    assert!(file.write_all(&[1; 4096]).is_ok());
}

#[test]
fn change_of_a_run_on_a_full_disk_leaves_the_run() {
    on_small_filesystem("tmpfs", "full_disk::child_changes_a_run");
}

#[test]
fn child_changes_a_run() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(&folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("changed")).expect("a run is created");
    writer.end(&RunEnd::Interrupted).expect("there is room");
    drop(writer);
    let mut file = File::create(folder.join("filler")).expect("a file");
    while file.write_all(&[1; 4096]).is_ok() {}
    let error = store
        .annotate("last", |annotations| annotations.title = Some("x".to_owned()))
        .expect_err("there is no room");
    assert!(matches!(error, StoreError::FullAtChange { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("/changed-20") && text.contains(".netduel: the disk is full"), "{text}");
    assert!(text.contains("repeat the command") && !text.contains("resume"), "{text}");
    assert_eq!(store.read("last").expect("read").header, sample::header("changed"));
}

#[test]
fn file_system_without_reservation_and_free_space_is_used() {
    on_small_filesystem("ramfs", "full_disk::child_on_ramfs");
}

#[test]
fn child_on_ramfs() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("ram")).expect("a run is created");
    writer.reserve().expect("nothing speaks against it");
    writer.trial(&sample::trial(0)).expect("stored");
    assert_eq!(store.read("last").expect("it can be read").trials.len(), 1);
}
