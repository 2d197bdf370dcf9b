//! The JSON file: raw figures of every run, and the machine. All output is derived from it.
use netduel_model::word::word;
use serde::{Deserialize, Serialize};

use crate::cost::Accounting;
use crate::metric::{Kind, Metric};
use crate::outcome::Outcome;

/// Version of the JSON file.
pub const FORMAT: u32 = 1;

/// A campaign: all comparisons of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The command that repeats the campaign.
    pub command: String,
    /// Start, UTC, for example `2026-11-21 08:00:00`.
    pub date: String,
    /// The measured commit, marked when files differ from it.
    pub commit: Option<String>,
    /// Whether the compiler optimised; without optimisation the figures are meaningless.
    pub optimised: bool,
    /// Seed of the order.
    pub seed: u64,
    /// Requested number of pairs.
    pub pairs: u32,
    /// Seconds of traffic in each run.
    pub seconds: u32,
    /// The machine.
    pub machine: Machine,
    /// The rule for CPU time.
    pub accounting: Accounting,
    /// Other tools.
    pub peers: Vec<Peer>,
    /// Comparisons.
    pub results: Vec<Comparison>,
}

/// The machine and the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Processor.
    pub cpu: String,
    /// Usable cores.
    pub cores: usize,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Congestion control of both routes, the same for every tool.
    pub congestion: String,
    /// MTU of the veth, bytes.
    pub mtu: u32,
    /// Relevant offloads of the veth, name and state, before a case changes them.
    pub offloads: Vec<(String, bool)>,
    /// Limits of socket buffers, sysctl and value.
    pub buffers: Vec<(String, String)>,
}

/// Another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Program name.
    pub program: String,
    /// The version that it reports; absent when it is not installed.
    pub version: Option<String>,
}

/// Placement of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Chosen by the kernel.
    Free,
    /// Client on core 0, server on core 1, all threads of each.
    Apart,
    /// Both on core 0.
    Together,
}

impl Placement {
    /// Label in tables.
    pub fn title(self) -> &'static str {
        word(&self)
    }

    /// The core of the client or the server.
    pub fn core(self, is_server: bool) -> Option<u16> {
        match self {
            Self::Free => None,
            Self::Apart => Some(u16::from(is_server)),
            Self::Together => Some(0),
        }
    }
}

/// One comparison with one placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Its case.
    pub case: String,
    /// The compared metrics.
    pub kind: Kind,
    /// netduel's label.
    pub ours: String,
    /// netduel's workload, as an agent receives it.
    pub workload: serde_json::Value,
    /// The other tool; absent when netduel is compared with its plan.
    pub against: Option<String>,
    /// Placement of the ends.
    pub placement: Placement,
    /// Whether `tx-udp-segmentation` was off on the sender's interface, so that every datagram is a packet there.
    pub segmented: bool,
    /// The targets.
    #[serde(rename = "asks")]
    pub targets: Vec<Target>,
    /// The reason when it was not measured.
    pub missing: Option<String>,
    /// Failed runs with their errors; their pairs are excluded.
    pub failures: Vec<String>,
    /// Pairs in chronological order.
    pub pairs: Vec<Pair>,
}

/// A target: for the median ratio, or for netduel's median without another tool.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// The metric.
    pub metric: Metric,
    /// Minimum or maximum.
    pub bound: Bound,
    /// The value.
    pub value: f64,
}

/// Direction of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// At least the value.
    AtLeast,
    /// At most the value.
    AtMost,
}

/// Two runs, one directly after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Whether netduel ran first.
    pub ours_first: bool,
    /// netduel's run.
    pub ours: Outcome,
    /// The other tool's run.
    pub theirs: Option<Outcome>,
}
