//! Workloads of packets that differ in one thing only, seen together: sizes of frames, or numbers of queues.
use netduel_model::ids::ArmName;
use netduel_model::metric::Metric;
use netduel_model::plan::{Arm, ResolvedPlan, TreatmentAction};
use netduel_stats::summary;

use super::{ArmAnalysis, ArmPackets, MetricAnalysis, PacketRates, WorkloadAnalysis};

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweptBy {
    /// The size of frames, from one list of a plan.
    Frames,
    /// The number of queues, from arm to arm.
    Queues,
}

/// Several workloads, or several arms of one.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// What differs.
    pub by: SweptBy,
    /// What they have in common: the beginning of their names, or the workload's.
    pub name: String,
    /// What searches looked for, where that is what the points are of: their rates are the results then, not what was received.
    pub search: Option<Metric>,
    /// Each, in the order of the plan; of sizes those of all arms.
    pub points: Vec<SweepPoint>,
}

/// One workload on one arm.
#[derive(Debug, Clone)]
pub struct SweepPoint {
    /// `64 B`, `4 queues`.
    pub label: String,
    /// Size of its frames, bytes.
    pub frame: u32,
    /// Which arm.
    pub arm: ArmName,
    /// What was sent; absent when no trial tells.
    pub sent: Option<PacketRates>,
    /// What was received.
    pub received: Option<PacketRates>,
    /// Smallest and largest mean of a valid trial, received, pps.
    pub range: Option<(f64, f64)>,
}

/// The sweeps of a run; empty where nothing was swept.
pub(super) fn of_run(plan: &ResolvedPlan, workloads: &[WorkloadAnalysis]) -> Vec<Sweep> {
    frames(workloads)
        .into_iter()
        .chain(workloads.iter().filter_map(|workload| queues(plan, workload)))
        .collect()
}

/// The one direction of an arm's packets.
fn only(arm: &ArmAnalysis) -> Option<&ArmPackets> {
    match arm.packets.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// The rates that a workload searches for; absent where it does not search.
fn searched(workload: &WorkloadAnalysis) -> Option<&MetricAnalysis> {
    workload.arms.iter().find(|arm| arm.search.is_some())?;
    let metrics = workload.judged.iter().chain(&workload.unjudged);
    metrics.into_iter().find(|metric| matches!(metric.metric, Metric::NoDropRate | Metric::PartialDropRate))
}

fn point(label: String, workload: &WorkloadAnalysis, arm: &ArmAnalysis, packets: &ArmPackets) -> SweepPoint {
    let found = searched(workload).map(|metric| {
        let values = metric.arms.iter().find(|values| values.arm == arm.arm);
        values.map(super::ArmValues::numbers).unwrap_or_default()
    });
    let extremes = |values: &[f64]| {
        let low = values.iter().copied().reduce(f64::min);
        low.zip(values.iter().copied().reduce(f64::max))
    };
    let (sent, received, range) = match &found {
        Some(values) => (None, of_values(values), extremes(values)),
        None => (packets.sent, packets.received, packets.received_range),
    };
    SweepPoint { label, frame: packets.path.frame, arm: arm.arm.clone(), sent, received, range }
}

/// The median of what searches found.
fn of_values(values: &[f64]) -> Option<PacketRates> {
    let trials = values.len() as u32;
    Some(PacketRates { trials, median: summary::median(values)?, intervals: 0, min: None, max: None })
}

/// The name that a workload of a list has without the size of its frames.
fn stem(workload: &WorkloadAnalysis) -> Option<String> {
    let frame = only(workload.arms.first()?)?.path.frame;
    workload.name.as_str().strip_suffix(&format!("-{frame}")).map(str::to_owned)
}

fn frames(workloads: &[WorkloadAnalysis]) -> Vec<Sweep> {
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

/// Queues of an arm: those that its engines drive, or those that a treatment gives its interfaces.
fn queues_of(plan: &ResolvedPlan, arm: &ArmAnalysis, packets: &ArmPackets) -> Option<u32> {
    let treated = |arm: &Arm| {
        arm.treatments.iter().find_map(|treatment| match treatment.action {
            TreatmentAction::Queues { queues, .. } => Some(queues),
            _ => None,
        })
    };
    packets.path.queues.or_else(|| plan.arm(&arm.arm).and_then(treated))
}

/// The arms of a workload that differ in their queues.
fn queues(plan: &ResolvedPlan, workload: &WorkloadAnalysis) -> Option<Sweep> {
    let told: Vec<(u32, SweepPoint)> = workload
        .arms
        .iter()
        .filter_map(|arm| {
            let packets = only(arm)?;
            let queues = queues_of(plan, arm, packets)?;
            let label = if queues == 1 { "1 queue".to_owned() } else { format!("{queues} queues") };
            Some((queues, point(label, workload, arm, packets)))
        })
        .collect();
    let differ = told.iter().any(|(queues, _)| *queues != told[0].0);
    differ.then(|| Sweep {
        by: SweptBy::Queues,
        search: searched(workload).map(|metric| metric.metric),
        name: workload.name.to_string(),
        points: told.into_iter().map(|(_, point)| point).collect(),
    })
}
