//! The journal of a guard: what it keeps, line by line in a file, for the case that agent and guard are killed together. The next
//! agent in the same network namespace finds it and restores the settings.
//!
//! A journal belongs to one boot and one network namespace. Its guard holds a lock on it (flock(2)), which the kernel drops with the
//! process, so a journal whose lock is free has no guard any more. It is trusted only when no other user can write it.
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use netduel_control::protocol::Recovery;
use netduel_model::PROGRAM;
use netduel_sys::namespace::network_cookie;
use netduel_sys::namespace_handle::NamespaceHandle;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, openat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::geteuid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::in_force::InForce;
use super::protocol::Request;

/// The version of what is in a journal: its first line, and [`Request`] with the records in it. A change of either is a new version.
///
/// - 1: the first.
const VERSION: u32 = 1;
/// Longest journal that is read, bytes: a record is some hundred bytes, an RSS table some thousand.
const LEN_MAX: u64 = 4 << 20;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
struct Head {
    journal: u32,
    /// The program that wrote it, name and version.
    program: String,
    /// `/proc/sys/kernel/random/boot_id`: settings do not outlive a boot.
    boot: String,
    /// The cookie of the network namespace.
    namespace: u64,
    /// The file handle of the network namespace, which tells whether it still exists; absent before Linux 6.18.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    namespace_handle: Option<String>,
}

impl Head {
    /// That of a journal which is written now; `None` where boot or namespace has no identifier.
    fn now() -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace_handle = NamespaceHandle::of_network().ok().map(|handle| handle.to_string());
        let program = PROGRAM.to_owned();
        Some(Self { journal: VERSION, program, boot, namespace: network_cookie().ok()?, namespace_handle })
    }
}

/// A guard's journal.
pub(super) struct Journal {
    /// Where it is when there is something in it; `None` where this host has no place for it.
    place: Option<(OwnedFd, PathBuf, String)>,
    head: Option<Head>,
    file: Option<File>,
}

impl Journal {
    /// With nothing in it, and no file yet.
    pub(super) fn new() -> Self {
        Self::within(&folders())
    }

    /// As [`Self::new`], in the first of some folders that only this user can write.
    pub(super) fn within(folders: &[PathBuf]) -> Self {
        let head = Head::now();
        let place = head.as_ref().and_then(|_| {
            let (folder, path) =
                folders.iter().find_map(|path| Some((own_folder(path, true).ok()?, path)))?;
            let random = netduel_sys::random::bytes16().ok()?;
            let name = format!("undo-{:032x}", u128::from_ne_bytes(random));
            Some((folder, path.join(&name), name))
        });
        Self { place, head, file: None }
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.place.as_ref().map(|(_, path, _)| path.clone())
    }

    /// Adds a request; the file is made with the first.
    pub(super) fn note(&mut self, request: &Request) -> io::Result<()> {
        let Some((folder, _, name)) = &self.place else { return Ok(()) };
        if self.file.is_none() {
            let mut file = File::from(locked(folder, name)?);
            write_line(&mut file, &self.head)?;
            self.file = Some(file);
        }
        self.file.as_mut().map_or(Ok(()), |file| write_line(file, request))
    }

    /// Removes the file: nothing is left to restore.
    pub(super) fn remove(&mut self) {
        // Its lock ends after its name: the next holder of the lock finds a journal that is still needed, or none.
        if let Some(file) = self.file.take()
            && let Some((folder, _, name)) = &self.place
        {
            let _ = unlinkat(folder, name.as_str(), AtFlags::empty());
            drop(file);
        }
    }
}

/// A new file with its lock. An agent that looks through the journals may lock it first, for a moment, and removes it because it is
/// empty: then it is made again.
fn locked(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags =
        OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::APPEND;
    loop {
        let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        if fstat(&file)?.st_nlink > 0 {
            return Ok(file);
        }
    }
}

/// One write for a line, so that a killed guard leaves whole lines and at most one that is cut off.
fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// Where journals may be: a folder that goes with the boot, else one of the user's own.
fn folders() -> Vec<PathBuf> {
    let user = geteuid();
    let mut folders = Vec::new();
    if user.is_root() {
        folders.push(PathBuf::from("/run/netduel"));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    folders.extend(runtime.map(|path| path.join("netduel")));
    folders.push(std::env::temp_dir().join(format!("netduel-{}", user.as_raw())));
    folders
}

/// A folder that only this user can write, made if it is not there.
fn own_folder(path: &Path, make: bool) -> io::Result<OwnedFd> {
    if make {
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, path, flags, Mode::empty())?;
    if is_own(&folder, FileType::Directory)? {
        Ok(folder)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Whether a file is of this kind, belongs to this user, and no other user can open it.
fn is_own(file: &OwnedFd, kind: FileType) -> io::Result<bool> {
    let found = fstat(file)?;
    let others = found.st_mode & 0o077;
    Ok(FileType::from_raw_mode(found.st_mode) == kind && found.st_uid == geteuid().as_raw() && others == 0)
}

/// Removes the journal of a guard that is gone, after its agent has undone everything by itself.
pub(super) fn discard(path: &Path) {
    if let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        && let Ok(folder) = own_folder(folder, false)
    {
        let _ = unlinkat(&folder, name, AtFlags::empty());
    }
}

/// Restores the settings of this network namespace that agents left behind which were killed together with their guards.
pub fn recover() -> Recovery {
    recover_within(&folders())
}

fn recover_within(folders: &[PathBuf]) -> Recovery {
    let mut recovery = Recovery::default();
    let Some(head) = Head::now() else { return recovery };
    for path in folders {
        let Ok(folder) = own_folder(path, false) else { continue };
        let Ok(entries) = Dir::read_from(&folder) else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with("undo-")).collect();
        names.sort_unstable();
        for name in names {
            // One that cannot be opened or read is not ours, or went meanwhile.
            let _ = recover_one(&folder, &path.join(&name), &name, &head, &mut recovery);
        }
    }
    recovery
}

/// The journal of a guard that lives in this network namespace: its agent makes changes, or has ended and the guard restores them.
pub(crate) fn with_guard() -> Option<PathBuf> {
    with_guard_within(&folders())
}

fn with_guard_within(folders: &[PathBuf]) -> Option<PathBuf> {
    let head = Head::now()?;
    folders.iter().find_map(|path| {
        let folder = own_folder(path, false).ok()?;
        let names = Dir::read_from(&folder).ok()?.flatten();
        let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .find(|name| name.starts_with("undo-") && has_guard(&folder, name, &head))
            .map(|name| path.join(name))
    })
}

fn has_guard(folder: &OwnedFd, name: &str, head: &Head) -> bool {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, name, flags, Mode::empty()) else { return false };
    let is_locked = is_own(&file, FileType::RegularFile).unwrap_or(false)
        && flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    if !is_locked {
        return false;
    }
    let mut first = String::new();
    // A journal without a first line yet is that of an agent which is about to make changes.
    let _ = BufReader::new(File::from(file)).take(LEN_MAX).read_line(&mut first);
    let its: Option<serde_json::Value> = serde_json::from_str(&first).ok();
    its.is_none_or(|its| {
        its.get("boot").and_then(serde_json::Value::as_str) == Some(head.boot.as_str())
            && its.get("namespace").and_then(serde_json::Value::as_u64) == Some(head.namespace)
    })
}

fn recover_one(
    folder: &OwnedFd,
    path: &Path,
    name: &str,
    head: &Head,
    recovery: &mut Recovery,
) -> io::Result<()> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::APPEND;
    let file = openat(folder, name, flags, Mode::empty())?;
    if !is_own(&file, FileType::RegularFile)? {
        return Ok(());
    }
    // Its guard lives, or another agent is at it.
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    if fstat(&file)?.st_nlink == 0 {
        return Ok(());
    }
    let mut file = File::from(file);
    let mut bytes = Vec::new();
    (&mut file).take(LEN_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let remove = || unlinkat(folder, name, AtFlags::empty()).map_err(io::Error::from);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    let its = match serde_json::from_str::<serde_json::Value>(first) {
        Ok(its) => its,
        // The guard was killed before it had written anything that was acknowledged.
        Err(_) if !first.ends_with('\n') => return remove(),
        Err(_) => {
            recovery.problems.push(damaged(path, 1));
            return Ok(());
        }
    };
    if its.get("boot").and_then(serde_json::Value::as_str) != Some(head.boot.as_str()) {
        return remove();
    }
    if its.get("namespace").and_then(serde_json::Value::as_u64) != Some(head.namespace) {
        return if is_gone(&its) { remove() } else { Ok(()) };
    }
    let version = its.get("journal").and_then(serde_json::Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let program =
            its.get("program").and_then(serde_json::Value::as_str).unwrap_or("another version of netduel");
        recovery.problems.push(format!(
            "failed to restore the settings in {}: {program} wrote it with journal version {}, and {PROGRAM} reads version {VERSION}; run an \
             agent of {program} on this host, or restore the settings by hand and remove the file",
            path.display(),
            version.map_or_else(|| "unknown".to_owned(), |version| version.to_string()),
        ));
        return Ok(());
    }
    let mut in_force = InForce::default();
    let mut is_damaged = false;
    for (line, number) in lines.zip(2..) {
        match serde_json::from_str(line) {
            Ok(request) => drop(in_force.note(request)),
            // The last line may be cut off: it was not acknowledged then.
            Err(_) if !line.ends_with('\n') => {}
            Err(_) => {
                recovery.problems.push(damaged(path, number));
                is_damaged = true;
            }
        }
    }
    let what = in_force.what();
    let left = in_force.undo_all(|id| drop(write_line(&mut file, &Request::Forget { id })));
    if left.is_empty() && !is_damaged {
        remove()?;
    }
    recovery
        .restored
        .extend(what.into_iter().filter(|what| !left.iter().any(|failed| failed.is_about(what))));
    recovery.problems.extend(left.iter().map(|failed| format!("failed to {failed}")));
    Ok(())
}

/// The problem of a line that cannot be read.
fn damaged(path: &Path, line: usize) -> String {
    format!(
        "failed to read line {line} of {}: it is damaged; settings that an earlier run changed may still be changed: compare them with the \
         plan of that run, restore them by hand, and remove the file",
        path.display()
    )
}

/// Whether the network namespace of a journal is certainly gone, and its settings with it: the kernel knows its file handle no more, and
/// this agent may open every namespace. Where the kernel has no such handles, or this agent is not root, it may exist.
fn is_gone(head: &serde_json::Value) -> bool {
    let handle = head.get("namespace_handle").and_then(serde_json::Value::as_str);
    let handle = handle.and_then(|text| text.parse::<NamespaceHandle>().ok());
    handle.is_some_and(|handle| handle.exists().is_ok_and(|exists| !exists))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use netduel_formats::{examples, fingerprint, uncovered, violations};
    use netduel_sys::namespace::{Kind, unshare};
    use netduel_test_support::skip;
    use schemars::generate::SchemaSettings;
    use serde::de::DeserializeOwned;

    use super::super::record::Record;
    use super::*;

    /// A journal whose guard is gone: it keeps a sysctl that this kernel does not have.
    fn left_behind(folder: &Path, edit: impl Fn(&mut Head)) -> PathBuf {
        let mut journal = Journal::within(&[folder.to_owned()]);
        journal.head.as_mut().map(edit);
        let undo = Record::of_sysctl("net.no.such", "1");
        journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
        journal.path().unwrap()
    }

    /// The newest version of the journal that a release of netduel writes. Versions up to this never change.
    const RELEASED: u32 = 0;
    /// The fingerprints of the first line and of the others in this version.
    const FINGERPRINTS: [&str; 2] = ["a3c7d8f20e17170b", "842a2e6219ee833a"];

    /// Every place of a line as it is written, and the fingerprint of its schema.
    fn every<T: JsonSchema + Serialize + DeserializeOwned>() -> (String, String) {
        let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
        let schema = generator.into_root_schema_for::<T>().to_value();
        let mut text = String::new();
        let mut lines = Vec::new();
        for example in examples(&schema, &|_, _| None) {
            let read: T = serde_json::from_value(example.clone())
                .unwrap_or_else(|error| panic!("{error} in {example}"));
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
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/journal-{VERSION}.jsonl"));
        let written = head + &requests;
        if VERSION > RELEASED && std::env::var_os("NETDUEL_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &written).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        let remedy = if VERSION > RELEASED {
            "this version is unreleased: run `NETDUEL_BLESS=1 cargo test -p netduel-agent`, look at the difference and commit it"
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
            let recovery = recover_within(std::slice::from_ref(&folder));
            assert!(recovery.restored.is_empty());
            assert!(recovery.problems[0].contains("sysctl -w 'net.no.such=1'"), "{recovery:?}");
        }
        assert!(path.exists());
    }

    #[test]
    fn damaged_journal_is_reported_and_kept_and_an_incomplete_line_is_not_damage() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("netduel");
        let recover = || recover_within(std::slice::from_ref(&folder));
        let path = left_behind(&folder, |_| ());
        let whole = std::fs::read_to_string(&path).unwrap();
        let (first, record) = whole.split_once('\n').unwrap();
        for (text, line) in [
            (format!("x{whole}"), 1),
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
    fn journal_of_a_guard_that_lives_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("netduel");
        let mut journal = Journal::within(std::slice::from_ref(&folder));
        let undo = Record::of_sysctl("net.no.such", "1");
        journal.note(&Request::Keep { id: 1, undo, running: false }).unwrap();
        assert_eq!(recover_within(std::slice::from_ref(&folder)), Recovery::default());
        assert_eq!(with_guard_within(std::slice::from_ref(&folder)), journal.path());
        journal.remove();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        assert_eq!(with_guard_within(std::slice::from_ref(&folder)), None);
    }

    #[test]
    fn journal_is_written_while_agents_look_through_the_journals() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("netduel");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    recover_within(std::slice::from_ref(&folder));
                    with_guard_within(std::slice::from_ref(&folder));
                }
            });
            let lost = (0..500).find(|id| {
                let mut journal = Journal::within(std::slice::from_ref(&folder));
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
        let recovery = recover_within(std::slice::from_ref(&folder));
        assert!(!boot.exists() && namespace.exists() && version.exists());
        let mut of_other = Journal::within(std::slice::from_ref(&folder));
        of_other.head.as_mut().unwrap().namespace += 1;
        of_other.note(&Request::Forget { id: 1 }).unwrap();
        assert_eq!(with_guard_within(std::slice::from_ref(&folder)), None, "a guard of another namespace");
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
        assert_eq!(recover_within(std::slice::from_ref(&folder)), Recovery::default());
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
        assert_eq!(recover_within(std::slice::from_ref(&folder)), Recovery::default());
        std::fs::set_permissions(&path, open_to(0o600)).unwrap();
        // A link in its place is not followed, and a folder that others can write is none.
        let linked = root.path().join("linked");
        std::os::unix::fs::symlink(&folder, &linked).unwrap();
        assert_eq!(recover_within(std::slice::from_ref(&linked)), Recovery::default());
        std::fs::set_permissions(&folder, open_to(0o777)).unwrap();
        assert_eq!(recover_within(std::slice::from_ref(&folder)), Recovery::default());
        assert!(Journal::within(std::slice::from_ref(&folder)).path().is_none());
    }
}
