//! A run's file that another program removes or moves while the run writes it.
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

use netduel_model::run::RunEnd;
use netduel_store::{Fate, Store, StoreError};
use netduel_test_support::skip;

use crate::sample;

/// What became of the records, from the error.
fn fate(error: &StoreError) -> &Fate {
    let StoreError::Removed { fate, .. } = error else { panic!("{error}") };
    fate
}

#[test]
fn records_of_a_removed_store_are_written_again_under_the_same_name() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("store");
    let store = Store::open(&folder).expect("the folder is there");
    let header = sample::header("removed");
    let mut writer = store.create(&header).expect("a run is created");
    writer.trial(&sample::trial(0)).expect("there was room");
    fs::remove_dir_all(&folder).expect("removed");
    let error = writer.trial(&sample::trial(1)).expect_err("the file has no name");
    let path = folder.join(format!("{}.netduel", header.id));
    assert!(matches!(fate(&error), Fate::Restored(restored) if *restored == path), "{error}");
    assert!(error.to_string().contains("written again to"), "{error}");
    // The run is as it was, with the record that found the loss.
    writer.end(&RunEnd::Interrupted).expect("stored");
    let run = store.read(header.id.as_str()).expect("it can be read");
    assert_eq!((run.trials.len(), run.end), (2, Some(RunEnd::Interrupted)));
    drop(writer);
    let (run, mut writer) = store.resume(&header.id).expect("it can be resumed");
    writer.reserve().and_then(|()| writer.trial(&sample::trial(2))).expect("stored");
    assert_eq!((run.trials.len(), store.read("last").expect("it can be read").trials.len()), (2, 3));
}

#[test]
fn removed_file_is_found_before_a_trial_and_another_file_of_its_name_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let header = sample::header("replaced");
    let mut writer = store.create(&header).expect("a run is created");
    writer.trial(&sample::trial(0)).expect("there was room");
    let path = writer.path().to_owned();
    fs::remove_file(&path).and_then(|()| fs::write(&path, "another")).expect("replaced");
    let error = writer.reserve().expect_err("the file has no name");
    let Fate::Restored(restored) = fate(&error) else { panic!("{error}") };
    assert_eq!(fs::read_to_string(&path).expect("read"), "another");
    let run = store.read(restored.to_str().expect("text")).expect("it can be read");
    assert_eq!(run.trials.len(), 1);
    writer.reserve().expect("it is reported once");
}

#[test]
fn moved_file_is_named_and_written_on() {
    let outer = tempfile::tempdir().expect("a folder");
    let (folder, other) = (outer.path().join("store"), outer.path().join("other"));
    let store = Store::open(&folder).expect("the folder is there");
    let header = sample::header("moved");
    let mut writer = store.create(&header).expect("a run is created");
    fs::rename(&folder, &other).expect("moved");
    let error = writer.trial(&sample::trial(0)).expect_err("the file has another name");
    let path = other.join(format!("{}.netduel", header.id));
    assert!(matches!(fate(&error), Fate::Moved(moved) if *moved == path), "{error}");
    let store = Store::open(&other).expect("the folder is there");
    assert_eq!(store.read("last").expect("it can be read").trials.len(), 1);
}

#[test]
fn records_that_cannot_be_written_again_are_called_lost() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("store");
    let store = Store::open(&folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("lost")).expect("a run is created");
    // A file has the name of the folder.
    fs::remove_dir_all(&folder).and_then(|()| fs::write(&folder, "x")).expect("replaced");
    let error = writer.reserve().expect_err("the file has no name");
    assert!(matches!(fate(&error), Fate::Lost(_)), "{error}");
}

#[test]
fn records_are_not_written_again_through_a_link_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root makes a link of another user");
    }
    let outer = tempfile::tempdir().expect("a folder");
    let (everybody, victim) = (outer.path().join("everybody"), outer.path().join("victim"));
    for path in [&everybody, &victim] {
        fs::create_dir(path).expect("created");
    }
    fs::set_permissions(&everybody, fs::Permissions::from_mode(0o777)).expect("changed");
    let folder = everybody.join("store");
    let store = Store::open(&folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("removed")).expect("a run is created");
    fs::remove_dir_all(&folder).and_then(|()| symlink(&victim, &folder)).expect("replaced");
    lchown(&folder, Some(65_534), Some(65_534)).expect("changed");
    let error = writer.reserve().expect_err("the file has no name");
    assert!(matches!(fate(&error), Fate::Lost(_)), "{error}");
    assert!(error.to_string().contains("store is a link of another user"), "{error}");
    let error = Store::open(&folder).expect_err("a link of another user").to_string();
    assert!(error.contains("store is a link of another user"), "{error}");
    assert_eq!(fs::read_dir(&victim).expect("listed").count(), 0);
}
