//! Progress of a run on standard error: bars on a terminal, plain lines elsewhere.
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use netduel_control::coordinator::traffic_ns;
use netduel_model::attempts;
use netduel_model::event::Event;
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::sample::LiveFigures;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::workload::{Role, WorkUnit};
use netduel_report::analysis::ArmValues;
use netduel_report::words;
use netduel_sys::clock::monotonic_ns;

use super::estimate::Estimate;
use super::lines::{Standing, fit, run_line};
use super::rate::LiveRate;
use crate::console::{has_control_sequences, message, tell};
use crate::figure::{TrialResult, median_words, trial_value};
use crate::redaction;

/// Assumed width of a terminal that does not report its own.
const WIDTH_DEFAULT: usize = 80;

/// Interval at which the bars are redrawn without an event.
const TICK: Duration = Duration::from_millis(500);

/// Shows the trial in flight, the progress of the run, and the current medians.
pub struct Progress {
    bars: Option<Bars>,
    /// Whether each trial is printed as a line.
    has_trial_lines: bool,
    /// Warnings and failures only.
    quiet: bool,
    plan: ResolvedPlan,
    /// Trials of a resumed run; those of complete blocks count.
    earlier: Vec<Trial>,
    done: u32,
    total: u32,
    estimate: Option<Estimate>,
    figures: BTreeMap<(WorkloadName, ArmName), ArmValues>,
    /// The rate of the trial in flight.
    rate: LiveRate,
    /// Columns of the longest names of workloads and arms.
    widths: (usize, usize),
    /// Block, workload and arm of the trial in flight.
    trial: String,
}

/// Where the trial in flight is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// In bars below the lines.
    Bars,
    /// Nowhere: a line is printed for each finished trial.
    Lines,
    /// In the live view.
    Elsewhere,
}

impl Display {
    /// Bars when standard error is a terminal that moves its cursor.
    pub fn of_stderr(quiet: bool) -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr()) && has_control_sequences();
        if terminal && !quiet { Self::Bars } else { Self::Lines }
    }
}

struct Bars {
    all: MultiProgress,
    run: ProgressBar,
    trial: ProgressBar,
    figures: ProgressBar,
    /// Dropping it ends the thread that redraws the bars.
    _ticker: Sender<()>,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        // Lines are already formatted to the width: a template wider than the terminal would wrap.
        let style =
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let add = || all.add(ProgressBar::new_spinner().with_style(style.clone()));
        let (figures, trial, run) = (add(), add(), add());
        let (ticker, ended) = channel::<()>();
        let ticking = run.clone();
        // Without a thread for it the bars change with the next event.
        drop(Builder::new().name("progress".to_owned()).spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                ticking.tick();
            }
        }));
        Self { all, run, trial, figures, _ticker: ticker }
    }

    fn width() -> usize {
        terminal_size::terminal_size_of(std::io::stderr())
            .map_or(WIDTH_DEFAULT, |(width, _)| usize::from(width.0))
    }
}

impl Progress {
    /// For a run of this plan with these stored trials.
    pub fn new(plan: &ResolvedPlan, earlier: Vec<Trial>, quiet: bool, display: Display) -> Self {
        Self {
            bars: (display == Display::Bars).then(Bars::new),
            has_trial_lines: display == Display::Lines,
            quiet,
            plan: plan.clone(),
            earlier,
            done: 0,
            total: 0,
            estimate: None,
            figures: BTreeMap::new(),
            rate: LiveRate::default(),
            widths: (
                plan.workloads.iter().map(|name| name.as_str().len()).max().unwrap_or(0),
                plan.arms.iter().map(|arm| arm.name.as_str().len()).max().unwrap_or(0),
            ),
            trial: String::new(),
        }
    }

    /// Shows an event.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::HostReady { host } => self.line(&format!("host {host} is ready")),
            Event::AgentRestarting { reason, number, number_max, .. } => {
                self.important(&format!("{reason}; starting its agent again ({number} of {number_max})"));
            }
            Event::ProblemFound { text } => self.important(text),
            Event::ResourcesChanging { host, change } => self.line(&format!("changing {change} ({host})")),
            Event::RunStarted { id, trials_max, trials_done } => {
                let again = self.words_of_earlier(*trials_done);
                self.run_started(*trials_max, *trials_done);
                self.line(&format!("run {id}: at most {trials_max} trials{again}"));
                self.show_figures();
                self.show_run();
            }
            Event::TrialStarted { slot, .. } => self.trial_started(slot),
            Event::TrialProgress { role, figures } => self.trial_progress(*role, *figures),
            Event::SearchTries { input } => {
                self.rate.restart();
                self.now(&words::search::tries(input));
            }
            Event::SearchTried { step } => {
                let tried = words::search::tried(step);
                self.now(&tried);
                if self.has_trial_lines {
                    self.line(&format!("  {tried}"));
                }
            }
            Event::TrialFinished { trial } => self.trial_finished(trial),
            // The closing lines state how the run ended; of a failed one the error does, with its remedy.
            Event::BlockFinished { .. } | Event::RunFinished { .. } => {}
            Event::Warned { warning } => self.important(&format!("warning: {warning}")),
        }
    }

    /// Removes the bars from the terminal.
    pub fn close(self) {
        if let Some(bars) = self.bars {
            bars.run.finish_and_clear();
            bars.trial.finish_and_clear();
            bars.figures.finish_and_clear();
            // Nothing is left to draw; an error here could only come from the terminal.
            drop(bars.all.clear());
        }
    }

    /// What a resumed run has and repeats: an incomplete block is repeated as a whole.
    fn words_of_earlier(&self, done: u32) -> String {
        let repeated = attempts::counting(&self.earlier).count().saturating_sub(done as usize);
        match (done, repeated) {
            (0, 0) => String::new(),
            (done, 0) => format!(", {done} done before"),
            (done, repeated) => format!(
                ", {done} done before; the {repeated} of incomplete blocks {} repeated",
                if repeated == 1 { "is" } else { "are" }
            ),
        }
    }

    fn run_started(&mut self, total: u32, done: u32) {
        (self.total, self.done) = (total, done);
        let used_ns = traffic_ns(&self.plan, &self.earlier);
        self.estimate = Some(Estimate::new(&self.plan, monotonic_ns(), used_ns, (done, total)));
        let earlier = std::mem::take(&mut self.earlier);
        for trial in attempts::of_complete_blocks(&earlier, self.plan.trials_per_block()) {
            if trial.is_valid() {
                self.keep_figure(trial);
            }
        }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.important(text);
        }
    }

    fn important(&self, text: &str) {
        match &self.bars {
            // Above the bars. `suspend` of the bars would panic on a terminal that has hung up; the run matters more than its display.
            Some(bars) => drop(bars.all.println(message(text))),
            None => tell(text),
        }
    }

    fn trial_started(&mut self, slot: &Slot) {
        let workload = self.plan.arm(&slot.arm).and_then(|arm| arm.workload(&slot.workload));
        let facts = workload.map(|workload| workload.traffic.facts());
        let duration_ns = workload.map_or(0, |workload| workload.timing.duration.0);
        self.rate = LiveRate::new(facts.as_ref(), duration_ns);
        self.trial = format!("block {}: {} over {}", slot.block + 1, slot.workload, slot.arm);
        self.now("");
    }

    fn trial_progress(&mut self, role: Role, figures: LiveFigures) {
        if self.bars.is_none() {
            return;
        }
        if role == Role::Client
            && let Some(rate) = self.rate.next(figures)
        {
            self.now(&rate.words());
            self.show_run();
        }
    }

    /// Shows the trial in flight with its current value.
    fn now(&self, text: &str) {
        let Some(bars) = &self.bars else { return };
        let line = words::plain(&redaction::text(&format!("  now     {}  {text}", self.trial)));
        bars.trial.set_message(fit(line.trim_end(), Bars::width()));
    }

    fn trial_finished(&mut self, trial: &Trial) {
        self.done = self.done.saturating_add(1);
        let slot = &trial.slot;
        let metric = self.headline_metric(&slot.workload, &slot.arm);
        let value = metric.and_then(|metric| trial_value(&self.plan, trial, metric));
        if trial.is_valid() {
            self.keep_figure(trial);
        }
        let outcome = match (&trial.validity, metric, value) {
            (Validity::Valid, Some(metric), Some((value, bound))) => {
                let unit = self.unit(&slot.workload, &slot.arm);
                format!(
                    "{} {}",
                    metric.title_in(unit),
                    words::metric_value_or_bound(metric, unit, value, bound)
                )
            }
            (Validity::Valid, ..) => "no figure".to_owned(),
            (Validity::WrongPath { reason }, ..) => format!("excluded, wrong path: {reason}"),
            (Validity::PathUnproven { reason }, ..) => format!("excluded, path not proven: {reason}"),
            (Validity::Failed { reason }, ..) => format!("failed: {reason}"),
        };
        let (workload, arm) = self.widths;
        if self.has_trial_lines || !trial.is_valid() {
            self.line(&format!(
                "trial {:>3}/{}  block {:>2}  {:<workload$} {:<arm$}  {outcome}",
                self.done,
                self.total,
                slot.block + 1,
                slot.workload.as_str(),
                slot.arm.as_str()
            ));
        }
        self.show_figures();
        self.show_run();
    }

    /// Adds the result of a valid trial in its headline metric to those of its arm.
    fn keep_figure(&mut self, trial: &Trial) {
        let slot = &trial.slot;
        let metric = self.headline_metric(&slot.workload, &slot.arm);
        if let Some(result) = metric.and_then(|metric| TrialResult::of(&self.plan, trial, metric)) {
            let key = (slot.workload.clone(), slot.arm.clone());
            let known = self.figures.entry(key).or_insert_with(|| ArmValues::new(slot.arm.clone()));
            result.keep_in(known, slot.block);
        }
    }

    /// The headline metric of a workload is its first metric.
    fn headline_metric(&self, workload: &WorkloadName, arm: &ArmName) -> Option<Metric> {
        self.plan.arm(arm)?.workload(workload)?.metrics.first().copied()
    }

    fn unit(&self, workload: &WorkloadName, arm: &ArmName) -> WorkUnit {
        let settings = self.plan.arm(arm).and_then(|arm| arm.workload(workload));
        settings.map_or(WorkUnit::Byte, |settings| settings.traffic.facts().unit)
    }

    fn show_figures(&self) {
        let Some(bars) = &self.bars else { return };
        let width = Bars::width();
        let mut lines = Vec::new();
        for workload in &self.plan.workloads {
            let arms: Vec<String> =
                self.plan.arms.iter().filter_map(|arm| self.so_far(workload, &arm.name)).collect();
            if !arms.is_empty() {
                let line = redaction::text(&format!("  median  {workload}: {}", arms.join(", ")));
                lines.push(fit(&line, width));
            }
        }
        bars.figures.set_message(lines.join("\n"));
    }

    /// The current median of an arm in the headline metric of a workload.
    fn so_far(&self, workload: &WorkloadName, arm: &ArmName) -> Option<String> {
        let values = self.figures.get(&(workload.clone(), arm.clone()))?;
        let metric = self.headline_metric(workload, arm)?;
        let median = median_words(metric, self.unit(workload, arm), values);
        Some(format!("{arm} {median} (n {})", values.values.len()))
    }

    fn show_run(&self) {
        let (Some(bars), Some(estimate)) = (&self.bars, &self.estimate) else { return };
        let now_ns = monotonic_ns();
        let standing = Standing {
            done: self.done,
            total: self.total,
            elapsed_s: estimate.elapsed_ns(now_ns) / 1_000_000_000,
            left_s: estimate.left_ns(now_ns, self.done).div_ceil(1_000_000_000),
        };
        bars.run.set_message(run_line(standing, Bars::width()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use netduel_control::schedule;
    use netduel_model::ids::RunId;
    use netduel_store::Store;

    use super::*;
    use crate::figure::lose_all;

    #[test]
    fn median_counts_trials_whose_result_was_too_bad_for_a_value() {
        let golden = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../netduel-store/tests/golden/format-2-real-treatments.netduel"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let mut run = Store::open(folder.path()).and_then(|store| store.read(golden)).expect("a run");
        for workload in run.header.plan.arms.iter_mut().flat_map(|arm| &mut arm.workloads) {
            workload.metrics = vec![Metric::Jitter];
        }
        let is_valid = |trial: &&Trial| trial.is_valid() && trial.slot.workload.as_str() == "udp";
        let valid = run.trials.iter().find(is_valid).expect("a valid trial");
        let mut progress = Progress::new(&run.header.plan, Vec::new(), true, Display::Lines);
        let mut median = |block: u32, is_lost: bool| {
            let mut trial = valid.clone();
            trial.slot.block = block;
            if is_lost {
                lose_all(&mut trial);
            }
            progress.event(&Event::TrialFinished { trial: Box::new(trial) });
            progress.so_far(&valid.slot.workload, &valid.slot.arm).expect("a result")
        };
        let arm = &valid.slot.arm;
        assert_eq!(median(0, true), format!("{arm} no value (n 0)"));
        let shown = median(1, false);
        assert!(shown.starts_with(&format!("{arm} >= ")) && shown.ends_with(" (n 1)"), "{shown}");
    }

    #[test]
    fn resumed_run_starts_with_the_figures_of_its_complete_blocks() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../netduel-store/tests/golden/format-2.netduel");
        let folder = tempfile::tempdir().expect("a folder");
        let run = Store::open(folder.path()).and_then(|store| store.read(golden)).expect("a run");
        let plan = &run.header.plan;
        let headline = |trial: &Trial| {
            let workload = plan.arm(&trial.slot.arm)?.workload(&trial.slot.workload)?;
            trial_value(plan, trial, *workload.metrics.first()?)
        };
        let valid = run.trials.iter().find(|trial| trial.is_valid() && headline(trial).is_some());
        let trial = valid.expect("a trial with a figure");
        let of = |block: u32, attempt: u32| {
            let slots = schedule::block(plan, 1, block).into_iter();
            slots.map(|slot| Trial { slot, attempt, ..trial.clone() }).collect::<Vec<Trial>>()
        };
        // Block 0 has two attempts, block 1 a damaged record, block 2 is complete, block 3 was interrupted. Two of them will be repeated.
        let (mut damaged, mut interrupted) = (of(1, 0), of(3, 0));
        damaged.remove(0);
        interrupted.pop();
        let earlier = [of(0, 0), of(0, 1), damaged, of(2, 0), interrupted].concat();
        let per_block = plan.trials_per_block();
        let mut progress = Progress::new(plan, earlier, true, Display::Lines);
        progress.event(&Event::RunStarted {
            id: RunId::new("x").expect("a name"),
            trials_max: 10 * per_block,
            trials_done: 2 * per_block,
        });
        let blocks_of = |values: &ArmValues| values.values.iter().map(|(block, _)| *block).collect();
        let blocks: BTreeSet<Vec<u32>> = progress.figures.values().map(blocks_of).collect();
        assert_eq!((blocks, progress.done), ([vec![0, 2]].into(), 2 * per_block));
        let shown = progress.so_far(&trial.slot.workload, &trial.slot.arm).expect("a median");
        assert!(shown.ends_with("(n 2)"), "{shown}");
        let estimate = progress.estimate.as_ref().expect("an estimate");
        assert!(estimate.left_ns(monotonic_ns(), progress.done) > 0);
    }
}
