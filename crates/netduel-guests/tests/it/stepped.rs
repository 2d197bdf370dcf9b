//! A run whose trials begin when the test lets them, so that the test can change something in each.
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::process::{Child, ChildStderr, Stdio};

use netduel_guests::Bed;
use serde_json::Value;

use super::coordinator::{Coordinator, plan};

/// A run of four trials. A treatment of the client waits until the test lets each begin.
pub struct SteppedRun {
    process: Child,
    lines: Lines<BufReader<ChildStderr>>,
    seen: Vec<String>,
}

impl SteppedRun {
    /// `treatments` are in force before and while a trial waits, each with a comma after it.
    pub fn start(bed: &Bed, coordinator: &Coordinator, address: &str, treatments: &str) -> Self {
        let gate = format!(
            "treatments = [{treatments}{{ command = [\"sh\", \"-c\", \"until rm /tmp/go 2>/dev/null; do usleep 50000; done\"], \
             undo = [\"true\"], on = \"client\" }}]"
        );
        let workload = "[[workloads]]\nname = \"rr\"\ntype = \"udp-rr\"\nduration = \"4 s\"\nrequest_rate = \"100 /s\"\n";
        let plan = coordinator.plan(&plan(address, &[("one", &*gate), ("two", &*gate)], workload, 2));
        let mut command = coordinator.command(bed, &["run", &plan, "--json"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        Self { process, lines, seen: Vec::new() }
    }

    /// Lets a trial begin, makes the change when half a second of its traffic has passed, and returns the line about the trial.
    pub fn trial(&mut self, bed: &mut Bed, interface: &str, change: impl FnOnce(&mut Bed)) -> String {
        let sent = format!("/sys/class/net/{interface}/statistics/tx_packets");
        let begin = format!(
            "read -r from < {sent}; touch /tmp/go; \
             timeout 60 sh -c \"until [ \\$(cat {sent}) -ge $((from + 50)) ]; do usleep 20000; done\""
        );
        let begun = bed.guests()[0].ssh_output(&begin).unwrap();
        if !begun.status.success() {
            // The run may have ended: its report and its last lines tell why no trial began.
            let (_, seen) = self.report();
            panic!("no traffic of a trial after {seen:#?}");
        }
        change(bed);
        for line in self.lines.by_ref().map_while(Result::ok) {
            let is_of_trial = line.trim_start().starts_with("trial ");
            self.seen.push(line.clone());
            if is_of_trial {
                return line;
            }
        }
        panic!("no trial after {:#?}", self.seen);
    }

    /// The report at the run's end and what the run printed, whatever its exit code.
    pub fn report(&mut self) -> (Value, Vec<String>) {
        let mut text = String::new();
        self.process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let code = self.process.wait().unwrap().code();
        self.seen.extend(self.lines.by_ref().map_while(Result::ok));
        let report = serde_json::from_str(&text);
        (report.unwrap_or_else(|error| panic!("{error}, {code:?}: {:#?}", self.seen)), self.seen.clone())
    }
}
