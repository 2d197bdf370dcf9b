//! Deadlines of the coordinator for an agent, implemented independently from the documentation of the protocol.
use netduel_control::launcher::Arrival;

const SECOND: u64 = 1_000_000_000;
/// Time beyond a deadline in which the coordinator may be ending another agent.
const SLACK_NS: u64 = 2 * SECOND;
/// Timeout of treatments that do not wait, or of none, seconds.
const TREATMENTS: u64 = 30;
/// The same with a VF: two waits for an interface of 20 s. No plan here has more than one VF at an end.
const TREATMENTS_OF_A_VF: u64 = 70;

/// The unanswered request to an agent.
#[derive(Debug, Default)]
pub struct Outstanding {
    until_ns: Option<u64>,
    what: String,
    /// Duration of the prepared traffic, nanoseconds.
    duration_ns: u64,
    /// Timeout of the treatments of the trial.
    treatment_seconds: u64,
}

fn kind(line: &str) -> &str {
    let rest = line.split_once("\"type\":\"").map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default()
}

impl Outstanding {
    fn is_traffic(&self) -> bool {
        ["the result", "finish"].contains(&self.what.as_str())
    }

    /// The coordinator has sent a line.
    pub fn requested(&mut self, line: &str, now_ns: u64) {
        let kind = kind(line);
        if kind == "apply" {
            self.treatment_seconds = if line.contains("\"vf\"") { TREATMENTS_OF_A_VF } else { TREATMENTS };
        }
        let seconds = match kind {
            "prepare-client" => 40,
            // The ports are given 5 s of it.
            "probe-ports" => 35,
            "finish" => 15,
            // A former agent of the run may still restore the host.
            "lock-host" => 120,
            // After an aborted trial the changes of its traffic are undone, also without treatments.
            "apply" | "undo" => self.treatment_seconds.max(TREATMENTS),
            // An agent restores what any arm of the plan may have left.
            "bye" => TREATMENTS_OF_A_VF,
            _ => 30,
        };
        if let Some((_, rest)) = line.split_once("\"duration\":") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            self.duration_ns = digits.parse().unwrap_or_default();
        }
        // The answer to an abandoned request comes before the answer to this one. Traffic is not waited for.
        let given_up_ns = self.until_ns.filter(|_| !self.is_traffic()).unwrap_or_default();
        let from_ns = now_ns.max(given_up_ns);
        kind.clone_into(&mut self.what);
        self.until_ns = Some(from_ns + seconds * SECOND);
    }

    /// Output of the agent has arrived.
    pub fn received(&mut self, arrival: &Arrival, now_ns: u64) {
        let Arrival::Bytes(bytes) = arrival else { return self.until_ns = None };
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        match kind(&text) {
            "progress" => {}
            "started" => {
                "the result".clone_into(&mut self.what);
                // 15 s after its end, and up to 30 s before its start for the other end.
                self.until_ns = Some(now_ns + self.duration_ns + 45 * SECOND);
            }
            _ => self.until_ns = None,
        }
    }

    /// The coordinator could not check the time.
    pub fn postpone(&mut self, time_ns: u64) {
        self.until_ns = self.until_ns.map(|until_ns| until_ns + time_ns);
    }

    /// The deadline of the agent. While traffic runs it can be abandoned earlier because of its silence.
    pub fn has_time(&self, now_ns: u64) -> Option<&str> {
        let until_ns = self.until_ns?;
        let is_early = now_ns + SLACK_NS < until_ns;
        (is_early && !self.is_traffic() && !["hello", "bye"].contains(&self.what.as_str()))
            .then_some(self.what.as_str())
    }

    /// The awaited message, after the `hello` of the agent.
    pub fn of_an_agent(&self) -> Option<&str> {
        self.until_ns.filter(|_| !["hello", "bye"].contains(&self.what.as_str())).map(|_| self.what.as_str())
    }

    /// The message that is overdue.
    pub fn overdue(&self, now_ns: u64) -> Option<&str> {
        self.until_ns.filter(|until_ns| now_ns > until_ns + SLACK_NS).map(|_| self.what.as_str())
    }
}
