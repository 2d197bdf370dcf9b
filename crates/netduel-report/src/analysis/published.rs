//! Values of a run beside figures that others published: which of them a figure is about, and whether they differ from it.
//!
//! A published figure has no spread and its conditions are known in part, so it is a constant: only the interval of the run's own values
//! is set against it. Nothing here says why they differ.
use netduel_model::bed::RunBed;
use netduel_model::ids::{ArmName, HostName, WorkloadName};
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::spec::PathKind;
use netduel_model::plan::{Arm, ResolvedPlan};
use netduel_model::published::{Figure, Measure, Packets, Publication, figures, packets};
use netduel_model::workload::WorkUnit;
use netduel_stats::paired::{self, Estimate};

use super::sizes::common_size;
use super::{Analysis, ArmAnalysis, ArmValues, Bound, MetricAnalysis, WorkloadAnalysis};

/// A run beside the figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnRun<'a> {
    /// What is derived from it.
    pub analysis: &'a Analysis,
    /// Its bed.
    pub bed: Option<&'a RunBed>,
}

/// A published figure, and the values of the runs that it is about.
#[derive(Debug, Clone)]
pub struct PublishedFigure {
    /// The figure.
    pub figure: Published,
    /// The values, by run, workload and arm; empty when no run has any.
    pub values: Vec<PublishedComparison>,
}

/// A row of the tables of published figures.
#[derive(Debug, Clone, Copy)]
pub enum Published {
    /// A metric or another figure.
    Figure(&'static Figure),
    /// A packet rate.
    Packets(&'static Packets),
}

/// The values of an arm of a run against a published figure.
#[derive(Debug, Clone)]
pub struct PublishedComparison {
    /// Position of the run.
    pub run: usize,
    /// The arm.
    pub arm: ArmName,
    /// The workload.
    pub workload: WorkloadName,
    /// The metric.
    pub metric: Metric,
    /// The unit of work of the workload.
    pub unit: WorkUnit,
    /// Usable values.
    pub n: usize,
    /// Hodges-Lehmann estimate of the run's value with its interval, in the unit of the metric; absent without a usable value.
    pub estimate: Option<Estimate>,
    /// What the estimate and its interval bound, because values of the run are bounds: they rise with each value.
    pub bound: Option<Bound>,
    /// Size of the run's hosts; absent where it is unknown or differs between them.
    pub size: Option<String>,
    /// Where the interval lies.
    pub standing: Standing,
}

/// Where the interval of a run lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// Wholly above the published value or range; the estimate relative to its upper end.
    Above(Estimate),
    /// Wholly below it; the estimate relative to its lower end.
    Below(Estimate),
    /// Wholly within the published range.
    WithinRange,
    /// Wholly within this margin of the published value, a fraction.
    Close(f64),
    /// It contains the published value or an end of the range, and is wider than the margin.
    Open,
    /// There are too few values for an interval.
    TooFew,
    /// Values of the run are bounds.
    Bounds,
    /// The source defines its figure in another way than the metric.
    OtherDefinition,
}

impl Published {
    /// Each figure of a publication.
    fn all_of(publication: &Publication) -> Vec<Self> {
        let own = figures().iter().filter(|one| one.publication == publication).map(Self::Figure);
        own.chain(packets().iter().filter(|one| one.publication == publication).map(Self::Packets)).collect()
    }

    /// The source.
    pub fn publication(&self) -> &'static Publication {
        match self {
            Self::Figure(figure) => figure.publication,
            Self::Packets(packets) => packets.publication,
        }
    }

    /// The machine size.
    pub fn size(&self) -> &'static str {
        match self {
            Self::Figure(figure) => &figure.size,
            Self::Packets(packets) => &packets.size,
        }
    }

    /// Tool and conditions.
    pub fn conditions(&self) -> &'static str {
        match self {
            Self::Figure(figure) => &figure.conditions,
            Self::Packets(packets) => &packets.conditions,
        }
    }

    /// The lowest and the highest value; of packets the received rate.
    pub fn range(&self) -> [f64; 2] {
        match self {
            Self::Figure(figure) => [figure.low, figure.high],
            Self::Packets(packets) => [packets.receiver_pps; 2],
        }
    }

    fn is_comparable(&self) -> bool {
        match self {
            Self::Figure(figure) => figure.is_comparable,
            Self::Packets(_) => true,
        }
    }

    /// The metric of a workload's arm that the figure is about.
    fn metric_of<'a>(
        &self,
        run: OwnRun<'_>,
        workload: &'a WorkloadAnalysis,
        arm: &ArmAnalysis,
    ) -> Option<&'a MetricAnalysis> {
        let mut metrics = workload.judged.iter().chain(&workload.unjudged);
        match self {
            Self::Figure(figure) => {
                let Measure::Metric(wanted) = figure.measure else { return None };
                if !is_about(figure, arm, run.analysis, run.bed) {
                    return None;
                }
                metrics.find(|metric| metric.metric == wanted)
            }
            Self::Packets(packets) => {
                // A baseline file has the settings of the workload, and no trial.
                let path = arm.workload.traffic.facts().packets?;
                if path.search.is_some() || path.frame != packets.frame {
                    return None;
                }
                metrics.find(|metric| metric.metric == Metric::DatagramRate && metric.is_packet_rate())
            }
        }
    }
}

/// Sets runs against the figures of publications. The intervals together have this confidence (Bonferroni): all of them can be read at once.
pub(super) fn against(
    publications: &[&'static Publication],
    runs: &[OwnRun<'_>],
    confidence: f64,
    margin: f64,
) -> Vec<PublishedFigure> {
    let found: Vec<(Published, Vec<Found<'_>>)> = publications
        .iter()
        .flat_map(|publication| Published::all_of(publication))
        .map(|figure| (figure, found(figure, runs)))
        .collect();
    let intervals: usize =
        found.iter().filter(|(figure, _)| figure.is_comparable()).map(|(_, values)| values.len()).sum();
    let confidence = 1.0 - (1.0 - confidence) / intervals.max(1) as f64;
    let compared = |(figure, values): (Published, Vec<Found<'_>>)| PublishedFigure {
        figure,
        values: values.iter().map(|one| one.compared(figure, confidence, margin)).collect(),
    };
    found.into_iter().map(compared).collect()
}

/// Values that a figure is about.
struct Found<'a> {
    run: usize,
    size: Option<String>,
    workload: &'a WorkloadName,
    metric: Metric,
    unit: WorkUnit,
    values: &'a ArmValues,
}

fn found<'a>(figure: Published, runs: &[OwnRun<'a>]) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (position, run) in runs.iter().enumerate() {
        let size = common_size(run.analysis);
        for workload in &run.analysis.workloads {
            for arm in &workload.arms {
                let Some(metric) = figure.metric_of(*run, workload, arm) else { continue };
                let Some(values) = metric.arms.iter().find(|values| values.arm == arm.arm) else { continue };
                found.push(Found {
                    run: position,
                    size: size.clone(),
                    workload: &workload.name,
                    metric: metric.metric,
                    unit: metric.unit,
                    values,
                });
            }
        }
    }
    found
}

impl Found<'_> {
    fn compared(&self, figure: Published, confidence: f64, margin: f64) -> PublishedComparison {
        let scale = self.metric.scale();
        let neutral = match scale {
            Scale::Ratio => 1.0,
            Scale::Difference => 0.0,
        };
        let numbers = self.values.numbers();
        let of = |reference: f64| {
            let pairs: Vec<(f64, f64)> = numbers.iter().map(|value| (reference, *value)).collect();
            paired::estimate(&pairs, scale, confidence)
        };
        let estimate = of(neutral);
        let bound = self.values.bound(self.metric);
        let standing = match &estimate {
            _ if !figure.is_comparable() => Standing::OtherDefinition,
            _ if bound.is_some() => Standing::Bounds,
            Some(own) => standing(own, figure.range(), scale, margin, of),
            None => Standing::TooFew,
        };
        PublishedComparison {
            run: self.run,
            arm: self.values.arm.clone(),
            workload: self.workload.clone(),
            metric: self.metric,
            unit: self.unit,
            n: estimate.as_ref().map_or(0, |estimate| estimate.n),
            estimate,
            bound,
            size: self.size.clone(),
            standing,
        }
    }
}

/// Where an interval lies; `of` makes the estimate relative to a value.
fn standing(
    own: &Estimate,
    [low, high]: [f64; 2],
    scale: Scale,
    margin: f64,
    of: impl Fn(f64) -> Option<Estimate>,
) -> Standing {
    if own.high.is_infinite() {
        return Standing::TooFew;
    }
    if own.low > high {
        return of(high).map_or(Standing::Open, Standing::Above);
    }
    if own.high < low {
        return of(low).map_or(Standing::Open, Standing::Below);
    }
    if low < high && own.low >= low && own.high <= high {
        return Standing::WithinRange;
    }
    let is_close = |value: f64| of(value).is_some_and(|relative| relative.lies_within(scale, margin));
    if scale == Scale::Ratio && low.total_cmp(&high).is_eq() && is_close(low) {
        return Standing::Close(margin);
    }
    Standing::Open
}

/// Whether an arm of the run has the path and the traffic of a figure.
pub(crate) fn is_about(
    figure: &Figure,
    arm: &ArmAnalysis,
    analysis: &Analysis,
    bed: Option<&RunBed>,
) -> bool {
    let path = analysis.plan.arm(&arm.arm).and_then(|arm| path(arm, &analysis.plan, bed));
    path == Some(figure.path) && figure.has_traffic_of(&arm.workload)
}

/// The path of an arm: that which it proves, or on a bed that of the NICs of both ends, as the guests showed them when the run began; of a
/// crossover in both halves. Absent where they differ, and where a treatment then takes a virtual function away.
fn path(arm: &Arm, plan: &ResolvedPlan, bed: Option<&RunBed>) -> Option<PathKind> {
    let of_nic = |host: &HostName| {
        let vm = bed?.vm(plan.hosts.get(host)?.vm.as_deref()?)?;
        let seen = vm.nic_in(arm.network?)?.seen.as_ref()?;
        let carries = seen.vf.as_ref().is_some_and(|vf| vf.state.carries());
        Some(if carries { PathKind::Vf } else { PathKind::Synthetic })
    };
    let stays = !arm.treatments.iter().any(|treatment| treatment.action.takes_function());
    let of_all = || {
        let mut paths = plan.hosts_of(arm).map(of_nic);
        let first = paths.next()??;
        (stays && paths.all(|path| path == Some(first))).then_some(first)
    };
    arm.expect_path.or_else(of_all)
}
