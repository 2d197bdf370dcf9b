//! What the live view shows: the state of a run, built from its events. Pure: times come from the caller, nothing is drawn here.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netduel_control::coordinator::traffic_ns;
use netduel_model::attempts;
use netduel_model::event::Event;
use netduel_model::ids::{ArmName, HostName, RunId, WorkloadName};
use netduel_model::metric::{Metric, Scale};
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::sample::LiveFigures;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::warning::Warning;
use netduel_model::workload::Role;
use netduel_report::analysis::{self, Analysis, ArmValues};
use netduel_report::document::verdicts::{Effect, Sides};
use netduel_report::words;
use netduel_report::words::Tone;

use crate::figure::{TrialResult, median_words, trial_value};
use crate::redaction;
use crate::run::estimate::Estimate;
use crate::run::rate::LiveRate;

/// Intervals of a comparison that are kept, to show how it narrows.
const HISTORY_MAX: usize = 200;
/// Live rates of the trial in flight that are kept: one for each half second of the last minutes.
const RATES_MAX: usize = 240;
/// Messages that are kept for the screen; all of them are printed when the view ends.
const MESSAGES_MAX: usize = 200;

/// How a trial ended, for the block grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It enters verdicts.
    Valid,
    /// Its bytes used another path, or the path is not proven.
    WrongPath,
    /// It failed.
    Failed,
}

/// The trial in flight.
#[derive(Debug, Clone)]
pub struct Current {
    /// Where it is in the schedule.
    pub slot: Slot,
    /// When it began, on the caller's clock.
    pub started_ns: u64,
    /// Duration of its traffic.
    pub duration_ns: u64,
    /// Its rate as words.
    pub value: String,
    /// Its rates so far, for a sparkline.
    pub rates: VecDeque<f64>,
    /// Retransmits of both ends so far; absent without TCP.
    pub retransmits: Option<u64>,
    /// Lost datagrams so far; absent without datagrams.
    pub lost: Option<u64>,
    /// Median and 99th percentile of recent round trips, nanoseconds; absent without round trips.
    pub round_trips: Option<[u64; 2]>,
    rate: LiveRate,
    of_ends: [LiveFigures; 2],
}

/// The values of an arm in a metric of a workload.
#[derive(Debug, Clone)]
pub struct Values {
    /// By block, in the metric's unit.
    pub by_block: ArmValues,
    /// The median with its unit, and with a sign where it is a bound; `no value` without one.
    pub median: String,
}

/// A comparison of an arm with the baseline.
#[derive(Debug, Clone)]
pub struct Row {
    /// Workload.
    pub workload: WorkloadName,
    /// Title of the metric.
    pub metric: &'static str,
    /// The arm.
    pub arm: ArmName,
    /// Whether it is the first metric of its workload.
    pub is_headline: bool,
    /// The estimate with its interval, as words; empty without one, and where bounds leave it open.
    pub interval: String,
    /// Centre, low and high end as ratios; absent for differences, without a finite interval, and where bounds leave it open.
    pub ratio: Option<[f64; 3]>,
    /// Widths of the interval after each block: of a ratio as shares of the estimate, of a difference in the metric's unit.
    pub widths: Vec<f64>,
    /// Half of the last width, with its unit; empty without an interval.
    pub half: String,
    /// The verdict as of now.
    pub verdict: String,
    /// Whether it is an improvement.
    pub tone: Tone,
}

/// Counts of an arm over all finished trials.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    /// Retransmitted segments; absent without TCP.
    pub retransmits: Option<u64>,
    /// The largest loss of a trial, a fraction; absent without datagrams and requests in datagrams.
    pub loss_max: Option<f64>,
}

/// The state of a run.
#[derive(Debug)]
pub struct State {
    /// The plan.
    pub plan: ResolvedPlan,
    /// The run's name; absent until it begins.
    pub id: Option<RunId>,
    /// Finished trials, and the most there can be.
    pub done: u32,
    pub total: u32,
    /// How each trial ended.
    pub marks: BTreeMap<(u32, WorkloadName, ArmName), Mark>,
    /// The trial in flight; absent between trials.
    pub current: Option<Current>,
    /// Values in the metrics of the plan.
    pub values: BTreeMap<(WorkloadName, ArmName, Metric), Values>,
    /// The comparisons as of the last block.
    pub rows: Vec<Row>,
    /// Busy share of each core in the last trial, by host.
    pub cpu: BTreeMap<HostName, Vec<f64>>,
    /// Counts by arm.
    pub counts: BTreeMap<ArmName, Counts>,
    /// Newest last.
    pub messages: VecDeque<String>,
    /// How the run ended.
    pub end: Option<RunEnd>,
    /// Whether it is a quick test. With its one trial it has no pause, and leaves nothing to resume when it is stopped.
    pub is_quick_test: bool,
    estimate: Option<Estimate>,
    /// Trials of a resumed run; those of complete blocks count.
    earlier: Vec<Trial>,
    trials: Vec<Trial>,
    widths: BTreeMap<(WorkloadName, &'static str, ArmName), Vec<f64>>,
    /// Complete blocks.
    blocks_done: u32,
    /// Arms that the run no longer tries.
    dropped: BTreeSet<ArmName>,
    /// Whether every interval was as narrow as the plan requires after the last block.
    is_narrow: bool,
}

impl State {
    /// For a run of this plan, or a resumed one with these stored trials.
    pub fn new(plan: &ResolvedPlan, earlier: Vec<Trial>) -> Self {
        Self {
            plan: plan.clone(),
            id: None,
            done: 0,
            total: 0,
            marks: BTreeMap::new(),
            current: None,
            values: BTreeMap::new(),
            rows: Vec::new(),
            cpu: BTreeMap::new(),
            counts: BTreeMap::new(),
            messages: VecDeque::new(),
            end: None,
            is_quick_test: false,
            estimate: None,
            earlier,
            trials: Vec::new(),
            widths: BTreeMap::new(),
            blocks_done: 0,
            dropped: BTreeSet::new(),
            is_narrow: false,
        }
    }

    /// Takes in an event that happened at `now_ns`.
    pub fn apply(&mut self, event: &Event, now_ns: u64) {
        match event {
            Event::Warned { warning: Warning::ArmDropped { arm, .. } } => {
                self.dropped.insert(arm.clone());
            }
            // The lines of the progress are the messages.
            Event::HostReady { .. }
            | Event::AgentRestarting { .. }
            | Event::ProblemFound { .. }
            | Event::Warned { .. } => {}
            Event::RunStarted { id, trials_max, trials_done } => {
                self.id = Some(id.clone());
                self.run_started((*trials_max, *trials_done), now_ns);
            }
            Event::ResourcesChanging { host, change } => self.message(&format!("changing {change} ({host})")),
            Event::TrialStarted { slot, duration_ns } => self.trial_started(slot, *duration_ns, now_ns),
            Event::TrialProgress { role, figures } => self.trial_progress(*role, *figures),
            Event::SearchTries { input } => self.now(&words::search::tries(input)),
            Event::SearchTried { step } => self.now(&words::search::tried(step)),
            Event::TrialFinished { trial } => self.trial_finished(trial),
            Event::BlockFinished { block } => {
                self.blocks_done = block.saturating_add(1);
                self.judge();
            }
            Event::RunFinished { end } => {
                self.current = None;
                self.end = Some(end.clone());
            }
        }
    }

    /// Adds a line to the messages.
    pub fn message(&mut self, text: &str) {
        if self.messages.len() == MESSAGES_MAX {
            self.messages.pop_front();
        }
        self.messages.push_back(words::plain(&redaction::text(text)));
    }

    fn run_started(&mut self, (total, done): (u32, u32), now_ns: u64) {
        (self.total, self.done) = (total, done);
        let used_ns = traffic_ns(&self.plan, &self.earlier);
        self.estimate = Some(Estimate::new(&self.plan, now_ns, used_ns, (done, total)));
        self.blocks_done = done / self.plan.trials_per_block().max(1);
        let earlier = std::mem::take(&mut self.earlier);
        for trial in attempts::of_complete_blocks(&earlier, self.plan.trials_per_block()) {
            self.keep(trial);
        }
        self.judge();
    }

    fn trial_started(&mut self, slot: &Slot, duration_ns: u64, now_ns: u64) {
        let workload = self.plan.arm(&slot.arm).and_then(|arm| arm.workload(&slot.workload));
        let facts = workload.map(|workload| workload.traffic.facts());
        self.current = Some(Current {
            slot: slot.clone(),
            started_ns: now_ns,
            duration_ns,
            value: String::new(),
            rates: VecDeque::new(),
            retransmits: None,
            lost: None,
            round_trips: None,
            rate: LiveRate::new(facts.as_ref(), duration_ns),
            of_ends: [LiveFigures::default(); 2],
        });
    }

    fn trial_progress(&mut self, role: Role, figures: LiveFigures) {
        let Some(current) = &mut self.current else { return };
        current.of_ends[role as usize] = figures;
        let sum = |of: fn(&LiveFigures) -> Option<u64>| {
            current.of_ends.iter().filter_map(of).reduce(u64::saturating_add)
        };
        (current.retransmits, current.lost) = (sum(|ends| ends.retransmits), sum(|ends| ends.lost));
        if let Some(trips) = figures.round_trips {
            current.round_trips = Some([trips.p50_ns, trips.p99_ns]);
        }
        if role == Role::Client
            && let Some(rate) = current.rate.next(figures)
        {
            current.value = rate.words();
            if current.rates.len() == RATES_MAX {
                current.rates.pop_front();
            }
            current.rates.push_back(rate.per_second());
        }
    }

    /// A search shows what it tries in place of a rate.
    fn now(&mut self, text: &str) {
        if let Some(current) = &mut self.current {
            current.value = words::plain(text);
        }
    }

    fn trial_finished(&mut self, trial: &Trial) {
        self.current = None;
        self.done += 1;
        self.keep(trial);
    }

    /// Takes in a finished trial, or one of an earlier part of the run.
    fn keep(&mut self, trial: &Trial) {
        let slot = &trial.slot;
        let mark = match trial.validity {
            Validity::Valid => Mark::Valid,
            Validity::WrongPath { .. } | Validity::PathUnproven { .. } => Mark::WrongPath,
            Validity::Failed { .. } => Mark::Failed,
        };
        self.marks.insert((slot.block, slot.workload.clone(), slot.arm.clone()), mark);
        self.count(trial);
        self.read_cpu(trial);
        if mark == Mark::Valid {
            self.keep_values(trial);
        }
        self.trials.push(trial.clone());
    }

    fn keep_values(&mut self, trial: &Trial) {
        let slot = &trial.slot;
        let workload = self.plan.arm(&slot.arm).and_then(|arm| arm.workload(&slot.workload));
        let Some(workload) = workload else { return };
        let unit = workload.traffic.facts().unit;
        for metric in workload.metrics.iter().copied() {
            let Some(result) = TrialResult::of(&self.plan, trial, metric) else { continue };
            let none = || Values { by_block: ArmValues::new(slot.arm.clone()), median: String::new() };
            let key = (slot.workload.clone(), slot.arm.clone(), metric);
            let known = self.values.entry(key).or_insert_with(none);
            result.keep_in(&mut known.by_block, slot.block);
            known.median = median_words(metric, unit, &known.by_block);
        }
    }

    fn count(&mut self, trial: &Trial) {
        let ends = [&trial.client, &trial.server].into_iter().flatten();
        let streams = ends.flat_map(|end| &end.report.streams);
        let retransmits = streams.filter_map(|stream| stream.tcp.as_ref()?.retransmits).map(u64::from);
        let retransmits = retransmits.reduce(u64::saturating_add);
        let loss = trial_value(&self.plan, trial, Metric::Loss).map(|(loss, _)| loss);
        let counts = self.counts.entry(trial.slot.arm.clone()).or_default();
        counts.retransmits = match (counts.retransmits, retransmits) {
            (Some(all), Some(other)) => Some(all.saturating_add(other)),
            (all, other) => all.or(other),
        };
        counts.loss_max = [counts.loss_max, loss].into_iter().flatten().reduce(f64::max);
    }

    fn read_cpu(&mut self, trial: &Trial) {
        let Some(arm) = self.plan.arm(&trial.slot.arm) else { return };
        for role in [Role::Client, Role::Server] {
            let Some(end) = trial.end(role) else { continue };
            let wall_ns = end.observation.wall_ns;
            let busy = end.observation.cores.iter().map(|core| match core.total_ns(wall_ns) {
                0 => 0.0,
                total => core.busy_ns(wall_ns) as f64 / total as f64,
            });
            let host = self.plan.pair_in(arm, trial.slot.block).host(role);
            self.cpu.insert(host.clone(), busy.collect());
        }
    }

    /// Derives the comparisons from all trials, as the report does.
    fn judge(&mut self) {
        if !self.plan.compares() || self.trials.is_empty() {
            return;
        }
        let analysis = analysis::analyse(&self.plan, None, &self.trials, &[], None);
        self.is_narrow = analysis.precise_enough(|arm| self.dropped.contains(arm));
        self.rows = self.rows_of(&analysis);
    }

    fn rows_of(&mut self, analysis: &Analysis) -> Vec<Row> {
        let mut rows = Vec::new();
        for workload in &analysis.workloads {
            for (index, metric) in workload.judged.iter().enumerate() {
                for comparison in &metric.comparisons {
                    let [judged, estimated] = [comparison.judged.as_ref(), comparison.estimated()];
                    let estimate = estimated.and_then(|judged| judged.estimate.as_ref());
                    let has_bounds = comparison.has_bounds();
                    let effect = words::shown_effect(metric.metric, estimated, has_bounds, Sides::Arms);
                    let ratio = match effect {
                        Effect::Ratio { centre, low, high, .. } => Some([centre, low, high]),
                        Effect::Difference(_) | Effect::Unknown => None,
                    };
                    let ratio = ratio.filter(|ends| ends.iter().all(|end| end.is_finite() && *end > 0.0));
                    let key = (workload.name.clone(), metric.title(), comparison.arm.clone());
                    let widths = self.widths.entry(key).or_default();
                    let width = match metric.metric.scale() {
                        Scale::Ratio => ratio.map(|[centre, low, high]| (high - low) / centre),
                        Scale::Difference => estimate.map(|one| one.high - one.low),
                    };
                    let width = width.filter(|width| width.is_finite());
                    widths.extend(width);
                    let from = widths.len().saturating_sub(HISTORY_MAX);
                    widths.drain(..from);
                    let half = estimate.filter(|_| width.is_some());
                    let half = half.and_then(|one| words::half_width(metric.metric, one));
                    rows.push(Row {
                        workload: workload.name.clone(),
                        metric: metric.title(),
                        arm: comparison.arm.clone(),
                        is_headline: index == 0,
                        interval: effect.words().to_owned(),
                        ratio,
                        widths: widths.clone(),
                        half: half.unwrap_or_default(),
                        verdict: redaction::text(&words::verdict(metric.metric, comparison)),
                        tone: words::tone(metric.metric, judged),
                    });
                }
            }
        }
        rows
    }

    /// Elapsed and remaining time, nanoseconds; absent before the first trial.
    pub fn times_ns(&self, now_ns: u64) -> Option<[u64; 2]> {
        let estimate = self.estimate.as_ref()?;
        Some([estimate.elapsed_ns(now_ns), estimate.left_ns(now_ns, self.done)])
    }

    /// Whether the run ends before its block limit because of its precision: the coordinator applies the same rule before the next block.
    pub fn stops_early(&self) -> bool {
        let design = &self.plan.design;
        self.is_narrow && design.may_stop_early() && self.blocks_done >= design.blocks_min
    }
}
