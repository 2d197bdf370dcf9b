//! Progress of a run on standard error: bars on a terminal, plain lines elsewhere.
use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use netduel_model::event::Event;
use netduel_model::ids::{ArmName, WorkloadName};
use netduel_model::metric::Metric;
use netduel_model::plan::ResolvedPlan;
use netduel_model::run::RunEnd;
use netduel_model::sample::LiveFigures;
use netduel_model::trial::{Slot, Trial, Validity};
use netduel_model::units::{human_bit_rate, human_si};
use netduel_model::workload::Role;
use netduel_report::words;

use crate::figure::trial_value;

/// Shows what a run does now, what is done and left, and the figures so far.
pub struct Progress {
    bars: Option<Bars>,
    plan: ResolvedPlan,
    done: u32,
    total: u32,
    figures: BTreeMap<(WorkloadName, ArmName), Vec<f64>>,
    previous: LiveFigures,
    /// Payload of a packet of the trial under way, bytes, when packets are what it is about.
    packet_bytes: Option<u64>,
}

struct Bars {
    all: MultiProgress,
    run: ProgressBar,
    trial: ProgressBar,
    figures: ProgressBar,
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let style = |template: &str| {
            ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> ")
        };
        let figures = all.add(ProgressBar::new_spinner().with_style(style("  {msg}")));
        let trial = all.add(ProgressBar::new(1).with_style(style("  now   {msg}")));
        let run = all.add(
            ProgressBar::new(1)
                .with_style(style("  [{bar:30}] {pos} of at most {len} trials, {elapsed} gone, {msg} left")),
        );
        run.enable_steady_tick(Duration::from_millis(500));
        Self { all, run, trial, figures }
    }
}

impl Progress {
    /// For a run of this plan. Bars are drawn when standard error is a terminal.
    pub fn new(plan: &ResolvedPlan) -> Self {
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Self {
            bars: terminal.then(Bars::new),
            plan: plan.clone(),
            done: 0,
            total: 0,
            figures: BTreeMap::new(),
            previous: LiveFigures::default(),
            packet_bytes: None,
        }
    }

    /// Takes note of something that happened.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::HostReady { host } => self.line(&format!("host {host} is ready")),
            Event::ProblemFound { text } => self.line(text),
            Event::RunStarted { id, trials_max, trials_done } => {
                self.total = *trials_max;
                self.done = *trials_done;
                let again =
                    if *trials_done > 0 { format!(", {trials_done} done before") } else { String::new() };
                self.line(&format!("run {id}: at most {trials_max} trials{again}"));
                self.show_run();
            }
            Event::TrialStarted { slot, .. } => self.trial_started(slot),
            Event::TrialProgress { role, figures } => self.trial_progress(*role, *figures),
            Event::SearchTries { ask } => {
                self.previous = LiveFigures::default();
                self.now(&words::search::tries(ask));
            }
            Event::SearchTried { step } => {
                let tried = words::search::tried(step);
                self.now(&tried);
                if self.bars.is_none() {
                    self.line(&format!("  {tried}"));
                }
            }
            Event::TrialFinished { trial } => self.trial_finished(trial),
            Event::BlockFinished { .. } => {}
            Event::Warned { warning } => self.line(&format!("warning: {warning}")),
            Event::RunFinished { end } => self.line(&ended(end)),
        }
    }

    /// Takes the bars off the terminal.
    pub fn close(self) {
        if let Some(bars) = self.bars {
            bars.run.finish_and_clear();
            bars.trial.finish_and_clear();
            bars.figures.finish_and_clear();
            // Nothing is left to draw; an error here could only be the terminal's.
            drop(bars.all.clear());
        }
    }

    fn line(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.all.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn trial_started(&mut self, slot: &Slot) {
        self.previous = LiveFigures::default();
        self.packet_bytes = self.packet_bytes(slot);
        if let Some(bars) = &self.bars {
            bars.trial.set_message(format!("block {}: {} over {}", slot.block + 1, slot.workload, slot.arm));
        }
    }

    fn packet_bytes(&self, slot: &Slot) -> Option<u64> {
        self.plan.arm(&slot.arm)?.workload(&slot.workload)?.traffic.facts().packet_bytes()
    }

    fn trial_progress(&mut self, role: Role, figures: LiveFigures) {
        if self.bars.is_none() {
            return;
        }
        let seconds = figures.elapsed_ns.saturating_sub(self.previous.elapsed_ns) as f64 / 1e9;
        let bytes = figures.received_bytes.max(figures.sent_bytes);
        if role == Role::Client && seconds > 0.0 {
            let rate =
                bytes.saturating_sub(self.previous.received_bytes.max(self.previous.sent_bytes)) as f64;
            let messages = figures.messages.saturating_sub(self.previous.messages) as f64;
            let text = if let Some(packet) = self.packet_bytes {
                words::packet_rate(rate / packet as f64 / seconds)
            } else if messages > 0.0 {
                human_si(messages / seconds, "/s")
            } else {
                human_bit_rate(rate * 8.0 / seconds)
            };
            self.now(&text);
            self.previous = figures;
        }
    }

    /// Says what the trial does now, after its name.
    fn now(&self, text: &str) {
        let Some(bars) = &self.bars else { return };
        let head = bars.trial.message();
        let head = head.split("  ").next().unwrap_or_default().to_owned();
        bars.trial.set_message(format!("{head}  {text}"));
    }

    fn trial_finished(&mut self, trial: &Trial) {
        self.done += 1;
        let slot = &trial.slot;
        let metric = self.headline_metric(&slot.workload, &slot.arm);
        let value = metric.and_then(|metric| trial_value(&self.plan, trial, metric));
        let outcome = match (&trial.validity, metric, value) {
            (Validity::Valid, Some(metric), Some(value)) => {
                self.figures.entry((slot.workload.clone(), slot.arm.clone())).or_default().push(value);
                let packets = self.is_of_packets(&slot.workload, &slot.arm);
                format!(
                    "{} {}",
                    words::metric_title(metric, packets),
                    words::metric_value(metric, packets, value)
                )
            }
            (Validity::Valid, ..) => "no figure".to_owned(),
            (Validity::WrongPath { reason }, ..) => format!("left out, wrong path: {reason}"),
            (Validity::Failed { reason }, ..) => format!("failed: {reason}"),
        };
        if self.bars.is_none() || !trial.is_valid() {
            self.line(&format!(
                "trial {:>3}/{}  block {:>2}  {:<10} {:<12} {outcome}",
                self.done,
                self.total,
                slot.block + 1,
                slot.workload,
                slot.arm
            ));
        }
        self.show_figures();
        self.show_run();
    }

    /// The first metric of a workload stands for it while a run is under way.
    fn headline_metric(&self, workload: &WorkloadName, arm: &ArmName) -> Option<Metric> {
        self.plan.arm(arm)?.workload(workload)?.metrics.first().copied()
    }

    fn is_of_packets(&self, workload: &WorkloadName, arm: &ArmName) -> bool {
        let settings = self.plan.arm(arm).and_then(|arm| arm.workload(workload));
        settings.is_some_and(|settings| words::is_of_packets(&settings.traffic))
    }

    fn show_figures(&self) {
        let Some(bars) = &self.bars else { return };
        let mut lines = Vec::new();
        for workload in &self.plan.workloads {
            let arms: Vec<String> =
                self.plan.arms.iter().filter_map(|arm| self.so_far(workload, &arm.name)).collect();
            if !arms.is_empty() {
                lines.push(format!("so far  {workload}: {}", arms.join(", ")));
            }
        }
        bars.figures.set_message(lines.join("\n  "));
    }

    /// An arm's median so far in the headline metric of a workload.
    fn so_far(&self, workload: &WorkloadName, arm: &ArmName) -> Option<String> {
        let values = self.figures.get(&(workload.clone(), arm.clone()))?;
        let metric = self.headline_metric(workload, arm)?;
        let median = netduel_stats::summary::median(values)?;
        let packets = self.is_of_packets(workload, arm);
        Some(format!("{arm} {} (n {})", words::metric_value(metric, packets, median), values.len()))
    }

    fn show_run(&self) {
        let Some(bars) = &self.bars else { return };
        bars.run.set_length(u64::from(self.total));
        bars.run.set_position(u64::from(self.done));
        let left = bars.run.eta();
        let text = if self.done == 0 { "?".to_owned() } else { format!("at most {} s", left.as_secs()) };
        bars.run.set_message(text);
    }
}

/// How a run ended, in one line.
fn ended(end: &RunEnd) -> String {
    match end {
        RunEnd::PrecisionReached => "done: every interval is as narrow as the plan asks".to_owned(),
        RunEnd::BlocksDone => "done: all blocks of the plan were run".to_owned(),
        RunEnd::BudgetUsed => "done: the plan's time is used up".to_owned(),
        RunEnd::Interrupted => "stopped: treatments are undone, finished trials are kept".to_owned(),
        RunEnd::Failed { detail } => format!("stopped: {detail}"),
    }
}
