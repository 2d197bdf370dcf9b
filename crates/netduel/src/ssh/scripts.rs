//! The scripts for hosts, in the POSIX shell language without extensions, and the reading of their answers. It runs nothing.
use netduel_model::plan::SshHost;

use super::binary::Binary;
use super::exposure::JUDGE;
use super::obstacle::Obstacle;

/// Lines around an answer: start files of a shell print before it.
const BEGIN: &str = "netduel-answer-begins";
const END: &str = "netduel-answer-ends";
/// Longest path of a host, bytes (PATH_MAX in limits.h).
const PATH_LEN_MAX: usize = 4096;
/// Builds that a host keeps.
const BUILDS_KEPT: u32 = 2;

/// Prints the kernel and the machine.
pub const MACHINE: &str = "uname -sm";

/// Exit codes of the script of a copy, by the step that failed.
pub const NO_FOLDER: i32 = 91;
/// The file was not written.
pub const NOT_WRITTEN: i32 = 92;
/// The file has another checksum.
pub const DAMAGED: i32 = 93;
/// The file did not get its name.
pub const NOT_RENAMED: i32 = 94;
/// The file has another checksum, because gzip(1) failed.
pub const NOT_DECOMPRESSED: i32 = 95;
/// Another user can replace the file.
pub const EXPOSED: i32 = 96;
/// Prints whether gzip(1) is there and decompresses. It is tried, because some builds of busybox do not decompress.
const GZIP: &str =
    "if [ \"$( { echo netduel | gzip -c | gzip -dc; } 2>/dev/null)\" = netduel ]; then echo gzip=yes; fi";

/// A script as the shell reads it: its input is not the script.
pub fn framed(script: &str) -> String {
    format!("echo {BEGIN}; {{\n{script}\n}} </dev/null 2>&1; echo; echo {END}\n")
}

/// The complete answer in some output.
pub fn answer(output: &str) -> Option<&str> {
    let (_, answer) = output.split_once(&format!("{BEGIN}\n"))?;
    Some(answer.split_once(&format!("\n{END}\n"))?.0)
}

/// A word as every shell takes it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The file of a binary on a host, its checksum there, and whether the host has gzip(1). The folder is made, so that its path is known without
/// links; why that fails is reported by the copy. A program that another user can replace is neither read nor started.
pub fn probe(folder: &str, binary: &Binary) -> String {
    format!(
        "b={}\ncase $b in '~/'*) b=$HOME/${{b#??}};; esac\nd=$b/{}\n\
         (umask 077; mkdir -p \"$d\") 2>/dev/null; p=$(cd \"$d\" 2>/dev/null && pwd -P) && d=$p\n\
         f=$d/netduel; echo \"file=$f\"\n\
         if [ -d \"$d\" ]; then {JUDGE}; if [ -n \"$w\" ]; then echo \"exposed=$w\"; elif [ -f \"$f\" ]; then \
         touch \"$d\" 2>/dev/null; {}; echo \"sum=$s\"; fi; fi\n{GZIP}",
        quoted(folder),
        quoted(&binary.folder_name()),
        checksum("$f"),
    )
}

/// Sets `s` to the SHA-256 of a file; a host without sha256sum(1) has the program itself tell it.
fn checksum(file: &str) -> String {
    format!(
        "if command -v sha256sum >/dev/null 2>&1; then s=$(sha256sum <\"{file}\"); s=${{s%% *}}; \
         else s=$(\"{file}\" agent --checksum); fi"
    )
}

/// The answer to [`probe`].
#[derive(Debug, PartialEq, Eq)]
pub struct Probe {
    /// The file of the program on the host.
    pub file: String,
    /// Its checksum, when it exists.
    pub checksum: Option<String>,
    /// Whether it decompresses with gzip(1).
    pub has_gzip: bool,
}

impl Probe {
    /// From the answer.
    pub fn parse(answer: &str) -> Result<Self, Obstacle> {
        let value = |key: &str| answer.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let file = value("file=").filter(|file| file.starts_with('/') && file.len() < PATH_LEN_MAX);
        let file = file.ok_or_else(|| Obstacle::Unexpected { answer: answer.to_owned() })?;
        if let Some(path) = value("exposed=") {
            return Err(Obstacle::Exposed { path });
        }
        let has_gzip = value("gzip=").is_some_and(|answer| answer == "yes");
        Ok(Self { file, checksum: value("sum="), has_gzip })
    }
}

/// Writes the input to the file `$t`, decompressed on a host with gzip(1), and sets `g` to the exit code of that.
///
/// cat(1) writes in both cases, so that a full disk is the same error. Not every shell has `pipefail`, so the exit code of gzip leaves the
/// pipeline by descriptor 3.
fn write(has_gzip: bool) -> String {
    if has_gzip {
        format!("g=$( {{ {{ gzip -dc; echo $? >&3; }} | cat >\"$t\"; }} 3>&1) || exit {NOT_WRITTEN}")
    } else {
        format!("g=0; cat >\"$t\" || exit {NOT_WRITTEN}")
    }
}

/// The command of a copy: reads the file from its input, compares it, gives it its name, and removes older builds. The checksum decides, and
/// the exit code of gzip(1) explains: with a warning it still wrote the whole file. It writes to no folder that another user can change, and
/// removes nothing from one to which others can add links.
///
/// The temporary name has the host and the process. A shell that was killed leaves its file, which the next
/// copy removes; another host may be copying to the same home. The trap of PIPE is for a message to a connection
/// that has ended: the shell then still removes its file.
pub fn copy(probe: &Probe, checksum_wanted: &str) -> String {
    // In one line and without exclamation marks: the C shell passes it on.
    let digits = "[0-9a-f]".repeat(16);
    let script = format!(
        "umask 077; f={}; d=${{f%/*}}; b=${{d%/*}}; mkdir -p \"$d\" || exit {NO_FOLDER}; \
         {JUDGE}; [ -z \"$w\" ] || {{ echo \"$w\" >&2; exit {EXPOSED}; }}; h=$(uname -n); \
         for o in \"$d\"/.copy.\"$h\".*; do kill -0 \"${{o##*.}}\" 2>/dev/null || rm -f \"$o\"; done; \
         t=$d/.copy.$h.$$; trap 'rm -f \"$t\"' EXIT; trap 'exit 1' HUP INT PIPE TERM; \
         {}; chmod 700 \"$t\" || exit {NOT_WRITTEN}; {}; \
         [ \"$s\" = {checksum_wanted} ] || {{ \
         [ \"$g\" = 0 ] || {{ echo \"gzip ended with exit code $g\" >&2; exit {NOT_DECOMPRESSED}; }}; \
         echo \"its checksum is $s\" >&2; exit {DAMAGED}; }}; \
         mv -f \"$t\" \"$f\" || exit {NOT_RENAMED}; touch \"$d\"; \
         case $(ls -ldn \"$b\") in d????????[tT]*) exit 0;; esac; cd \"$b\" || exit 0; \
         ls -1td [0-9]*-{digits} 2>/dev/null | tail -n +{} | while read -r o; do rm -f \"$o/netduel\" \"$o\"/.copy.*; \
         rmdir \"$o\"; done 2>/dev/null; exit 0",
        quoted(&probe.file),
        write(probe.has_gzip),
        checksum("$t"),
        BUILDS_KEPT + 1,
    );
    format!("exec /bin/sh -c {}", quoted(&script))
}

fn root(ssh: &SshHost) -> &'static str {
    if ssh.sudo { "sudo -n " } else { "" }
}

/// Prints inode, size and time of the last change of a file: a file that was replaced or changed since has others.
pub fn state(file: &str) -> String {
    format!("s=$(stat -Lc '%i %s %z' {} 2>/dev/null); echo \"state=$s\"", quoted(file))
}

/// What [`state`] printed, in its answer or at the beginning of that to [`start`]. `None` without the file, and on a host without stat(1).
pub fn state_in(answer: &str) -> Option<&str> {
    answer.lines().next()?.strip_prefix("state=").filter(|state| !state.is_empty())
}

/// Prints the state of the program, starts it once and prints its exit status and output.
pub fn start(ssh: &SshHost, file: &str) -> String {
    format!(
        "{}; o=$({}{} --version 2>&1); echo \"status=$?\"; echo \"$o\"",
        state(file),
        root(ssh),
        quoted(file)
    )
}

/// Exit status and output of [`start`].
pub fn status_and_output(answer: &str) -> (Option<i32>, &str) {
    let (_, answer) = answer.split_once('\n').unwrap_or_default();
    let (status, output) = answer.split_once('\n').unwrap_or((answer, ""));
    (status.strip_prefix("status=").and_then(|status| status.parse().ok()), output.trim())
}

/// The command of an agent.
pub fn agent(ssh: &SshHost, file: &str) -> String {
    format!("exec {}{} agent", root(ssh), quoted(file))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Output, Stdio};
    use std::sync::Arc;

    use super::*;
    use crate::ssh::binary;
    use crate::ssh::compression::{Compressed, CompressionFailed};

    /// Runs a command with this search path and input.
    fn run(command: &str, path: &str, input: &[u8]) -> Output {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", command])
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sh starts");
        // It may end before it has read everything.
        drop(shell.stdin.take().expect("a pipe").write_all(input));
        shell.wait_with_output().expect("it ends")
    }

    /// Copies what `input` is to the folder of a build below `root`, as the program with these bytes.
    fn copy_to(root: &Path, has_gzip: bool, input: &[u8], program: &[u8]) -> Output {
        let file = root.join("it's/1-build/netduel").display().to_string();
        let probe = Probe { file, checksum: None, has_gzip };
        let path = std::env::var("PATH").expect("a search path");
        run(&copy(&probe, &binary::checksum(program)), &path, input)
    }

    fn gzip(bytes: &[u8]) -> Arc<Vec<u8>> {
        Compressed::default().of(bytes, || Ok::<(), CompressionFailed>(())).expect("it is compressed")
    }

    #[test]
    fn copy_is_the_program_with_gzip_and_without() {
        let program: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        for (has_gzip, input) in [(true, gzip(&program)), (false, Arc::new(program.clone()))] {
            let root = tempfile::tempdir().expect("a folder");
            let output = copy_to(root.path(), has_gzip, &input, &program);
            assert!(output.status.success(), "{output:?}");
            let copy = fs::read(root.path().join("it's/1-build/netduel")).expect("the copy");
            assert!(copy == program, "{} bytes", copy.len());
        }
    }

    #[test]
    fn failed_decompression_and_damaged_program_are_distinguished_and_leave_no_file() {
        let program: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        let (whole, other) = (gzip(&program), gzip(b"another program"));
        let cases: [(bool, &[u8], i32, &str); 5] = [
            (true, &whole[..whole.len() / 2], NOT_DECOMPRESSED, "gzip ended with exit code 1"),
            (true, &program, NOT_DECOMPRESSED, "gzip ended with exit code 1"),
            (true, &other, DAMAGED, "its checksum is"),
            (false, &whole, DAMAGED, "its checksum is"),
            (false, &program[..1000], DAMAGED, "its checksum is"),
        ];
        for (has_gzip, input, code, printed) in cases {
            let root = tempfile::tempdir().expect("a folder");
            let output = copy_to(root.path(), has_gzip, input, &program);
            assert_eq!(output.status.code(), Some(code), "{output:?}");
            assert!(String::from_utf8_lossy(&output.stderr).contains(printed), "{output:?}");
            let left = fs::read_dir(root.path().join("it's/1-build")).expect("the folder").count();
            assert_eq!(left, 0, "{output:?}");
        }
    }

    #[test]
    fn files_of_copies_whose_shell_was_killed_are_removed() {
        let program = b"a program";
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("it's/1-build");
        fs::create_dir_all(&folder).expect("the folder");
        let mut ended = Command::new("true").spawn().expect("true starts");
        ended.wait().expect("it ends");
        let host = Command::new("uname").arg("-n").output().expect("uname starts").stdout;
        let host = String::from_utf8(host).expect("a name");
        let host = host.trim();
        let left = [(host, ended.id()), (host, std::process::id()), ("another-host", ended.id())];
        let left = left.map(|(host, process)| folder.join(format!(".copy.{host}.{process}")));
        for file in &left {
            fs::write(file, "a part").expect("a file");
        }
        let output = copy_to(root.path(), false, program, program);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(left.map(|file| file.exists()), [false, true, true]);
    }

    #[test]
    fn probe_finds_gzip_in_the_search_path_only_where_it_works() {
        let root = tempfile::tempdir().expect("a folder");
        let binary = Binary::without_bytes();
        let folder = root.path().display().to_string();
        let has_gzip = |path: &str| {
            let output = run(&probe(&folder, &binary), path, b"");
            assert!(output.stderr.is_empty(), "{output:?}");
            Probe::parse(&String::from_utf8_lossy(&output.stdout)).expect("a probe").has_gzip
        };
        let path = std::env::var("PATH").expect("a search path");
        // Without any program, before the folder is there: with it, ls(1) and id(1) judge it.
        assert!(!has_gzip(&folder));
        assert!(has_gzip(&path));
        netduel_test_support::write_program(root.path().join("gzip"), "#!/bin/sh\nexit 1\n");
        assert!(!has_gzip(&format!("{folder}:{path}")));
    }

    #[test]
    fn file_that_was_replaced_or_changed_has_another_state_and_a_missing_one_has_none() {
        let root = tempfile::tempdir().expect("a folder");
        let [file, other, link] = ["it's", "other", "link"].map(|name| root.path().join(name));
        let path = std::env::var("PATH").expect("a search path");
        let state_of = |file: &Path| {
            let output = run(&state(&file.display().to_string()), &path, b"");
            state_in(&String::from_utf8_lossy(&output.stdout)).map(str::to_owned)
        };
        assert_eq!(state_of(&file), None);
        fs::write(&file, "program").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let first = state_of(&file).expect("a state");
        assert_eq!([&file, &link].map(|file| state_of(file)), [Some(first.clone()), Some(first.clone())]);
        // Both exist at a time, so they have inodes of their own.
        fs::write(&other, "program").expect("a file");
        fs::rename(&other, &file).expect("it is renamed");
        let second = state_of(&link).expect("a state");
        assert_ne!(second, first);
        fs::write(&file, "longer program").expect("a file");
        assert_ne!(state_of(&link), Some(second));
        fs::remove_file(&file).expect("it is removed");
        assert_eq!(state_of(&link), None);
        assert_eq!(run(&state("/"), &root.path().display().to_string(), b"").stdout, b"state=\n");
    }

    #[test]
    fn start_has_state_and_exit_status_and_output_of_the_program() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("it's");
        netduel_test_support::write_program(&file, "#!/bin/sh\necho \"$@\"\necho state=x >&2\nexit 3\n");
        let path = std::env::var("PATH").expect("a search path");
        let file = file.display().to_string();
        let printed = |script: &str| String::from_utf8(run(script, &path, b"").stdout).expect("a text");
        let answer = printed(&start(&SshHost::of("vm1"), &file));
        assert_eq!(status_and_output(&answer), (Some(3), "--version\nstate=x"));
        assert!(state_in(&answer).is_some(), "{answer}");
        assert_eq!(state_in(&answer), state_in(&printed(&state(&file))));
        assert_eq!(status_and_output(""), (None, ""));
    }

    #[test]
    fn answer_is_what_lies_between_its_lines() {
        let output = format!("welcome\n{BEGIN}\nLinux x86_64\n\n{END}\n");
        assert_eq!(answer(&output), Some("Linux x86_64\n"));
        assert_eq!(answer(&format!("{BEGIN}\n\n{END}\n")), Some(""));
        assert_eq!(answer(&output[..output.len() - 1]), None);
    }

    #[test]
    fn probe_without_a_file_is_unexpected() {
        let there = Probe { file: "/h/netduel".into(), checksum: Some("ab".into()), has_gzip: true };
        assert_eq!(Probe::parse("file=/h/netduel\nsum=ab\ngzip=yes\n").expect("a probe"), there);
        let missing = Probe { checksum: None, has_gzip: false, ..there };
        assert_eq!(Probe::parse("file=/h/netduel").expect("a probe"), missing);
        assert!(Probe::parse("sh: not found").is_err());
        assert!(Probe::parse(&format!("file=/{}", "x".repeat(PATH_LEN_MAX))).is_err());
    }

    #[test]
    fn word_is_quoted_for_a_shell() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
