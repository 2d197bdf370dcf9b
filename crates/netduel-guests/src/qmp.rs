//! QEMU's control protocol over its standard input and output: one command at a time, and events.
use std::io::{BufRead as _, BufReader, Read, Write};
use std::time::Duration;

use serde_json::{Value, json};

use crate::watched::Watched;

/// What QEMU sent and was not taken yet.
#[derive(Debug, Default)]
struct Received {
    answers: Vec<Value>,
    events: Vec<Value>,
    has_ended: bool,
}

/// What a thread reads.
#[derive(Debug, Clone, Default)]
pub struct Answers(Watched<Received>);

impl Answers {
    /// Reads lines until the end; for a thread of its own.
    pub fn read(&self, source: impl Read) {
        for line in BufReader::new(source).lines() {
            // An error is the end; a line that is no JSON is no part of the protocol.
            let Ok(line) = line else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            self.0.change(|received| {
                if message.get("event").is_some() {
                    received.events.push(message);
                } else if message.get("QMP").is_none() {
                    received.answers.push(message);
                }
            });
        }
        self.0.change(|received| received.has_ended = true);
    }
}

/// The client's side.
#[derive(Debug)]
pub struct Qmp<W> {
    input: W,
    answers: Answers,
}

impl<W: Write> Qmp<W> {
    /// Takes the input of QEMU, whose output a thread reads into `answers`. Waits for nothing.
    pub fn new(input: W, answers: Answers) -> Self {
        Self { input, answers }
    }

    /// Leaves the phase of negotiation, the first of all.
    pub fn negotiate(&mut self, bound: Duration) -> Result<(), String> {
        self.run("qmp_capabilities", &json!({}), bound).map(drop)
    }

    /// Runs a command and returns its result, or QEMU's reason.
    pub fn run(&mut self, command: &str, arguments: &Value, bound: Duration) -> Result<Value, String> {
        // What a command left whose time was up belongs to no later one.
        self.answers.0.change(|received| received.answers.clear());
        let message = json!({ "execute": command, "arguments": arguments });
        writeln!(self.input, "{message}")
            .and_then(|()| self.input.flush())
            .map_err(|error| format!("QEMU does not read: {error}"))?;
        let answer = self.answers.0.wait(bound, |received| match received.answers.pop() {
            Some(answer) => Some(Ok(answer)),
            None => received.has_ended.then(|| Err("QEMU ended".to_owned())),
        });
        let answer = answer.ok_or_else(|| format!("no answer within {bound:?}"))??;
        match (answer.get("return"), answer.get("error")) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(error)) => {
                Err(error.get("desc").and_then(Value::as_str).unwrap_or("error").to_owned())
            }
            (None, None) => Err(format!("unexpected answer {answer}")),
        }
    }

    /// Waits for an event with this name for a device, and takes it.
    pub fn wait_for_event(&self, name: &str, device: &str, bound: Duration) -> Result<(), String> {
        let found = self.answers.0.wait(bound, |received| {
            let is_wanted = |event: &Value| {
                event.get("event").is_some_and(|found| found == name)
                    && event.pointer("/data/device").is_some_and(|found| found == device)
            };
            match received.events.iter().position(is_wanted) {
                Some(at) => {
                    received.events.remove(at);
                    Some(Ok(()))
                }
                None => received.has_ended.then(|| Err("QEMU ended".to_owned())),
            }
        });
        found.unwrap_or_else(|| Err(format!("no event {name} of {device} within {bound:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(60);

    /// What QEMU answers to one command after the negotiation, without a QEMU.
    fn answered(lines: &str) -> Result<Value, String> {
        let (output, mut from_test) = std::io::pipe().unwrap();
        let (commands, input) = std::io::pipe().unwrap();
        let answers = Answers::default();
        std::thread::scope(|scope| {
            scope.spawn(|| answers.read(output));
            scope.spawn(move || {
                let mut commands = BufReader::new(commands).lines();
                assert!(commands.next().unwrap().unwrap().contains("qmp_capabilities"));
                writeln!(from_test, "{{\"QMP\": {{}}}}\n{{\"return\": {{}}}}").unwrap();
                assert!(commands.next().unwrap().unwrap().contains("\"execute\":\"query-x\""));
                from_test.write_all(lines.as_bytes()).unwrap();
            });
            let mut qmp = Qmp::new(input, answers.clone());
            qmp.negotiate(BOUND).unwrap();
            let result = qmp.run("query-x", &json!({ "a": 1 }), BOUND);
            if lines.contains("DEVICE_DELETED") {
                assert_eq!(qmp.wait_for_event("DEVICE_DELETED", "hot0", BOUND), Ok(()));
                let other = qmp.wait_for_event("DEVICE_DELETED", "hot1", BOUND);
                assert_eq!(other, Err("QEMU ended".to_owned()));
            }
            result
        })
    }

    #[test]
    fn command_returns_its_result_or_the_reason() {
        assert_eq!(answered("{\"return\": [7]}\n"), Ok(json!([7])));
        assert_eq!(
            answered("{\"error\": {\"class\": \"x\", \"desc\": \"no such\"}}\n"),
            Err("no such".to_owned())
        );
        assert_eq!(answered(""), Err("QEMU ended".to_owned()));
    }

    #[test]
    fn events_beside_answers_are_kept() {
        let event = "{\"event\": \"DEVICE_DELETED\", \"data\": {\"device\": \"hot0\"}}\n";
        assert_eq!(answered(&format!("{event}{{\"return\": 1}}\n")), Ok(json!(1)));
    }
}
