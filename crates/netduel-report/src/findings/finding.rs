//! A finding: its name, its severity, the evidence, the reason and the remedy. Imports no rule.
use serde::Serialize;

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
    pub(super) fn new(id: &'static str, severity: Severity, what: impl Into<String>) -> Self {
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

    pub(super) fn on(mut self, interface: &str) -> Self {
        self.interface = Some(interface.to_owned());
        self
    }

    pub(super) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    pub(super) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    pub(super) fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}
