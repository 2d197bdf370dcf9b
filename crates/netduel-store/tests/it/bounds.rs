//! Files without an end, without a writer or with texts of any length are refused; a store that does not exist is not created.
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use netduel_store::{Store, StoreError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::sample;

/// Far more than any of these takes; only an opening that waits for a writer takes longer.
const DEADLINE: Duration = Duration::from_secs(60);

/// The error of reading a file, in a thread of its own, because an attempt may never end.
fn refused(file: &Path) -> StoreError {
    let (sender, receiver) = channel();
    let (folder, file) =
        (file.parent().expect("a folder").to_owned(), file.to_str().expect("a plain path").to_owned());
    std::thread::spawn(move || sender.send(Store::at(folder).read(&file).map(|run| run.header.id)));
    let read = receiver.recv_timeout(DEADLINE).expect("reading ends");
    read.expect_err("it is no run")
}

#[test]
fn pipe_device_and_folder_are_refused_without_reading() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe.netduel");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe is made");
    for (file, what) in
        [(pipe.as_path(), "a pipe"), (folder.path(), "a folder"), (Path::new("/dev/zero"), "a device")]
    {
        let error = refused(file);
        let is_named = matches!(&error, StoreError::NotARun { reason, .. } if reason.starts_with(&format!("it is {what}; ")));
        assert!(is_named, "{error}");
    }
}

#[test]
fn store_without_a_folder_has_no_runs_and_is_not_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let store = Store::at(&missing);
    assert!(store.list().expect("a listing").is_empty());
    for name in ["last", "demo"] {
        assert!(matches!(store.read(name), Err(StoreError::NotFound { .. })));
    }
    let id = netduel_model::ids::RunId::new("demo-1").expect("a name");
    assert!(matches!(store.resume(&id), Err(StoreError::NotFound { .. })) && !store.is_in_use(&id));
    assert!(matches!(store.remove("demo-1"), Err(StoreError::NotFound { .. })));
    assert!(!missing.exists());
}

#[test]
fn plan_that_is_larger_than_any_of_a_run_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut header = sample::header("arms");
    let arm = header.plan.arms.first().cloned().expect("an arm");
    header.plan.arms = vec![arm.clone(); 5000];
    store.create(&header).expect("a run is created");
    let error = store.read("arms").expect_err("too many arms").to_string();
    assert!(error.contains("its plan has 5000 arms, and 4096 are allowed"), "{error}");

    header.id = netduel_model::ids::RunId::new("metrics").expect("a name");
    header.plan.arms = vec![arm];
    let metrics = &mut header.plan.arms[0].workloads[0].metrics;
    *metrics = vec![metrics[0]; 1000];
    store.create(&header).expect("a run is created");
    let error = store.read("metrics").expect_err("too many metrics").to_string();
    assert!(error.contains("its plan has 1000 metrics of a workload, and "), "{error}");
}

#[test]
fn texts_of_a_file_do_not_fill_its_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let long = "x".repeat(1 << 19);
    for line in [
        format!(r#"{{"netduel":"{long}","format":2}}"#),
        format!(r#"{{"netduel":"run","format":"{long}"}}"#),
        format!(r#"{{"netduel":"run","format":99,"header":{{"program":"{long}"}}}}"#),
        format!(r#"{{"netduel":"run","format":2,"header":"{long}"}}"#),
    ] {
        std::fs::write(folder.path().join("x.netduel"), line + "\n").expect("written");
        let error = store.read("x").expect_err("no run").to_string();
        assert!(error.contains("xxx") && error.len() < 2000, "{} bytes: {error:.1000}", error.len());
    }
}

#[test]
fn header_with_a_text_of_any_length_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut header = sample::header("long");
    // The text of a plan is the longest that is allowed.
    header.plan_text = "\u{1}".repeat(netduel_model::plan::TEXT_LEN_MAX.0 as usize);
    store.create(&header).expect("a run is created");
    assert_eq!(store.read("long").expect("it is a run").header.plan_text, header.plan_text);

    header.id = netduel_model::ids::RunId::new("longer").expect("a name");
    let host = header.hosts.values_mut().next().expect("a host");
    host.hostname = Some("x".repeat(60 << 20));
    store.create(&header).expect("a run is created");
    let error = store.read("longer").expect_err("a name of 60 MB").to_string();
    assert!(error.contains("it has a text of 62914560 bytes") && error.len() < 1000, "{error:.1000}");
    let listed = store.list().expect("a listing");
    assert_eq!(listed.iter().filter(|run| run.contents.is_err()).count(), 1);
}
