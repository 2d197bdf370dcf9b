//! The document of a baseline file: the values of a run that a comparison needs, small enough to be kept in a repository. It is read again,
//! so its types parse what they write.
use std::collections::BTreeMap;

use netduel_model::ids::{ArmName, HostName, RunId, WorkloadName};
use netduel_model::metric::Metric;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::envelope::{Document, Envelope};
use crate::analysis::compare::Aspect;

/// A baseline file: `netduel runs baseline`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BaselineDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The rest.
    #[serde(flatten)]
    pub content: BaselineContent,
}

impl Document for BaselineDocument {
    const NAME: &'static str = "netduel.baseline";
    const VERSION: u32 = 1;
    const RELEASED: u32 = 0;
}

/// What a comparison needs of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineContent {
    /// The run.
    pub run: BaselineRun,
    /// Format of run files of which `plan` and `warnings` are a part.
    pub run_format: u32,
    /// The plan with every default written out, as in a run file, without names that only the bed of the run has.
    pub plan: Value,
    /// Blocks with at least one trial that counts.
    pub blocks: u32,
    /// Valid trials.
    pub trials_valid: u32,
    /// Excluded trials: failed, or on another path.
    pub trials_excluded: u32,
    /// Values by arm and workload.
    pub measured: Vec<BaselineValues>,
    /// Facts of the run and its hosts.
    pub facts: BaselineFacts,
    /// Warnings of the run, as in a run file.
    pub warnings: Vec<Value>,
    /// Whether the names in it are pseudonyms of `--redact`; absent in files of earlier versions.
    #[serde(default)]
    pub is_redacted: bool,
    /// SHA-256 of the document without this key, its keys sorted, without spaces, and with `3` for `3.0`; absent in files of earlier versions.
    #[serde(default)]
    pub checksum: String,
}

/// The run of a baseline file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRun {
    /// Name in the store.
    #[schemars(with = "String")]
    pub id: RunId,
    /// Program that ran it, with its version.
    pub program: String,
    /// Command line.
    pub command: Vec<String>,
    /// Start: ISO 8601, UTC.
    pub started: String,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ms: u64,
    /// Seed of the order of trials, as text because it may exceed 2^53.
    pub seed: String,
    /// Title given on the command line.
    pub title: Option<String>,
    /// Notes given on the command line, by key.
    pub notes: BTreeMap<String, String>,
    /// Settings of the plan that the command line overrides, as KEY=VALUE.
    pub overrides: Vec<String>,
    /// How the run ended, as in a run file; null when it was killed.
    pub end: Option<Value>,
}

/// A workload of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineValues {
    /// Arm.
    #[schemars(with = "String")]
    pub arm: ArmName,
    /// Workload.
    #[schemars(with = "String")]
    pub workload: WorkloadName,
    /// Valid trials.
    pub trials: u32,
    /// Blocks in whose trial other processes used CPU time, with the share of the CPU time of the host.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub contended: BTreeMap<u32, f64>,
    /// The metrics.
    pub metrics: Vec<BaselineMetric>,
}

/// The values of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineMetric {
    /// Key of the metric.
    pub metric: Metric,
    /// Unit of its values.
    pub unit: String,
    /// Value of each valid trial by its block, counted from 1.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub values: BTreeMap<u32, f64>,
    /// Blocks whose value is a bound, and blocks whose valid trial has no value because its result was the worst there is.
    pub bounds: Vec<u32>,
}

/// Facts of a run: names and values by what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineFacts {
    /// Of the run as a whole.
    #[schemars(with = "AspectNames")]
    pub run: Aspects,
    /// Of hosts, by name.
    #[schemars(with = "BTreeMap<String, HostFacts>")]
    pub hosts: BTreeMap<HostName, HostFacts>,
    /// Of arms, by name; absent in files of earlier versions.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, AspectNames>")]
    pub arms: BTreeMap<ArmName, Aspects>,
    /// Of workloads.
    pub workloads: Vec<WorkloadFacts>,
}

/// Name and value of facts by what they are about.
pub type Aspects = BTreeMap<Aspect, BTreeMap<String, String>>;

/// [`Aspects`] as a schema has it: keys of objects are text.
type AspectNames = BTreeMap<String, BTreeMap<String, String>>;

/// Facts of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BaselineHostFacts")]
pub struct HostFacts {
    /// Of the whole host.
    #[schemars(with = "AspectNames")]
    pub host: Aspects,
    /// Of its interfaces, by name.
    #[schemars(with = "BTreeMap<String, AspectNames>")]
    pub interfaces: BTreeMap<String, Aspects>,
}

/// Facts of a workload of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BaselineWorkloadFacts")]
pub struct WorkloadFacts {
    /// Arm.
    #[schemars(with = "String")]
    pub arm: ArmName,
    /// Workload.
    #[schemars(with = "String")]
    pub workload: WorkloadName,
    /// The facts.
    #[schemars(with = "AspectNames")]
    pub facts: Aspects,
}
