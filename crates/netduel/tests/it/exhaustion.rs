//! Hosts without threads or memory, readers that go away, and arguments that are no text: every end has a documented exit code, and what was
//! measured is stored.
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use netduel_sys::pty::Pty;
use netduel_test_support::{copy_program, skip};

use crate::support::{Bench, LATENCY, TWO_PATHS, UnderWay, short_plan};

/// A user id that no other process of this machine has: a limit of processes is one of a user.
const USER: u32 = 0x4e44_0000;

/// A plan of few short trials.
fn plan(bench: &Bench) -> std::path::PathBuf {
    bench.plan(&short_plan(TWO_PATHS, LATENCY, "blocks_min = 2\nblocks_max = 2"))
}

/// Fails unless an exit code is one of the documented ones that are no bug of netduel.
#[track_caller]
fn expect_documented(output: &Output, under: &str) {
    let page = include_str!("../../../../docs/exit-codes.md");
    let documented = |code: i32| page.contains(&format!("\n| {code} | "));
    let code = output.status.code();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(code.is_some_and(|code| code != 1 && documented(code)), "{under}: {:?}\n{text}", output.status);
    assert!(!text.contains("panicked"), "{under}: {text}");
}

#[test]
fn run_without_threads_ends_with_a_documented_code() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root becomes a user without other processes");
    }
    let bench = Bench::new();
    std::fs::set_permissions(bench.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = bench.path().join("netduel");
    copy_program(env!("CARGO_BIN_EXE_netduel"), &program);
    let plan = plan(&bench);
    let mut ended_early = 0;
    for limit in 1..=64 {
        // Each run has a user of its own, so that no process of the one before counts.
        let user = USER + std::process::id() * 32 + limit;
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={user}"), "--regid=65534".to_owned(), "--clear-groups".to_owned()]);
        command.args(["prlimit", &format!("--nproc={limit}")]).arg(&program).arg("run").arg(&plan);
        command.current_dir(bench.path()).stdin(Stdio::null());
        bench.mark(&mut command);
        command.env("NETDUEL_STORE", bench.path().join(format!("store-{limit}")));
        let output = match command.output() {
            Ok(output) if output.status.code() != Some(127) => output,
            missing => return skip(format!("setpriv or prlimit cannot be run: {missing:?}")),
        };
        expect_documented(&output, &format!("{limit} threads"));
        bench.assert_nothing_left();
        if output.status.success() {
            break;
        }
        ended_early += 1;
    }
    assert!(ended_early > 0, "the limit of threads had no effect");
}

#[test]
fn run_at_the_limit_of_file_sizes_ends_as_on_a_full_disk() {
    let bench = Bench::new();
    let plan = plan(&bench);
    let output = match limited(&bench, "--fsize=8192", &["run".as_ref(), plan.as_os_str()]) {
        Ok(output) => output,
        missing => return skip(format!("prlimit cannot be run: {missing:?}")),
    };
    expect_documented(&output, "8 KiB");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("File too large"), "{text}");
    bench.assert_nothing_left();
}

#[test]
fn lab_without_open_files_is_a_lack_of_the_environment() {
    let bench = Bench::new();
    let name = format!("files-{}", std::process::id());
    let mut ended_early = 0;
    for files in 6..64 {
        let limit = format!("--nofile={files}");
        let up = ["lab", "up", "--rules", "1", "--lab", &name];
        let output = match limited(&bench, &limit, &up.map(OsStr::new)) {
            Ok(output) => output,
            missing => return skip(format!("prlimit cannot be run: {missing:?}")),
        };
        let text = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            bench.run(["lab", "down", "--lab", &name]).expect_code(0);
            break;
        }
        expect_documented(&output, &limit);
        assert_eq!(output.status.code(), Some(3), "{limit}: {text}");
        assert!(text.contains("ulimit -n"), "{limit}: {text}");
        bench.assert_nothing_left();
        ended_early += 1;
    }
    assert!(ended_early > 0, "the limit of open files had no effect");
}

/// The program with these arguments under a limit of prlimit(1).
fn limited(bench: &Bench, limit: &str, words: &[&OsStr]) -> std::io::Result<Output> {
    let mut command = Command::new("prlimit");
    command.arg(limit).arg(env!("CARGO_BIN_EXE_netduel")).args(words);
    command.current_dir(bench.path()).stdin(Stdio::null());
    bench.mark(&mut command);
    command.output()
}

#[test]
fn run_without_proc_names_what_is_missing() {
    let bench = Bench::new();
    let plan = plan(&bench);
    // A /proc without files, in a mount namespace that ends with the command.
    let script = "mount -t tmpfs tmpfs /proc || exit 77; exec \"$0\" run \"$1\"";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script, env!("CARGO_BIN_EXE_netduel")]).arg(plan);
    command.current_dir(bench.path()).stdin(Stdio::null());
    bench.mark(&mut command);
    let output = match command.output() {
        Ok(output) if output.status.code() != Some(77) => output,
        refused => return skip(format!("no mount namespace: {refused:?}")),
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("mount /proc"), "{text}");
}

#[test]
fn run_without_memory_ends_with_a_documented_code() {
    let bench = Bench::new();
    let plan = plan(&bench);
    let limited = |kib: u64, words: &[&OsStr]| limited(&bench, &format!("--as={}", kib << 10), words);
    let starts = |kib: &u64| {
        limited(*kib, &["plan".as_ref(), "schema".as_ref()]).is_ok_and(|output| output.status.success())
    };
    // Less than this is not enough for the dynamic linker and the first page of the program.
    let Some(enough) = (1..=64).map(|step| step * 4096).find(starts) else {
        return skip("prlimit cannot be run");
    };
    let mut ended_early = 0;
    for step in 0..64 {
        let kib = enough + step * 512;
        let output = limited(kib, &["run".as_ref(), plan.as_os_str()]).unwrap();
        expect_documented(&output, &format!("{kib} KiB"));
        bench.assert_nothing_left();
        if output.status.success() {
            break;
        }
        ended_early += 1;
    }
    assert!(ended_early > 0, "the limit of memory had no effect");
}

#[test]
fn run_whose_readers_are_gone_is_measured_to_its_end() {
    let bench = Bench::new();
    let plan = plan(&bench);
    let mut under_way = UnderWay::start(bench.netduel([OsStr::new("run"), plan.as_os_str()]));
    under_way.wait_for("lab:");
    let mut child = under_way.close();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let runs = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(
        (&runs["runs"][0]["trials"], &runs["runs"][0]["state"]),
        (&4.into(), &"done".into()),
        "{runs}"
    );
    bench.assert_nothing_left();
}

#[test]
fn run_whose_terminal_has_hung_up_is_measured_to_its_end() {
    let bench = Bench::new();
    let plan = plan(&bench);
    let Ok(Pty { user, program }) = Pty::open() else { return skip("no pseudo-terminal") };
    let mut command = bench.netduel([OsStr::new("run"), plan.as_os_str()]);
    let mut child = command.env("TERM", "xterm").stdout(Stdio::null()).stderr(program).spawn().unwrap();
    // It holds a copy of the program's end.
    drop(command);
    let (mut seen, mut terminal) = (Vec::new(), File::from(user));
    // The progress display moves the cursor; its lines have no ends.
    while !String::from_utf8_lossy(&seen).contains("host b is ready") {
        let mut some = [0; 4096];
        let read = terminal.read(&mut some).unwrap_or_else(|error| panic!("{error}: {seen:?}"));
        seen.extend(&some[..read]);
    }
    // From now on the program's writes fail (EIO). It is not its controlling terminal, so no signal comes, as after `disown`.
    drop(terminal);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let runs = bench.run(["runs", "--json"]).expect_code(0).json();
    assert_eq!(
        (&runs["runs"][0]["trials"], &runs["runs"][0]["state"]),
        (&4.into(), &"done".into()),
        "{runs}"
    );
    bench.assert_nothing_left();
}

#[test]
fn argument_that_is_no_text_is_a_path_or_refused() {
    let bench = Bench::new();
    let odd = OsStr::from_bytes(b"x\xff");
    let plan = plan(&bench);
    let run = [OsStr::new("run"), plan.as_os_str(), "--store".as_ref(), odd, "--out".as_ref()];
    let page = OsStr::from_bytes(b"y\xff.html");
    bench.run(run.iter().copied().chain([page])).expect_code(0);
    assert!(bench.path().join(page).is_file());
    assert_eq!(std::fs::read_dir(bench.path().join(odd)).unwrap().count(), 1);
    let verify = [OsStr::new("runs"), "verify".as_ref(), "--store".as_ref(), odd];
    for option in [None, Some(OsStr::new("--redact"))] {
        let verified = bench.run(verify.into_iter().chain(option)).expect_code(0).stdout;
        assert!(verified.contains(": sound, "), "{option:?}: {verified}");
    }
    for words in [
        &["report".as_ref(), odd][..],
        &["tcp".as_ref(), odd],
        &[odd],
        &["runs".as_ref(), "rm".as_ref(), odd],
    ] {
        bench.run(words).expect_code(2);
    }
    let missing = Path::new(OsStr::from_bytes(b"no\xff.toml"));
    bench.run([OsStr::new("run"), missing.as_os_str()]).expect_code(2);
    bench.assert_nothing_left();
}
