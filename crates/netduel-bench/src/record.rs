//! What is written to the JSON file: raw figures of every run and where they were made. Everything shown is derived from it.
use serde::{Deserialize, Serialize};

use crate::cost::Accounting;
use crate::metric::{Kind, Metric};
use crate::outcome::Outcome;

/// Of the JSON file.
pub const FORMAT: u32 = 1;

/// A campaign: all comparisons of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The command that makes the like.
    pub command: String,
    /// Begin, UTC, for example `2026-11-21 08:00:00`.
    pub date: String,
    /// What is measured: the commit, with a mark when files differ from it.
    pub commit: Option<String>,
    /// Whether the compiler optimised; figures of a build without say nothing.
    pub optimised: bool,
    /// Seed of the order.
    pub seed: u64,
    /// Pairs asked for.
    pub pairs: u32,
    /// Seconds of traffic in each run.
    pub seconds: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// What CPU time counts.
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
    /// Cores that may be used.
    pub cores: usize,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Congestion control of both routes, for every tool alike.
    pub congestion: String,
    /// MTU of the veth, bytes.
    pub mtu: u32,
    /// Offloads of the veth that matter, name and state, as they are unless a case changes them.
    pub offloads: Vec<(String, bool)>,
    /// Limits of socket buffers, sysctl and value.
    pub buffers: Vec<(String, String)>,
}

/// Another tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its program.
    pub program: String,
    /// The version that it reports; absent when it is not installed.
    pub version: Option<String>,
}

/// Where the two ends run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Wherever the kernel puts them.
    Free,
    /// Client on core 0, server on core 1, all threads of each.
    Apart,
    /// Both on core 0.
    Together,
}

impl Placement {
    /// In a table.
    pub fn title(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Apart => "apart",
            Self::Together => "together",
        }
    }

    /// The core of client or server.
    pub fn core(self, is_server: bool) -> Option<u16> {
        match self {
            Self::Free => None,
            Self::Apart => Some(u16::from(is_server)),
            Self::Together => Some(0),
        }
    }
}

/// One comparison in one placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Its case.
    pub case: String,
    /// The figures that are compared.
    pub kind: Kind,
    /// Our side.
    pub ours: String,
    /// Our workload, as an agent would get it.
    pub workload: serde_json::Value,
    /// The other side; absent when ours is measured against what was planned.
    pub against: Option<String>,
    /// Where the ends run.
    pub placement: Placement,
    /// Whether `tx-udp-segmentation` was off on the sender's interface, so that every datagram is a packet there.
    pub segmented: bool,
    /// The required figures.
    pub asks: Vec<Ask>,
    /// Why it was not measured, when it was not.
    pub missing: Option<String>,
    /// Runs that failed, and how; their pairs are left out.
    pub failures: Vec<String>,
    /// Pairs, in the order of time.
    pub pairs: Vec<Pair>,
}

/// A required figure: of the median ratio, or of our own median where there is no other side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Of what.
    pub metric: Metric,
    /// At least or at most.
    pub bound: Bound,
    /// So much.
    pub value: f64,
}

/// Side of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// This or more.
    AtLeast,
    /// This or less.
    AtMost,
}

/// Two runs, one directly after the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Whether ours ran first.
    pub ours_first: bool,
    /// Ours.
    pub ours: Outcome,
    /// The other's.
    pub theirs: Option<Outcome>,
}
