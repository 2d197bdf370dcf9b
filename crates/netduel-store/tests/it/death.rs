//! A coordinator that dies between or during appends loses no trial that was reported as stored.
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;

use netduel_model::run::RunEnd;
use netduel_model::warning::Warning;
use netduel_store::{Store, StoreError, drafts};
use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};

use crate::{child, sample};

/// Prints the number of stored trials until it is killed.
#[test]
fn child_stores_trials_until_it_is_killed() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("death")).expect("a run is created");
    for block in 0.. {
        writer.reserve().expect("there is room");
        writer.trial(&sample::long_trial(block, 4000)).expect("a trial is stored");
        println!("stored {}", block + 1);
    }
}

#[test]
fn kill_at_any_time_loses_no_stored_trial() {
    for acknowledged in [0_u32, 1, 2, 3, 7, 12, 19] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = child::command(&[], "death::child_stores_trials_until_it_is_killed", folder.path())
            .spawn()
            .expect("the child starts");
        let output = BufReader::new(writer.stdout.take().expect("its output is piped"));
        let mut stored = 0;
        for line in output.lines() {
            let line = line.expect("the child prints text");
            // The test harness prints the name of the test before the first line.
            if let Some((_, count)) = line.split_once("stored ") {
                stored = count.parse().expect("a number");
            }
            if stored >= acknowledged && (stored > 0 || line.contains("running 1 test")) {
                break;
            }
        }
        writer.kill().expect("the child can be killed");
        assert_eq!(writer.wait().expect("the child ends").signal(), Some(9));

        let store = Store::open(folder.path()).expect("the folder is there");
        if stored == 0 {
            // It may have died before there was a run; an existing file must be readable.
            assert!(store.list().expect("a listing").iter().all(|run| run.contents.is_ok()));
            continue;
        }
        let (mut run, torn) = store.read_with_note("last").expect("the run can be read");
        assert!(run.trials.len() as u32 >= stored, "{} of {stored}", run.trials.len());
        for (block, trial) in run.trials.iter().enumerate() {
            assert_eq!(trial, &sample::long_trial(block as u32, 4000));
        }
        let (resumed, mut writer) = store.resume(&run.header.id).expect("the run can be resumed");
        // It was killed while it wrote a record: readers have a warning, and the writer has removed what there was of it.
        assert_eq!(writer.cut_off(), torn);
        let warned = torn.map(|torn| Warning::RecordIncomplete { bytes: torn.bytes });
        assert_eq!(run.warnings.pop(), warned);
        assert_eq!(resumed, run);
        writer.trial(&sample::trial(99)).expect("a trial is stored");
        writer.end(&RunEnd::BlockLimitReached).expect("the end is stored");
        let (whole, torn) = store.read_with_note("last").expect("the run can be read");
        assert_eq!((whole.trials.len(), torn), (run.trials.len() + 1, None));
    }
}

/// Stores two trials and is killed while writing the third: the kernel writes up to the limit of the file size and then sends
/// SIGXFSZ.
#[test]
fn child_dies_within_an_append() {
    let Some(folder) = child::folder() else { return };
    let store = Store::open(folder).expect("the folder is there");
    let mut writer = store.create(&sample::header("death")).expect("a run is created");
    for block in 0..2 {
        writer.trial(&sample::long_trial(block, 100)).expect("a trial is stored");
    }
    let length = std::fs::metadata(writer.path()).expect("the file is there").len();
    let limit = Rlimit { current: Some(length + 1000), maximum: Some(length + 1000) };
    setrlimit(Resource::Fsize, limit).expect("a limit may be lowered");
    let core = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, core).expect("a limit may be lowered");
    println!("limited");
    std::io::stdout().flush().expect("output");
    let result = writer.trial(&sample::long_trial(2, 100));
    println!("survived: {result:?}");
}

#[test]
fn death_during_an_append_leaves_a_torn_line_that_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = child::command(&[], "death::child_dies_within_an_append", folder.path())
        .output()
        .expect("the child runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("limited") && !printed.contains("survived"), "{printed}");
    assert_eq!(output.status.signal(), Some(Signal::XFSZ.as_raw()), "{printed}");

    let store = Store::open(folder.path()).expect("the folder is there");
    let (run, torn) = store.read_with_note("last").expect("the run can be read");
    assert_eq!(run.trials, [sample::long_trial(0, 100), sample::long_trial(1, 100)]);
    let torn = torn.expect("a part of the third trial is there");
    assert_eq!(torn.bytes, 1000);
    assert!(torn.to_string().contains("incomplete"), "{torn}");

    let (_, mut writer) = store.resume(&run.header.id).expect("the run can be resumed");
    assert_eq!(writer.cut_off(), Some(torn));
    writer.trial(&sample::long_trial(2, 100)).expect("a trial is stored");
    let (run, torn) = store.read_with_note("last").expect("the run can be read");
    assert_eq!((run.trials.len(), torn), (3, None));
}

#[test]
fn run_has_one_writer_and_any_number_of_readers() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let header = sample::header("lock");
    let mut writer = store.create(&header).expect("a run is created");
    writer.trial(&sample::trial(0)).expect("a trial is stored");
    let error = store.resume(&header.id).expect_err("another process writes it");
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("another netduel writes this run"), "{error}");
    assert_eq!(store.read("last").expect("it can be read").trials.len(), 1);
    drop(writer);
    assert_eq!(store.resume(&header.id).expect("no process writes it").0.trials.len(), 1);
}

#[test]
fn drafts_of_killed_creators_are_removed_by_the_next_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let make = |name: &str, is_old: bool| {
        let path = folder.path().join(name);
        let file = std::fs::File::create(&path).expect("a file can be created");
        if is_old {
            file.set_modified(std::time::UNIX_EPOCH).expect("its time can be set");
        }
        (path, file)
    };
    let name = |digit: &str| format!(".part-{}", digit.repeat(32));
    let (old, _) = make(&name("a"), true);
    let (young, _) = make(&name("b"), false);
    let (locked, held) = make(&name("c"), true);
    held.lock().expect("a lock");
    // Of an earlier version.
    let (former, _) = make(".gone-1.netduel.new", true);
    let (check, _) = make(".check-1.new", true);
    let (foreign, _) = make("notes.new", true);
    // The clock was set back since.
    let (future, file) = make(&name("d"), false);
    let year_2100 = std::time::Duration::from_secs(130 * 365 * 24 * 60 * 60);
    file.set_modified(std::time::UNIX_EPOCH + year_2100).expect("its time can be set");
    drop(store.create(&sample::header("next")).expect("a run is created"));
    assert!(!old.exists() && !former.exists() && !check.exists() && !future.exists());
    assert!(young.exists() && locked.exists() && foreign.exists());
}

/// Holds a draft until it is killed.
#[test]
fn child_holds_a_draft() {
    let Some(folder) = child::folder() else { return };
    let (draft, file) = drafts::create(&folder, Mode::RUSR | Mode::WUSR).expect("a draft is created");
    file.set_modified(std::time::UNIX_EPOCH).expect("its time can be set");
    println!("held: {}", draft.display());
    std::io::stdin().read_line(&mut String::new()).expect("an end of the input");
}

#[test]
fn draft_of_a_process_is_kept_until_it_is_killed_and_is_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let mut holder = child::command(&[], "death::child_holds_a_draft", folder.path())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("the child starts");
    let mut output = BufReader::new(holder.stdout.take().expect("its output is piped")).lines();
    let draft = output.find_map(|line| {
        let line = line.expect("the child prints text");
        line.split_once("held: ").map(|(_, path)| std::path::PathBuf::from(path))
    });
    let draft = draft.expect("the child has a draft");
    drop(store.create(&sample::header("first")).expect("a run is created"));
    assert!(draft.exists());
    assert_eq!(store.list().expect("a listing").len(), 1);
    holder.kill().expect("the child can be killed");
    assert_eq!(holder.wait().expect("the child ends").signal(), Some(9));
    drop(store.create(&sample::header("second")).expect("a run is created"));
    assert!(!draft.exists());
}

#[test]
fn run_is_created_beside_a_draft_of_an_earlier_version() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("the folder is there");
    let header = sample::header("draft");
    let draft = folder.path().join(format!(".{}.netduel.new", header.id));
    std::fs::write(&draft, "x".repeat(100_000)).expect("a file can be written");
    assert!(store.list().expect("a listing").is_empty());
    drop(store.create(&header).expect("a run is created"));
    assert_eq!(store.read("last").expect("it can be read").header, header);
    let again = store.create(&header).expect_err("it is there");
    assert!(matches!(again, StoreError::Exists { .. }), "{again}");
    assert_ne!(
        store.new_id("draft", header.started_unix_ms, 0),
        store.new_id("draft", header.started_unix_ms, 1)
    );
}
