//! What the events of a failover cost, in JSON: every trial, and the quantiles of outages.
use netduel_model::failover::PathEventKind;
use netduel_model::plan::spec::Side;
use schemars::JsonSchema;
use serde::Serialize;

use super::parts::nanoseconds;
use crate::analysis::{self, ArmFailover, Bound, DirectionFigures, EventFigures, Phase, quantile};

/// The failovers of an arm, all valid trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Failover {
    /// The events of the plan, in order.
    pub events: Vec<FailoverEvent>,
    /// Probes from client to server.
    pub probes_up: ProbeCount,
    /// Probes from server to client.
    pub probes_down: ProbeCount,
    /// Maximum error of one-way delays, of the trials where it is known; 0 where both hosts share a clock.
    pub clock_error_ns: f64,
    /// Trials in which no probe arrived in one direction: the error of the clocks is not known, and they have no one-way delays.
    pub clock_error_unknown_trials: u32,
}

/// Probes of one direction, all trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProbeCount {
    /// Probes sent.
    pub sent: u64,
    /// Probes lost.
    pub lost: u64,
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailoverEvent {
    /// What happens to the path.
    pub kind: PathEventKind,
    /// Time in the plan, after the start of a trial.
    pub at_ns: u64,
    /// On which host.
    pub on: Side,
    /// Interface that the plan names; null for that of the arm.
    pub interface: Option<String>,
    /// When the event began, by the clock of the client, by trial.
    pub began_ns: Vec<u64>,
    /// Duration of the calls to the kernel, by trial.
    pub kernel_ns: Vec<f64>,
    /// From client to server.
    pub client_to_server: ProbeDirection,
    /// From server to client.
    pub server_to_client: ProbeDirection,
}

/// One direction around an event. Lists have one entry per trial.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ProbeDirection {
    /// Quantiles of the outage over the trials.
    pub outage_ns: Quantiles,
    /// What each of these quantiles bounds.
    pub outage_bounds: QuantileBounds,
    /// Longest time without a probe, minus the probe interval.
    pub outage_by_trial_ns: Vec<f64>,
    /// Whether the outage had not ended with the traffic; its value is a minimum then.
    pub outage_open_by_trial: Vec<bool>,
    /// Trials whose outage had not ended with the traffic; their value is a minimum.
    pub outages_open_ended: u32,
    /// The same time before the event: the baseline without an event.
    pub baseline_by_trial_ns: Vec<f64>,
    /// Probes lost.
    pub lost_by_trial: Vec<f64>,
    /// Probes that arrived more than once.
    pub duplicated_by_trial: Vec<f64>,
    /// Probes that arrived after later ones.
    pub reordered_by_trial: Vec<f64>,
    /// One-way delay in the half second before the event.
    pub delay_before_ns: Quantiles,
    /// One-way delay during the outage.
    pub delay_during_ns: Quantiles,
    /// One-way delay in the half second after the outage.
    pub delay_after_ns: Quantiles,
    /// The TCP streams; empty without streams in this direction.
    pub streams_by_trial: Vec<StreamDip>,
}

/// Quantiles; the key names the unit. A value is null without figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Quantiles {
    /// Number of figures.
    pub n: usize,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub max: Option<f64>,
}

/// What quantiles bound: null where a quantile is exact, and without figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct QuantileBounds {
    /// The median.
    pub p50: Option<Bound>,
    /// The 90th percentile.
    pub p90: Option<Bound>,
    /// The 99th percentile.
    pub p99: Option<Bound>,
    /// The maximum.
    pub max: Option<Bound>,
}

/// The rate of the streams of a trial around an event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct StreamDip {
    /// In the half second before the event, at most since the end of all earlier events; null when no interval ended in that time or the reader was stalled.
    pub before_bps: Option<f64>,
    /// Lowest interval of 10 ms that overlaps the half second after it, at most up to the next event; longer where the reader was delayed; null without one.
    pub lowest_bps: Option<f64>,
    /// Steady state: in the second half of the time from the end of the event to the next event; null when that time is below 200 ms or the reader was stalled.
    pub settled_bps: Option<f64>,
    /// From the event to 90 % of the lesser of before and settled, after its last outage of 50 ms; null when the streams did not recover or either is null.
    pub recovery_ns: Option<f64>,
}

impl Failover {
    pub(super) fn of(arm: &ArmFailover) -> Self {
        let probes = |(sent, lost): (u64, u64)| ProbeCount { sent, lost };
        Self {
            events: arm.events.iter().map(FailoverEvent::of).collect(),
            probes_up: probes(arm.probes[0]),
            probes_down: probes(arm.probes[1]),
            clock_error_ns: arm.clock_error_ns,
            clock_error_unknown_trials: arm.clock_unknown,
        }
    }
}

impl FailoverEvent {
    fn of(figures: &EventFigures) -> Self {
        Self {
            kind: figures.event.kind,
            at_ns: figures.event.at.0,
            on: figures.event.on,
            interface: figures.event.interface.clone(),
            began_ns: figures.began_s.iter().copied().map(nanoseconds).collect(),
            kernel_ns: figures.took_ns.clone(),
            client_to_server: ProbeDirection::of(&figures.ways[0]),
            server_to_client: ProbeDirection::of(&figures.ways[1]),
        }
    }
}

impl ProbeDirection {
    fn of(way: &DirectionFigures) -> Self {
        let delay = |phase: Phase| Quantiles::of(&way.delay_ns[phase as usize]);
        Self {
            outage_ns: Quantiles::of(&way.outage_ns),
            outage_bounds: QuantileBounds::of_outage(way),
            outage_by_trial_ns: way.outage_ns.clone(),
            outage_open_by_trial: way.is_open.clone(),
            outages_open_ended: way.open_ended(),
            baseline_by_trial_ns: way.baseline_ns.clone(),
            lost_by_trial: way.lost.clone(),
            duplicated_by_trial: way.duplicated.clone(),
            reordered_by_trial: way.reordered.clone(),
            delay_before_ns: delay(Phase::Before),
            delay_during_ns: delay(Phase::During),
            delay_after_ns: delay(Phase::After),
            streams_by_trial: way.dips.iter().map(StreamDip::of).collect(),
        }
    }
}

impl Quantiles {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share| quantile(&sorted, share);
        Self { n: sorted.len(), p50: at(0.5), p90: at(0.9), p99: at(0.99), max: sorted.last().copied() }
    }
}

impl QuantileBounds {
    fn of_outage(way: &DirectionFigures) -> Self {
        let at = |share| way.outage(share).filter(|(_, is_bound)| *is_bound).map(|_| Bound::AtLeast);
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1.0) }
    }
}

impl StreamDip {
    fn of(dip: &analysis::Dip) -> Self {
        Self {
            before_bps: dip.before_bps,
            lowest_bps: dip.lowest_bps,
            settled_bps: dip.settled_bps,
            recovery_ns: dip.recovery_ns,
        }
    }
}
