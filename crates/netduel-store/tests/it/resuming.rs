//! A run that is resumed stays as it was, with its end, until its first new trial is stored.
use std::fs;

use netduel_model::ids::HostName;
use netduel_model::run::RunEnd;
use netduel_model::warning::Warning;
use netduel_store::Store;

use crate::sample;

/// A warning about a host of a resumed run.
fn differed() -> Warning {
    let host = HostName::new("a").expect("a name");
    Warning::HostDiffered { host, block: 1, detail: "x".to_owned() }
}

fn failed(detail: &str) -> RunEnd {
    RunEnd::Failed { detail: detail.to_owned() }
}

/// A store with a run of one trial that ended so; `None`: its coordinator was killed.
fn store_with(end: Option<&RunEnd>) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut writer = store.create(&sample::header("resumed")).expect("a run is created");
    writer.trial(&sample::trial(0)).expect("stored");
    if let Some(end) = end {
        writer.end(end).expect("stored");
    }
    drop(writer);
    (folder, store)
}

#[test]
fn resume_without_a_new_trial_leaves_the_file_as_it_was() {
    let regular = [RunEnd::BlockLimitReached, RunEnd::PrecisionReached, RunEnd::BudgetReached];
    let others = [RunEnd::Interrupted, failed("the first cause")];
    for before in regular.iter().chain(&others).map(Some).chain([None]) {
        let (_folder, store) = store_with(before);
        let id = sample::header("resumed").id;
        let path = store.folder().join(format!("{id}.netduel"));
        let bytes = fs::read(&path).expect("read");
        // Without an end: a lab that cannot be made, or a kill before the first trial.
        for end in [None, Some(failed("another cause")), Some(RunEnd::Interrupted)] {
            let (run, mut writer) = store.resume(&id).expect("it can be resumed");
            assert_eq!((run.trials.len(), run.end.as_ref()), (1, before));
            writer.warning(&differed()).expect("held back");
            writer.reserve().expect("there is room");
            // What a kill leaves now.
            assert_eq!(fs::read(&path).expect("read"), bytes, "{before:?}");
            if let Some(end) = &end {
                writer.end(end).expect("nothing is to be stored");
            }
            assert!(writer.is_unchanged());
            drop(writer);
            assert_eq!(fs::read(&path).expect("read"), bytes, "{before:?} and {end:?}");
            assert_eq!(store.read("last").expect("read").end.as_ref(), before);
        }
    }
}

#[test]
fn complete_run_without_the_end_of_one_gets_it_from_a_resume_without_a_new_trial() {
    for before in [None, Some(RunEnd::Interrupted), Some(failed("a host differs"))] {
        let (_folder, store) = store_with(before.as_ref());
        let (_, mut writer) = store.resume(&sample::header("resumed").id).expect("it can be resumed");
        writer.warning(&differed()).expect("held back");
        writer.end(&RunEnd::BudgetReached).expect("stored");
        assert!(!writer.is_unchanged());
        drop(writer);
        let run = store.read("last").expect("read");
        assert_eq!((run.end, run.warnings), (Some(RunEnd::BudgetReached), vec![differed()]));
    }
    // An end by a rule of the plan is kept.
    let (_folder, store) = store_with(Some(&RunEnd::PrecisionReached));
    let (_, mut writer) = store.resume(&sample::header("resumed").id).expect("it can be resumed");
    writer.end(&RunEnd::BlockLimitReached).expect("nothing is to be stored");
    assert_eq!(store.read("last").expect("read").end, Some(RunEnd::PrecisionReached));
}

#[test]
fn first_new_trial_of_a_resumed_run_removes_its_end_and_stores_the_warnings_before_it() {
    let (_folder, store) = store_with(Some(&RunEnd::BudgetReached));
    let (_, mut writer) = store.resume(&sample::header("resumed").id).expect("it can be resumed");
    writer.warning(&differed()).expect("held back");
    writer.reserve().and_then(|()| writer.trial(&sample::trial(1))).expect("stored");
    assert!(!writer.is_unchanged());
    let run = store.read("last").expect("read");
    assert_eq!((run.trials.len(), run.warnings, run.end), (2, vec![differed()], None));
    writer.end(&RunEnd::Interrupted).expect("stored");
    assert_eq!(store.read("last").expect("read").end, Some(RunEnd::Interrupted));
    assert!(store.verify("last").expect("read").damaged.is_empty());
}
