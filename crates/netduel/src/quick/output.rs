//! What a quick test prints: lines for people as they come, or JSON for programs.
use std::fmt::Write as _;

use netduel_model::event::Event;
use netduel_model::plan::ResolvedPlan;
use netduel_model::sample::LiveFigures;
use netduel_model::search::SearchStep;
use netduel_model::trial::Trial;
use netduel_model::units::{BitRate, human_bit_rate, human_si};
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_report::analysis::Expected;
use netduel_report::quick::{self, Interval, Intervals, SummaryInput};
use netduel_report::words;
use serde_json::{Value, json};

use super::args::CommonArgs;
use crate::console::{page_layout, print, print_lines, tell};
use crate::exit::{Failure, Kind, OrFail as _};

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// One document at the end.
    Json,
    /// A line of JSON for the start, each interval and the end.
    JsonStream,
}

impl Format {
    /// From the options.
    pub fn of(common: &CommonArgs) -> Self {
        match (common.json, common.json_stream) {
            (true, _) => Self::Json,
            (false, true) => Self::JsonStream,
            (false, false) => Self::Text,
        }
    }
}

/// Prints a test while it runs, and its end.
pub struct Output {
    format: Format,
    /// The result alone.
    quiet: bool,
    /// The address or interface that the client is bound to.
    from: Option<String>,
    traffic: Traffic,
    intervals: Intervals,
    shown: Vec<Interval>,
    /// Whether lines are printed for intervals.
    lines: bool,
    newest: [LiveFigures; 2],
}

impl Output {
    /// For a test of this workload.
    pub fn new(common: &CommonArgs, workload: &Workload) -> Self {
        let interval_s = if common.quiet.quiet { 0.0 } else { common.interval.as_secs_f64() };
        // A search prints its steps.
        let is_search = workload.traffic.facts().search().is_some();
        Self {
            format: Format::of(common),
            quiet: common.quiet.quiet,
            from: common.bind.as_ref().map(ToString::to_string),
            traffic: workload.traffic.clone(),
            intervals: Intervals::new(&workload.traffic, interval_s),
            shown: Vec::new(),
            lines: interval_s > 0.0 && !is_search,
            newest: [LiveFigures::default(); 2],
        }
    }

    /// Prints the test and its server. The rate of each stream stands beside the total, because the command line sets the former and
    /// a plan the latter.
    pub fn begin(
        &self,
        plan: &ResolvedPlan,
        workload: &Workload,
        (server, rate_per_stream): (&str, Option<BitRate>),
    ) -> Result<(), Failure> {
        let mut settings = words::workload(workload);
        if let Some(rate) = rate_per_stream {
            let _ = write!(settings, " ({rate} per stream)");
        }
        match self.format {
            Format::Text if self.quiet => Ok(()),
            Format::Text => {
                let from = self.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
                print_lines(&format!("server {server}{from}: {settings}\n"))
            }
            Format::Json => Ok(()),
            Format::JsonStream => line(&json!({
                "event": "start", "server": server, "settings": settings, "workload": workload,
                "question": plan.question,
            })),
        }
    }

    /// Takes note of what happens; a reader of the lines that has gone does not stop the test.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::TrialProgress { role, figures } => self.progress(*role, *figures),
            Event::SearchTried { step } => self.tried(step),
            Event::Warned { warning } => tell(&format!("warning: {warning}")),
            Event::ProblemFound { text } => tell(text),
            _ => {}
        }
    }

    fn progress(&mut self, role: Role, figures: LiveFigures) {
        self.newest[role as usize] = figures;
        if !self.lines {
            return;
        }
        if let Some(interval) = self.intervals.take(role, figures) {
            self.show(interval);
        }
    }

    fn tried(&self, step: &SearchStep) {
        if self.quiet {
            return;
        }
        // A failure to print now occurs again at the end, and is reported there.
        drop(match self.format {
            Format::Text => print_lines(&format!("{}\n", words::search::tried(step))),
            Format::Json => Ok(()),
            Format::JsonStream => line(&json!({ "event": "step", "step": step })),
        });
    }

    fn show(&mut self, interval: Interval) {
        let shown = match self.format {
            Format::Text => {
                // Warnings about the hosts come before it.
                let heading = match self.shown.as_slice() {
                    [] => format!("{}\n", quick::heading(&self.traffic)),
                    _ => String::new(),
                };
                print_lines(&format!("{heading}{}\n", quick::line(&self.traffic, &interval)))
            }
            Format::Json => Ok(()),
            Format::JsonStream => {
                let mut value = quick::interval_json(&interval);
                if let Value::Object(fields) = &mut value {
                    fields.insert("event".to_owned(), "interval".into());
                }
                line(&value)
            }
        };
        // A failure to print now occurs again at the end, and is reported there.
        drop(shown);
        self.shown.push(interval);
    }

    /// The last interval and the summary.
    pub fn end(
        &mut self,
        plan: &ResolvedPlan,
        workload: &Workload,
        trial: &Trial,
        (shared_machine, expected): (bool, Option<&Expected>),
    ) -> Result<(), Failure> {
        if self.lines
            && let Some(rest) = self.intervals.finish(trial)
        {
            self.show(rest);
        }
        let input = SummaryInput { workload, trial, shared_machine, expected };
        match self.format {
            Format::Text => print(&format!("\n{}", quick::summary(input, page_layout().0))),
            Format::Json => {
                let document = quick::document(plan, None, input, &self.shown);
                print(&format!("{}\n", serde_json::to_string_pretty(&document).kind(Kind::Internal)?))
            }
            Format::JsonStream => {
                let mut document = quick::document(plan, None, input, &[]);
                if let Value::Object(fields) = &mut document {
                    fields.insert("event".to_owned(), "end".into());
                }
                line(&document)
            }
        }
    }

    /// What there is when the user stops a test: figures of the last report of each end, so without start-up cut off.
    pub fn stopped(&self) -> String {
        let elapsed = self.newest.iter().map(|figures| figures.elapsed_ns).max().unwrap_or(0);
        let seconds = elapsed as f64 / 1e9;
        let mut text = format!("stopped by the user after {seconds:.1} s");
        for (role, figures) in [Role::Client, Role::Server].into_iter().zip(self.newest) {
            if figures.received_bytes > 0 && figures.elapsed_ns > 0 {
                let rate = figures.received_bytes as f64 * 8e9 / figures.elapsed_ns as f64;
                let bytes = human_si(figures.received_bytes as f64, "B");
                let _ =
                    write!(text, "; {bytes} had arrived at the {role}, {} on average", human_bit_rate(rate));
            }
        }
        text
    }

    /// A test without a result, for programs: what failed, and the intervals until then.
    pub fn failed(&self, failure: &Failure) {
        let document = failure_document(failure, &self.shown);
        // The failure itself is reported on standard error in any case.
        drop(match self.format {
            Format::Text => Ok(()),
            Format::Json => print(&format!("{document:#}\n")),
            Format::JsonStream => line(&document),
        });
    }
}

/// As [`Output::failed`], for a test that was not begun.
pub fn failed_before(format: Format, failure: &Failure) {
    if format != Format::Text {
        drop(line(&failure_document(failure, &[])));
    }
}

fn failure_document(failure: &Failure, shown: &[Interval]) -> Value {
    let mut document = quick::failure(&failure.to_string(), failure.kind as i32, shown);
    if let Value::Object(fields) = &mut document {
        fields.insert("event".to_owned(), "failed".into());
    }
    document
}

fn line(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}
