//! Output of a quick test: lines of text during the test, or JSON.
use std::fmt::Write as _;

use netduel_model::event::Event;
use netduel_model::ids::RunId;
use netduel_model::plan::ResolvedPlan;
use netduel_model::sample::LiveFigures;
use netduel_model::search::SearchStep;
use netduel_model::units::{BitRate, human_bit_rate, human_si};
use netduel_model::workload::{Role, Traffic, Workload};
use netduel_report::json::error::ErrorDocument;
use netduel_report::json::parts as json;
use netduel_report::json::quick::{
    QuickDocument, QuickEvent, QuickEventKind, QuickInput, QuickTest, QuickWarning,
};
use netduel_report::quick::{self, Interval, Intervals, SummaryInput};
use netduel_report::words;

use super::args::CommonArgs;
use super::held_lines::HeldLines;
use crate::console::{page_layout, print, print_json, print_json_line, print_lines, tell};
use crate::exit::Failure;
use crate::{program, redaction};

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// One JSON document at the end.
    Json,
    /// A JSON line for the start, each interval and the end.
    JsonStream,
}

impl Format {
    /// From the options.
    pub fn of(common: &CommonArgs) -> Self {
        match (common.json.json, common.json_stream) {
            (true, _) => Self::Json,
            (false, true) => Self::JsonStream,
            (false, false) => Self::Text,
        }
    }
}

/// Prints a test during its run, and its result.
pub struct Output {
    format: Format,
    /// Print the result only.
    quiet: bool,
    /// The address or interface that the client is bound to.
    from: Option<String>,
    traffic: Traffic,
    intervals: Intervals,
    /// Seconds; 0 without lines.
    interval_s: f64,
    /// The intervals of the JSON document. Other formats keep none: a test may have any number of them.
    kept: Vec<Interval>,
    /// Whether the heading of the lines was printed.
    has_heading: bool,
    /// The lines while a live view has the terminal.
    held: Option<HeldLines>,
    warnings: Vec<QuickWarning>,
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
            from: common.bind.as_ref().map(|bind| redaction::text(&bind.to_string())),
            traffic: workload.traffic.clone(),
            intervals: Intervals::new(&workload.traffic, interval_s, workload.timing.duration.as_secs_f64()),
            interval_s,
            kept: Vec::new(),
            has_heading: false,
            held: None,
            warnings: Vec::new(),
            lines: interval_s > 0.0 && !is_search,
            newest: [LiveFigures::default(); 2],
        }
    }

    /// Prints the test and its server. The rate of each stream is printed beside the total, because the command line sets the
    /// former and a plan the latter.
    pub fn begin(
        &self,
        workload: &Workload,
        (server, rate_per_stream): (&str, Option<BitRate>),
    ) -> Result<(), Failure> {
        let mut settings = words::workload(workload);
        if let Some(rate) = rate_per_stream {
            let _ = write!(settings, " ({rate} per stream)");
        }
        match self.format {
            // Also with `--quiet`: a result without its settings and its server means nothing later.
            Format::Text => {
                let from = self.from.as_ref().map(|from| format!(" from {from}")).unwrap_or_default();
                print_lines(&format!("server {server}{from}: {settings}\n"))
            }
            Format::Json => Ok(()),
            Format::JsonStream => event(QuickEventKind::start(server, workload)),
        }
    }

    /// Processes an event; a closed reader of the lines does not stop the test.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::TrialProgress { role, figures } => self.progress(*role, *figures),
            Event::SearchTried { step } => self.tried(step),
            Event::Warned { warning } => {
                tell(&format!("warning: {warning}"));
                self.warn(QuickWarning::of(warning));
            }
            Event::ProblemFound { text } => {
                tell(text);
                self.warn(QuickWarning::of_host(text));
            }
            _ => {}
        }
    }

    fn warn(&mut self, mut warning: QuickWarning) {
        warning.text = redaction::text(&warning.text);
        self.warnings.push(warning);
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

    /// Keeps the lines from now on, for a live view.
    pub fn hold_lines(&mut self) {
        self.held = Some(HeldLines::default());
    }

    /// Prints the lines that were kept; later ones are printed at once.
    pub fn release_lines(&mut self) {
        let Some(held) = self.held.take().filter(|held| !held.is_empty()) else { return };
        let heading = if self.lines { self.heading() } else { None };
        let lines: String = heading.into_iter().chain(held.into_lines()).map(|line| line + "\n").collect();
        // A print error now occurs again at the end, and is reported there.
        drop(print_lines(&lines));
    }

    /// The heading of the lines of intervals, once.
    fn heading(&mut self) -> Option<String> {
        let is_first = !std::mem::replace(&mut self.has_heading, true);
        is_first.then(|| quick::heading(&self.traffic))
    }

    fn tried(&mut self, step: &SearchStep) {
        if self.quiet {
            return;
        }
        // A print error now occurs again at the end, and is reported there.
        drop(match self.format {
            Format::Text => self.print_line(words::search::tried(step)),
            Format::Json => Ok(()),
            Format::JsonStream => event(QuickEventKind::step(step)),
        });
    }

    fn show(&mut self, interval: Interval) {
        let shown = match self.format {
            Format::Text => {
                let line = quick::line(&self.traffic, &interval, self.interval_s);
                // Warnings about the hosts come before it.
                let heading = if self.held.is_none() { self.heading() } else { None };
                self.print_line(match heading {
                    Some(heading) => format!("{heading}\n{line}"),
                    None => line,
                })
            }
            Format::Json => {
                self.kept.push(interval);
                Ok(())
            }
            Format::JsonStream => event(QuickEventKind::Interval { interval: json::Interval::of(&interval) }),
        };
        // A print error now occurs again at the end, and is reported there.
        drop(shown);
    }

    /// Prints a line for people, or keeps it for the end of the live view.
    fn print_line(&mut self, line: String) -> Result<(), Failure> {
        match &mut self.held {
            Some(held) => {
                held.push(line);
                Ok(())
            }
            None => print_lines(&format!("{line}\n")),
        }
    }

    /// Prints the last interval and the summary. Returns the test for the document of all tests in that output form.
    pub fn end(
        &mut self,
        plan: &ResolvedPlan,
        run: Option<&RunId>,
        summary: SummaryInput<'_>,
    ) -> Result<Option<QuickTest>, Failure> {
        if self.lines {
            for interval in self.intervals.finish(summary.trial) {
                self.show(interval);
            }
        }
        let run = run.map(RunId::as_str);
        let input = QuickInput { plan, run, summary, intervals: &self.kept, warnings: &self.warnings };
        match self.format {
            Format::Text => {
                print(&format!("\n{}", quick::summary(summary, page_layout().0)))?;
                Ok(None)
            }
            Format::Json => Ok(Some(QuickTest::of(input))),
            Format::JsonStream => {
                let test = Box::new(QuickTest::of(QuickInput { intervals: &[], ..input }));
                event(QuickEventKind::End { test })?;
                Ok(None)
            }
        }
    }

    /// The current intervals, for the JSON document of a failed test.
    pub fn intervals_json(&self) -> Vec<json::Interval> {
        self.kept.iter().map(json::Interval::of).collect()
    }

    /// The available values when the user stops a test: those of the last report of each end, so with the start-up included.
    pub fn stopped(&self) -> String {
        format!("stopped by the user {}", self.so_far())
    }

    /// The duration until now and what had arrived: `after 1.2 s; 3.00 GB had arrived at the server, 20.0 Gbit/s on average`.
    pub fn so_far(&self) -> String {
        let elapsed = self.newest.iter().map(|figures| figures.elapsed_ns).max().unwrap_or(0);
        let seconds = elapsed as f64 / 1e9;
        let mut text = format!("after {seconds:.1} s");
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
}

/// Prints the JSON output when a test fails: the earlier tests with the error, or the error only.
pub fn failed(
    format: Format,
    failure: &Failure,
    (server, tests): (&str, &[QuickTest]),
    intervals: Vec<json::Interval>,
) {
    let origin = program::origin();
    // The failure is printed on standard error in any case.
    drop(match format {
        Format::Text => Ok(()),
        Format::Json if tests.is_empty() => {
            print_json(&ErrorDocument::of(failure.info(), intervals, &origin))
        }
        Format::Json => print_json(&QuickDocument::of(server, tests.to_vec(), Some(failure.info()), &origin)),
        Format::JsonStream => event(QuickEventKind::Failed { error: failure.info() }),
    });
}

fn event(event: QuickEventKind) -> Result<(), Failure> {
    print_json_line(&QuickEvent::of(event, &program::origin()))
}
