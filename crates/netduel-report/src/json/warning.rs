//! Warnings in JSON.
use netduel_model::metric::Metric;
use netduel_model::warning::Warning as Stored;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::words;

/// A warning about a result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Warning {
    /// Kind.
    pub kind: WarningKind,
    /// The warning in words, with what to do.
    pub text: String,
    /// Its mark in the other formats, `*2` for 2, which name several warnings of one metric in one sentence; null without a mark.
    pub mark: Option<usize>,
    /// Arm that it is about; null for none.
    pub arm: Option<String>,
    /// Workload that it is about; null for none.
    pub workload: Option<String>,
    /// Metric that it is about; null for none.
    pub metric: Option<Metric>,
    /// Host that it is about; null for none.
    pub host: Option<String>,
    /// Numbers of the warning, with their names in the run format, for example `share_max` or `pacing_error_p99_ns`.
    pub figures: Vec<Figure>,
}

/// A number of a warning.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// Name.
    pub name: String,
    /// Value.
    pub value: f64,
    /// Unit: that of the metric for `low` and `high` of a metric with two groups, else `ns`, `bit/s`, `bytes`, `fraction` or `count`.
    pub unit: &'static str,
}

impl Figure {
    /// Of a number of a stored warning. A stored name ends with its unit; the others are listed.
    fn of(name: &str, value: f64, metric: Option<Metric>) -> Self {
        let unit = match name {
            "low" | "high" => metric.map_or("count", Metric::unit),
            "change" | "lag1" | "ratio_to_median" | "share" | "share_max" | "datagrams_per_packet" => {
                "fraction"
            }
            _ if name.ends_with("_ns") => "ns",
            _ if name.ends_with("_bps") => "bit/s",
            _ if name.ends_with("_bytes") => "bytes",
            _ => "count",
        };
        // Stored blocks count from 0.
        let value = if name == "block" { value + 1.0 } else { value };
        Self { name: name.to_owned(), value, unit }
    }
}

/// Makes the kinds with the conversion from what is stored: a variant without a kind does not compile.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident,)+) => {
        /// Kind of a warning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum WarningKind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl WarningKind {
            pub(super) fn of(warning: &Stored) -> Self {
                match warning {
                    $(Stored::$kind { .. } => Self::$kind,)+
                }
            }
        }
    };
}

kinds! {
    /// A metric rose or fell over the blocks.
    Drift,
    /// Successive blocks are correlated: the interval is too narrow.
    Autocorrelation,
    /// The values of an arm form two groups.
    Bimodal,
    /// A block lies far from the others.
    OutlierBlock,
    /// The hypervisor withheld CPU time.
    StealTime,
    /// Other processes used the cores of a host.
    CpuContention,
    /// A server ran tests of other clients at the same time.
    ConcurrentTests,
    /// The wall clock was stepped.
    ClockStep,
    /// The bytes took another path than the label says.
    PathChanged,
    /// A host was moved, restarted, or has another NIC.
    PlacementChanged,
    /// A guest contradicts what the provider of its bed claims.
    BedDisagrees,
    /// The arm names no interface, so nothing proves its path.
    ArmNotProven,
    /// Throughput is flat at a limit with CPU to spare.
    RateCapped,
    /// Throughput falls to a lower level within trials, as behind a token bucket.
    TokenBucketBurst,
    /// Both hosts are one machine.
    SharedMachine,
    /// A NAT changes the source address.
    AddressTranslated,
    /// The receiver's socket dropped datagrams.
    ReceiverOverrun,
    /// Datagrams and packets differ in number.
    DatagramsNotPackets,
    /// The kernel copied zero-copy sends.
    ZeroCopyFellBack,
    /// Transactions failed.
    TransactionsFailed,
    /// Requests had no response in time; no percentile contains them.
    RequestsLost,
    /// An open loop was late.
    ScheduleMissed,
    /// Counts of the programs and of an interface disagree.
    CountsDisagree,
    /// Trials of an arm had TCP connections with different congestion controls or MSS.
    ConnectionsDiffered,
    /// Streams sent less than their rate.
    RateMissed,
    /// The device has no NAPI instance to busy-poll.
    NoNapiInstance,
    /// One arm is time-stamped and the other is not.
    TimestampsDiffer,
    /// Many stamped round trips could not be split.
    TimestampsIncomplete,
    /// Some values are bounds: the event was not over, or nothing arrived in the steady window.
    LowerBound,
    /// Trials had no round trip in the steady window.
    NoRoundTrips,
    /// The run went on without an arm.
    ArmDropped,
    /// Trials are excluded.
    TrialsExcluded,
    /// Settings that an earlier run left behind were restored.
    SettingsRestored,
    /// A treatment could not be undone.
    UndoFailed,
    /// Records of the run file are damaged and left out.
    RecordsDamaged,
    /// The last record of the run file is incomplete and left out.
    RecordIncomplete,
    /// A block that the run began was not finished and is left out.
    BlockIncomplete,
    /// A host differed from the start of the run for a while, or where it may not concern the path.
    HostDiffered,
}

impl Warning {
    /// Of a warning of a run.
    pub(super) fn of(analysis: &Analysis, warning: &Stored, mark: Option<usize>) -> Self {
        let record = serde_json::to_value(warning).unwrap_or_default();
        let text = |key: &str| record[key].as_str().map(str::to_owned);
        let metric = serde_json::from_value(record["metric"].clone()).ok();
        let figure = |(name, value): (&String, &Value)| Some(Figure::of(name, value.as_f64()?, metric));
        Self {
            kind: WarningKind::of(warning),
            text: words::warning_text(analysis, warning),
            mark,
            arm: text("arm"),
            workload: text("workload"),
            metric,
            host: text("host"),
            figures: record.as_object().into_iter().flatten().filter_map(figure).collect(),
        }
    }
}
