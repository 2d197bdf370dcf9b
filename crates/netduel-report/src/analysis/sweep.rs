//! Sweeps: packet workloads that differ only in frame size, or arms that differ only in their number of queues.
use netduel_model::ids::ArmName;
use netduel_model::metric::Metric;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};

use super::{ArmAnalysis, ArmPackets, Bound, MetricAnalysis, PacketRates, WorkloadAnalysis};

/// The parameter of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweptBy {
    /// Frame size: workloads from one list of a plan.
    Frames,
    /// Number of queues: arms of one workload.
    Queues,
}

/// Workloads, or arms of one workload, that differ in one parameter.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The parameter.
    pub by: SweptBy,
    /// The common prefix of the workload names, or the name of the only workload.
    pub name: String,
    /// The metric of a rate search; absent for fixed rates. With a search, the points hold its results instead of received rates.
    pub search: Option<Metric>,
    /// The points in the order of the plan; a sweep of frame sizes has one per size and arm.
    pub points: Vec<SweepPoint>,
}

/// One point: a workload on an arm.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// `64 B`, `4 queues`.
    pub label: String,
    /// Frame size, bytes.
    pub frame: u32,
    /// The arm.
    pub arm: ArmName,
    /// Sent rates; absent when no trial has them.
    pub sent: Option<PacketRates>,
    /// Received rates, or the results of the search; absent where the true median of these may be smaller or larger.
    pub received: Option<PacketRates>,
    /// Minimum and maximum over the valid trials of the received mean, packets per second.
    pub range: Option<(f64, f64)>,
    /// What the received median, that minimum and that maximum bound: results of a search may be bounds.
    pub bounds: [Option<Bound>; 3],
}

/// The sweeps of a run.
pub(super) fn of_run(plan: &ResolvedPlan, workloads: &[WorkloadAnalysis]) -> Vec<Sweep> {
    frames(workloads)
        .into_iter()
        .chain(workloads.iter().filter_map(|workload| queues(plan, workload)))
        .collect()
}

/// The packets of an arm with traffic in one direction.
fn only(arm: &ArmAnalysis) -> Option<&ArmPackets> {
    match arm.packets.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// The metric that a workload searches for; absent without a search.
fn searched(workload: &WorkloadAnalysis) -> Option<&MetricAnalysis> {
    workload.arms.iter().find(|arm| arm.search.is_some())?;
    let metrics = workload.judged.iter().chain(&workload.unjudged);
    metrics.into_iter().find(|metric| matches!(metric.metric, Metric::NoDropRate | Metric::PartialDropRate))
}

fn point(label: String, workload: &WorkloadAnalysis, arm: &ArmAnalysis, packets: &ArmPackets) -> SweepPoint {
    let found = searched(workload).map(|metric| {
        let values = metric.arms.iter().find(|values| values.arm == arm.arm);
        let trials = values.map_or(0, |values| values.values.len() as u32);
        (trials, [0.5, 0.0, 1.0].map(|share| values?.quantile(metric.metric, share)))
    });
    let value = |(value, _): (f64, Option<Bound>)| value;
    let of_search =
        |trials: u32, median: f64| PacketRates { trials, median, intervals: 0, min: None, max: None };
    let (sent, received, range, bounds) = match found {
        Some((trials, quantiles)) => {
            let [median, low, high] = quantiles.map(|quantile| quantile.map(value));
            let received = median.map(|median| of_search(trials, median));
            (None, received, low.zip(high), quantiles.map(|quantile| quantile.and_then(|(_, bound)| bound)))
        }
        None => (packets.sent, packets.received, packets.received_range, [None; 3]),
    };
    SweepPoint { label, frame: packets.path.frame, arm: arm.arm.clone(), sent, received, range, bounds }
}

/// The name of a workload from a list without its frame size.
fn stem(workload: &WorkloadAnalysis) -> Option<String> {
    let frame = only(workload.arms.first()?)?.path.frame;
    workload.name.as_str().strip_suffix(&format!("-{frame}")).map(str::to_owned)
}

/// The sweeps over frame sizes of these workloads.
pub(super) fn frames<'a>(workloads: impl IntoIterator<Item = &'a WorkloadAnalysis>) -> Vec<Sweep> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    for workload in workloads {
        let Some(name) = stem(workload) else { continue };
        let points = workload.arms.iter().filter_map(|arm| {
            let packets = only(arm)?;
            Some(point(format!("{} B", packets.path.frame), workload, arm, packets))
        });
        if let Some(sweep) = sweeps.iter_mut().find(|sweep| sweep.name == name) {
            sweep.points.extend(points);
        } else {
            let search = searched(workload).map(|metric| metric.metric);
            sweeps.push(Sweep { by: SweptBy::Frames, name, search, points: points.collect() });
        }
    }
    sweeps.retain(|sweep| sweep.points.iter().any(|point| point.frame != sweep.points[0].frame));
    sweeps
}

/// Number of queues of an arm: of its engines, or from a treatment.
fn queues_of(planned: Option<&Arm>, packets: &ArmPackets) -> Option<u32> {
    let treated = |arm: &Arm| {
        arm.treatments.iter().find_map(|treatment| match treatment.action {
            TreatmentAction::Queues { queues, .. } => Some(queues),
            _ => None,
        })
    };
    packets.path.queues.or_else(|| planned.and_then(treated))
}

/// An arm, or a run of it, with its number of queues.
pub(super) fn queue_point(
    planned: Option<&Arm>,
    workload: &WorkloadAnalysis,
    arm: &ArmAnalysis,
) -> Option<(u32, SweepPoint)> {
    let packets = only(arm)?;
    let queues = queues_of(planned, packets)?;
    let label = if queues == 1 { "1 queue".to_owned() } else { format!("{queues} queues") };
    Some((queues, point(label, workload, arm, packets)))
}

/// The sweep over the arms of a workload with different numbers of queues.
fn queues(plan: &ResolvedPlan, workload: &WorkloadAnalysis) -> Option<Sweep> {
    let points = workload.arms.iter().filter_map(|arm| queue_point(plan.arm(&arm.arm), workload, arm));
    of_queues(workload, points.collect())
}

/// A sweep of these points; absent when all have the same number of queues.
pub(super) fn of_queues(workload: &WorkloadAnalysis, points: Vec<(u32, SweepPoint)>) -> Option<Sweep> {
    let (first, _) = points.first()?;
    let differ = points.iter().any(|(queues, _)| queues != first);
    differ.then(|| Sweep {
        by: SweptBy::Queues,
        search: searched(workload).map(|metric| metric.metric),
        name: workload.name.to_string(),
        points: points.into_iter().map(|(_, point)| point).collect(),
    })
}
