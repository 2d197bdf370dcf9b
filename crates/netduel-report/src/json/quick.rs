//! The documents of quick tests: one document at the end, or a line of JSON for each event.
use std::net::IpAddr;

use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::search::SearchStep;
use netduel_model::trial::Trial;
use netduel_model::warning::Warning;
use netduel_model::workload;
use schemars::JsonSchema;
use serde::Serialize;

use super::ends::TestEnd;
use super::envelope::{Document, Envelope, ErrorInfo, Origin, iso_8601};
use super::figures::Bottleneck;
use super::parts::{Expected, Interval, Latency, Stamps, Workload};
use super::search::{SearchTrial, Step};
use super::warning::WarningKind;
use crate::analysis::{self, Bound, RequestCount, bound_of, value_of};
use crate::quick::{SummaryInput, deviations};

/// A quick test, or the tests of a sweep: `netduel tcp`, `udp`, `rr`, `crr` and `pps` with `--json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuickDocument {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// The server.
    pub server: String,
    /// The tests; more than one in a sweep of `pps`.
    pub tests: Vec<QuickTest>,
    /// Why a sweep ended before its last test; null when every test has a result.
    pub error: Option<ErrorInfo>,
}

impl Document for QuickDocument {
    const NAME: &'static str = "netduel.quick_test";
    // 1: `format` and `format_version`; one test at the top level; the stored trial without its version.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

impl QuickDocument {
    /// Of tests against a server.
    pub fn of(server: &str, tests: Vec<QuickTest>, error: Option<ErrorInfo>, origin: &Origin) -> Self {
        Self { envelope: Self::envelope(origin), server: server.to_owned(), tests, error }
    }
}

/// A test.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuickTest {
    /// Name of the stored run; null without --save.
    pub run: Option<String>,
    /// Start: ISO 8601, UTC.
    pub started: String,
    /// The same time, milliseconds since 1970-01-01T00:00:00Z.
    pub started_unix_ms: u64,
    /// The workload with every default written out.
    pub workload: Workload,
    /// Addresses of client and server.
    pub addresses: Vec<IpAddr>,
    /// Whether both hosts are one machine.
    pub shared_machine: bool,
    /// Why the test is invalid; null for a valid test.
    pub invalid: Option<String>,
    /// The metrics in the steady window.
    pub metrics: Vec<MetricValue>,
    /// Round trips in the steady window; null for tests without any.
    pub latency: Option<Latency>,
    /// Round trips split by kernel time stamps; null without stamps.
    pub stamps: Option<Stamps>,
    /// The search of `pps --search`; null for other tests.
    pub search: Option<SearchTrial>,
    /// Bottleneck of the test; null when an end gave no figures.
    pub bottleneck: Option<Bottleneck>,
    /// Known limit of the hosts; null when none is known.
    pub expected: Option<Expected>,
    /// Warnings about the test and its hosts.
    pub warnings: Vec<QuickWarning>,
    /// The intervals; empty with `--json-stream`, which prints each as a line.
    pub intervals: Vec<Interval>,
    /// What each end counted, the client first. The stored run of `--save` has every sample, too.
    pub ends: Vec<TestEnd>,
}

/// A warning about a quick test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuickWarning {
    /// Kind; null for a problem of a host's configuration.
    pub kind: Option<WarningKind>,
    /// The warning in words, with what to do.
    pub text: String,
}

impl QuickWarning {
    /// Of a warning of the test.
    pub fn of(warning: &Warning) -> Self {
        Self { kind: Some(WarningKind::of(warning)), text: warning.to_string() }
    }

    /// Of a rate or a schedule that the test missed, of requests without a response, and of traffic outside the steady window that was not as
    /// in it.
    fn of_trial(workload: &workload::Workload, trial: &Trial) -> impl Iterator<Item = Self> {
        let rate = analysis::missed_rate(workload, trial)
            .map(|words| (WarningKind::RateMissed, format!("rate missed: {words}")));
        let schedule = analysis::missed_schedule(workload, trial)
            .map(|words| (WarningKind::ScheduleMissed, format!("schedule missed: {words}")));
        let requests = analysis::requests_of(&workload.traffic, trial).filter(|count| count.is_relevant());
        let requests = requests.map(|RequestCount { sent, lost }| {
            let text = format!(
                "requests lost: {lost} of {sent} requests had no response in time and are in no percentile"
            );
            (WarningKind::RequestsLost, text)
        });
        let all = rate.into_iter().chain(schedule).chain(requests);
        let all = all.map(|(kind, text)| Self { kind: Some(kind), text });
        let deviations = deviations(workload, trial).into_iter();
        all.chain(deviations.map(|text| Self { kind: None, text: format!("whole test: {text}") }))
    }

    /// Of a problem of a host or of a pair of hosts.
    pub fn of_host(text: &str) -> Self {
        Self { kind: None, text: text.to_owned() }
    }
}

/// The value of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct MetricValue {
    /// Key of the metric.
    pub metric: Metric,
    /// Unit: `bit/s`, `/s`, `/min`, `ns`, `s/GB`, `segments/GB`, `probes` or `fraction`.
    pub unit: &'static str,
    /// Value; null when the test did not yield it.
    pub value: Option<f64>,
    /// What the value bounds; null when it is exact.
    pub bound: Option<Bound>,
}

/// What a test is made of.
#[derive(Debug, Clone, Copy)]
pub struct QuickInput<'a> {
    /// The plan.
    pub plan: &'a ResolvedPlan,
    /// Name of the stored run.
    pub run: Option<&'a str>,
    /// The figures.
    pub summary: SummaryInput<'a>,
    /// The intervals.
    pub intervals: &'a [crate::quick::Interval],
    /// Warnings about the test and its hosts.
    pub warnings: &'a [QuickWarning],
}

impl QuickTest {
    /// Of a finished test.
    pub fn of(input: QuickInput<'_>) -> Self {
        let SummaryInput { workload, trial, shared_machine, expected, .. } = input.summary;
        let value = |metric: &Metric| MetricValue {
            metric: *metric,
            unit: metric.unit(),
            value: value_of(*metric, workload, trial, shared_machine),
            bound: bound_of(*metric, workload, trial, shared_machine),
        };
        let limit = analysis::limit_of(workload, trial, shared_machine, expected);
        Self {
            run: input.run.map(str::to_owned),
            started: iso_8601(trial.started_unix_ms),
            started_unix_ms: trial.started_unix_ms,
            workload: Workload::of(workload),
            addresses: input.plan.hosts.values().flat_map(|host| &host.addresses).copied().collect(),
            shared_machine,
            invalid: trial.validity.reason().map(str::to_owned),
            metrics: workload.traffic.facts().possible_metrics.iter().map(value).collect(),
            latency: analysis::round_trip_histogram(trial).as_ref().map(Latency::of),
            stamps: analysis::stamps_of(trial).as_ref().map(Stamps::of),
            search: trial.search.as_ref().map(|report| SearchTrial::of(trial.slot.block, report)),
            bottleneck: limit.as_ref().map(Bottleneck::of_trial),
            expected: expected.map(Expected::of),
            warnings: input.warnings.iter().cloned().chain(QuickWarning::of_trial(workload, trial)).collect(),
            intervals: input.intervals.iter().map(Interval::of).collect(),
            ends: TestEnd::all(trial),
        }
    }
}

/// A line of `--json-stream`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QuickEvent {
    /// The first keys of every document.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What happened.
    #[serde(flatten)]
    pub event: QuickEventKind,
}

impl Document for QuickEvent {
    const NAME: &'static str = "netduel.quick_event";
    // 1: without a version.
    const VERSION: u32 = 2;
    const RELEASED: u32 = 1;
}

/// What happened in a quick test.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum QuickEventKind {
    /// The test starts.
    Start {
        /// The server.
        server: String,
        /// The workload with every default written out.
        workload: Box<Workload>,
    },
    /// An interval is over.
    Interval {
        /// The interval.
        interval: Interval,
    },
    /// A step of a search is over.
    Step {
        /// The step.
        step: Step,
    },
    /// The test is over.
    End {
        /// The result.
        test: Box<QuickTest>,
    },
    /// The test ended without a result.
    Failed {
        /// The error.
        error: ErrorInfo,
    },
}

impl QuickEvent {
    /// An event.
    pub fn of(event: QuickEventKind, origin: &Origin) -> Self {
        Self { envelope: Self::envelope(origin), event }
    }
}

impl QuickEventKind {
    /// The start of a test.
    pub fn start(server: &str, workload: &workload::Workload) -> Self {
        Self::Start { server: server.to_owned(), workload: Box::new(Workload::of(workload)) }
    }

    /// A step of a search.
    pub fn step(step: &SearchStep) -> Self {
        Self::Step { step: Step::of(step) }
    }
}
