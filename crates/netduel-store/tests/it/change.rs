//! Annotations, names and copies of stored runs: nothing else of a run changes, and nothing is lost.
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use netduel_model::ids::RunId;
use netduel_model::run::{Annotations, RunEnd, RunHeader};
use netduel_store::{Store, StoreError, bytes_of};

use crate::sample;

fn store_with_a_run() -> (tempfile::TempDir, Store, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut writer = store.create(&sample::header("x")).expect("a run is created");
    writer.trial(&sample::trial(0)).and_then(|()| writer.end(&RunEnd::Interrupted)).expect("stored");
    let path = folder.path().join(format!("{}.netduel", sample::header("x").id));
    (folder, store, path)
}

fn id(text: &str) -> RunId {
    text.parse().expect("a name")
}

/// No draft is left.
fn files(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a listing").count()
}

#[test]
fn annotations_change_and_every_record_stays_as_it_is() {
    let (folder, store, path) = store_with_a_run();
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"{\"tria"))
        .expect("torn");
    let before = fs::read(&path).expect("read");
    let (changed, annotations) = store
        .annotate("last", |annotations| {
            annotations.title = Some("after the update".to_owned());
            annotations.notes.insert("kernel".to_owned(), "6.8".to_owned());
        })
        .expect("changed");
    let after = fs::read(&path).expect("read");
    let records =
        |content: &[u8]| content[content.iter().position(|byte| *byte == b'\n').expect("a line")..].to_vec();
    assert_eq!(records(&after), records(&before));
    let run = store.read(changed.as_str()).expect("it can be read");
    assert_eq!(run.header.annotations, annotations);
    assert_eq!(run.header.annotations.title.as_deref(), Some("after the update"));
    assert!(store.verify("last").expect("verified").damaged.is_empty());
    store.annotate("last", |annotations| *annotations = Annotations::default()).expect("changed");
    assert_eq!(store.read("last").expect("read").header, sample::header("x"));
    assert_eq!(files(folder.path()), 1);
}

#[test]
fn annotations_of_a_run_of_an_old_format_leave_its_format() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for name in ["format-1-real-types", "format-2-every", "format-3-1"] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("opened");
        let imported = store.import(&golden.join(format!("{name}.netduel")), None).expect("imported");
        let before = store.read("last").expect("read");
        store.annotate("last", |annotations| annotations.title = Some("x".to_owned())).expect("changed");
        let mut after = store.read("last").expect("read");
        assert_eq!(after.header.annotations.title.as_deref(), Some("x"), "{name}");
        after.header.annotations.title = before.header.annotations.title.clone();
        assert_eq!((after, imported.trials), (before.clone(), before.trials.len() as u64), "{name}");
    }
}

#[test]
fn first_line_that_was_cut_is_incomplete_also_after_a_change_of_it() {
    let (_folder, store, path) = store_with_a_run();
    let name = path.to_str().expect("a plain path");
    for is_changed in [false, true] {
        if is_changed {
            store.annotate("last", |annotations| annotations.title = Some("x".to_owned())).expect("changed");
        }
        let whole = fs::read(&path).expect("read");
        for length in [1, 12, 40] {
            fs::write(&path, &whole[..length]).expect("cut");
            let error = store.read(name).expect_err("it was cut").to_string();
            assert!(error.contains("its first line is incomplete"), "{length}: {error}");
        }
        fs::write(&path, whole).expect("whole again");
    }
}

#[test]
fn run_that_is_being_written_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("opened");
    let writer = store.create(&sample::header("x")).expect("created");
    let annotated = store.annotate("last", |_| {}).expect_err("in use");
    let renamed = store.rename("last", &id("other")).expect_err("in use");
    assert!(matches!(annotated, StoreError::InUse { .. }), "{annotated}");
    assert!(matches!(renamed, StoreError::InUse { .. }), "{renamed}");
    drop(writer);
    store.rename("last", &id("other")).expect("renamed");
}

#[test]
fn renamed_run_has_its_new_name_and_no_other_run_is_replaced() {
    let (folder, store, _) = store_with_a_run();
    let former = store.rename("last", &id("before-the-update")).expect("renamed");
    assert_eq!(former, sample::header("x").id);
    assert_eq!(store.read("before").expect("read").header.id.as_str(), "before-the-update");
    store.create(&sample::header("x")).expect("another run");
    let error = store.rename(sample::header("x").id.as_str(), &id("before-the-update")).expect_err("taken");
    assert!(matches!(error, StoreError::NameTaken { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("failed to rename run ") && !text.contains("resume"), "{text}");
    assert_eq!(files(folder.path()), 2);
}

#[test]
fn exported_run_is_imported_once_and_its_incomplete_record_is_left_out() {
    let (_folder, store, path) = store_with_a_run();
    let whole = fs::read(&path).expect("read");
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"{\"tria"))
        .expect("torn");
    let records = store.records("last").expect("records");
    assert_eq!(records, whole);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("from a colleague.any");
    fs::write(&file, &records).expect("written");
    let other = Store::open(elsewhere.path().join("store")).expect("opened");
    let first = other.import(&file, None).expect("imported");
    assert!(!first.was_there && first.id == sample::header("x").id && first.trials == 1);
    assert!(first.left_out.is_empty(), "{first:?}");
    // The copy of the incomplete file does not show that a record is missing.
    let of_incomplete = Store::open(elsewhere.path().join("incomplete")).expect("opened");
    let imported = of_incomplete.import(&path, None).expect("imported");
    assert_eq!(imported.left_out, [netduel_model::warning::Warning::RecordIncomplete { bytes: 6 }]);
    assert_eq!(of_incomplete.verify("last").expect("verified").torn, None);
    assert!(other.import(&file, None).expect("the same").was_there);
    assert_eq!(
        other.read("last").expect("read"),
        store
            .read(&path.display().to_string())
            .map(|mut run| {
                run.warnings.clear();
                run
            })
            .expect("read")
    );
    // Another run of this name stays.
    other.annotate("last", |annotations| annotations.title = Some("mine".to_owned())).expect("changed");
    let error = other.import(&file, None).expect_err("another run");
    assert!(matches!(error, StoreError::Exists { .. }), "{error}");
    assert_eq!(other.import(&file, Some(&id("theirs"))).expect("imported").id.as_str(), "theirs");
    assert_eq!(files(other.folder()), 2);
}

#[test]
fn renamed_run_has_its_new_name_where_it_is_imported() {
    let (folder, store, path) = store_with_a_run();
    let original = fs::read(&path).expect("read");
    store.rename("last", &id("before-the-update")).expect("renamed");
    let records = store.records("before").expect("records");
    let file = folder.path().join("from a colleague");
    fs::write(&file, &records).expect("written");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let other = Store::open(elsewhere.path()).expect("opened");
    let imported = other.import(&file, None).expect("imported");
    assert_eq!((imported.id.as_str(), imported.was_there), ("before-the-update", false));
    assert!(other.verify("last").expect("verified").damaged.is_empty());
    assert_eq!(other.read("last").expect("read"), store.read("last").expect("read"));
    assert_eq!(other.list().expect("a listing")[0].copy_of, None);
    // The store of the run has it already, with its former name in its header.
    assert!(store.import(&file, None).expect("the same").was_there);
    assert!(!path.exists());
    // So has a store that knows it by its former name only, in a header as it was written first.
    fs::write(&path, original).expect("written");
    assert!(store.import(&file, Some(&sample::header("x").id)).expect("the same").was_there);
    // A file outside of the store is that of the run in it.
    let named = file.to_str().expect("text");
    fs::copy(store.folder().join("before-the-update.netduel"), &file).expect("copied");
    assert_eq!(store.records(named).expect("records"), fs::read(&file).expect("read"));
}

#[test]
fn run_whose_own_name_no_command_finds_is_imported_under_another_name_only() {
    let (folder, store, _) = store_with_a_run();
    let mut run = store.read("last").expect("read");
    let file = folder.path().join("theirs");
    for name in ["last", "x.netduel", "x.json"] {
        run.header.id = id(name);
        fs::write(&file, bytes_of(&run).expect("bytes")).expect("written");
        let error = store.import(&file, None).expect_err("commands take it for something else");
        assert!(matches!(error, StoreError::UnusableName { .. }), "{error}");
        assert!(error.to_string().contains("--name"), "{error}");
        assert_eq!(files(folder.path()), 2);
    }
    assert!(!store.import(&file, Some(&id("theirs"))).expect("imported").was_there);
}

#[test]
fn import_reports_a_start_in_the_future_and_a_name_with_which_others_begin() {
    let (folder, store, _) = store_with_a_run();
    let mut run = store.read("last").expect("read");
    let own = run.header.id.clone();
    (run.header.id, run.header.started_unix_ms) = (id("x"), sample::YEAR_2100_UNIX_MS);
    let file = folder.path().join("theirs");
    fs::write(&file, bytes_of(&run).expect("bytes")).expect("written");
    for was_there in [false, true] {
        let imported = store.import(&file, None).expect("imported");
        assert_eq!((imported.was_there, imported.starts_in_future), (was_there, true));
        assert_eq!((imported.longer_names, &store.read("last").expect("read").header.id), (1, &own));
    }
    run.header.started_unix_ms = 1;
    fs::write(&file, bytes_of(&run).expect("bytes")).expect("written");
    let imported = store.import(&file, Some(&id("theirs"))).expect("imported");
    assert_eq!((imported.starts_in_future, imported.longer_names), (false, 0));
}

#[test]
fn imported_run_has_no_report_files_and_is_the_same_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let [own, other] = ["own", "other"].map(|name| Store::open(folder.path().join(name)).expect("opened"));
    let mut header = sample::header("x");
    header.report = Some("/etc/report.html".to_owned());
    header.further_reports = vec!["/etc/report.md".to_owned()];
    let mut writer = own.create(&header).expect("a run is created");
    writer.trial(&sample::trial(0)).and_then(|()| writer.end(&RunEnd::Interrupted)).expect("stored");
    drop(writer);
    let file = folder.path().join("theirs");
    fs::write(&file, own.records("last").expect("records")).expect("written");
    assert!(!other.import(&file, None).expect("imported").was_there);
    let imported = other.read("last").expect("read").header;
    assert_eq!(imported, RunHeader { report: None, further_reports: Vec::new(), ..header.clone() });
    assert!(other.verify("last").expect("verified").damaged.is_empty());
    assert!(other.import(&file, None).expect("the same").was_there);
    // The user of this store chose them.
    assert!(own.import(&file, None).expect("the same").was_there);
    assert_eq!(own.read("last").expect("read").header, header);
}

#[test]
fn what_is_no_run_is_not_imported() {
    let (folder, store, _) = store_with_a_run();
    let file = folder.path().join("notes.txt");
    fs::write(&file, "not a run\n").expect("written");
    let error = store.import(&file, None).expect_err("no run");
    assert!(matches!(error, StoreError::NotARun { .. }), "{error}");
    let error = store.import(folder.path(), None).expect_err("a folder");
    assert!(error.to_string().contains("a folder"), "{error}");
    assert_eq!(files(folder.path()), 2);
}

#[test]
fn link_planted_at_a_name_that_a_draft_had_is_not_followed_and_stops_nothing() {
    let (folder, store, path) = store_with_a_run();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let plant = |name: String| {
        let link = folder.path().join(name);
        std::os::unix::fs::symlink(&victim, &link).expect("linked");
        link
    };
    // The names that drafts had: that of the run, and that of the process.
    let links = ["x", "y"].map(|name| plant(format!(".{}.netduel.new", sample::header(name).id)));
    let check = plant(format!(".check-{}.new", std::process::id()));
    store.annotate("last", |annotations| annotations.title = Some("x".to_owned())).expect("changed");
    store.check_writable().expect("it can be written");
    drop(store.create(&sample::header("y")).expect("a run is created"));
    let (elsewhere, copy) = (tempfile::tempdir().expect("a folder"), id("copy"));
    let file = elsewhere.path().join("theirs");
    fs::copy(&path, &file).expect("copied");
    store.import(&file, Some(&copy)).expect("imported");
    assert_eq!(fs::read_to_string(&victim).expect("read"), "precious");
    for link in links.iter().chain([&check]) {
        assert!(fs::symlink_metadata(link).expect("it is there").is_symlink(), "{}", link.display());
    }
    assert_eq!(store.list().expect("a listing").len(), 3);
}

#[test]
fn run_that_is_written_from_its_parts_is_the_same_run() {
    let (folder, store, _) = store_with_a_run();
    let run = store.read("last").expect("read");
    let file = folder.path().join("copy");
    fs::write(&file, bytes_of(&run).expect("bytes")).expect("written");
    let copy = store.read(file.to_str().expect("text")).expect("read");
    assert_eq!(copy, run);
    assert!(store.verify(file.to_str().expect("text")).expect("verified").has_checksums);
}

#[test]
fn disk_space_of_a_run_is_that_of_its_file() {
    let (_folder, store, path) = store_with_a_run();
    let usage = store.usage(&sample::header("x").id).expect("its size");
    assert_eq!(usage.bytes, fs::metadata(&path).expect("metadata").len());
}
