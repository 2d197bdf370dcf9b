//! Secrets are in no output, no stored file, and in the arguments and the environment of no process: the pairing string, the private key of a
//! server, also of a new identity, the tokens of trials, and the key and the prefixes of a bed.
use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use netduel_sys::pty::Pty;
use netduel_test_support::{NewNamespace, skip};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::azure_run::{PLAN, with_vms};
use crate::path_proof::has_sent_a_megabyte;
use crate::serve::Server;
use crate::support::{Bench, Finished, PACED, UnderWay, signal, until};
use crate::vms::program;

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

/// The formats of a report that need neither a browser nor a feature of the build.
const FORMATS: [&str; 9] = ["text", "html", "md", "json", "csv", "junit", "github", "prometheus", "influx"];

/// Those of several runs: of a history and a comparison.
const FORMATS_OF_RUNS: [&str; 4] = ["text", "html", "md", "json"];

/// Secrets in each form in which they could be written.
#[derive(Default)]
struct Secrets {
    /// In lower case.
    texts: Vec<String>,
    bytes: Vec<Vec<u8>>,
}

impl Secrets {
    /// Those of a server with a stored identity.
    fn of(server: &Server) -> Self {
        let path = server.bench.path().join("state/netduel/serve/identity.json");
        let identity: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let stored = |key: &str| serde_json::from_value::<Vec<u8>>(identity[key].clone()).unwrap();
        let (key, secret) = (stored("key"), stored("secret"));
        // PKCS #8: the private number is an OCTET STRING of 32 bytes. The public part of the key is in the certificate, which is no secret.
        let at = key.windows(2).position(|head| head == [0x04, 0x20]).unwrap() + 2;
        let mut secrets = Self::default();
        secrets.add(&key[at..at + 32]);
        secrets.add(&secret);
        // The characters of the string that encode the secret only: after the prefix, the port and the certificate's hash.
        secrets.texts.push(server.string[8 + 55..8 + 80].to_owned());
        secrets
    }

    fn add(&mut self, secret: &[u8]) {
        let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
        let digits: Vec<String> = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        self.texts.extend([digits.concat(), numbers.join(","), numbers.join(", ")]);
        self.bytes.push(secret.to_vec());
    }

    /// Adds the tokens in what a coordinator sent to an agent.
    fn add_tokens(&mut self, sent: &str) {
        for text in sent.split("\"token\":\"").skip(1) {
            let token = u128::from_str_radix(&text[..32], 16).unwrap();
            self.add(&token.to_be_bytes());
        }
    }

    fn and(mut self, others: Self) -> Self {
        self.texts.extend(others.texts);
        self.bytes.extend(others.bytes);
        self
    }

    #[track_caller]
    fn assert_absent(&self, bytes: &[u8], place: &str) {
        let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
        let has_text = self.texts.iter().any(|secret| text.contains(secret));
        let has_bytes =
            self.bytes.iter().any(|secret| bytes.windows(secret.len()).any(|part| part == secret.as_slice()));
        assert!(!has_text && !has_bytes, "{place} contains a secret: {}", String::from_utf8_lossy(bytes));
    }

    #[track_caller]
    fn check(&self, finished: &Finished, place: &str) {
        self.assert_absent(finished.stdout.as_bytes(), place);
        self.assert_absent(finished.stderr.as_bytes(), place);
    }

    /// Looks at the arguments and the environment of each process of a test.
    #[track_caller]
    fn check_processes(&self, processes: &[Pid], place: &str) {
        for pid in processes {
            for name in ["cmdline", "environ"] {
                let path = format!("/proc/{}/{name}", pid.as_raw_nonzero());
                // A process may end meanwhile.
                self.assert_absent(&std::fs::read(&path).unwrap_or_default(), &format!("{place}: {path}"));
            }
        }
    }

    /// Prints and writes the last run in every form; returns the number of files, which are below `out`.
    fn check_reports(&self, bench: &Bench, out: &Path) -> usize {
        let summary = out.join("summary.md");
        std::fs::create_dir(out).unwrap();
        for format in FORMATS {
            let mut command = bench.netduel(["report", "last", "--format", format]);
            command.env("GITHUB_STEP_SUMMARY", &summary);
            self.check(&Finished::from(command.output().unwrap()).expect_code(0), format);
            let folder = out.join(format);
            let words = ["report", "last", "--format", format, "--out", folder.to_str().unwrap()];
            bench.run(words).expect_code(0);
        }
        for format in FORMATS_OF_RUNS {
            let history = bench.run(["history", "last", "--format", format]).expect_code(0);
            self.check(&history, &format!("history as {format}"));
        }
        self.check(&bench.run(["runs", "baseline", "last"]).expect_code(0), "baseline");
        for (action, file) in [("baseline", "baseline.json"), ("export", "export.netduel")] {
            let file = out.join(file);
            let finished = bench.run(["runs", action, "last", "--out", file.to_str().unwrap()]);
            self.check(&finished.expect_code(0), action);
        }
        FORMATS.len() + ["summary.md", "baseline.json", "export.netduel"].len()
    }

    /// Looks at all files below a folder, and returns their number.
    fn check_files(&self, folder: &Path) -> usize {
        let files = files(folder);
        for path in &files {
            self.assert_absent(&std::fs::read(path).unwrap(), &path.display().to_string());
        }
        files.len()
    }
}

/// The arguments and the environment of each process of a test. One may end meanwhile.
fn processes_of(bench: &Bench) -> Vec<u8> {
    let read = |pid: Pid, name: &str| std::fs::read(format!("/proc/{}/{name}", pid.as_raw_nonzero()));
    let processes = bench.processes().into_iter();
    processes
        .flat_map(|pid| ["cmdline", "environ"].map(|name| read(pid, name).unwrap_or_default()).concat())
        .collect()
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

/// What agents leave for their guards and for the next agent, also those of other tests: the files come and go.
fn left_for_guards() -> Vec<u8> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| Path::new(&folder).join("netduel"));
    let folders = [PathBuf::from("/run/netduel"), std::env::temp_dir().join(format!("netduel-{user}"))];
    let folders = folders.into_iter().chain(runtime).filter_map(|folder| std::fs::read_dir(folder).ok());
    let files = folders.flatten().flatten().map(|entry| entry.path()).filter(|path| path.is_file());
    files.filter_map(|path| std::fs::read(path).ok()).flatten().collect()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Runs a test with the string in this form, and looks at its processes and at its output; a second test is stored.
fn test_with(server: &Server, form: Form, secrets: &Secrets) {
    let bench = &server.bench;
    // Without the pairing of the form before.
    drop(bench.run(["pair", "--forget", &server.address.to_string()]));
    let mut child = start(server, form, &["-b", "1M", "-t", "60", "-i", "0.1", "--json-stream"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"interval\"") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "{form:?}: no traffic");
        secrets.assert_absent(line.as_bytes(), &format!("{form:?}"));
    }
    let processes = bench.processes();
    assert!(processes.contains(&Pid::from_child(&child)), "{form:?}: {processes:?}");
    assert!(processes.len() >= 4, "the server, the client, its agent and its link: {processes:?}");
    secrets.check_processes(&processes, &format!("{form:?}"));
    secrets.assert_absent(&left_for_guards(), &format!("{form:?}: what is left for guards"));
    signal(Pid::from_child(&child), Signal::INT);
    child.stdout = Some(lines.into_inner());
    secrets.check(&Finished::from(child.wait_with_output().unwrap()).expect_code(130), &format!("{form:?}"));
    let saved = start(server, form, &["-b", "1M", "-t", "0.2", "-i", "0", "--save"]);
    secrets.check(&Finished::from(saved.wait_with_output().unwrap()).expect_code(0), &format!("{form:?}"));
}

#[test]
fn secrets_of_a_server_are_in_no_output_no_file_and_no_process() {
    let server = Server::start(&[]);
    let secrets = Secrets::of(&server);
    let bench = &server.bench;
    for form in FORMS {
        test_with(&server, form, &secrets);
    }
    let out = bench.path().join("out");
    let written = secrets.check_reports(bench, &out);
    let listed = bench.run(["runs", "--json"]).expect_code(0).json();
    let other = listed["runs"][1]["id"].as_str().unwrap();
    for format in FORMATS_OF_RUNS.into_iter().chain(["junit", "github"]) {
        let compared = bench.run(["compare", other, "last", "--format", format]);
        // On a busy machine a trial of 0.2 s may have no value: 6.
        assert!(matches!(compared.code, Some(0 | 6)), "{format}: {:?}: {}", compared.code, compared.stderr);
        secrets.check(&compared, &format!("comparison as {format}"));
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
        secrets.check(&bench.run(&words).expect_code(code), &format!("{words:?}"));
    }
    assert_eq!(secrets.check_files(&out), written);
    assert_eq!(secrets.check_files(&bench.store()), FORMS.len(), "the run of each form");
    for path in files(&bench.store()) {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
        // The command that repeats it has the address in place of the string.
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!("\"tcp\",\"{}\"", server.address)), "{text}");
    }
    let server = Server::start_in(server.end(), &["--new-identity"]);
    let renewed = Secrets::of(&server);
    assert!(renewed.bytes.iter().all(|secret| !secrets.bytes.contains(secret)), "a secret is not new");
    let secrets = secrets.and(renewed);
    test_with(&server, Form::Argument, &secrets);
    secrets.check_files(&server.bench.store());
    server.end();
}

#[test]
fn argument_with_a_string_and_other_characters_is_refused_and_not_shown() {
    let server = Server::start(&[]);
    let secrets = Secrets::of(&server);
    let string = &server.string;
    // The secret is in the second part.
    let (first, second) = string.split_at(40);
    let formats: [&[&str]; 2] = [&[], &["--json"]];
    for argument in [
        format!("x{string}"),
        format!("{string}\""),
        format!("\u{201c}{string}\u{201d}"),
        format!("{string}:5210"),
        format!("{first}\n{second}"),
        format!("x{first}\r\n{second}"),
    ] {
        for command in ["tcp", "pair", "inspect", "report"] {
            for format in formats {
                let words = [&[command, &argument][..], format].concat();
                let refused = server.bench.run(&words).expect_code(2);
                secrets.check(&refused, &format!("{words:?}"));
                assert_eq!(refused.stdout.contains("exit_code"), !format.is_empty(), "{}", refused.stdout);
            }
        }
    }
    server.end();
}

/// All that the coordinator sends to the agents, with the tokens of the trials, goes through tee(1) into a file.
#[test]
fn token_of_a_trial_is_in_no_output_no_file_and_no_process() {
    let namespace = NewNamespace { prepare: "ip link set lo up", ..NewNamespace::default() };
    namespace.run("secrets::token_of_a_trial_is_in_no_output_no_file_and_no_process", || {
        let bench = Bench::new();
        let program = Path::new(env!("CARGO_BIN_EXE_netduel")).parent().unwrap().display();
        let sent = |name: &str| bench.path().join(format!("sent-{name}"));
        let host = |name: &str| {
            format!(
                "[hosts.{name}]\nlaunch = \"command\"\naddresses = [\"127.0.0.1\"]\ncommand = [\"sh\", \"-c\", \
                 'tee {} | \"$@\"', \"sh\", \"env\", \"PATH={program}:/usr/sbin:/usr/bin:/sbin:/bin\"]\n",
                sent(name).display()
            )
        };
        let plan = bench.plan(&format!(
            "name = \"tokens\"\nquestion = \"q?\"\n{}{}[[arms]]\nname = \"plain\"\nclient = \"a\"\nserver = \"b\"\n\
             {}[design]\naa = true\nblocks_min = 2\nblocks_max = 2\n",
            host("a"),
            host("b"),
            // The agents run for seconds after the first traffic was seen.
            PACED.replace("300 ms", "2 s")
        ));
        let under_way = UnderWay::start(bench.netduel(["run", plan.to_str().unwrap(), "--verbose"]));
        let carries = || has_sent_a_megabyte(&std::fs::read_to_string("/proc/net/dev").unwrap(), "lo");
        assert!(until(carries), "no traffic was seen on the loopback interface");
        let seen = processes_of(&bench);
        let left = left_for_guards();
        let finished = under_way.finish();
        let mut secrets = Secrets::default();
        for name in ["a", "b"] {
            secrets.add_tokens(&std::fs::read_to_string(sent(name)).unwrap());
        }
        assert!(secrets.bytes.len() >= 2 * 4, "both ends of four trials: {}", secrets.bytes.len());
        assert!(!seen.is_empty());
        secrets.assert_absent(&seen, "a process");
        secrets.assert_absent(&left, "what is left for guards");
        secrets.check(&finished, "run");
        let out = bench.path().join("out");
        let written = secrets.check_reports(&bench, &out);
        assert_eq!(secrets.check_files(&out), written);
        assert!(secrets.check_files(&bench.store()) > 0);
    });
}

/// The key of the bed and the prefix that may connect are in the parameters of the deployment, which only their owner reads. All that the
/// coordinator sends to the agents goes through tee(1) into files.
#[test]
fn secrets_of_a_bed_are_in_no_output_no_process_and_no_file_but_its_parameters() {
    let test = "secrets::secrets_of_a_bed_are_in_no_output_no_process_and_no_file_but_its_parameters";
    with_vms(test, |scene| {
        let (key, prefix) = ("IBodyOfTheKeyOfThisTest", "192.0.2.0/25");
        std::fs::write(scene.at("key.pub"), format!("ssh-ed25519 AAAAC3Nz{key} me@here\n")).unwrap();
        let bed = std::fs::read_to_string(scene.at("x.toml")).unwrap();
        std::fs::write(scene.at("x.toml"), format!("{bed}ssh_from = [\"{prefix}\"]\n")).unwrap();
        let private = std::fs::read_to_string(scene.at("user_key")).unwrap();
        let mut secrets = Secrets::default();
        let lines = private.lines().filter(|line| line.len() >= 40 && !line.starts_with('-'));
        secrets.texts.extend([key, prefix].into_iter().chain(lines).map(str::to_ascii_lowercase));

        scene.answer("deployment group show", json!([{ "create": "waits", "hang": true }]));
        let up = UnderWay::start(scene.netduel(&["azure", "up", "x.toml"]));
        assert!(until(|| Path::new(&scene.at("waits")).exists()));
        let seen = processes_of(&scene.bench);
        let text = String::from_utf8_lossy(&seen);
        assert!(text.contains("deployment\0group\0show"), "`az` is not among the processes: {text}");
        secrets.assert_absent(&seen, "a process of up");
        signal(up.pid(), Signal::INT);
        secrets.check(&up.finish().expect_code(130), "up");

        let (config, sent) = (scene.at("ssh_config"), scene.at("sent"));
        let ssh = format!("/usr/bin/ssh -F {config} \"$@\"");
        let through_tee = format!("case \"$*\" in *' agent') tee {sent}-$$ | {ssh} ;; *) exec {ssh} ;; esac");
        program(&scene.bench, "bin/ssh", &through_tee);
        scene.bench.plan(&format!("{PLAN}{}", PACED.replace("300 ms", "2 s")));
        let mut run = UnderWay::start(scene.netduel(&["azure", "run", "plan.toml", "--verbose"]));
        run.wait_for(" 1/4");
        let seen = processes_of(&scene.bench);
        let finished = run.finish().expect_code(0);
        for entry in std::fs::read_dir(scene.bench.path()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("sent-") {
                secrets.add_tokens(&std::fs::read_to_string(entry.path()).unwrap());
            }
        }
        assert!(secrets.bytes.len() >= 2 * 4, "both ends of four trials: {}", secrets.bytes.len());
        secrets.assert_absent(&seen, "a process of run");
        secrets.check(&finished, "run");
        secrets.assert_absent(scene.calls().as_bytes(), "the arguments of `az`");
        let out = scene.bench.path().join("out");
        let written = secrets.check_reports(&scene.bench, &out);
        assert_eq!(secrets.check_files(&out), written);
        assert!(secrets.check_files(&scene.bench.store()) > 0);
        let state = files(&scene.bench.path().join("state")).into_iter();
        let (parameters, others): (Vec<PathBuf>, Vec<PathBuf>) =
            state.partition(|path| path.ends_with("parameters.json"));
        for path in others {
            secrets.assert_absent(&std::fs::read(&path).unwrap(), &path.display().to_string());
        }
        let [parameters] = parameters.as_slice() else { panic!("{parameters:?}") };
        assert_eq!(parameters.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(parameters).unwrap().contains(key));
        scene.bench.assert_nothing_left();
    });
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
    let secrets = Secrets::of(&server);
    for (place, bytes) in
        [("the terminal", &echoed[..]), ("stderr", &shown[..]), ("stdout", finished.stdout.as_bytes())]
    {
        secrets.assert_absent(bytes, place);
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
