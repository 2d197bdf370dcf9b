//! A run: one execution of a plan.
use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bed::recorded::RunBed;
use crate::ids::{HostName, RunId};
use crate::plan::ResolvedPlan;
use crate::publication::Publication;
use crate::snapshot::HostSnapshot;
use crate::trial::Trial;
use crate::warning::Warning;

/// First line of the plan text of a quick test. Its command follows in a comment, then an empty line and the test as a plan file, which
/// earlier versions did not store.
pub const QUICK_TEST: &str = "# A quick test; repeat it with:";

/// What is known of a run before its first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunHeader {
    /// Its name in the store.
    pub id: RunId,
    /// Wall clock at the start, milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The program that ran it, name and version.
    pub program: String,
    /// The command that was given.
    pub command: Vec<String>,
    /// The plan with every default written out.
    pub plan: ResolvedPlan,
    /// The plan's text as it was given, for the section "Reproduction".
    pub plan_text: String,
    /// The seed of the schedule.
    pub seed: u64,
    /// The hosts as they were found.
    pub hosts: BTreeMap<HostName, HostSnapshot>,
    /// What the command line added to the plan.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
    /// The absolute path of the report file of `--out`, which a resumed run writes again; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// The absolute paths of the further report files, where `--out` was repeated; a resumed run writes them again as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_reports: Vec<String>,
    /// The bed that has the hosts; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bed: Option<RunBed>,
}

/// What the command line adds to a plan: words about the run, and settings that it overrides. The resolved plan has the settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Annotations {
    /// A title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Notes by their keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, String>,
    /// Settings of the plan that were overridden, as `key=value`, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
    /// What the author adds to reports beside the plan, and the image of the plan's logo.
    #[serde(default, skip_serializing_if = "Publication::is_empty")]
    pub publication: Publication,
}

impl RunHeader {
    /// What the author adds to reports: the command line has precedence over the plan.
    pub fn publication(&self) -> Publication {
        self.annotations.publication.over(&self.plan.report)
    }

    /// The absolute paths of all report files of `--out`, in its order.
    pub fn report_files(&self) -> impl Iterator<Item = &str> {
        self.report.iter().chain(&self.further_reports).map(String::as_str)
    }

    /// The plan without names that only its bed has, as [`ResolvedPlan::without_names_of`]: two runs of one plan on two beds have the same.
    pub fn plan_without_bed(&self) -> Cow<'_, ResolvedPlan> {
        match &self.bed {
            Some(bed) => Cow::Owned(self.plan.without_names_of(bed)),
            None => Cow::Borrowed(&self.plan),
        }
    }

    /// Whether both headers are of one run: a copy of its file may have another name, and keeps start and seed. Runs of two stores may have one name.
    pub fn is_of_same_run(&self, other: &Self) -> bool {
        (self.started_unix_ms, self.seed) == (other.started_unix_ms, other.seed)
    }
}

impl Annotations {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.title.is_none()
            && self.notes.is_empty()
            && self.overrides.is_empty()
            && self.publication.is_empty()
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum RunEnd {
    /// Every interval was narrow enough.
    PrecisionReached,
    /// The maximum number of blocks was run.
    BlockLimitReached,
    /// The time budget was used up.
    BudgetReached,
    /// A user or a signal stopped it; it can be resumed.
    Interrupted,
    /// It could not go on; it can be resumed when the cause is removed.
    Failed {
        /// The cause.
        detail: String,
    },
}

impl RunEnd {
    /// Whether the run ended by a rule of its plan, between two blocks. Any other end, or none, may leave its last block unfinished.
    pub fn is_regular(&self) -> bool {
        match self {
            Self::PrecisionReached | Self::BlockLimitReached | Self::BudgetReached => true,
            Self::Interrupted | Self::Failed { .. } => false,
        }
    }
}

/// A run as it is read from the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What was known before.
    pub header: RunHeader,
    /// Trials in the order in which they finished, all attempts.
    pub trials: Vec<Trial>,
    /// Doubts that were noted while it ran. Doubts about the statistics are derived when shown.
    pub warnings: Vec<Warning>,
    /// How it ended; absent when the coordinator was killed.
    pub end: Option<RunEnd>,
}
