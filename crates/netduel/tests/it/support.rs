//! Starts the program, follows its progress, and checks for leftovers.
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use netduel_model::trial::{Trial, Validity};
use netduel_report::json::schema::DOCUMENTS;
use netduel_store::Store;
use netduel_sys::clock::{monotonic_ns, sleep_until};
use netduel_test_support::not_compared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The variable that identifies the processes of a test: children inherit it.
const MARK: &str = "NETDUEL_TEST_MARK";
/// Time limit for an event on a busy machine.
const SEEN_DEADLINE_NS: u64 = 180_000_000_000;
/// Pause between two looks at a condition.
const POLL_NS: u64 = 1_000_000;
/// Time limit for a process to end.
const GONE_DEADLINE_S: i64 = 180;

/// A folder for one test, with a store in it.
pub struct Bench {
    folder: tempfile::TempDir,
    mark: String,
}

impl Bench {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("netduel-it-").tempdir().unwrap();
        let mark = format!("mark-{}", folder.path().file_name().unwrap().to_string_lossy());
        Self { folder, mark }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn store(&self) -> PathBuf {
        self.path().join("store")
    }

    /// Writes a plan and returns its path.
    pub fn plan(&self, text: &str) -> PathBuf {
        let path = self.path().join("plan.toml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with these arguments, this test's store and its mark.
    pub fn netduel<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, words: I) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netduel"));
        command.args(words).current_dir(self.path()).stdin(Stdio::null());
        self.mark(&mut command);
        command
    }

    /// Adds this test's store and mark to a command.
    pub fn mark(&self, command: &mut Command) {
        command
            .env("NETDUEL_STORE", self.store())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env(MARK, &self.mark)
            .env_remove("NO_COLOR")
            // In a workflow of GitHub commands print more, into the summary of the step that runs the tests.
            .env_remove("GITHUB_ACTIONS")
            .env_remove("TF_BUILD")
            .env_remove("GITHUB_STEP_SUMMARY");
    }

    /// Runs the program to its end.
    pub fn run<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(&self, words: I) -> Finished {
        Finished::from(self.netduel(words).output().unwrap())
    }

    /// Processes with this test's mark, except this one.
    pub fn processes(&self) -> Vec<Pid> {
        let wanted = format!("{MARK}={}", self.mark);
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
            .filter(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
            })
            .filter_map(Pid::from_raw)
            .collect()
    }

    /// Marked processes whose command line contains all these words.
    pub fn find(&self, words: &[&str]) -> Vec<Pid> {
        self.processes()
            .into_iter()
            .filter(|pid| {
                let line =
                    std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
                let line: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
                words.iter().all(|word| line.contains(&word.as_bytes()))
            })
            .collect()
    }

    /// Waits until every marked process has ended, and fails if one does not.
    pub fn assert_nothing_left(&self) {
        loop {
            let left = self.processes();
            let Some(pid) = left.first() else { break };
            let line = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
                .unwrap_or_default();
            assert!(wait_gone(*pid), "process {pid:?} is left behind: {}", line.replace('\0', " "));
        }
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        let own: Vec<&str> =
            sockets.lines().filter(|line| line.contains(&format!("-{}", self.mark))).collect();
        assert!(own.is_empty(), "sockets are left behind: {own:?}");
    }
}

/// A failed test leaves no process behind.
impl Drop for Bench {
    fn drop(&mut self) {
        for pid in self.processes() {
            // It may have ended meanwhile.
            let _ = send(pid, Signal::KILL);
        }
    }
}

/// A finished run of an earlier version, stored under this name in the test's store.
pub fn stored(bench: &Bench, name: &str) -> PathBuf {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
    std::fs::create_dir_all(bench.store()).unwrap();
    let path = bench.store().join(format!("{name}.netduel"));
    std::fs::copy(golden, &path).unwrap();
    path
}

/// Waits until a process has ended; false at the deadline.
pub fn wait_gone(pid: Pid) -> bool {
    let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
    let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
    let timeout = Timespec { tv_sec: GONE_DEADLINE_S, tv_nsec: 0 };
    poll(&mut fds, Some(&timeout)).unwrap() == 1
}

/// Sends a signal through a descriptor, so that a reused process id is never hit.
pub fn signal(pid: Pid, signal: Signal) {
    send(pid, signal).unwrap();
}

/// Sends a signal to processes of which some may end meanwhile, for example because one of the others did.
pub fn signal_those_left(pids: impl IntoIterator<Item = Pid>, signal: Signal) {
    for pid in pids {
        match send(pid, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => panic!("{pid:?}: {error}"),
        }
    }
}

pub fn send(pid: Pid, signal: Signal) -> Result<(), Errno> {
    let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
    pidfd_send_signal(descriptor.as_fd(), signal)
}

/// A finished command.
pub struct Finished {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Finished {
    /// Fails with the complete output unless the exit code matches.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The only document on standard output, validated against the schema of its type.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        let document = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}\n{}\nstderr:\n{}", self.stdout, self.stderr));
        assert_fits(&document);
        document
    }

    /// The only test of the document of a quick test.
    #[track_caller]
    pub fn quick_test(&self) -> serde_json::Value {
        let document = self.json();
        assert_eq!(document["tests"].as_array().map(Vec::len), Some(1), "{document}");
        document["tests"][0].clone()
    }
}

/// Validates a document against the schema of its type.
#[track_caller]
pub fn assert_fits(document: &serde_json::Value) {
    let kind = DOCUMENTS.iter().find(|kind| document["document"] == kind.name);
    let kind = kind.unwrap_or_else(|| panic!("{document} is of no known type"));
    let validator = jsonschema::validator_for(&kind.schema()).unwrap();
    let errors: Vec<String> =
        validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "a {} does not fit its schema:\n{}", kind.name, errors.join("\n"));
}

/// The only comparison of a metric in a result document.
#[track_caller]
pub fn comparison<'a>(document: &'a serde_json::Value, metric: &str) -> &'a serde_json::Value {
    let workloads = document["workloads"].as_array().into_iter().flatten();
    let metrics = workloads.flat_map(|workload| workload["metrics"].as_array().into_iter().flatten());
    let comparisons = metrics
        .filter(|candidate| candidate["metric"] == metric)
        .flat_map(|metric| metric["comparisons"].as_array().into_iter().flatten());
    let comparisons: Vec<_> = comparisons.collect();
    assert_eq!(comparisons.len(), 1, "{metric}: {document}");
    comparisons[0]
}

/// The verdicts of a result document, judged metrics only: metric, tone (`better`, `worse`, ...), text.
pub fn verdicts(document: &serde_json::Value) -> Vec<(String, String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let each = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let metrics = each(&document["workloads"]).into_iter().flat_map(|workload| each(&workload["metrics"]));
    metrics
        .filter(|metric| metric["judged"] == true)
        .flat_map(|metric| {
            each(&metric["comparisons"]).into_iter().map(move |comparison| {
                let verdict = &comparison["verdict"];
                (text(&metric["metric"]), text(&verdict["tone"]), text(&verdict["text"]))
            })
        })
        .collect()
}

/// The valid trials of the last run of the store. Each other one is of round trips and ended while this machine stalled; nothing else may
/// exclude a trial, and each workload has a valid one: what a closed path or a fault of netduel excludes is excluded each time.
#[track_caller]
pub fn valid_trials(bench: &Bench) -> Vec<Trial> {
    let trials = Store::open(bench.store()).unwrap().read("last").unwrap().trials;
    let (valid, stalled): (Vec<Trial>, Vec<Trial>) = trials.into_iter().partition(Trial::is_valid);
    for trial in &stalled {
        assert_stalled(trial);
        let workload = &trial.slot.workload;
        let has_valid = valid.iter().any(|other| other.slot.workload == *workload);
        assert!(has_valid, "no trial of {workload:?} is valid");
    }
    if !stalled.is_empty() {
        not_compared(format!("this machine stalled for all of {} trials", stalled.len()));
    }
    valid
}

/// The reason of an excluded trial is that no round trip was completed within its duration, of the requests that its report has.
#[track_caller]
fn assert_stalled(trial: &Trial) {
    let (slot, Validity::Failed { reason }) = (&trial.slot, &trial.validity) else {
        panic!("{:?}: {:?}", trial.slot, trial.validity);
    };
    let trips = trial.client.as_ref().and_then(|end| end.report.round_trips.as_ref());
    let trips = trips.unwrap_or_else(|| panic!("{slot:?} has no round trips: {reason}"));
    let why = match trips.requests {
        0 => "the client sent no request, because its thread did not run within the duration".to_owned(),
        sent => format!("the client sent {sent} requests and received no response"),
    };
    assert!(reason.starts_with(&format!("no round trip was completed: {why};")), "{slot:?}: {reason}");
    assert_eq!(trips.responses, 0, "{slot:?}: {reason}");
}

/// The running program, with its progress lines.
pub struct UnderWay {
    pub child: Child,
    stderr: BufReader<ChildStderr>,
    seen: String,
}

impl UnderWay {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, seen: String::new() }
    }

    /// Reads progress until a line contains this text.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert!(read > 0, "the program ended before it printed {text:?}; it printed:\n{}", self.seen);
            self.seen.push_str(&line);
            if line.contains(text) {
                return;
            }
        }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Closes the reading ends of its output and returns the process.
    pub fn close(mut self) -> Child {
        drop((self.child.stdout.take(), self.stderr));
        self.child
    }

    /// Waits for the end and returns all output. Both pipes are read at the same time: a program that fills one waits until it is read.
    pub fn finish(mut self) -> Finished {
        let mut pipe = self.child.stdout.take().unwrap();
        let stdout = std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                let mut stdout = String::new();
                pipe.read_to_string(&mut stdout).unwrap();
                stdout
            });
            self.stderr.read_to_string(&mut self.seen).unwrap();
            reader.join().unwrap()
        });
        let status = self.child.wait().unwrap();
        Finished { code: status.code(), stdout, stderr: self.seen }
    }
}

#[test]
fn output_beyond_the_buffer_of_a_pipe_is_read_whole() {
    let mut command = Command::new("sh");
    command.args(["-c", "head -c 300000 /dev/zero | tr '\\0' x; echo end >&2"]);
    let finished = UnderWay::start(command).finish().expect_code(0);
    assert_eq!((finished.stdout.len(), finished.stderr.as_str()), (300_000, "end\n"));
}

/// Polls a condition; false if it is not true by the deadline.
pub fn until(mut seen: impl FnMut() -> bool) -> bool {
    let deadline_ns = monotonic_ns() + SEEN_DEADLINE_NS;
    loop {
        if seen() {
            return true;
        }
        let now = monotonic_ns();
        if now >= deadline_ns {
            return false;
        }
        // What is waited for needs the core.
        sleep_until(now + POLL_NS);
    }
}

/// A plan in a small lab with short trials; `design` is added to its design table.
pub fn short_plan(arms: &str, workloads: &str, design: &str) -> String {
    format!(
        "name = \"short\"\nquestion = \"Which path is faster?\"\n[lab]\nrules = 600\n[hosts.a]\nlaunch = \"lab\"\n\
         [hosts.b]\nlaunch = \"lab\"\n{arms}\n{workloads}\n[design]\n{design}\n"
    )
}

/// The two arms of the lab.
pub const TWO_PATHS: &str = r#"
[[arms]]
name = "synthetic"
client = "a"
server = "b"
treatments = [{ path = "synthetic" }]
[[arms]]
name = "accelerated"
client = "a"
server = "b"
treatments = [{ path = "accelerated" }]
"#;

/// One short stream.
pub const STREAM: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
duration = "300 ms"
warmup = "100 ms"
cooldown = "0 ms"
congestion = "cubic"
"#;

/// One short stream that leaves most of the machine to the other tests: for tests of what surrounds the traffic.
pub const PACED: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
rate = "300 Mbit/s"
duration = "300 ms"
warmup = "100 ms"
cooldown = "0 ms"
congestion = "cubic"
"#;

/// As [`PACED`], with a volume that is due in the same time: on a machine whose cores are busy a trial takes longer, and has all of its data.
pub const VOLUME: &str = r#"
[[workloads]]
name = "stream"
type = "tcp-stream"
rate = "300 Mbit/s"
volume = "12 MB"
duration = "10 s"
warmup = "100 ms"
cooldown = "0 ms"
congestion = "cubic"
"#;

/// Short round trips.
pub const LATENCY: &str = r#"
[[workloads]]
name = "latency"
type = "tcp-rr"
request_rate = "2 k/s"
duration = "300 ms"
warmup = "100 ms"
cooldown = "0 ms"
pin_client = [0]
pin_server = [0]
"#;
