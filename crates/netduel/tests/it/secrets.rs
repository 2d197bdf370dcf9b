//! The pairing string is a secret: it is in no output, no stored file, and in the arguments and the environment of no process.
use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use netduel_sys::pty::Pty;
use netduel_test_support::skip;
use rustix::process::{Pid, Signal};

use crate::serve::Server;
use crate::support::{Finished, signal};

/// The environment variable with a pairing string.
const VARIABLE: &str = "NETDUEL_PAIRING";

/// How a client gets the string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Argument,
    StandardInput,
    Variable,
    VariableForHost,
    File,
}

const FORMS: [Form; 5] =
    [Form::Argument, Form::StandardInput, Form::Variable, Form::VariableForHost, Form::File];

/// The characters of the string that encode the secret only: after the prefix, the port and the certificate's hash.
fn secret(string: &str) -> &str {
    &string[8 + 55..8 + 80]
}

#[track_caller]
fn assert_absent(secret: &str, bytes: &[u8], place: &str) {
    let found = bytes.to_ascii_lowercase().windows(secret.len()).any(|part| part == secret.as_bytes());
    assert!(!found, "{place} contains the secret: {}", String::from_utf8_lossy(bytes));
}

/// Starts a test of `words` with the string in this form.
fn start(server: &Server, form: Form, words: &[&str]) -> Child {
    let host = server.address.to_string();
    let file = server.bench.path().join("string");
    let mut command = match form {
        Form::Argument => server.bench.netduel(["tcp", &server.string]),
        Form::StandardInput | Form::Variable => server.bench.netduel(["tcp", "-"]),
        Form::VariableForHost => server.bench.netduel(["tcp", &host]),
        Form::File => {
            std::fs::write(&file, &server.string).unwrap();
            std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
            server.bench.netduel(["tcp", &host, "--pairing-file", file.to_str().unwrap()])
        }
    };
    if matches!(form, Form::Variable | Form::VariableForHost) {
        command.env(VARIABLE, &server.string);
    }
    if form == Form::StandardInput {
        command.stdin(Stdio::piped());
    }
    let mut child = command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    if let Some(mut input) = child.stdin.take() {
        writeln!(input, "{}", server.string).unwrap();
    }
    child
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Runs a test with the string in this form, and looks at its processes and at its output; a second test is stored.
fn test_with(server: &Server, form: Form) {
    let (bench, secret) = (&server.bench, secret(&server.string));
    // Without the pairing of the form before.
    drop(bench.run(["pair", "--forget", &server.address.to_string()]));
    let mut child = start(server, form, &["-b", "1M", "-t", "60", "-i", "0.1", "--json-stream"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"interval\"") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "{form:?}: no traffic");
        assert_absent(secret, line.as_bytes(), &format!("{form:?}"));
    }
    let processes = bench.processes();
    assert!(processes.contains(&Pid::from_child(&child)), "{form:?}: {processes:?}");
    assert!(processes.len() >= 4, "the server, the client, its agent and its link: {processes:?}");
    for pid in processes {
        for name in ["cmdline", "environ"] {
            let path = format!("/proc/{}/{name}", pid.as_raw_nonzero());
            assert_absent(secret, &std::fs::read(&path).unwrap(), &format!("{form:?}: {path}"));
        }
    }
    signal(Pid::from_child(&child), Signal::INT);
    child.stdout = Some(lines.into_inner());
    check(&Finished::from(child.wait_with_output().unwrap()).expect_code(130), secret, &format!("{form:?}"));
    let saved = start(server, form, &["-b", "1M", "-t", "0.2", "-i", "0", "--save"]);
    check(&Finished::from(saved.wait_with_output().unwrap()).expect_code(0), secret, &format!("{form:?}"));
}

#[track_caller]
fn check(finished: &Finished, secret: &str, place: &str) {
    assert_absent(secret, finished.stdout.as_bytes(), place);
    assert_absent(secret, finished.stderr.as_bytes(), place);
}

#[test]
fn pairing_string_is_in_no_output_no_file_and_no_process() {
    let server = Server::start(&[]);
    let secret = secret(&server.string);
    let bench = &server.bench;
    for form in FORMS {
        test_with(&server, form);
    }
    let out = bench.path().join("out");
    let formats = ["text", "html", "md", "json", "csv", "junit", "prometheus", "influx"];
    for format in formats {
        check(&bench.run(["report", "last", "--format", format]).expect_code(0), secret, format);
        let file = out.join(format);
        let words = ["report", "last", "--format", format, "--out", file.to_str().unwrap()];
        bench.run(words).expect_code(0);
    }
    for (words, code) in [
        (&["inspect", "STRING"][..], 2),
        (&["inspect", "STRING", "--json"], 2),
        (&["run", "STRING"], 2),
        (&["plan", "check", "STRING", "--json"], 2),
        (&["report", "STRING"], 9),
        (&["STRING"], 2),
        (&["runs", "--STRING"], 2),
        (&["tcp", "far", "STRING"], 2),
        (&["tcp", "far", "--save", "--note", "k=STRING"], 2),
        (&["pair", "--forget", "STRING"], 2),
        (&["link", "STRING"], 10),
        (&["runs"], 0),
        (&["runs", "--json"], 0),
        (&["pair", "--list"], 0),
        (&["pair", "STRING"], 0),
        (&["pair", "STRING", "--json"], 0),
    ] {
        let words: Vec<String> = words.iter().map(|word| word.replace("STRING", &server.string)).collect();
        check(&bench.run(&words).expect_code(code), secret, &format!("{words:?}"));
    }
    let mut checked = 0;
    for folder in [bench.store(), out] {
        for path in files(&folder) {
            let bytes = std::fs::read(&path).unwrap();
            assert_absent(secret, &bytes, &path.display().to_string());
            if path.extension().is_some_and(|end| end == "netduel") {
                assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
                // The command that repeats it has the address in place of the string.
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains(&format!("\"tcp\",\"{}\"", server.address)), "{text}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, FORMS.len() + formats.len(), "the run of each form, and the report in each format");
    server.end();
}

#[test]
fn pairing_string_is_not_shown_on_the_terminal_that_it_is_typed_on() {
    let server = Server::start(&[]);
    let Ok(Pty { user, program }) = Pty::open() else {
        server.end();
        return skip("no pseudo-terminal");
    };
    let mut command = server.bench.netduel(["rr", "-", "-t", "0.2", "-i", "0"]);
    let mut child = command.stdin(program).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It holds a copy of the program's end, which would keep reading from ending.
    drop(command);
    let mut errors = child.stderr.take().unwrap();
    let mut shown = Vec::new();
    while !shown.ends_with(b"(not shown): ") {
        let mut byte = [0];
        assert_eq!(errors.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&shown));
        shown.extend(byte);
    }
    let mut user = File::from(user);
    user.write_all(format!("{}\n", server.string).as_bytes()).unwrap();
    errors.read_to_end(&mut shown).unwrap();
    let finished = Finished::from(child.wait_with_output().unwrap()).expect_code(0);
    let mut echoed = Vec::new();
    // EIO: no process holds the other end any more.
    drop(user.read_to_end(&mut echoed));
    for (place, bytes) in
        [("the terminal", &echoed[..]), ("stderr", &shown[..]), ("stdout", finished.stdout.as_bytes())]
    {
        assert_absent(secret(&server.string), bytes, place);
    }
    server.end();
}

#[test]
fn pairing_of_a_file_has_the_port_of_a_host_without_one() {
    let server = Server::start(&[]);
    let file = server.bench.path().join("string");
    std::fs::write(&file, &server.string).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let host = server.address.ip().to_string();
    let words = ["rr", &host, "--pairing-file", file.to_str().unwrap(), "-t", "0.2", "-i", "0"];
    server.client(&words).expect_code(0);
    let listed = server.bench.run(["pair", "--list"]).expect_code(0).stdout;
    assert_eq!(listed.trim(), server.address.to_string());
    server.end();
}

#[test]
fn failed_test_leaves_the_stored_pairing() {
    let server = Server::start(&[]);
    let other = Server::start(&[]);
    let host = server.address.to_string();
    let test = |words: &[&str]| server.client(&[&["rr", &host, "-t", "0.2", "-i", "0"], words].concat());
    server.client(&["rr", "STRING", "-t", "0.2", "-i", "0"]).expect_code(0);
    let file = server.bench.path().join("other");
    std::fs::write(&file, &other.string).unwrap();
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let refused = test(&["--pairing-file", file.to_str().unwrap()]).expect_code(4);
    assert!(refused.stderr.contains("not stored"), "{}", refused.stderr);
    let port = server.address.port().to_string();
    server.client(&["rr", &other.string, "-p", &port, "-t", "0.2"]).expect_code(4);
    test(&[]).expect_code(0);
    // A server that does not answer proves nothing.
    let host = other.address.to_string();
    let bench = other.end();
    let unanswered = server.client(&["rr", &host, "--pairing-file", file.to_str().unwrap()]).expect_code(4);
    assert!(unanswered.stderr.contains("failed to connect"), "{}", unanswered.stderr);
    let listed = server.bench.run(["pair", "--list"]).expect_code(0).stdout;
    assert_eq!(listed.trim(), server.address.to_string());
    drop(bench);
    server.end();
}
