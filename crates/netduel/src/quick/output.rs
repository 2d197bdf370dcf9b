//! What a quick test prints: lines for people as they come, or JSON for programs.
use netduel_model::event::Event;
use netduel_model::plan::ResolvedPlan;
use netduel_model::sample::LiveFigures;
use netduel_model::trial::Trial;
use netduel_model::units::human_si;
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_report::analysis::Expected;
use netduel_report::quick::{self, Interval, Intervals, SummaryInput};
use netduel_report::words;
use serde_json::{Value, json};

use super::args::CommonArgs;
use crate::exit::{Failure, Kind, OrFail as _};
use crate::run::print;

/// How a test is told.
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
    /// As the options say.
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
    traffic: Traffic,
    intervals: Intervals,
    shown: Vec<Interval>,
    /// Whether lines are printed for intervals.
    lines: bool,
    newest: [LiveFigures; 2],
}

impl Output {
    /// For a test of this workload.
    pub fn new(format: Format, workload: &Workload, interval_s: f64) -> Self {
        Self {
            format,
            traffic: workload.traffic.clone(),
            intervals: Intervals::new(&workload.traffic, interval_s),
            shown: Vec::new(),
            lines: interval_s > 0.0,
            newest: [LiveFigures::default(); 2],
        }
    }

    /// Tells what will run, and between whom.
    pub fn begin(&self, plan: &ResolvedPlan, workload: &Workload, server: &str) -> Result<(), Failure> {
        let settings = words::workload(workload);
        match self.format {
            Format::Text => print(&format!("server {server}: {settings}\n")),
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
            Event::Warned { warning } => eprintln!("warning: {warning}"),
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

    fn show(&mut self, interval: Interval) {
        let shown = match self.format {
            Format::Text => {
                // Warnings about the hosts come before it.
                let heading = match self.shown.as_slice() {
                    [] => format!("{}\n", quick::heading(&self.traffic)),
                    _ => String::new(),
                };
                print(&format!("{heading}{}\n", quick::line(&self.traffic, &interval)))
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
        // What could not be printed now will fail again at the end, where it is told.
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
            Format::Text => print(&format!("\n{}", quick::summary(input))),
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

    /// What there is when the user stops a test.
    pub fn stopped(&self) -> String {
        let received: u64 = self.newest.iter().map(|figures| figures.received_bytes).sum();
        let elapsed = self.newest.iter().map(|figures| figures.elapsed_ns).max().unwrap_or(0);
        format!(
            "stopped by you after {:.1} s; {} had arrived",
            elapsed as f64 / 1e9,
            human_si(received as f64, "B")
        )
    }
}

fn line(value: &Value) -> Result<(), Failure> {
    print(&format!("{value}\n"))
}
