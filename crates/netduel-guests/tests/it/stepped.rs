//! A run whose trials begin when the test lets them, so that the test can change something in each.
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netduel_guests::{Bed, Guest};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::coordinator::{Coordinator, plan};
use super::queues::coordinator_of;
use super::run;

/// What the four trials of a stepped run are.
pub struct Steps<'a> {
    /// The server's.
    pub address: &'a str,
    /// Treatments that are in force while a trial waits, each with a comma after it.
    pub before: &'a str,
    /// Treatments that are applied when the test lets a trial begin, each with a comma before it.
    pub after: &'a str,
    /// Duration of the traffic on a quiet machine, seconds: longer than the test takes for a change there.
    pub seconds: u32,
}

/// A run. A treatment of the client waits until the test lets each trial begin.
pub struct SteppedRun {
    process: Child,
    plan: String,
    /// Reads the report; taken when it is there.
    report: Option<JoinHandle<String>>,
    lines: Lines<BufReader<ChildStderr>>,
    seen: Vec<String>,
    /// Runs the last script in the client to its end.
    script: Option<JoinHandle<()>>,
}

/// It exists in guest a while a trial waits.
const WAITS: &str = "/tmp/waits";
/// The test makes it in guest a, and the trial that waits removes it.
const GO: &str = "/tmp/go";
/// How often a test that waits for a trial looks whether the run goes on.
const LOOK: Duration = Duration::from_secs(1);
/// What a run set free with its end reaches the test within this time.
const AFTER_THE_END: Duration = Duration::from_secs(60);
/// Time between two looks of a guest, microseconds. A program starts for each, on the processor that the run needs meanwhile.
const LOOK_US: u32 = 100_000;
/// How long a command of a plan waits for it, seconds: it is ended after 30 s.
const GATE_SECONDS: u32 = 25;
/// The last line of a command in the client that has succeeded.
const DONE: &str = "netduel-done\n";
/// Counts the datagrams that a guest has sent, without a program for each look.
const COUNT_SENT: &str = "sent() { while read -r name received unknown wrong out rest; do \
     case $name$received in Udp:[0-9]*) sent=$out ;; esac; done < /proc/net/snmp; }";

impl SteppedRun {
    pub fn start(bed: &Bed, coordinator: &Coordinator, steps: &Steps<'_>) -> Self {
        let Steps { address, before, after, seconds } = *steps;
        let keys = format!("treatments = [{before}{}{after}]", gate());
        let workload = format!(
            "[[workloads]]\nname = \"rr\"\ntype = \"udp-rr\"\nduration = \"{seconds} s\"\nrequest_rate = \"100 /s\"\n"
        );
        let plan = coordinator.plan(&plan(address, &[("one", &*keys), ("two", &*keys)], &workload, 2));
        let mut command = coordinator.command(bed, &["run", &plan, "--json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let report = process.stdout.take().unwrap();
        let report = thread::spawn(move || std::io::read_to_string(report).unwrap());
        Self { process, plan, report: Some(report), lines, seen: Vec::new(), script: None }
    }

    /// Lets a trial begin, makes the change when half a second of its traffic has passed, and returns the line about the trial.
    pub fn trial(&mut self, bed: &mut Bed, change: impl FnOnce(&mut Bed)) -> String {
        self.begin(&bed.guests()[0], "true");
        change(bed);
        self.line()
    }

    /// Lets a trial begin, and runs a script in the client when half a second of its traffic has passed: in the same command, because another
    /// one could come after a short trial. Returns what the script printed, as soon as it has ended: what the caller changes then is changed
    /// while the traffic runs. [`Self::line`] comes next. The client counts the datagrams itself, because counters of a NIC may begin again with
    /// a treatment.
    pub fn begin(&mut self, client: &Guest, script: &str) -> String {
        let wait = format!(
            "{COUNT_SENT}; sent; from=$sent; touch {GO}; \
             until sent; [ $sent -ge $((from + 50)) ]; do usleep {LOOK_US}; done"
        );
        self.in_client(client, &format!("{wait}; {script}"))
    }

    /// Makes the change while the next trial waits, lets it begin, and returns the line about the trial.
    pub fn waiting_trial(&mut self, bed: &mut Bed, change: impl FnOnce(&mut Bed)) -> String {
        self.when_waiting(&bed.guests()[0], "true");
        change(bed);
        run(&bed.guests()[0], &format!("touch {GO}"));
        self.line()
    }

    /// Runs a script in the client when the next trial waits: in the same command, because the trial waits for a limited time. Returns what the
    /// script printed.
    pub fn when_waiting(&mut self, client: &Guest, script: &str) -> String {
        self.in_client(client, &format!("until [ -e {WAITS} ]; do usleep {LOOK_US}; done; {script}"))
    }

    /// Runs a script in the client that waits for the run, and returns what it printed. The end of its command is not awaited before the next script:
    /// a busy machine needs seconds for it, in which a trial may end.
    fn in_client(&mut self, client: &Guest, script: &str) -> String {
        match self.printed_before_the_end(client, script) {
            Some(Ok(printed)) => printed,
            other => {
                // The lines of a run that has ended tell why no trial began.
                let (_, seen) = self.report();
                panic!("no trial after {seen:#?}: {other:?}");
            }
        }
    }

    /// What a script in the client printed, or how it failed. `None` when it still waits for a run that has ended; it then ends with the bed.
    fn printed_before_the_end(&mut self, client: &Guest, script: &str) -> Option<Result<String, String>> {
        if let Some(last) = self.script.take() {
            last.join().unwrap();
        }
        let (sender, receiver) = mpsc::channel();
        let command = client.command_beside(&format!("{{ {script}\n}} && echo {DONE}"));
        self.script = Some(thread::spawn(move || run_until_done(command, &sender)));
        loop {
            let has_ended = self.process.try_wait().unwrap().is_some();
            match receiver.recv_timeout(if has_ended { AFTER_THE_END } else { LOOK }) {
                Ok(printed) => return Some(printed),
                Err(_) if has_ended => return None,
                Err(_) => {}
            }
        }
    }

    /// The next line about a trial.
    pub fn line(&mut self) -> String {
        for line in self.lines.by_ref().map_while(Result::ok) {
            let is_of_trial = line.trim_start().starts_with("trial ");
            self.seen.push(line.clone());
            if is_of_trial {
                return line;
            }
        }
        panic!("no trial after {:#?}", self.seen);
    }

    /// Ends the run as Ctrl-C does.
    pub fn interrupt(&self, bed: &Bed) {
        kill_process(coordinator_of(bed, &self.plan), Signal::INT).unwrap();
    }

    /// The report at the run's end and what the run printed, whatever its exit code.
    pub fn report(&mut self) -> (Value, Vec<String>) {
        let text = self.report.take().unwrap().join().unwrap();
        let code = self.process.wait().unwrap().code();
        self.seen.extend(self.lines.by_ref().map_while(Result::ok));
        let report = serde_json::from_str(&text);
        (report.unwrap_or_else(|error| panic!("{error}, {code:?}: {:#?}", self.seen)), self.seen.clone())
    }
}

/// Sends what a command prints before [`DONE`] when that has come, and waits for the end of the command. Without it the command has failed.
fn run_until_done(mut command: Command, printed: &Sender<Result<String, String>>) {
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut text, mut line, mut is_done) = (String::new(), Vec::new(), false);
    while output.read_until(b'\n', &mut line).unwrap() > 0 {
        text.push_str(&String::from_utf8_lossy(&line));
        line.clear();
        if let Some(before) = text.strip_suffix(DONE) {
            is_done = true;
            // The receiver may have given up.
            let _ = printed.send(Ok(before.to_owned()));
        }
    }
    let ended = child.wait_with_output().unwrap();
    if !is_done {
        let _ = printed.send(Err(format!("{ended:?} after {text:?}")));
    }
}

/// Treatments of the client that let a trial wait, one after the other. All but the last one end in time although the trial does not begin, and
/// the next one then goes on waiting.
fn gate() -> String {
    let wait = format!(
        "read -r now rest < /proc/uptime; end=$((${{now%.*}} + {GATE_SECONDS})); \
         until [ -e {GO} ] || [ ${{now%.*}} -ge $end ]; do usleep {LOOK_US}; read -r now rest < /proc/uptime; done"
    );
    let command = |script: &str| {
        format!("{{ command = [\"sh\", \"-c\", \"{script}\"], undo = [\"true\"], on = \"client\" }}")
    };
    let first = format!("touch {WAITS}; {wait}; [ ! -e {GO} ] || rm {GO} {WAITS}");
    let next = format!("[ ! -e {WAITS} ] || {{ {wait}; [ ! -e {GO} ] || rm {GO} {WAITS}; }}");
    // It fails without the file, and its trial with it.
    let last = format!("[ ! -e {WAITS} ] || {{ {wait}; rm {GO} {WAITS}; }}");
    [first, next, last].map(|script| command(&script)).join(", ")
}
