//! Documents of commands that list or delete what is stored: `netduel runs`, `netduel runs rm`, `netduel pair`.
use netduel_model::word::word;
use schemars::JsonSchema;
use serde::Serialize;

use super::envelope::{Document, Envelope};

/// The stored runs: `netduel runs --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunsDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The runs, in the order of their names.
    pub runs: Vec<StoredRun>,
}

impl Document for RunsDocument {
    const NAME: &'static str = "netduel.runs";
    // A bare array, before documents had versions, was 1.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

/// A stored run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoredRun {
    /// Name of the run: that of its file.
    pub id: String,
    /// The stored run of which the file is a copy; null for any other.
    pub copy_of: Option<String>,
    /// Its file.
    pub path: String,
    /// Why the file cannot be read; null when it can. The keys below are null when it cannot.
    pub error: Option<String>,
    /// Question of the plan.
    pub question: Option<String>,
    /// Title given on the command line.
    pub title: Option<String>,
    /// Notes given on the command line.
    pub notes: Vec<Note>,
    /// Settings of the plan that the command line overrides, as KEY=VALUE.
    pub overrides: Vec<String>,
    /// When the run was started: ISO 8601, UTC.
    pub started: Option<String>,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ms: Option<u64>,
    /// Stored trials, all attempts.
    pub trials: Option<u64>,
    /// State.
    pub state: Option<RunState>,
    /// How the run ended; null while it runs and when it was killed.
    pub end: Option<RunEnd>,
    /// Whether the last record is incomplete, as after a power failure.
    pub torn: Option<bool>,
    /// Records that reports leave out: those whose checksum shows that they were changed, and trials of another run.
    pub damaged_records: Option<u64>,
}

/// A note about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Note {
    /// Key.
    pub key: String,
    /// Value.
    pub value: String,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// A process is writing it.
    Running,
    /// Finished.
    Done,
    /// Interrupted or killed; it can be resumed.
    Stopped,
    /// A failure ended it; it can be resumed.
    Failed,
}

impl RunState {
    /// The word of the listing for people.
    pub fn word(self) -> &'static str {
        word(&self)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunEnd {
    /// Reason.
    pub reason: EndReason,
    /// The cause of a failure; null for other reasons.
    pub detail: Option<String>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// Every interval was narrow enough.
    PrecisionReached,
    /// The block limit was reached.
    BlockLimitReached,
    /// The time budget was used up.
    BudgetReached,
    /// The user stopped it.
    Interrupted,
    /// It could not continue.
    Failed,
}

impl RunEnd {
    /// Of the record.
    pub fn of(end: &netduel_model::run::RunEnd) -> Self {
        use netduel_model::run::RunEnd as Stored;
        let (reason, detail) = match end {
            Stored::PrecisionReached => (EndReason::PrecisionReached, None),
            Stored::BlockLimitReached => (EndReason::BlockLimitReached, None),
            Stored::BudgetReached => (EndReason::BudgetReached, None),
            Stored::Interrupted => (EndReason::Interrupted, None),
            Stored::Failed { detail } => (EndReason::Failed, Some(detail.clone())),
        };
        Self { reason, detail }
    }
}

impl Note {
    /// The notes of a run, by key.
    pub fn all(notes: &std::collections::BTreeMap<String, String>) -> Vec<Self> {
        notes.iter().map(|(key, value)| Self { key: key.clone(), value: value.clone() }).collect()
    }
}

/// Deleted runs: `netduel runs rm --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RemovedRuns {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Names of the deleted runs. Empty when the user declined.
    pub removed: Vec<String>,
}

impl Document for RemovedRuns {
    const NAME: &'static str = "netduel.runs_removed";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A changed or copied run: `netduel runs tag`, `rename`, `export` and `import` with `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedRun {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What the command did.
    pub action: RunAction,
    /// Name of the run in the store, after the command.
    pub id: String,
    /// Its former name; null unless it was renamed.
    pub former_id: Option<String>,
    /// The exported file, or the file that was imported; null for other actions.
    pub file: Option<String>,
    /// Title of the run after `tagged`; null for other actions and without one.
    pub title: Option<String>,
    /// Notes of the run after `tagged`; empty for other actions.
    pub notes: Vec<Note>,
    /// Whether the store had the imported run before, so that nothing changed; null for other actions.
    pub was_there: Option<bool>,
}

impl Document for ChangedRun {
    const NAME: &'static str = "netduel.runs_changed";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// What a command did with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunAction {
    /// Changed its title or notes.
    Tagged,
    /// Gave it another name.
    Renamed,
    /// Wrote it to a file.
    Exported,
    /// Copied a file into the store.
    Imported,
}

/// Disk space of stored runs: `netduel runs du --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunsUsage {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Folder of the store.
    pub folder: String,
    /// The runs, the largest first.
    pub runs: Vec<RunUsage>,
    /// Space that all of them occupy, bytes.
    pub disk_bytes: u64,
    /// Free space of the file system for this user, bytes; null when it is unknown.
    pub free_bytes: Option<u64>,
}

impl Document for RunsUsage {
    const NAME: &'static str = "netduel.runs_usage";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// Disk space of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunUsage {
    /// Name of the run.
    pub id: String,
    /// Length of its file, bytes.
    pub bytes: u64,
    /// Space that the file occupies, bytes.
    pub disk_bytes: u64,
}

/// Checked run files: `netduel runs verify --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifiedRuns {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The runs, in the order of the listing or of the command line.
    pub runs: Vec<VerifiedRun>,
}

impl Document for VerifiedRuns {
    const NAME: &'static str = "netduel.runs_verified";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// A checked run file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VerifiedRun {
    /// Name of the run, or of its file.
    pub id: String,
    /// Whether every record can be read, has its checksum, as far as the format has checksums, and belongs to the run, and no trial is missing.
    pub is_sound: bool,
    /// The finding in words.
    pub text: String,
    /// Trials that can be read; null when the file cannot be read.
    pub trials: Option<u64>,
    /// Lines of records that are damaged or do not belong to the run, from 1.
    pub damaged_lines: Vec<u64>,
    /// Whether the last record is incomplete; null when the file cannot be read.
    pub torn: Option<bool>,
}

/// Pairings: `netduel pair --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pairings {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What the command did.
    pub action: PairingAction,
    /// With `list` all pairings, else the one that was stored or deleted.
    pub pairings: Vec<PairedServer>,
}

impl Document for Pairings {
    const NAME: &'static str = "netduel.pairings";
    // A bare array, before documents had versions, was 1.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

/// What `netduel pair` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PairingAction {
    /// Listed the pairings.
    List,
    /// Stored a pairing.
    Stored,
    /// Deleted a pairing.
    Deleted,
}

/// A paired server, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PairedServer {
    /// Name for commands: HOST, or HOST:PORT when the port is not the default.
    pub name: String,
    /// Host.
    pub host: String,
    /// Port.
    pub port: u16,
}
