//! What is restored from journals, and what is only reported.
use std::sync::atomic::{AtomicBool, Ordering};

use netduel_control::protocol::Recovery;
use netduel_formats::{examples, fingerprint, uncovered, violations};
use netduel_sys::namespace::{Kind, unshare};
use netduel_test_support::{NewNamespace, skip};
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;

use super::super::record::Record;
use super::super::recovery::{in_use_within, journaled, recover_within};
use super::*;

/// A journal whose guard is gone: it keeps a sysctl that this kernel does not have.
fn left_behind(folder: &Path, edit: impl Fn(&mut Head)) -> PathBuf {
    left_behind_by(Keeper::Agent, folder, edit)
}

fn left_behind_by(keeper: Keeper, folder: &Path, edit: impl Fn(&mut Head)) -> PathBuf {
    let mut journal = Journal::within(&[folder.to_owned()], keeper);
    journal.head.as_mut().map(edit);
    let undo = Record::of_sysctl("net.no.such", "1");
    journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
    journal.path().unwrap()
}

/// The newest version of the journal that a release of netduel writes. Versions up to this never change.
const RELEASED: u32 = 0;
/// The fingerprints of the first line and of the others in this version.
const FINGERPRINTS: [&str; 2] = ["b521b7acb495b30e", "e2caa029e6d99195"];

/// Every place of a line as it is written, and the fingerprint of its schema.
fn every<T: JsonSchema + Serialize + DeserializeOwned>() -> (String, String) {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<T>().to_value();
    let mut text = String::new();
    let mut lines = Vec::new();
    for example in examples(&schema, &|_, _| None) {
        let read: T =
            serde_json::from_value(example.clone()).unwrap_or_else(|error| panic!("{error} in {example}"));
        lines.push(serde_json::to_value(&read).unwrap());
        text.push_str(&serde_json::to_string(&read).unwrap());
        text.push('\n');
    }
    assert_eq!(uncovered(&schema, &lines), [""; 0]);
    for line in &lines {
        assert_eq!(violations(&schema, line), [""; 0], "{line}");
    }
    (text, fingerprint(&schema))
}

#[test]
fn a_changed_record_needs_a_new_version_and_the_golden_file_contains_every_place() {
    let (head, of_head) = every::<Head>();
    let (requests, of_requests) = every::<Request>();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/journal-{VERSION}.jsonl"));
    let written = head + &requests;
    if VERSION > RELEASED && std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &written).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let remedy = if VERSION > RELEASED {
        "this version is unreleased: run `cargo xtask bless`, look at the difference and commit it"
    } else {
        "this version is released and must not change: raise VERSION and keep the golden file"
    };
    assert!(written == golden, "the journal changed: {remedy}");
    let found = [of_head.as_str(), of_requests.as_str()];
    assert_eq!(found, FINGERPRINTS, "the journal changed: {remedy}; the fingerprints are {found:?}");
}

#[test]
fn journal_that_cannot_be_restored_is_reported_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let path = left_behind(&folder, |_| ());
    for _ in 0..2 {
        let recovery = recover_within(std::slice::from_ref(&folder), Keeper::Agent);
        assert!(recovery.restored.is_empty());
        assert!(recovery.problems[0].contains("sysctl -w 'net.no.such=1'"), "{recovery:?}");
    }
    assert!(path.exists());
}

#[test]
fn damaged_journal_is_reported_and_kept_and_an_incomplete_line_is_not_damage() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let recover = || recover_within(std::slice::from_ref(&folder), Keeper::Agent);
    let path = left_behind(&folder, |_| ());
    let whole = std::fs::read_to_string(&path).unwrap();
    let (first, record) = whole.split_once('\n').unwrap();
    for (text, line) in [
        (format!("x{whole}"), 1),
        (whole.replacen("\"boot\"", "\"bnot\"", 1), 1),
        (format!("{first}\nx{record}"), 2),
        (format!("{first}\n\u{fffd}\n"), 2),
    ] {
        std::fs::write(&path, &text).unwrap();
        let recovery = recover();
        let named = format!("failed to read line {line} of {}", path.display());
        assert!(recovery.problems[0].starts_with(&named), "{text}: {recovery:?}");
        assert!(path.exists());
    }
    // The records of the other lines are restored: here one whose restoration fails.
    std::fs::write(&path, format!("{first}\nx\n{record}")).unwrap();
    assert!(recover().problems[1].contains("sysctl -w 'net.no.such=1'"));
    for text in [first[..20].to_owned(), format!("{first}\n{}", &record[..10])] {
        std::fs::write(&path, &text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, mode).unwrap();
        assert_eq!(recover(), Recovery::default(), "{text}");
        assert!(!path.exists());
    }
}

#[test]
fn line_that_a_full_file_system_cuts_off_is_taken_away_again() {
    let test = "treatment::journal::tests::line_that_a_full_file_system_cuts_off_is_taken_away_again";
    let prepare = "mount -t tmpfs -o size=4k tmpfs /mnt";
    NewNamespace { prepare, ..NewNamespace::default() }.run(test, || {
        let mut journal = Journal::within(&[PathBuf::from("/mnt/netduel")], Keeper::Agent);
        let undo = || Record::of_sysctl("net.no.such", &"1".repeat(1000));
        let mut keep = |id| journal.note(&Request::Keep { id, undo: undo(), running: false });
        // Not even its first line has room, and its file is not in the way afterwards.
        std::fs::write("/mnt/filler", "x").unwrap();
        assert!(keep(1).is_err());
        std::fs::remove_file("/mnt/filler").unwrap();
        let refused = (1..9).find(|id| keep(*id).is_err()).expect("it has one page");
        assert!(refused > 1);
        // It is shorter and has room, behind the lines that are whole.
        journal.note(&Request::Forget { id: 1 }).unwrap();
        let text = std::fs::read_to_string(journal.path().unwrap()).unwrap();
        let (in_force, damaged_lines) = journaled(&text);
        assert_eq!((in_force.len() as u64, damaged_lines), (refused - 2, Vec::new()), "{text}");
        journal.remove();
    });
}

/// What is behind its limit may undo what is before it, or be a change of its own.
#[test]
fn journal_that_is_longer_than_its_limit_is_reported_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let path = left_behind(&folder, |_| ());
    let whole = std::fs::read_to_string(&path).unwrap();
    let (first, record) = whole.split_once('\n').unwrap();
    let mut line = serde_json::to_string(&Request::Forget { id: 7 }).unwrap();
    line.push('\n');
    let filled = line.repeat(LEN_MAX as usize / line.len());
    std::fs::write(&path, format!("{first}\n{filled}{record}")).unwrap();
    let recovery = recover_within(std::slice::from_ref(&folder), Keeper::Agent);
    assert!(recovery.problems[0].contains("it is longer than 4 MiB"), "{recovery:?}");
    assert_eq!((recovery.problems.len(), recovery.restored.len()), (1, 0), "{recovery:?}");
    assert!(path.exists());
}

#[test]
fn journal_of_a_guard_that_lives_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let mut journal = Journal::within(std::slice::from_ref(&folder), Keeper::Agent);
    let undo = Record::of_sysctl("net.no.such", "1");
    journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
    assert_eq!(recover_within(std::slice::from_ref(&folder), Keeper::Agent), Recovery::default());
    assert_eq!(in_use_within(std::slice::from_ref(&folder)), journal.path());
    journal.remove();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    assert_eq!(in_use_within(std::slice::from_ref(&folder)), None);
}

/// A journal whose undo adds a number to a file.
fn undone_by_a_number(folder: &Path, number: u64, file: &Path) -> Journal {
    undone_by_a_number_of(Keeper::Agent, folder, number, file)
}

fn undone_by_a_number_of(keeper: Keeper, folder: &Path, number: u64, file: &Path) -> Journal {
    let mut journal = Journal::within(&[folder.to_owned()], keeper);
    let add = format!("echo {number} >> {}", file.display());
    let undo = ["sh", "-c", add.as_str()];
    let record = serde_json::json!({ "kind": "command", "command": ["true"], "undo": undo, "mark": "none" });
    let undo = serde_json::from_value(record).unwrap();
    journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
    journal
}

#[test]
fn changes_of_several_journals_are_undone_in_reverse() {
    let root = tempfile::tempdir().unwrap();
    let (folder, file) = (root.path().join("netduel"), root.path().join("numbers"));
    // The names of journals are random.
    for number in 1..=6 {
        undone_by_a_number(&folder, number, &file);
    }
    let recovery = recover_within(std::slice::from_ref(&folder), Keeper::Agent);
    assert_eq!((recovery.restored.len(), recovery.problems.len()), (6, 0), "{recovery:?}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "6\n5\n4\n3\n2\n1\n");
}

#[test]
fn journal_waits_for_the_guard_of_later_changes_of_the_same_agent() {
    let root = tempfile::tempdir().unwrap();
    let (folder, file) = (root.path().join("netduel"), root.path().join("numbers"));
    drop(undone_by_a_number(&folder, 1, &file));
    let later = undone_by_a_number(&folder, 2, &file);
    let mut of_other = Journal::within(std::slice::from_ref(&folder), Keeper::Agent);
    of_other.head.as_mut().unwrap().agent = Some(0);
    of_other.note(&Request::Forget { id: 1 }).unwrap();
    let recover = || recover_within(std::slice::from_ref(&folder), Keeper::Agent).restored.len();
    assert_eq!(recover(), 0, "its guard returns a device first, for example");
    drop(later);
    assert_eq!(recover(), 2, "another agent has nothing to do with it");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "2\n1\n");
}

#[test]
fn agents_neither_wait_for_the_guard_of_a_coordinator_nor_restore_what_it_left() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let recover = |whose| recover_within(std::slice::from_ref(&folder), whose);
    let mut journal = Journal::within(std::slice::from_ref(&folder), Keeper::Coordinator);
    let undo = Record::of_sysctl("net.no.such", "1");
    journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
    assert_eq!(in_use_within(std::slice::from_ref(&folder)), None);
    assert_eq!(recover(Keeper::Coordinator), Recovery::default(), "its guard lives");
    let path = journal.path().unwrap();
    drop(journal);
    assert_eq!(recover(Keeper::Agent), Recovery::default());
    let recovery = recover(Keeper::Coordinator);
    assert_eq!(recovery.problems.len(), 1, "there is no such setting: {recovery:?}");
    assert!(path.exists());
    // Nor does a coordinator wait for agents: it makes no change of this host.
    left_behind(&folder, |_| ());
    assert_eq!(recover(Keeper::Coordinator).problems.len(), 1);
}

#[test]
fn journal_of_a_coordinator_outlives_boots_and_namespaces_and_is_no_concern_of_agents() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let by = |edit: fn(&mut Head)| left_behind_by(Keeper::Coordinator, &folder, edit);
    let left = [by(|head| head.boot.push('x')), by(|head| head.namespace += 1)];
    let version = by(|head| {
        head.boot.push('x');
        head.journal += 1;
    });
    let recover = |whose| recover_within(std::slice::from_ref(&folder), whose);
    assert_eq!(recover(Keeper::Agent), Recovery::default());
    let problems = recover(Keeper::Coordinator).problems;
    let of = |part: &str| problems.iter().filter(|problem| problem.contains(part)).count();
    assert_eq!((problems.len(), of("sysctl -w 'net.no.such=1'")), (3, 2), "{problems:?}");
    assert_eq!(of("start a run that changes resources of Azure with netduel"), 1, "{problems:?}");
    assert!(left.iter().chain([&version]).all(|path| path.exists()));
}

/// Makes the first line of a journal one of an earlier boot, by a clock that was further on.
fn of_earlier_boot(journal: Journal) {
    let path = journal.path().unwrap();
    drop(journal);
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(first).unwrap();
    head["boot"] = "another".into();
    head["made_ns"] = u64::MAX.into();
    std::fs::write(path, format!("{head}\n{rest}")).unwrap();
}

#[test]
fn changes_of_an_earlier_boot_are_undone_last_and_wait_for_no_guard_of_this_one() {
    let root = tempfile::tempdir().unwrap();
    let (folder, file) = (root.path().join("netduel"), root.path().join("numbers"));
    let of = |number| undone_by_a_number_of(Keeper::Coordinator, &folder, number, &file);
    let recover = || recover_within(std::slice::from_ref(&folder), Keeper::Coordinator).restored.len();
    of_earlier_boot(of(1));
    drop(of(2));
    assert_eq!(recover(), 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "2\n1\n");
    // The number of a process can be that of another one in the boot before.
    of_earlier_boot(of(3));
    let in_use = of(4);
    assert_eq!(recover(), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "2\n1\n3\n");
    drop(in_use);
}

#[test]
fn journal_of_a_coordinator_is_where_it_outlives_a_boot_or_else_in_the_place_of_agents() {
    let root = tempfile::tempdir().unwrap();
    let lasting = root.path().join("undo");
    let of = |keeper| places(keeper, Some(lasting.clone()));
    assert_eq!(of(Keeper::Agent), folders());
    let all = of(Keeper::Coordinator);
    assert_eq!((&all[0], &all[1..]), (&lasting, &folders()[..]));
    let here = [lasting.clone(), root.path().join("other")];
    let path = || Journal::within(&here, Keeper::Coordinator).path().unwrap();
    assert!(path().starts_with(&lasting));
    assert_eq!(std::fs::read_dir(&lasting).unwrap().count(), 0, "a trace of the look at its locks");
    let open_to_all = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&lasting, open_to_all).unwrap();
    assert!(path().starts_with(root.path().join("other")));
}

#[test]
fn journal_is_written_while_agents_look_through_the_journals() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                recover_within(std::slice::from_ref(&folder), Keeper::Agent);
                in_use_within(std::slice::from_ref(&folder));
            }
        });
        let lost = (0..500).find(|id| {
            let mut journal = Journal::within(std::slice::from_ref(&folder), Keeper::Agent);
            journal.note(&Request::Forget { id: *id }).unwrap();
            let text = std::fs::read_to_string(journal.path().unwrap()).unwrap_or_default();
            journal.remove();
            text.lines().count() != 2
        });
        // Before a failure: the scope waits for the other thread.
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(lost, None, "number of the first journal that was lost");
    });
}

#[test]
fn journal_of_another_boot_goes_and_that_of_another_namespace_or_version_stays() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let boot = left_behind(&folder, |head| head.boot.push('x'));
    let namespace = left_behind(&folder, |head| head.namespace += 1);
    let version = left_behind(&folder, |head| {
        head.journal += 1;
        head.program = "netduel 9.8.7".to_owned();
    });
    let recovery = recover_within(std::slice::from_ref(&folder), Keeper::Agent);
    assert!(!boot.exists() && namespace.exists() && version.exists());
    let mut of_other = Journal::within(std::slice::from_ref(&folder), Keeper::Agent);
    of_other.head.as_mut().unwrap().namespace += 1;
    of_other.note(&Request::Forget { id: 1 }).unwrap();
    assert_eq!(in_use_within(std::slice::from_ref(&folder)), None, "a guard of another namespace");
    assert_eq!(recovery.problems.len(), 1, "{recovery:?}");
    let parts = ["journal version 2", "netduel 9.8.7 wrote it", "run an agent of netduel 9.8.7"];
    assert!(parts.iter().all(|part| recovery.problems[0].contains(part)), "{recovery:?}");
}

#[test]
fn journal_of_a_namespace_that_is_gone_is_removed() {
    let own = match NamespaceHandle::of_network().and_then(|own| Ok((own.exists()?, own))) {
        Ok((exists, own)) => exists.then_some(own).unwrap(),
        Err(error) => return skip(format!("whether a namespace exists is unknown here: {error}")),
    };
    let inside = std::thread::spawn(|| {
        unshare(&[Kind::Net]).unwrap();
        NamespaceHandle::of_network().unwrap()
    });
    let other = inside.join().unwrap();
    // The kernel removes a namespace in the background.
    while other.exists().unwrap() {
        std::thread::yield_now();
    }
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let with = |handle: Option<String>| {
        left_behind(&folder, move |head| {
            head.namespace += 1;
            head.namespace_handle.clone_from(&handle);
        })
    };
    let gone = with(Some(other.to_string()));
    let retained = [with(Some(own.to_string())), with(None), with(Some("no handle".to_owned()))];
    assert_eq!(recover_within(std::slice::from_ref(&folder), Keeper::Agent), Recovery::default());
    assert!(!gone.exists() && retained.iter().all(|path| path.exists()));
}

#[test]
fn journal_that_others_can_write_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt as _;
    let open_to = |mode| std::fs::Permissions::from_mode(mode);
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("netduel");
    let path = left_behind(&folder, |_| ());
    std::fs::set_permissions(&path, open_to(0o666)).unwrap();
    assert_eq!(recover_within(std::slice::from_ref(&folder), Keeper::Agent), Recovery::default());
    std::fs::set_permissions(&path, open_to(0o600)).unwrap();
    // A link in its place is not followed, and a folder that others can write is none.
    let linked = root.path().join("linked");
    std::os::unix::fs::symlink(&folder, &linked).unwrap();
    assert_eq!(recover_within(std::slice::from_ref(&linked), Keeper::Agent), Recovery::default());
    std::fs::set_permissions(&folder, open_to(0o777)).unwrap();
    assert_eq!(recover_within(std::slice::from_ref(&folder), Keeper::Agent), Recovery::default());
    assert!(Journal::within(std::slice::from_ref(&folder), Keeper::Agent).path().is_none());
}
