//! A finding: its name, its severity, the evidence, the reason and the remedy. Imports no rule.
use netduel_model::word::word;
use schemars::JsonSchema;
use serde::Serialize;

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// A measurement would fail, or measure something else than intended.
    Problem,
    /// Reduces throughput, packet rate or confidence in the result, or adds latency.
    Warning,
    /// Useful for reading the figures.
    Note,
}

impl Severity {
    /// One word.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Stable name, for scripts: `one-queue`.
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Interface concerned; absent for the host as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Title, one line.
    pub what: String,
    /// The facts behind it, with their numbers.
    pub evidence: Vec<String>,
    /// Consequence for a measurement, one line.
    pub why: String,
    /// Remedy.
    pub remedy: String,
    /// Command that applies the remedy, for a person with the privileges; absent when no command on the host can.
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
