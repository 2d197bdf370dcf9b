//! Values that are bounds: the effect was not over, the search found no limit, or nothing arrived; and valid trials without a value, because
//! their result was the worst there is.
use netduel_model::metric::{Better, Metric};
use netduel_model::trial::Trial;
use netduel_model::word::word;
use netduel_model::workload::Workload;
use schemars::JsonSchema;
use serde::Serialize;

use super::{failover, figures, responsiveness, search};

/// What a value bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The true value is at least this one.
    AtLeast,
    /// The true value is less than this one.
    LessThan,
}

impl Bound {
    /// The bound that values of a metric are: without a round trip the latency is at least the window, and the rate is less than one
    /// round trip in the window; so is that of bytes or datagrams where nothing arrived.
    pub fn of_values(metric: Metric) -> Self {
        match metric {
            Metric::RoundTripRate | Metric::Throughput | Metric::DatagramRate => Self::LessThan,
            _ => Self::AtLeast,
        }
    }

    /// What values are when further true values are missing, because they are worse than any value.
    pub(crate) fn of_worst(metric: Metric) -> Self {
        match metric.better() {
            Better::Higher => Self::LessThan,
            Better::Lower => Self::AtLeast,
        }
    }

    /// Whether true values that are missing, all beyond the others on this side, move the quantile `share` of the others.
    pub(crate) fn moves_quantile(self, share: f64) -> bool {
        match self {
            Self::AtLeast => share > 0.0,
            Self::LessThan => share < 1.0,
        }
    }

    /// What the quantile `share` of some values bounds, each with whether it is a bound itself; absent where no bound can move the quantile. The
    /// true values may be in another order. The quantile is interpolated between the two values beside it.
    pub(crate) fn of_quantile(self, values: &[(f64, bool)], share: f64) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().map(|(value, _)| *value).collect();
        sorted.sort_by(f64::total_cmp);
        let position = share * sorted.len().saturating_sub(1) as f64;
        let (below, above) = (sorted.get(position.floor() as usize)?, sorted.get(position.ceil() as usize)?);
        let moves = |value: f64| match self {
            Self::AtLeast => value <= *above,
            Self::LessThan => value >= *below,
        };
        values.iter().any(|(value, is_bound)| *is_bound && moves(*value)).then_some(self)
    }

    /// The sign before a value, with a space.
    pub fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => ">= ",
            Self::LessThan => "< ",
        }
    }

    /// Its name in JSON and CSV.
    pub fn key(self) -> &'static str {
        word(&self)
    }
}

/// Whether the value of a metric in a trial is a bound.
pub fn bound_of(metric: Metric, workload: &Workload, trial: &Trial, shared_machine: bool) -> Option<Bound> {
    let is_unknown = |found: Option<(f64, bool)>| found.is_some_and(|(_, known)| !known);
    let is_bound = match metric {
        Metric::NoDropRate | Metric::PartialDropRate => search::is_at_least(metric, workload, trial),
        Metric::RecoveryTime => is_unknown(failover::recovery(workload, trial, shared_machine)),
        Metric::Outage => is_unknown(failover::outage(workload, trial, shared_machine)),
        Metric::Throughput | Metric::DatagramRate => figures::is_silent(workload, trial),
        metric if metric.is_of_round_trips() => figures::has_stalled(workload, trial),
        _ => false,
    };
    is_bound.then(|| Bound::of_values(metric))
}

/// Whether a valid trial has no value of a metric because its result was too bad for one.
pub fn is_too_bad(metric: Metric, workload: &Workload, trial: &Trial, shared_machine: bool) -> bool {
    is_worst(metric, workload, trial, shared_machine)
        && figures::value_of(metric, workload, trial, shared_machine).is_none()
}

/// Whether a missing value of a metric means that the result of a valid trial was the worst there is: nothing arrived of what was sent, no
/// response came, or a search found no rate that meets its goal. Without the trial its arm would look better than it is. Other reasons show no
/// result: a counter that a host does not have, a trial that is too short for one, or a sender that sent nothing.
fn is_worst(metric: Metric, workload: &Workload, trial: &Trial, shared_machine: bool) -> bool {
    let has_cpu_time = || figures::busy_ns(trial, shared_machine).is_some();
    match metric {
        Metric::NoDropRate | Metric::PartialDropRate => search::has_no_rate(metric, workload, trial),
        Metric::Throughput | Metric::DatagramRate | Metric::PacketRate | Metric::Jitter => {
            figures::lost_all(workload, trial)
        }
        Metric::CpuPerGigabyte | Metric::CpuPerDatagram => {
            figures::lost_all(workload, trial) && has_cpu_time()
        }
        Metric::RetransmitsPerGigabyte => {
            figures::lost_all(workload, trial) && figures::retransmits(trial).is_some()
        }
        Metric::CpuPerRoundTrip => figures::has_no_response(trial) && has_cpu_time(),
        Metric::RoundTripRate
        | Metric::LatencyP50
        | Metric::LatencyP99
        | Metric::LatencyP999
        | Metric::LatencyLoadedP50
        | Metric::LatencyLoadedP99 => figures::has_no_response(trial),
        Metric::LatencyIdleP50 => figures::has_no_idle_response(workload, trial),
        Metric::Responsiveness => responsiveness::has_requests(trial),
        // These have a value whenever something was sent.
        Metric::Loss | Metric::Outage | Metric::LostInOutage | Metric::RecoveryTime => false,
    }
}
