//! What is wrong, or worth knowing, with the network of a host or of a pair of hosts: pure rules over snapshots.
//!
//! A rule speaks only when the facts are there: what a host did not tell leads to no finding. Nothing here changes a host; the
//! commands are for a person to read and to run.
mod acceleration;
mod counters;
mod drivers;
mod link;
mod machine;
mod nic;
mod pair;
mod queues;
mod size;

use netduel_model::plan::tuning::core_list;
use netduel_model::snapshot::HostSnapshot;
use serde::Serialize;

pub use acceleration::{Acceleration, accelerations};
pub(crate) use counters::is_limit;
pub(crate) use nic::{is_hardware, ports_of, queue_count};
pub use pair::PairContext;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A measurement would be about something else than what was meant, or fails: mend it first.
    Problem,
    /// It costs throughput, packets, latency or trust in the result.
    Warning,
    /// Worth knowing when figures are read.
    Note,
}

impl Severity {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, for scripts: `one-queue`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// Interface that it is about; absent for the host as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What was found, in one line.
    pub what: String,
    /// The facts that led to it, each in words with its numbers.
    pub evidence: Vec<String>,
    /// Why it matters, in one line.
    pub why: String,
    /// What to do.
    pub remedy: String,
    /// The command that does it, for a person with the rights to run; absent when no command of the host can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Finding {
    fn new(id: &'static str, severity: Severity, what: impl Into<String>) -> Self {
        Self {
            id,
            severity,
            interface: None,
            what: what.into(),
            evidence: Vec::new(),
            why: String::new(),
            remedy: String::new(),
            command: None,
        }
    }

    fn on(mut self, interface: &str) -> Self {
        self.interface = Some(interface.to_owned());
        self
    }

    fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}

/// What is known of a host beside its snapshot.
#[derive(Debug, Clone, Default)]
pub struct HostContext {
    /// Cores that a plan pins threads to on this host; empty when it pins none.
    pub pinned: Vec<u16>,
}

/// What is found on one host, the gravest first.
pub fn of_host(host: &HostSnapshot, context: &HostContext) -> Vec<Finding> {
    let mut found = acceleration::find(host);
    found.extend(link::find(host));
    found.extend(queues::find(host));
    found.extend(machine::find(host, context));
    found.extend(counters::find(host));
    found.extend(size::find(host));
    sorted(found)
}

/// What is found between two hosts that talk to each other, the gravest first.
pub fn of_pair(client: &HostSnapshot, server: &HostSnapshot, context: &PairContext) -> Vec<Finding> {
    sorted(pair::find(client, server, context))
}

fn sorted(mut found: Vec<Finding>) -> Vec<Finding> {
    found.sort_by_key(|finding| finding.severity);
    found
}

/// Numbers as the kernel lists them: `0-3,8`.
pub(crate) fn ranges(numbers: impl IntoIterator<Item = u16>) -> String {
    let mut sorted: Vec<u16> = numbers.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    core_list(&sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_as_the_kernel_does() {
        assert_eq!(ranges([3, 1, 0, 2, 8, 2]), "0-3,8");
        assert_eq!(ranges([]), "");
        assert_eq!(ranges([5]), "5");
    }
}
