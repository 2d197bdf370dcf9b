//! Comparison of stored runs: the same workload of the same arm in several runs, the first of which is the reference.
//!
//! Trials of different runs share no block, so the statistics are those of independent samples. A run is read through its header
//! and its [`Analysis`] only.
mod arm_facts;
mod bed_facts;
mod facts;
mod host_facts;
mod matching;
mod sweeps;

use std::borrow::Cow;
use std::collections::BTreeSet;

use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::published::Publication;
use netduel_model::run::{Run, RunHeader};
use netduel_stats::unpaired::dropped;
use netduel_stats::verdict::{Judged, Rule, UnpairedQuestion, Verdict, judge_unpaired};

use super::published::{self, OwnRun, PublishedFigure};
use super::verdicts::{borne_out, margin};
use super::{Analysis, ArmAnalysis, ArmValues, MetricAnalysis, Withheld, WorkloadAnalysis, is_estimated};

pub use facts::{Aspect, Difference, Fact, Owner, RunFacts};
pub use matching::{Reason, Unmatched};
pub(crate) use sweeps::of_subjects as sweeps_of_subjects;

use matching::Match;

/// Runs set against each other.
#[derive(Debug, Clone)]
pub struct RunComparison<'a> {
    /// The runs; the others are compared with the first.
    pub runs: Vec<ComparedRun<'a>>,
    /// What differs between the runs besides the values.
    pub differences: Vec<Difference>,
    /// What is compared.
    pub subjects: Vec<Subject>,
    /// What is not, with the reasons.
    pub unmatched: Vec<Unmatched>,
    /// Confidence at which the verdicts are tested as one family, a fraction: the highest of the runs. Plans that may stop early are tested
    /// above [`RunComparison::promised_confidence`].
    pub confidence: f64,
    /// The margin of no difference, a fraction: that of the first run.
    pub equivalence: f64,
    /// Published figures beside the values of the runs.
    pub published: Vec<PublishedFigure>,
}

/// A run of a comparison.
#[derive(Debug, Clone)]
pub struct ComparedRun<'a> {
    /// Its label: `A` for the first. Of the type of an arm, because pictures show runs as they show arms.
    pub label: ArmName,
    /// The facts known before its first trial.
    pub header: &'a RunHeader,
    /// What is derived from it.
    pub analysis: &'a Analysis,
}

/// A side of a comparison: a stored run, or a baseline file made of one. It needs no trials: results of other origin can be a side too.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// Name, start, plan and notes.
    pub header: &'a RunHeader,
    /// Values by arm and metric.
    pub analysis: &'a Analysis,
    /// What is known of the run and its hosts; [`differences`](RunComparison::differences) are made from it.
    pub facts: Cow<'a, RunFacts>,
}

impl<'a> Side<'a> {
    /// A stored run.
    pub fn of(run: &'a Run, analysis: &'a Analysis) -> Self {
        Self { header: &run.header, analysis, facts: Cow::Owned(RunFacts::of(run)) }
    }
}

/// A workload of an arm in several runs.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The arm.
    pub arm: ArmName,
    /// Positions of the runs that have it, the first run first.
    pub runs: Vec<usize>,
    /// The workload with these runs in place of arms, called by their labels. Judged are the metrics that the first run judges.
    pub workload: WorkloadAnalysis,
    /// The verdicts, by metric and then by run.
    pub verdicts: Vec<RunVerdict>,
}

impl Subject {
    /// What it is called: `bulk, accelerated`.
    pub fn title(&self) -> String {
        format!("{}, {}", self.workload.name, self.arm)
    }
}

/// A run against the first one in one metric.
#[derive(Debug, Clone)]
pub struct RunVerdict {
    /// The metric.
    pub metric: Metric,
    /// Position of the run.
    pub run: usize,
    /// Usable values of the first run, and of this one.
    pub sizes: [usize; 2],
    /// The smallest relevant difference, as [`super::Comparison::margin`].
    pub margin: f64,
    /// Verdict and interval.
    pub judged: Judged,
    /// Whether values of one of the two runs are bounds, or are missing because they were the worst, as [`super::Comparison::has_bounds`].
    pub has_bounds: bool,
    /// Why there is no verdict although there are enough values.
    pub withheld: Option<Withheld>,
    /// Positions of the differences between these two runs that can cause such a verdict, in ascending order; empty without "higher" or "lower".
    pub explained_by: Vec<usize>,
}

impl RunVerdict {
    /// The verdict, where its estimate says something, as [`super::Comparison::estimated`].
    pub fn estimated(&self) -> Option<&Judged> {
        Some(&self.judged).filter(|judged| is_estimated(judged, self.has_bounds))
    }
}

/// Compares runs with the first one, and the values of each run with the figures of these publications. The order of the runs is kept. With
/// publications one run is enough.
pub fn compare<'a>(sides: &[Side<'a>], publications: &[&'static Publication]) -> RunComparison<'a> {
    let labelled = |(index, side): (usize, &Side<'a>)| {
        Some(ComparedRun { label: label(index)?, header: side.header, analysis: side.analysis })
    };
    let runs: Vec<ComparedRun<'a>> = sides.iter().enumerate().filter_map(labelled).collect();
    let facts: Vec<&RunFacts> = sides.iter().map(|side| side.facts.as_ref()).collect();
    let plans: Vec<Cow<'_, ResolvedPlan>> = runs.iter().map(|one| one.header.plan_without_bed()).collect();
    let plans: Vec<&ResolvedPlan> = plans.iter().map(AsRef::as_ref).collect();
    let (matches, unmatched) = matching::of(&plans);
    let equivalence = plans.first().map_or(0.0, |plan| plan.design.equivalence.fraction());
    let confidence = plans.iter().map(|plan| plan.design.tested_confidence()).fold(0.0, f64::max);
    let mut subjects: Vec<Subject> = matches.into_iter().filter_map(|one| subject(&runs, one)).collect();
    let differences = facts::differences(&facts);
    judge(&mut subjects, &Rule { confidence, equivalence });
    for subject in &mut subjects {
        explain(subject, &differences, &plans);
    }
    let own: Vec<OwnRun<'_>> =
        runs.iter().map(|run| OwnRun { analysis: run.analysis, bed: run.header.bed.as_ref() }).collect();
    let published = published::against(publications, &own, confidence, equivalence);
    RunComparison { runs, differences, subjects, unmatched, confidence, equivalence, published }
}

/// `A` to `Z`, then `run27`.
fn label(index: usize) -> Option<ArmName> {
    let text = match ('A'..='Z').nth(index) {
        Some(letter) => letter.to_string(),
        None => format!("run{}", index + 1),
    };
    ArmName::new(text).ok()
}

/// The workload of an arm with the runs in place of arms; absent when the first run has no figures of it.
fn subject(runs: &[ComparedRun<'_>], one: Match) -> Option<Subject> {
    let Match { arm, workload: name, runs: positions } = one;
    let found: Vec<(usize, &ComparedRun<'_>, &WorkloadAnalysis, &ArmAnalysis)> = positions
        .into_iter()
        .filter_map(|position| {
            let run = runs.get(position)?;
            let workload = run.analysis.workloads.iter().find(|workload| workload.name == name)?;
            Some((position, run, workload, workload.arms.iter().find(|own| own.arm == arm)?))
        })
        .collect();
    let arms: Vec<ArmAnalysis> = found
        .iter()
        .map(|(_, run, _, own)| ArmAnalysis { arm: run.label.clone(), ..(*own).clone() })
        .collect();
    let (_, _, first, _) = found.first()?;
    let metric = |judged: &MetricAnalysis| MetricAnalysis {
        metric: judged.metric,
        unit: judged.unit,
        arms: found
            .iter()
            .map(|(_, run, workload, _)| values(workload, judged.metric, &arm, &run.label))
            .collect(),
        comparisons: Vec::new(),
    };
    let workload = WorkloadAnalysis {
        name,
        arms,
        judged: first.judged.iter().map(metric).collect(),
        unjudged: Vec::new(),
        counters: Vec::new(),
        explanation: Vec::new(),
    };
    let runs = found.iter().map(|(position, ..)| *position).collect();
    Some(Subject { arm, runs, workload, verdicts: Vec::new() })
}

/// The values of a metric on an arm of a run, under the label of the run; none when the run did not measure it.
fn values(workload: &WorkloadAnalysis, metric: Metric, arm: &ArmName, label: &ArmName) -> ArmValues {
    let all = workload.judged.iter().chain(&workload.unjudged);
    let own = all
        .filter(|one| one.metric == metric)
        .flat_map(|one| &one.arms)
        .find(|values| values.arm == *arm)
        .cloned();
    match own {
        Some(own) => ArmValues { arm: label.clone(), ..own },
        None => ArmValues::new(label.clone()),
    }
}

/// Fills in the verdicts. All comparisons are one family.
fn judge(subjects: &mut [Subject], rule: &Rule) {
    let mut questions: Vec<UnpairedQuestion> = Vec::new();
    for subject in subjects.iter() {
        for (metric, first, own, _) in pairs(subject) {
            questions.push(UnpairedQuestion {
                baseline: first.numbers(),
                arm: own.numbers(),
                scale: metric.metric.scale(),
                margin: margin(metric.metric, first, rule.equivalence),
            });
        }
    }
    let mut answers = questions.iter().zip(judge_unpaired(&questions, rule));
    for subject in subjects.iter_mut() {
        let verdicts =
            pairs(subject).zip(&mut answers).map(|((metric, first, own, place), (question, judged))| {
                let ends = [subject.workload.arms.first(), subject.workload.arms.get(place)];
                let contention = metric.metric.is_cpu().then(|| contention(ends)).flatten();
                let at_least = [first, own].map(|values| !values.at_least.is_empty());
                let without = [first, own].map(|values| values.without.len() as u32);
                let (judged, withheld) = borne_out(metric.metric, judged, contention, (at_least, without));
                RunVerdict {
                    metric: metric.metric,
                    run: subject.runs.get(place).copied().unwrap_or_default(),
                    sizes: [&question.baseline, &question.arm]
                        .map(|values| values.len() - dropped(values, question.scale)),
                    margin: question.margin,
                    judged,
                    has_bounds: at_least != [false; 2] || without != [0; 2],
                    withheld,
                    explained_by: Vec::new(),
                }
            });
        let verdicts = verdicts.collect();
        subject.verdicts = verdicts;
    }
}

/// Each metric with the values of the first run and those of another one, and the place of the other one among the runs of the subject.
fn pairs(subject: &Subject) -> impl Iterator<Item = (&MetricAnalysis, &ArmValues, &ArmValues, usize)> {
    subject.workload.judged.iter().flat_map(|metric| {
        let others = metric.arms.iter().enumerate().skip(1);
        let first = metric.arms.first();
        others.filter_map(move |(place, own)| Some((metric, first?, own, place)))
    })
}

/// The largest share of a host's CPU time that other processes used, when so many trials of a run have such that CPU times cannot be
/// compared.
fn contention(ends: [Option<&ArmAnalysis>; 2]) -> Option<f64> {
    ends.into_iter().flatten().filter_map(ArmAnalysis::contention_max).reduce(f64::max)
}

/// Names the differences that can cause the verdicts of a subject.
fn explain(subject: &mut Subject, differences: &[Difference], plans: &[&ResolvedPlan]) {
    let Some(plan) = plans.first() else { return };
    let Some(arm) = plan.arm(&subject.arm) else { return };
    let workload: &WorkloadName = &subject.workload.name;
    let counterpart = plan.counterpart(arm).map(|other| &other.name);
    let is_of_subject = |owner: &Owner| match owner {
        Owner::Run => true,
        Owner::Host(host) => plan.hosts_of(arm).any(|own| own == host),
        Owner::Arm(of) => *of == subject.arm || counterpart == Some(of),
        Owner::Workload(of, its) => *of == subject.arm && its == workload,
    };
    for verdict in &mut subject.verdicts {
        if !matches!(verdict.judged.verdict, Verdict::Higher { .. } | Verdict::Lower { .. }) {
            continue;
        }
        let differs = |one: &Difference| one.values.first() != one.values.get(verdict.run);
        let explains =
            |one: &Difference| one.aspect.may_change_values() && is_of_subject(&one.owner) && differs(one);
        verdict.explained_by =
            differences.iter().enumerate().filter(|(_, one)| explains(one)).map(|(place, _)| place).collect();
    }
}

impl RunComparison<'_> {
    /// Whether every comparison has data: at least one value in both runs, or of one run beside a published figure. False without a
    /// comparison.
    pub fn has_data(&self) -> bool {
        let verdicts = self.subjects.iter().flat_map(|subject| &subject.verdicts);
        let published = self.published.iter().flat_map(|figure| &figure.values);
        let mut have_data = verdicts
            .map(|verdict| !verdict.sizes.contains(&0))
            .chain(published.map(|value| value.n > 0))
            .peekable();
        have_data.peek().is_some() && have_data.all(|has_data| has_data)
    }

    /// The confidence that all runs promise, a fraction: the lowest of their plans.
    pub fn promised_confidence(&self) -> f64 {
        let promised = self.runs.iter().map(|run| run.header.plan.design.confidence.fraction());
        promised.fold(1.0, f64::min)
    }

    /// Whether runs are compared with each other, not only with published figures.
    pub fn is_of_runs(&self) -> bool {
        self.runs.len() > 1
    }

    /// The label of a run.
    pub fn label(&self, run: usize) -> &str {
        self.runs.get(run).map_or("", |run| run.label.as_str())
    }

    /// Positions of the differences that can cause at least one verdict, in ascending order.
    pub fn explaining(&self) -> Vec<usize> {
        let verdicts = self.subjects.iter().flat_map(|subject| &subject.verdicts);
        let places: BTreeSet<usize> =
            verdicts.flat_map(|verdict| verdict.explained_by.iter().copied()).collect();
        places.into_iter().collect()
    }
}

/// The workloads of the arms of the first plan: arm, workload, and positions of the plans that have it with the same settings, the first
/// among them. Plans of runs on beds are those without the names of their beds.
pub(crate) fn same_workloads(plans: &[&ResolvedPlan]) -> Vec<(ArmName, WorkloadName, Vec<usize>)> {
    let (matches, _) = matching::of_first(plans);
    matches.into_iter().map(|one| (one.arm, one.workload, one.runs)).collect()
}

/// Facts that differ between two runs and may change values, in words with both values.
pub(crate) fn changed_facts(before: &RunFacts, after: &RunFacts) -> Vec<String> {
    let differences = facts::differences(&[before, after]).into_iter();
    differences
        .filter(|one| one.aspect.may_change_values())
        .map(|one| format!("{} ({} to {})", one.subject(), one.value(0), one.value(1)))
        .collect()
}
